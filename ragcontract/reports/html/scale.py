"""Positions on the scale of a metric, for bars."""

import math

from ragcontract.core.metric import Scale


def of_scale(value: float | None, scale: Scale) -> str | None:
    """Return the position of a value on its scale as a percentage; None without a value or on an unbounded scale."""
    width = scale.high - scale.low
    if value is None or not 0 < width < math.inf:
        return None
    return f"{min(1.0, max(0.0, (value - scale.low) / width)) * 100:.2f}%"


def of_share(share: float | None) -> str | None:
    """Return a share from 0 to 1 as a position; None without one."""
    return of_scale(share, Scale())
