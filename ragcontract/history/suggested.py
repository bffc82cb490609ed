"""Limits that the recorded runs of a branch suggest, and what these limits would have said of these very runs.

The noise of a metric is how much a run's mean varies between its change points. A limit is so many times the noise that
all limits together fail about one good run a year, at the pace of the branch. Then they are replayed: each run is
compared with the run before, and with the level of the runs before it. What fails at a change for the worse, or soon
after it, is a true alarm.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from math import sqrt

from msgspec import Struct

from ragcontract.contract.resolve import Contract
from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.metric import Metric, loss
from ragcontract.core.numbers import SAME, as_written, count, digits_for, fixed
from ragcontract.core.safe_text import clipped
from ragcontract.evaluation.past import PastRun, Series
from ragcontract.evaluation.plan import Plan
from ragcontract.history.contract_entries import contract_in_message
from ragcontract.history.entry import short_commit
from ragcontract.history.for_check import HistoryOfCheck
from ragcontract.history.series import Rescoring
from ragcontract.report.terminal import aligned
from ragcontract.statistics.change_points import LEAST_RUNS, ChangePoint, change_points
from ragcontract.statistics.levels import LEAST_SIGMAS, LEVEL_RUNS, level, mean, sigma
from ragcontract.statistics.significance import exceeded_by, t_quantile
from ragcontract.statistics.suggested_limits import round_up

FALSE_A_YEAR = 1.0  # runs that fail by chance, by all limits together
YEAR, SHORT = 365.25, 14  # days; a shorter history does not show how many runs a year has
SOON = 5  # runs after a change for the worse at which an alarm is still a true one
LEVEL_SPREAD = 1.03  # standard deviation of the difference of a run and the level, in that of a run


class Fall(Struct, frozen=True, kw_only=True):
    """A change point for the worse, and which limits fail at it or soon after."""

    run: PastRun
    point: ChangePoint
    caught: Sequence[str]  # the sections of these limits; empty if it is missed


class FromHistory(Struct, frozen=True, kw_only=True):
    """The limits of one metric, in its own unit, and their replay."""

    metric: Metric
    runs: Sequence[PastRun]  # those with a value, the oldest first
    mean: float
    sigma: float
    # In fail_on, from the run before; in history, from the level; None if noise is as large as any loss.
    limits: Mapping[str, float | None]
    falls: Sequence[Fall]
    false: Sequence[PastRun]  # those that fail although there is no change


class Proposal(Struct, frozen=True, kw_only=True):
    """The limits of all metrics."""

    contract: str  # its name
    of: Sequence[FromHistory]
    runs_a_year: float
    notes: Sequence[str]  # what was left out


def proposal_of(history: HistoryOfCheck, contract: Contract, plan: Plan, keys: Sequence[str]) -> Proposal:
    """Return the limits that the newest runs of a branch suggest for the metrics with these ``keys``.

    Raises :class:`InputError` if the history cannot be read, or if no metric has enough runs.
    """
    facts = history.facts(None)
    if facts.entries is None:
        raise InputError([facts.problem])
    past = Rescoring(facts.entries.store, contract.config_file, plan, keys)
    clean = (entry for entry in facts.entries.of_branch(facts.branch) if not entry.source.dirty)
    runs = [past.run_of(entry) for entry in islice(clean, bounds.SUGGESTED_RUNS)]
    every = past.series(runs[::-1])
    enough = [series for series in every.values() if len(series.known) >= LEAST_RUNS]
    few = (
        f"{series.metric.label}: {count(len(series.known), 'run')} of the {LEAST_RUNS} that limits need have a value"
        for series in every.values()
        if series not in enough
    )
    notes = [*facts.warnings(), *past.notes(), *few]
    if not enough:
        on = f" on {clipped(facts.branch, bounds.BRANCH)}" if facts.branch else ""
        of = f"{contract_in_message(facts.entries.contract)}{on}"
        raise InputError([f"history: {of} has no metric with the {LEAST_RUNS} runs that limits need"], warnings=notes)
    pace = len(runs) * YEAR / max(_days(runs), SHORT)  # of a short history, as if no more runs came within two weeks
    tail = FALSE_A_YEAR / (2 * len(enough) * max(pace, 1.0))
    window = contract.config.history.window
    of_metrics = [_of_series(series, tail, window) for series in enough]
    return Proposal(contract=facts.entries.contract, of=of_metrics, runs_a_year=pace, notes=notes)


def _days(runs: Sequence[PastRun]) -> int:
    days = [run.day for run in runs]
    return (max(days) - min(days)).days


def _of_series(series: Series, tail: float, window: int) -> FromHistory:
    """Return the limits that a good run breaks with a probability of ``tail`` each, and their replay.

    The difference of two runs varies by √2 σ. The best of the means of five runs is above the mean of all runs by about
    as much as the best of as many independent means, and varies little.
    """
    metric, runs = series.metric, [run for run, _ in series.known]
    values = [value for _, value in series.known]
    points = change_points(values)
    splits = [point.position for point in points]
    noise = sigma(values, splits) or 0.0
    times = t_quantile(tail, len(values) - len(splits) - 1)  # as sigma itself is an estimate
    above = exceeded_by(1 / (window - LEVEL_RUNS + 1)) / sqrt(LEVEL_RUNS)
    now, highest = points[-1].after if points else mean(values), level(values, metric.better)
    best = highest.value if highest else now
    limits = {
        "fail_on": _limit(series, best, sqrt(2) * times * noise, noise),
        "history": _limit(series, best, (above + LEVEL_SPREAD * times) * noise, noise),
    }
    worse = [point for point in points if loss(metric.better, point.before, point.after) > SAME]
    alarms = _replayed(series, values, limits, window, [point.position for point in worse])
    falls, soon = [], set[int]()
    for point in worse:
        near = range(point.position, point.position + SOON + 1)
        caught = sorted({section for at in near for section in alarms.get(at, ())})
        falls.append(Fall(run=runs[point.position], point=point, caught=caught))
        soon.update(near)
    false = [runs[at] for at in alarms if at not in soon]
    return FromHistory(metric=metric, runs=runs, mean=now, sigma=noise, limits=limits, falls=falls, false=false)


def _limit(series: Series, best: float, wanted: float, noise: float) -> float | None:
    """Return a limit that no loss of a single query breaks; None if no run could break it."""
    scale = series.metric.scale
    loss_of_query = series.share * (scale.high - scale.low)
    limit = round_up(max(wanted, LEAST_SIGMAS * noise, loss_of_query))
    return limit if SAME < limit < abs(best - series.metric.worst) - SAME else None


def _replayed(
    series: Series, values: Sequence[float], limits: Mapping[str, float | None], window: int, worse: Sequence[int]
) -> dict[int, list[str]]:
    """Return the positions of runs that fail, with the sections of the limits that they break.

    Some runs after a change for the worse, the loss counts as accepted: the level is that of the runs since.
    """
    alarms: dict[int, list[str]] = {}
    for at in range(1, len(values)):
        since = max((position for position in worse if position + SOON < at), default=0)
        best = level(values[max(since, at - window) : at], series.metric.better)
        before = {"fail_on": values[at - 1], "history": best.value if best else None}
        for section, limit in limits.items():
            of = before[section]
            if limit is not None and of is not None and loss(series.metric.better, of, values[at]) > limit + SAME:
                alarms.setdefault(at, []).append(section)
    return alarms


def explained(proposal: Proposal) -> Iterator[str]:
    """Yield lines of text: the noise and the limits, the false alarms, and the changes that were caught or missed."""
    cells = [["", "runs", "latest mean", "σ without changes", "fail_on", "history"]]
    for of in proposal.of:
        limits = ["none" if limit is None else as_written(limit) for limit in of.limits.values()]
        cells.append([of.metric.label, f"{len(of.runs):,}", fixed(of.mean, 4), fixed(of.sigma, 4), *limits])
    yield from aligned(cells)
    yield ""
    if any(of.sigma > SAME for of in proposal.of):
        yield f"With {proposal.runs_a_year:,.0f} runs a year, these limits fail about one good run a year."
    for of in proposal.of:
        if None in of.limits.values():
            why = "vary so much" if of.sigma > SAME else "are so near the worst value"
            yield f"{of.metric.label}: its runs {why} that no run could break a limit"
        elif of.sigma <= SAME:
            which = "one query, the one with the largest weight"
            yield f"{of.metric.label}: these runs do not vary, so the limits are the loss of {which}"
    runs = list({run.id: run for of in proposal.of for run in of.runs}.values())
    false, days = len({run.id for of in proposal.of for run in of.false}), _days(runs)
    rate = f", {false * YEAR / days:.0f} a year" if false and days >= SHORT else ""
    short = "" if days >= SHORT else f"; fewer than {SHORT} days do not show how many that is a year"
    alarms = f"{false or 'none'} in {count(len(runs), 'run')} over {count(days, 'day')}{rate}{short}"
    yield f"False alarms that these limits would have given: {alarms}"
    for of in proposal.of:
        yield from (_line(of, fall) for fall in of.falls)
    if not any(of.falls for of in proposal.of):
        yield "These runs have no change for the worse."


def _line(of: FromHistory, fall: Fall) -> str:
    before, after = fall.point.before, fall.point.after
    digits = digits_for([(before, after)])
    change = f"{fixed(before, digits)} → {fixed(after, digits)}"
    by = f", by {' and '.join(fall.caught)}" if fall.caught else ""
    where = f"{short_commit(fall.run.commit)} ({fall.run.day})"
    return f"{of.metric.label}: {'caught' if fall.caught else 'missed'}: {change} at {where}{by}"
