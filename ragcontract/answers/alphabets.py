"""Words with letters of several alphabets, such as "pаssword" with a Cyrillic а, which no search for "password" finds.

These are the mixed-script confusables of UTS #39, restricted to alphabets whose letters look alike. Other scripts are
rightly mixed within what has no blanks, as in "Tシャツ", or look like no letter of another one.
"""

import re
from functools import cache, lru_cache
from itertools import permutations

from ragcontract.answers.tracing import Span

# The blocks of each alphabet; of Greek, only the letters that look like Latin ones: "kΩ" and "Δt" are no mistakes.
_ALPHABETS = {
    "Latin": "A-Za-zªºÀ-ÖØ-öø-ʯᴀ-ᴥᵢ-ᵥᵬ-ᵷᵹ-ᶥḀ-ỿⱠ-Ɀ꜠-ꟿꬰ-ꭤＡ-Ｚａ-ｚ𝐀-𝚥",
    "Greek": "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧΆΈΉΊΌΎονρυόύϲϳϹ",
    "Cyrillic": "Ѐ-ҁҊ-ԯᲀ-ᲈꙀ-ꙮꚀ-ꚝ",
    "Armenian": "Ա-Ֆՠ-ֈ",
    "Cherokee": "Ꭰ-Ᏽᏸ-ᏽꭰ-ꮿ",
    "Coptic": "Ϣ-ϯⲀ-ⳤ",
    "Lisu": "ꓐ-ꓷ",
}
_LETTERS = {name: re.compile(f"[{letters}]") for name, letters in _ALPHABETS.items()}
_MARK = "[\u0300-\u036f]"
_WORD = re.compile(rf"(?:[^\W_]|{_MARK}){{3,}}")  # shorter ones are symbols, as "hν"


def alphabets_of(text: str) -> tuple[str, ...]:
    """Return the names of the alphabets in a text that have letters which look alike."""
    return tuple(sorted({name for char in frozenset(text) if (name := _alphabet(char))}))


def mixed_word(text: str) -> tuple[Span, list[str]] | None:
    """Return the span of the first word with letters of several alphabets, and the names of these."""
    present = alphabets_of(text)
    if len(present) < 2 or not _meeting(present).search(text):  # noqa: PLR2004
        return None
    for word in _WORD.finditer(text):
        names = [name for name in _ALPHABETS if _LETTERS[name].search(word[0])]
        if len(names) > 1 and _meeting(present).search(word[0]):
            return word.span(), names
    return None


@lru_cache(maxsize=4096)
def _alphabet(char: str) -> str:
    """Return the name of a letter's alphabet; empty if there is none."""
    return next((name for name, letters in _LETTERS.items() if letters.match(char)), "")


@cache
def _meeting(names: tuple[str, ...]) -> re.Pattern[str]:
    """Return what matches letters of two of some alphabets beside each other; words are looked at only after that."""
    pairs = permutations(names, 2)
    return re.compile("|".join(f"[{_ALPHABETS[one]}]{_MARK}*[{_ALPHABETS[other]}]" for one, other in pairs))
