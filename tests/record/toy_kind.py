"""A kind of targets that always retrieves the same."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from ragcontract.record.interface import Context, Response, Surroundings


class ToyOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What it says."""

    says: str


OPTIONS = ToyOptions


class Toy:
    concurrency = 1

    def __init__(self, says: str) -> None:
        self._says = says

    def setup(self) -> None:
        pass

    def ask(self, query: str, context: Context) -> Response:  # noqa: ARG002
        return Response(results=[{"doc_id": self._says}])

    def versions(self) -> Mapping[str, str]:
        return {}

    def facts(self) -> Mapping[str, Any]:
        return {}

    def teardown(self) -> None:
        pass


def system(options: ToyOptions, _surroundings: Surroundings) -> Toy:
    return Toy(options.says)
