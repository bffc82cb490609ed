"""What a check knows of recorded runs: a metric in consecutive runs, and the best level that it had.

A history computes them (:class:`Past`). The decision about limits on levels only sees these records.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Protocol

from msgspec import Struct

from ragcontract.contract.resolve import Contract
from ragcontract.core.metric import Metric
from ragcontract.evaluation.plan import Plan
from ragcontract.evaluation.side import Side
from ragcontract.statistics.levels import LEVEL_RUNS, level


class PastRun(Struct, frozen=True, kw_only=True):
    """A recorded run."""

    id: str  # of its entry, which begins with the time
    commit: str | None
    created_at: str
    verdict: str

    @property
    def day(self) -> date:
        """The day of the check, UTC."""
        return day_of(self.created_at)


def day_of(created_at: str) -> date:
    """Return the day of a time, UTC."""
    return datetime.fromisoformat(created_at).astimezone(UTC).date()


class PastLevel(Struct, frozen=True, kw_only=True):
    """The best level of a metric, and the first and the last day of its runs."""

    value: float
    first: date
    last: date


class Series(Struct, frozen=True, kw_only=True):
    """A metric in consecutive runs, the oldest first, over the queries that all of them have."""

    metric: Metric
    runs: Sequence[PastRun]
    values: Sequence[float | None]  # a mean for each run
    now: float | None = None  # the mean of the run that is checked
    queries: int = 0  # that all of them have
    todays: int = 0  # that have the metric in the run that is checked
    share: float = 0.0  # of the mean, which the query with the largest weight has

    @property
    def known(self) -> list[tuple[PastRun, float]]:
        """The runs that have a value."""
        return [(run, value) for run, value in zip(self.runs, self.values, strict=True) if value is not None]

    @property
    def level(self) -> PastLevel | None:
        """The best level; None if too few runs have a value."""
        runs = self.known
        best = level([value for _, value in runs], self.metric.better)
        if best is None:
            return None
        return PastLevel(value=best.value, first=runs[best.start][0].day, last=runs[best.stop - 1][0].day)

    @property
    def lacking(self) -> str:
        """Why there is no level, if there is none."""
        return f"history has {len(self.known)} of the {LEVEL_RUNS} runs that a level needs"


class PastSeries(Struct, frozen=True, kw_only=True):
    """The series of metrics with limits on levels, by key, or why the history cannot be read."""

    series: Mapping[str, Series] = {}
    problem: str = ""
    of: str = ""  # which runs are looked at, if there is something special about it
    skipped: str = ""  # why no history is asked, so that limits on levels are skipped
    notes: Sequence[str] = ()  # what was left out

    @property
    def runs(self) -> Sequence[PastRun]:
        """The runs of all series."""
        return [*{run.id: run for series in self.series.values() for run in series.runs}.values()]


class Past(Protocol):
    """Knows the recorded runs."""

    def series(self, contract: Contract, plan: Plan, run: Side, keys: Sequence[str]) -> PastSeries:
        """Return the metrics with these ``keys`` in the recorded runs that count under the section history."""


class WithoutRuns(Struct, frozen=True, kw_only=True):
    """Stands for the past where no recorded run can be looked at."""

    why: PastSeries

    def series(self, contract: Contract, plan: Plan, run: Side, keys: Sequence[str]) -> PastSeries:  # noqa: ARG002 (the seam's)
        return self.why


# Where no history can be named, limits on levels are skipped, and say so.
NOT_ASKED = WithoutRuns(why=PastSeries(skipped="limits on levels are only checked by `check` with a history"))
