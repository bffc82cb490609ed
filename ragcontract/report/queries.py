"""The queries of a report: how their records are built, their findings, and their texts before and now.

The records are generated one by one, so that large sets need not be held in memory.
"""

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Literal

from msgspec import UNSET, Struct

from ragcontract.core import bounds
from ragcontract.core.finding import Finding, Said, called
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.phrase import Phrase, render
from ragcontract.core.rule import RankRule, Violation, names_of, row_rules_of
from ragcontract.core.run import ListedResult, Means, QueryScore, RanksById, ranks_by_id
from ragcontract.core.safe_text import clipped_line, encodable
from ragcontract.decision.decide import Decision
from ragcontract.decision.evaluated import Evaluation
from ragcontract.decision.gate_report import NOT_PROVEN
from ragcontract.decision.policy import KNOWN, status_of
from ragcontract.report.history_report import broken_on_branch
from ragcontract.report.record import (
    AnswerReport,
    BrokenQueries,
    Detail,
    QueryReport,
    Report,
    RetrievedReport,
    ViolationReport,
)

REASONS = "Why the worst scores are as they are"


def score_reasons(report: Report) -> list[Phrase]:
    """Return a sentence for each of the worst queries of broken limits, in the words of the tool that scored them."""
    broken = (finding for finding in report.findings if finding.kind == "gate")
    return list(dict.fromkeys(phrase for finding in broken for phrase in finding.details))


FAILING = frozenset({"fail", "counted"})  # what fails by itself, or counts in a pass rate that may
NEW, IN_BASELINE = "new", "already in the baseline"


def since(report: Report, query: QueryReport) -> Phrase:
    """Return whether a broken query is ``new`` or ``already in the baseline``; empty without a baseline.

    Of a query that is broken on the base branch, which is not this change's fault, it is since when.
    """
    if on_branch := broken_on_branch(report.history, query.id):
        return on_branch
    if report.inputs.baseline is None:
        return ()
    return (IN_BASELINE if query.in_baseline else NEW,)


def sizes_since(report: Report, new: int, in_baseline: int) -> str:
    """Return ``: 5 new, 4 already in the baseline`` or ``, all new``; empty without a baseline."""
    if report.inputs.baseline is None:
        return ""
    if new and in_baseline:
        return f": {new:,} {NEW}, {in_baseline:,} {IN_BASELINE}"
    return f", {'all ' if new + in_baseline > 1 else ''}{NEW if new else IN_BASELINE}"


def broken_gates(report: Report) -> list[Finding]:
    """Return the findings of gates that fail."""
    return [finding for finding in report.findings if finding.kind == "gate" and finding.status == "fail"]


def waived_gates(report: Report) -> list[Finding]:
    """Return the findings of gates that are waived."""
    return [finding for finding in report.findings if finding.kind == "gate" and finding.status == "waived"]


def not_proven_gates(report: Report) -> list[Finding]:
    """Return the findings of changes over their limits that do not fail because they are not shown to be real."""
    return [finding for finding in report.findings if finding.kind == "gate" and finding.status in NOT_PROVEN]


class FindingsByQuery:
    """The findings of a report on rules, by query id."""

    def __init__(self, report: Report) -> None:
        self._by_query: dict[str, list[Finding]] = {}
        for finding in report.findings:
            if finding.query_id is not None:
                self._by_query.setdefault(finding.query_id, []).append(finding)

    def of(self, query_id: str) -> Sequence[Finding]:
        """Return all findings of a query."""
        return self._by_query.get(query_id, [])

    def failing(self, query_id: str) -> list[Finding]:
        """Return the findings of a query that fail, or count in the pass rate."""
        return [finding for finding in self.of(query_id) if finding.status in FAILING]

    def tolerated(self, query_id: str) -> list[Finding]:
        """Return the findings of a query that do not fail."""
        return [finding for finding in self.of(query_id) if finding.status not in FAILING]

    def why_failing(self, query_id: str) -> str:
        """Return why findings of a query fail although the pass rate decides; empty if every broken rule fails."""
        return "; ".join(
            dict.fromkeys(finding.why for finding in self.of(query_id) if finding.status == "fail" and finding.why)
        )

    def why_tolerated(self, query_id: str, status: str = "", without: str = "") -> str:
        """Return the reasons why findings of a query do not fail; empty if all of them fail.

        The ``status`` of the query, which readers see already, is removed from their beginning. The reason ``without``
        is left out.
        """
        reasons = dict.fromkeys(finding.why for finding in self.tolerated(query_id) if finding.why != without)
        return "; ".join(reason.removeprefix(status).lstrip(": ") if status else reason for reason in reasons)


