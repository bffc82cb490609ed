"""The charts of metrics over recorded runs, for history.html and for a fold of report.html.

A chart is an SVG without a script. Positions across are shares of its width, so it is as wide as its place, and its
text keeps its size. ``templates/trend.html`` renders it, with the same numbers as a table.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from math import ceil, floor, log10

from msgspec import UNSET, Struct

from ragcontract.core import bounds
from ragcontract.core.gate import written
from ragcontract.core.metric import Direction, Scale
from ragcontract.core.numbers import FLAT, SAME, count, fixed
from ragcontract.core.phrase import Name, Phrase
from ragcontract.core.safe_text import clipped, visible
from ragcontract.report.history_report import COMMIT_DIGITS, MetricHistory
from ragcontract.report.record import Report

TOP, HEIGHT, BOTTOM = 46, 130, 22  # pixels: the commits of change points, the plot, the days
UNITS = 1_000  # the width of the line, which is stretched
DIGITS = 3  # of a mean
SPACE = 0.06  # above and below, a share of the range
MANY = 10_000  # from which the axis has numbers such as 2e+04
STEPS = (1, 2, 5, 10)  # of the axis, times a power of ten
FAR = 2  # a line further away than so many times the range of the values is not drawn, or it would flatten them
LABEL, LABEL_ROWS, LABEL_TURNS = (
    0.22,
    3,
    0.75,
)  # the width of a commit on a phone; their rows; from where it is on the left
RADII = ((60, 3.5), (200, 2.5))  # of points, by how many there are at most
SMALLEST = 1.8
_ID = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)\d\dZ-([0-9a-f]{7})[0-9a-f]{5}-", re.ASCII)


class Point(Struct, frozen=True, kw_only=True):
    """A metric in a run."""

    value: float | None
    when: str
    commit: str
    state: str
    passed: bool

    @property
    def text(self) -> str:
        """The value, as charts and tables show it."""
        return fixed(self.value, DIGITS)


class Trend(Struct, frozen=True, kw_only=True):
    """A metric in consecutive runs, the oldest first."""

    label: str
    scale: Scale
    points: Sequence[Point]
    limits: Sequence[tuple[str, float]] = ()  # each with its text
    level: tuple[str, float] | None = None
    changes: Mapping[int, str] = {}  # the commits of change points, by the place of their runs


class Mark(Struct, frozen=True, kw_only=True):
    """A point, and where it is."""

    x: str
    y: str
    point: Point


class ChangeMark(Struct, frozen=True, kw_only=True):
    """A change point, and where its commit is written; nowhere without a row."""

    x: str
    commit: str
    row: int | None
    anchor: str


class Chart(Struct, frozen=True, kw_only=True):
    """What is drawn of a trend."""

    label: str
    now: str
    summary: str  # the text alternative
    path: str
    radius: float
    marks: Sequence[Mark]
    runs: int
    ticks: Sequence[tuple[str, str]]  # where, and the number
    lines: Sequence[tuple[str, str | None, str]]  # class, where, and text; None if it is too far away
    changes: Sequence[ChangeMark]
    days: tuple[str, str]


def when_of(entry_id: str) -> tuple[str, str]:
    """Return the time (UTC) and the commit in the id of an entry; the id itself if it is not one."""
    match = _ID.match(entry_id)
    if match is None:
        return clipped(entry_id, bounds.HTML_NAME), ""
    year, month, day, hour, minute, commit = match.groups()
    return f"{year}-{month}-{day} {hour}:{minute}", commit


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


def chart_of(trend: Trend) -> Chart | None:
    """Return what is drawn of a trend; None if no run has a value."""
    values = [point.value if _is_drawn(point.value) else None for point in trend.points]  # report.json may say 1e308
    known = [value for value in values if value is not None]
    if not known:
        return None
    lines = [("limit", *limit) for limit in trend.limits] + ([("level", *trend.level)] if trend.level else [])
    lines = [line for line in lines if _is_drawn(line[2])]
    low, high = _range(known, [value for _, _, value in lines], trend.scale)
    last = len(values) - 1

    def x_of(place: int) -> float:
        return place / last if last else 0.5

    def y_of(value: float) -> float:
        return TOP + HEIGHT * (high - value) / (high - low)

    shown = thinned(values)
    marks, path = [], ""
    for place in shown:
        value = values[place]
        path += "M" if value is None or not path else ""
        if value is not None:
            path = f"{path.rstrip('M')}{'M' if path.endswith('M') else 'L'}{x_of(place) * UNITS:.0f} {y_of(value):.1f}"
            marks.append(Mark(x=_share(x_of(place)), y=f"{y_of(value):.1f}", point=trend.points[place]))
    return Chart(
        label=trend.label,
        now=fixed(known[-1], DIGITS),
        summary=_summary(trend, known),
        path=path.rstrip("M"),
        radius=next((radius for most, radius in RADII if len(shown) <= most), SMALLEST),
        marks=marks,
        runs=len(values),
        ticks=[(f"{y_of(tick):.1f}", text) for tick, text in _ticks(low, high, trend.scale)],
        lines=[(kind, f"{y_of(at):.1f}" if low <= at <= high else None, text) for kind, text, at in lines],
        changes=list(_change_marks({x_of(place): commit for place, commit in sorted(trend.changes.items())})),
        days=(trend.points[0].when[:10], trend.points[-1].when[:10]),
    )


def _is_drawn(value: float | None) -> bool:
    return value is not None and abs(value) <= bounds.SCORE


def _share(part: float) -> str:
    return f"{part * 100:.2f}%"


def _range(known: Sequence[float], lines: Sequence[float], scale: Scale) -> tuple[float, float]:
    """Return the ends of the axis: the values, lines that are near, and some space, but little beyond the scale."""
    low, high = min(known), max(known)
    wide = max(high - low, FLAT)
    near = [line for line in lines if low - FAR * wide <= line <= high + FAR * wide]
    low, high = min(low, *near, high), max(high, *near, low)
    space = max(SPACE * (high - low), (FLAT - (high - low)) / 2)
    return max(low - space, min(low, scale.low) - SPACE * space), min(
        high + space, max(high, scale.high) + SPACE * space
    )


def _ticks(low: float, high: float, scale: Scale) -> Iterator[tuple[float, str]]:
    """Yield two to five round numbers on the axis, within the scale."""
    least = (high - low) / 4
    power = 10.0 ** floor(log10(least))
    step = next(step * power for step in STEPS if step * power >= least - SAME)
    digits = max(0, -floor(log10(step) + SAME))
    for number in range(ceil(low / step - SAME), floor(high / step + SAME) + 1):
        tick = number * step
        if scale.low - SAME <= tick <= scale.high + SAME:
            yield tick, fixed(tick, digits) if abs(tick) < MANY else f"{tick:.2g}"


def _change_marks(changes: Mapping[float, str]) -> Iterator[ChangeMark]:
    """Yield the change points, with their commits in rows in which none covers another."""
    ends = [0.0] * LABEL_ROWS
    for x, commit in changes.items():
        start = x - LABEL if x > LABEL_TURNS else x
        row = next((row for row, end in enumerate(ends) if end <= max(start, 0)), None)
        if row is not None:
            ends[row] = start + LABEL
        anchor = "end" if x > LABEL_TURNS else "start"
        yield ChangeMark(x=_share(x), commit=commit, row=row, anchor=anchor)


def _summary(trend: Trend, known: Sequence[float]) -> str:
    """Return the text alternative of a chart."""
    days = dict.fromkeys((trend.points[0].when[:10], trend.points[-1].when[:10]))
    numbers = zip(("first", "last", "lowest", "highest"), (known[0], known[-1], min(known), max(known)), strict=True)
    parts = [
        f"{trend.label} in {count(len(trend.points), 'run')}, {' to '.join(days)}",
        ", ".join(f"{name} {fixed(value, DIGITS)}" for name, value in numbers),
    ]
    if trend.changes:
        parts.append(f"it changed at {', '.join(commit for _, commit in sorted(trend.changes.items()))}")
    return "; ".join(parts)


def limit_lines(
    kind: str, limit: float, level: float | None, scale: Scale, *, relative: bool
) -> Iterator[tuple[str, float]]:
    """Yield the line of a limit that does not depend on a baseline, with its text; ``level`` is the best one."""
    if kind in {"minimum", "maximum"}:
        yield f"{kind} {written(limit)}", limit
    elif kind in {"level_drop", "level_rise"} and level is not None:
        allowed = limit * abs(level - scale.zero) if relative else limit
        worst = level - allowed if kind == "level_drop" else level + allowed
        way = "below" if kind == "level_drop" else "above"
        yield f"limit {fixed(worst, DIGITS)} ({written(limit, relative=relative)} {way} the best level)", worst


def worse(better: Direction, before: float, after: float) -> bool:
    """Return whether a change of a metric is one for the worse."""
    return after < before if better == "higher" else after > before


def charts_of(report: Report) -> list[Chart]:
    """Return the charts of a check's history, with this run as the last point; none if report.json has no values."""
    history = report.history
    if history is UNSET:
        return []
    failed = frozenset(history.failed)
    made = (_trend_of(report, key, metric, failed) for key, metric in history.metrics.items() if key in report.metrics)
    return [chart for trend in made if (chart := chart_of(trend))]


