"""Source interface: where a run or a baseline is read from.

Evaluates both sides: the baseline first, because what it retrieved says what of a run somebody has judged.

Several good runs as one side: files that each have all queries; those without a common query form one run.
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
from ragcontract.core.run import RunRow
from ragcontract.evaluation.fold import fold
from ragcontract.evaluation.listed import Listed, ListedResults, listed_ids
from ragcontract.evaluation.plan import Plan
from ragcontract.evaluation.side import Side
from ragcontract.files.problems import Batch, Problem
from ragcontract.runs.readers import Reader, RunEvent


class Source(Protocol):
    """Evaluates a plan where the rows are, and returns the result."""

    def evaluate(self, plan: Plan) -> Side:
        """Return the side; its ``problems`` contain everything wrong with the rows."""

    def listed(self, plan: Plan) -> Listed:
        """Return the results of the queries that the plan for a baseline lists, for which rows are read once more."""

    def rows(self, record: type[RunRow]) -> Iterator[RunRow]:
        """Yield the rows once more, for a report on all that was answered; raises InputError if that is impossible."""


class Local(Struct, frozen=True):
    """Rows that are read on this machine."""

    reader: Reader

    def evaluate(self, plan: Plan) -> Side:
        """Read and evaluate the rows."""
        with_metrics = any(not family.from_ids for family in plan.families)
        return fold(plan, self.reader.events(plan.row_type, with_metrics=with_metrics))

    def listed(self, plan: Plan) -> Listed:
        """Read the rows until those of all listed queries were found; of several rows of one, the first counts."""
        found = ListedResults(plan)
        for event in self.reader.events(plan.row_type):
            if isinstance(event, Batch):
                found.note_listed(event.rows)
                if found.has_all:
                    break
        return Listed(retrieved=found.held, said=found.said)

    def rows(self, record: type[RunRow]) -> Iterator[RunRow]:
        """Read the rows; those that cannot be read were reported before."""
        for event in self.reader.events(record):
            if isinstance(event, Batch):
                yield from event.rows


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


Known = dict[str, int]  # query ids, each with the files that have it as the bits of a number


class GoodRuns(Struct, frozen=True):
    """Run files on this machine: parts of one run, or several good runs, whose queries have the means over the runs."""

    reader: Reader

    def evaluate(self, plan: Plan) -> Side:
        """Read and evaluate the rows; ``runs`` of the side says how many runs they are."""
        files = _Files(plan)
        with_metrics = any(not family.from_ids for family in plan.families)
        events = self.reader.events(plan.row_type, with_metrics=with_metrics)
        side = fold(replace(plan, repeats=True), files.noted(events))
        return replace(side, runs=files.runs)

    def listed(self, plan: Plan) -> Listed:
        """Read the rows of the queries that the plan lists; the first run that has one counts."""
        return Local(self.reader).listed(plan)

    def rows(self, record: type[RunRow]) -> Iterator[RunRow]:
        """Read the rows; those that cannot be read were reported before."""
        return Local(self.reader).rows(record)


class _Files:
    """Notes which of the files have which golden queries."""

    def __init__(self, plan: Plan) -> None:
        self._golden = plan.golden
        self._paths: list[str] = []
        self._known: Known = {}
        self.runs = 1

    def noted(self, events: Iterable[RunEvent]) -> Iterator[RunEvent]:
        """Yield the events, and what is wrong with the files together; sets ``runs``."""
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
        """Return what is wrong with a file that lacks queries; None if it has all."""
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
    """Return the number of queries and the first ids."""
    ids = render(listed(query_ids, "and"), repr)
    return f"{count(len(query_ids), 'query')} ({ids})"
