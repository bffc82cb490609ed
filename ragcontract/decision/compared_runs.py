"""Evaluates several runs under one contract, to compare them: each but the first has the first as its baseline."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from ragcontract.contract.resolve import Contract
from ragcontract.decision.evaluated import Evaluation
from ragcontract.decision.gate_report import named
from ragcontract.decision.input_problems import input_problems
from ragcontract.evaluation.aggregates import aggregate
from ragcontract.evaluation.plan import Plan
from ragcontract.evaluation.side import Side
from ragcontract.files.problems import Collector, Problems

if TYPE_CHECKING:
    from ragcontract.judgments.check import JudgeFiles


class ComparedRuns(Struct, frozen=True, kw_only=True):
    """Runs that were evaluated under one contract."""

    evaluations: Sequence[Evaluation]
    warnings: Sequence[str]


def compared_under(
    contract: Contract, plan: Plan, sides: Sequence[Side], judge: "JudgeFiles | None" = None
) -> ComparedRuns:
    """Average scored runs; raises :class:`~ragcontract.core.errors.InputError` with the problems of all of them.

    ``sides`` are the runs as they were evaluated with the ``plan``.
    """
    evaluations: list[Evaluation] = []
    problems = contract.problems + (judge.problems if judge else Problems())
    for side in sides:
        first = sides[0] if evaluations else None
        aggregates = aggregate(plan, side, first)
        problems += side.problems + _about_questions(side)
        problems += input_problems(Evaluation(contract=contract, run=side, baseline=None, aggregates=aggregates))
        evaluations.append(Evaluation(contract=contract, run=side, baseline=first, aggregates=aggregates))
    _without_repeats(problems).raise_if_any()
    return ComparedRuns(evaluations=evaluations, warnings=list(dict.fromkeys(problems.warnings)))


def _about_questions(side: Side) -> Problems:
    """Return a problem if a stored baseline has other questions with the ids of golden queries."""
    problems = Collector()
    if side.rows.changed:
        problems.problem(
            side.name, f"has another question for {named(side.rows.changed)}; recreate it with `rag-contract baseline`"
        )
    return problems.collected()


def _without_repeats(problems: Problems) -> Problems:
    """Return each problem and warning once, because those of the contract are repeated for each run."""
    return Problems(
        problems=tuple(dict.fromkeys(problems.problems)),
        more=problems.more,
        warnings=tuple(dict.fromkeys(problems.warnings)),
    )
