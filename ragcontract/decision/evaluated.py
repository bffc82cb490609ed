"""An evaluation: run and baseline, scored under one contract. The verdict depends on nothing else.

Collects the violated rules of each query.
"""

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.contract.resolve import Contract
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.rule import Violation
from ragcontract.core.run import Means, QueryScore
from ragcontract.evaluation.aggregates import Aggregates
from ragcontract.evaluation.side import Side
from ragcontract.rules.ranks import RankRules

if TYPE_CHECKING:
    from ragcontract.judgments.check import Replayed
    from ragcontract.runs.scores_files import GivenScores


class Evaluation(Struct, frozen=True, kw_only=True):
    """The contract, the scores of run and baseline, and the aggregates over them.

    ``given`` is what scores files have for the run; its scores are among those of the run. ``replayed`` is what a judge
    said of it; None if no metric needs that and no judgments are given.
    """

    contract: Contract
    run: Side
    baseline: Side | None
    aggregates: Aggregates
    given: "GivenScores | None" = None
    replayed: "Replayed | None" = None

    def metrics(self, side: Side, query_id: str) -> Means:
        """Return the metrics of a query on one side, by key; None for a metric that does not apply to it."""
        found: Means = {}
        for number, family in enumerate(self.aggregates.families):
            (values,) = side.values(number, [query_id])
            found |= dict(zip(family.keys, values, strict=True)) if values else dict.fromkeys(family.keys)
        return found


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
