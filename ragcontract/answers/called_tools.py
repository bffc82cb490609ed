"""The tool calls of a row, read once for all rules about them, and found by the name of the tool."""

import json
import re
import unicodedata
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct

from ragcontract.answers.answer_text import Answer
from ragcontract.answers.cannot_score import CannotScoreError
from ragcontract.answers.json_values import comparable
from ragcontract.answers.matcher_records import Matcher
from ragcontract.answers.matchers import finds
from ragcontract.answers.tool_calls import Call, brief, tool_calls
from ragcontract.core import bounds
from ragcontract.core.invisible import without_invisible

_NAMESPACES = re.compile(r"__+|[./:\\]+")  # mcp__server__refund, functions.refund, server/refund, server:refund
_KINDS = re.compile(r"^(tools|functions)[_-]+")  # also namespaces: tools-refund
_NUMBER = re.compile(r":[0-9]+$")  # of the call: functions.refund:0
# Markup of a model's channels that a server left in a name: refund<|channel|>commentary, commentary to=functions.refund
_MARKUP = re.compile(r"<\|[^|]*(?:\|>|$)|\bto=")
_AROUND = " \t\n\"'`$"  # a name that is encoded twice; $web_search, as some services call their own tools
_SEPARATORS = re.compile(r"[\W_]+")  # in the names of arguments
_JOINTS = re.compile(r"[\s_-]+")  # of words: delete_user is deleteUser, and delete-user


_LEAST_SEARCHED = 1_000  # characters whose search takes as long as that of any shorter text


class Arguments(Struct, frozen=True, gc=False):
    """The arguments of a call: ``values`` by name, and ``keys`` of name and value that are equal for equal ones."""

    keys: frozenset[tuple[str, int]]
    values: dict[str, list[object]]


