"""The finish reasons and modes of answers, the options of metrics about answers, and the error of their functions.

A finish reason says why a model stopped, in the words of its service, which applications write in different ways. A
mode says how the application answered. The options are those of the section ``metrics`` of the configuration. They are
apart from the functions that compute the metrics, because only contracts about answers import those.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Annotated, Literal, TypeAlias, get_args

from msgspec import Meta, Struct

from ragcontract.core import bounds
from ragcontract.core.golden import Mode
from ragcontract.core.invisible import without_invisible
from ragcontract.core.nearest import nearest
from ragcontract.core.numbers import SAME
from ragcontract.core.phrase import Message, private
from ragcontract.core.safe_text import shorten, visible
from ragcontract.files.schema import shown

LENGTH = 100  # characters of a reason that are read
# The beginnings of reasons of a service's filter or a model that refuses: OpenAI, Azure, Anthropic, Google, Amazon.
FILTERED = (
    "contentfilter", "safety", "guardrail", "refus", "recitation", "blocklist", "prohibited", "spii", "toxic",
    "moderat", "blocked", "modelarmor",
)  # fmt: skip
# The answer reached a limit, or something ended it: OpenAI, Anthropic, Google, Amazon, Mistral, Cohere, vLLM, DeepSeek.
_CUT_OFF = re.compile(
    "(?:finishreason|stopreason)*(?:(?:max|error|fail|abort|cancel|interrupt|disconnect|pause|partial|inprogress|queued|"
    "insufficient|repetition|exception|crash|malformedmodel|malformedresponse).*|"
    ".*(?:length|limit|exceed|truncat|incomplete|timeout|timedout|cutoff).*)"
)
# Parts of the reasons of models that call tools: tool_calls, tool_use, function_call, MALFORMED_FUNCTION_CALL, and of
# the runs of OpenAI's assistants: requires_action.
_CALLING = ("toolcall", "tooluse", "functioncall", "requiresaction")
_KIND = re.compile(r"^(?:finishreason|stopreason|error|image)+")


def is_filtered(finish_reason: str | None) -> bool:
    """Return whether a filter or the model itself refused to answer; case and separators make no difference."""
    return finish_reason is not None and _reason(finish_reason).startswith(FILTERED)


def uncalled(calls: Sequence[object] | None, finish_reason: str | None) -> str | None:
    """Return what a row lacks if the model stopped for tool calls and there is none; None if it lacks nothing."""
    if calls is None or calls or not is_for_calls(finish_reason):
        return None
    reason = shorten(visible(finish_reason or ""), bounds.NAME)
    rest = f"[] as tool_calls, and {reason!r} as finish_reason; export the calls of the model, too"
    return Message.quoting("has ", private(rest))


def telling(reasons: Iterable[object]) -> str | None:
    """Return why a model stopped, of what several fields say: what a rule reads before what none does."""
    texts = [reason for reason in reasons if isinstance(reason, str) and reason]
    special = (text for tells in (is_filtered, is_for_calls, is_cut_off) for text in texts if tells(text))
    return next(special, texts[0] if texts else None)


def tell_the_same(reasons: Iterable[str]) -> bool:
    """Return whether reasons mean the same to every rule, as "stop" and "end_turn" do."""
    return len({(is_filtered(one), is_for_calls(one), is_cut_off(one)) for one in reasons}) <= 1


def is_cut_off(finish_reason: str | None) -> bool:
    """Return whether an answer ended at a limit or with an error, and not because the model had said all of it."""
    if finish_reason is None or is_filtered(finish_reason):
        return False
    return _CUT_OFF.fullmatch(letters_of(finish_reason[:LENGTH])) is not None


def is_for_calls(finish_reason: object) -> bool:
    """Return whether a model stopped to have tools called, or because its call of one was malformed."""
    if not isinstance(finish_reason, str):
        return False
    letters = letters_of(finish_reason[:LENGTH])
    return any(word in letters for word in _CALLING)


def _reason(finish_reason: str) -> str:
    """Return the letters of a reason without the name of its kind, as in ``FinishReason.IMAGE_SAFETY``."""
    return _KIND.sub("", letters_of(finish_reason[:LENGTH]))


@lru_cache(maxsize=100)
def letters_of(reason: str) -> str:
    """Return the letters and digits of a reason in lower case, without the separators of words."""
    return re.sub(r"[\W_]+", "", reason.casefold())


MODES: tuple[Mode, ...] = get_args(Mode)
ABSTAIN: Mode = "abstain"
# The beginnings of other words for abstain, without separators.
REFUSING = (
    "refus", "declin", "abst", "unanswer", "noanswer", "nonanswer", "notanswer", "cannotanswer", "unable", "denied",
    "deny", "reject", "blocked", "norespon", "noresult", "guardrail", "contentfilter",
)  # fmt: skip
_ANY = f"{', '.join(MODES[:-1])} or {MODES[-1]}"


def misspelled_mode(mode: str | None) -> str | None:
    """Return what is wrong with a mode that is a misspelling of a known mode or another word for it, or None."""
    return unknown_mode(mode) if mode is not None and mode not in MODES and _meant(mode) else None


def unknown_mode(mode: str | None) -> str | None:
    """Return what is wrong with the mode of a row that needs one; completes "query 'q1' …". None for a known mode."""
    if mode in MODES:
        return None
    if mode is None:
        return Message.quoting("has no mode", f", which expected_mode needs; export {_ANY}")
    near = _meant(mode)
    rest = f", expected {_ANY}{f'; did you mean {near!r}?' if near else ''}"
    return Message.quoting("has the mode ", private(shown(mode)), rest)


def _meant(mode: str) -> str | None:
    visible = without_invisible(mode).strip()
    return nearest(visible, MODES) or (ABSTAIN if letters_of(visible).startswith(REFUSING) else None)


Measure: TypeAlias = Literal["coverage", "levenshtein", "hamming", "jaro", "jaro_winkler"]
Match: TypeAlias = Literal["name", "name_and_arguments"]
Tokenizer: TypeAlias = Literal["13a", "intl", "zh", "char"]
Threshold = Annotated[
    float, Meta(gt=SAME, le=1, title="a number above 0, with which every text would count, and at most 1, as 0.5")
]


class NoOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A metric without options: its entry, ``{}``, switches it on."""


class BleuOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How BLEU takes texts apart."""

    words: Annotated[
        Tokenizer,
        Meta(description="What sacrebleu takes for words: 13a, intl for Unicode, zh for Chinese, char: characters."),
    ] = "13a"


class TextRecallOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a reference context counts as retrieved."""

    measure: Annotated[
        Measure, Meta(description="How texts are compared: by their sequences of three words, or by a distance.")
    ] = "coverage"
    threshold: Annotated[
        Threshold, Meta(description="The coverage from which, or the similarity above which, a reference counts.")
    ] = 0.5


class ToolMatchOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a call counts as a wanted one."""

    match: Annotated[Match, Meta(description="Whether the arguments must be equal, too.")] = "name"
    lenient: Annotated[bool, Meta(description='Whether an argument "1" is equal to 1, and "true" to true.')] = False


class ToolArgumentsOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When an argument of a call counts as a wanted one."""

    lenient: Annotated[bool, Meta(description='Whether an argument "1" is equal to 1, and "true" to true.')] = False
    strict_arguments: Annotated[bool, Meta(description="Whether arguments that were not wanted count as wrong.")] = (
        False
    )


class CannotScoreError(ValueError):
    """An input of a metric is invalid or too large; the message completes "query 'q1' …", as ``has no response``."""


class NoWordsError(CannotScoreError):
    """A text of the contract has no words."""
