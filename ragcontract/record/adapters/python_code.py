"""How a user's function is called: what it wants beside the question, by the names of its parameters.

Python code: a function, a class or an object with ``run``, in this process or in one of its own.
"""

import asyncio
import inspect
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from typing import Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.errors import InputError, RagContractError
from ragcontract.core.safe_text import shorten
from ragcontract.record import target_registry as targets
from ragcontract.record.adapters.framework import EventLoop, failed_attempt, redacting
from ragcontract.record.adapters.user_code import described, imported
from ragcontract.record.interface import CallFailed, Context, Response, Surroundings, System
from ragcontract.record.returned.response_forms import response_of
from ragcontract.record.returned.result_forms import DocumentIds

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


Name = Annotated[str, Meta(min_length=1, title="text such as my_app.search:retrieve or search.py:retrieve")]


class Options(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Python code that is called with each question."""

    object: Annotated[Name, Meta(description="The function, class or object, as `my_app.search:retrieve`.")]
    doc_id: Annotated[
        str | None, Meta(description="A JMESPath expression over `id`, `metadata` and `text` of a result.")
    ] = None
    isolate: Annotated[bool, Meta(description="Run it in a process of its own, which can be stopped.")] = False


def system(options: Options, surroundings: Surroundings) -> System:
    """Import what the options name, and return it as a system; raises InputError."""
    here = replace(surroundings, doc_id=surroundings.doc_id or options.doc_id)
    if options.isolate or surroundings.isolate:
        from ragcontract.record.adapters.isolated import IsolatedCode

        return IsolatedCode(options.object, here)
    return of_object(imported(options.object, surroundings.folder), here, name=options.object)


def of_object(given: object, surroundings: Surroundings, *, name: str = "") -> System:
    """Return a system for a Python object; raises InputError if it cannot be asked.

    A class is called without arguments. Objects of LangChain, LlamaIndex and Chroma go to the modules of their kinds.
    ``name`` is what messages call it.
    """
    name = name or name_of(given)
    if isinstance(given, type):
        try:
            with redirect_stdout(sys.stderr):
                given = given()
        except (Exception, SystemExit) as error:
            raise InputError([f"{name}: the class cannot be made without arguments: {described(error)}"]) from error
    if (found := targets.of_object(given, surroundings)) is not None:
        return found
    run = getattr(given, "run", None)
    if not callable(run):
        if not callable(given):
            shown = shorten(repr(given), bounds.VALUE)
            problem = f"is neither a function nor an object with a method `run`: {shown}"
            raise InputError([f'{name}: {problem}; write `def retrieve(query, top): return ["doc_a"]`'])
        run = given
    return PythonCode(given, run, surroundings, name)


def name_of(given: object) -> str:
    """Return what an object is called where it was made: its module and its name, or those of its class."""
    named = given if hasattr(given, "__qualname__") else type(given)
    return f"{named.__module__}:{named.__qualname__}"


class PythonCode:
    """A function or an object with ``run``, and optional ``setup``, ``teardown`` and ``versions``; each may be async.

    What it prints goes to standard error until the teardown.
    """

    concurrency = 1  # most code is not thread-safe, and a latency is only honest for one question at a time

    def __init__(self, given: object, run: Callable[..., Any], surroundings: Surroundings, name: str) -> None:
        """Store what is called; ``name`` is for messages. Raises InputError if it does not take a question."""
        self._given = given
        self._run = run
        self._style = style_of(run, name)
        self._ids = DocumentIds(surroundings.doc_id)
        self._name = name
        self._secrets = surroundings.secrets
        self._loop = EventLoop()
        self._stdout: Any = None

    def setup(self) -> None:
        """Call the object's own ``setup``; raises InputError if it fails."""
        self._stdout = redirect_stdout(sys.stderr)
        self._stdout.__enter__()
        try:
            self._call("setup")
        except BaseException:
            self._give_stdout_back()
            raise

    def ask(self, query: str, context: Context) -> Response:
        """Call the code, and read what it returns."""
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
        """Return what the object's own ``versions`` says."""
        found = self._call("versions") or {}
        if not isinstance(found, Mapping):
            raise InputError([f"{self._name}: versions() returned {shorten(repr(found), bounds.VALUE)}, not a mapping"])
        return {str(name): str(value) for name, value in found.items() if value is not None}

    def facts(self) -> Mapping[str, Any]:
        """Return nothing: all that is known of it is in its versions."""
        return {}

    def teardown(self) -> None:
        """Call the object's own ``teardown``; then no more of its asynchronous code runs."""
        try:
            self._call("teardown")
        finally:
            self._loop.close()
            self._give_stdout_back()

    def _give_stdout_back(self) -> None:
        if self._stdout is not None:
            self._stdout.__exit__(None, None, None)
            self._stdout = None

    def _call(self, method: str) -> Any:
        function = getattr(self._given, method, None)
        if not callable(function) or not hasattr(type(self._given), "run"):
            return None
        try:
            returned = function()
            return self._loop.result(returned) if inspect.isawaitable(returned) else returned
        except (Exception, SystemExit) as error:
            problem = self._secrets.redacted(described(error))
            raise InputError([f"{self._name}: {method}() failed: {problem}"]) from error
