"""The tool calls of a row, read once for all rules about them, and found by the name of the tool."""

import re
import unicodedata
from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from ragcontract.answers.answer_text import Answer
from ragcontract.answers.tool_calls import Call, brief, tool_calls
from ragcontract.core.invisible import without_invisible

_NAMESPACES = re.compile(r"__+|[./:\\]+")  # mcp__server__refund, functions.refund, server/refund, server:refund
_KINDS = re.compile(r"^(tools|functions)[_-]+")  # also namespaces: tools-refund
_NUMBER = re.compile(r":[0-9]+$")  # of the call: functions.refund:0
# Markup of a model's channels that a server left in a name: refund<|channel|>commentary, commentary to=functions.refund
_MARKUP = re.compile(r"<\|[^|]*(?:\|>|$)|\bto=")
_AROUND = " \t\n\"'`$"  # a name that is encoded twice; $web_search, as some services call their own tools
_JOINTS = re.compile(r"[\s_-]+")  # of words: delete_user is deleteUser, and delete-user


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
        self._arguments: dict[int, dict[str, Hashable] | None] = {}
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

    def arguments(self, call: Call) -> dict[str, Hashable] | None:
        """Return the arguments of one of the calls as values that can be compared."""
        if id(call) not in self._arguments:
            self._arguments[id(call)] = call.comparable()
        return self._arguments[id(call)]

    def brief(self, call: Call) -> str:
        """Return one of the calls as people write it."""
        if id(call) not in self._briefs:
            self._briefs[id(call)] = brief(call)
        return self._briefs[id(call)]

    def answer(self, text: str) -> Answer:
        """Return a text among the arguments, prepared for searching."""
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


def _without_markup(name: str) -> list[str]:
    """Return what stands before, between and after the markup of channels in a name; the name itself without any."""
    return [part for part in _MARKUP.split(name) if part.strip()] or [name]


def _ends_alike(first: tuple[str, ...], second: tuple[str, ...]) -> bool:
    """Return whether the shorter of two names is the end of the longer."""
    length = min(len(first), len(second))
    return first[-length:] == second[-length:]
