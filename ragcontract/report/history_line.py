"""The trend of a metric in one line: ``MRR@5 on main, last 20 runs: ▆▆▇▅ 0.84 → 0.81; this run 0.78``.

It is made from the report alone, which may be that of a stranger.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

from msgspec import UNSET

from ragcontract.core import bounds
from ragcontract.core.metric import Direction, loss
from ragcontract.core.numbers import SAME, count, digits_for, fixed, sparkline
from ragcontract.core.phrase import Name, Phrase
from ragcontract.core.safe_text import clipped
from ragcontract.report.history_report import COMMIT_DIGITS, MetricHistory, branch_after, time_and_commit
from ragcontract.report.limit_text import digits_of
from ragcontract.report.record import Report

NONE = MetricHistory(values=[], ids=[])
LEAST_RUNS = 2  # a change needs two

Run = tuple[str, float]  # the id of an entry, and the mean


def trend_lines(report: Report) -> list[Phrase]:
    """Return a line for each of the first three metrics that have a history."""
    return [*islice(_lines(report), bounds.TREND_METRICS)]


def _lines(report: Report) -> Iterator[Phrase]:
    history = report.history
    if history is UNSET:
        return
    for key, metric in report.metrics.items():
        past = history.metrics.get(key, NONE)
        runs = [(run, value) for run, value in zip(past.ids, past.values, strict=False) if value is not None]
        if len(runs) >= LEAST_RUNS:
            numbers = _numbers(past, runs, metric.better, digits_of(report))
            yield (clipped(metric.label, bounds.NAME), *branch_after("on", history), *numbers)


def _numbers(past: MetricHistory, runs: Sequence[Run], better: Direction, digits: int) -> Phrase:
    """Return the newest values and that of this run, with what is special about it, or else about the values."""
    shown, now = runs[-bounds.TREND_SHOWN :], past.now
    first, last = shown[0][1], shown[-1][1]
    digits = max(digits, digits_for([(first, last), (last, last if now is None else now)]))
    values = [value for _, value in shown]
    is_flat = max(values) - min(values) <= SAME  # blocks of one height say nothing, and fill a line of a phone
    moved = fixed(last, digits) if is_flat else f"{sparkline(values)} {fixed(first, digits)} → {fixed(last, digits)}"
    worst = "" if now is None else _worst_since(runs, now, better)
    changed = () if worst else _changed_since(past, shown)
    return (
        f", last {count(len(shown), 'run')}: {moved}",
        *changed,
        "" if now is None else f"; this run {fixed(now, digits)}{worst}",
    )


def _worst_since(runs: Sequence[Run], now: float, better: Direction) -> str:
    """Return ``, the lowest since 2026-10-02``; empty if this run is not worse than the last."""
    word = "lowest" if better == "higher" else "highest"
    if loss(better, runs[-1][1], now) <= SAME:
        return ""
    as_bad = next((run for run, value in reversed(runs) if loss(better, value, now) <= SAME), None)
    since = "of these runs" if as_bad is None else f"since {time_and_commit(as_bad)[0][: len('2026-11-21')]}"
    return f", the {word} {since}"


def _changed_since(past: MetricHistory, shown: Sequence[Run]) -> Phrase:
    """Return ``, lower since abc1234`` for the last change point among the runs that are shown; empty without one."""
    ids = {run for run, _ in shown[1:]}
    point = next((point for point in reversed(past.change_points) if point.id in ids), None)
    if point is None or not point.commit:
        return ()
    word = "lower" if point.after < point.before else "higher"
    return (f", {word} since ", Name(point.commit[:COMMIT_DIGITS]))
