"""Judgments files: what a judge said of single items, one judgment per line.

The command ``judge`` writes them, and ``check`` replays them. A judgment that contradicts itself was edited by hand, or
cut, and is refused.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from sys import getsizeof
from typing import Annotated, Literal, TypeAlias, get_args

import msgspec
from msgspec import Meta, Struct

from ragcontract.core import bounds
from ragcontract.core.config_sections import Confirmed, JudgeVerdict, Task
from ragcontract.core.ids import Id, TextId, as_id
from ragcontract.core.numbers import count, mebibytes
from ragcontract.core.phrase import FieldPath, Location, Message, private
from ragcontract.core.run import Moment, SourceFile
from ragcontract.core.safe_text import printable_json, shorten, visible
from ragcontract.files.opening import READ_ERRORS, Progress, no_progress, read_problem, unpacked_size
from ragcontract.files.paths import existing_files
from ragcontract.files.problems import Batch, Collector, FileRead, Problem, Problems
from ragcontract.files.rows import Places, read_rows
from ragcontract.files.schema import Mismatch
from ragcontract.files.writing import write_files
from ragcontract.judgments.items import WITHOUT, AskedJudge, asked_how, is_failure, is_proven_by_context, settled

AHEAD = timedelta(days=1)  # how much the clocks of two machines may differ
SMALLER = 8  # a file with too many texts has at least an eighth of their limit as bytes
# ok: there is a verdict. unsure: replies were invalid, or no majority agreed. compromised: the judge failed its
# controls. failed: there was no reply.
Status: TypeAlias = Literal["ok", "unsure", "compromised", "failed"]
Tokens = Annotated[int, Meta(ge=0, le=bounds.JUDGED_TOKENS)]  # calls have the same limit
Usd = Annotated[float, Meta(ge=0, le=bounds.JUDGED_TOKENS)]
CONTENT = ("verdict", "status", "fingerprint")  # in which copies of a judgment agree
QueryKey: TypeAlias = tuple[str, str]  # the id of a query, and the key of a judgment on it


class Judgment(Struct, frozen=True, kw_only=True, gc=False):
    """A line of a judgments file. A judgment that is not ``ok`` has no verdict; its ``reason`` says why."""

    key: Annotated[
        str,
        Meta(
            pattern=r"^[0-9a-f]{64}$(?!\n)", title="64 hexadecimal digits", description="Of texts and judge: SHA-256."
        ),
    ]
    task: Annotated[Task, Meta(description="What was judged.")]
    query_id: Annotated[Id, Meta(description="The id of the golden query.")]
    item: Annotated[TextId, Meta(description="The item, as `claim:3`.")]
    verdict: Annotated[
        JudgeVerdict | None, Meta(description="Whether it is supported or met; of a flagged text, one of three words.")
    ] = None
    quote: Annotated[
        Annotated[str, Meta(max_length=bounds.EVIDENCE)] | None, Meta(description="The evidence, word for word.")
    ] = None
    context: Annotated[
        Annotated[int, Meta(ge=1, le=bounds.RANK)] | None, Meta(description="The rank of the text it is from.")
    ] = None
    reason: Annotated[str, Meta(max_length=bounds.JUDGED_BECAUSE, description="In the words of the judge.")] = ""
    votes: Annotated[
        Annotated[tuple[JudgeVerdict | None, ...], Meta(max_length=bounds.VOTES)],
        Meta(description="In the order in which they were asked for; null is one that was withheld."),
    ] = ()
    status: Annotated[Status, Meta(description="Whether there is a verdict.")]
    model: Annotated[str, Meta(max_length=bounds.JUDGE_NAME, description="The model, as it answered.")] = ""
    fingerprint: Annotated[
        str, Meta(max_length=bounds.FINGERPRINT, description="What a calibration must have been made with.")
    ]
    judge: Annotated[AskedJudge, Meta(description="Who was asked, and how.")]
    at: Annotated[Moment, Meta(description="When.")]
    tokens_in: Annotated[Tokens, Meta(description="Its share of the tokens that were sent.")] = 0
    tokens_out: Annotated[Tokens, Meta(description="Its share of the tokens that came back.")] = 0
    usd: Annotated[Usd | None, Meta(description="What these cost at the prices that were given, if any.")] = None
    calls: Annotated[Tokens, Meta(description="Its share of the calls that were made, also of those sent again.")] = 0
    retried: Annotated[Tokens, Meta(description="Its share of the calls that were sent again.")] = 0
    compromised: Annotated[Tokens, Meta(description="Its share of the replies with wrong controls.")] = 0
    session: Annotated[Moment | None, Meta(description="When the judging began that asked for it.")] = None


def query_key(judgment: Judgment) -> QueryKey:
    """Return what a judgment is found by: queries with equal texts have equal keys."""
    return as_id(judgment.query_id), judgment.key


class Judgments(Struct, frozen=True, kw_only=True):
    """The content of judgments files, by query and key; whether all files are there (``is_whole``)."""

    files: tuple[SourceFile, ...]
    problems: Problems
    by_key: dict[QueryKey, Judgment]
    lines: "Lines"
    is_whole: bool = True


class Lines:
    """The lines of up to a million judgments, in the order of their keys."""

    def __init__(self, keys: Iterable[QueryKey]) -> None:
        self._keys = keys  # of all that are read, also later
        self._lines = array("Q")
        self._places = Places()
        self._at: dict[QueryKey, int] = {}

    def add(self, path: str, line: int) -> None:
        self._lines.append(self._places.at(path, line))

    def location(self, judgment: Judgment) -> Location:
        if len(self._at) < len(self._lines):  # built only if something is wrong
            self._at = {key: number for number, key in enumerate(self._keys)}
        return self._places.location(self._lines[self._at[query_key(judgment)]])


def read_judgments(paths: Sequence[str], progress: Progress = no_progress, *, now: datetime | None = None) -> Judgments:
    """Read judgments files or globs, with everything that is wrong with them. A file may be empty, but must exist.

    With ``now``, judgments of the future are wrong; clocks may differ by ``AHEAD``. If two judgments with one key
    agree, the first counts. If they do not, that is a problem.
    """
    problems, files, texts = Collector(), list[SourceFile](), 0
    by_key: dict[QueryKey, Judgment] = {}
    lines = Lines(by_key)
    existing, missing = existing_files(paths)
    for problem in missing:
        problems.add(problem)
    if refused := _refused(existing):
        problems.add(refused)
        return Judgments(files=(), problems=problems.collected(), by_key={}, lines=lines)
    for event in read_rows(existing, Judgment, may_be_empty=True, progress=progress):
        match event:
            case Batch():
                for index, judgment in enumerate(event.rows):
                    texts += size_of_texts(judgment)
                    if too_much := _too_much(len(by_key) + 1, texts):
                        problems.problem(event.location(index), too_much)
                        return Judgments(files=tuple(files), problems=problems.collected(), by_key=by_key, lines=lines)
                    for fault in judgment_faults(judgment, now):
                        problems.mismatch(event.location(index), fault)
                    first = by_key.setdefault(query_key(judgment), judgment)
                    if first is judgment:
                        lines.add(event.path, event.line + index)
                    elif any(getattr(first, name) != getattr(judgment, name) for name in CONTENT):  # it is no copy
                        message = _contradicts(first, judgment, lines.location(judgment))
                        problems.problem(event.location(index).at("key"), message)
            case FileRead(file=file):
                files.append(file)
            case _:
                problems.add(event)
    return Judgments(
        files=tuple(files), problems=problems.collected(), by_key=by_key, lines=lines, is_whole=not missing
    )


def write_judgments(path: str, judgments: Iterable[Judgment], before: Callable[[], None] = lambda: None) -> None:
    """Write judgments, whole or not at all, and not if ``before`` raises anything; raise OutputError."""
    write_files({path: lines_of(judgments)}, before)


def lines_of(judgments: Iterable[Judgment]) -> Iterator[bytes]:
    """Yield the lines of a judgments file, sorted by key: equal judgments make equal bytes.

    A judge's words are shown in reviews: invisible characters are escaped.
    """
    encode = msgspec.json.Encoder().encode
    for judgment in sorted(judgments, key=lambda judgment: (judgment.key, as_id(judgment.query_id))):
        yield printable_json(encode(judgment).decode()).encode() + b"\n"


def judgment_faults(judgment: "Judgment", now: datetime | None = None) -> Iterator[Mismatch]:
    """Yield the fields that contradict other fields, or the clock if ``now`` is known, with the reason."""
    verdict, words = judgment.verdict, judgment.task == "confirmation"
    expected = f"one of {', '.join(map(repr, get_args(Confirmed)))}" if words else "true or false"
    if (judgment.status == "ok") == (verdict is None):
        because = f"because the status is {judgment.status!r}"
        wanted = "null" if verdict is not None else expected
        yield Mismatch(("verdict",), _found(f"expected {wanted}, {because}", shown(verdict)))
    verdicts: dict[FieldPath, JudgeVerdict | None] = {("verdict",): verdict}
    verdicts |= {("votes", at): vote for at, vote in enumerate(judgment.votes)}
    wrong = [at for at, value in verdicts.items() if value is not None and isinstance(value, bool) == words]
    for at in wrong:
        because = f"because the task is {judgment.task!r}"
        yield Mismatch(at, _found(f"expected {expected}, {because}", shown(verdicts[at])))
    if not wrong:
        yield from _of_votes(judgment)
    if judgment.status == "ok" and verdict is not None and not is_failure(verdict):
        if not judgment.quote:
            yield Mismatch(("quote",), _found("expected the words that prove the verdict", "none"))
        if judgment.context is None and is_proven_by_context(judgment.task, verdict):
            yield Mismatch(("context",), _found("expected the rank of the text that proves the verdict", "none"))
    whom, has = (judgment.model or judgment.judge.model) + asked_how(judgment.judge), judgment.fingerprint
    if whom != has and not has.startswith(f"{whom}{WITHOUT}"):
        wanted, actual = (repr(shorten(visible(name), bounds.FINGERPRINT // 4)) for name in (whom, has))
        yield Mismatch(("fingerprint",), _found(f"expected {wanted}, as its judge and model have it", actual))
    if now is not None and judgment.at - now > AHEAD:
        yield Mismatch(("at",), f"is in the future ({judgment.at:%Y-%m-%d}); is the clock right?")


def shown(verdict: JudgeVerdict | None) -> str:
    """Return a verdict as messages show it."""
    return repr(verdict) if isinstance(verdict, str) else msgspec.json.encode(verdict).decode()


def _found(expected: str, actual: str) -> str:
    return Message.quoting(f"{expected}, found ", private(actual))


def size_of_texts(judgment: Judgment) -> int:
    """Return how many bytes of memory the texts of a judgment take. A character may take four."""
    judge, query_id = judgment.judge, as_id(judgment.query_id)
    named = judgment.item, judgment.model, judgment.fingerprint, judge.model, judge.host, judge.instructions
    return sum(map(getsizeof, (query_id, judgment.quote, judgment.reason, *named)))


def _of_votes(judgment: "Judgment") -> Iterator[Mismatch]:
    verdict, votes, judge = judgment.verdict, judgment.votes, judgment.judge
    if not judge.votes % 2:
        yield Mismatch(("judge", "votes"), _found("expected an odd number", f"{judge.votes}"))
    if len(votes) > judge.votes:
        yield Mismatch(
            ("votes",), _found(f"expected at most {count(judge.votes, 'vote')}, as the judge has", f"{len(votes)}")
        )
        return
    if not votes:
        # Without a vote, an item can only fail: nothing was retrieved, or there was no answer.
        if judgment.status == "ok" and verdict is not None and not is_failure(verdict):
            yield Mismatch(("votes",), _found(f"expected votes for the verdict {shown(verdict)}", "none"))
        return
    result = settled(votes, judge.votes, judge.confirm)
    if any(settled(votes[:cast], judge.votes, judge.confirm) is not None for cast in range(1, len(votes))):
        yield Mismatch(("votes",), f"{msgspec.json.encode(votes).decode()} goes on after the verdict was settled")
    if result != verdict and (result is None or verdict is None or judgment.status == "ok"):
        listed, how = msgspec.json.encode(votes).decode(), f"{count(judge.votes, 'vote')}, confirm: {judge.confirm}"
        makes = "no verdict" if result is None else f"the verdict {shown(result)}"
        yield Mismatch(("votes",), f"{listed} makes {makes} ({how}), and the verdict is {shown(verdict)}")


def _refused(paths: Sequence[str]) -> Problem | None:
    """Return why large files have too many texts, without holding the texts; None if files may be read.

    Large files are unpacked once to count their bytes, which takes a tenth of the time of reading them, and then read
    twice. Otherwise files that are refused in the end would take as much memory as the largest files that are accepted.
    """
    least, total = bounds.JUDGMENT_TEXTS // SMALLER, 0
    regular = [path for path in paths if Path(path).is_file()]  # what is read from a pipe is gone
    if sum(Path(path).stat().st_size for path in regular) * bounds.UNPACKED_TOTAL_RATIO <= least:
        return None
    for path in regular:
        try:
            total += unpacked_size(path)
        except READ_ERRORS as error:
            return Problem(path, read_problem(error))
    if total <= least:
        return None
    texts, known = 0, set[int]()
    for event in read_rows(regular, Judgment, may_be_empty=True, compare_keys=0):
        if not isinstance(event, Batch):
            continue
        for index, judgment in enumerate(event.rows):
            texts += size_of_texts(judgment)
            known.add(hash(query_key(judgment)))
            if too_much := _too_much(len(known), texts):
                return Problem(event.location(index), too_much)
    return None


def _too_much(judgments: int, texts: int) -> str | None:
    """Return why no more judgments are read; None if there is room."""
    if judgments > bounds.JUDGMENTS:
        return f"is one judgment too many; at most {bounds.JUDGMENTS:,} are read"
    if texts > bounds.JUDGMENT_TEXTS:
        return f"is too much: the texts of all judgments take more than {mebibytes(bounds.JUDGMENT_TEXTS)} of memory"
    return None


def _contradicts(first: Judgment, judgment: Judgment, where: Location) -> str:
    """Return the message about a judgment that has the key of the ``first``, which is at ``where``."""
    query = repr(shorten(as_id(judgment.query_id), bounds.NAME))
    both = first, judgment
    statements = [judged.status if judged.verdict is None else shown(judged.verdict) for judged in both]
    if statements[0] == statements[1]:
        statements = [repr(shorten(visible(judged.fingerprint), bounds.NAME)) for judged in both]
    what = f"{' and '.join(statements)}; leave one of them out"
    return f"query {query} has another judgment with this key, at {where}: {what}"
