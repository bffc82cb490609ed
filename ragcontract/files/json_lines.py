"""The reader for JSON lines: one object per line, as typed records, with each problem reported by file and line."""

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, Generic, TypedDict, TypeVar, Unpack

import msgspec
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.nearest import NearNames
from ragcontract.core.phrase import Location
from ragcontract.files.json_text import (
    DoubledKeys,
    NestingError,
    UnreadableError,
    check_nesting,
    fault,
    line_blocks_of,
    malformed,
)
from ragcontract.files.mistaken import expected_of, instead_of, not_json_lines, one_object
from ragcontract.files.opening import READ_ERRORS, UTF8_BOM, InputFile, Progress, no_progress, read_problem
from ragcontract.files.problems import Batch, Event, FileRead, MoreProblems, Problem, Warned
from ragcontract.files.schema import Mismatch, mismatches

HEAD, HEAD_LINES = 1 << 16, 40  # bytes and lines that show what a file is
CONFLICT = b"<<<<<<< "
UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
SCALARS = frozenset({int, float, bool, type(None)})
T = TypeVar("T", bound=msgspec.Struct)


class How(TypedDict, total=False):
    """How the rows of files are read."""

    known: type[msgspec.Struct] | None  # has all fields that a row may have; by default, the type of the rows
    spell_check: int | None  # the rows of each file of JSON lines whose fields are compared with those; by default, all
    compare_keys: int | None  # the bytes in which a key twice in an object is a problem; by default, all
    unread: Collection[str]  # fields such as ``results.metadata``, which are not loaded if the format can skip them
    may_be_empty: bool  # whether a file of JSON lines without rows is not a problem
    progress: Progress


def read_jsonl(paths: Sequence[str], row_type: type[T], **how: Unpack[How]) -> Iterator[Event[T]]:
    """Yield the rows of one or more files as ``row_type``, and the problems in them.

    There is one warning for each name that looks misspelled. If ``known`` has ``own_fields``, there is one for each
    unknown field of each row.
    """
    reader = _Reader(row_type, how)
    for path in paths:
        try:
            file = InputFile(path, how.get("progress", no_progress))
        except OSError as error:
            yield Problem(path, read_problem(error))
            continue
        with file:
            yield from reader.events(file)
            yield FileRead(file.source())