def why_and_since(report: Report, query: QueryReport, findings: FindingsByQuery) -> str:
    """Return whether a query that fails is new, why some of its findings fail, and why others do not."""
    age = render(failing_since(report, query, findings)) if query.status in FAILING else ""
    return "; ".join(filter(None, [age, render(why_excused(report, query, findings))]))


def failing_since(report: Report, query: QueryReport, findings: FindingsByQuery, *, age: bool = True) -> Phrase:
    """Return the ``age`` of a query that fails, as :func:`since`, and why it fails if that needs a reason."""
    return _apart(since(report, query) if age else (), findings.why_failing(query.id))


def why_excused(report: Report, query: QueryReport, findings: FindingsByQuery, status: str = "") -> Phrase:
    """Return the reasons as :meth:`FindingsByQuery.why_tolerated`; of a known failure, since when it is broken."""
    on_branch = broken_on_branch(report.history, query.id) if query.status == "known" else ()
    return _apart(on_branch, findings.why_tolerated(query.id, status, without=KNOWN if on_branch else ""))


def _apart(first: Phrase, text: str) -> Phrase:
    """Return a phrase and a text with a semicolon between them, if there are both."""
    return (*first, *(("; ",) if first and text else ()), *((text,) if text else ()))


def broken_queries(report: Report) -> list[QueryReport]:
    """Return the queries that fail or count, worst first: new ones, then those that the baseline has already."""
    return sorted((query for query in report.queries if query.status in FAILING), key=worst_first_key)


def tolerated_queries(report: Report) -> list[QueryReport]:
    """Return the queries with findings that do not fail, worst first; other findings of theirs may fail."""
    tolerated = {finding.query_id for finding in report.findings if finding.status not in FAILING}
    return sorted((query for query in report.queries if query.id in tolerated), key=worst_first_key)


def not_failing_queries(report: Report) -> list[QueryReport]:
    """Return the queries that have findings of which none fails, worst first."""
    return [query for query in tolerated_queries(report) if query.status not in FAILING]


def worst_first_key(query: QueryReport) -> tuple[bool, bool, bool, float]:
    """Return a sort key: first what is new, then what fails by itself, then forbidden documents, then lost ranks."""
    forbidden = any(doc_id in query.forbidden_ranks for broken in query.violations for doc_id in broken.doc_ids)
    before = len(query.ranks) if query.baseline_ranks is None else _reciprocals(query.baseline_ranks)
    return query.in_baseline, query.status == "counted", not forbidden, _reciprocals(query.ranks) - before


def _reciprocals(ranks: RanksById) -> float:
    return sum(1 / rank for rank in ranks.values() if rank)


ANSWER, CONTEXTS, CONVERSATION = "Answer", "Contexts", "Messages"
_TEXTS = {
    "response": ANSWER,
    "error": "Error",
    "refusal": "Refusal",
    "mode": "Mode",
    "label": "Label",
    "finish_reason": "Stopped by",
}
EMPTY = "(empty)"


class SaidRow(Struct, frozen=True, kw_only=True):
    """One kind of text on both sides."""

    title: str
    before: Sequence[str] = ()
    now: Sequence[str] = ()
    more_before: int = 0  # texts that are not listed
    more_now: int = 0


def queries_with_texts(report: Report) -> list[QueryReport]:
    """Return the queries whose texts are listed: broken ones, worst first, then those that do not fail."""
    return [query for query in (*broken_queries(report), *not_failing_queries(report)) if said_rows(query)]


def said_rows(query: QueryReport) -> list[SaidRow]:
    """Return the kinds of texts that a side has for a query; empty if the report has none for it."""
    return [] if query.said is None and query.baseline_said is None else list(_rows(query))


