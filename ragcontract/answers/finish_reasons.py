"""Why a model stopped, in the words of the services, however an application writes them."""

import re
from collections.abc import Sequence
from functools import lru_cache

from ragcontract.core import bounds
from ragcontract.core.text import shorten, visible

LENGTH = 100  # characters of a reason that are read
# How reasons begin of a filter of the service, or of a model that refuses: OpenAI, Azure, Anthropic, Google, Amazon.
FILTERED = (
    "contentfilter", "safety", "guardrail", "refus", "recitation", "blocklist", "prohibited", "spii", "toxic",
    "moderat", "blocked", "modelarmor",
)  # fmt: skip
# The answer reached the limit of tokens: OpenAI, Anthropic, Google, Amazon, and a context that was full.
CUT_OFF = frozenset({"length", "maxtokens", "maxoutputtokens", "maxlength", "modelcontextwindowexceeded"})
# What the reasons have of models that call tools: tool_calls, tool_use, function_call, MALFORMED_FUNCTION_CALL.
_CALLING = ("toolcall", "tooluse", "functioncall")
_KIND = re.compile(r"^(?:finishreason|stopreason|error|image)+")


def is_filtered(finish_reason: str | None) -> bool:
    """Return whether a filter or the model itself refused to answer; case and separators make no difference."""
    return finish_reason is not None and _reason(finish_reason).startswith(FILTERED)


def uncalled(calls: Sequence[object] | None, finish_reason: str | None) -> str | None:
    """Return what a row lacks in which no tool was called, although the model stopped for that; None if nothing."""
    if calls is None or calls or not is_for_calls(finish_reason):
        return None
    reason = shorten(visible(finish_reason or ""), bounds.NAME)
    return f"has [] as tool_calls, and {reason!r} as finish_reason; export the calls of the model, too"


def is_cut_off(finish_reason: str | None) -> bool:
    """Return whether an answer ended at a limit of its length."""
    return finish_reason is not None and _reason(finish_reason) in CUT_OFF


def is_for_calls(finish_reason: object) -> bool:
    """Return whether a model stopped to have tools called, or because its call of one was malformed."""
    if not isinstance(finish_reason, str):
        return False
    letters = letters_of(finish_reason[:LENGTH])
    return any(word in letters for word in _CALLING)


def _reason(finish_reason: str) -> str:
    """Return the letters of a reason without what names its kind, as in ``FinishReason.IMAGE_SAFETY``."""
    return _KIND.sub("", letters_of(finish_reason[:LENGTH]))


@lru_cache(maxsize=100)
def letters_of(reason: str) -> str:
    """Return the letters and digits of a reason in lower case, without what joins its words."""
    return re.sub(r"[\W_]+", "", reason.casefold())
