"""The queries for which the run retrieved the least of what the baseline did.

The records of the report, from which every format is rendered. ``rag-contract schema report`` prints their schema.

The records are public; within a version, fields are only added. Records that can occur by the hundred thousand have
``gc=False``, which is safe because they contain no cycles, and saves the garbage collector the time.
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
from ragcontract.decision.decide import Verdict
from ragcontract.decision.evaluated import Evaluation
from ragcontract.decision.gate_report import GateReport, Status
from ragcontract.decision.policy import QueryStatus
from ragcontract.report.answer_report import LabelsReport, ModesReport, PassRateReport, TierReport
from ragcontract.report.inputs import Count, Inputs
from ragcontract.report.judge_report import JudgeReport
from ragcontract.runs.baseline_file import Tool
from ragcontract.statistics.means import RepeatsReport
from ragcontract.statistics.significance import Noise


class LeastOverlap(Struct, frozen=True, kw_only=True):
    """A query with little overlap with the baseline, at the largest cut-off."""

    id: str
    location: str
    overlap: Annotated[float, Meta(ge=0, le=1)]
    rbo: Annotated[float, Meta(ge=0, le=1)]


def least_overlap(evaluation: Evaluation) -> list[LeastOverlap]:
    """Return up to ten queries, the least overlap first; none that returned the same documents in the same order."""
    family = evaluation.contract.overlap
    if family is None:
        return []
    number, queries = evaluation.contract.every_family.index(family), evaluation.contract.queries
    values = zip(queries.values(), evaluation.run.values(number, queries), strict=True)
    different = [(found[0], found[1], query) for query, found in values if found and (found[0] < 1 or found[1] < 1)]
    return [
        LeastOverlap(id=query.id, location=encodable(query.location), overlap=overlap, rbo=rbo)
        for overlap, rbo, query in nsmallest(bounds.LEAST_OVERLAP, different, key=itemgetter(0, 1))
    ]


Detail = Literal["failed", "changed", "all"]
SCHEMA_VERSION: Literal[1] = 1

SummaryLine = Annotated[str, Meta(description="The contract, its verdict and the reason, as one line of plain text.")]


class Provenance(Struct, frozen=True, kw_only=True):
    """The origin of a report, known in the action.

    ``contract`` is the name of the contract, if it has one; the option ``--name`` of the command line sets it as well.
    """

    repository: str | None = None
    commit: str | None = None
    branch: str | None = None
    pull_request: int | None = None
    run_url: str | None = None
    contract: str | None = None


class MetricReport(Struct, frozen=True, kw_only=True):
    """The mean of one metric. All numbers are null if there is no query to average over.

    ``current`` is over all queries that have the metric; ``current_shared``, ``baseline`` and ``delta`` (current_shared
    minus baseline) are over those that run and baseline share. ``noise`` is null if nothing changed. ``k`` is the
    cut-off of the metric, null if it has none. ``if_relevant`` is the highest value that ``current`` could have,
    whatever the documents are that nobody has judged; it is left out if all are judged. A ``diagnostic`` metric
    describes the labels or the change, not how good the application is; it is left out for the others.
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
    if_relevant: float | UnsetType = UNSET
    diagnostic: bool | UnsetType = UNSET


class ViolationReport(Struct, frozen=True, kw_only=True, gc=False):
    """One violated rule of one query.

    ``limit`` is the rank down to which the rule applies, null if it applies at any rank. ``doc_ids`` are the relevant
    documents that are missing there, or the forbidden documents that were found. ``in_baseline`` says that the baseline
    violates the rule already, for the same documents; ``known`` that the violation does not count therefore.
    ``waived`` is the reason of a waiver, ``skipped`` why the query's tier is not judged; it is omitted otherwise.
    """

    rule: str
    message: str
    expected: str
    found: str
    doc_ids: list[str]
    limit: int | None
    waived: str | None = None
    in_baseline: bool = False
    known: bool = False
    skipped: str | UnsetType = UNSET


