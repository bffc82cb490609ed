"""Goes around a system and repeats what it retrieves."""

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.record.interface import Context, Response, Surroundings, System
from tests.record.toy_kind import Toy


class LouderOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How often."""

    times: int


OPTIONS = LouderOptions


class Louder(Toy):
    def __init__(self, times: int, system: System) -> None:
        super().__init__("")
        self._times, self._system = times, system

    def ask(self, query: str, context: Context) -> Response:
        found = self._system.ask(query, context)
        return replace(found, results=list(found.results or ()) * self._times)


def around(options: LouderOptions, system: System, _surroundings: Surroundings) -> System:
    return Louder(options.times, system)
