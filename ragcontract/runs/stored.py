"""``baseline.json``: a run that was known to be good, stored with its scores; or a run that serves as one."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from ragcontract.core.ids import Id, Rank, as_id, as_ids
from ragcontract.files.jsonl import UNDECODABLE
from ragcontract.files.locate import JsonLocator
from ragcontract.files.malformed import malformed
from ragcontract.files.opening import READ_ERRORS, Progress, no_progress, read_problem
from ragcontract.files.problems import Diagnostics
from ragcontract.files.rows import PARQUET
from ragcontract.files.schema import Mismatch, mismatches
from ragcontract.model import Accepted, GoldenQuery, Latency, Means, SourceFile, Tool
from ragcontract.runs.run_file import RunRows
from ragcontract.runs.stored_source import CHANGED, Source, open_source

FORMAT_VERSION = 1
RUN_SUFFIXES = (".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz", PARQUET)


class ComparedQuery(Struct, frozen=True, kw_only=True, gc=False):
    """What a run is compared with: the question, and every exported document id."""

    id: Id
    query: str
    doc_ids: Annotated[list[Id], Meta(description="Everything the run row returned, best first.")]
    repeats: Annotated[list[list[Id]], Meta(description="The same of further rows, where there were several.")] = []


class BaselineQuery(ComparedQuery, frozen=True, kw_only=True, gc=False):
    """A query of the baseline, with its ranks and metrics when it was made."""

    ranks: dict[str, Rank | None]
    metrics: Means


class BaselineHead(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All but the queries."""

    format_version: int
    created_at: Annotated[str, Meta(description="When it was made, ISO 8601, UTC.")]
    created_by: Tool
    golden_sha256: Annotated[
        str, Meta(description="Fingerprint of the golden queries, whatever their order and files.")
    ]
    k: Annotated[list[Rank], Meta(min_length=1)]
    versions: Annotated[dict[str, list[str]], Meta(description="Embedding model, index, chunking, retriever.")]
    metrics: Means
    tags: dict[str, Means]
    accepted: Annotated[
        list[Accepted], Meta(description="Broken contracts that became the baseline, the latest last.")
    ] = []
    latency: Annotated[Latency | None, Meta(description="How long retrieving took, where the rows said.")] = None


class BaselineFile(BaselineHead, frozen=True, kw_only=True, omit_defaults=True):
    """The whole file. Only ``queries`` are compared with: they are scored again under today's golden file and k."""

    queries: list[BaselineQuery]


class StoredBaseline:
    """A baseline file as pairs of a query id and its document ids.

    ``files`` and ``questions`` are complete once iterated; the latter are those of queries that were asked with other
    words than the golden ones.
    """

    def __init__(
        self,
        path: str,
        source: Source[ComparedQuery],
        diagnostics: Diagnostics,
        golden: Mapping[str, GoldenQuery] | None = None,
    ) -> None:
        """Take the file; raises one of ``UNDECODABLE`` where there is more wrong with it than with its queries."""
        head = msgspec.json.decode(source.head, type=BaselineHead)
        self.created_at: str | None = head.created_at
        self.k: list[int] | None = head.k
        self.versions = head.versions
        self.accepted = head.accepted
        self.latency = head.latency
        self.unmeasured = 0
        self.questions: dict[str, str] = {}
        self._path = path
        self._source = source
        self._diagnostics = diagnostics
        self._golden = golden or {}

    @property
    def files(self) -> list[SourceFile]:
        """The file and its digest."""
        return self._source.files

    def whole(self) -> BaselineFile | None:
        """Return the whole file, decoded, once its queries were read; None if it cannot be, which is told."""
        try:
            return msgspec.json.decode(self._source.whole(), type=BaselineFile)
        except UNDECODABLE:
            self._refuse()
        except READ_ERRORS as error:
            self._diagnostics.problem(self._path, read_problem(error))
        return None

    def __iter__(self) -> Iterator[tuple[str, list[str]]]:
        """Yield ``(query_id, doc_ids)``; a query that is not as it should be ends it, and is told with all others."""
        golden = self._golden
        seen: set[str] = set()
        try:
            for query in self._source:
                query_id = query.id if type(query.id) is str else str(query.id)
                if query_id in seen:
                    self._refuse()
                    return
                if asked := golden.get(query_id):
                    query_id = asked.id  # the file's own copy need not be held
                seen.add(query_id)
                if not asked or asked.query != query.query:
                    self.questions[query_id] = query.query
                yield query_id, as_ids(query.doc_ids)
                for doc_ids in query.repeats:
                    yield query_id, as_ids(doc_ids)
        except UNDECODABLE:
            self._refuse()
        except READ_ERRORS as error:
            self._diagnostics.problem(self._path, read_problem(error))

    def _refuse(self) -> None:
        """Tell all that is wrong with the queries, some of which are not as they should be or stand there twice."""
        path, diagnostics = self._path, self._diagnostics
        known = diagnostics.problems
        try:
            data = self._source.whole()
        except READ_ERRORS as error:
            diagnostics.problem(path, read_problem(error))
            return
        try:
            file = msgspec.json.decode(data, type=BaselineFile)
        except UNDECODABLE as error:
            _explain(data, path, error, diagnostics)
            return
        locate = JsonLocator(data.decode())
        first: dict[str, int] = {}
        for index, query_id in enumerate(as_id(query.id) for query in file.queries):
            before = first.setdefault(query_id, index)
            if before == index:
                continue
            if diagnostics.full:
                diagnostics.count_one()
                continue
            line, first_line = (locate.line(("queries", which, "id")) for which in (index, before))
            message = f"{query_id!r} stands here again; it is first in line {first_line}"
            diagnostics.problem(f"{path}:{line}: queries[{index}].id", message)
        if diagnostics.problems == known:
            diagnostics.problem(path, CHANGED)


