"""Collects the violated rules of each query."""

from msgspec.structs import replace

from ragcontract.core.golden import GoldenQuery
from ragcontract.core.rule import Violation
from ragcontract.core.scores import QueryScore
from ragcontract.judging.evaluated import Evaluation
from ragcontract.rules.ranks import RankRules

Violations = dict[str, tuple[Violation, ...]]  # by query id; only queries that violate a rule


def violations_of(evaluation: Evaluation) -> Violations:
    """Return all violations by query: of rank rules first, then of row rules, which were checked during evaluation."""
    contract = evaluation.contract
    scores, of_rows = evaluation.run.scores, evaluation.run.violations
    rules = RankRules(contract.rules, contract.settings)
    found: Violations = {}
    for query in contract.queries.values():
        violations = of_rows.get(query.id, ()) if of_rows else ()
        if rules.may_be_violated(query, scores[query.id]):
            violations = (*_of_ranks(rules, query, scores[query.id]), *violations)
        if violations:
            found[query.id] = _compared(evaluation, rules, query, violations)
    return found


def _compared(
    evaluation: Evaluation, rules: RankRules, query: GoldenQuery, violations: tuple[Violation, ...]
) -> tuple[Violation, ...]:
    """Mark the violations that the baseline has already; a query that the baseline lacks has only new ones.

    Violations of row rules are known of a baseline that is a run.
    """
    baseline = evaluation.baseline
    if baseline is None or query.id not in baseline.scores:
        return violations
    before: dict[str, frozenset[str]] = {}
    of_rows = baseline.violations.get(query.id, ())
    for one in (*_of_ranks(rules, query, baseline.scores[query.id]), *of_rows):
        before[one.rule] = before.get(one.rule, frozenset()) | one.wrong
    return tuple(
        replace(one, in_baseline=True) if one.rule in before and one.wrong <= before[one.rule] else one
        for one in violations
    )


def _of_ranks(rules: RankRules, query: GoldenQuery, score: QueryScore) -> list[Violation]:
    """Return the rank rules that any row of the query violates, with the worst rank of each document.

    The worst ranks alone are not enough: for some rules one document suffices, and it can be a different one in each
    row, so the worst ranks could violate a rule that no single row violates.
    """
    found = list(rules.violations(query, score))
    if not score.repeats or not found:
        return found
    broken = {one.rule for repeat in score.repeats for one in rules.violations(query, repeat)}
    return [violation for violation in found if violation.rule in broken]
