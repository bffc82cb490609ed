"""The lines of a journal: what is recorded, the files that answers depend on, and every question that is done.

The journal of a recording: every question that is done, as soon as it is, so that nothing is asked twice.

It lies beside the run as ``.<run>.journal``: JSON lines, of which the first says what is recorded. Memory holds where
each row is, not the rows.
"""

import os
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Self

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.errors import InputError, OutputError
from ragcontract.core.numbers import count
from ragcontract.core.safe_text import shorten
from ragcontract.files.locking import locked, not_ours
from ragcontract.files.paths import AnchoredPath
from ragcontract.files.writing import temporary_file, unwritable_temporary
from ragcontract.record.events import Failure
from ragcontract.record.golden_questions import Question, Questions
from ragcontract.record.sources import Source, Sources
from ragcontract.runs.readers import journal_beside

VERSION = 2
PREPARED = b'{"versions":'
USED = b'{"sources":'


class Header(Struct, frozen=True, kw_only=True):
    """What is recorded; rows of a journal that differs in any of it would not belong together."""

    target: str
    target_sha256: str
    git: str | None
    top: int
    repeats: int
    tool: str
    doc_id: str | None = None
    watch: str | None = None
    journal: int = VERSION


class Prepared(Struct, frozen=True, kw_only=True):
    """The versions that a system names before it is asked: another index behind the same target is another system."""

    versions: dict[str, str]


class Used(Struct, frozen=True, kw_only=True):
    """Files that the answers from here on may depend on; the last entry of a file counts."""

    sources: list[Source]