class RetrievedReport(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One result of a broken query, with the retriever's ``score`` and the ``chunk_id`` if the run has them.

    ``contract`` says what the contract wants of the document; it is omitted for one that the golden query does not
    name.
    """

    doc_id: str
    score: float | None = None
    chunk_id: str | None = None
    contract: Literal["relevant", "forbidden"] | None = None


class AnswerReport(Struct, frozen=True, kw_only=True, gc=False):
    """The rules of a query that are not about ranks: those about its answer, its tool calls, its scores.

    ``status`` is that of these rules alone; ``violations`` names those that are violated, waived and known ones too.
    """

    status: QueryStatus
    violations: list[str] = []


class QueryReport(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One golden query, defined at ``location`` (``golden.jsonl:17``).

    ``ranks`` has every relevant document, with null if it was not retrieved. Violations fail the query unless all of
    them are waived, known or skipped, its severity is warn, or only the pass rate decides (``counted``).
    ``in_baseline`` says that the baseline has all violations but waived ones already. ``repeated`` means that the run
    or the baseline has several rows for it: metrics are means over the rows, ranks are the worst (of forbidden
    documents, the best). Both are omitted if false.

    ``retrieved`` and ``baseline_retrieved`` are the top k of a broken query (at most 20 results), best first: of
    several rows the first that breaks a rule, and the first of the baseline. They are listed for the first 1,000 broken
    queries of a run, and omitted for all others. A stored baseline has no scores and no chunks.

    ``answer`` is omitted for a query whose rules are all about ranks. ``said`` and ``baseline_said`` are what the same
    rows of a broken query say, if the contract is about answers; a stored baseline has no texts.
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
    in_baseline: bool = False
    repeated: bool = False
    retrieved: list[RetrievedReport] | None = None
    baseline_retrieved: list[RetrievedReport] | None = None
    answer: AnswerReport | None = None
    said: Said | None = None
    baseline_said: Said | None = None


class FailedCheck(Struct, frozen=True, kw_only=True, gc=False):
    """One reason for the verdict: a gate, or a rule of a query; ``message`` is the sentence of its finding.

    ``in_baseline`` says that the baseline violates the rule already.
    """

    kind: Literal["gate", "rule"]
    id: str
    query_id: str | None
    message: str
    in_baseline: bool = False


class BrokenQueries(Struct, frozen=True, kw_only=True):
    """How many golden queries are broken: those that fail, and those that only the baseline excuses.

    ``in_baseline`` were already broken in the baseline, for the same documents; the others are ``new``. Without a
    baseline, all are. Queries that are waived, or whose severity is warn, are not among them.
    """

    queries: Count
    new: Count
    in_baseline: Count
    answers: Annotated[
        Count | UnsetType,
        Meta(description="How many of them are broken by rules about answers, if the contract has any."),
    ] = UNSET


class TagReport(Struct, frozen=True, kw_only=True):
    """The means over the queries with one tag; ``metrics_shared`` and ``baseline_metrics`` are over shared queries.

    ``p_values`` are for drops at the largest cut-off, adjusted over all tags by the max-T method of Westfall and
    Young (1993); one with a limit on its drop has that limit's. A metric that did not drop has none. ``shared`` counts
    the queries that the baseline has as well; null without a baseline.
    """

    queries: int
    metrics: dict[str, float | None]
    metrics_shared: dict[str, float | None] | None
    baseline_metrics: dict[str, float | None] | None
    p_values: dict[str, float] = {}
    shared: int | None = None


class ScopeReport(Struct, frozen=True, kw_only=True):
    """The part of the contract that was judged: the queries with any of these ``tags``, and the limits of the tags.

    ``queries_not_judged`` and ``gates_not_judged`` are the ids of the rest.
    """

    tags: list[str]
    queries_not_judged: list[str]
    gates_not_judged: list[str]


class LatencyReport(Struct, frozen=True, kw_only=True):
    """The latencies of the run, and of the baseline if it has any."""

    current: Latency
    baseline: Latency | None


class Report(Struct, frozen=True, kw_only=True):
    """The outcome of a check: ``report.json``, version 1.

    ``detail`` says which ``queries`` are listed: those that violate a rule (``failed``), also those whose ranks differ
    from the baseline (``changed``), or ``all``. ``findings`` describe each broken rule or gate once, for people.
    ``scope`` is null if all of the contract was judged; otherwise, all numbers are about the queries that were.
    ``pass_rate``, ``tiers``, ``modes`` and ``labels`` are left out where the contract does not ask for them, ``judge``
    where no judgments are given.
    ``likely_mistakes`` are the warnings about input that probably explain the verdict; ``run_notes`` are sentences
    about the run that explain its metrics. ``least_overlap`` has up to ten queries for which other documents, or the
    same ones in another order, were retrieved than in the baseline; it is left out without a baseline.
    ``label_notes`` say where a drop may be missing labels.
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
    broken: BrokenQueries = BrokenQueries(queries=0, new=0, in_baseline=0)
    failed_checks: list[FailedCheck]
    tags: dict[str, TagReport]
    warnings: list[str]
    latency: LatencyReport | None = None
    repeats: RepeatsReport | None = None
    findings: list[Finding] = []
    scope: ScopeReport | None = None
    pass_rate: PassRateReport | UnsetType = UNSET
    tiers: list[TierReport] | UnsetType = UNSET
    modes: ModesReport | UnsetType = UNSET
    labels: LabelsReport | UnsetType = UNSET
    judge: JudgeReport | UnsetType = UNSET
    likely_mistakes: list[Phrase] = []
    run_notes: list[str] = []
    least_overlap: list[LeastOverlap] | UnsetType = UNSET
    label_notes: list[Phrase] = []
    source: Provenance | None = None
    summary_line: SummaryLine = field(default="", name="summary")

    @property
    def contract(self) -> str:
        """The name of the contract; empty if it has none."""
        return (self.source and self.source.contract) or ""


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

    @property
    def contract(self) -> str:
        """The name of the contract; empty if it has none."""
        return (self.source and self.source.contract) or ""
