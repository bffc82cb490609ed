"""The records that the stages hand to each other, from a golden query to the report.

All are frozen. What a file looks like on disk is said by the records beside its reader in ``ragcontract.inputs``;
:class:`Report` is at once what the renderers read and what ``report.json`` holds. Records that come by the hundred
thousand have ``gc=False``: nothing in them refers back, and the collector need not look at them over and over.
"""

from typing import Annotated, Literal, get_args

from msgspec import Meta, Struct

Status = Literal["pass", "fail", "waived", "none"]
QueryStatus = Literal["pass", "fail", "warn", "waived"]
Severity = Literal["error", "warn"]
Verdict = Literal["pass", "fail"]
Detail = Literal["failed", "changed", "all"]
Rule = Literal["must_rank_at_most", "must_include", "must_include_any", "forbidden_docs"]
GateKind = Literal["drop", "relative_drop", "minimum", "latency", "latency_increase", "relative_latency_increase"]
Ranks = dict[str, int]
Means = dict[str, float | None]

COMPARING: frozenset[GateKind] = frozenset(get_args(GateKind)) - {"minimum", "latency"}  # with a baseline
VERSION_FIELDS = ("embedding_model", "index_version", "chunking_version", "retriever_version")


class GoldenQuery(Struct, frozen=True, kw_only=True, gc=False):
    """A question and what must be retrieved for it, with defaults filled in and ids as text.

    ``location`` is where it stands, as ``golden.jsonl:17``. A query without relevant documents is unanswerable.
    """

    id: str
    query: str
    relevant_doc_ids: tuple[str, ...]
    location: str
    must_rank_at_most: int | None = None
    must_include_any: bool = False
    forbidden_doc_ids: tuple[str, ...] = ()
    weight: float = 1.0
    tags: tuple[str, ...] = ()
    relevance: dict[str, float] | None = None
    severity: Severity = "error"

    @property
    def answerable(self) -> bool:
        """Whether the query has relevant documents, and so a part in the means."""
        return bool(self.relevant_doc_ids)


class QueryScore(Struct, frozen=True, kw_only=True, gc=False):
    """What one run row comes to: all that is kept of it.

    ``ranks`` and ``forbidden_ranks`` hold the 1-based rank of each document that the golden query names, at any depth,
    in its order, and None for one that was not found. ``values`` has one number a metric, in the order of the metrics
    asked for, and is empty for an unanswerable query. ``repeats`` are the scores of each row where a query has several,
    all of which this one sums up.

    No ids are in it, so one score serves all queries that fared alike: there are few of them where there are many
    queries.
    """

    ranks: tuple[int | None, ...]
    forbidden_ranks: tuple[int | None, ...]
    values: tuple[float, ...]
    repeats: tuple["QueryScore", ...] = ()


class Latency(Struct, frozen=True, kw_only=True):
    """How long retrieving took, in milliseconds, over the ``rows`` that say so; percentiles by nearest rank."""

    rows: Annotated[int, Meta(ge=1)]
    p50_ms: Annotated[float, Meta(ge=0)]
    p95_ms: Annotated[float, Meta(ge=0)]
    max_ms: Annotated[float, Meta(ge=0)]


class SourceFile(Struct, frozen=True, kw_only=True):
    """A file that was read, and the SHA-256 of its bytes as they are on disk.

    Of a run that a cluster read, it is a path or a pattern as it was given, and the digest is empty.
    """

    path: str
    sha256: str


class Violation(Struct, frozen=True, kw_only=True, gc=False):
    """One broken rule of one query.

    ``limit`` is the rank that the rule is about (null where any rank breaks it) and ``doc_ids`` the documents it is
    about: those that were wanted and not found there, or found and forbidden. ``waived`` says why it does not count.
    """

    rule: Rule
    message: str
    expected: str
    found: str
    doc_ids: list[str]
    limit: int | None
    waived: str | None = None


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
    """The run: ``missing`` are golden queries without a row (scored 0), ``unknown`` rows without a golden query.

    Only the first 10,000 ``unknown`` ones are named, of a cluster's run 1,000; ``queries`` counts all.

    ``duplicate_rate`` is the share of the results in the top k, as exported, that repeat a document of their row.
    """

    files: list[SourceFile]
    queries: int
    versions: dict[str, list[str]]
    missing: list[str]
    unknown: list[str]
    duplicate_rate: float = 0.0


class Accepted(Struct, frozen=True, kw_only=True):
    """A broken contract that was made the baseline all the same. ``failed`` counts all the checks that failed."""

    reason: Annotated[str, Meta(min_length=1, description="Why, as it was given to --accept-regressions.")]
    at: Annotated[str, Meta(description="When, ISO 8601, UTC.")]
    by_version: Annotated[str | None, Meta(description="Which rag-contract judged it.")] = None
    failed: Annotated[int, Meta(ge=0)]
    failed_checks: Annotated[list[str], Meta(description="What was broken, gates first; the first hundred.")]


