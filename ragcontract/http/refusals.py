"""What it means that a call failed: whether another one may succeed, and the reason that a server gives."""

from typing import Any

# What another attempt may change. Others would get the same answer: a wrong address, a wrong key, a wrong question.
AGAIN = {"connect_timeout", "unreachable", "proxy_error", "connection_lost"}
AGAIN_STATUSES = {408, 409, 425, 429}


def may_succeed_later(status: int) -> bool:
    """Return whether the same call may be accepted later."""
    return status in AGAIN_STATUSES or 500 <= status < 600  # noqa: PLR2004


def reason_in(content: Any) -> str:
    """Return the reason in the content of a failure, in the forms that are common; empty if there is none."""
    for name in ("error", "message", "detail", "error_description", "title"):
        found = content.get(name) if isinstance(content, dict) else None
        if isinstance(found, dict):
            found = reason_in(found)
        if isinstance(found, str) and found:
            return found
    return ""