class CalledTools:
    """The calls of a row. What is compared or shown of a call is made once, however many rules look at it."""

    def __init__(self, called: Sequence[Mapping[str, Any]]) -> None:
        """Read the calls; raises CannotScoreError."""
        self.calls = tool_calls(called)
        self._named: dict[str, list[Call]] = {}
        for call in self.calls:
            self._named.setdefault(call.name, []).append(call)
        self._ending: dict[str, list[tuple[tuple[str, ...], str]]] = {}  # the names by the last of their parts
        self._joined: dict[str, list[str]] = {}  # and by all of them: shop_refund is shop.refund
        for name in self._named:
            for parts in map(parts_of, _without_markup(name)):
                self._ending.setdefault(parts[-1], []).append((parts, name))
                self._joined.setdefault("".join(parts), []).append(name)
        self._arguments: dict[tuple[int, bool], Arguments | None] = {}
        self._keys: dict[Hashable, int] = {}
        self._texts: dict[int, tuple[str, ...]] = {}  # by the value's id: the calls hold all values
        self._searched = 0
        self._briefs: dict[int, str] = {}
        self._answers: dict[str, Answer] = {}

    def named(self, tool: str) -> Sequence[Call]:
        """Return the calls that have exactly this name."""
        return self._named.get(tool, ())

    def resembling(self, tool: str) -> Sequence[Call]:
        """Return the calls whose name is that of the tool in any form, in their order.

        The forms differ in case, in characters that nobody sees, in how words are joined, in a namespace that one of
        the two has, in markup of a model's channels, or in parentheses or the number of the call behind it.
        """
        sought = parts_of(tool)
        names = {name for parts, name in self._ending.get(sought[-1], ()) if _ends_alike(parts, sought)}
        names.update(self._joined.get("".join(sought), ()))
        if len(names) <= 1:
            return self._named[names.pop()] if names else ()
        return [call for call in self.calls if call.name in names]

    def arguments(self, call: Call, *, in_any_form: bool) -> Arguments | None:
        """Return the arguments of a call by their names, or by the forms of these; None if they cannot be read."""
        made = id(call), in_any_form
        if made not in self._arguments:
            self._arguments[made] = self._read(call, self.form_of if in_any_form else str)
        return self._arguments[made]

    def _read(self, call: Call, form: Callable[[str], str]) -> Arguments | None:
        values = call.comparable()
        if values is None or call.arguments is None:
            return None
        read: dict[str, list[object]] = {}
        for name, value in call.arguments.items():
            read.setdefault(form(name), []).append(value)
        keys = frozenset((form(name), self._key(value)) for name, value in values.items())
        return Arguments(keys, read)

    def key_of(self, value: object) -> int:
        """Return a number that is equal for equal JSON values."""
        return self._key(comparable(value))

    def _key(self, value: Hashable) -> int:
        return self._keys.setdefault(value, len(self._keys))

    @staticmethod
    def form_of(name: str) -> str:
        """Return the name of an argument in the form in which forbidden ones are compared: orderId is order_id."""
        return _form_of_argument(name)

    def texts(self, value: object) -> tuple[str, ...]:
        """Return all texts that a pattern is searched for in, of a value among the arguments."""
        if id(value) not in self._texts:
            self._texts[id(value)] = tuple(dict.fromkeys(_texts_in(value)))
        return self._texts[id(value)]

    def has(self, pattern: Matcher, texts: Iterable[str], *, too_long: bool) -> bool:
        """Return whether a pattern is found in one of some texts; ``too_long`` stands for those too long to search.

        Raises CannotScoreError if more is searched for in these calls than there is time for.
        """
        for text in texts:
            self._searched += max(len(text), _LEAST_SEARCHED)
            if self._searched > bounds.ARGUMENTS_SEARCHED:
                raise CannotScoreError(
                    "has tool_calls whose arguments are too long, or too many, to search for all patterns of "
                    "its rules; write fewer patterns, or export fewer calls"
                )
            if too_long if len(text) > bounds.ANSWER else finds(pattern, self._answer(text)):
                return True
        return False

    def brief(self, call: Call) -> str:
        """Return one of the calls as people write it."""
        if id(call) not in self._briefs:
            self._briefs[id(call)] = brief(call)
        return self._briefs[id(call)]

    def _answer(self, text: str) -> Answer:
        if len(text) <= _LEAST_SEARCHED:  # which is made as fast as it is looked up
            return Answer(text)
        if text not in self._answers:
            self._answers[text] = Answer(text)
        return self._answers[text]


@lru_cache(maxsize=4096)
def parts_of(name: str) -> tuple[str, ...]:
    """Return the parts of a tool's name between the separators of namespaces, each in the form that is compared.

    A name that has nothing to compare is its own only part.
    """
    seen = without_invisible(unicodedata.normalize("NFKC", name)).casefold().strip(_AROUND)
    if seen.endswith(")"):  # refund(), refund(id=7)
        seen = seen.partition("(")[0]
    seen = _KINDS.sub(r"\1.", _NUMBER.sub("", seen))
    parts = (_JOINTS.sub("", part) for part in _NAMESPACES.split(seen))
    return tuple(filter(None, parts)) or (name,)


@lru_cache(maxsize=4096)
def _form_of_argument(name: str) -> str:
    seen = without_invisible(unicodedata.normalize("NFKC", name)).casefold()
    return _SEPARATORS.sub("", seen) or name


def _texts_in(value: object) -> Iterator[str]:
    """Yield all that a value has as texts: numbers and booleans as JSON writes them, and the keys of objects."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from _texts_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts_in(inner)
    elif value is not None:
        yield json.dumps(value)
        if isinstance(value, float) and value.is_integer():  # 900.0 is 900
            yield str(int(value))


def _without_markup(name: str) -> list[str]:
    """Return what stands before, between and after the markup of channels in a name; the name itself without any."""
    return [part for part in _MARKUP.split(name) if part.strip()] or [name]


def _ends_alike(first: tuple[str, ...], second: tuple[str, ...]) -> bool:
    """Return whether the shorter of two names is the end of the longer."""
    length = min(len(first), len(second))
    return first[-length:] == second[-length:]
