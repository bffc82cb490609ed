"""The model of how texts are compared: as written and as a page shows them, whole words, patterns, refusals."""

import dataclasses
import html
import re
import unicodedata
from collections.abc import Iterable
from typing import Any

QUOTES = {"‘": "'", "’": "'", "‚": "'", "“": '"', "”": '"', "„": '"'}
DASHES = dict.fromkeys("‐‑‒–—−", "-")
LINE_ENDS_AND_TABS = "\t\n\v\f\r\x85"
IGNORABLE = (  # what Unicode calls default ignorable, but for format characters
    *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), 0x2065, 0x3164),
    *(*range(0xFE00, 0xFE10), 0xFFA0, *range(0xFFF0, 0xFFF9), *range(0xE0000, 0xE1000)),
)
INVISIBLE = frozenset(map(chr, IGNORABLE))
LINK = re.compile(r"(?<!\\)\[([^\[\]]*)\]\([^()\s]*(?:\s+\"([^\"]*)\")?\)")
NAMED_LINK = re.compile(r"\[([^\[\]]+)\]\[([^\[\]]+)\]")
DEFINITION = re.compile(r"^\[([^\[\]]+)\]: *(\S+)$", re.MULTILINE)
TAG = re.compile(r"<!--.*?-->|</?([a-zA-Z]+)[^<>]*>", re.DOTALL)
SEPARATING = frozenset({"br", "td", "p", "div", "li"})
WRITTEN_EMPHASIS = re.compile(r"\*\*|__|`+")
SHOWN_EMPHASIS = re.compile(r"(?<![\w\\])(\*{1,3}|_{1,3}|~~)(?=\S)(.+?)(?<=\S)\1(?!\w)")
ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
SENTENCE_END = re.compile(r"[.!?](?=\s)|\n")
MARKUP = re.compile(r"[<>\[\]\\&~]")
BLANKS_OF_PARAGRAPH = re.compile(r"[^\S\n]*\n(?![^\S\n]*(?:\n|$))[^\S\n]*|[^\S\n]+")
MARKS_OF_BLOCKS = re.compile(r"^\s*(?:(?:#{1,6}|[-*+]|[0-9]{1,9}[.)])\s+)*")
COVERED = 200  # characters of an allowed phrase
BUILT_IN = ("i can't help with",)  # of some forty phrases, the one that the documents name
BUILT_IN_WITHIN = 300


@dataclasses.dataclass(frozen=True)
class Reading:
    """How the configuration wants texts to be compared."""

    normalise: bool = True


def says_something(text: str) -> bool:
    """Whether a person sees a letter, a digit or a symbol in the text."""
    return any(_is_seen(character) for character in shown(text))


def _is_seen(character: str) -> bool:
    return unicodedata.category(character)[0] in "LN" or unicodedata.category(character) in {"So", "Sc", "Sm"}


def without_invisible(text: str) -> str:
    """Return the text without characters that nobody sees."""
    return "".join(character for character in text if not _is_invisible(character))


def _is_invisible(character: str) -> bool:
    kind = unicodedata.category(character)
    return kind == "Cf" or (kind == "Cc" and character not in LINE_ENDS_AND_TABS) or character in INVISIBLE


def written(text: str) -> str:
    """Return the text as it is written, without links' targets and emphasis."""
    text = unicodedata.normalize("NFKC", without_invisible(text))
    text = LINK.sub(lambda link: f'{link[1]} "{link[2]}"' if link[2] else link[1], text)
    return WRITTEN_EMPHASIS.sub("", text)


def shown(text: str, *, titles: bool = False) -> str:
    """Return the text as a page shows it: without tags, targets, emphasis and escapes, and with entities decoded.

    With ``titles``, those of links are kept, because a page shows them under the pointer.
    """
    text = without_invisible(html.unescape(html.unescape(without_invisible(text))))
    text = TAG.sub(lambda tag: " " if (tag[1] or "").lower() in SEPARATING else "", text)
    labels = {found[1].casefold() for found in DEFINITION.finditer(text)}
    text = LINK.sub(lambda link: f'{link[1]} "{link[2]}"' if titles and link[2] else link[1], text)
    text = NAMED_LINK.sub(lambda link: link[1] if link[2].casefold() in labels else link[0], text)
    before = ""
    while before != text:
        before, text = text, SHOWN_EMPHASIS.sub(r"\2", text)
    return ESCAPED.sub(r"\1", WRITTEN_EMPHASIS.sub("", text))