def _rows(query: QueryReport) -> Iterator[SaidRow]:
    now, before = query.said or Said(), query.baseline_said or Said()
    for field, title in _TEXTS.items():
        texts = _texts(before, field), _texts(now, field)
        if any(texts):
            yield SaidRow(title=title, before=texts[0], now=texts[1])
    if now.tool_calls is not None or before.tool_calls is not None:
        calls = [["none"] if side.tool_calls == () else [*map(called, side.tool_calls or ())] for side in (before, now)]
        more = {"more_before": before.more_tool_calls, "more_now": now.more_tool_calls}
        yield SaidRow(title="Tool calls", before=calls[0], now=calls[1], **more)
    if now.messages is not None or before.messages is not None:
        more = {"more_before": before.more_messages, "more_now": now.more_messages}
        yield SaidRow(title=CONVERSATION, before=_conversation(before), now=_conversation(now), **more)
    if now.contexts is not None or before.contexts is not None:
        seen = [["none"] if side.contexts == () else side.contexts or () for side in (before, now)]
        more = {"more_before": before.more_contexts, "more_now": now.more_contexts}
        yield SaidRow(title=CONTEXTS, before=seen[0], now=seen[1], **more)


def _texts(side: Said, field: str) -> list[str]:
    text: str | None = getattr(side, field)
    return [] if text is None else [text or EMPTY]


def _conversation(side: Said) -> Sequence[str]:
    return [f"{message.role}: {message.text or EMPTY}" for message in side.messages or ()]


def shown_answer(query: QueryReport, length: int) -> str:
    """Return the answer to a query with a broken rule about its answer, on one line; empty if not known."""
    if query.said is None or query.answer is None or not query.answer.violations:
        return ""
    answer = query.said.response or query.said.refusal or ""
    return clipped_line(answer, length)


# The statuses of broken queries: known and counted ones fail unless only new ones, or the pass rate, do.
BROKEN = frozenset({"fail", "known", "counted"})


def usual_detail(evaluation: Evaluation) -> Detail:
    """Return the default detail of a report, which depends on the number of golden queries."""
    return "all" if len(evaluation.contract.queries) <= bounds.ALL_QUERIES else "changed"


def query_reports(evaluation: Evaluation, decision: Decision, detail: Detail) -> Iterator[QueryReport]:
    """Yield the queries that a report of this ``detail`` lists, in the order of the golden set."""
    queries = list(evaluation.contract.queries.values())
    if detail != "all":
        broken = decision.violations
        changed = _changed(evaluation) if detail == "changed" else set()
        queries = [query for query in queries if query.id in broken or query.id in changed]
    listed = [query.id for query in queries]
    metrics = evaluation.metrics(evaluation.run, listed)
    baseline = evaluation.baseline
    metrics_before = evaluation.metrics(baseline, listed) if baseline else repeat(None)
    for query, now, before in zip(queries, metrics, metrics_before, strict=False):  # not strict: repeat has no end
        yield _query(query, evaluation, decision, now, before)


def _changed(evaluation: Evaluation) -> set[str]:
    """Return the ids of the queries whose ranks or metrics differ from the baseline."""
    now, before = evaluation.run, evaluation.baseline
    if before is None:
        return set()
    scores = now.scores  # queries with the same ranks share one score, on both sides
    others = [query_id for query_id, score in before.scores.items() if score is not scores[query_id]]
    changed = {query_id for query_id in others if _differ(before.scores[query_id], scores[query_id])}
    of_rows = len(evaluation.contract.families)  # the columns after these are about labels and overlap
    for column, other in zip(now.columns[:of_rows], before.columns[:of_rows], strict=True):
        changed |= {query_id for query_id in before.scores if column[query_id] != other[query_id]}
    return changed


def _differ(score: QueryScore, other: QueryScore) -> bool:
    """Return whether two scores differ in ranks or values; which results have labels does not matter."""
    return (score.ranks, score.forbidden_ranks, score.values) != (other.ranks, other.forbidden_ranks, other.values)


def _query(
    query: GoldenQuery, evaluation: Evaluation, decision: Decision, metrics: Means, metrics_before: Means | None
) -> QueryReport:
    run, baseline = evaluation.run, evaluation.baseline
    current = run.scores[query.id]
    violations = decision.violations.get(query.id, ())
    before = baseline.scores.get(query.id) if baseline else None
    ranks = ranks_by_id(query.relevant_doc_ids, current.ranks)
    baseline_ranks = ranks if before else None  # nearly always
    if before and before.ranks != current.ranks:
        baseline_ranks = ranks_by_id(query.relevant_doc_ids, before.ranks)
    return QueryReport(
        id=query.id,
        location=encodable(str(query.location)),
        query=query.query,
        tags=list(query.tags),
        weight=query.weight,
        status=decision.status(query),
        metrics=metrics,
        baseline_metrics=metrics_before if before else None,
        ranks=ranks,
        baseline_ranks=baseline_ranks,
        forbidden_ranks=_forbidden_ranks(query, current),
        baseline_forbidden_ranks=_forbidden_ranks(query, before) if before else None,
        violations=[_violation(violation) for violation in violations],
        in_baseline=_all_in_baseline(violations),
        repeated=bool(current.repeats or (before and before.repeats)),
        retrieved=_retrieved(query, run.listed.retrieved.get(query.id)) if query.id in decision.violations else None,
        baseline_retrieved=_retrieved(query, baseline.listed.retrieved.get(query.id)) if baseline else None,
        answer=_answer(query, evaluation, violations),
        said=run.listed.said.get(query.id) if query.id in decision.violations else None,
        baseline_said=baseline.listed.said.get(query.id) if baseline else None,
    )


