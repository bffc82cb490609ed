"""Two runs as lists of values, one a query."""

from collections.abc import Sequence

from ragcontract.core.metric import Direction, Scale
from ragcontract.core.numbers import SAME
from ragcontract.statistics.sign_flips import UNIT, Change, Weights
from ragcontract.statistics.significance import ALPHA, ChangeTest, assess


def change_of(
    before: Sequence[float],
    now: Sequence[float],
    weights: Sequence[float] = (),
    *,
    better: Direction = "higher",
    scale: Scale = UNIT,
) -> Change:
    """Return the change of the mean over queries with these values and weights (1, if none are given)."""
    of = weights or [1.0] * len(now)
    changed = {
        number: (weight, b - a)
        for number, (weight, a, b) in enumerate(zip(of, before, now, strict=True))
        if abs(b - a) > SAME
    }
    all_weights = Weights.of([(weight, 1) for weight in of])
    return Change(changed=changed, weights=all_weights, better=better, scale=scale, identical=not changed)


def paired(before: Sequence[float], now: Sequence[float], weights: Sequence[float] = ()) -> ChangeTest:
    """Compare two runs query by query; values must be from 0 to 1, and weights above 0."""
    (found,) = assess([change_of(before, now, weights)], ALPHA)
    return found
