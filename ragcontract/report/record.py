"""The records of the report, from which every format is rendered.

``rag-contract schema report`` prints their schema, with the descriptions of the fields. The records are public; within
a version, fields are only added.

Records that can occur by the hundred thousand have ``gc=False``, which is safe because they contain no cycles, and
saves the garbage collector the time.
"""

from heapq import nsmallest
from operator import itemgetter
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from ragcontract.core import bounds
from ragcontract.core.finding import Finding, Said
from ragcontract.core.metric import Direction, Scale
from ragcontract.core.phrase import Phrase
from ragcontract.core.run import Latency
from ragcontract.core.safe_text import encodable
from ragcontract.decision.causes import Cause
from ragcontract.decision.decide import Verdict
from ragcontract.decision.evaluated import Evaluation
from ragcontract.decision.gate_report import GateReport, Status
from ragcontract.decision.policy import QueryStatus
from ragcontract.report.history_report import HistoryReport
from ragcontract.report.parts import Count, Inputs, JudgeReport, LabelsReport, ModesReport, PassRateReport, TierReport
from ragcontract.runs.baseline_file import Tool
from ragcontract.statistics.means import RepeatsReport
from ragcontract.statistics.significance import Noise

Detail = Literal["failed", "changed", "all"]
SCHEMA_VERSION: Literal[1] = 1

SummaryLine = Annotated[str, Meta(description="The contract, its verdict and the reason, as one line of plain text.")]


class Provenance(Struct, frozen=True, kw_only=True):
    """The origin of a report, known in the action."""

    repository: str | None = None
    commit: str | None = None
    branch: str | None = None
    pull_request: int | None = None
    run_url: str | None = None
    contract: Annotated[
        str | None, Meta(description="The name of the contract, if it has one: the option --name, or the input name.")
    ] = None


class MetricReport(Struct, frozen=True, kw_only=True):
    """The mean of one metric. All numbers are null if there is no query to average over."""

    label: str
    current: Annotated[float | None, Meta(description="Over all queries that have the metric.")]
    current_shared: Annotated[float | None, Meta(description="Over the queries that the run and the baseline share.")]
    baseline: Annotated[float | None, Meta(description="The baseline's mean over the shared queries.")]
    delta: Annotated[float | None, Meta(description="current_shared minus baseline.")]
    status: Status
    noise: Annotated[
        Noise | None,
        Meta(
            description="How sure the change is; null if nothing changed, and if the change has no limit, unless "
            "fail_on.mode is significant or noninferiority, or an HTML report is written."
        ),
    ] = None
    k: Annotated[int | None, Meta(description="The cut-off of the metric; null if it has none.")] = None
    better: Direction = "higher"
    scale: Scale = Scale()
    if_relevant: Annotated[
        float | UnsetType,
        Meta(
            description="The highest value that current could have if documents that nobody has judged were relevant; "
            "omitted if all are judged."
        ),
    ] = UNSET
    diagnostic: Annotated[
        bool | UnsetType,
        Meta(
            description="True for a metric that describes the labels or the change, not how good the application is; "
            "omitted for the others."
        ),
    ] = UNSET


class ViolationReport(Struct, frozen=True, kw_only=True, gc=False):
    """One violated rule of one query."""

    rule: str
    message: str
    expected: str
    found: str
    doc_ids: Annotated[
        list[str],
        Meta(description="The relevant documents that are missing, or the forbidden documents that were found."),
    ]
    limit: Annotated[
        int | None, Meta(description="The rank down to which the rule applies; null if it applies at any rank.")
    ]
    waived: Annotated[str | None, Meta(description="The reason of a waiver.")] = None
    in_baseline: Annotated[
        bool, Meta(description="The baseline violates the rule already, for the same documents.")
    ] = False
    known: Annotated[bool, Meta(description="The violation does not count, because the baseline has it.")] = False
    skipped: Annotated[str | UnsetType, Meta(description="Why the query's tier is skipped; omitted if it is not.")] = (
        UNSET
    )