class _Reader(Generic[T]):
    def __init__(self, row_type: type[T], how: How) -> None:
        self._type = row_type
        self._may_be_empty = how.get("may_be_empty", False)
        self._compare_keys = how.get("compare_keys")
        self._known = known = how.get("known") or row_type
        hook = getattr(row_type, "made_by", None)
        self._decode: Callable[[bytes], T] = msgspec.json.Decoder(row_type, dec_hook=hook).decode
        spell_check = how.get("spell_check")
        self._to_spell_check = sys.maxsize if spell_check is None else spell_check
        self._decode_strictly: Callable[[bytes], T] | None = None
        if spell_check is None and known is row_type and not any(_known_fields(row_type).values()):
            # If all fields of all rows are checked, the decoder detects unknown fields, which costs nothing.
            self._decode_strictly = msgspec.json.Decoder(_strict(row_type), dec_hook=hook).decode
            self._to_spell_check = 0
        self._named: set[str] | None = None if hasattr(known, "own_fields") else set()  # by a warning
        self._head: list[bytes] = []  # the first lines of the current file
        self._explained = self._counted = 0  # problems; faulty rows after them

    def events(self, file: InputFile) -> Iterator[Event[T]]:
        """Yield the events of one file."""
        decode = self._decode_strictly or self._decode
        keys = DoubledKeys(self._compare_keys, self._type)
        self._head = []
        rows_read = read = at = 0  # number of rows; of lines in complete blocks; of the current line
        try:
            for lines in line_blocks_of(file, "JSON lines"):
                self._head = self._head or lines[:HEAD_LINES]
                rows = None
                if rows_read >= self._to_spell_check:
                    with suppress(*UNDECODABLE):
                        rows = list(map(decode, lines))
                doubled = keys.of_rows(lines, rows)
                if rows is not None and not doubled:
                    yield Batch(file.path, read + 1, rows)
                    rows_read += len(rows)
                else:  # to be spell-checked, or with blank or invalid lines or lines that start with a byte order mark
                    for at, raw in enumerate(lines, read + 1):
                        line = raw.removeprefix(UTF8_BOM)  # on any line: files may be concatenated
                        if (key := doubled.get(at - read - 1)) is not None:
                            yield Problem(Location(file.path, at), fault(key))
                            rows_read += 1
                        elif line and not line.isspace():
                            yield from self._line(line, file.path, at, rows_read)
                            rows_read += 1
                at = read = read + len(lines)
        except UnreadableError as error:
            yield Problem(Location(file.path, at + error.lines_on), str(error))
        except READ_ERRORS as error:
            yield Problem(Location(file.path, read + 1), read_problem(error))
        else:
            if not rows_read and not self._may_be_empty:
                yield Problem(file.path, "is empty; expected one JSON object a line")

    def _line(self, line: bytes, path: str, number: int, rows_read: int) -> Iterator[Event[T]]:
        """Yield the row of one line, or its problems; raise UnreadableError if all other lines must fail too."""
        location = Location(path, number)
        error: Exception = ValueError()
        for decode in filter(None, (self._decode_strictly, self._decode)):  # unknown fields are refused at first only
            try:
                row = decode(line)
                if decode is self._decode and (self._decode_strictly or rows_read < self._to_spell_check):
                    yield from self._check_spelling(line, location)
            except UNDECODABLE as undecodable:
                error = undecodable
            else:
                yield Batch(path, number, [row])
                return
        yield from self._problems(line, location, error, first=not rows_read)

    def _problems(self, line: bytes, location: Location, error: Exception, *, first: bool) -> Iterator[Event[T]]:
        if first:
            self._refuse_other_file(line)
        if line.startswith(CONFLICT):
            raise UnreadableError("is a conflict marker of git; resolve the merge, the rest of the file was not read")
        if self._explained >= bounds.PROBLEMS:
            # A gzip file of 10 KB may hold millions of them, and each takes as long as a good one.
            self._counted += 1
            if self._counted > bounds.FAULTY_ROWS:
                raise UnreadableError(
                    f"more than {bounds.FAULTY_ROWS:,} rows are faulty; the rows from here on were not read"
                )
            yield MoreProblems(1)
            return
        wrong = explained(line, error, whole_type(self._type))
        for mismatch in wrong:
            self._explained += 1
            yield Problem.of(location, mismatch)
        if self._decode_strictly is not None and _is_explained(line, error):
            with suppress(NestingError, *UNDECODABLE):
                check_nesting(line)
                named = {mismatch.path[0] for mismatch in wrong if mismatch.path}
                spelling = self._check_spelling(line, location)
                yield from (warned for warned in spelling if warned.meant and warned.meant not in named)

    def _refuse_other_file(self, line: bytes) -> None:
        """Raise UnreadableError if the first row shows that all others would fail for the same reason."""
        start = line.strip()
        head = b"\n".join(self._head).removeprefix(UTF8_BOM)[:HEAD]
        expected = expected_of(self._known)
        if other := instead_of(expected, head):
            raise UnreadableError(other)
        if start.startswith(b"["):
            raise UnreadableError("is a JSON array; expected one object a line, as `jq -c '.[]' FILE` writes them")
        if start == b"{":
            raise UnreadableError(
                "is one JSON document over several lines; expected one object a line, as `jq -c . FILE` writes it"
            )
        why = one_object(expected, head, self._known) if start.startswith(b"{") else not_json_lines(expected, head)
        if why:
            raise UnreadableError(why)

    def _check_spelling(self, line: bytes, location: Location) -> Iterator[Warned]:
        row = msgspec.json.decode(line)
        for name, meant, advice in unread_fields(row, self._type, self._known) if isinstance(row, dict) else ():
            if self._named is not None:
                if name in self._named:
                    continue
                self._named.add(name)
            text = row.get(name)  # the name may be that of a field within a list
            beside = text if meant in row and isinstance(text, str) else ""
            yield replace(Warned.of_field(location, name, meant, advice), beside=beside)
        notes = getattr(self._type, "unread_notes", None)
        if notes and isinstance(row, dict) and self._named is not None:
            for message in notes(row):
                if message not in self._named:
                    yield Warned(f"{location}: {message}")
                self._named.add(message)


