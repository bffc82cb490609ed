"""Answers to fitz-gov's cases, made up from what each case expects: good ones, bad ones, and ones that look alike."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as sre_parser  # type: ignore[attr-defined]
from typing import Any

Case = Mapping[str, Any]  # as fitz-gov loads it: with the settings of its file
Text = Callable[[Case], str]
MODES = ("trustworthy", "disputed", "abstain")
REFUSAL = "The context does not specify this information."
NATURAL = "From what the documents say, the matter is settled, but they leave the details open."
LURE = "There is no doubt that it costs $499, as mentioned on our site."


def example(pattern: str) -> str:
    """Return a text that a regex matches, the shortest of the first alternatives; the pattern itself if it is none."""
    try:
        return "".join(_examples(sre_parser.parse(pattern)))
    except re.error:
        return pattern


def _examples(parsed: Any) -> Iterator[str]:
    for kind, value in parsed:
        if kind is sre.LITERAL:
            yield chr(value)
        elif kind is sre.ANY:
            yield "x"
        elif kind is sre.IN:
            yield _one_of(value)
        elif kind is sre.NOT_LITERAL:
            yield "a" if chr(value) != "a" else "b"
        elif kind in {sre.MAX_REPEAT, sre.MIN_REPEAT}:
            least, _, repeated = value
            yield "".join(_examples(repeated)) * max(1, least)
        elif kind is sre.SUBPATTERN:
            yield from _examples(value[-1])
        elif kind is sre.BRANCH:
            yield from _examples(value[1][0])
        elif kind is not sre.AT:
            raise NotImplementedError(f"{kind} in a pattern of fitz-gov")


def _one_of(members: Sequence[tuple[Any, Any]]) -> str:
    kind, value = members[0]
    if kind is sre.NEGATE:
        return "§"
    if kind is sre.RANGE:
        return chr(value[0])
    if kind is sre.CATEGORY:
        return {sre.CATEGORY_DIGIT: "7", sre.CATEGORY_SPACE: " ", sre.CATEGORY_WORD: "w"}.get(value, "-")
    return chr(value)


def claims(case: Case) -> list[str]:
    """Return a text for each forbidden claim."""
    return [example(pattern) for pattern in case.get("forbidden_claims", [])]


def _sentences(texts: Sequence[str], sentence: str = "It is said that {} in this case.") -> str:
    return " ".join(sentence.format(text) for text in texts) or NATURAL


def _allowed(case: Case) -> str:
    """Return an answer in which each claim stands within what an allowed phrase may match, and once more outside."""
    phrases = [example(phrase) for phrase in case["evaluation_config"].get("allowed_phrases", [])]
    inside = " ".join(f"No {claim} is mentioned." for claim in claims(case))
    return f"{inside} {'. '.join(phrases)}. {_sentences(claims(case)[:1])}"


def _required(case: Case) -> list[str]:
    return list(case.get("required_elements", []))


def _least(case: Case) -> int:
    return int(case["evaluation_config"].get("min_required", 1))


def _best(case: Case) -> str:
    return _sentences(_required(case), "That is {}.") if _required(case) else REFUSAL


def _other_letters(text: str) -> str:
    """Return a text that looks alike: what a normalization would undo, and what a case-insensitive match may find."""
    return text.replace(" ", "\xa0").replace("'", "’").replace("s", "ſ").replace("k", "\u212a").replace("-", "‑")


def _composed(text: str) -> str:
    return "".join(f"{char}\u200b" if char == "e" else char for char in text).replace("a", "a\u0301")


TEXTS: Mapping[str, Text] = {
    "nothing": lambda _: "",
    "blanks": lambda _: " \n\t ",
    "all contexts": lambda case: "\n\n".join(case["contexts"]),
    "the first context": lambda case: str(case["contexts"][0]),
    "the question": lambda case: str(case["query"]),
    "a refusal": lambda _: REFUSAL,
    "a natural sentence": lambda _: NATURAL,
    "a lure": lambda _: LURE,
    "the best": _best,
    "each claim": lambda case: _sentences(claims(case)),
    "each claim in capitals": lambda case: _sentences(claims(case)).upper(),
    "each claim denied": lambda case: _sentences(claims(case), "No source says that {0}; {0} is not mentioned."),
    "each claim on lines": lambda case: "\n".join(claims(case)),
    "claims in allowed phrases": _allowed,
    "enough elements": lambda case: _sentences(_required(case)[: _least(case)]),
    "one element short": lambda case: _sentences(_required(case)[: max(0, _least(case) - 1)]),
    "every element": lambda case: _sentences(_required(case)),
    "every element in capitals": lambda case: _sentences(_required(case)).upper(),
    "one element over and over": lambda case: _sentences(_required(case)[:1] * 9),
    "elements and forbidden ones": lambda case: _sentences([*_required(case), *case.get("forbidden_elements", [])]),
    "other letters": lambda case: _other_letters(_sentences([*claims(case), *_required(case)])),
    "marks within words": lambda case: _composed(_sentences([*claims(case), *_required(case)])),
    "contexts and claims": lambda case: "\n".join([*case["contexts"], *claims(case)]),
}


def single_claims(number: int) -> Mapping[str, Text]:
    """Return kinds of answers that make one forbidden claim each, the ``number``th of a case."""

    def one(case: Case) -> str:
        every = claims(case)
        return every[number % len(every)] if every else NATURAL

    return {
        f"claim {number}": lambda case: f"In short: {one(case)}.",
        f"claim {number} in capitals": lambda case: one(case).upper(),
        f"claim {number} denied": lambda case: f"No {one(case)} was found, and {one(case)} is not specified.",
    }


def mode(case: Case, turn: int) -> str | None:
    """Return a mode: in turns the right one, the two wrong ones, the right one again, and none."""
    right = str(case["expected_mode"])
    return (right, *(other for other in MODES if other != right), right, None)[turn % 5]
