"""Why a model stopped, in the words of OpenAI's API, however an application writes them."""

import re
from functools import lru_cache

CONTENT_FILTER = "content_filter"
CUT_OFF = "length"  # the answer reached the limit of tokens


def stopped_for(reason: str, finish_reason: str | None) -> bool:
    """Return whether this is the ``finish_reason``; case and separators make no difference, as in CONTENT_FILTER."""
    return finish_reason is not None and _letters(finish_reason[:100]) == _letters(reason)


@lru_cache(maxsize=100)
def _letters(reason: str) -> str:
    return re.sub(r"[\W_]+", "", reason.casefold())
