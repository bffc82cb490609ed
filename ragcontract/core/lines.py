"""The lines of registries: names, each with the place in the code where what it names is defined."""

from collections.abc import Container
from functools import cache
from importlib import import_module
from typing import Generic, TypeVar, cast

from msgspec import Struct

T = TypeVar("T")


class Line(Struct, Generic[T], frozen=True, kw_only=True):
    """A line of a registry.

    Names are known at once. What they stand for is imported when it is loaded, so a check imports what its contract
    names and nothing else.
    """

    names: tuple[str, ...] = ()
    home: str | T  # its module, or something in it (``ragcontract.rules.text:MustContain``), or the thing itself
    fields: tuple[str, ...] = ()  # the golden fields that it is for
    always: bool = False  # every contract has it

    def load(self) -> T:
        """Import the module, if need be, and return what the line is about."""
        return cast("T", _imported(self.home)) if isinstance(self.home, str) else self.home

    def is_named(self, names: Container[str]) -> bool:
        """Return whether a contract with these names and golden fields has it."""
        return self.always or any(name in names for name in (*self.names, *self.fields))


@cache  # a line may be loaded for every row
def _imported(home: str) -> object:
    module, _, attribute = home.partition(":")
    loaded = import_module(module)
    return getattr(loaded, attribute) if attribute else loaded