def broken_queries_of(evaluation: Evaluation, decision: Decision) -> BrokenQueries:
    """Count the broken queries: new ones, and those that are broken in the baseline already."""
    queries = evaluation.contract.queries
    broken = [
        violations
        for query_id, violations in decision.violations.items()
        if decision.status(queries[query_id]) in BROKEN
    ]
    in_baseline = sum(map(_all_in_baseline, broken))
    of_ranks = rank_rules(evaluation)
    answers = sum(
        any(violation.rule not in of_ranks and counts_as_broken(violation) for violation in violations)
        for violations in broken
    )
    return BrokenQueries(
        queries=len(broken),
        fixed=sum(1 for _ in evaluation.fixed()),
        new=len(broken) - in_baseline,
        in_baseline=in_baseline,
        answers=answers if evaluation.contract.golden.rule_types else UNSET,
    )


def counts_as_broken(violation: Violation) -> bool:
    """Return whether a violation makes its query a broken one, even if it is excused as known."""
    return violation.status not in {"waived", "skipped"} and not violation.warns


def rank_rules(evaluation: Evaluation) -> frozenset[str]:
    """Return the names of the rules about ranks; all others are about the row, mostly about its answer."""
    rules = (rule for rule in evaluation.contract.rules if issubclass(rule, RankRule))
    return frozenset(name for rule in rules for name in names_of(rule))


def _answer(query: GoldenQuery, evaluation: Evaluation, violations: Sequence[Violation]) -> AnswerReport | None:
    if not query.rules or not row_rules_of(query, evaluation.contract.rules):
        return None
    if not violations:
        return AnswerReport(status="pass")
    of_ranks = rank_rules(evaluation)
    of_answer = [violation for violation in violations if violation.rule not in of_ranks]
    return AnswerReport(
        status=status_of(of_answer), violations=list(dict.fromkeys(violation.rule for violation in of_answer))
    )


def _all_in_baseline(violations: Sequence[Violation]) -> bool:
    """Return whether the baseline has all of these violations already, except for waived ones."""
    not_waived = [violation for violation in violations if violation.status != "waived"]
    return bool(not_waived) and all(violation.in_baseline for violation in not_waived)


def _retrieved(query: GoldenQuery, results: Sequence[ListedResult] | None) -> list[RetrievedReport] | None:
    """Return each result with what the contract says about it; None for a query whose results are not listed."""
    if results is None or not (results or query.needs_results):
        return None
    named: dict[str, Literal["relevant", "forbidden"]] = dict.fromkeys(query.relevant_doc_ids, "relevant")
    named |= dict.fromkeys(query.forbidden_doc_ids, "forbidden")
    return [
        RetrievedReport(
            doc_id=result.doc_id, score=result.score, chunk_id=result.chunk_id, contract=named.get(result.doc_id)
        )
        for result in results
    ]


def _violation(violation: Violation) -> ViolationReport:
    expected, found = render(violation.expected), render(violation.actual)
    return ViolationReport(
        rule=violation.rule,
        message=f"expected {expected}; found: {found}",
        expected=expected,
        found=found,
        doc_ids=list(violation.doc_ids),
        limit=violation.limit,
        waived=violation.why if violation.status == "waived" else None,
        in_baseline=violation.in_baseline,
        known=violation.status == "known",
        skipped=violation.why if violation.status == "skipped" else UNSET,
    )


def _forbidden_ranks(query: GoldenQuery, score: QueryScore) -> dict[str, int]:
    """Return the ranks of the forbidden documents that were retrieved."""
    if not any(score.forbidden_ranks):  # nearly always
        return {}
    ranks = ranks_by_id(query.forbidden_doc_ids, score.forbidden_ranks)
    return {doc_id: rank for doc_id, rank in ranks.items() if rank}
