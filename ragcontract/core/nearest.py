"""Finds the known name that a misspelled one probably stands for, in bounded time however many names are known.

Names are indexed by the pairs of adjacent characters in them. Only the names that share the rarest pairs with the
misspelled one are compared with it character by character.
"""

import difflib
from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from itertools import islice, pairwise

CUTOFF = 0.75  # of difflib's ratio, from which on a name is near
LONGEST_NAME = 100  # characters of a misspelled name that are compared
MOST_NAMES = 10_000  # known names that are indexed, the first ones
MOST_SHARED = 2_000  # entries of the index that one search reads
COMPARED = 10  # names that one search compares character by character


class NearNames:
    """Known names to suggest from; they are indexed on the first search."""

    def __init__(self, known: Iterable[str]) -> None:
        """Store the known names; of those that differ only in case and hyphens, the last one is suggested."""
        self._known = known

    @cached_property
    def _names(self) -> dict[str, str]:
        # Longer names cannot be near to so few characters.
        listed = (name for name in self._known if len(name) <= 2 * LONGEST_NAME)
        return {_plain(name): name for name in islice(listed, MOST_NAMES)}

    @cached_property
    def _having(self) -> dict[str, list[str]]:
        """The plain names by the pairs of characters in them."""
        index: dict[str, list[str]] = {}
        for name in self._names:
            for pair in _pairs(name):
                index.setdefault(pair, []).append(name)
        return index

    def nearest(self, word: str) -> str | None:
        """Return the known name most similar to ``word``, or None if none is near; ignores case, treats - like _."""
        plain = _plain(word[:LONGEST_NAME])
        close = difflib.get_close_matches(plain, self._candidates(plain), n=1, cutoff=CUTOFF)
        return self._names[close[0]] if close else None

    def _candidates(self, plain: str) -> list[str]:
        """Return the names that share most of the rarest pairs with a name; all names if they are few."""
        if len(self._names) <= COMPARED:
            return list(self._names)
        shared = [self._having[pair] for pair in _pairs(plain) if pair in self._having]
        votes: Counter[str] = Counter()
        left = MOST_SHARED
        for names in sorted(shared, key=len):
            votes.update(islice(names, left))
            left -= len(names)
            if left <= 0:
                break
        return [name for name, _ in votes.most_common(COMPARED)]


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known name most similar to ``word``, or None if none is near. For one search; see ``NearNames``."""
    return NearNames(known).nearest(word)


def _plain(name: str) -> str:
    return name.lower().replace("-", "_")


def _pairs(plain: str) -> list[str]:
    """Return the distinct pairs of adjacent characters, including those with the start and the end of the name."""
    return list(dict.fromkeys(map("".join, pairwise(["^", *plain, "$"]))))
