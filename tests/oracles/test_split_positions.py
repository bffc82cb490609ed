"""The positions of splits and of change points beside ruptures, whose cost l2 is the sum of squared errors."""

import random

import pytest

from ragcontract.statistics.change_points import best_split, change_points
from tests.oracles.outside import asked

pytestmark = pytest.mark.oracles


def planted(seed: int, noise: float) -> list[float]:
    """Make up two to four levels of 15 to 40 runs; each is at least 0.05 below or above the one before."""
    dice = random.Random(f"{seed} {noise}")
    values, center = [], 0.8
    for _ in range(dice.randrange(2, 5)):
        values += [dice.gauss(center, noise) for _ in range(dice.randrange(15, 41))]
        center += dice.choice([-1, 1]) * dice.uniform(0.05, 0.1)
    return values


def test_a_series_is_split_where_ruptures_splits_it() -> None:
    series = [planted(seed, noise) for seed in range(100) for noise in (0.005, 0.05)]
    splits = [best_split(values) for values in series]
    assert asked("split_positions", [(values, 1) for values in series]) == [
        [split.position] for split in splits if split
    ]


def test_the_change_points_are_those_of_ruptures_told_how_many_there_are() -> None:
    series = [planted(seed, 0.008) for seed in range(100)]
    positions = [[point.position for point in change_points(values)] for values in series]
    assert sum(map(bool, positions)) > 40
    cases = [(values, len(splits)) for values, splits in zip(series, positions, strict=True) if splits]
    assert asked("split_positions", cases) == [splits for splits in positions if splits]
