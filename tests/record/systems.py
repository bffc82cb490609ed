"""Systems, and what asks them, for the tests of recording."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ragcontract.record.interface import Context, Response, Surroundings, System
from ragcontract.record.target import Target, read_target


def context(**fields: Any) -> Context:
    """Return what belongs to a question."""
    return Context(**{"query_id": "q1", "top": 5, "seconds": 20, **fields})


def asked(system: System, query: str = "?", **fields: Any) -> Response:
    """Set a system up, ask it one question, and tear it down."""
    system.setup()
    try:
        return system.ask(query, context(**fields))
    finally:
        system.teardown()


def target_of(folder: Path, given: object, **surroundings: Any) -> Target:
    """Read a target in a folder."""
    environ: Mapping[str, str] = {}
    return read_target(given, Surroundings(**{"folder": folder, "environ": environ, **surroundings}))


def doc_ids(response: Response) -> list[Any]:
    """Return the documents of a response."""
    return [result["doc_id"] for result in response.results or ()]
