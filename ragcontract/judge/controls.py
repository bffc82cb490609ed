"""Controls: items in every call whose verdicts are known, so that a judge that does not judge is noticed.

One of two must be found for and one against, so that neither always yes nor always no passes. They stand at random
places among the items, and their words are random, so that no text can be written beforehand that excepts them.
"""

import re
from collections.abc import Iterator, Sequence
from typing import TypeVar

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.judge.interface import Dice
from ragcontract.runs.judged_texts import Case, Verdict

LEAST_PASSAGE = 20  # characters; shorter ones are taken where there is no other
TOKEN_BITS = 32
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
_CONSONANTS, _VOWELS = "bdfgklmnprstv", "aeiou"
# Statements that no text makes, because of the word in them.
_NEVER_SAID = (
    "The filing number of this text is {}.",
    "This was last reviewed under the reference {}.",
    "Questions are answered by the office called {}.",
    "The agreement on this is registered as {}.",
    "The first person to propose this was {}.",
    "The batch in question has the number {}.",
    "In the appendix, this is called {}.",
    "The final version was approved by {}.",
    "The name of the archive is {}.",
    "The code for this entry is {}.",
)
_NEVER_MET = (
    "The response names the reference number {}.",
    "The response mentions {}.",
    "The response says that {} is responsible.",
    "The response has the word {} in it.",
    "The response refers the reader to {}.",
)
_DENIALS = (
    "It is not known what {} is.",
    "There is no information about {}.",
    "Nothing here says anything about {}.",
    "Whether {} exists is not stated.",
)

T = TypeVar("T")


class Control(Struct, frozen=True, kw_only=True):
    """An item with the verdict that it must get."""

    text: str
    why: str = ""
    expected: Verdict


class Controls(Struct, frozen=True, kw_only=True):
    """The controls of a call. ``response`` is what is said to have been answered, with what some of them are about."""

    items: tuple[Control, ...]
    response: str | None


def controls_of(case: Case, dice: Dice) -> Controls:
    """Return the controls of one call on a case, which has texts to take a passage from."""
    said = "\n".join([case.question, *case.contexts, case.response or "", *(item.text for item in case.items)])
    if case.task == "attribution":
        passage = _passage(_pick([text for text in case.contexts if text.strip()], dice), dice)
        never = _pick(_NEVER_SAID, dice).format(_word(said, dice))
        controls = [Control(text=passage, expected=True), Control(text=never, expected=False)]
        return Controls(items=tuple(controls), response=case.response)
    if case.task == "criteria":
        passage = _passage(case.response or "", dice)
        never = _pick(_NEVER_MET, dice).format(_word(said, dice))
        met = f"The response has these words in it: {passage}"
        return Controls(
            items=(Control(text=met, expected=True), Control(text=never, expected=False)), response=case.response
        )
    return _in_response(case, said, dice)


def _in_response(case: Case, said: str, dice: Dice) -> Controls:
    """Return controls about an assertion and a denial that are added to the response: nothing in it is sure to be."""
    asserted = _pick(_NEVER_SAID, dice).format(_word(said, dice))
    denied = _pick(_DENIALS, dice).format(_word(said, dice))
    lines = [asserted, case.response or "", denied]
    dice.shuffle(lines)
    why = [_pick(case.items, dice).why for _ in range(2)]
    items = (
        Control(text=asserted, why=why[0], expected="asserts_unsupported"),
        Control(text=denied, why=why[1], expected="denies_or_reports_absence"),
    )
    return Controls(items=items, response="\n".join(lines))


def _passage(text: str, dice: Dice) -> str:
    """Return a sentence, or a part of a long one, word for word."""
    parts = [part for part in map(_cut, _SENTENCE_END.split(text)) if part]
    return _pick([part for part in parts if len(part) >= LEAST_PASSAGE] or parts, dice)


def _cut(sentence: str) -> str:
    sentence = sentence.strip()
    if len(sentence) <= bounds.CONTROL:
        return sentence
    cut = sentence[: bounds.CONTROL + 1].rpartition(" ")[0].rstrip()
    return cut or sentence[: bounds.CONTROL]


def _word(said: str, dice: Dice) -> str:
    """Return a name or a number that the texts do not have."""
    return next(word for word in _words(dice) if word not in said)


def _words(dice: Dice) -> Iterator[str]:
    while True:
        kind = dice.randrange(3)
        if kind == 0:
            yield f"{dice.getrandbits(TOKEN_BITS):08x}"
        elif kind == 1:
            yield f"{dice.randrange(900) + 100}-{dice.randrange(90_000) + 10_000}"
        else:
            yield "".join(_pick(_CONSONANTS, dice) + _pick(_VOWELS, dice) for _ in range(4)).capitalize()


def _pick(items: Sequence[T], dice: Dice) -> T:
    return items[dice.randrange(len(items))]
