"""Decodes the JSON of services and commands, and refuses what has two values for one key."""

import json
from typing import Any

from ragcontract.files.doubled import fault, first_doubled
from ragcontract.record.interface import CallFailed


def decoded_json(content: str | bytes) -> Any:
    """Return the decoded JSON; raises ValueError if it is none, and CallFailed if an object has a key twice."""
    return json.loads(content, object_pairs_hook=_object)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs) and (name := first_doubled(name for name, _ in pairs)) is not None:
        raise CallFailed("bad_answer", fault(name))
    return made
