"""Which of a server's models answers, where the target file says ``auto``."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.record.interface import CallFailed

NO_CHAT = ("embed", "rerank", "whisper", "tts", "clip", "bge-", "moderation")
PREFERRED = ("instruct", "chat")
NO_SUCH_PAGE = {404, 405}


class Resolved(Struct, frozen=True, kw_only=True):
    """The model that requests name, and ``how`` it was chosen; None if the target file names it."""

    model: str
    how: Mapping[str, Any] | None = None


def resolve(models: Callable[[], Any]) -> Resolved:
    """Choose a model from the answer to ``GET /models``, which ``models`` returns; raises InputError.

    Those that make embeddings and the like are left out; of the others, the first that ``instruct`` or ``chat`` is in
    the name of, else the first. A server that has no such page gets the name ``auto``.
    """
    try:
        content = models()
    except CallFailed as failure:
        if failure.detail is None or failure.detail["status_code"] not in NO_SUCH_PAGE:
            problem = f"chat.model: `auto` asks the server which models it has: {failure}"
            raise InputError([f"{problem}; name the model with `model`, if the server works without"]) from None
        why = "the server does not list its models"
        how = {"server_models": [], "chosen_because": why, "fallback": "auto", "error": str(failure)}
        return Resolved(model="auto", how=how)
    rows = content.get("data") if isinstance(content, dict) else None
    ids = [row["id"] for row in rows if _has_id(row)] if isinstance(rows, list) else []
    fit = [name for name in ids if not any(part in name.lower() for part in NO_CHAT)]
    preferred = [name for name in fit if any(part in name.lower() for part in PREFERRED)]
    if not fit:
        names = ", ".join(ids[: bounds.NAMES]) or "none"
        raise InputError([f"chat.model: `auto` finds no model for chat among the server's ({names}); name one"])
    why = "the first whose name has instruct or chat in it" if preferred else "the first of the server's models"
    found: dict[str, Any] = {
        "server_models": ids[: bounds.SERVER_MODELS],
        "chosen_because": why,
        "fallback": None,
        "error": None,
    }
    return Resolved(model=(preferred or fit)[0], how=found)


def _has_id(row: Any) -> bool:
    return isinstance(row, dict) and isinstance(row.get("id"), str) and bool(row["id"])
