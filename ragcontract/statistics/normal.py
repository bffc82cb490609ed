"""The normal distribution's quantiles."""

from math import erfc, sqrt

STEPS, FARTHEST = 60, 40.0


def exceeded_by(share: float) -> float:
    """Return the value that a standard normal variable exceeds with a probability of ``share``: 1.645 for 0.05."""
    low, high = -FARTHEST, FARTHEST
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if erfc(middle / sqrt(2)) / 2 > share else (low, middle)
    return (low + high) / 2
