"""Registry of the kinds of targets, and of what goes around a target.

A kind is a module with ``OPTIONS``, the record of its options, and a function ``system``; it has a line in ``KINDS``.
What goes around any kind, such as a chat after a retriever, is a module with ``OPTIONS`` and a function ``around``; it
has a line in ``AROUND``.
"""

from collections.abc import Mapping
from typing import Any, Protocol, cast

from msgspec import Struct

from ragcontract.core.errors import InputError
from ragcontract.core.lines import Line
from ragcontract.record.interface import Surroundings, System

Modules = Mapping[str, Line[Any]]

# The key in `record.yml` and the module that reads its value; the module is imported only for such a target.
KINDS: Modules = {
    "python": Line(home="ragcontract.record.adapters.python_code"),
    "command": Line(home="ragcontract.record.adapters.command"),
    "http": Line(home="ragcontract.record.adapters.http_service"),
    "langchain": Line(home="ragcontract.record.adapters.langchain"),
    "llamaindex": Line(home="ragcontract.record.adapters.llamaindex"),
    "chroma": Line(home="ragcontract.record.adapters.chroma"),
}
# Innermost first.
AROUND: Modules = {
    "chat": Line(home="ragcontract.record.adapters.chat"),
    "traces": Line(home="ragcontract.record.traces.receiving"),
}
# The kind of an object that a Python target names, by the package of its class or of one that it derives from.
PACKAGES: Mapping[str, str] = {
    "langchain": "langchain",
    "langchain_classic": "langchain",
    "langchain_community": "langchain",
    "langchain_core": "langchain",
    "langgraph": "langchain",
    "llama_index": "llamaindex",
    "chromadb": "chroma",
}


class Kind(Protocol):
    """The module of a kind: the record of its options, and a function that makes a system from them."""

    OPTIONS: type[Struct]

    def system(self, options: Any, surroundings: Surroundings) -> System:
        """Return the system; raises InputError if the options contradict each other."""
        ...


class OfObjects(Protocol):
    """What the module of a framework has beside that."""

    def of_object(self, target: Any, surroundings: Surroundings) -> System | None:
        """Return the system for an object of the framework; None if it is not one that can be asked."""
        ...


class Around(Protocol):
    """A module that puts something around a system."""

    OPTIONS: type[Struct]

    def around(self, options: Any, system: System, surroundings: Surroundings) -> System:
        """Return a system that asks ``system``; raises InputError if the options contradict each other."""
        ...


def kind(name: str, kinds: Modules = KINDS) -> Kind:
    """Return the module of a kind of targets."""
    return cast("Kind", _loaded(kinds[name]))


def around(name: str, modules: Modules = AROUND) -> Around:
    """Return the module for a key that stands beside the kind."""
    return cast("Around", _loaded(modules[name]))


def of_object(target: object, surroundings: Surroundings) -> System | None:
    """Return the system for an object of a framework; None for other objects.

    A framework is recognised by the packages of the object's classes.
    """
    packages = [cls.__module__.partition(".")[0] for cls in type(target).__mro__]
    name = next((PACKAGES[package] for package in packages if package in PACKAGES), None)
    return cast("OfObjects", kind(name)).of_object(target, surroundings) if name else None


def _loaded(line: Line[Any]) -> Any:
    try:
        return line.load()
    except ModuleNotFoundError as error:
        if error.name != "jmespath":
            raise
        raise InputError(["this target needs jmespath: pip install 'rag-contract[record]'"]) from error
