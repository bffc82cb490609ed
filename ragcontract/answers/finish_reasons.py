"""Why a model stopped, in the words of the services, however an application writes them."""

import re
from functools import lru_cache

LENGTH = 100  # characters of a reason that are read
# How reasons begin of a filter of the service, or of a model that refuses: OpenAI, Azure, Anthropic, Google, Amazon.
FILTERED = (
    "contentfilter", "safety", "guardrail", "refus", "recitation", "blocklist", "prohibited", "spii", "toxic",
    "moderat", "blocked", "modelarmor",
)  # fmt: skip
# The answer reached the limit of tokens: OpenAI, Anthropic, Google, Amazon, and a context that was full.
CUT_OFF = frozenset({"length", "maxtokens", "maxoutputtokens", "maxlength", "modelcontextwindowexceeded"})
_KIND = re.compile(r"^(?:finishreason|stopreason|error|image)+")


def is_filtered(finish_reason: str | None) -> bool:
    """Return whether a filter or the model itself refused to answer; case and separators make no difference."""
    return finish_reason is not None and _reason(finish_reason).startswith(FILTERED)


def is_cut_off(finish_reason: str | None) -> bool:
    """Return whether an answer ended at a limit of its length."""
    return finish_reason is not None and _reason(finish_reason) in CUT_OFF


def _reason(finish_reason: str) -> str:
    """Return the letters of a reason without what names its kind, as in ``FinishReason.IMAGE_SAFETY``."""
    return _KIND.sub("", letters_of(finish_reason[:LENGTH]))


@lru_cache(maxsize=100)
def letters_of(reason: str) -> str:
    """Return the letters and digits of a reason in lower case, without what joins its words."""
    return re.sub(r"[\W_]+", "", reason.casefold())