class Entry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A question that is done: the row of the run, without versions, or the failure of the last attempt.

    ``partial`` says that the row has the retrieval of a question whose answer failed. ``sources`` is how many files
    the journal names before it.
    """

    query_id: str
    question_sha: str
    repeat: int
    attempts: int
    ms: float
    row: Raw | UnsetType = UNSET
    failure: Failure | None = None
    partial: bool = False
    sources: int = 0


ABSENT = -1  # the offset of a row that there is not
WHAT = {"git": "the commit", "tool": "rag-contract", "doc_id": "--doc-id", "watch": "--watch"}


class Journal:
    """Keeps rows on disk, and finds them again in the order of the questions; close it at the end."""

    def __init__(self, file: IO[bytes], path: os.PathLike[str] | None, *, read_only: bool = False) -> None:
        """Use an open file, which is empty or the journal at ``path``; :func:`opened` and others do."""
        self._file = file
        self._path = path
        self._read_only = read_only
        self._end = 0
        self._unsynced = False
        self._offsets = array("q")
        self._numbers: dict[str, int] = {}
        self._questions: Sequence[Question] = ()
        self._repeats = 1
        self._partial = False
        self._rows = self._others = 0
        self._versions: dict[str, str] | None = None
        self._sources: dict[str, Source] = {}
        self._modules_of_before: dict[str, str] = {}
        self.kept = 0

    def start(
        self, header: Header, questions: Questions, sources: Sources, *, fresh: bool = False, partial: bool = False
    ) -> Self:
        """Go on with the rows of an earlier recording, as :meth:`read`; with ``fresh``, throw away what is there."""
        if fresh:
            self._file.truncate(0)
        self.read(header, questions, sources, partial=partial)
        self._file.truncate(self._end)
        if not self._end:
            self._append(msgspec.json.encode(header) + b"\n")
        return self

    def read(self, header: Header, questions: Questions, sources: Sources, *, partial: bool = False) -> Self:
        """Find the rows of these questions; raises InputError if what was recorded is not what the header says.

        So it does if a file has changed that the rows depend on, or if a part of the questions is wanted and there are
        rows of others.

        Lines that were only written in part are not read: their questions are asked again, and so are those that
        failed or have changed; those with a ``partial`` row, too, unless such rows are wanted.
        """
        self._partial = partial
        self._questions, self._repeats = questions.chosen, header.repeats
        self._numbers = {question.id: number for number, question in enumerate(self._questions)}
        self._offsets = array("q", [ABSENT]) * (len(self._questions) * header.repeats)
        first = self._file.readline(bounds.LINE)
        if first.endswith(b"\n"):
            self._end = len(first)
            self._load()
            if self._rows:
                self._compare(header, first)
                self._refuse([*sources.differences(self._sources.values())])
                self._modules_of_before = {one.module: one.file for one in self._sources.values() if one.module}
                if questions.are_a_part:
                    self._refuse_others()
            else:  # nothing to lose
                self._end, self._versions, self._sources = 0, None, {}
        self.kept = sum(offset != ABSENT for offset in self._offsets)
        return self

    def _compare(self, header: Header, line: bytes) -> None:
        try:
            found = msgspec.json.decode(line, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeError):
            found = {}
        if found.get("journal") != VERSION:
            problem = "is not a journal that this version of rag-contract can go on with; throw it away with --fresh"
            raise InputError([f"{self._path}: {problem}"])
        self._refuse_other(found, msgspec.structs.asdict(header))

    def _refuse_other(self, found: Mapping[str, Any], now: Mapping[str, Any]) -> None:
        differs = [
            _difference(name, found.get(name), now.get(name))
            for name in {**now, **found}
            if found.get(name) != now.get(name)
            and not (name == "target_sha256" and found.get("target") != now.get("target"))
        ]
        self._refuse(differs)

    def _refuse(self, differs: Sequence[str]) -> None:
        if differs:
            others = len(differs) - bounds.NAMES
            listed = ", ".join(differs[: bounds.NAMES]) + (f", and {others:,} more" if others > 0 else "")
            has = f"has {count(self._rows, 'answer')} of a recording that did not end, but {listed}"
            raise InputError([f"{self._path}: {has}; undo that to go on, or throw them away with --fresh"])

    def depend_on(self, sources: Sequence[Source]) -> None:
        """Note files before rows that may depend on them; raises InputError if these differ from what was noted before.

        A file that has changed while it was in use is noted as such: no other recording can go on with these rows.
        """
        added = [one for one in sources if one.file not in self._sources]
        self._refuse([*self._moved(added)])
        known = {**{one.file: one for one in added}, **self._sources}
        changed = [replace(one, sha256=None) for one in sources if known[one.file].sha256 != one.sha256]
        if lines := [*added, *changed]:
            self._sources = known | {one.file: one for one in changed}
            self._append(msgspec.json.encode(Used(sources=lines)) + b"\n")
        if changed:
            listed = ", ".join(map(str, changed[: bounds.NAMES]))
            two = f"{listed}: changed while it was in use, so the answers are of two versions"
            raise InputError([f"{two}; ask all of them again with --fresh"])

    def _moved(self, added: Sequence[Source]) -> Iterator[str]:
        """Yield the modules that the answers of before had from other files."""
        for source in added:
            before = self._modules_of_before.get(source.module or "")
            if before is not None:
                yield f"the module {source.module} was {before} and is {source.file}"

    def prepared(self, versions: Mapping[str, str]) -> None:
        """Note what a system says of itself before it is asked; raises InputError if it said something else before."""
        if self._versions is not None:
            self._refuse_other(self._versions, versions)
        else:
            self._versions = dict(versions)
            self._append(msgspec.json.encode(Prepared(versions=self._versions)) + b"\n")

    def _refuse_others(self) -> None:
        """Raise InputError if there are rows of other questions: once a part is written, its journal is deleted."""
        if self._others:
            has = f"has {count(self._others, 'answer')} to other questions, of a recording that did not end"
            way = "end that first, give this part another --out, or throw them away with --fresh"
            raise InputError([f"{self._path}: {has}; {way}"])

    def _load(self) -> None:
        decode = msgspec.json.Decoder(Entry).decode
        while (line := self._file.readline(2 * bounds.LINE)).endswith(b"\n"):
            offset, self._end = self._end, self._end + len(line)
            if self._versions is None and line.startswith(PREPARED):
                with suppress(msgspec.DecodeError, UnicodeError):
                    self._versions = msgspec.json.decode(line, type=Prepared).versions
                continue
            if line.startswith(USED):
                with suppress(msgspec.DecodeError, UnicodeError):
                    used = msgspec.json.decode(line, type=Used).sources
                    self._sources |= {one.file: one for one in used}
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
            # Where a disk lost what the row depends on, nothing can be compared.
            known = entry.sources <= len(self._sources)
            current = wanted and known and entry.question_sha == self._questions[number].digest
            self._offsets[self._at(number, entry.repeat)] = offset if current else ABSENT

    def _at(self, number: int, repeat: int) -> int:
        return number * self._repeats + repeat - 1

    def lacking(self) -> Iterator[tuple[Question, int]]:
        """Yield what is still to ask, each with its repeat: all questions once, then all of them again."""
        for repeat in range(1, self._repeats + 1):
            for number, question in enumerate(self._questions):
                if self._offsets[self._at(number, repeat)] == ABSENT:
                    yield question, repeat

    def add(self, entry: Entry) -> None:
        """Write a line; raises OutputError if that fails."""
        offset = self._end
        self._append(msgspec.json.encode(replace(entry, sources=len(self._sources))) + b"\n")
        if entry.row is not UNSET:
            self._rows += 1
            self._offsets[self._at(self._numbers[entry.query_id], entry.repeat)] = offset

    def _append(self, line: bytes) -> None:
        try:
            self._file.seek(self._end)
            self._file.write(line)
            self._file.flush()
        except OSError as error:
            raise self._unwritable(error) from error
        self._end += len(line)
        self._unsynced = True

    def sync(self) -> None:
        """See to it that what is written survives a machine that stops."""
        if self._unsynced and self._path is not None:
            try:
                os.fsync(self._file.fileno())
            except OSError as error:
                raise self._unwritable(error) from error
        self._unsynced = False

    def _unwritable(self, error: OSError) -> OutputError:
        if self._path is None:
            return unwritable_temporary(error)
        return OutputError([f"{self._path}: cannot be written ({error.strerror or error})"])

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows in the order of the questions, the repeats of each together; those that failed are absent."""
        decode = msgspec.json.Decoder(Entry).decode
        for offset in self._offsets:
            if offset != ABSENT:
                self._file.seek(offset)
                row: dict[str, Any] = msgspec.json.decode(decode(self._file.readline()).row or b"{}")
                yield row

    def close(self, *, remove: bool = False) -> None:
        """Close the file, and delete it if the run is written, or if it has no row."""
        with suppress(OSError, OutputError):  # what could not be written was reported when it was
            self.sync()
            if (remove or not self._rows) and self._path is not None and not self._read_only:
                Path(self._path).unlink(missing_ok=True)
        with suppress(OSError):
            self._file.close()


