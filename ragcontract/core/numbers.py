"""Numbers: which values are some, and how they are shown; comparisons always use unrounded values."""

from collections.abc import Iterable, Sequence

from ragcontract.core import bounds

FEWEST, MOST = 2, 10
MOST_FOR_TABLES = 4
LARGE = 1e9
SAME = 1e-9  # differences up to this size count as none, in limits and in reports


def digits_for(pairs: Iterable[tuple[float, float]]) -> int:
    """Return how many decimals (2 to 10) are needed to show the numbers of each pair as different."""
    return max((_digits(a, b) for a, b in pairs), default=FEWEST)


def _digits(a: float, b: float) -> int:
    if abs(a - b) <= SAME:
        return FEWEST
    return next((digits for digits in range(FEWEST, MOST) if fixed(a, digits) != fixed(b, digits)), MOST)


def digits_beside(value: float, limit: float) -> int:
    """Return the number of decimals (2 to 10) with which a value reads as below, at or above its limit, as it is.

    The limit is shown as it was written. Without this, "0.10, allowed 0.10" could fail, and "0.09, allowed 0.088" pass.
    """
    side = _side(value, limit)
    return next((digits for digits in range(FEWEST, MOST) if _side(round(value, digits), limit) == side), MOST)


def _side(value: float, limit: float) -> int:
    return 0 if abs(value - limit) <= SAME else 1 if value > limit else -1


def decimals(value: float) -> int:
    """Return how many decimals (2 to 10) a limit was written with, so that 0.084 is not shown as 0.08."""
    return next((digits for digits in range(FEWEST, MOST) if abs(round(value, digits) - value) <= SAME), MOST)


def as_written(limit: float) -> str:
    """Format a limit as it was written, with at least two decimals: ``0.084``, ``0.10``."""
    return fixed(limit, decimals(limit))


def fixed(value: float | None, digits: int) -> str:
    """Format a number with a fixed number of decimals, never as minus zero; ``-`` for None."""
    if value is None:
        return "-"
    return f"{value:.{digits}f}" if round(value, digits) else f"{0:.{digits}f}"


def signed(value: float | None, digits: int) -> str:
    """Format a change with its sign: ``+0.02``, ``-0.14``, ``0.00``."""
    if value is None:
        return "-"
    return f"{value:+.{digits}f}" if round(value, digits) else f"{0:.{digits}f}"


def percent(value: float, digits: int = FEWEST) -> str:
    """Format a fraction as a percentage with at most ``digits`` decimals and no trailing zeros: ``10%``, ``12.5%``.

    A fraction above one billion is shown as "over 100,000,000,000%".
    """
    if value > LARGE:
        return f"over {LARGE * 100:,.0f}%"
    return _short(fixed(value * 100, digits)) + "%"


def ms_digits(value: float, *others: float) -> int:
    """Return the number of decimals for milliseconds: 0 for values from 100, 1 from 10, otherwise 2.

    It is more if that is needed to show ``value`` as different from the ``others``, or to show all of the others.
    """
    fewest = next((digits for digits, size in enumerate((100, 10)) if abs(value) >= size), FEWEST)
    apart = [
        next((digits for digits in range(MOST) if fixed(value, digits) != fixed(other, digits)), MOST)
        for other in others
        if abs(value - other) > SAME
    ]
    for_others = [
        next((digits for digits in range(MOST) if abs(round(other, digits) - other) <= SAME), 0) for other in others
    ]
    return max([fewest, *apart, *(min(digits, FEWEST) for digits in for_others)])


def milliseconds(value: float, digits: int, *, sign: bool = False) -> str:
    """Format a duration with at most ``digits`` decimals and no trailing zeros: ``480 ms``, ``0.25 ms``, ``+80 ms``."""
    if abs(value) > LARGE:
        return f"{value:+.3g} ms" if sign else f"{value:.3g} ms"  # an input error, and 300 columns wide in full
    return _short(signed(value, digits) if sign else fixed(value, digits)) + " ms"


def _short(written: str) -> str:
    return written.rstrip("0").rstrip(".") if "." in written else written


def mebibytes(size: float) -> str:
    """Format a number of bytes: ``64 MiB``, ``1,024 MiB``."""
    return f"{_short(f'{size / (1 << 20):,.1f}')} MiB"


def more(total: int, shown: int, noun: str = "", form: str = "{}") -> str:
    """Return how many there are beside those that are shown, as ``3 more`` or ``3 more files``; empty if these are all.

    ``form`` is the text around it, with a place for it.
    """
    rest = total - shown
    return form.format(count(rest, f"more {noun}") if noun else f"{rest:,} more") if rest > 0 else ""


def beginning(texts: Sequence[str], most: int = bounds.NAMES) -> str:
    """Return the first texts with commas between them, and an ellipsis if there are more."""
    return ", ".join([*texts[:most], *(["…"] if len(texts) > most else [])])


def count(number: int, noun: str) -> str:
    """Format a count with its noun: ``1 query``, ``1,200 queries``."""
    plural = noun[:-1] + "ies" if noun.endswith("y") and noun[-2] not in "aeiou" else noun + "s"
    return f"{number:,} {noun if number == 1 else plural}"


BLOCKS = "▁▂▃▄▅▆▇█"
FLAT = 0.02  # a smaller range of values is shown as wide as this, so that noise does not look like a change


def sparkline(values: Sequence[float | None]) -> str:
    """Return values as a line of blocks, the highest value with the highest block; a blank for None."""
    known = [value for value in values if value is not None]
    if not known:
        return " " * len(values)
    low, high = min(known), max(known)
    start = low - max(FLAT - (high - low), 0) / 2
    step = max(high - low, FLAT) / (len(BLOCKS) - 1)
    return "".join(" " if value is None else BLOCKS[round((value - start) / step)] for value in values)


def is_within(value: object, least: float, most: float, *, whole: bool) -> bool:
    """Return whether a value is a number in a range, ends included. True is not a number, and NaN is in no range."""
    is_number = type(value) is int or (not whole and type(value) is float)
    return is_number and least <= value <= most  # type: ignore[operator]
