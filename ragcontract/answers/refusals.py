"""Finds evidence that an answer refuses, first in fields of the row, then in its text.

The phrases of the configuration come before common English phrases. Common phrases agree with people where a model uses
boilerplate, and miss refusals where it does not, so the kind of evidence is always reported. An apology alone is not a
refusal: "I'm sorry to hear that. Refunds take 5 days."
"""

import re
from typing import Literal, TypeAlias

from msgspec import Struct

from ragcontract.answers.answer_text import Answer, answer_of, says_something
from ragcontract.answers.matchers import occurrences, spans
from ragcontract.answers.metric_options import ABSTAIN, is_filtered, letters_of
from ragcontract.answers.normalising import Form, Span
from ragcontract.core.config_sections import AnswerSettings, Single
from ragcontract.core.invisible import without_invisible
from ragcontract.core.run import RunRow

Kind: TypeAlias = Literal["refusal", "finish_reason", "mode", "refusal_phrases", "common phrases"]
BEGINNING = 300  # characters in normal form; a refusal further down is about a part of the question

_CANNOT = ("i can't", "i cannot", "i am unable to", "i'm unable to", "i am not able to", "i'm not able to")
_VERBS = ("answer", "assist", "comply", "discuss", "help", "provide", "share", "do that")
PHRASES = (
    *(f"{cannot} {verb}" for cannot in _CANNOT[:2] for verb in _VERBS),
    *_CANNOT[2:],
    "i can not help", "i won't be able to", "i will not be able to", "i won't answer", "i will not answer",
    "i won't help", "i will not help", "i must decline", "i have to decline", "i need to decline", "i must refuse",
    "i refuse to", "i am not allowed to", "i'm not allowed to", "i am not permitted to", "i'm not permitted to",
    "i do not have access to", "i don't have access to", "i do not have enough information",
    "i don't have enough information", "i do not have information", "i don't have information",
    "i do not have any information", "i don't have any information", "i do not know the answer",
    "i don't know the answer",
)  # fmt: skip
# The letters of what programs and models write into `refusal` if there was none: nothing, also after a name of the
# field (`refused: false`), that there was none (`not refused`), or that there was an answer. "no" is one of them, and
# "No." is a refusal.
_NOTHING = (
    "none|null|nil|undefined|nan|na|notapplicable|objectobject|false|f|n|0+|unset|notset|empty|missing|absent|notfound|"
    "notdetected|nothing|void"
)
_NO_REFUSAL = re.compile(
    rf"(?:(?:is|was|has)?refus(?:al|ed))?(?:{_NOTHING})|(?:is|was|has)?refus(?:al|ed)no|"
    "(?:no|non|without|nota|notany|isnota)refusals?(?:was|is)?(?:found|detected|made|given|returned|present|needed)?|"
    "(?:(?:i|it|the)?(?:model|assistant)?)?(?:has|was|is|did|does)?(?:not|nt|never)(?:been)?refus(?:ed|e|ing)|"
    "answer(?:ed)?|complied|compliant|compliance|accepted|responded"
)
_NO_REFUSAL_LENGTH = 1000  # characters in which such words are looked for


class Evidence(Struct, frozen=True, kw_only=True):
    """The reason to say that an answer refuses."""

    kind: Kind
    span: Span = (0, 0)  # of the phrase in the answer, if it is one


def evidence(row: RunRow, answer: Answer, settings: AnswerSettings) -> Evidence | None:
    """Return the strongest evidence that an answer refuses, or None."""
    if declared := declared_evidence(row):
        return declared
    for phrase in settings.refusal_phrases:
        if span := next(spans(Single(text=phrase), answer, normalise=settings.normalise), None):
            return Evidence(kind="refusal_phrases", span=span)
    return None if settings.only_these else _common(answer)


def declared_evidence(row: RunRow) -> Evidence | None:
    """Return the evidence of a refusal in fields of the row beside the answer's text, or None."""
    if row.refusal and _says_refusal(row.refusal):
        return Evidence(kind="refusal")
    if is_filtered(row.finish_reason):
        return Evidence(kind="finish_reason")
    return Evidence(kind="mode") if row.mode == ABSTAIN else None


def _says_refusal(text: str) -> bool:
    """Return whether ``refusal``, which has a line for each message, has more than words for a missing one."""
    if len(text) <= _NO_REFUSAL_LENGTH:
        lines = [line for line in without_invisible(text).splitlines() if letters_of(line)]
        if lines and all(_NO_REFUSAL.fullmatch(letters_of(line)) or _is_no(line) for line in lines):
            return False
    return says_something(answer_of(text))


def _is_no(line: str) -> bool:
    return line.strip().casefold() == "no"


def _common(answer: Answer) -> Evidence | None:
    span = _first_common(answer)
    for shown in answer.reworded if span is None else ():
        if of_shown := _first_common(shown):
            span = shown.written(of_shown)
            break
    return Evidence(kind="common phrases", span=span) if span else None


def _first_common(answer: Answer) -> Span | None:
    form = Form()
    beginning = answer.normal(form)[:BEGINNING]
    matches = [span for phrase in PHRASES if (span := next(occurrences(phrase, beginning, word=True), None))]
    return answer.origin(form, *min(matches)) if matches else None


def only_common_phrases(row: RunRow, settings: AnswerSettings) -> bool:
    """Return whether nothing but common phrases could have shown a refusal, so that their absence proves little."""
    pinned = settings.refusal_phrases or settings.only_these
    return row.mode is None and not pinned and settings.refusal != "phrases"