def read_baseline(
    paths: Sequence[str],
    diagnostics: Diagnostics,
    progress: Progress = no_progress,
    *,
    golden: Mapping[str, GoldenQuery] | None = None,
    repeats: bool = False,
) -> StoredBaseline | RunRows | None:
    """Open a baseline: JSON lines and Parquet are a run, by their names; anything else must be one baseline file.

    None if it cannot be read, which the diagnostics then know. Of a run, only the ``golden`` queries' latencies count.
    """
    if all(path.lower().endswith(RUN_SUFFIXES) for path in paths):
        return RunRows(paths, diagnostics, progress, golden=golden, repeats=repeats)
    path = paths[0]
    if len(paths) > 1:
        diagnostics.problem(path, "is one of several baselines; give one baseline.json, or run files (.jsonl)")
        return None
    try:
        source = open_source(path, ComparedQuery, progress)
    except READ_ERRORS as error:
        diagnostics.problem(path, read_problem(error))
        return None
    if not source.head.strip():
        diagnostics.problem(path, "is empty; make it with `rag-contract baseline`")
        return None
    try:
        header = msgspec.json.decode(source.head, type=_Header)
        if header.format_version == FORMAT_VERSION:
            return StoredBaseline(path, source, diagnostics, golden)
        diagnostics.problem(path, _unknown_format(header))
    except UNDECODABLE as error:
        _explain(source.whole(), path, error, diagnostics)
    return None


class _Header(msgspec.Struct):
    format_version: int | None = None
    per_query: msgspec.Raw = msgspec.Raw()


def _unknown_format(header: _Header) -> str:
    if bytes(header.per_query):
        return "is a baseline of rag-contract 0.1.0; make it anew with `rag-contract baseline` from the good run"
    if header.format_version is None:
        return (
            "is no baseline: it has no format_version; make one with `rag-contract baseline`. "
            f"A run can serve as one if its name ends in {RUN_SUFFIXES[0]}"
        )
    return (
        f"has format version {header.format_version}, and this rag-contract reads version {FORMAT_VERSION}; "
        "make it anew with `rag-contract baseline`, or use the version that made it"
    )


def _explain(data: bytes, path: str, error: Exception, diagnostics: Diagnostics) -> None:
    found: Iterable[Mismatch] = ()
    if isinstance(error, msgspec.ValidationError):
        try:
            found = _mismatches(msgspec.json.decode(data), diagnostics)
        except UNDECODABLE as undecodable:
            error = undecodable
    told = False
    locate = JsonLocator(data.decode(errors="replace"))
    for mismatch in found:
        told = True
        if diagnostics.full:
            diagnostics.count_one()
        else:
            diagnostics.mismatch(f"{path}:{locate.line(mismatch.path)}", mismatch)
    if not told:
        line, message = malformed(data, error)
        diagnostics.problem(f"{path}:{line}", message)


def _mismatches(value: Any, diagnostics: Diagnostics) -> Iterator[Mismatch]:
    """Yield what is wrong with the file, then with its queries: those by the thousand are only counted in the end."""
    queries = value.get("queries") if isinstance(value, dict) else None
    if not isinstance(queries, list):
        yield from mismatches(value, BaselineFile)
        return
    yield from mismatches(value | {"queries": []}, BaselineFile)
    for index, query in enumerate(queries):
        try:
            msgspec.convert(query, BaselineQuery)
        except msgspec.ValidationError as error:
            found = [] if diagnostics.full else mismatches(query, BaselineQuery)
            for mismatch in found or [Mismatch((), str(error))]:
                yield Mismatch(("queries", index, *mismatch.path), mismatch.message)
