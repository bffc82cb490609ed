"""The significance and the bounds of the change of a mean, and the number of queries that a limit on it needs.

Significance and bounds fit each other. The p-value of one limit is that of the sign-flip test (``sign_flips``), the
p-values of several limits are those of the max-T test (``max_t``). All functions are pure and deterministic, and
independent of the order of the queries.
"""

from collections.abc import Sequence
from math import ceil, isfinite
from typing import Literal

from msgspec import Struct

from ragcontract.core.metric import Scale
from ragcontract.core.numbers import SAME
from ragcontract.statistics.intervals import change_bounds, exceeded_by
from ragcontract.statistics.max_t import adjust
from ragcontract.statistics.sign_flips import Change, SignFlips, Weights, smallest_p_value

ALPHA = 0.05


class Noise(Struct, frozen=True, kw_only=True):
    """The uncertainty of a metric's change, from a paired comparison over the shared queries.

    ``bounds`` are the one-sided 95 % confidence bounds of the change, now minus before (or as sure as ``alpha`` in the
    configuration demands): it is at least the first and at most the second. ``p_value`` is that of a one-sided
    sign-flip test for a change for the worse; of a metric with a limit on its change, it is adjusted over all such
    limits. ``wins`` and ``losses`` count the queries that got better and worse.
    """

    bounds: tuple[float, float]
    p_value: float
    wins: int
    ties: int
    losses: int


class ChangeTest(Struct, frozen=True, kw_only=True):
    """The test and the bounds of a change for the worse."""

    bounds: tuple[float, float]  # positive for the worse
    p_value: float | None  # None if no query changed
    could_be: bool  # whether it would be significant if all changed queries had got worse
    queries: int  # the number that both runs have
    span: float  # the size of the scale


def assess(changes: Sequence[Change], alpha: float = ALPHA, *, together: bool = True) -> list[ChangeTest]:
    """Test changes of the same runs ``together``, or each as if it were the only one; return the results in order.

    Together, lower bounds and p-values are adjusted to the number of changes. Where bound and test disagree about 0,
    the test decides. Upper bounds are not adjusted. A run is only no worse if all changes are within their limits, so
    each may be tested at ``alpha``. This is the intersection-union test of Berger, *Multiparameter Hypothesis Testing
    and Acceptance Sampling*, Technometrics 24 (1982).
    """
    usual = exceeded_by(alpha)
    adjusted = adjust([SignFlips.of(change) for change in changes if change.changed], alpha)
    lower = max(usual, adjusted.critical or usual) if together else usual
    results = iter(adjusted.tests)
    tests = []
    for change in changes:
        result = next(results) if change.changed else None
        p_value = None if result is None else result.p_value if together else result.own
        could_be = result is not None and result.smallest <= alpha
        tests.append(
            ChangeTest(
                bounds=_bounds(change, (lower, usual), significant=p_value is not None and p_value <= alpha),
                p_value=p_value,
                could_be=could_be,
                queries=change.weights.count,
                span=change.span,
            )
        )
    return tests


def _bounds(change: Change, quantiles: tuple[float, float], *, significant: bool) -> tuple[float, float]:
    low, high = change_bounds(change, *quantiles)
    return (max(low, 0.0), max(high, 0.0)) if significant else (min(low, 0.0), high)


def noise(change: Change, result: ChangeTest) -> Noise | None:
    """Return the uncertainty of a change for reports; None if no query changed."""
    if result.p_value is None:
        return None
    low, high = result.bounds
    return Noise(
        bounds=(low, high) if change.better == "lower" else (0.0 - high, 0.0 - low),
        p_value=result.p_value,
        wins=change.wins,
        ties=change.ties,
        losses=change.losses,
    )


def fewest_changed(alpha: float, tests: int = 1, *, mid_p: bool = False) -> int:
    """Return the number of queries that must change for a drop to be significant in one of so many ``tests``."""
    changed = 1
    while smallest_p_value(changed, mid_p=mid_p) > alpha / tests:
        changed += 1
    return changed


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

    ``limit`` is in points of a metric, whose scale has the size ``span``. With ``significant``, so many queries prove a
    drop of the limit's size if each that changes loses the whole scale, in one of ``tests`` on different queries. The
    limits on changes of all queries count as one test, and those of each tag as one. With ``noninferiority``, the bound
    is within the limit if a single query got better and one got worse, each by the whole scale.
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