def title_of(report: Report) -> Phrase:
    """Return the title of the fold with the charts."""
    history = report.history
    if history is UNSET:
        return ()
    runs = max((len(metric.values) for metric in history.metrics.values()), default=0)
    of_branch = (" of ", Name(history.branch)) if history.branch else ()
    return ("Trend: the last ", count(runs, "recorded run"), *of_branch, ", and this run")


def _trend_of(report: Report, key: str, metric: MetricHistory, failed: frozenset[str]) -> Trend:
    about = report.metrics[key]
    points = [
        Point(value=value, when=when, commit=commit, state="fail" if is_failed else "pass", passed=not is_failed)
        for entry_id, value in zip(metric.ids, metric.values, strict=False)
        for (when, commit), is_failed in [(when_of(entry_id), entry_id in failed)]
    ]
    commit = (report.source.commit or "")[:COMMIT_DIGITS] if report.source else ""
    if metric.now is not None:
        points.append(
            Point(
                value=metric.now,
                when=visible(report.created_at[: len("2026-11-21T20:30")]).replace("T", " "),
                commit=commit,
                state=f"this run, {report.verdict}",
                passed=report.verdict == "pass",
            )
        )
    level = metric.level.value if metric.level else None
    limits = [
        line
        for gate in report.gates
        if gate.metric == key and gate.tag is None and gate.tier is UNSET
        for line in limit_lines(gate.kind, gate.limit, level, about.scale, relative=gate.relative)
    ]
    places = {entry_id: place for place, entry_id in enumerate(metric.ids)}
    return Trend(
        label=about.label,
        scale=about.scale,
        points=points,
        limits=limits,
        level=None if level is None else (f"best level {fixed(level, DIGITS)}", level),
        changes={
            places[change.id]: (change.commit or "unknown")[:COMMIT_DIGITS]
            for change in metric.change_points
            if places.get(change.id, len(points)) < len(points)
        },
    )
