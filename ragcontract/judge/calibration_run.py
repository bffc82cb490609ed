"""Calibrates a judge: it judges items that people have labelled, twice, as it judges any other item.

A labels file has one labelled item per line. The items to label are a random sample of what is judged, drawn without
regard to the judge's verdicts.
"""

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from ragcontract.core import bounds
from ragcontract.core.config_sections import LabelCounts, Task
from ragcontract.core.errors import InputError, OutputError
from ragcontract.core.ids import Tag
from ragcontract.core.numbers import count
from ragcontract.core.phrase import Location
from ragcontract.core.run import AnswerText
from ragcontract.core.safe_text import visible
from ragcontract.files.locking import file_digest, in_turn, require_unchanged, rewrite
from ragcontract.files.opening import GZIP_MAGIC
from ragcontract.files.paths import existing_files
from ragcontract.files.problems import Collector, located
from ragcontract.files.rows import is_parquet, read_rows
from ragcontract.files.writing import append
from ragcontract.judge.chat_model import ChatModel
from ragcontract.judge.endpoint import query_keys
from ragcontract.judge.judging_run import Expected, cache_of, expected, open_model
from ragcontract.judge.judging_session import (
    JudgingProgress,
    JudgingResult,
    JudgingSettings,
    Lacking,
    judge_lacking,
    lacking,
)
from ragcontract.judge.judgment_journal import journal_key, open_journal, path_beside
from ragcontract.judge.model_calls import Spending, Spent
from ragcontract.judgments.calibration import (
    FORMAT_VERSION,
    Calibration,
    CalibrationFile,
    calibrated,
    labels_needed,
    write_calibration,
)
from ragcontract.judgments.items import Item, JudgeCase, known_without_a_judge, label_of
from ragcontract.judgments.judgments_file import Judgment, QueryKey
from ragcontract.net.pool import Stop

Text = Annotated[AnswerText, Meta(min_length=1, title=f"text of 1 to {bounds.ANSWER:,} characters")]
# The fields without which a task cannot be judged.
NEEDS: Mapping[Task, tuple[str, ...]] = {"attribution": (), "confirmation": ("response",), "criteria": ("response",)}
PASSES = 2


