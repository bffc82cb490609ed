"""The journal of a recording: every question that is done, as soon as it is, so that no question is asked twice.

It lies beside the run as ``.<run>.journal``. It has JSON lines: the first says what is recorded, and the others have
the versions of the system, the files that answers depend on, and the questions that are done. Memory holds the offset
of each row, not the rows.
"""

import os
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.numbers import count, more
from ragcontract.core.safe_text import shorten
from ragcontract.files.paths import AnchoredPath
from ragcontract.net.journal import Lines
from ragcontract.record.events import Failure
from ragcontract.record.golden_questions import Question, Questions
from ragcontract.record.sources import Source, Sources
from ragcontract.runs.readers import journal_beside

VERSION = 2
PREPARED = b'{"versions":'
USED = b'{"sources":'


class Header(Struct, frozen=True, kw_only=True):
    """What is recorded. If any of it has changed, new rows do not belong to those in the journal."""

    target: str
    target_sha256: str
    git: str | None
    top: int
    repeats: int
    tool: str
    doc_id: str | None = None
    watch: str | None = None
    versions: str | None = None  # that were chosen: they are written to every row
    journal: int = VERSION


class Prepared(Struct, frozen=True, kw_only=True):
    """The versions that a system reports before it is asked: with another index, it is another system."""

    versions: dict[str, str]


class Used(Struct, frozen=True, kw_only=True):
    """Files that the answers after this line may depend on; the last entry of a file counts."""

    sources: list[Source]


