"""The model of how texts are compared: forms of characters, markup, whole words, patterns, phrases of refusal."""

import dataclasses
import html
import re
import unicodedata
from collections.abc import Iterable
from typing import Any

QUOTES = {"‘": "'", "’": "'", "‚": "'", "“": '"', "”": '"', "„": '"'}
DASHES = dict.fromkeys("‐‑‒–—−", "-")
INVISIBLE = re.compile("[\u200b‌‍⁠\ufeff\xad]")
LINK = re.compile(r"(?<!\\)\[([^\[\]]*)\]\([^()\s]*\)")
EMPHASIS = re.compile(r"\*\*|__|`+")
SENTENCE_END = re.compile(r"[.!?](?=\s)|\n")
COVERED = 200  # characters of an allowed phrase
BUILT_IN = ("i can't help with",)  # of some forty phrases, the one that the documents name
BUILT_IN_WITHIN = 300


@dataclasses.dataclass(frozen=True)
class Reading:
    """How the configuration wants texts to be compared."""

    normalise: bool = True
    entities: bool = False  # whether HTML entities are decoded


def visible(text: str) -> bool:
    """Whether a person sees a letter, a digit or a symbol in the text."""
    return any(unicodedata.category(character)[0] in "LN" or _symbol(character) for character in text)


def _symbol(character: str) -> bool:
    return unicodedata.category(character) in {"So", "Sc", "Sm"}


def plain(text: str, reading: Reading) -> str:
    """Return the text without what makes no difference, upper and lower case excepted."""
    if not reading.normalise:
        return text
    text = html.unescape(text) if reading.entities else text
    text = INVISIBLE.sub("", unicodedata.normalize("NFKC", text))
    text = LINK.sub(r"\1", text)
    text = "".join(QUOTES.get(character, DASHES.get(character, character)) for character in text)
    return " ".join(EMPHASIS.sub("", text).split())


def contains(answer: str, text: str, reading: Reading, *, ignore_case: bool = True, word: bool = False) -> bool:
    """Whether the answer has the text, as a whole word if that is wanted."""
    haystack, needle = plain(answer, reading), plain(text, reading)
    if ignore_case:
        haystack, needle = haystack.casefold(), needle.casefold()
    start = haystack.find(needle)
    while start >= 0:
        end = start + len(needle)
        if not word or not (_in_word(haystack[start - 1 : start]) or _in_word(haystack[end : end + 1])):
            return True
        start = haystack.find(needle, start + 1)
    return False


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def pattern(source: str, *, ignore_case: bool = True, dot_all: bool = False) -> re.Pattern[str]:
    """Return a pattern; the patterns of random workspaces mean the same in Python and in RE2."""
    return re.compile(source, (re.IGNORECASE if ignore_case else 0) | (re.DOTALL if dot_all else 0))


def as_pattern(matcher: str | dict[str, Any]) -> re.Pattern[str]:
    """Return the pattern of a forbidden claim or an allowed phrase, where bare texts are patterns."""
    if isinstance(matcher, str):
        return pattern(matcher)
    options = {name: value for name, value in matcher.items() if name in ("ignore_case", "dot_all")}
    return pattern(matcher["regex"], **options)


def matches(answer: str, matcher: str | dict[str, Any], reading: Reading) -> bool:
    """Whether an element, a text or a matcher, is in the answer."""
    if isinstance(matcher, str):
        return contains(answer, matcher, reading)
    if "any" in matcher:
        return any(matches(answer, single, reading) for single in matcher["any"])
    if "regex" in matcher:
        return as_pattern(matcher).search(answer) is not None
    return contains(
        answer,
        matcher["text"],
        reading,
        ignore_case=matcher.get("ignore_case", True),
        word=matcher.get("word", False),
    )


def claimed(answer: str, claim: str | dict[str, Any], allowed: Iterable[str | dict[str, Any]]) -> bool:
    """Whether a claim is in the answer outside of the allowed phrases."""
    phrases = [match.span() for phrase in allowed for match in as_pattern(phrase).finditer(answer)]
    return any(not _covered(answer, match.span(), phrases) for match in as_pattern(claim).finditer(answer))


def _covered(answer: str, claim: tuple[int, int], phrases: list[tuple[int, int]]) -> bool:
    return any(
        start <= claim[0] and claim[1] <= end <= start + COVERED and not SENTENCE_END.search(answer, start, claim[1])
        for start, end in phrases
    )


def refusal_phrase(answer: str, phrases: Iterable[str], reading: Reading, *, built_in: bool) -> bool:
    """Whether the answer has a phrase with which an application refuses."""
    if any(contains(answer, phrase, reading) for phrase in phrases):
        return True
    start = plain(answer, Reading())[:BUILT_IN_WITHIN].casefold()
    return built_in and any(phrase in start for phrase in BUILT_IN)
