"""Replies of a judge as JSON: exactly one value. The first of several may be one that a judged text dictated."""

import json
from typing import Any

from ragcontract.answers.json_text import unfenced
from ragcontract.core import bounds
from ragcontract.files.nesting import NestingError, check_nesting
from ragcontract.judge.interface import Reply

_THINK, _END_OF_THINKING = "<think>", "</think>"


class ReplyFault(ValueError):  # noqa: N818 (what is wrong with a reply, which is asked for again)
    """What is wrong with a reply; completes "Your last reply …". It has no words of the reply in it."""


def object_of(reply: Reply) -> dict[str, Any]:
    """Return the object that a reply is; raises :class:`ReplyFault`.

    Thoughts before it are cut off, and one fenced block around it is removed. A name that occurs twice in an object is
    a fault: readers differ in which of the values counts.
    """
    text = reply.text.removeprefix("\ufeff").strip()
    if len(text) > bounds.REPLY:
        raise ReplyFault(f"has more than {bounds.REPLY:,} characters")
    if reply.cut:
        raise ReplyFault("was cut off because it was too long; write shorter reasons")
    if text.startswith(_THINK):
        # Up to the first end: what follows a second one is no single value, whoever wrote the first one.
        text = text.partition(_END_OF_THINKING)[2]
    text = unfenced(text)
    try:
        check_nesting(text.encode(errors="replace"))
        value = json.loads(text, object_pairs_hook=_without_repetition, parse_constant=_no_json)
    except ReplyFault:
        raise
    except (ValueError, NestingError):  # also whole numbers with thousands of digits
        raise ReplyFault("was not exactly one JSON object; write nothing before or after it") from None
    if not isinstance(value, dict):
        raise ReplyFault("was not a JSON object")
    return value


def listed(value: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the list of objects that is all of a reply; raises :class:`ReplyFault`."""
    items = value.get(name)
    if set(value) != {name} or not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ReplyFault(f"was not an object with one field, {name!r}, that is a list of objects")
    return items


def writable(text: str) -> str:
    """Return a text of a reply as it can be written: JSON can escape halves of characters, which no file can have."""
    return text.encode(errors="replace").decode()


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ReplyFault("had a field twice in one object")
    return found


def _no_json(_constant: str) -> None:
    raise ReplyFault("had a number that is no JSON")
