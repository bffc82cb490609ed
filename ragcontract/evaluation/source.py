"""Sources: where a run or a baseline is read from, and the evaluation of both sides.

The baseline is evaluated first, because the documents that it retrieved count as judged in the run.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.ids import as_id
from ragcontract.core.numbers import count
from ragcontract.core.phrase import listed, render
from ragcontract.core.run import SCORED_BY, RunRow
from ragcontract.evaluation.fold import fold
from ragcontract.evaluation.listed import Listed, ListedResults, listed_ids
from ragcontract.evaluation.plan import Plan
from ragcontract.evaluation.side import Side
from ragcontract.files.problems import Batch, Problem
from ragcontract.runs.readers import Reader, RunEvent

Known = dict[str, int]  # the files that have a query, as the bits of a number; by query id


class Source(Protocol):
    """Evaluates a plan where the rows are, and returns the side."""

    def evaluate(self, plan: Plan) -> Side:
        """Return the side; its ``problems`` contain everything that is wrong with the rows."""

    def listed(self, plan: Plan) -> Listed:
        """Read the rows a second time; return the results of the queries that the plan for a baseline lists."""

    def rows(self, record: type[RunRow]) -> Iterator[RunRow]:
        """Yield the rows a second time, for reports on all answers; raise InputError if that is impossible."""


class Local(Struct, frozen=True):
    """Rows that are read on this machine."""

    reader: Reader

    def evaluate(self, plan: Plan) -> Side:
        """Read and evaluate the rows."""
        with_metrics = any(not family.from_ids for family in plan.families)
        return fold(plan, self.reader.events(plan.row_type, with_metrics=with_metrics))

    def listed(self, plan: Plan) -> Listed:
        """Read rows until each listed query has one. If a query has several rows, the first counts."""
        results = ListedResults(plan)
        for event in self.reader.events(plan.row_type):
            if isinstance(event, Batch):
                results.note_listed(event.rows)
                if results.has_all:
                    break
        return Listed(retrieved=results.held, said=results.said)

    def rows(self, record: type[RunRow]) -> Iterator[RunRow]:
        """Read the rows. Rows that cannot be read were reported before."""
        for event in self.reader.events(record):
            if isinstance(event, Batch):
                yield from event.rows


class GoodRuns(Struct, frozen=True):
    """Run files on this machine: several good runs, or parts of one run.

    Several runs have all queries each, and the values of a query are the means over the runs. Parts have no common
    query.
    """

    reader: Reader

    def evaluate(self, plan: Plan) -> Side:
        """Read and evaluate the rows; the side's ``runs`` is the number of runs."""
        files = _Files(plan)
        with_metrics = any(not family.from_ids for family in plan.families)
        events = self.reader.events(plan.row_type, with_metrics=with_metrics)
        side = fold(replace(plan, repeats=True), files.noted(events))
        return replace(side, runs=files.runs)

    def listed(self, plan: Plan) -> Listed:
        """Read rows until each listed query has one; the first run that has the query counts."""
        return Local(self.reader).listed(plan)

    def rows(self, record: type[RunRow]) -> Iterator[RunRow]:
        """Read the rows. Rows that cannot be read were reported before."""
        return Local(self.reader).rows(record)


def evaluate_sides(plan: Plan, run: Source, baseline: Source | None) -> tuple[Side, Side | None]:
    """Return both sides. The baseline has the results of the queries that the run breaks."""
    before = baseline.evaluate(plan.for_baseline()) if baseline else None
    now = run.evaluate(plan.against(before.pools, before.first_ids) if before else plan)
    if plan.scores_files and plan.scores_files.scored_by:
        now = replace(now, versions={**now.versions, SCORED_BY: list(plan.scores_files.scored_by)})
    if before is None or baseline is None:
        return now, None
    return now, before if now.problems else with_listed(before, baseline, plan, now.retrieved)


def with_listed(side: Side, source: Source, plan: Plan, query_ids: Collection[str]) -> Side:
    """Return a baseline with the results of some queries.

    A stored baseline has them already. A run is read a second time, unless it is a pipe, which is empty by now.
    """
    if not query_ids or side.problems:
        return side
    if side.stored is not None:
        return replace(side, retrieved=listed_ids(side.first_ids, query_ids, plan))
    if any(Path(file.path).is_fifo() for file in side.files):
        return side
    listed = source.listed(plan.for_baseline(query_ids))
    return replace(side, retrieved=listed.retrieved, said=listed.said)


def file_of_both(run: Side, baseline: Side | None) -> str | None:
    """Return the path of a file that is both run and baseline; None if there is none. A copy does not count."""
    digests = {file.sha256 for file in baseline.files} if baseline else set()
    likely = [file.path for file in run.files if file.sha256 and file.sha256 in digests]
    of_baseline = {Path(file.path).resolve() for file in baseline.files} if baseline and likely else set()
    return next((path for path in likely if Path(path).resolve() in of_baseline), None)


class _Files:
    """Notes which of the files have which golden queries."""

    def __init__(self, plan: Plan) -> None:
        self._golden = plan.golden
        self._paths: list[str] = []
        self._known: Known = {}
        self.runs = 1

    def noted(self, events: Iterable[RunEvent]) -> Iterator[RunEvent]:
        """Yield the events, and then what is wrong with the files as a whole; set ``runs``."""
        lines: dict[str, int] = {}
        for event in events:
            yield event
            if not isinstance(event, Batch):
                continue
            if event.path not in self._paths[-1:]:
                self._paths.append(event.path)
                lines = {}
            for index, row in enumerate(event.rows):
                query_id = as_id(row.query_id)
                if query_id in lines:
                    first = f"{event.path}:{lines[query_id]}" if event.line else event.path
                    yield Problem(
                        f"{event.location(index)}: query_id",
                        f"duplicate id {query_id!r}, first defined at {first} "
                        "(several rows per query are averaged with --repeats)",
                    )
                elif query_id in self._golden:
                    lines[query_id] = event.line + index
                    self._known[query_id] = self._known.get(query_id, 0) | 1 << len(self._paths) - 1
        yield from self._together()

    def _together(self) -> Iterator[Problem]:
        files = len(self._paths)
        masks = set(self._known.values())
        if masks == {(1 << files) - 1}:
            self.runs = files
            if files > bounds.GOOD_RUNS:
                yield Problem(self._paths[bounds.GOOD_RUNS], f"a baseline is of at most {bounds.GOOD_RUNS} good runs")
        elif any(mask.bit_count() > 1 for mask in masks):
            yield from (Problem(path, why) for number, path in enumerate(self._paths) if (why := self._partly(number)))

    def _partly(self, number: int) -> str | None:
        """Return what is wrong with a file that lacks queries; None if it has all queries."""
        bit = 1 << number
        lacking = [query_id for query_id, mask in self._known.items() if not mask & bit]
        if not lacking:
            return None
        both = [query_id for query_id, mask in self._known.items() if mask & bit and mask != bit]
        also = f", and rows for {_quoted(both)} that they have as well" if both else ""
        return (
            f"has no row for {_quoted(lacking)} of the other files{also}; either each file has all queries, as several "
            "good runs, or none that another has, as parts of one run"
        )


def _quoted(query_ids: Sequence[str]) -> str:
    """Return a text with the number of queries and the first ids."""
    ids = render(listed(query_ids, "and"), repr)
    return f"{count(len(query_ids), 'query')} ({ids})"