class RetrievedReport(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One result of a broken query, with the retriever's score and the chunk if the run has them."""

    doc_id: str
    score: float | None = None
    chunk_id: str | None = None
    contract: Annotated[
        Literal["relevant", "forbidden"] | None,
        Meta(description="What the golden query says about the document; omitted if it does not name it."),
    ] = None


class AnswerReport(Struct, frozen=True, kw_only=True, gc=False):
    """The rules of a query that are not about ranks: those about its answer, its tool calls, its scores."""

    status: Annotated[QueryStatus, Meta(description="The status by these rules alone.")]
    violations: Annotated[
        list[str], Meta(description="The rules that are violated, including those that are waived or known.")
    ] = []


Retrieved = Annotated[
    list[RetrievedReport] | None,
    Meta(
        description="The top k of a broken query (at most 20 results), best first. Of several rows, it is the first "
        "that breaks a rule, or the first of the baseline. Omitted after the first 1,000 broken queries. A stored "
        "baseline has no scores and no chunks."
    ),
]


class QueryReport(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One golden query.

    Violations fail the query unless all of them are waived, known or skipped, its severity is warn, or only the pass
    rate decides (``counted``).
    """

    id: str
    location: Annotated[str, Meta(description="Where it is defined, as golden.jsonl:17.")]
    query: str
    tags: list[str]
    weight: float
    status: QueryStatus
    metrics: dict[str, float | None]
    baseline_metrics: dict[str, float | None] | None
    ranks: Annotated[
        dict[str, int | None], Meta(description="Of every relevant document; null if it was not retrieved.")
    ]
    baseline_ranks: dict[str, int | None] | None
    forbidden_ranks: dict[str, int]
    baseline_forbidden_ranks: dict[str, int] | None
    violations: list[ViolationReport]
    in_baseline: Annotated[
        bool, Meta(description="The baseline has all violations already, except for waived ones.")
    ] = False
    repeated: Annotated[
        bool,
        Meta(
            description="The run or the baseline has several rows for the query: metrics are means over the rows, "
            "ranks are the worst (of forbidden documents, the best)."
        ),
    ] = False
    retrieved: Retrieved = None
    baseline_retrieved: Retrieved = None
    answer: Annotated[AnswerReport | None, Meta(description="Omitted for a query whose rules are all about ranks.")] = (
        None
    )
    said: Annotated[
        Said | None, Meta(description="What the row of a broken query says, if the contract is about answers.")
    ] = None
    baseline_said: Annotated[
        Said | None, Meta(description="The same of the baseline's row; a stored baseline has no texts.")
    ] = None


class FailedCheck(Struct, frozen=True, kw_only=True, gc=False):
    """One reason for the verdict: a gate, or a rule of a query."""

    kind: Literal["gate", "rule"]
    id: str
    query_id: str | None
    message: Annotated[str, Meta(description="The sentence of its finding.")]
    in_baseline: Annotated[bool, Meta(description="The baseline violates the rule already.")] = False


class BrokenQueries(Struct, frozen=True, kw_only=True):
    """How many golden queries are broken: those that fail, and those that only the baseline excuses.

    Queries that are waived, or whose severity is warn, are not among them.
    """

    queries: Count
    new: Annotated[Count, Meta(description="Not broken in the baseline; without a baseline, all of them.")]
    in_baseline: Annotated[Count, Meta(description="Already broken in the baseline, for the same documents.")]
    fixed: Annotated[Count, Meta(description="Queries that only the baseline breaks, which are not among them.")] = 0
    answers: Annotated[
        Count | UnsetType,
        Meta(description="How many of them are broken by rules about answers, if the contract has any."),
    ] = UNSET


class TagReport(Struct, frozen=True, kw_only=True):
    """The means over the queries with one tag."""

    queries: int
    metrics: dict[str, float | None]
    metrics_shared: Annotated[
        dict[str, float | None] | None,
        Meta(description="Over the queries that the baseline has as well; null without a baseline."),
    ]
    baseline_metrics: Annotated[
        dict[str, float | None] | None, Meta(description="The baseline's means over the same queries.")
    ]
    p_values: Annotated[
        dict[str, float],
        Meta(
            description="For drops at the largest cut-off, adjusted over all tags by the max-T method of Westfall and "
            "Young (1993). A drop with a limit has the p-value of that limit. A metric that did not drop has none, and "
            "a drop without a limit has one only if fail_on.mode is significant or noninferiority, or if an HTML "
            "report is written."
        ),
    ] = {}
    shared: Annotated[
        int | None, Meta(description="How many of the queries the baseline has as well; null without a baseline.")
    ] = None


class LeastOverlap(Struct, frozen=True, kw_only=True):
    """A query with little overlap with the baseline, at the largest cut-off."""

    id: str
    location: str
    overlap: Annotated[float, Meta(ge=0, le=1)]
    rbo: Annotated[float, Meta(ge=0, le=1)]


class ScopeReport(Struct, frozen=True, kw_only=True):
    """The part of the contract that was checked: the queries with any of some tags, and the limits of these tags."""

    tags: list[str]
    queries_not_judged: Annotated[list[str], Meta(description="The ids of the other queries.")]
    gates_not_judged: Annotated[list[str], Meta(description="The ids of the other gates.")]


class LatencyReport(Struct, frozen=True, kw_only=True):
    """The latencies of the run, and of the baseline if it has any."""

    current: Latency
    baseline: Latency | None


class Report(Struct, frozen=True, kw_only=True):
    """The outcome of a check: ``report.json``, version 1.

    The parts about answers (pass_rate, tiers, modes, labels) are left out where the contract does not ask for them.
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    tool: Tool
    verdict: Verdict
    k: Annotated[list[Annotated[int, Meta(ge=1)]], Meta(min_length=1)]
    created_at: str
    inputs: Inputs
    metrics: dict[str, MetricReport]
    gates: list[GateReport]
    detail: Annotated[
        Detail,
        Meta(
            description="Which queries are listed: those that violate a rule (failed), also those whose ranks differ "
            "from the baseline (changed), or all."
        ),
    ] = "all"
    queries: list[QueryReport]
    broken: BrokenQueries = BrokenQueries(queries=0, new=0, in_baseline=0)
    failed_checks: list[FailedCheck]
    tags: dict[str, TagReport]
    warnings: list[str]
    latency: LatencyReport | None = None
    repeats: RepeatsReport | None = None
    findings: Annotated[list[Finding], Meta(description="Each broken rule or gate once, for people.")] = []
    scope: Annotated[
        ScopeReport | None,
        Meta(description="Null if all of the contract was checked; else all numbers are about the queries that were."),
    ] = None
    pass_rate: PassRateReport | UnsetType = UNSET
    tiers: list[TierReport] | UnsetType = UNSET
    modes: ModesReport | UnsetType = UNSET
    labels: LabelsReport | UnsetType = UNSET
    judge: Annotated[JudgeReport | UnsetType, Meta(description="Left out if no judgments are given.")] = UNSET
    likely_mistakes: Annotated[
        list[Phrase], Meta(description="The warnings about input that probably explain the verdict.")
    ] = []
    run_notes: Annotated[list[str], Meta(description="Sentences about the run that explain its metrics.")] = []
    least_overlap: Annotated[
        list[LeastOverlap] | UnsetType,
        Meta(
            description="Up to ten queries for which the run retrieved other documents than the baseline, or the same "
            "ones in another order; left out without a baseline."
        ),
    ] = UNSET
    causes: Annotated[
        list[Cause],
        Meta(description="What probably made the run worse than the baseline, the likeliest cause first."),
    ] = []
    label_notes: Annotated[
        list[Phrase], Meta(description="Whether metrics leave out documents that nobody has judged.")
    ] = []
    history: Annotated[HistoryReport | UnsetType, Meta(description="Left out if no history is given.")] = UNSET
    source: Provenance | None = None
    summary_line: SummaryLine = field(default="", name="summary")

    @property
    def contract(self) -> str:
        """The name of the contract; empty if it has none."""
        return (self.source and self.source.contract) or ""


class ErrorReport(Struct, frozen=True, kw_only=True):
    """Input that cannot be judged: ``report.json`` with the verdict ``error``."""

    schema_version: Literal[1] = SCHEMA_VERSION
    tool: Tool
    verdict: Literal["error"] = "error"
    created_at: str
    problems: list[str]
    more_problems: Annotated[Count, Meta(description="How many problems are not listed.")] = 0
    warnings: Annotated[list[str], Meta(description="They may explain some of the problems.")] = []
    source: Provenance | None = None
    summary_line: SummaryLine = field(default="", name="summary")

    @property
    def contract(self) -> str:
        """The name of the contract; empty if it has none."""
        return (self.source and self.source.contract) or ""


def least_overlap(evaluation: Evaluation) -> list[LeastOverlap]:
    """Return up to ten queries with the least overlap first, without those whose results did not change."""
    family = evaluation.contract.overlap
    if family is None:
        return []
    number, queries = evaluation.contract.every_family.index(family), evaluation.contract.queries
    values = zip(queries.values(), evaluation.run.values(number, queries), strict=True)
    different = [
        (overlaps[0], overlaps[1], query)
        for query, overlaps in values
        if overlaps and (overlaps[0] < 1 or overlaps[1] < 1)
    ]
    return [
        LeastOverlap(id=query.id, location=encodable(str(query.location)), overlap=overlap, rbo=rbo)
        for overlap, rbo, query in nsmallest(bounds.LEAST_OVERLAP, different, key=itemgetter(0, 1))
    ]
