"""The charts of metrics over recorded runs, for history.html and for a fold of report.html.

A chart is an SVG without a script. Positions across are shares of its width, so it is as wide as its place, and its
text keeps its size. ``templates/trend.html`` renders it, with the same numbers as a table.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from math import ceil, floor, log10
from typing import NamedTuple

from msgspec import UNSET, Struct

from ragcontract.core import bounds
from ragcontract.core.gate import FALLING, OF_LEVEL, allowed_change, written
from ragcontract.core.metric import Scale
from ragcontract.core.numbers import FLAT, SAME, fixed
from ragcontract.core.safe_text import visible
from ragcontract.report.history_report import COMMIT_DIGITS, HistoryReport, time_and_commit
from ragcontract.report.record import Report

TOP, HEIGHT = 46, 130  # pixels: the commits of change points, and the plot
UNITS = 1_000  # the width of the line, which is stretched
DIGITS = 3  # of a mean
SPACE = 0.06  # above and below, a share of the range
MANY = 10_000  # from which the axis has numbers such as 2e+04
STEPS = (1, 2, 5, 10)  # of the axis, times a power of ten
FAR = 2  # a line further away than so many times the range of the values is not drawn, or it would flatten them


class Point(Struct, frozen=True, kw_only=True):
    """A metric in a run."""

    value: float | None
    when: str
    commit: str
    state: str  # the verdict, and what is special about the run


class Line(NamedTuple):
    """A line across a chart."""

    kind: str  # limit or level
    text: str
    value: float


class Chart(Struct, frozen=True, kw_only=True, dict=True):
    """A metric in consecutive runs, the oldest first, and where it is drawn."""

    label: str
    scale: Scale
    points: Sequence[Point]
    lines: Sequence[Line]
    changes: Mapping[int, str]  # the commits of change points, by the place of their runs

    @cached_property
    def values(self) -> list[float]:
        """The values of the runs that have one."""
        return [point.value for point in self.points if point.value is not None]

    @cached_property
    def drawn(self) -> list[tuple[int, Point]]:
        """The runs that are drawn, with their places; a run without a value is a gap."""
        return [(place, self.points[place]) for place in thinned([point.value for point in self.points])]

    @property
    def marks(self) -> list[tuple[int, Point]]:
        """The points that are drawn."""
        return [(place, point) for place, point in self.drawn if point.value is not None]

    @cached_property
    def near(self) -> list[Line]:
        """The lines that are drawn."""
        low, high = min(self.values), max(self.values)
        reach = FAR * max(high - low, FLAT)
        return [line for line in self.lines if low - reach <= line.value <= high + reach]

    @cached_property
    def axis(self) -> tuple[float, float]:
        """The ends of the axis: the values and lines with some space around, but little beyond the scale."""
        shown = [*self.values, *(line.value for line in self.near)]
        low, high = min(shown), max(shown)
        space = max(SPACE * (high - low), (FLAT - (high - low)) / 2)
        beyond = SPACE * space
        least, most = min(low, self.scale.low) - beyond, max(high, self.scale.high) + beyond
        return max(low - space, least), min(high + space, most)

    @property
    def path(self) -> str:
        """The line through the points, with gaps where a run has no value."""
        path, command = "", "M"
        for place, point in self.drawn:
            if point.value is not None:
                path += f"{command}{self.across(place) * UNITS:.0f} {self.down(point.value):.1f}"
            command = "M" if point.value is None else "L"
        return path

    @property
    def ticks(self) -> Iterator[tuple[float, str]]:
        """Two to five round numbers on the axis, within the scale."""
        low, high = self.axis
        least = (high - low) / 4
        power = 10.0 ** floor(log10(least))
        step = next(step * power for step in STEPS if step * power >= least - SAME)
        digits = max(0, -floor(log10(step) + SAME))
        for number in range(ceil(low / step - SAME), floor(high / step + SAME) + 1):
            tick = number * step
            if self.scale.low - SAME <= tick <= self.scale.high + SAME:
                yield tick, fixed(tick, digits) if abs(tick) < MANY else f"{tick:.2g}"

    def across(self, place: int) -> float:
        """Return where a run is, as a share of the width."""
        return place / (len(self.points) - 1) if len(self.points) > 1 else 0.5

    def down(self, value: float) -> float:
        """Return where a value is, in pixels from the top."""
        low, high = self.axis
        return TOP + HEIGHT * (high - value) / (high - low)


def thinned(values: Sequence[float | None]) -> list[int]:
    """Return the places of the values that are drawn: the first, the last, and of others the extremes of each bucket.

    A bucket without a value keeps its first place, so that the line has a gap there.
    """
    if len(values) <= bounds.PAGE_POINTS:
        return list(range(len(values)))
    inner, buckets = len(values) - 2, (bounds.PAGE_POINTS - 2) // 2
    kept = [0]
    for bucket in range(buckets):
        start, stop = (1 + inner * end // buckets for end in (bucket, bucket + 1))
        known = [(value, place) for place in range(start, stop) if (value := values[place]) is not None]
        kept += sorted({min(known)[1], max(known)[1]}) if known else [start]
    return [*kept, len(values) - 1]


def lines_of(limits: Iterable[tuple[str, float, bool]], level: float | None, scale: Scale) -> Iterator[Line]:
    """Yield the lines of limits that do not depend on a baseline, and of the best level.

    A limit is given by its kind, its value, and whether it is relative.
    """
    for kind, limit, relative in limits:
        if kind in {"minimum", "maximum"}:
            yield Line("limit", f"{kind} {written(limit)}", limit)
        elif kind in OF_LEVEL and level is not None:
            allowed = allowed_change(limit, level, scale, relative=relative)
            way, worst = ("below", level - allowed) if kind in FALLING else ("above", level + allowed)
            of_level = f"{written(limit, relative=relative)} {way} the best level"
            yield Line("limit", f"limit {fixed(worst, DIGITS)} ({of_level})", worst)
    if level is not None:
        yield Line("level", f"best level {fixed(level, DIGITS)}", level)


def charts_of(report: Report) -> list[Chart]:
    """Return the charts of a check's history, with this run as the last point; none if report.json has no values."""
    history = report.history
    if history is UNSET:
        return []
    charts = [_chart_of(report, history, key) for key in history.metrics if key in report.metrics]
    return [chart for chart in charts if chart.values]


def _chart_of(report: Report, history: HistoryReport, key: str) -> Chart:
    metric, past = report.metrics[key], history.metrics[key]
    points, places = [], {}
    for place, (entry_id, value) in enumerate(zip(past.ids, past.values, strict=False)):
        when, commit = time_and_commit(entry_id)
        state = "fail" if entry_id in history.failed else "pass"
        points.append(Point(value=value, when=when, commit=commit, state=state))
        places[entry_id] = place
    if past.now is not None:
        when = visible(report.created_at[: len("2026-11-21T20:30")]).replace("T", " ")
        commit = (report.source.commit or "")[:COMMIT_DIGITS] if report.source else ""
        points.append(Point(value=past.now, when=when, commit=commit, state=f"{report.verdict}, this run"))
    gates = [gate for gate in report.gates if gate.metric == key and gate.of is None]
    changed = [change for change in past.change_points if change.id in places]
    return Chart(
        label=metric.label,
        scale=metric.scale,
        points=points,
        lines=list(lines_of(((gate.kind, gate.limit, gate.relative) for gate in gates), past.level, metric.scale)),
        changes={places[change.id]: time_and_commit(change.id)[1] for change in changed},
    )
