"""Ask Python code: a function, a class or an object with ``run``, in this process or in one of its own.

The names of a function's parameters say what it wants beside the question.
"""

import asyncio
import inspect
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack, redirect_stdout
from typing import Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.errors import InputError, RagContractError
from ragcontract.core.safe_text import shorten
from ragcontract.record import target_registry as targets
from ragcontract.record.adapters.command import IsolatedCode
from ragcontract.record.adapters.framework import EventLoop, failed_attempt, redacting
from ragcontract.record.adapters.user_code import described, imported
from ragcontract.record.interface import CallFailed, Context, DocIdExpression, Response, Surroundings, System
from ragcontract.record.returned.response_forms import response_of
from ragcontract.record.returned.result_forms import DocumentIds

Name = Annotated[str, Meta(min_length=1, title="text such as my_app.search:retrieve or search.py:retrieve")]


class PythonOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Python code that is called with each question."""

    object: Annotated[Name, Meta(description="The function, class or object, as `my_app.search:retrieve`.")]
    doc_id: DocIdExpression = None
    isolate: Annotated[bool, Meta(description="Run it in a process of its own, which can be stopped.")] = False


OPTIONS = PythonOptions


def system(options: PythonOptions, surroundings: Surroundings) -> System:
    """Import the object that the options name, and return it as a system; raises InputError."""
    here = replace(surroundings, doc_id=surroundings.doc_id or options.doc_id)
    if options.isolate or surroundings.isolate:
        return IsolatedCode(options.object, here)
    return of_object(imported(options.object, surroundings.folder), here, name=options.object)


def of_object(target: object, surroundings: Surroundings, *, name: str = "") -> System:
    """Return a system for a Python object; raises InputError if it cannot be asked.

    A class is called without arguments. Objects of LangChain, LlamaIndex and Chroma go to the modules of their kinds.
    ``name`` is the object's name in messages.
    """
    name = name or name_of(target)
    if isinstance(target, type):
        try:
            with redirect_stdout(sys.stderr):
                target = target()
        except (Exception, SystemExit) as error:
            raise InputError([f"{name}: the class cannot be made without arguments: {described(error)}"]) from error
    if (adapted := targets.of_object(target, surroundings)) is not None:
        return adapted
    run = getattr(target, "run", None)
    if not callable(run):
        if not callable(target):
            shown = shorten(repr(target), bounds.VALUE)
            problem = f"is neither a function nor an object with a method `run`: {shown}"
            raise InputError([f'{name}: {problem}; write `def retrieve(query, top): return ["doc_a"]`'])
        run = target
    return PythonCode(target, run, surroundings, name)


def name_of(target: object) -> str:
    """Return the module and the name of an object, or those of its class if it has none."""
    named = target if hasattr(target, "__qualname__") else type(target)
    return f"{named.__module__}:{named.__qualname__}"


class PythonCode(System):
    """A system that calls a function or an object with ``run``. What it prints goes to standard error.

    An object may also have ``setup``, ``teardown`` and ``versions``. Each of these functions may be asynchronous.
    """

    def __init__(self, target: object, run: Callable[..., Any], surroundings: Surroundings, name: str) -> None:
        """Store the code; ``name`` is for messages. Raises InputError if ``run`` does not take a question."""
        self._target = target
        self._run = run
        self._style = style_of(run, name)
        self._ids = DocumentIds(surroundings.doc_id)
        self._name = name
        self._secrets = surroundings.secrets
        self._loop = EventLoop()
        self._aside = ExitStack()

    def setup(self) -> None:
        self._aside.enter_context(redirect_stdout(sys.stderr))
        try:
            self._call("setup")
        except BaseException:
            self._aside.close()
            raise

    def ask(self, query: str, context: Context) -> Response:
        with redacting(self._secrets):
            try:
                returned = self._style.call(self._run, query, context)
                if inspect.isawaitable(returned):
                    returned = self._loop.result(returned, context.seconds)
                return response_of(returned, self._ids)
            except (CallFailed, RagContractError):
                raise
            except (Exception, SystemExit, asyncio.CancelledError) as error:
                raise failed_attempt(error) from error

    def versions(self) -> Mapping[str, str]:
        versions = self._call("versions") or {}
        if not isinstance(versions, Mapping):
            raise InputError(
                [f"{self._name}: versions() returned {shorten(repr(versions), bounds.VALUE)}, not a mapping"]
            )
        return {str(name): str(value) for name, value in versions.items() if value is not None}

    def teardown(self) -> None:
        try:
            self._call("teardown")
        finally:
            self._loop.close()
            self._aside.close()

    def _call(self, method: str) -> Any:
        function = getattr(self._target, method, None)
        if not callable(function) or not hasattr(type(self._target), "run"):
            return None
        try:
            returned = function()
            return self._loop.result(returned) if inspect.isawaitable(returned) else returned
        except (Exception, SystemExit) as error:
            problem = self._secrets.redacted(described(error))
            raise InputError([f"{self._name}: {method}() failed: {problem}"]) from error


TOP = ("top", "top_k", "k", "limit", "n_results")
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_ACCEPTED = "(query), (query, context) or (query, top=…)"


class Style(Struct, frozen=True, kw_only=True):
    """The arguments that a function is called with."""

    query: str | None = None  # the parameter of the question if it is keyword-only
    positional: bool = False  # whether the context is the second argument
    named: Mapping[str, str] = {}  # the fields of the context by parameter; "" is the context itself

    def call(self, function: Callable[..., Any], query: str, context: Context) -> Any:
        first: tuple[Any, ...] = (query,) if self.query is None else ()
        keywords: dict[str, Any] = {} if self.query is None else {self.query: query}
        for name, field in self.named.items():
            value = context[field] if field else context
            keywords[name] = list(value) if field == "messages" else value
        return function(*first, *((context,) if self.positional else ()), **keywords)


def style_of(function: Callable[..., Any], name: str) -> Style:
    """Return how a function is called; ``name`` is its name in messages.

    The first parameter is the question. A parameter that is named after a field of the context, such as ``top`` or
    ``messages``, gets that field; ``top_k``, ``k``, ``limit`` and ``n_results`` mean ``top``. One that is named
    ``context`` gets the whole context, and so does the second parameter if it has no default. Raises InputError if any
    other parameter has no default.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # of a function in C
        return Style()
    varied = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    fixed = [parameter for parameter in parameters if parameter.kind not in varied]
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
    for number, parameter in enumerate(rest):
        field = _field(parameter.name)
        by_position = number == 0 and parameter.kind in _POSITIONAL
        if field is not None and parameter.kind != inspect.Parameter.POSITIONAL_ONLY:
            named[parameter.name] = field
        elif parameter.default is inspect.Parameter.empty and by_position:
            positional = True
        elif parameter.default is inspect.Parameter.empty:
            unknown.append(parameter.name)
    if unknown:
        raise InputError([f"{name}: nothing is known to hand over for {', '.join(unknown)}; take {_ACCEPTED}"])
    return Style(query=query, positional=positional, named=named)


def _field(name: str) -> str | None:
    """Return the field of the context that a parameter gets: "" is the context itself, None is nothing."""
    if name == "context":
        return ""
    if name in TOP:
        return "top"
    return name if name in Context.__struct_fields__ else None
