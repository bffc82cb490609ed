"""The records of the report, from which every format is rendered. ``rag-contract schema report`` prints their schema.

The records are public; within a version, fields are only added. Records that can occur by the hundred thousand have
``gc=False``, which is safe because they contain no cycles, and saves the garbage collector the time.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from ragcontract.core.finding import Finding
from ragcontract.core.metric import Direction, Scale
from ragcontract.core.run import Latency, SourceFile
from ragcontract.judging.decision import Verdict
from ragcontract.judging.gates import GateReport, Status
from ragcontract.judging.policy import QueryStatus
from ragcontract.runs.stored import Accepted, Tool
from ragcontract.statistics.repeats import RepeatsReport
from ragcontract.statistics.significance import Noise

Detail = Literal["failed", "changed", "all"]
SCHEMA_VERSION: Literal[1] = 1


Count = Annotated[int, Meta(ge=0)]
SummaryLine = Annotated[str, Meta(description="The contract, its verdict and the reason, as one line of plain text.")]


class Provenance(Struct, frozen=True, kw_only=True):
    """The origin of a report; known only in the action.

    ``contract`` is the name of the contract, if it has one.
    """

    repository: str | None = None
    commit: str | None = None
    branch: str | None = None
    pull_request: int | None = None
    run_url: str | None = None
    contract: str | None = None


class GoldenInput(Struct, frozen=True, kw_only=True):
    """The golden set. ``answerable`` counts the queries that have relevant documents."""

    files: list[SourceFile]
    queries: Count
    answerable: Count


class RunInput(Struct, frozen=True, kw_only=True):
    """The run: ``missing`` are golden queries without a row (scored 0), ``unknown`` rows without a golden query.

    At most 10,000 ``unknown`` ids are listed; ``queries`` counts all.

    ``duplicate_rate`` is the share of results in the exported top k that repeat a document of their row.
    """

    files: list[SourceFile]
    queries: Count
    versions: dict[str, list[str]]
    missing: list[str]
    unknown: list[str]
    duplicate_rate: float = 0.0


class BaselineInput(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The baseline, and how its queries differ from the current golden set.

    ``shared`` counts the queries that both sides have. ``new`` and ``changed`` queries cannot be compared; ``gone``
    ones are only in the baseline. A baseline that is itself a run has no ``created_at`` and no ``k``. ``age_days`` is
    null if the date is unknown; ``too_old`` says whether the age exceeds ``max_baseline_age``. ``accepted`` is omitted
    if it is empty.
    """

    files: list[SourceFile]
    queries: Count
    versions: dict[str, list[str]]
    created_at: str | None
    k: list[int] | None
    shared: Count
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
    """The inputs of the check."""

    golden: GoldenInput
    run: RunInput
    baseline: BaselineInput | None
    config: ConfigInput | None


class MetricReport(Struct, frozen=True, kw_only=True):
    """The mean of one metric. All numbers are null if there is no query to average over.

    ``current`` is over all queries that have the metric; ``current_shared``, ``baseline`` and ``delta`` (current_shared
    minus baseline) are over those that run and baseline share. ``noise`` is null if nothing changed. ``k`` is the
    cut-off of the metric, null if it has none.
    """

    label: str
    current: float | None
    current_shared: float | None
    baseline: float | None
    delta: float | None
    status: Status
    noise: Noise | None = None
    k: int | None = None
    better: Direction = "higher"
    scale: Scale = Scale()


class ViolationReport(Struct, frozen=True, kw_only=True, gc=False):
    """One violated rule of one query.

    ``limit`` is the rank down to which the rule applies, null if it applies at any rank. ``doc_ids`` are the relevant
    documents that are missing there, or the forbidden documents that were found. ``waived`` is the reason why the
    violation does not count.
    """

    rule: str
    message: str
    expected: str
    found: str
    doc_ids: list[str]
    limit: int | None
    waived: str | None = None


class RetrievedReport(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One result of a broken query, with the retriever's ``score`` and the ``chunk_id`` if the run has them.

    ``contract`` says what the contract wants of the document; it is omitted for one that the golden query does not
    name.
    """

    doc_id: str
    score: float | None = None
    chunk_id: str | None = None
    contract: Literal["relevant", "forbidden"] | None = None


class QueryReport(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One golden query, defined at ``location`` (``golden.jsonl:17``).

    ``ranks`` has every relevant document, with null if it was not retrieved. Violations fail the query unless all of
    them are waived or its severity is warn. ``repeated`` means that the run or the baseline has several rows for it:
    metrics are means over the rows, ranks are the worst (of forbidden documents, the best). It is omitted if false.

    ``retrieved`` and ``baseline_retrieved`` are the top k of a broken query (at most 20 results), best first: of
    several rows the first that breaks a rule, and the first of the baseline. They are listed for the first 1,000 broken
    queries of a run, and omitted for all others. A stored baseline has no scores and no chunks.
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
    forbidden_ranks: dict[str, int]
    baseline_forbidden_ranks: dict[str, int] | None
    violations: list[ViolationReport]
    repeated: bool = False
    retrieved: list[RetrievedReport] | None = None
    baseline_retrieved: list[RetrievedReport] | None = None


class FailedCheck(Struct, frozen=True, kw_only=True, gc=False):
    """One reason for the verdict: a gate, or a rule of a query; ``message`` is the sentence of its finding."""

    kind: Literal["gate", "rule"]
    id: str
    query_id: str | None
    message: str


class TagReport(Struct, frozen=True, kw_only=True):
    """The means over the queries with one tag; ``metrics_shared`` and ``baseline_metrics`` are over shared queries.

    ``p_values`` are for drops at the largest cut-off, adjusted over all tags by the method of Benjamini and Hochberg
    (1995); a metric that did not drop, or for which too few queries changed, has none.
    """

    queries: int
    metrics: dict[str, float | None]
    metrics_shared: dict[str, float | None] | None
    baseline_metrics: dict[str, float | None] | None
    p_values: dict[str, float] = {}


class LatencyReport(Struct, frozen=True, kw_only=True):
    """The latencies of the run, and of the baseline if it has any."""

    current: Latency
    baseline: Latency | None


class Report(Struct, frozen=True, kw_only=True):
    """The outcome of a check: ``report.json``, version 1.

    ``detail`` says which ``queries`` are listed: those that violate a rule (``failed``), also those whose ranks differ
    from the baseline (``changed``), or ``all``. ``findings`` describe each broken rule or gate once, for people.
    """

    schema_version: Literal[1] = SCHEMA_VERSION
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
    findings: list[Finding] = []
    source: Provenance | None = None
    summary_line: SummaryLine = field(default="", name="summary")


class ErrorReport(Struct, frozen=True, kw_only=True):
    """Input that cannot be judged: ``report.json`` with the verdict ``error``.

    ``more_problems`` is the number of problems that are not listed; ``warnings`` may explain some problems.
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    tool: Tool
    verdict: Literal["error"] = "error"
    created_at: str
    problems: list[str]
    more_problems: Count = 0
    warnings: list[str] = []
    source: Provenance | None = None
    summary_line: SummaryLine = field(default="", name="summary")
