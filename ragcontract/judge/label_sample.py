"""What a person is asked to label for a calibration: a sample of what is judged, blind to what the judge said."""

import hashlib
import random
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from ragcontract.core.errors import InputError, OutputError
from ragcontract.files.appending import append
from ragcontract.files.events import located
from ragcontract.files.opening import GZIP_MAGIC
from ragcontract.files.problems import Collector
from ragcontract.files.rewriting import in_turn, require_unchanged
from ragcontract.files.rows import is_parquet, read_rows
from ragcontract.judge.labelled_items import LabelRow
from ragcontract.runs.judged_texts import Case, Item, known_without_a_judge


class Unlabelled(Struct, frozen=True, kw_only=True):
    """An item to label, and the case that it is of."""

    case: Case
    item: Item

    def row(self, *, label: bool, labeler: str | None) -> LabelRow:
        """Return the line of a labels file."""
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
    """A labels file that grows by a line with each answer."""

    def __init__(self, path: str) -> None:
        """Read what is labelled; raises InputError with all that is wrong with the file.

        A file to which no lines can be added is wrong, too.
        """
        self.path = path
        self._known: set[bytes] = set()
        problems = Collector()
        if why := _no_lines(path):
            raise InputError([f"{path}: {why}"])
        data = Path(path).read_bytes() if Path(path).exists() else b""
        if data.startswith(GZIP_MAGIC):
            raise InputError([f"{path}: is gzip, to which no line can be added; unpack it first"])
        if data.strip():
            for _, row in located(read_rows([path], LabelRow), problems):
                self._known.add(_about(row))
        problems.found().raise_if_any()
        self._line_is_open = not data.endswith(b"\n") and bool(data)
        self._hash = hashlib.blake2b(data)

    def __contains__(self, one: Unlabelled) -> bool:
        """Return whether an item is labelled."""
        return _about(one.row(label=True, labeler=None)) in self._known

    def __len__(self) -> int:
        """Return how many items are labelled."""
        return len(self._known)

    def add(self, row: LabelRow) -> None:
        """Write a line; raises OutputError, also if another program has changed the file meanwhile."""
        data = (b"\n" if self._line_is_open else b"") + msgspec.json.encode(_without_nulls(row)) + b"\n"
        with in_turn(self.path):
            require_unchanged(self.path, self._hash.digest())
            try:
                append(Path(self.path), data)
            except OSError as error:
                raise OutputError([f"{self.path}: cannot be written ({error.strerror or error})"]) from error
        self._hash.update(data)
        self._line_is_open = False
        self._known.add(_about(row))


def _no_lines(path: str) -> str | None:
    """Return why no lines can be added to a file, as far as its name and its kind say so."""
    if is_parquet(path):
        return "is Parquet, to which no line can be added; name a .jsonl file"
    if Path(path).exists() and not Path(path).is_file():
        return "is not a regular file, so labels cannot be read from it"
    return None


def sample(cases: Sequence[Case], known: LabelsFile, *, size: int, seed: int) -> list[Unlabelled]:
    """Return items to label, in random order; raises InputError if there are none.

    All are drawn alike, whatever a judge said of them: in a sample that is chosen by verdicts, a judge seems to miss
    more or less than it does (Begg and Greenes, *Assessment of Diagnostic Tests when Disease Verification is Subject
    to Selection Bias*, Biometrics 39, 1983). What no judge is asked about is no part of it: a label says nothing of
    one there.
    """
    unlabelled = [
        one
        for case in cases
        if not known_without_a_judge(case)
        for one in (Unlabelled(case=case, item=item) for item in case.items)
        if one not in known
    ]
    if not unlabelled:
        raise InputError([f"{known.path}: has a label for everything that is judged"])
    chance = random.Random(seed)  # noqa: S311 (a sample that somebody can draw again)
    chance.shuffle(unlabelled)
    return unlabelled[:size]


def _about(row: LabelRow) -> bytes:
    return msgspec.json.encode(
        [row.task, row.question, row.contexts or [], row.response, row.reference, row.text, row.why or ""]
    )


def _without_nulls(row: LabelRow) -> dict[str, object]:
    return {name: value for name, value in msgspec.structs.asdict(row).items() if value is not None}
