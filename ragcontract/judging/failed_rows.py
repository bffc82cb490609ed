"""Reports rows with an error in place of what they would have had: an export that failed is not a bad retriever."""

from collections.abc import Sequence

from ragcontract.core.numbers import count
from ragcontract.evaluation.side import Side
from ragcontract.files.problems import Collector, Problems
from ragcontract.judging.evaluated import Evaluation
from ragcontract.judging.id_lists import named
from ragcontract.judging.outcomes import fails
from ragcontract.judging.violations import violations_of


def failed_rows(evaluation: Evaluation, *, complete: bool) -> Problems:
    """Return the problems of a baseline that has such rows, and a warning about those of a run.

    With ``complete``, the run is to become a baseline. Nothing is said of queries whose rules are broken anyway.
    """
    problems = Collector()
    run, baseline = evaluation.run, evaluation.baseline
    if baseline and baseline.failed and not baseline.problems:
        problems.problem(
            baseline.name,
            f"{_failed(baseline.failed)}, so it cannot be the baseline; record them again, or leave these rows out",
        )
    if not run.failed or run.problems:
        return problems.found()
    if complete:
        problems.problem(run.name, f"{_failed(run.failed)}, so it cannot be a baseline; record them again")
    elif passing := _passing(run, evaluation):
        problems.warning(
            f"{run.name}: {_failed(passing)}, which count as if nothing was found or answered; record them again"
        )
    return problems.found()


def _passing(run: Side, evaluation: Evaluation) -> list[str]:
    """Return the failed queries that break no rule, or only rules of which new failures alone count."""
    contract, violations = evaluation.contract, violations_of(evaluation)

    def breaks(query_id: str) -> bool:
        broken = [one for one in violations.get(query_id, ()) if fails(contract.queries[query_id], one)]
        return any(not one.in_baseline or one.rule not in contract.only_new for one in broken)

    return [query_id for query_id in run.failed if not breaks(query_id)]


def _failed(query_ids: Sequence[str]) -> str:
    return f"has rows with an error for {count(len(query_ids), 'query')} ({named(query_ids)})"
