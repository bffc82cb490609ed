"""Two runs as lists of values, one a query."""

from collections.abc import Sequence

from ragcontract.core.numbers import SAME
from ragcontract.statistics.significance import Noise, Weights, noise


def paired(before: Sequence[float], now: Sequence[float], weights: Sequence[float]) -> Noise:
    """Compare two runs query by query; values must be from 0 to 1, and weights above 0.

    The p-value and the interval are None if fewer than five queries changed: even if all of them got worse, the p-value
    would be above 0.05.
    """
    changes = [(weight, b - a) for weight, a, b in zip(weights, before, now, strict=True) if abs(b - a) > SAME]
    return noise(changes, Weights.of(weights))
