"""The stages of a check whose growth is measured: what a stage is, and how the rows of its inputs are written."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

Row = dict[str, Any]


class Stage(Struct, frozen=True, kw_only=True):
    """An input that grows. ``make`` writes it for a size into an empty folder; ``unit`` names what the size counts.

    ``most`` is how long the largest size may take, in checks of a single query: about three times what it takes.
    """

    name: str
    unit: str
    sizes: Sequence[int]
    make: Callable[[Path, int], None]
    most: float


def id_of(number: int) -> str:
    """Return the id of a query."""
    return f"query about refunds of annual plans {number:06}"


def golden_row(number: int) -> Row:
    """Return a golden row with one relevant document."""
    return {"id": id_of(number), "query": f"Question {number}?", "relevant_doc_ids": [f"document-{number}"]}


def run_row(number: int, documents: Iterable[str] | None = None) -> Row:
    """Return the run row of a query: with its relevant document, or with others."""
    listed = [f"document-{number}"] if documents is None else documents
    return {"query_id": id_of(number), "results": [{"doc_id": document} for document in listed]}


def ranked(number: int, rank: int) -> Row:
    """Return a run row with the relevant document at a rank."""
    return run_row(number, [*(f"other {other}" for other in range(rank - 1)), f"document-{number}"])


def waiver(**of: str) -> Row:
    """Return a waiver that does not expire."""
    return {**of, "reason": "known", "owner": "search", "expires": "2999-12-31"}


def write_lines(folder: Path, name: str, rows: Iterable[Row]) -> None:
    """Write a file of JSON lines."""
    (folder / f"{name}.jsonl").write_bytes(b"".join([msgspec.json.encode(row) + b"\n" for row in rows]))


def write_config(folder: Path, **config: Any) -> None:
    """Write a configuration."""
    (folder / "ragcontract.yml").write_bytes(msgspec.json.format(msgspec.json.encode(config), indent=1))
