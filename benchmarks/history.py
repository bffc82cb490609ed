"""How often limits on levels and change points cry wolf, and what change points find: `python -m benchmarks.history`.

Draws histories from models of noise and prints the tables of docs/history.md. The first has the share of checks that
fail although nothing changed, by what the run is compared with and by the limit. The second has the share of histories
without a change in which a change point was ever shown while they grew, and the share of planted steps that are found.
All is seeded. ``--histories`` is how many are drawn for a cell of the second table.
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from random import Random
from statistics import median

from ragcontract.statistics.change_points import LEAST_RUNS, change_points
from ragcontract.statistics.levels import level

WINDOW = 30
CHECKS = 40  # times as many checks as histories: they cost little
SIGMAS = (1, 2, 3, 4)
ALPHAS = (0.01, 0.001)
GROWN = 100  # runs
BEFORE = 50  # runs before a planted step
NEAR = 3  # runs; a step that is found so far from its place counts
DIPS = 0.05  # how often a run has one
STEPS = ((3.0, 5), (2.0, 10), (3.0, 10))  # standard deviations, runs after it

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


def ever_shown(name: str, alpha: float, histories: int, seed: int = 2) -> float:
    """Return the share of histories without a change in which a point was ever shown while they grew."""
    dice = Random(f"{seed} {name}")
    grown = [NOISES[name](dice, GROWN) for _ in range(histories)]
    return share(any(shown(values[:runs], alpha) for runs in range(LEAST_RUNS, GROWN + 1)) for values in grown)


def shown(values: Sequence[float], alpha: float) -> bool:
    """Return whether a series has a change point."""
    return bool(change_points(values, alpha=alpha))


def detected(size: float, after: int, alpha: float, histories: int, seed: int = 3) -> float:
    """Return the share of planted steps that are found near their place, with independent noise."""
    dice = Random(f"{seed} {size} {after}")

    def is_near(values: Sequence[float]) -> bool:
        return any(abs(point.position - BEFORE) <= NEAR for point in change_points(values, alpha=alpha))

    return share(
        is_near([dice.gauss(0, 1) - size * (run >= BEFORE) for run in range(BEFORE + after)]) for _ in range(histories)
    )


def share(truths: Iterable[bool]) -> float:
    """Return how many of them are true, from 0 to 1."""
    counted = list(truths)
    return sum(counted) / len(counted)


def main(argv: list[str]) -> int:
    """Print both tables as Markdown."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.history", description=__doc__)
    parser.add_argument("--histories", type=int, default=1_000)
    histories = parser.parse_args(argv).histories
    print("| compared with |", " | ".join(f"{limit}σ" for limit in SIGMAS), "|")
    for name, shares in failing_checks(CHECKS * histories).items():
        print(f"| {name} |", " | ".join(f"{100 * each:.1f} %" for each in shares), "|", flush=True)
    print("\n| noise |", " | ".join(f"α = {alpha}" for alpha in ALPHAS), "|")
    for name in NOISES:
        cells = [ever_shown(name, alpha, histories) for alpha in ALPHAS]
        print(f"| {name} |", " | ".join(f"{100 * each:.1f} %" for each in cells), "|", flush=True)
    for size, after in STEPS:
        cells = [detected(size, after, alpha, histories) for alpha in ALPHAS]
        label = f"found: {size:g}σ after {after} runs"
        print(f"| {label} |", " | ".join(f"{100 * each:.1f} %" for each in cells), "|", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
