"""How many queries a limit on the change of a mean takes, whatever the run. Pure functions."""

from math import ceil, isfinite
from typing import Literal

from ragcontract.core.metric import Scale
from ragcontract.core.numbers import SAME
from ragcontract.statistics.change import Change, Weights
from ragcontract.statistics.change_bounds import change_bounds
from ragcontract.statistics.normal import exceeded_by
from ragcontract.statistics.significance import ALPHA, fewest_changed

ENOUGH = 1_000_000_000


def queries_needed(
    limit: float,
    mode: Literal["significant", "noninferiority"],
    *,
    alpha: float = ALPHA,
    span: float = 1.0,
    tests: int = 1,
) -> int | None:
    """Return the smallest number of queries with which a limit can do its work; None if no number is enough.

    ``limit`` is in points of a metric, whose scale has the size ``span``. With ``significant``, these are enough for a
    drop of the limit's size to be proven where queries lose the whole scale, in one of ``tests`` on different queries:
    the limits on changes of all queries count as one, and those of each tag as one. With ``noninferiority``, the bound
    is within the limit if a single query got better and one worse, each by the whole scale.
    """
    if limit <= 0 or not isfinite(span):
        return None
    if mode == "significant":
        return ceil(fewest_changed(alpha, tests, mid_p=True) * span / limit - SAME)
    normal, low, high = exceeded_by(alpha), 2, ENOUGH
    while low < high:
        middle = (low + high) // 2
        weights = Weights.of([(1.0, middle)])
        changed = {0: (1.0, span), 1: (1.0, -span)}
        _, bound = change_bounds(Change(changed=changed, weights=weights, scale=Scale(0.0, span)), normal, normal)
        low, high = (middle + 1, high) if bound > limit + SAME else (low, middle)
    return low
