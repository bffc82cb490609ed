"""The records and the reader of ``baseline.json``, a stored run with its scores."""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, takewhile
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.ids import Id, Rank, Tag, as_id
from ragcontract.core.phrase import Location
from ragcontract.core.run import Latency, Means, SourceFile
from ragcontract.files.json_lines import HEAD, UNDECODABLE, explained
from ragcontract.files.json_text import (
    DoubledKeys,
    JsonLocator,
    UnreadableError,
    check_nesting,
    doubled_key,
    fault,
    line_blocks_of,
    malformed,
)
from ragcontract.files.mistaken import BASELINE, RUN, instead_of, mistaken_for, not_json_lines
from ragcontract.files.opening import READ_ERRORS, InputFile, Progress, no_progress, read_problem, read_whole
from ragcontract.files.problems import FileRead, MoreProblems, Problem
from ragcontract.files.schema import Mismatch
from ragcontract.runs.baseline_contract import Expected, PastContract, Replaced, RunCount

FORMAT_VERSION = 1
AROUND = 2  # levels around each query
BATCH = 100  # queries per batch; once decoded, they fit into the processor cache
# The lines around the queries in a file as `rag-contract baseline` writes it.
BEFORE_QUERIES, AFTER_QUERIES, LAST_LINE = b'  "queries": [', b"  ]", b"}"
END = b"\n".join([b"", AFTER_QUERIES, LAST_LINE, b""])


class Tool(Struct, frozen=True, kw_only=True):
    """The program that created a file."""

    name: str
    version: str


class Accepted(Struct, frozen=True, kw_only=True):
    """A broken contract that was accepted as the baseline."""

    reason: Annotated[str, Meta(min_length=1, description="Why, as it was given to --accept-regressions.")]
    at: Annotated[str, Meta(description="When, ISO 8601, UTC.")]
    by_version: Annotated[str | None, Meta(description="The version of rag-contract that checked it.")] = None
    failed: Annotated[int, Meta(ge=0, description="The number of all failed checks.")]
    failed_checks: Annotated[list[str], Meta(description="What was broken, gates first; the first hundred.")]


class ComparedQuery(Struct, frozen=True, kw_only=True, gc=False):
    """The part of a stored query that is compared with a run."""

    id: Id
    query: Annotated[str, Meta(description="The question, or sha256: and its digest where questions are private.")]
    doc_ids: Annotated[list[Id], Meta(description="Everything the run row returned, best first.")]
    repeats: Annotated[list[list[Id]], Meta(description="The same of further rows or runs, if any.")] = []
    pool: Annotated[
        list[Id] | None,
        Meta(description="The documents that were judged for the labels, where these are not its first k results."),
    ] = None
    expects: Annotated[Expected | None, Meta(description="The contract's expectations; older baselines have none.")] = (
        None
    )
    broken: Annotated[
        dict[str, list[str]], Meta(description="The broken rules about the answer, with digests of what was wrong.")
    ] = {}
    labels: Annotated[list[Tag | None], Meta(description="Of each row; null for one that no query expects.")] = []


class MeasuredQuery(ComparedQuery, frozen=True, kw_only=True, gc=False):
    """A stored query with its metrics, for metrics that cannot be recomputed from document ids."""

    metrics: Means


class BaselineQuery(MeasuredQuery, frozen=True, kw_only=True, gc=False):
    """A query of the baseline, with its ranks and metrics at the time the baseline was created."""

    ranks: dict[str, Rank | None]


