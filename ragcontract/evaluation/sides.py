"""Evaluates both sides: the baseline first, because what it retrieved says what of a run somebody has judged."""

from collections.abc import Collection
from pathlib import Path

from msgspec.structs import replace

from ragcontract.evaluation.listed_results import listed_ids
from ragcontract.evaluation.plan import Plan
from ragcontract.evaluation.side import Side
from ragcontract.evaluation.source import Source


def evaluate_sides(plan: Plan, run: Source, baseline: Source | None) -> tuple[Side, Side | None]:
    """Return both sides; the baseline has the results of those queries that the run lists because it breaks them."""
    if baseline is None:
        return run.evaluate(plan), None
    before = baseline.evaluate(plan.for_baseline())
    for noted in plan.noted:
        noted.clear()  # what is noted is of the run
    now = run.evaluate(plan.against(before.pools, before.first_ids))
    return now, before if now.problems else with_listed(before, baseline, plan, now.retrieved)


def file_of_both(run: Side, baseline: Side | None) -> str | None:
    """Return the path of a file that is both run and baseline; None if there is none. A copy is another file."""
    digests = {file.sha256 for file in baseline.files} if baseline else set()
    likely = [file.path for file in run.files if file.sha256 and file.sha256 in digests]
    of_baseline = {Path(file.path).resolve() for file in baseline.files} if baseline and likely else set()
    return next((path for path in likely if Path(path).resolve() in of_baseline), None)


def with_listed(side: Side, source: Source, plan: Plan, query_ids: Collection[str]) -> Side:
    """Return a baseline with the results of some queries.

    Of a stored one, they are known already. A run is read once more, unless it is a pipe, which is empty by now.
    """
    if not query_ids or side.problems:
        return side
    if side.stored is not None:
        return replace(side, retrieved=listed_ids(side.first_ids, query_ids, plan))
    if any(Path(file.path).is_fifo() for file in side.files):
        return side
    listed = source.listed(plan.for_baseline(query_ids))
    return replace(side, retrieved=listed.retrieved, said=listed.said)