def path_beside(out: str) -> AnchoredPath:
    """Return where the journal of a run is."""
    return AnchoredPath(journal_beside(out))


@contextmanager
def begun(path: os.PathLike[str] | None) -> Iterator[None]:
    """Have a journal lie beside the run from before code of the target is imported until the recording has ended.

    Whatever that code does to the process, `check` then refuses the run that was there before. A journal that is still
    empty at the end is deleted.
    """
    made = path is not None and _made(Path(path))
    try:
        yield
    finally:
        with suppress(OSError):
            if path is not None and made and not Path(path).stat().st_size:
                Path(path).unlink()


def _made(path: Path) -> bool:
    """Create an empty file, if there is none; what prevents that is reported when the journal is opened."""
    with suppress(OSError):
        path.open("xb").close()
        return True
    return False


def opened(path: os.PathLike[str]) -> Journal:
    """Open or create a journal that no other recording has open; raises InputError or OutputError."""
    try:
        file = locked(Path(path))
    except OSError as error:
        raise OutputError([f"{path}: cannot be written ({error.strerror or error})"]) from error
    if file is None:
        raise InputError([f"{path}: another recording writes it; wait for its end, or give another --out"])
    return Journal(file, path)


def to_read(path: os.PathLike[str]) -> Journal:
    """Return a journal to look at, which may be written by another recording; raises InputError if it cannot be."""
    try:
        if problem := not_ours(Path(path)):
            raise InputError([f"{path}: cannot be read ({problem}; delete it)"])
        return Journal(Path(path).open("rb"), path, read_only=True)
    except OSError as error:
        raise InputError([f"{path}: cannot be read ({error.strerror or error})"]) from error


def temporary() -> Journal:
    """Return a journal that is gone when it is closed, for a run that is not written."""
    return Journal(temporary_file(), None)


def _difference(name: str, then: object, now: object) -> str:
    if name == "target_sha256":  # digests say nothing to anybody
        return "the content of the target has changed"
    return f"{WHAT.get(name, name)} was {_shown(then)} and is {_shown(now)}"


def _shown(value: object) -> str:
    return "none" if value is None else repr(shorten(str(value), bounds.NAME))