class StoredHead(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All fields except the queries."""

    format_version: int
    created_at: Annotated[str, Meta(description="When it was made, ISO 8601, UTC.")]
    created_by: Tool
    golden_sha256: Annotated[
        str, Meta(description="Fingerprint of the golden queries, whatever their order and files.")
    ]
    k: Annotated[list[Rank], Meta(min_length=1)]
    versions: Annotated[
        dict[str, list[str]],
        Meta(description="Embedding model, index, chunking, retriever, language model and prompt."),
    ]
    metrics: Means
    tags: dict[str, Means]
    accepted: Annotated[
        list[Accepted], Meta(description="Broken contracts that became the baseline, the latest last.")
    ] = []
    latency: Annotated[Latency | None, Meta(description="How long retrieving took, where the rows said.")] = None
    fingerprints: Annotated[
        dict[str, str], Meta(description="How a metric was computed, where that is not the default.")
    ] = msgspec.field(default_factory=dict)
    contract: Annotated[
        PastContract | None, Meta(description="The configuration at that time; older baselines do not have it.")
    ] = None
    replaces: Annotated[Replaced | None, Meta(description="The baseline that was replaced by this one.")] = None
    runs: Annotated[RunCount, Meta(description="How many good runs it is the mean of; left out for one.")] = 1
    golden_files: Annotated[
        list[str],
        Meta(description="SHA-256 digests of the golden files. With the same files, no query is compared by itself."),
    ] = []

    def has_golden(self, files: Iterable[SourceFile], level: float) -> bool:
        """Return whether it was stored with these golden files, and with this grade from which documents are relevant.

        False if it or the files do not say.
        """
        same_files = bool(self.golden_files) and self.golden_files == digests_of(files)
        return same_files and self.contract is not None and self.contract.relevance_level == level


def digests_of(files: Iterable[SourceFile]) -> list[str]:
    """Return the digests of files, sorted; none if that of any is not known."""
    digests = sorted(file.sha256 for file in files)
    return digests if all(digests) else []


class BaselineFile(StoredHead, frozen=True, kw_only=True, omit_defaults=True):
    """The whole file. Metrics are recomputed from ``queries`` with the current golden file and k if possible."""

    queries: list[BaselineQuery]


class StoredBatch(Struct, frozen=True):
    """Some queries of a stored baseline, each only once."""

    queries: list[ComparedQuery]


StoredEvent = StoredHead | StoredBatch | FileRead | Problem | MoreProblems


class _Packed(StoredHead, frozen=True, kw_only=True):
    """The file with its queries still encoded: decoded, a hundred thousand of them need a gigabyte of memory."""

    queries: list[msgspec.Raw]


class _DuplicateError(Exception):
    """A query occurs twice. The whole file is then validated again, to report all duplicates."""


class _OtherLayoutError(Exception):
    """A file is not laid out as ``rag-contract baseline`` writes it."""


FAULTS = (*UNDECODABLE, *READ_ERRORS, UnreadableError, _OtherLayoutError, _DuplicateError)


def stored_events(path: str, *, with_metrics: bool = False, progress: Progress = no_progress) -> Iterator[StoredEvent]:
    """Yield the head of a baseline file, its queries in batches, and the problems in it.

    The metrics of the queries are read only if ``with_metrics`` is true; otherwise they are recomputed from document
    ids.

    A file as ``rag-contract baseline`` writes it is read line by line, which saves a fifth of the memory of a check. If
    it turns out to be faulty or to have another layout, it is read again as a whole. The head and the queries that were
    yielded before are then left out. A file whose head turns out to be another one is refused.
    """
    record = MeasuredQuery if with_metrics else ComparedQuery
    head, read = None, 0
    try:
        for event in _line_by_line(path, record, progress):
            yield event
            if isinstance(event, StoredHead):
                head = event
            elif isinstance(event, StoredBatch):
                read += len(event.queries)
    except FAULTS:
        yield from _as_a_whole(path, record, progress, head, read)


def _line_by_line(path: str, record: type[ComparedQuery], progress: Progress) -> Iterator[StoredEvent]:
    """Yield the events of a file in which each query is a line.

    Raises one of ``FAULTS`` if the file is faulty or has another layout.
    """
    if not Path(path).is_file():  # a pipe can be read only once
        raise _OtherLayoutError
    with Path(path).open("rb") as end:
        end.seek(-len(END), os.SEEK_END)
        if end.read() != END:
            raise _OtherLayoutError
    with InputFile(path, progress) as file:
        try:
            lines = chain.from_iterable(line_blocks_of(file, "a baseline"))
            around = b"\n".join([*takewhile(BEFORE_QUERIES.__ne__, lines), BEFORE_QUERIES, b"]}"])
            check_nesting(around)
            head = msgspec.json.decode(around, type=StoredHead)
            if _fault_of_head(head, around):
                raise _OtherLayoutError
            yield head
            yield from _decoded(_queries_in(lines), record)
            if [*lines] != [LAST_LINE]:
                raise _OtherLayoutError
            yield FileRead(file.source())
        except FAULTS:
            progress(-file.position)
            raise


def _queries_in(lines: Iterator[bytes]) -> Iterator[list[bytes]]:
    """Yield the queries of a file, still encoded, in batches. At the end, the line after them has been read as well."""
    keys = DoubledKeys(bounds.RUN_KEYS_COMPARED)
    rows = takewhile(AFTER_QUERIES.__ne__, lines)
    is_last = False  # no comma follows the last query
    batch: list[bytes] = []
    while lines_of_batch := [*islice(rows, BATCH)]:
        batch = [line.removesuffix(b",").strip() for line in lines_of_batch]
        brackets = max([query.count(b"[") + query.count(b"{") for query in batch])
        if is_last or brackets + AROUND > bounds.NESTING or keys.of_rows(batch):
            raise _OtherLayoutError
        is_last = not lines_of_batch[-1].endswith(b",")
        if not all(line.endswith(b",") for line in lines_of_batch[:-1]):
            raise _OtherLayoutError
        yield batch
    if not is_last or doubled_key(batch[-1]) is not None:  # the last one is searched also if the file is large
        raise _OtherLayoutError


def _as_a_whole(
    path: str, record: type[ComparedQuery], progress: Progress, head: StoredHead | None, read: int
) -> Iterator[StoredEvent]:
    """Yield the events of any file, without the ``head`` and as many queries as were ``read`` before."""
    try:
        data, source = read_whole(path, progress)
    except READ_ERRORS as error:
        yield Problem(path, read_problem(error))
        return
    yield FileRead(source)
    yield from _of_document(data, path, record, head, read)


def document_events(data: bytes, path: str, *, with_metrics: bool = False) -> Iterator[StoredEvent]:
    """Yield the events of a baseline file that is in memory; ``path`` names it in messages."""
    yield FileRead(SourceFile(path=path, sha256=hashlib.sha256(data).hexdigest()))
    yield from _of_document(data, path, MeasuredQuery if with_metrics else ComparedQuery, None, 0)


def _of_document(
    data: bytes, path: str, record: type[ComparedQuery], head: StoredHead | None, read: int
) -> Iterator[StoredEvent]:
    if not data or data.isspace():
        yield Problem(path, "is empty; make it with `rag-contract baseline --force`")
        return
    try:
        file, around = _unpacked(data)
    except UNDECODABLE as error:
        yield from _not_a_baseline(data, path, error)
        return
    keys = DoubledKeys(bounds.RUN_KEYS_COMPARED)
    doubled = (fault(key) for key in map(keys.of_row, map(bytes, file.queries)) if key is not None)
    if why := _fault_of_head(file, around) or next(doubled, None):
        yield Problem(path, why)
        return
    own_head = StoredHead(**{name: getattr(file, name) for name in StoredHead.__struct_fields__})
    if head is None:
        yield own_head
    elif head != own_head:
        yield Problem(path, "has fields after its queries, or was changed while it was read; make it anew")
        return
    queries = file.queries
    del file  # only the queries of the current batch and their encoded form are held
    try:
        for batch in _decoded((queries[start : start + BATCH] for start in range(0, len(queries), BATCH)), record):
            if queries_left := batch.queries[read:]:
                yield StoredBatch(queries_left)
            read = max(0, read - len(batch.queries))
    except (*UNDECODABLE, _DuplicateError) as error:
        queries.clear()
        yield from _explain(data, path, error)


def _unpacked(data: bytes) -> tuple[_Packed, bytes]:
    """Decode a file but for its queries; return it, and the JSON around them, with the last one.

    Raises one of ``UNDECODABLE``.
    """
    try:
        file = msgspec.json.decode(data, type=_Packed)
    except UNDECODABLE:
        check_nesting(data)
        raise
    around, queries = data, file.queries
    if queries:
        around = data[: data.rfind(bytes(queries[0]))] + data[data.rfind(bytes(queries[-1])) :]
    check_nesting(data)
    return file, around


def _fault_of_head(head: StoredHead, around: bytes) -> str | None:
    """Return what is wrong with a head that could be decoded; ``around`` is its JSON."""
    if head.format_version != FORMAT_VERSION:
        return _unknown_format(head.format_version)
    key = doubled_key(around)
    return None if key is None else fault(key)


def _decoded(batches: Iterable[Sequence[bytes | msgspec.Raw]], record: type[ComparedQuery]) -> Iterator[StoredBatch]:
    decode = msgspec.json.Decoder(record).decode
    seen: set[str | int] = set()
    for encoded in batches:
        batch = list(map(decode, encoded))
        size = len(seen) + len(batch)
        seen.update([as_id(query.id) for query in batch])
        if len(seen) < size:
            raise _DuplicateError
        yield StoredBatch(batch)


def read_stored(path: str, expected: SourceFile | None = None) -> BaselineFile:
    """Return a whole baseline file; raises :class:`InputError` if it cannot be read.

    It is also refused if its digest differs from that of the ``expected`` file, because it was changed in the meantime.
    """
    try:
        data, source = read_whole(path)
    except READ_ERRORS as error:
        raise InputError([f"{path}: {read_problem(error)}"]) from error
    if expected is not None and source.sha256 != expected.sha256:
        raise InputError([f"{path}: it changed while it was read; run again"])
    try:
        check_nesting(data)
        return msgspec.json.decode(data, type=BaselineFile)
    except UNDECODABLE as error:
        problems = [event for event in _explain(data, path, error) if isinstance(event, Problem)]
        raise InputError([str(problem) for problem in problems]) from error


def _not_a_baseline(data: bytes, path: str, error: Exception) -> Iterator[Problem | MoreProblems]:
    """Yield the problems of a file that cannot be decoded: it may have another version, or not be a baseline."""
    if other := instead_of(BASELINE, data[:HEAD]):
        also = "; a run can serve as one if its name ends in .jsonl" if other == mistaken_for(RUN, BASELINE) else ""
        yield Problem(path, other + also)
        return
    try:
        fields = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    except UNDECODABLE:
        if data.strip()[:1] not in {b"", b"{", b"["} and (other := not_json_lines(BASELINE, data[:HEAD])):
            yield Problem(path, other)
        else:
            yield from _explain(data, path, error)
        return
    if "per_query" in fields:
        message = (
            "is a baseline of rag-contract 0.1.0; recreate it with `rag-contract baseline --force` from the good run"
        )
        yield Problem(path, message)
    elif "format_version" not in fields:
        yield Problem(
            path,
            "is not a baseline: it has no format_version; make one with `rag-contract baseline`. "
            "A run can serve as one if its name ends in .jsonl",
        )
    elif re.fullmatch(rb"[0-9]{1,9}", version := bytes(fields["format_version"])) and int(version) != FORMAT_VERSION:
        yield Problem(path, _unknown_format(int(version)))
    else:
        yield from _explain(data, path, error)


def _unknown_format(version: object) -> str:
    return (
        f"has format version {version}, and this rag-contract reads version {FORMAT_VERSION}; "
        "recreate it with `rag-contract baseline --force`, or use the version that made it"
    )


def _explain(data: bytes, path: str, error: Exception) -> Iterator[Problem | MoreProblems]:
    """Yield all problems in a file; ``error`` is the first one."""
    reasons: Iterable[Mismatch] = ()
    if isinstance(error, msgspec.ValidationError | _DuplicateError):
        reasons = _all_mismatches(data)
    locate = JsonLocator(data.decode(errors="replace"))
    shown = 0
    try:
        for mismatch in reasons:
            if shown < bounds.PROBLEMS:
                shown += 1
                yield Problem.of(Location(path, locate.line(mismatch.path)), mismatch)
            else:
                yield MoreProblems(1)
    except UNDECODABLE as undecodable:
        error = undecodable
    if not shown:
        line, message = malformed(data, error)
        yield Problem(Location(path, line), message)


def _all_mismatches(data: bytes) -> Iterator[Mismatch]:
    """Yield the problems of the file, then those of its queries, including duplicate ones.

    Queries are decoded one by one, because as plain objects a file may need twenty times its size.
    """
    try:
        fields = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    except msgspec.ValidationError as error:
        yield from explained(data, error, BaselineFile)
        return
    queries = fields.get("queries", msgspec.Raw(b"null"))
    if not bytes(queries).startswith(b"["):
        yield from explained(data, msgspec.ValidationError(), BaselineFile)
        return
    head = msgspec.json.encode(fields | {"queries": msgspec.Raw(b"[]")})
    try:
        msgspec.json.decode(head, type=BaselineFile)
    except msgspec.ValidationError as error:
        yield from explained(head, error, BaselineFile)
    first: dict[str, int] = {}
    wrong = 0
    for index, raw in enumerate(msgspec.json.decode(queries, type=list[msgspec.Raw])):
        try:
            query_id = as_id(msgspec.json.decode(raw, type=BaselineQuery).id)
        except msgspec.ValidationError as error:
            reasons = (
                explained(bytes(raw), error, BaselineQuery) if wrong < bounds.PROBLEMS else [Mismatch((), "is faulty")]
            )
            for mismatch in reasons:
                yield Mismatch(("queries", index, *mismatch.path), mismatch.message)
            wrong += 1
            if wrong > bounds.FAULTY_ROWS:
                message = f"more than {bounds.FAULTY_ROWS:,} queries are faulty; those from here on were not read"
                yield Mismatch(("queries", index), message)
                return
            continue
        before = first.setdefault(query_id, index)
        if before != index:
            yield Mismatch(("queries", index, "id"), f"duplicate id {query_id!r}, first defined at queries[{before}]")
