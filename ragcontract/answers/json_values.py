"""Equality of JSON values: numbers by value, objects regardless of the order of their keys, all else exactly."""

import re
from collections.abc import Hashable
from math import isfinite

from ragcontract.core import bounds

_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,17})?([eE][+-]?[0-9]{1,3})?")
_WORDS = {"true": True, "false": False, "null": None}


class TooDeepError(ValueError):
    """A value is nested too deeply to be compared."""


def comparable(value: object, *, lenient: bool = False, level: int = 0) -> Hashable:
    """Return something that is equal for equal JSON values, and only for these.

    A boolean is no number, 1 is 1.0, and "1" is neither. If ``lenient``, a text that is a JSON number, true, false or
    null is that value. Raises TooDeepError for more than ``bounds.ARGUMENT_LEVELS`` levels.
    """
    if level > bounds.ARGUMENT_LEVELS:
        raise TooDeepError(f"is nested more than {bounds.ARGUMENT_LEVELS} levels deep")
    match value:
        case dict():
            items = [(name, comparable(one, lenient=lenient, level=level + 1)) for name, one in value.items()]
            return "object", frozenset(items)
        case list():
            return "list", tuple([comparable(one, lenient=lenient, level=level + 1) for one in value])
        case str() if lenient:
            return _scalar(_meant(value))
        case _:
            return _scalar(value)


def _scalar(value: object) -> Hashable:
    return (type(value) is bool, value)  # True is 1 in Python


def _meant(text: str) -> str | float | bool | None:
    """Return the number, boolean or null that a text is in JSON; otherwise the text."""
    if text in _WORDS:
        return _WORDS[text]
    if not _NUMBER.fullmatch(text):
        return text
    number = float(text) if re.search("[.eE]", text) else int(text)
    return number if isfinite(number) else text