class LabelRow(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of a labels file: an item with the texts to judge it by, and a person's label."""

    task: Annotated[Task, Meta(description="What is judged.")]
    question: Annotated[Text, Meta(description="The question.")]
    text: Annotated[Text, Meta(description="The claim, the flagged text, or the criterion.")]
    label: Annotated[
        bool, Meta(description="Whether it is supported or met; of a flagged text, whether it is asserted unsupported.")
    ]
    contexts: Annotated[list[AnswerText] | None, Meta(description="The retrieved texts, best first.")] = None
    response: Annotated[AnswerText | None, Meta(description="What the application answered.")] = None
    reference: Annotated[AnswerText | None, Meta(description="A good answer.")] = None
    why: Annotated[AnswerText | None, Meta(description="Why the text was flagged.")] = None
    labeler: Annotated[Tag | None, Meta(description="Who says so.")] = None


class Labelled(Struct, frozen=True, kw_only=True):
    """Cases to judge, and the labels of their items."""

    cases: tuple[JudgeCase, ...]
    labels: tuple[tuple[bool, ...], ...]  # for each case, in the order of its items
    warnings: tuple[str, ...] = ()  # about labels that are left out


class CalibrationOutcome(Struct, frozen=True, kw_only=True):
    """The result of a calibration."""

    passes: tuple[JudgingResult, ...]
    spent: Spent
    file: CalibrationFile | None = None  # None if it ended early, for the reason in the last pass


def calibrate(
    labelled: Labelled,
    judging: JudgingSettings,
    *,
    passes: int = PASSES,
    stop: Stop | None = None,
    watch: Callable[[JudgingProgress], object] = lambda _: None,
) -> CalibrationOutcome:
    """Judge labelled items, compare the verdicts with the labels, and write the calibration.

    Only judgments of an earlier calibration that ended early are reused. Raise InputError if the endpoint does not
    answer as one judge, or OutputError, also if another program has changed the file meanwhile.
    """
    read = file_digest(judging.path)
    spending = Spending(judging.budget)
    model = open_model(judging, spending)
    done: list[JudgingResult] = []
    stop = stop or Stop()
    try:
        for number in range(1, passes + 1):
            done.append(_pass(number, labelled, judging, model=model, spending=spending, stop=stop, watch=watch))
            if done[-1].over is not None or done[-1].error is not None:
                return CalibrationOutcome(passes=tuple(done), spent=spending.spent)
    finally:
        model.close()
    try:
        calibrations = tuple(_calibrations(labelled, judging, model, [judged.judgments for judged in done]))
    except InputError:  # only other replies could help
        _forget(judging, passes)
        raise
    file = CalibrationFile(format_version=FORMAT_VERSION, calibrations=calibrations)
    with in_turn(judging.path):
        write_calibration(judging.path, file, before=partial(require_unchanged, judging.path, read))
    _forget(judging, passes)
    return CalibrationOutcome(passes=tuple(done), spent=spending.spent, file=file)


def expected_calibration(
    labelled: Labelled, judging: JudgingSettings, *, passes: int = PASSES
) -> tuple[Lacking, Expected]:
    """Return what all passes would ask, and what they would cost at least, without sending or writing anything."""
    journals = [_journal_path(judging, number) for number in range(1, passes + 1)]
    return expected(labelled.cases, judging, journals, {})


def read_labels(paths: Sequence[str]) -> Labelled:
    """Read labels files or globs; raise InputError with all that is wrong with them.

    Items about the same texts are one case, as they are in a judging. Items about which no judge is asked say nothing
    about a judge, and are left out.
    """
    existing, missing = existing_files(paths)
    problems = Collector()
    for problem in missing:
        problems.add(problem)
    cases: dict[bytes, tuple[LabelRow, dict[tuple[str, str], bool]]] = {}
    first: dict[tuple[bytes, tuple[str, str]], Location] = {}
    for location, row in located(read_rows(existing, LabelRow), problems):
        for name in NEEDS[row.task]:
            if getattr(row, name) is None:
                problems.problem(location.at(name), f"is needed where the task is {row.task!r}")
        about = msgspec.json.encode([row.task, row.question, row.contexts or [], row.response, row.reference])
        item = (row.text, row.why or "")
        if (about, item) in first:
            message = f"this item is labelled already, at {first[about, item]}; settle on one label"
            problems.problem(location.at("text"), message)
            continue
        first[about, item] = location
        cases.setdefault(about, (row, {}))[1][item] = row.label
    problems.collected().raise_if_any()
    made = [(_case(number, row, items), tuple(items.values())) for number, (row, items) in enumerate(cases.values(), 1)]
    asked = [(case, labels) for case, labels in made if not known_without_a_judge(case)]
    left_out = len(first) - sum(len(labels) for _, labels in asked)
    why = "since no judge is asked where nothing was retrieved, or where there is no response to a criterion"
    if not asked:
        raise InputError([f"{', '.join(map(visible, paths))}: has no label to calibrate with, {why}"])
    return Labelled(
        cases=tuple(case for case, _ in asked),
        labels=tuple(labels for _, labels in asked),
        warnings=(f"not counted: {count(left_out, 'label')}, {why}",) if left_out else (),
    )


class Unlabelled(Struct, frozen=True, kw_only=True):
    """An item to label, and its case."""

    case: JudgeCase
    item: Item

    def row(self, *, label: bool, labeler: str | None) -> LabelRow:
        case = self.case
        return LabelRow(
            task=case.task,
            question=case.question,
            contexts=list(case.contexts),
            response=case.response,
            reference=case.reference,
            text=self.item.text,
            why=self.item.why or None,
            label=label,
            labeler=labeler,
        )


class LabelsFile:
    """A labels file that grows by a line with each answer. The lines that were added can be taken back."""

    def __init__(self, path: str) -> None:
        """Read what is labelled; raise InputError with all that is wrong with the file.

        A file to which no lines can be added is wrong, too.
        """
        self.path = path
        self._known: set[bytes] = set()
        self._labels: Counter[tuple[Task, bool]] = Counter()  # those that a calibration counts
        self._added: list[tuple[LabelRow, int]] = []  # with the size of the line in bytes
        problems = Collector()
        if why := _no_lines(path):
            raise InputError([f"{path}: {why}"])
        data = Path(path).read_bytes() if Path(path).exists() else b""
        if data.startswith(GZIP_MAGIC):
            raise InputError([f"{path}: is gzip, to which no line can be added; unpack it first"])
        if data.strip():
            for _, row in located(read_rows([path], LabelRow), problems):
                self._note(row)
        problems.collected().raise_if_any()
        self._hash, self._line_is_open = hashlib.blake2b(data), _has_open_line(data)

    def __contains__(self, unlabelled: Unlabelled) -> bool:
        return _about(unlabelled.row(label=True, labeler=None)) in self._known

    def __len__(self) -> int:
        return len(self._known)

    def add(self, row: LabelRow) -> None:
        """Write a line; raise OutputError, also if another program has changed the file meanwhile."""
        data = (b"\n" if self._line_is_open else b"") + msgspec.json.encode(row) + b"\n"
        with in_turn(self.path):
            require_unchanged(self.path, self._hash.digest())
            try:
                append(Path(self.path), data)
            except OSError as error:
                raise OutputError([f"{self.path}: cannot be written ({error.strerror or error})"]) from error
        self._added.append((row, len(data)))
        self._hash.update(data)
        self._line_is_open = False
        self._note(row)

    def take_back(self) -> None:
        """Remove the line that was added last; raise OutputError, also if another program has changed the file."""
        row, size = self._added[-1]
        try:
            data = Path(self.path).read_bytes()
        except OSError as error:
            raise OutputError([f"{self.path}: cannot be read ({error.strerror or error})"]) from error
        before = data[:-size]
        rewrite(self.path, before, self._hash.digest())
        self._added.pop()
        self._hash, self._line_is_open = hashlib.blake2b(before), _has_open_line(before)
        self._known.discard(_about(row))
        self._labels[row.task, row.label] -= _counts(row)

    def needed(self, task: Task) -> str:
        """Return how many more labels a calibration of a task needs, and of which kind."""
        return labels_needed(task, yes=self._labels[task, True], no=self._labels[task, False])

    def _note(self, row: LabelRow) -> None:
        if (about := _about(row)) not in self._known:
            self._known.add(about)
            self._labels[row.task, row.label] += _counts(row)


def _has_open_line(data: bytes) -> bool:
    """Return whether the last line lacks its end."""
    return bool(data) and not data.endswith(b"\n")


def sample(cases: Sequence[JudgeCase], known: LabelsFile, *, size: int, seed: int) -> list[Unlabelled]:
    """Return items to label, in random order; raise InputError if there are none.

    All have the same chance, whatever a judge said of them. In a sample that is chosen by verdicts, a judge seems to
    miss more or less than it does (Begg and Greenes, *Assessment of Diagnostic Tests when Disease Verification is
    Subject to Selection Bias*, Biometrics 39, 1983). Items about which no judge is asked are left out, because their
    labels say nothing about a judge.
    """
    unlabelled = [
        unlabelled
        for case in cases
        if not known_without_a_judge(case)
        for unlabelled in (Unlabelled(case=case, item=item) for item in case.items)
        if unlabelled not in known
    ]
    if not unlabelled:
        raise InputError([f"{known.path}: has a label for everything that is judged"])
    chance = random.Random(seed)  # noqa: S311 (a sample that somebody can draw again)
    chance.shuffle(unlabelled)
    return unlabelled[:size]


def _case(number: int, row: LabelRow, items: Mapping[tuple[str, str], bool]) -> JudgeCase:
    return JudgeCase(
        task=row.task,
        query_id=f"labels {number}",
        question=row.question,
        items=tuple(Item(name=f"label:{at}", text=text, why=why) for at, (text, why) in enumerate(items, 1)),
        contexts=tuple(row.contexts or ()),
        response=row.response,
        reference=row.reference,
    )


def _no_lines(path: str) -> str | None:
    """Return why no lines can be added to a file of this name or kind; None if they can."""
    if is_parquet(path):
        return "is Parquet, to which no line can be added; name a .jsonl file"
    if Path(path).exists() and not Path(path).is_file():
        return "is not a regular file, so labels cannot be read from it"
    return None


def _counts(row: LabelRow) -> bool:
    """Return whether a calibration counts a label: it says nothing of a judge that is not asked."""
    return not known_without_a_judge(_case(0, row, {}))


def _about(row: LabelRow) -> bytes:
    return msgspec.json.encode(
        [row.task, row.question, row.contexts or [], row.response, row.reference, row.text, row.why or ""]
    )


def _pass(
    number: int,
    labelled: Labelled,
    judging: JudgingSettings,
    *,
    model: ChatModel,
    spending: Spending,
    stop: Stop,
    watch: Callable[[JudgingProgress], object],
) -> JudgingResult:
    """Judge everything. Each pass has its own dice, so it asks in another way."""
    path = _journal_path(judging, number)
    journal = open_journal(path, key=journal_key(judging.environ), refresh=judging.refresh, option="--out")
    try:
        to_ask = lacking(labelled.cases, model, judging.settings, cache_of(judging, journal, {}))
        return judge_lacking(to_ask, judging, model, journal, spending, stop=stop, watch=watch)
    finally:
        journal.close(remove=False)


def _forget(judging: JudgingSettings, passes: int) -> None:
    for number in range(1, passes + 1):
        _journal_path(judging, number).unlink(missing_ok=True)


def _journal_path(judging: JudgingSettings, number: int) -> Path:
    path = Path(judging.path)
    return path_beside(path.with_name(f"{path.name}.{number}"))


def _calibrations(
    labelled: Labelled, judging: JudgingSettings, model: ChatModel, passes: Sequence[Mapping[QueryKey, Judgment]]
) -> Iterator[Calibration]:
    of_task: dict[Task, list[tuple[QueryKey, bool]]] = {}
    for case, labels in zip(labelled.cases, labelled.labels, strict=True):
        keys = query_keys(case, judging.settings, model)
        of_task.setdefault(case.task, []).extend(zip(keys, labels, strict=True))
    for task, items in sorted(of_task.items()):
        first = [(verdict, label) for key, label in items if (verdict := _label(passes[0], key)) is not None]
        cells = Counter(first)
        counts = LabelCounts(tp=cells[True, True], fp=cells[True, False], fn=cells[False, True], tn=cells[False, False])
        yield calibrated(
            task,
            counts,
            fingerprint=_fingerprint(task, [passes[0][key] for key, _ in items]),
            at=judging.clock(),
            unjudged=len(items) - len(first),
            self_agreement=_self_agreement(passes, [key for key, _ in items]),
        )


def _label(judgments: Mapping[QueryKey, Judgment], key: QueryKey) -> bool | None:
    """Return the judge's verdict as a label; None without a verdict."""
    verdict = judgments[key].verdict if key in judgments else None
    return None if verdict is None else label_of(verdict)


def _self_agreement(passes: Sequence[Mapping[QueryKey, Judgment]], keys: Sequence[QueryKey]) -> float | None:
    """Return the share of items on which the first two passes agree; None if there is nothing to compare."""
    pairs = [tuple(_label(judgments, key) for judgments in passes[:PASSES]) for key in keys]
    both = [pair for pair in pairs if len(pair) == PASSES and None not in pair]
    return sum(first == other for first, other in both) / len(both) if both else None


def _fingerprint(task: Task, judgments: Sequence[Judgment]) -> str:
    """Return the fingerprint of all replies; raise InputError if there are several."""
    asked = [judgment for judgment in judgments if judgment.model]
    prints = sorted({judgment.fingerprint for judgment in asked or judgments})
    if len(prints) > 1:
        several = "; ".join(prints[:PASSES])
        raise InputError(
            [f"{task}: the endpoint answered as several judges, which one file cannot stand for: {several}"]
        )
    return prints[0]
