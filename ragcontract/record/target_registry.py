"""Registry of the kinds of targets, and of what goes around a target.

A kind is a module with ``OPTIONS``, the record of its options, and a function ``system``, which makes a system from
such a record and the surroundings. That of a framework also has ``of_object``, which returns None for an object that
cannot be asked. It has a line in ``KINDS``.

What goes around any kind, such as a chat after a retriever, is a module with ``OPTIONS`` and a function ``around``,
which also gets the system. It has a line in ``AROUND``.

These functions raise InputError if the options contradict each other.
"""

from collections.abc import Mapping
from typing import Any

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


def module(name: str, modules: Modules = KINDS) -> Any:
    """Return the module of a kind of targets, or of what goes around them; raises InputError if it needs an extra."""
    try:
        return modules[name].load()
    except ModuleNotFoundError as error:
        if error.name != "jmespath":
            raise
        raise InputError(["this target needs jmespath: pip install 'rag-contract[record]'"]) from error


def of_object(target: object, surroundings: Surroundings) -> System | None:
    """Return the system for an object of a framework; None for other objects.

    A framework is recognised by the packages of the object's classes.
    """
    packages = [cls.__module__.partition(".")[0] for cls in type(target).__mro__]
    name = next((PACKAGES[package] for package in packages if package in PACKAGES), None)
    return module(name).of_object(target, surroundings) if name else None