class BaselineInput(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The baseline, and how its questions stand to today's golden set.

    ``shared`` counts the queries that both sides have; ``new`` and ``changed`` queries have nothing to be compared
    with, ``gone`` ones are in the baseline only. A baseline that is itself a run has no ``created_at`` and no ``k``.
    ``age_days`` is null where its date is not known, ``too_old`` whether that is more than ``max_baseline_age``.
    ``accepted`` is left out where there is nothing in it.
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
    age_days: int | None
    too_old: bool
    accepted: Annotated[
        list[Accepted], Meta(description="Broken contracts that became the baseline, the latest last.")
    ] = []


class ConfigInput(Struct, frozen=True, kw_only=True):
    """The configuration file."""

    files: list[SourceFile]


class Inputs(Struct, frozen=True, kw_only=True):
    """What the verdict rests on."""

    golden: GoldenInput
    run: RunInput
    baseline: BaselineInput | None
    config: ConfigInput | None


class Noise(Struct, frozen=True, kw_only=True):
    """How sure a metric's change is: a paired comparison over the shared queries.

    ``interval`` is the 95 % interval of the change, ``p_value`` that of a one-sided sign-flip test for a drop; both are
    null where too few queries changed to say. ``wins`` and ``losses`` count queries that got better and worse.
    """

    interval: tuple[float, float] | None
    p_value: float | None
    wins: int
    ties: int
    losses: int


class MetricReport(Struct, frozen=True, kw_only=True):
    """One metric's aggregate. All numbers are from 0 to 1, and null where no query can be averaged.

    ``current`` is taken over all answerable queries; ``current_shared``, ``baseline`` and ``delta`` (current_shared
    minus baseline) over those that run and baseline share. ``noise`` is null where nothing moved.
    """

    label: str
    current: float | None
    current_shared: float | None
    baseline: float | None
    delta: float | None
    status: Status
    noise: Noise | None = None


class GateReport(Struct, frozen=True, kw_only=True):
    """One limit on an aggregate.

    ``limit`` and ``observed`` are fractions from 0 to 1 (10 % is 0.1): of the baseline's value for a relative kind, and
    points of the metric otherwise. For ``latency`` and ``latency_increase`` they are milliseconds. What is observed of
    a drop or an increase is below 0 where the metric rose or the latency fell; a relative increase may be above 1. The
    ``metric`` of a limit on latency is none of the report's, but as ``latency_p95_ms``.

    ``location`` is where the limit stands, as ``ragcontract.yml:4``; ``tag`` the tag whose queries it is about, null
    for all; ``p_value`` that of the drop where only significant ones count, null where too few queries changed to say.
    """

    id: str
    location: str
    metric: str
    kind: GateKind
    limit: float
    observed: float
    status: Literal["pass", "fail", "waived"]
    message: str
    tag: str | None = None
    waived: str | None = None
    p_value: float | None = None


class QueryReport(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One golden query, which stands in ``location`` (``golden.jsonl:17``).

    ``ranks`` names every relevant document, with null for one that was not retrieved. Violations fail it, unless all
    are waived, or it is only to warn. Where it is ``repeated``, the run or the baseline has several rows of it: the
    metrics are means, and the ranks the worst of its rows (the best of forbidden documents). It is left out otherwise.
    """

    id: str
    location: str
    query: str
    tags: list[str]
    weight: float
    status: QueryStatus
    metrics: dict[str, float | None]
    baseline_metrics: dict[str, float | None] | None
    ranks: dict[str, int | None]
    baseline_ranks: dict[str, int | None] | None
    forbidden_ranks: Ranks
    baseline_forbidden_ranks: Ranks | None
    violations: list[Violation]
    repeated: bool = False


class FailedCheck(Struct, frozen=True, kw_only=True, gc=False):
    """One reason for the verdict: a gate, or a rule of a query."""

    kind: Literal["gate", "rule"]
    id: str
    query_id: str | None
    message: str


class TagReport(Struct, frozen=True, kw_only=True):
    """The aggregates over the queries with one tag; ``metrics_shared`` and ``baseline_metrics`` over shared ones.

    ``p_values`` are those of drops at the largest cut-off, adjusted over all tags by Benjamini and Hochberg (1995);
    a metric that did not move, or where too few queries changed to say, has none.
    """

    queries: int
    metrics: dict[str, float | None]
    metrics_shared: dict[str, float | None] | None
    baseline_metrics: dict[str, float | None] | None
    p_values: dict[str, float] = {}


class LatencyReport(Struct, frozen=True, kw_only=True):
    """The latencies of the run, and of the baseline where it has any."""

    current: Latency
    baseline: Latency | None


class Spread(Struct, frozen=True, kw_only=True):
    """How far the run's mean differs from export to export: the sample standard deviation, the least and the most."""

    deviation: float
    lowest: float
    highest: float


class RepeatsReport(Struct, frozen=True, kw_only=True):
    """Several rows a query: how many the answerable ones have, and each metric's spread over ``fewest`` exports.

    ``metrics`` is empty where a query has one row only, and where rows stand in no order, as on a cluster.
    """

    fewest: int
    most: int
    metrics: dict[str, Spread]


class Report(Struct, frozen=True, kw_only=True):
    """The outcome of a check: ``report.json``, version 1.

    ``detail`` says which ``queries`` are listed: those that broke a rule (``failed``), also those whose ranks are not
    the baseline's (``changed``), or ``all``.
    """

    schema_version: Literal[1] = 1
    tool: Tool
    verdict: Verdict
    k: Annotated[list[Annotated[int, Meta(ge=1)]], Meta(min_length=1)]
    created_at: str
    inputs: Inputs
    metrics: dict[str, MetricReport]
    gates: list[GateReport]
    detail: Detail = "all"
    queries: list[QueryReport]
    failed_checks: list[FailedCheck]
    tags: dict[str, TagReport]
    warnings: list[str]
    latency: LatencyReport | None = None
    repeats: RepeatsReport | None = None
