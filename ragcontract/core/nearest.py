"""Finds the known name that a misspelled one probably stands for, in bounded time for any number of known names.

Names are indexed by the pairs of adjacent characters in them. Only the names that share the rarest pairs with the
misspelled one are compared with it character by character.
"""

import difflib
import re
from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from itertools import islice, pairwise

from ragcontract.core import bounds
from ragcontract.core.invisible import folded

TYPO_LENGTH = 5  # characters that a name, or a part of an id, needs at least to count as misspelled
TWO_TYPOS = 8  # characters that a name needs at least to have two typing errors
_PARTS = re.compile(r"[\W_]+")
CUTOFF = 0.75  # the least ratio of difflib for a name to be near


class NearNames:
    """Known names to suggest from, which are indexed on the first search.

    Of names that differ only in case and hyphens, the last one is suggested.
    """

    def __init__(self, known: Iterable[str]) -> None:
        self._known = known

    @cached_property
    def _names(self) -> dict[str, str]:
        # Longer names cannot be near to so few characters.
        listed = (name for name in self._known if len(name) <= 2 * bounds.NEAR_LENGTH)
        return {_plain(name): name for name in islice(listed, bounds.NEAR_KNOWN)}

    @cached_property
    def _spelled(self) -> list[tuple[str, int, str]]:
        """The letters of each name that can be misspelled, how many typing errors it may have, and the name."""
        listed = ((_letters(name), name) for name in self._known)
        return [(letters, most, name) for letters, name in listed if (most := _typos(letters))]

    @cached_property
    def _having(self) -> dict[str, list[str]]:
        """The plain names by the pairs of characters in them."""
        index: dict[str, list[str]] = {}
        for name in self._names:
            for pair in _pairs(name):
                index.setdefault(pair, []).append(name)
        return index

    def nearest(self, word: str) -> str | None:
        """Return the known name most similar to ``word``, or None if none is near; ignores case and treats - like _."""
        plain = _plain(word[: bounds.NEAR_LENGTH])
        close = difflib.get_close_matches(plain, self._candidates(plain), n=1, cutoff=CUTOFF)
        return self._names[close[0]] if close else None

    def misspelled(self, word: str) -> str | None:
        """Return the known name that ``word`` is a misspelling of, or None.

        Such a word differs by one typing error (a letter left out, added, replaced, or two exchanged), or by two if the
        name has at least eight letters. Case, separators and characters that nobody sees make no difference. A name
        with a further part, as ``reference_en``, is another name.
        """
        letters_of_word = _letters(word)
        edits = ((_edits(letters_of_word, letters, most), name) for letters, most, name in self._spelled)
        near = min(((number, name) for number, name in edits if number is not None), default=(0, None))[1]
        return None if near is not None and _extends(word, near) else near

    def advice(self, word: str, otherwise: str = "") -> str:
        """Return ``did you mean 'name'?``, or ``otherwise`` if no known name is near."""
        near = self.nearest(word)
        return f"did you mean {near!r}?" if near else otherwise

    def _candidates(self, plain: str) -> list[str]:
        """Return the names that share most of the rarest pairs with a name; all names if they are few."""
        if len(self._names) <= bounds.NEAR_COMPARED:
            return list(self._names)
        shared = [self._having[pair] for pair in _pairs(plain) if pair in self._having]
        votes: Counter[str] = Counter()
        left = bounds.NEAR_SHARED
        for names in sorted(shared, key=len):
            votes.update(islice(names, left))
            left -= len(names)
            if left <= 0:
                break
        return [name for name, _ in votes.most_common(bounds.NEAR_COMPARED)]


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known name most similar to ``word``, or None if none is near. ``NearNames`` is for several words."""
    return NearNames(known).nearest(word)


def _typos(letters: str) -> int:
    """Return how many typing errors a name may have."""
    return (len(letters) >= TYPO_LENGTH) + (len(letters) >= TWO_TYPOS)


def _extends(word: str, name: str) -> bool:
    """Return whether a word is a name with further parts behind it."""
    ours, theirs = ([part for part in _PARTS.split(text.casefold()) if part] for text in (word, name))
    return len(ours) > len(theirs) and ours[: len(theirs)] == theirs


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, folded(name)))


def _edits(word: str, meant: str, most: int) -> int | None:
    """Return how many typing errors two names differ by (Damerau–Levenshtein), or None if more than ``most``."""
    if abs(len(word) - len(meant)) > most or len({*word} - {*meant}) > most or len({*meant} - {*word}) > most:
        return None
    before: list[int] = []
    above = list(range(len(meant) + 1))  # the distances of the beginnings of the word
    for i, char in enumerate(word, 1):
        row = [i]
        for j, other in enumerate(meant, 1):
            least = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (char != other))
            if i > 1 and j > 1 and (char, word[i - 2]) == (meant[j - 2], other):
                least = min(least, before[j - 2] + 1)
            row.append(least)
        if min(row) > most:
            return None
        before, above = above, row
    return above[-1] if above[-1] <= most else None


def is_typo(word: str, meant: str) -> bool:
    """Return whether two ids differ by one typing error: a letter left out, added, replaced, or two exchanged.

    All parts between separators must be the same except one, which has at least five characters and no digits. Names
    that differ in a number or in a short part, as ``policy_eu`` and ``policy_us`` do, mean different things.
    """
    word_parts, meant_parts = _PARTS.split(word.lower()), _PARTS.split(meant.lower())
    differing = [pair for pair in zip(word_parts, meant_parts, strict=False) if pair[0] != pair[1]]
    if len(word_parts) != len(meant_parts) or len(differing) != 1:
        return False
    ours, theirs = differing[0]
    if max(len(ours), len(theirs)) < TYPO_LENGTH or any(map(str.isdigit, ours + theirs)):
        return False
    start = next((n for n, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), min(len(ours), len(theirs)))
    ours, theirs = ours[start:], theirs[start:]
    if len(ours) == len(theirs):
        return ours[1:] == theirs[1:] or (ours[:2] == theirs[1::-1] and ours[2:] == theirs[2:])
    return ours[1:] == theirs or ours == theirs[1:]


def _plain(name: str) -> str:
    return name.lower().replace("-", "_")


def _pairs(plain: str) -> list[str]:
    """Return the distinct pairs of adjacent characters, including those with the start and the end of the name."""
    return list(dict.fromkeys(map("".join, pairwise(["^", *plain, "$"]))))
