"""Small inputs, made where they are used: a row with defaults, a file with rows."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def golden(query_id: str = "q1", *relevant: str, **fields: Any) -> Row:
    """Return a golden row that wants ``relevant`` documents (``doc1`` if none is named)."""
    return {"id": query_id, "query": f"What about {query_id}?", "relevant_doc_ids": list(relevant or ["doc1"]), **fields}


def run(query_id: str = "q1", *doc_ids: str, **fields: Any) -> Row:
    """Return a run row that retrieved ``doc_ids`` (``doc1`` if none is named), best first."""
    return {"query_id": query_id, "results": [{"doc_id": doc_id} for doc_id in doc_ids or ["doc1"]], **fields}


def write_jsonl(path: Path, rows: Iterable[Row]) -> Path:
    """Write rows as JSON lines and return the path."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path
