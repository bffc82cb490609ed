"""The kinds of targets, and what `record.yml` says about each."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Protocol, cast

from msgspec import Struct

from ragcontract.record.system import Surroundings, System

# The key in `record.yml` and the module that reads what stands there; it is imported only for such a target.
KINDS: Mapping[str, str] = {
    "python": "python_code",
    "command": "command",
    "http": "http_service",
    "langchain": "langchain",
    "llamaindex": "llamaindex",
    "chroma": "chroma",
}


class Kind(Protocol):
    """What such a module has: the record of its options, and a function that makes a system of them."""

    Options: type[Struct]

    def system(self, options: Any, surroundings: Surroundings) -> System:
        """Return the system; raises InputError if the options contradict each other."""
        ...


def kind(name: str) -> Kind:
    """Return the module of a kind of targets."""
    return cast("Kind", import_module(f"ragcontract.record.adapters.{KINDS[name]}"))
