"""How a user's function is called: what it wants beside the question, by the names of its parameters."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from ragcontract.core.errors import InputError
from ragcontract.record.interface import Context

TOP = ("top", "top_k", "k", "limit", "n_results")
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_ACCEPTED = "(query), (query, context) or (query, top=…)"


class Style(Struct, frozen=True, kw_only=True):
    """The arguments of a call: the name of the question if it is keyword-only, and what else is handed over.

    ``positional`` says whether the context is the second argument; ``named`` maps parameters to fields of the context,
    with "" for the context itself.
    """

    query: str | None = None
    positional: bool = False
    named: Mapping[str, str] = {}

    def call(self, function: Callable[..., Any], query: str, context: Context) -> Any:
        """Call the function with a question."""
        first: tuple[Any, ...] = (query,) if self.query is None else ()
        keywords: dict[str, Any] = {} if self.query is None else {self.query: query}
        for name, field in self.named.items():
            value = context[field] if field else context
            keywords[name] = list(value) if field == "messages" else value
        return function(*first, *((context,) if self.positional else ()), **keywords)


def style_of(function: Callable[..., Any], name: str) -> Style:
    """Return how a function is called, of that ``name`` in messages.

    The first parameter is the question. Of the others, those named after a field of the context, as ``top`` or
    ``messages``, get it; ``top_k``, ``k``, ``limit`` and ``n_results`` mean ``top``. The second one gets the whole
    context if it is named ``context``, or if it must be given. All others must have a default. Raises InputError.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # of a function in C
        return Style()
    varied = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    fixed = [one for one in parameters if one.kind not in varied]
    if not fixed:
        if parameters and parameters[0].kind == inspect.Parameter.VAR_POSITIONAL:
            return Style()
        raise InputError([f"{name}: takes no question; write a function of {_ACCEPTED}, or name what it makes"])
    first, *rest = fixed
    if first.name == "self":  # or the question would be taken for the object
        raise InputError(
            [f"{name}: is a method of a class; make an object, and name its method, as in app.py:store.find"]
        )
    query = None if first.kind in _POSITIONAL else first.name
    positional, named, unknown = False, {}, []
    for number, one in enumerate(rest):
        field = _field(one.name)
        by_position = number == 0 and one.kind in _POSITIONAL
        if field is not None and one.kind != inspect.Parameter.POSITIONAL_ONLY:
            named[one.name] = field
        elif one.default is inspect.Parameter.empty and by_position:
            positional = True
        elif one.default is inspect.Parameter.empty:
            unknown.append(one.name)
    if unknown:
        raise InputError([f"{name}: nothing is known to hand over for {', '.join(unknown)}; take {_ACCEPTED}"])
    return Style(query=query, positional=positional, named=named)


def _field(name: str) -> str | None:
    """Return the field of the context that a parameter is for: "" for the context itself, None if for none."""
    if name == "context":
        return ""
    if name in TOP:
        return "top"
    return name if name in Context.__struct_fields__ else None
