"""Collects the violated rules of each query."""

from collections.abc import Iterator

from msgspec.structs import replace

from ragcontract.contract.resolve import Contract
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.rule import RankRule, Violation
from ragcontract.core.scores import QueryScore
from ragcontract.judging.evaluated import Evaluation
from ragcontract.rules.ranks import may_be_violated

Violations = dict[str, tuple[Violation, ...]]  # by query id; only queries that violate a rule


def violations_of(evaluation: Evaluation) -> Violations:
    """Return all violations by query: of rank rules first, then of row rules, which were checked during evaluation."""
    contract = evaluation.contract
    scores, of_rows = evaluation.run.scores, evaluation.run.violations
    no_shortcut = any(issubclass(rule, RankRule) and not rule.shortcut and not rule.in_rows for rule in contract.rules)
    found: Violations = {}
    for query in contract.queries.values():
        violations = of_rows.get(query.id, ()) if of_rows else ()
        if no_shortcut or may_be_violated(query, scores[query.id]):
            violations = (*_of_ranks(contract, query, scores[query.id]), *violations)
        if violations:
            found[query.id] = _compared(evaluation, query, violations)
    return found


def _compared(evaluation: Evaluation, query: GoldenQuery, violations: tuple[Violation, ...]) -> tuple[Violation, ...]:
    """Mark the violations that the baseline has already; a query that the baseline lacks has only new ones.

    Violations of row rules are new, because the rows of a stored baseline are not known.
    """
    baseline = evaluation.baseline
    if baseline is None or query.id not in baseline.scores:
        return violations
    before: dict[str, frozenset[str]] = {}
    for one in _of_ranks(evaluation.contract, query, baseline.scores[query.id]):
        before[one.rule] = before.get(one.rule, frozenset()) | one.wrong
    return tuple(
        replace(one, in_baseline=True) if one.rule in before and one.wrong <= before[one.rule] else one
        for one in violations
    )


def _of_ranks(contract: Contract, query: GoldenQuery, score: QueryScore) -> list[Violation]:
    """Return the rank rules that any row of the query violates, with the worst rank of each document.

    The worst ranks alone are not enough: for some rules one document suffices, and it can be a different one in each
    row, so the worst ranks could violate a rule that no single row violates.
    """
    found = list(_with_ranks(contract, query, score))
    if not score.repeats or not found:
        return found
    broken = {one.rule for repeat in score.repeats for one in _with_ranks(contract, query, repeat)}
    return [violation for violation in found if violation.rule in broken]


def _with_ranks(contract: Contract, query: GoldenQuery, score: QueryScore) -> Iterator[Violation]:
    for rule in contract.rank_rules(query):
        yield from rule.violations(query, score)
