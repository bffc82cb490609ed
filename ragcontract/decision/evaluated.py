"""The evaluation of a run and a baseline under one contract, and the rules that each query violates.

The verdict depends on nothing else.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cached_property
from itertools import chain, combinations
from math import comb
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.contract.resolve import Contract
from ragcontract.core import bounds
from ragcontract.core.gate import OF_LEVEL
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.ids import NOTHING, pool_of
from ragcontract.core.rule import Violation
from ragcontract.core.run import Means, Values
from ragcontract.evaluation.aggregates import Aggregates, aggregate
from ragcontract.evaluation.observations import UnseenIdSearch
from ragcontract.evaluation.plan import Plan, plan_for
from ragcontract.evaluation.side import Side
from ragcontract.evaluation.source import Inputs, evaluate_sides, of_judge
from ragcontract.rules.ranks import RankRules
from ragcontract.runs.baseline_contract import Documents, digest, expected_of, graded_at

if TYPE_CHECKING:
    from ragcontract.evaluation.past import Past, PastSeries
    from ragcontract.judgments.check import JudgeFiles
    from ragcontract.runs.scores_files import GivenScores


NO_IDS: frozenset[str] = frozenset()
REMEMBERED = 1000  # queries with the same values share their metrics; most of 10,000 do


class Evaluation(Struct, frozen=True, kw_only=True, dict=True):
    """The contract, run and baseline evaluated under it, and the aggregates over both."""

    contract: Contract
    run: Side
    baseline: Side | None
    aggregates: Aggregates
    scores_files: "GivenScores | None" = None  # their scores are among the run's as well
    judge: "JudgeFiles | None" = None  # None if there are no judgments and no metric needs them
    past: "PastSeries | None" = None  # the metrics with limits on levels in recorded runs; None without a history

    @cached_property
    def violations(self) -> "Violations":
        """All violations by query: those of rank rules, then those of row rules, which the rows showed."""
        of_ranks, of_rows = self.run.of_ranks, self.run.violations
        rules = RankRules(self.contract.rules, self.contract.settings)
        return {
            query_id: _compared(self, rules, query, (*of_ranks.get(query_id, ()), *of_rows.get(query_id, ())))
            for query_id, query in self.contract.queries.items()
            if query_id in of_ranks or query_id in of_rows
        }

    @cached_property
    def mistyped(self) -> dict[str, frozenset[str]]:
        """The relevant documents, by query, that occur nowhere in the run where the baseline found other ones.

        So their ids are probably wrong, which is no failure that the baseline has already.
        """
        stored = self.baseline.stored if self.baseline else None
        if self.baseline is None or stored is None:
            return {}
        unseen, without_row = self.run.observed(UnseenIdSearch).ids, frozenset(self.run.rows.missing)
        level = stored.head.contract.relevance_level if stored.head.contract else None
        wrong: dict[str, frozenset[str]] = {}
        for query_id, expected in stored.expected.items():
            query, before = self.contract.queries[query_id], expected.relevant
            doc_ids = frozenset(query.relevant_doc_ids)
            absent = doc_ids if query_id in without_row else doc_ids & unseen
            if not absent or before is None or before == expected_of(graded_at(query, level)).relevant:
                continue
            if _may_be_all_in(before, pool_of(self.baseline.ids.first_ids.get(query_id, NOTHING))):
                wrong[query_id] = absent
        return wrong

    def fixed(self) -> Iterator[str]:
        """Yield the queries that the baseline breaks and the run does not, without those that only warn."""
        baseline, scores = self.baseline, self.run.scores
        if baseline is None:
            return
        rules = RankRules(self.contract.rules, self.contract.settings)
        # Queries with the same ranks share one score, on both sides.
        changed = [query_id for query_id, score in baseline.scores.items() if score is not scores[query_id]]
        for query_id in dict.fromkeys((*changed, *baseline.violations)):
            query, before = self.contract.queries[query_id], baseline.scores.get(query_id)
            if query_id in self.violations or query.severity == "warn" or before is None:
                continue
            is_known = query_id not in baseline.rows.without_results
            may_be_broken = is_known and rules.may_be_violated(query, before)
            if query_id in baseline.violations or (may_be_broken and rules.violations(query, before)):
                yield query_id

    def metrics(self, side: Side, query_ids: Sequence[str]) -> Iterator[Means]:
        """Yield the metrics of each query on one side, by key; a metric that does not apply to the query is None.

        Queries may share one object, so it must not be changed.
        """
        families = self.aggregates.families
        keys = [key for family in families for key in family.keys]
        nothing = [(None,) * len(family.keys) for family in families]
        columns = [side.values(number, query_ids) for number in range(len(families))]
        known: dict[tuple[Values | None, ...], Means] = {}
        for of_query in zip(*columns, strict=True):
            if of_query not in known:
                if len(known) == REMEMBERED:
                    known.clear()
                values = [values or none for values, none in zip(of_query, nothing, strict=True)]
                known[of_query] = dict(zip(keys, chain.from_iterable(values), strict=True))
            yield known[of_query]


def evaluate(contract: Contract, inputs: Inputs, now: datetime) -> Evaluation:
    """Score both sides row by row with the same plan, and average. The sources read the rows, here or on a cluster."""
    contract, judge = judged(contract, inputs, now)
    plan = plan_of(contract, inputs, judge)
    run, baseline = evaluate_sides(plan, *inputs.sources())
    return Evaluation(
        contract=contract,
        run=run,
        baseline=baseline,
        aggregates=aggregate(plan, run, baseline),
        scores_files=plan.scores_files,
        judge=judge,
        past=_past(contract, plan, run, inputs.past) if inputs.past else None,
    )


def _past(contract: Contract, plan: Plan, run: Side, past: "Past") -> "PastSeries | None":
    keys = list(dict.fromkeys(gate.quantity.key for gate in contract.gates if gate.kind in OF_LEVEL))
    return past.series(contract, plan, run, keys) if keys else None


def judged(contract: Contract, inputs: Inputs, now: datetime) -> "tuple[Contract, JudgeFiles | None]":
    """Return the contract with judgments, and what the files of a judge have; None if it needs none and has none."""
    if not inputs.replays:
        return contract.without_judged_metrics(), None
    inputs, unused = of_judge(inputs, needed=contract.needs_judgments)
    contract = replace(contract, problems=contract.problems + unused)
    second_pass = contract.config.judge.second_pass and bool(contract.rules)
    if not (inputs.judgments or inputs.calibration or second_pass or any(metric.task for metric in contract.metrics)):
        return contract, None
    from ragcontract.judgments.check import replayed_contract

    stored = inputs.store and inputs.decides
    return replayed_contract(contract, inputs.judgments, inputs.calibration, now, inputs.progress, stored=stored)


def plan_of(contract: Contract, inputs: Inputs, judge: "JudgeFiles | None" = None) -> Plan:
    """Return the plan for both sides, with the scores files of the run."""
    texts = not inputs.no_answers
    plan = plan_for(
        contract, repeats=inputs.repeats, keep_ids=inputs.store or inputs.keep_ids, texts=texts, judge=judge
    )
    if not inputs.scores:
        return plan
    from ragcontract.runs.scores_files import read_scores

    return replace(plan, scores_files=read_scores(inputs.scores, plan.wanted_scores, inputs.progress))


def _may_be_all_in(documents: Documents, doc_ids: frozenset[str]) -> bool:
    """Return whether all of some documents, of which a digest is known, may be among these."""
    if comb(len(doc_ids), documents.count) > bounds.FORMER_LABELS:
        return True
    return any(digest(sorted(ids)) == documents.digest for ids in combinations(sorted(doc_ids), documents.count))


Violations = dict[str, tuple[Violation, ...]]  # by query id; only queries that violate a rule


def _compared(
    evaluation: Evaluation, rules: RankRules, query: GoldenQuery, violations: tuple[Violation, ...]
) -> tuple[Violation, ...]:
    """Mark the violations that the baseline has as well.

    A query that the baseline lacks has only new ones. So has one that wants documents with mistyped ids.
    """
    baseline = evaluation.baseline
    if baseline is None or query.id not in baseline.scores:
        return violations
    before: dict[str, frozenset[str]] = {}
    of_rows = baseline.violations.get(query.id, ())
    is_known = query.id not in baseline.rows.without_results
    of_ranks = rules.violations(query, baseline.scores[query.id]) if is_known else ()
    for violation in (*of_ranks, *of_rows):
        before[violation.rule] = before.get(violation.rule, frozenset()) | violation.wrong
    mistyped = evaluation.mistyped.get(query.id, NO_IDS)
    return tuple(
        replace(violation, in_baseline=True)
        if violation.rule in before
        and violation.wrong <= before[violation.rule]
        and (violation.documents != "relevant" or mistyped.isdisjoint(violation.doc_ids))
        else violation
        for violation in violations
    )