def explained(line: bytes, error: Exception, record: type) -> list[Mismatch]:
    """Return the reasons why a line does not fit the record; ``error`` is one of ``UNDECODABLE``.

    If the line is very long, it is only the first reason, because as plain objects a line may need twenty times its
    size.
    """
    reasons: list[Mismatch] = []
    if _is_explained(line, error):
        try:
            check_nesting(line)
            reasons = mismatches(msgspec.json.decode(line), record)
        except NestingError:
            pass  # in a field that is not read, so the decoder's error counts
        except UNDECODABLE as undecodable:
            error = undecodable
    return reasons or [Mismatch((), malformed(line, error)[1])]


def whole_type(record: type) -> type:
    """Return the record type that explains why a row is wrong, with the types that are imported when they are named."""
    explained_by: Callable[[], type] = getattr(record, "explained_by", lambda: record)
    return explained_by()


def _is_explained(line: bytes, error: Exception) -> bool:
    """Return whether a line is JSON that does not fit its record, and short enough to be looked at again."""
    return isinstance(error, msgspec.ValidationError) and len(line) <= bounds.EXPLAINED


def _strict(record: type[T]) -> type[T]:
    return msgspec.defstruct(record.__name__, [], bases=(record,), forbid_unknown_fields=True)  # type: ignore[return-value]


def unread_fields(value: dict[str, Any], read: type, known: type) -> Iterator[tuple[str, str, str]]:
    """Yield each field that is not read but probably stands for one that is, the name of the latter, and what to do.

    If ``known`` says what to do about ``own_fields``, all other fields that are not read follow, with an empty name.
    """
    entries: Mapping[str, tuple[str, str]] = getattr(known, "entries", {})
    unread = {name: (meant, advice) for name, meant, advice in renamed_fields(value, read, known)}
    for name, meant in strange_fields(value, known):
        unread.setdefault(name, (meant, entries[meant][1] if meant in entries else f"did you mean {meant!r}?"))
    if own_fields := getattr(known, "own_fields", ""):
        for name in value:
            if name not in _known_fields(known):
                unread.setdefault(name, ("", own_fields))
    for name, (meant, advice) in unread.items():
        yield name, meant, advice


def strange_fields(value: dict[str, Any], record: type) -> Iterator[tuple[str, str]]:
    """Yield each unknown field and the known one that it looks like, including fields in lists of records."""
    known = _known_fields(record)
    for name, inner in value.items():
        if name in known:
            if (element := known[name]) and isinstance(inner, list):
                for item in inner:
                    if isinstance(item, dict):  # of a list without items, Parquet knows no fields
                        yield from strange_fields(item, element)
        elif meant := _meant(name, record):
            yield name, meant


def renamed_fields(value: dict[str, Any], read: type, known: type) -> Iterator[tuple[str, str, str]]:
    """Yield each field that is another name for one that is ``read``, that one's name, and what to do.

    The one that is read is absent, or does not have what the other has. ``known`` has the other names in
    ``other_names``, and those of entries that belong into a list in ``entries``. The list may be there.
    """
    entries: Mapping[str, tuple[str, str]] = getattr(known, "entries", {})
    for name, inner in value.items():
        if name in _known_fields(known):
            continue
        meant, advice = entries.get(name) or _other_names(known).get(_letters(name), ("", ""))
        if meant not in _known_fields(read):
            continue
        if meant not in value or name in entries:
            yield name, meant, advice
        elif _differ(inner, value[meant], by_ids=meant == "results"):
            yield name, meant, f"it differs from {meant!r}; export only one of them, as {meant!r}"


