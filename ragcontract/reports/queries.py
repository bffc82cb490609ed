"""The results of single queries, generated one by one so that large sets need not be held in memory."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from msgspec import UNSET

from ragcontract.core import bounds
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.phrase import render
from ragcontract.core.rule import RankRule, Violation, names_of, row_rules_of
from ragcontract.core.run import ListedResult
from ragcontract.core.scores import QueryScore, ranks_by_id
from ragcontract.core.text import encodable
from ragcontract.judging.decision import Decision
from ragcontract.judging.evaluated import Evaluation
from ragcontract.judging.policy import status_of
from ragcontract.reports.report import (
    AnswerReport,
    BrokenQueries,
    Detail,
    QueryReport,
    RetrievedReport,
    ViolationReport,
)

# The statuses of broken queries: known and counted ones fail unless only new ones, or the pass rate, do.
BROKEN = frozenset({"fail", "known", "counted"})


def usual_detail(evaluation: Evaluation) -> Detail:
    """Return the default detail of a report, which depends on the number of golden queries."""
    return "all" if len(evaluation.contract.queries) <= bounds.ALL_QUERIES else "changed"


def query_reports(evaluation: Evaluation, decision: Decision, detail: Detail) -> Iterator[QueryReport]:
    """Yield the queries that a report of this ``detail`` lists, in the order of the golden set."""
    queries: Iterable[GoldenQuery] = evaluation.contract.queries.values()
    if detail != "all":
        broken = decision.violations
        changed = _changed(evaluation) if detail == "changed" else set()
        queries = [query for query in queries if query.id in broken or query.id in changed]
    for query in queries:
        yield _query(query, evaluation, decision)


def _changed(evaluation: Evaluation) -> set[str]:
    """Return the ids of the queries whose ranks or metrics differ from the baseline."""
    now, before = evaluation.run, evaluation.baseline
    if before is None:
        return set()
    scores = now.scores  # queries with the same ranks share one score, on both sides
    others = [query_id for query_id, score in before.scores.items() if score is not scores[query_id]]
    changed = {query_id for query_id in others if _differ(before.scores[query_id], scores[query_id])}
    of_rows = len(evaluation.contract.families)  # what is judged by now, or was retrieved beside, is no such change
    for column, other in zip(now.columns[:of_rows], before.columns[:of_rows], strict=True):
        changed |= {query_id for query_id in before.scores if column[query_id] != other[query_id]}
    return changed


def _differ(one: QueryScore, other: QueryScore) -> bool:
    """Return whether two scores have other ranks or values, whatever is judged of the results."""
    return (one.ranks, one.forbidden_ranks, one.values) != (other.ranks, other.forbidden_ranks, other.values)


def _query(query: GoldenQuery, evaluation: Evaluation, decision: Decision) -> QueryReport:
    run, baseline = evaluation.run, evaluation.baseline
    current = run.scores[query.id]
    violations = decision.violations.get(query.id, ())
    before = baseline.scores.get(query.id) if baseline else None
    return QueryReport(
        id=query.id,
        location=encodable(query.location),
        query=query.query,
        tags=list(query.tags),
        weight=query.weight,
        status=decision.status(query),
        metrics=evaluation.metrics(run, query.id),
        baseline_metrics=evaluation.metrics(baseline, query.id) if baseline and before else None,
        ranks=ranks_by_id(query.relevant_doc_ids, current.ranks),
        baseline_ranks=ranks_by_id(query.relevant_doc_ids, before.ranks) if before else None,
        forbidden_ranks=_forbidden_ranks(query, current),
        baseline_forbidden_ranks=_forbidden_ranks(query, before) if before else None,
        violations=[_violation(one) for one in violations],
        in_baseline=_all_in_baseline(violations),
        repeated=bool(current.repeats or (before and before.repeats)),
        retrieved=_retrieved(query, run.retrieved.get(query.id)) if query.id in decision.violations else None,
        baseline_retrieved=_retrieved(query, baseline.retrieved.get(query.id)) if baseline else None,
        answer=_answer(query, evaluation, violations),
        said=run.said.get(query.id) if query.id in decision.violations else None,
        baseline_said=baseline.said.get(query.id) if baseline else None,
    )


def broken_queries_of(evaluation: Evaluation, decision: Decision) -> BrokenQueries:
    """Count the broken queries, new ones and those that the baseline has already."""
    queries = evaluation.contract.queries
    broken = [found for query_id, found in decision.violations.items() if decision.status(queries[query_id]) in BROKEN]
    in_baseline = sum(map(_all_in_baseline, broken))
    of_ranks = rank_rules(evaluation)
    answers = sum(any(one.rule not in of_ranks and counts_as_broken(one) for one in found) for found in broken)
    return BrokenQueries(
        queries=len(broken),
        new=len(broken) - in_baseline,
        in_baseline=in_baseline,
        answers=answers if evaluation.contract.golden.rule_types else UNSET,
    )


def counts_as_broken(violation: Violation) -> bool:
    """Return whether a violation makes its query a broken one, be it excused as known or not."""
    return violation.waived is None and violation.skipped is None and not violation.warns


def rank_rules(evaluation: Evaluation) -> frozenset[str]:
    """Return the names of the rules about ranks; all others are about the row, its answer above all."""
    rules = (rule for rule in evaluation.contract.rules if issubclass(rule, RankRule))
    return frozenset(name for rule in rules for name in names_of(rule))


def _answer(query: GoldenQuery, evaluation: Evaluation, violations: Sequence[Violation]) -> AnswerReport | None:
    if not query.rules or not row_rules_of(query, evaluation.contract.rules):
        return None
    if not violations:
        return AnswerReport(status="pass")
    of_ranks = rank_rules(evaluation)
    found = [one for one in violations if one.rule not in of_ranks]
    return AnswerReport(status=status_of(query, found), violations=list(dict.fromkeys(one.rule for one in found)))


def _all_in_baseline(violations: Sequence[Violation]) -> bool:
    """Return whether the baseline has all of these violations already; waived ones do not matter."""
    that_matter = [violation for violation in violations if violation.waived is None]
    return bool(that_matter) and all(violation.in_baseline for violation in that_matter)


def _retrieved(query: GoldenQuery, results: Sequence[ListedResult] | None) -> list[RetrievedReport] | None:
    """Say what the contract wants of each result; None for a query whose results are not listed."""
    if results is None or not (results or query.needs_results):
        return None
    named: dict[str, Literal["relevant", "forbidden"]] = dict.fromkeys(query.relevant_doc_ids, "relevant")
    named |= dict.fromkeys(query.forbidden_doc_ids, "forbidden")
    return [
        RetrievedReport(doc_id=one.doc_id, score=one.score, chunk_id=one.chunk_id, contract=named.get(one.doc_id))
        for one in results
    ]


def _violation(violation: Violation) -> ViolationReport:
    expected, found = render(violation.expected), render(violation.found)
    return ViolationReport(
        rule=violation.rule,
        message=f"expected {expected}; found: {found}",
        expected=expected,
        found=found,
        doc_ids=list(violation.doc_ids),
        limit=violation.limit,
        waived=violation.waived,
        in_baseline=violation.in_baseline,
        known=violation.known,
        skipped=UNSET if violation.skipped is None else violation.skipped,
    )


def _forbidden_ranks(query: GoldenQuery, score: QueryScore) -> dict[str, int]:
    """Give every forbidden document that was retrieved its rank."""
    ranks = ranks_by_id(query.forbidden_doc_ids, score.forbidden_ranks)
    return {doc_id: rank for doc_id, rank in ranks.items() if rank}
