"""The report: what every format is made from, and what ``report.json`` holds. ``rag-contract schema report`` prints it.

The records are public and additive within a version. Those that come by the hundred thousand have ``gc=False``: nothing
in them refers back, and the collector need not look at them over and over.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from ragcontract.core.finding import Finding
from ragcontract.core.metric import Direction, Scale
from ragcontract.core.run import Latency, SourceFile
from ragcontract.judging.decision import QueryStatus, Verdict
from ragcontract.judging.gates import GateReport, Status
from ragcontract.runs.stored import Accepted, Tool
from ragcontract.statistics.repeats import RepeatsReport
from ragcontract.statistics.significance import Noise

Detail = Literal["failed", "changed", "all"]
SCHEMA_VERSION: Literal[1] = 1


Count: TypeAlias = Annotated[int, Meta(ge=0)]


class Provenance(Struct, frozen=True, kw_only=True):
    """Where a report comes from, for histories; known in the action.

    ``contract`` is the name of the contract, where it has one.
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

    Only the first 10,000 ``unknown`` ones are named, of a cluster's run 1,000; ``queries`` counts all.

    ``duplicate_rate`` is the share of the results in the top k, as exported, that repeat a document of their row.
    """

    files: list[SourceFile]
    queries: Count
    versions: dict[str, list[str]]
    missing: list[str]
    unknown: list[str]
    duplicate_rate: float = 0.0


class BaselineInput(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The baseline, and how its questions stand to today's golden set.

    ``shared`` counts the queries that both sides have; ``new`` and ``changed`` queries have nothing to be compared
    with, ``gone`` ones are in the baseline only. A baseline that is itself a run has no ``created_at`` and no ``k``.
    ``age_days`` is null where its date is not known, ``too_old`` whether that is more than ``max_baseline_age``.
    ``accepted`` is left out where there is nothing in it.
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
    """What the verdict rests on."""

    golden: GoldenInput
    run: RunInput
    baseline: BaselineInput | None
    config: ConfigInput | None


class MetricReport(Struct, frozen=True, kw_only=True):
    """One metric's aggregate. All numbers are null where no query can be averaged.

    ``current`` is taken over all queries that have the metric; ``current_shared``, ``baseline`` and ``delta``
    (current_shared minus baseline) over those that run and baseline share. ``noise`` is null where nothing changed.
    ``k`` is the metric's cut-off, null where it has none.
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

    ``limit`` is the rank that the rule is about (null where any rank violates it) and ``doc_ids`` the documents it is
    about: those that were wanted and not found there, or found and forbidden. ``waived`` says why it does not count.
    """

    rule: str
    message: str
    expected: str
    found: str
    doc_ids: list[str]
    limit: int | None
    waived: str | None = None


class QueryReport(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One golden query, in ``location`` (``golden.jsonl:17``).

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
    forbidden_ranks: dict[str, int]
    baseline_forbidden_ranks: dict[str, int] | None
    violations: list[ViolationReport]
    repeated: bool = False


class FailedCheck(Struct, frozen=True, kw_only=True, gc=False):
    """One reason for the verdict: a gate, or a rule of a query; ``message`` is the sentence of its finding."""

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


class Report(Struct, frozen=True, kw_only=True):
    """The outcome of a check: ``report.json``, version 1.

    ``detail`` says which ``queries`` are listed: those that violate a rule (``failed``), also those whose ranks are not
    the baseline's (``changed``), or ``all``. ``findings`` are what people read: each cause once, in its words.
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


class ErrorReport(Struct, frozen=True, kw_only=True):
    """Input that cannot be judged: ``report.json`` with the verdict ``error``.

    ``more_problems`` counts those that are not named; ``warnings`` may explain some.
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    tool: Tool
    verdict: Literal["error"] = "error"
    created_at: str
    problems: list[str]
    more_problems: Count = 0
    warnings: list[str] = []
    source: Provenance | None = None