@lru_cache
def _other_names(record: type) -> Mapping[str, tuple[str, str]]:
    return {_letters(name): meant for name, meant in getattr(record, "other_names", {}).items()}


def _letters(name: str) -> str:
    return name.casefold().replace("_", "").replace("-", "")


def _differ(other: object, own: object, *, by_ids: bool) -> bool:
    """Return whether a field has something under another name that it does not have under its own.

    Texts are compared without blanks. Every text in a list or an object must be known, or ``by_ids`` one in each item.
    """
    texts, own_texts = _texts_in(other), _texts_in(own)
    if not isinstance(other, str | list | dict) or "".join(texts) == "".join(own_texts):
        return False
    known = set(own_texts)
    if by_ids:
        return any(known.isdisjoint(_texts_in(item)) for item in (other if isinstance(other, list) else [other]))
    return isinstance(own, str) or not known.issuperset(texts)


def _texts_in(value: object) -> list[str]:
    """Return the texts and numbers in a value, in order; those in a text that is a JSON object, too."""
    texts: list[str] = []
    waiting = [value]
    while waiting:
        match waiting.pop():
            case str(text):
                inner = None
                if text.startswith("{"):
                    with suppress(*UNDECODABLE):
                        inner = msgspec.json.decode(text)
                if inner is None:
                    texts.append("".join(text.split()))
                else:
                    waiting.append(inner)
            case dict(fields):
                waiting += [inner for name, inner in reversed(fields.items()) if name != "type"]
            case list(items):
                waiting += reversed(items)
            case int() | float() as number:
                texts.append(str(number))
    return texts


@lru_cache(maxsize=1000)  # a file may have millions of distinct names
def _meant(name: str, record: type) -> str | None:
    return _misspelled_fields(record).misspelled(name) or _near_fields(record).nearest(name)


@lru_cache
def _near_fields(record: type) -> NearNames:
    return NearNames(_known_fields(record))


@lru_cache
def _misspelled_fields(record: type) -> NearNames:
    return NearNames((*_known_fields(record), *getattr(record, "entries", ())))


@lru_cache
def _known_fields(record: type) -> dict[str, type | None]:
    """Map each field to the record type of its items if it is a list of records, otherwise to None."""
    elements: dict[str, type | None] = {}
    for field in msgspec.inspect.type_info(record).fields:  # type: ignore[attr-defined]
        described = isinstance(field.type, msgspec.inspect.Metadata)
        inner = getattr(field.type.type if described else field.type, "item_type", None)
        elements[field.encode_name] = inner.cls if isinstance(inner, msgspec.inspect.StructType) else None
    return elements


def has_more_text(value: Any, limit: int) -> bool:
    """Return whether a value is certainly longer than ``limit`` bytes as JSON, without spending memory on it.

    A character of a text takes a byte or more, and an item of a list two or more with its comma.
    """
    length = 0
    waiting = [[value]]
    while waiting:
        items: Any = waiting.pop()
        length += 2 * len(items)
        if length > limit:
            return True
        for inner in items.values() if isinstance(items, dict) else items:
            kind = type(inner)  # of which most are one of the first two
            if kind is str:
                length += len(inner)
            elif kind in SCALARS:
                continue
            elif isinstance(inner, dict | list | tuple):
                waiting.append(inner)  # type: ignore[arg-type]
            elif isinstance(inner, str):
                length += len(inner)
            elif isinstance(inner, Mapping):
                waiting.append(dict(inner))  # type: ignore[arg-type]
    return length > limit
