"""How alike questions are: the cosine of their hashed 3- to 5-grams of characters.

It needs no model and no words of any language, and finds the same question in other words only if it has some of them.
"""

import math
import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from heapq import nlargest
from typing import NamedTuple
from zlib import crc32

from ragcontract.core import bounds

SIZES = (3, 4, 5)
BUCKETS = 1 << 20  # so many different grams are told apart
_SPACE = re.compile(r"\W+")


class Near(NamedTuple):
    """A question that is like another."""

    place: int  # among the questions
    likeness: float  # from 0 to 1


def normalised(question: str) -> str:
    """Return what two questions have in common that only differ in case, punctuation and spaces."""
    return _SPACE.sub(" ", unicodedata.normalize("NFKC", question).casefold()).strip()


def grams_of(question: str) -> dict[int, float]:
    """Return the grams of a question by their hashes, as a vector of length 1; empty if it has no letter."""
    text = normalised(question[: bounds.COMPARED_QUESTION])
    text = f" {text} " if text else ""
    counts = Counter(
        crc32(text[at : at + size].encode()) % BUCKETS for size in SIZES for at in range(len(text) - size + 1)
    )
    length = math.sqrt(sum(number * number for number in counts.values()))
    return {gram: number / length for gram, number in counts.items()}


class Questions:
    """Questions to compare with; an index of their grams, so that a look-up reads only those that are shared."""

    def __init__(self, questions: Iterable[str]) -> None:
        self._postings: dict[int, tuple[array[int], array[float]]] = {}
        for place, question in enumerate(questions):
            for gram, weight in grams_of(question).items():
                places, weights = self._postings.setdefault(gram, (array("I"), array("f")))
                places.append(place)
                weights.append(weight)

    def nearest(self, question: str, number: int) -> Sequence[Near]:
        """Return the questions that are most like one, the nearest first; none that shares nothing with it."""
        likeness: dict[int, float] = {}
        for gram, weight in grams_of(question).items():
            for place, other in zip(*self._postings.get(gram, ((), ())), strict=True):
                likeness[place] = likeness.get(place, 0) + weight * other
        best = nlargest(number, likeness.items(), key=lambda item: (item[1], -item[0]))
        return [Near(place, min(1.0, value)) for place, value in best]