def plain(text: str) -> str:
    """Return the text with one form of each quote, dash and blank."""
    text = unicodedata.normalize("NFKC", text)
    text = "".join(QUOTES.get(character, DASHES.get(character, character)) for character in text)
    return " ".join(text.split())


def contains(answer: str, text: str, reading: Reading, *, ignore_case: bool = True, word: bool = False) -> bool:
    """Whether the answer has the text, as a whole word if that is wanted."""
    if not reading.normalise:
        return _finds(answer, text, ignore_case=ignore_case, word=word)
    needle = plain(written(text))
    haystacks = {plain(written(answer)), plain(shown(answer))}
    return any(_finds(haystack, needle, ignore_case=ignore_case, word=word) for haystack in haystacks)


def shows(answer: str, text: str, reading: Reading, *, ignore_case: bool = True, word: bool = False) -> bool:
    """Whether the answer has a required text where readers see it; of a text that is markup, nothing is hidden."""
    if not contains(answer, text, reading, ignore_case=ignore_case, word=word):
        return False
    if not reading.normalise or MARKUP.search(text):
        return True
    needle = plain(written(text))
    seen = (plain(shown(answer, titles=titles)) for titles in (False, True))
    return any(_finds(haystack, needle, ignore_case=ignore_case, word=word) for haystack in seen)


def _finds(haystack: str, needle: str, *, ignore_case: bool, word: bool) -> bool:
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


def searched(answer: str, reading: Reading, source: str) -> list[str]:
    """Return the texts in which a forbidden pattern is searched for; the last is for patterns with a blank."""
    if not reading.normalise:
        return [answer]
    flowing = [BLANKS_OF_PARAGRAPH.sub(" ", shown(answer))] if " " in source else []
    forms = [answer, shown(answer), *flowing]
    return forms + ([MARKS_OF_BLOCKS.sub("", form.strip()) for form in forms] if {*"^$"} & {*source} else [])


def matches(answer: str, matcher: str | dict[str, Any], reading: Reading, *, forbidden: bool = False) -> bool:
    """Whether an element, a text or a matcher, is in the answer."""
    finds = contains if forbidden else shows
    if isinstance(matcher, str):
        return finds(answer, matcher, reading)
    if "any" in matcher:
        return any(matches(answer, single, reading, forbidden=forbidden) for single in matcher["any"])
    if "regex" in matcher:
        wanted = as_pattern(matcher)
        forms = searched(answer, reading, wanted.pattern) if forbidden else [answer]
        return any(wanted.search(text) is not None for text in forms)
    return finds(
        answer,
        matcher["text"],
        reading,
        ignore_case=matcher.get("ignore_case", True),
        word=matcher.get("word", False),
    )


def claimed(
    answer: str, claim: str | dict[str, Any], allowed: Iterable[str | dict[str, Any]], reading: Reading
) -> bool:
    """Whether a claim is in the answer outside of the allowed phrases."""
    wanted = as_pattern(claim)
    return any(_claimed(text, wanted, allowed) for text in searched(answer, reading, wanted.pattern))


def _claimed(answer: str, claim: re.Pattern[str], allowed: Iterable[str | dict[str, Any]]) -> bool:
    phrases = [match.span() for phrase in allowed for match in as_pattern(phrase).finditer(answer)]
    return any(not _covered(answer, match.span(), phrases) for match in claim.finditer(answer))


def _covered(answer: str, claim: tuple[int, int], phrases: list[tuple[int, int]]) -> bool:
    return any(
        start <= claim[0] and claim[1] <= end <= start + COVERED and not SENTENCE_END.search(answer, start, claim[1])
        for start, end in phrases
    )


def refusal_phrase(answer: str, phrases: Iterable[str], reading: Reading, *, built_in: bool) -> bool:
    """Whether the answer has a phrase with which an application refuses."""
    if any(contains(answer, phrase, reading) for phrase in phrases):
        return True
    starts = [plain(text)[:BUILT_IN_WITHIN].casefold() for text in (written(answer), shown(answer))]
    return built_in and any(phrase in start for phrase in BUILT_IN for start in starts)
