"""The records that the stages hand to each other, from a golden query to the report.

All are frozen. What a file looks like on disk is said by the records beside its reader in ``ragcontract.inputs``;
:class:`Report` is at once what the renderers read and what ``report.json`` holds. Records that come by the hundred
thousand have ``gc=False``: nothing in them refers back, and the collector need not look at them over and over.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

Status = Literal["pass", "fail", "none"]
Verdict = Literal["pass", "fail"]
Rule = Literal["must_rank_at_most", "must_include", "must_include_any", "forbidden_docs"]
Ranks = dict[str, int]
Means = dict[str, float | None]

VERSION_FIELDS = ("embedding_model", "index_version", "chunking_version", "retriever_version")


class GoldenQuery(Struct, frozen=True, kw_only=True, gc=False):
    """A question and what must be retrieved for it, with defaults filled in and ids as text.

    ``place`` is where it stands, as ``golden.jsonl:17``. A query without relevant documents is unanswerable.
    """

    id: str
    query: str
    relevant_doc_ids: tuple[str, ...]
    place: str
    must_rank_at_most: int | None = None
    must_include_any: bool = False
    forbidden_doc_ids: tuple[str, ...] = ()
    weight: float = 1.0
    tags: tuple[str, ...] = ()
    relevance: dict[str, float] | None = None

    @property
    def answerable(self) -> bool:
        """Whether the query has relevant documents, and so a part in the means."""
        return bool(self.relevant_doc_ids)


class QueryScore(Struct, frozen=True, kw_only=True, gc=False):
    """What one run row comes to: all that is kept of it.

    ``ranks`` and ``forbidden_ranks`` hold the 1-based ranks of the documents that were found, at any depth;
    ``values`` has one number a metric, in the order of the metrics asked for, and is empty for an unanswerable query.
    """

    ranks: Ranks
    forbidden_ranks: Ranks
    values: tuple[float, ...]


class SourceFile(Struct, frozen=True, kw_only=True):
    """A file that was read, and the SHA-256 of its bytes as they are on disk."""

    path: str
    sha256: str


class Violation(Struct, frozen=True, kw_only=True, gc=False):
    """One broken rule of one query.

    ``limit`` is the rank that the rule is about (null where any rank breaks it) and ``doc_ids`` the documents it is
    about: those that were wanted and not found there, or found and forbidden.
    """

    rule: Rule
    message: str
    expected: str
    found: str
    doc_ids: list[str]
    limit: int | None


class Tool(Struct, frozen=True, kw_only=True):
    """What made the report."""

    name: str
    version: str


class GoldenInput(Struct, frozen=True, kw_only=True):
    """The golden set. ``answerable`` counts the queries that have relevant documents."""

    files: list[SourceFile]
    queries: int
    answerable: int


class RunInput(Struct, frozen=True, kw_only=True):
    """The run: ``missing`` are golden queries without a row (scored 0), ``unknown`` rows without a golden query."""

    files: list[SourceFile]
    queries: int
    versions: dict[str, list[str]]
    missing: list[str]
    unknown: list[str]


class BaselineInput(Struct, frozen=True, kw_only=True):
    """The baseline, and how its questions stand to today's golden set.

    ``shared`` counts the queries that both sides have; ``new`` and ``changed`` queries have nothing to be compared
    with, ``gone`` ones are in the baseline only. A baseline that is itself a run has no ``created_at`` and no ``k``.
    """

    files: list[SourceFile]
    queries: int
    versions: dict[str, list[str]]
    created_at: str | None
    k: list[int] | None
    shared: int
    new: list[str]
    changed: list[str]
    gone: list[str]


class ConfigInput(Struct, frozen=True, kw_only=True):
    """The configuration file."""

    files: list[SourceFile]


class Inputs(Struct, frozen=True, kw_only=True):
    """What the verdict rests on."""

    golden: GoldenInput
    run: RunInput
    baseline: BaselineInput | None
    config: ConfigInput | None


class MetricReport(Struct, frozen=True, kw_only=True):
    """One metric's aggregate. All numbers are from 0 to 1, and null where no query can be averaged.

    ``current`` is taken over all answerable queries; ``current_shared``, ``baseline`` and ``delta`` (current_shared
    minus baseline) over those that run and baseline share.
    """

    label: str
    current: float | None
    current_shared: float | None
    baseline: float | None
    delta: float | None
    status: Status


class GateReport(Struct, frozen=True, kw_only=True):
    """One limit on an aggregate; for a ``relative_drop``, limit and observed are parts of the baseline's value.

    ``place`` is where the limit stands, as ``ragcontract.yml:4``.
    """

    id: str
    place: str
    metric: str
    kind: Literal["drop", "relative_drop", "minimum"]
    limit: float
    observed: float
    status: Literal["pass", "fail"]
    message: str


class QueryReport(Struct, frozen=True, kw_only=True, gc=False):
    """One golden query, which stands in ``place`` (``golden.jsonl:17``).

    ``ranks`` names every relevant document, with null for one that was not retrieved.
    """

    id: str
    place: str
    query: str
    tags: list[str]
    weight: float
    status: Literal["pass", "fail"]
    metrics: dict[str, float | None]
    baseline_metrics: dict[str, float | None] | None
    ranks: dict[str, int | None]
    baseline_ranks: dict[str, int | None] | None
    forbidden_ranks: Ranks
    baseline_forbidden_ranks: Ranks | None
    violations: list[Violation]


class FailedCheck(Struct, frozen=True, kw_only=True, gc=False):
    """One reason for the verdict: a gate, or a rule of a query."""

    kind: Literal["gate", "rule"]
    id: str
    query_id: str | None
    message: str


class TagReport(Struct, frozen=True, kw_only=True):
    """The aggregates over the queries with one tag; ``metrics_shared`` and ``baseline_metrics`` over shared ones."""

    queries: int
    metrics: dict[str, float | None]
    metrics_shared: dict[str, float | None] | None
    baseline_metrics: dict[str, float | None] | None


class Report(Struct, frozen=True, kw_only=True):
    """The outcome of a check: ``report.json``, version 1."""

    schema_version: Literal[1] = 1
    tool: Tool
    verdict: Verdict
    k: Annotated[list[Annotated[int, Meta(ge=1)]], Meta(min_length=1)]
    created_at: str
    inputs: Inputs
    metrics: dict[str, MetricReport]
    gates: list[GateReport]
    queries: list[QueryReport]
    failed_checks: list[FailedCheck]
    tags: dict[str, TagReport]
    warnings: list[str]