class Entry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A question that is done: with a row, or with a failure."""

    query_id: str
    question_sha: str
    repeat: int
    attempts: int
    ms: float
    row: Raw | UnsetType = UNSET  # of the run, without versions
    failure: Failure | None = None  # of the last attempt
    partial: bool = False  # whether only the retrieval is in the row, because the answer failed
    sources: int = 0  # how many files the journal names before this line


ABSENT = -1  # the offset of a row that is not in the journal
WHAT = {"git": "the commit", "tool": "rag-contract", "doc_id": "--doc-id", "watch": "--watch", "versions": "--set"}


class Journal:
    """Keeps rows on disk and returns them in the order of the questions; close it at the end."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._offsets = array("q")
        self._numbers: dict[str, int] = {}
        self._questions: Sequence[Question] = ()
        self._repeats = 1
        self._partial = False
        self._rows = self._others = 0
        self._versions: dict[str, str] | None = None
        self._sources: dict[str, Source] = {}
        self._earlier_modules: dict[str, str] = {}
        self.kept = 0

    def start(
        self, header: Header, questions: Questions, sources: Sources, *, fresh: bool = False, partial: bool = False
    ) -> Self:
        """Prepare to add rows to those that :meth:`read` finds; with ``fresh``, throw those away."""
        if fresh:
            self._lines.cut(0)
        self.read(header, questions, sources, partial=partial)
        self._lines.cut(self._lines.end)
        if not self._lines.end:
            self._append(header)
        return self

    def read(self, header: Header, questions: Questions, sources: Sources, *, partial: bool = False) -> Self:
        """Find the rows of these questions.

        Raises InputError if the header differs from that of the journal, if a file has changed that the rows depend on,
        or if only a part of the questions is wanted and there are rows of others.

        Questions without a row are asked again: those that failed or have changed, those whose line was not written
        whole, and those whose row is ``partial``, unless such rows are wanted.
        """
        self._partial = partial
        self._questions, self._repeats = questions.chosen, header.repeats
        self._numbers = {question.id: number for number, question in enumerate(self._questions)}
        self._offsets = array("q", [ABSENT]) * (len(self._questions) * header.repeats)
        following = self._lines.following()
        if (first := next(following, None)) is not None:
            self._load(following)
            if self._rows:
                self._compare(header, first[1])
                self._refuse([*sources.differences(self._sources.values())])
                self._earlier_modules = {
                    source.module: source.file for source in self._sources.values() if source.module
                }
                if questions.are_a_part:
                    self._refuse_others()
            else:  # nothing to lose
                self._lines.end, self._versions, self._sources = 0, None, {}
        self.kept = sum(offset != ABSENT for offset in self._offsets)
        return self

    def _compare(self, header: Header, line: bytes) -> None:
        try:
            recorded = msgspec.json.decode(line, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeError):
            recorded = {}
        if recorded.get("journal") != VERSION:
            problem = "is not a journal that this version of rag-contract can go on with; throw it away with --fresh"
            raise InputError([f"{self._lines.path}: {problem}"])
        self._refuse_other(recorded, msgspec.structs.asdict(header))

    def _refuse_other(self, recorded: Mapping[str, Any], now: Mapping[str, Any]) -> None:
        differs = [
            _difference(name, recorded.get(name), now.get(name))
            for name in {**now, **recorded}
            if recorded.get(name) != now.get(name)
            and not (name == "target_sha256" and recorded.get("target") != now.get("target"))
        ]
        self._refuse(differs)

    def _refuse(self, differs: Sequence[str]) -> None:
        if differs:
            listed = ", ".join(differs[: bounds.NAMES]) + more(len(differs), bounds.NAMES, form=", and {}")
            has = f"has {count(self._rows, 'answer')} of a recording that did not end, but {listed}"
            raise InputError([f"{self._lines.path}: {has}; undo that to go on, or throw them away with --fresh"])

    def depend_on(self, sources: Sequence[Source]) -> None:
        """Write down files before the rows that may depend on them.

        Raises InputError if a file has changed while it was in use. This is written down, too, so that no recording can
        go on with these rows.
        """
        added = [source for source in sources if source.file not in self._sources]
        self._refuse([*self._moved(added)])
        known = {**{source.file: source for source in added}, **self._sources}
        changed = [
            replace(source, sha256=None)
            for source in sources
            if known[source.file].sha256 != source.sha256 or source.is_of_unknown_version
        ]
        if lines := [*added, *changed]:
            self._sources = known | {source.file: source for source in changed}
            self._append(Used(sources=lines))
        if changed:
            listed = ", ".join(map(str, changed[: bounds.NAMES]))
            two = f"{listed}: changed while it was in use, so the answers are of two versions"
            raise InputError([f"{two}; ask all of them again with --fresh"])

    def _moved(self, added: Sequence[Source]) -> Iterator[str]:
        """Yield the modules that earlier answers had from other files."""
        for source in added:
            before = self._earlier_modules.get(source.module or "")
            if before is not None:
                yield f"the module {source.module} was {before} and is {source.file}"

    def prepared(self, versions: Mapping[str, str]) -> None:
        """Write down the versions that a system reports; raises InputError if the journal has others."""
        if self._versions is not None:
            self._refuse_other(self._versions, versions)
        else:
            self._versions = dict(versions)
            self._append(Prepared(versions=self._versions))

    def _refuse_others(self) -> None:
        """Raise InputError if there are rows of other questions: they would be lost when the journal is deleted."""
        if self._others:
            has = f"has {count(self._others, 'answer')} to other questions, of a recording that did not end"
            way = "end that first, give this part another --out, or throw them away with --fresh"
            raise InputError([f"{self._lines.path}: {has}; {way}"])

    def _load(self, following: Iterator[tuple[int, bytes]]) -> None:
        decode = msgspec.json.Decoder(Entry).decode
        for offset, line in following:
            if self._versions is None and line.startswith(PREPARED):
                with suppress(msgspec.DecodeError, UnicodeError):
                    self._versions = msgspec.json.decode(line, type=Prepared).versions
                continue
            if line.startswith(USED):
                with suppress(msgspec.DecodeError, UnicodeError):
                    used = msgspec.json.decode(line, type=Used).sources
                    self._sources |= {source.file: source for source in used}
                continue
            try:
                entry = decode(line)
            except (msgspec.DecodeError, UnicodeError):  # a disk that lost its power
                continue
            self._rows += entry.row is not UNSET
            number = self._numbers.get(entry.query_id)
            if number is None or not 1 <= entry.repeat <= self._repeats:
                self._others += entry.row is not UNSET
                continue
            wanted = entry.row is not UNSET and (self._partial or not entry.partial)
            # If a disk lost the lines before it, it is not known which files the row depends on.
            known = entry.sources <= len(self._sources)
            current = wanted and known and entry.question_sha == self._questions[number].digest
            self._offsets[self._at(number, entry.repeat)] = offset if current else ABSENT

    def _at(self, number: int, repeat: int) -> int:
        return number * self._repeats + repeat - 1

    def lacking(self) -> Iterator[tuple[Question, int]]:
        """Yield the questions without a row, each with its repeat: all of the first repeat, then of the next."""
        for repeat in range(1, self._repeats + 1):
            for number, question in enumerate(self._questions):
                if self._offsets[self._at(number, repeat)] == ABSENT:
                    yield question, repeat

    def add(self, entry: Entry) -> None:
        offset = self._append(replace(entry, sources=len(self._sources)))
        if entry.row is not UNSET:
            self._rows += 1
            self._offsets[self._at(self._numbers[entry.query_id], entry.repeat)] = offset

    def _append(self, line: Header | Used | Prepared | Entry) -> int:
        return self._lines.append(msgspec.json.encode(line) + b"\n")

    def sync(self) -> None:
        self._lines.sync()

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows in the order of the questions, with the repeats of each together.

        The rows of a question of which a repeat lacks its row are left out: the others would be better than the system.
        """
        decode = msgspec.json.Decoder(Entry).decode
        for offsets in self._of_questions():
            for offset in offsets if ABSENT not in offsets else ():
                row: dict[str, Any] = msgspec.json.decode(decode(self._lines.at(offset)).row or b"{}")
                yield row

    @property
    def has_rows(self) -> bool:
        """Whether any question has the rows of all its repeats."""
        return any(ABSENT not in offsets for offsets in self._of_questions())

    def _of_questions(self) -> Iterator["array[int]"]:
        """Yield the offsets of the rows of each question."""
        for start in range(0, len(self._offsets), self._repeats):
            yield self._offsets[start : start + self._repeats]

    def close(self, *, remove: bool = False) -> None:
        """Close the file; delete it with ``remove``."""
        self._lines.close(remove=remove)


def path_beside(out: str) -> AnchoredPath:
    """Return the path of a run's journal."""
    return AnchoredPath(journal_beside(out))


def begin(path: os.PathLike[str]) -> None:
    """Create a journal beside the run before any code of the target is imported.

    Until the run is written, `check` refuses the run that was there before: also if that code ends the process, and if
    nobody looks at the exit code. Errors are reported when the journal is opened.
    """
    with suppress(OSError):
        Path(path).open("xb").close()


def undo(path: os.PathLike[str]) -> None:
    """Delete the journal of a recording that is refused for its options, unless it has answers of an earlier one."""
    with suppress(OSError):
        if not Path(path).stat().st_size:
            Path(path).unlink()


def _difference(name: str, then: object, now: object) -> str:
    if name == "target_sha256":  # digests say nothing to anybody
        return "the content of the target has changed"
    return f"{WHAT.get(name, name)} was {_shown(then)} and is {_shown(now)}"


def _shown(value: object) -> str:
    return "none" if value is None else repr(shorten(str(value), bounds.NAME))
