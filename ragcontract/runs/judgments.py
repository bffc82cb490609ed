"""Judgments files: what a judge said of single items, one judgment a line. ``judge`` writes them, ``check`` replays."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct

from ragcontract.core import bounds
from ragcontract.core.ids import Id, TextId, as_id
from ragcontract.core.moment import Moment
from ragcontract.core.run import SourceFile
from ragcontract.core.text import printable_json
from ragcontract.files.events import Batch, FileRead
from ragcontract.files.opening import Progress, no_progress
from ragcontract.files.patterns import existing_files
from ragcontract.files.problems import Collector, Problems
from ragcontract.files.rows import read_rows
from ragcontract.files.writing import write_files
from ragcontract.runs.judged_texts import Confirmed, Judge, Task, Verdict, is_failure

# ok: there is a verdict. unsure: the replies were invalid, or no majority agreed. compromised: the judge failed its
# controls. failed: there was no reply.
Status: TypeAlias = Literal["ok", "unsure", "compromised", "failed"]
Tokens = Annotated[int, Meta(ge=0, le=bounds.JUDGED_TOKENS)]  # calls have the same limit
Usd = Annotated[float, Meta(ge=0, le=bounds.JUDGED_TOKENS)]


class Judgment(Struct, frozen=True, kw_only=True, gc=False):
    """A line of a judgments file. Of an item that is not ``ok`` there is no verdict; its ``reason`` says why."""

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
        Verdict | None, Meta(description="Whether it is supported or met; of a flagged text, one of three words.")
    ] = None
    quote: Annotated[
        Annotated[str, Meta(max_length=bounds.EVIDENCE)] | None, Meta(description="The evidence, word for word.")
    ] = None
    context: Annotated[
        Annotated[int, Meta(ge=1, le=bounds.RANK)] | None, Meta(description="The rank of the text it is from.")
    ] = None
    reason: Annotated[str, Meta(max_length=bounds.JUDGED_BECAUSE, description="In the words of the judge.")] = ""
    votes: Annotated[
        Annotated[tuple[Verdict | None, ...], Meta(max_length=bounds.VOTES)],
        Meta(description="In the order in which they were asked for; null is one that was withheld."),
    ] = ()
    status: Annotated[Status, Meta(description="Whether there is a verdict.")]
    model: Annotated[str, Meta(max_length=bounds.JUDGE_NAME, description="The model, as it answered.")] = ""
    fingerprint: Annotated[
        str, Meta(max_length=bounds.FINGERPRINT, description="What a calibration must have been made with.")
    ]
    judge: Annotated[Judge, Meta(description="Who was asked, and how.")]
    at: Annotated[Moment, Meta(description="When.")]
    tokens_in: Annotated[Tokens, Meta(description="Its share of the tokens that were sent.")] = 0
    tokens_out: Annotated[Tokens, Meta(description="Its share of the tokens that came back.")] = 0
    usd: Annotated[Usd | None, Meta(description="What these cost at the prices that were given, if any.")] = None
    calls: Annotated[Tokens, Meta(description="Its share of the calls that were made, also of those sent again.")] = 0
    retried: Annotated[Tokens, Meta(description="Its share of the calls that were sent again.")] = 0
    compromised: Annotated[Tokens, Meta(description="Its share of the replies with wrong controls.")] = 0
    session: Annotated[Moment | None, Meta(description="When the judging began that asked for it.")] = None


class Judgments(Struct, frozen=True, kw_only=True):
    """The content of judgments files, by query and key."""

    files: tuple[SourceFile, ...]
    problems: Problems
    by_key: dict[tuple[str, str], Judgment]

    def get(self, query_id: str, key: str) -> Judgment | None:
        """Return the judgment on an item of a query, ``ok`` or not; None if there is none on these texts."""
        return self.by_key.get((query_id, key))


def read_judgments(paths: Sequence[str], progress: Progress = no_progress) -> Judgments:
    """Read judgments files or globs, with everything that is wrong with them."""
    problems, files = Collector(), list[SourceFile]()
    by_key: dict[tuple[str, str], Judgment] = {}
    found, missing = existing_files(paths)
    for problem in missing:
        problems.add(problem)
    for event in read_rows(found, Judgment, progress=progress):
        match event:
            case Batch():
                for index, judgment in enumerate(event.rows):
                    for field, why in _faults(judgment):
                        problems.problem(f"{event.location(index)}: {field}", why)
                    place = as_id(judgment.query_id), judgment.key
                    if len(by_key) >= bounds.JUDGMENTS:
                        message = f"is one judgment too many; at most {bounds.JUDGMENTS:,} are read"
                        problems.problem(event.location(index), message)
                        return Judgments(files=tuple(files), problems=problems.found(), by_key=by_key)
                    if by_key.setdefault(place, judgment) is not judgment:
                        message = f"query {place[0]!r} has a judgment with this key already; leave one of them out"
                        problems.problem(f"{event.location(index)}: key", message)
            case FileRead(file=file):
                files.append(file)
            case _:
                problems.add(event)
    return Judgments(files=tuple(files), problems=problems.found(), by_key=by_key)


def write_judgments(path: str, judgments: Iterable[Judgment]) -> None:
    """Write judgments sorted by key, whole or not at all; raises OutputError. Equal judgments make equal bytes."""
    write_files({path: lines_of(judgments)})


def lines_of(judgments: Iterable[Judgment]) -> Iterator[bytes]:
    """Yield the lines of a judgments file. A judge's words are shown in reviews: invisible characters are escaped."""
    encode = msgspec.json.Encoder().encode
    for judgment in sorted(judgments, key=lambda one: (one.key, as_id(one.query_id))):
        yield printable_json(encode(judgment).decode()).encode() + b"\n"


def _faults(judgment: Judgment) -> Iterator[tuple[str, str]]:
    """Yield the fields that contradict others, with why."""
    verdict, words = judgment.verdict, judgment.task == "confirmation"
    expected = f"one of {', '.join(map(repr, Confirmed.__args__))}" if words else "true or false"  # type: ignore[attr-defined]
    if judgment.status == "ok" and verdict is None:
        yield "verdict", f"expected {expected}, because the status is 'ok', found null"
    if judgment.status != "ok" and verdict is not None:
        yield "verdict", f"expected null, because the status is {judgment.status!r}, found {_shown(verdict)}"
    for field, one in (("verdict", verdict), *((f"votes[{at}]", vote) for at, vote in enumerate(judgment.votes))):
        if one is not None and isinstance(one, bool) == words:
            yield field, f"expected {expected}, because the task is {judgment.task!r}, found {_shown(one)}"
    if judgment.status == "ok" and verdict is not None:
        # Without a vote, only what needs no judge can be known: what was not retrieved, or not answered, fails.
        voted = verdict in judgment.votes if judgment.votes else is_failure(verdict)
        if not voted:
            yield "votes", f"expected votes for the verdict {_shown(verdict)}, found none"
    if judgment.status == "ok" and verdict is not None and not is_failure(verdict):
        if not judgment.quote:
            yield "quote", "expected the words that prove the verdict, found none"
        if judgment.context is None and (judgment.task == "attribution" or verdict == "supported_by_context"):
            yield "context", "expected the rank of the text that proves the verdict, found none"


def _shown(verdict: Verdict) -> str:
    return msgspec.json.encode(verdict).decode() if isinstance(verdict, bool) else repr(verdict)
