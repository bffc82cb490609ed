"""How numbers are shown. Comparisons never see what is made here: they are made unrounded."""

from collections.abc import Iterable

FEWEST, MOST = 2, 10
MOST_FOR_SUMS = 4
LARGE = 1e9
SAME = 1e-9  # what differs by no more than this does not differ, for a limit as for a reader


def digits_for(pairs: Iterable[tuple[float, float]]) -> int:
    """Return how many decimals (2 to 10) keep apart the numbers of every pair that differ.

    A gate that fails by a hair must not read "0.10, allowed 0.10".
    """
    return max((_digits(a, b) for a, b in pairs), default=FEWEST)


def _digits(a: float, b: float) -> int:
    if abs(a - b) <= SAME:
        return FEWEST
    return next((digits for digits in range(FEWEST, MOST) if fixed(a, digits) != fixed(b, digits)), MOST)


def decimals(value: float) -> int:
    """Return how many decimals (2 to 10) a limit was given with, so that 0.125 is not shown as 0.12."""
    return next((digits for digits in range(FEWEST, MOST) if abs(round(value, digits) - value) <= SAME), MOST)


def digits_that_add_up(before: float, now: float, digits: int) -> int:
    """Return from how many decimals on, ``digits`` or up to 4, the change that is shown is the difference of the rest.

    "0.69 -> 0.67  -0.03" is right and looks wrong. Where no number of decimals does it, ``digits``.
    """

    def off(count: int) -> float:
        return float(fixed(now, count)) - float(fixed(before, count)) - float(fixed(now - before, count))

    return next((count for count in range(digits, MOST_FOR_SUMS + 1) if abs(off(count)) <= SAME), digits)


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


def percent(value: float, digits: int = FEWEST) -> str:
    """Write a fraction as a percentage with as few decimals as it takes, ``digits`` at most: ``10%``, ``12.5%``.

    One over a billion is only said to be.
    """
    if value > LARGE:
        return f"over {LARGE * 100:,.0f}%"
    return _short(fixed(value * 100, digits)) + "%"


def ms_digits(value: float, *others: float) -> int:
    """Return with how many decimals milliseconds are shown: three digits of a short time, none of a long one.

    More where it takes them to keep ``value`` apart from one of the others that differs, and to show those as given.
    """
    fewest = next((digits for digits, size in enumerate((100, 10)) if abs(value) >= size), FEWEST)
    apart = [
        next((digits for digits in range(MOST) if fixed(value, digits) != fixed(other, digits)), MOST)
        for other in others
        if abs(value - other) > SAME
    ]
    given = [
        next((digits for digits in range(MOST) if abs(round(other, digits) - other) <= SAME), 0) for other in others
    ]
    return max([fewest, *apart, *(min(digits, FEWEST) for digits in given)])


def milliseconds(value: float, digits: int, *, sign: bool = False) -> str:
    """Write a time with as few decimals as it takes, ``digits`` at most: ``480 ms``, ``0.25 ms``, ``+80 ms``."""
    if abs(value) > LARGE:
        return f"{value:+.3g} ms" if sign else f"{value:.3g} ms"  # a mistake, and 300 columns wide if written out
    return _short(signed(value, digits) if sign else fixed(value, digits)) + " ms"


def _short(written: str) -> str:
    return written.rstrip("0").rstrip(".") if "." in written else written


def count(number: int, noun: str) -> str:
    """As ``1 query`` or ``1,200 queries``."""
    plural = noun[:-1] + "ies" if noun.endswith("y") and noun[-2] not in "aeiou" else noun + "s"
    return f"{number:,} {noun if number == 1 else plural}"
