"""How numbers are shown. Comparisons never see these: they are made unrounded."""

from collections.abc import Iterable

FEWEST, MOST = 2, 6
SAME = 1e-9


def digits_for(pairs: Iterable[tuple[float, float]]) -> int:
    """Return how many decimals (2 to 6) keep apart the numbers of every pair that differ.

    A gate that fails by a hair must not read "0.10, allowed 0.10".
    """
    return max((_digits(a, b) for a, b in pairs), default=FEWEST)


def _digits(a: float, b: float) -> int:
    if abs(a - b) <= SAME:
        return FEWEST
    return next((digits for digits in range(FEWEST, MOST) if f"{a:.{digits}f}" != f"{b:.{digits}f}"), MOST)


def fixed(value: float | None, digits: int) -> str:
    """Write a number with a fixed count of decimals, never as minus zero; ``-`` where there is none."""
    if value is None:
        return "-"
    return f"{value:.{digits}f}" if round(value, digits) else f"{0:.{digits}f}"


def signed(value: float | None, digits: int) -> str:
    """Write a change with its sign: ``+0.02``, ``-0.14``, ``0.00``."""
    if value is None:
        return "-"
    return f"{value:+.{digits}f}" if round(value, digits) else f"{0:.{digits}f}"


def percent(value: float) -> str:
    """Write a fraction as a percentage with as few decimals as it takes: ``10%``, ``12.5%``."""
    return f"{value * 100:.2f}".rstrip("0").rstrip(".") + "%"


def count(number: int, noun: str) -> str:
    """As ``1 query`` or ``1,200 queries``."""
    plural = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{number:,} {noun if number == 1 else plural}"
