"""How often limits on levels and change points are wrong, and what is missed: `python -m benchmarks.history [FOLDER]`.

Draws histories from models of noise and writes the tables of docs/background/history.md: the share of checks that fail
although nothing changed, by what the run is compared with and by the limit; the share of histories without a change in
which a change point was ever shown while they grew; and the share of planted steps that are found. With the folder of
the Cranfield collection (`benchmarks/rebuilt_index.py`), also what is shown of an index that is rebuilt for each run.
All is seeded.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from multiprocessing import Pool
from pathlib import Path
from random import Random
from statistics import fmean, median, stdev

from benchmarks import tables
from benchmarks.rebuilt_index import Collection
from ragcontract.statistics.change_points import ALPHA, LEAST_RUNS, change_points
from ragcontract.statistics.levels import level

PAGE = Path(__file__).parent.parent / "docs" / "background" / "history.md"
HISTORIES = 1_000  # a cell
WINDOW = 30
CHECKS = 40  # times as many checks as histories: they cost little
SIGMAS = (1, 2, 3, 4)
ALPHAS = (0.01, ALPHA)
GROWN = 100  # runs
NEAR = 3  # runs; a step that is found so far from its place counts
DIPS = 0.05  # how often a run has one
# Levels in standard deviations, and how many runs each has.
STEPS = {
    f"{size}σ after {after} runs, {before} before": ((0, before), (-size, after))
    for before in (80, 30)
    for size, after in ((3, 5), (2, 10), (3, 10))
} | {
    "both of 3σ and 3σ, 30 runs each": ((0, 30), (-3, 30), (-6, 30)),
    "both of 3σ and its repair, 30 runs each": ((0, 30), (-3, 30), (0, 30)),
}
SMALLER_AT = 60
METRICS = ("MRR@5", "Recall@5")
INDEXES = {"as it is": 1.0, "3 in 10 documents missing": 0.7, "half of the documents missing": 0.5}

Series = list[float]
Noise = Callable[[Random, int], Series]


def correlated(correlation: float) -> Noise:
    """Return noise with a standard deviation of 1 of which neighbours are correlated."""

    def noise(dice: Random, runs: int) -> Series:
        values = [dice.gauss(0, 1)]
        for _ in range(runs - 1):
            values.append(correlation * values[-1] + (1 - correlation**2) ** 0.5 * dice.gauss(0, 1))
        return values

    return noise


def ties(dice: Random, runs: int) -> Series:
    """Return values of which four in five are equal, as those of a small golden set."""
    return [dice.choice((-1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)) for _ in range(runs)]


def rare_dips(dice: Random, runs: int) -> Series:
    """Return little noise with a deep dip in one run of twenty, as those of a service that fails now and then."""
    return [dice.gauss(0, 0.1) - 3 * (dice.random() < DIPS) for _ in range(runs)]


def two_values(second: float) -> Noise:
    """Return noise of two values, of which the second has this share, as of a retriever that hardly varies."""
    return lambda dice, runs: [-float(dice.random() < second) for _ in range(runs)]


NOISES: dict[str, Noise] = {
    "independent": correlated(0),
    "autocorrelation 0.3": correlated(0.3),
    "autocorrelation 0.6": correlated(0.6),
    "ties": ties,
    "rare dips": rare_dips,
    "two values, 2 %": two_values(0.02),
    "two values, 20 %": two_values(0.2),
}


def best_median_of_3(window: Sequence[float]) -> float:
    """Return the best median of three consecutive runs."""
    return max(median(window[start : start + 3]) for start in range(len(window) - 2))


def best_mean_of_5(window: Sequence[float]) -> float:
    """Return the level."""
    best = level(window)
    if best is None:
        raise ValueError(f"a window of {len(window)} runs has no level")
    return best.value


COMPARED: dict[str, Callable[[Sequence[float]], float]] = {
    "the previous run": lambda window: window[-1],
    "the best run": max,
    "the best median of 3": best_median_of_3,
    "**the best mean of 5**": best_mean_of_5,
}


def failing_checks(trials: int, seed: int = 1) -> dict[str, list[float]]:
    """Return the shares of checks that fail without a change, a limit of each of ``SIGMAS``."""
    dice = Random(seed)
    failed = {name: [0] * len(SIGMAS) for name in COMPARED}
    for _ in range(trials):
        *window, now = correlated(0)(dice, WINDOW + 1)
        for name, best in COMPARED.items():
            drop = best(window) - now
            for column, limit in enumerate(SIGMAS):
                failed[name][column] += drop > limit
    return {name: [count / trials for count in counts] for name, counts in failed.items()}


def ever_shown(name: str, alpha: float, histories: int) -> float:
    """Return the share of histories without a change in which a point was ever shown while they grew."""
    dice = Random(f"2 {name}")
    grown = [NOISES[name](dice, GROWN) for _ in range(histories)]
    return share(any(shown(values[:runs], alpha) for runs in range(LEAST_RUNS, GROWN + 1)) for values in grown)


def shown(values: Sequence[float], alpha: float) -> list[int]:
    """Return the positions of the change points."""
    return [point.position for point in change_points(values, alpha=alpha)]


def detected(name: str, alpha: float, histories: int) -> float:
    """Return the share of histories in which all planted steps are found near their places, with independent noise."""
    dice = Random(f"3 {name}")
    centers = [center for center, runs in STEPS[name] for _ in range(runs)]
    places = [run for run in range(1, len(centers)) if centers[run] != centers[run - 1]]

    def is_found(values: Sequence[float]) -> bool:
        points = shown(values, alpha)
        return all(any(abs(point - place) <= NEAR for point in points) for place in places)

    return share(is_found([dice.gauss(center, 1) for center in centers]) for _ in range(histories))


def share(truths: Iterable[bool]) -> float:
    """Return how many of them are true, from 0 to 1."""
    return fmean(truths)


def level_table(histories: int = HISTORIES) -> str:
    """Return the first table."""
    checks = CHECKS * histories
    body = [[name, *(tables.share(each, 1) for each in row)] for name, row in failing_checks(checks).items()]
    head = ("compared with", *(f"{limit}σ" for limit in SIGMAS))
    return f"{tables.rows(head, body, 1)}\nEach number is the share of {checks:,} simulated checks that fail.\n"


def alarm_table(histories: int = HISTORIES) -> str:
    """Return the table of points that are shown without a change."""
    return _by_alpha("noise", ever_shown, list(NOISES), ALPHAS, histories)


def step_table(histories: int = HISTORIES) -> str:
    """Return the table of steps that are found."""
    return _by_alpha("steps", detected, list(STEPS), (ALPHA,), histories)


def _by_alpha(
    head: str,
    cell: Callable[[str, float, int], float],
    names: Sequence[str],
    alphas: Sequence[float],
    histories: int,
) -> str:
    """Return a table with a row for each name, and a column for each of ``alphas``."""
    cases = [(name, alpha, histories) for name, alpha in product(names, alphas)]
    with Pool(2) as pool:
        shares = iter(pool.starmap(cell, cases, chunksize=1) if histories == HISTORIES else [cell(*of) for of in cases])
    body = [[name, *(tables.share(next(shares), 1) for _ in alphas)] for name in names]
    rows = tables.rows((head, *(f"α = {alpha}" for alpha in alphas)), body, 1)
    return f"{rows}\nEach number is from {histories:,} histories, {tables.precision(histories)} at most.\n"


def rebuilt_table(folder: Path, grown: int = GROWN, smaller_at: int = SMALLER_AT) -> str:
    """Return the table of an index that is rebuilt for each run, and is smaller from a run on."""
    collection, body = Collection(folder), []
    for name, kept in INDEXES.items():
        dice = Random(4)
        runs = [collection.run(dice, kept if run >= smaller_at else 1) for run in range(grown)]
        for metric, columns in zip(METRICS, zip(*runs, strict=True), strict=True):
            values = [fmean(column) for column in columns]
            before, after = values[:smaller_at], values[smaller_at:]
            drop = (fmean(before) - fmean(after)) / (stdev(before) or 1)
            points = {runs: shown(values[:runs], ALPHA) for runs in range(LEAST_RUNS, grown + 1)}
            first = next((runs for runs, places in points.items() if places), None)
            body.append(
                [
                    name,
                    metric,
                    f"{fmean(before):.3f}",
                    f"{drop:.1f}σ" if kept < 1 else "-",
                    "never" if first is None else f"after run {first}",
                    ", ".join(f"run {place + 1}" for place in points[grown]) or "none",
                ]
            )
    head = ("index", "metric", "mean", "loss", "first shown", "change points at the end")
    return f"{tables.rows(head, body, 6)}\nOf {grown} runs, run {smaller_at + 1} is the first with the smaller index.\n"


def main(folders: Sequence[str]) -> None:
    """Write the tables."""
    tables.write("level-alarms", level_table(), PAGE)
    tables.write("false-points", alarm_table(), PAGE)
    tables.write("found-steps", step_table(), PAGE)
    for folder in folders:
        tables.write("rebuilt-history", rebuilt_table(Path(folder)), PAGE)


if __name__ == "__main__":
    main(sys.argv[1:])
