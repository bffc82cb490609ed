"""Measures of a confusion matrix: how often each class was expected, and what was found instead. Pure functions.

Rows are counted, each as one: a query with several rows counts several times, and weights have no effect. Precision,
recall and F1 are those of scikit-learn with ``zero_division=0``.
"""

from collections.abc import Iterable
from math import fsum

from msgspec import Struct

from ragcontract.core.scores import Confusion


class ClassMeasures(Struct, frozen=True, kw_only=True):
    """How well one class was found, each from 0 to 1; 0 where there is nothing to divide by."""

    precision: float
    recall: float
    f1: float


def accuracy(confusion: Confusion) -> float | None:
    """Return the share of rows whose class is the expected one; None without rows."""
    total = sum(confusion.values())
    return sum(n for (expected, found), n in confusion.items() if expected == found) / total if total else None


def classes(confusion: Confusion) -> list[str]:
    """Return all classes that were expected or found, in order of their names."""
    return sorted({name for pair in confusion for name in pair if name is not None})


def measures(confusion: Confusion, names: Iterable[str]) -> dict[str, ClassMeasures]:
    """Return the measures of each class: F1 is 2 · right / (expected + found)."""
    expected, found, right = dict[str, int](), dict[str, int](), dict[str, int]()
    for (wanted, given), number in confusion.items():
        expected[wanted] = expected.get(wanted, 0) + number
        if given is not None:
            found[given] = found.get(given, 0) + number
            right[given] = right.get(given, 0) + number * (given == wanted)
    return {
        name: ClassMeasures(
            precision=_share(right.get(name, 0), found.get(name, 0)),
            recall=_share(right.get(name, 0), expected.get(name, 0)),
            f1=_share(2 * right.get(name, 0), expected.get(name, 0) + found.get(name, 0)),
        )
        for name in names
    }


def macro_f1(confusion: Confusion) -> float | None:
    """Return the mean of the F1 of all classes that were expected or found, each counting once; None without rows."""
    of_classes = measures(confusion, classes(confusion))
    return fsum(one.f1 for one in of_classes.values()) / len(of_classes) if of_classes else None


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
