"""Small inputs, made where they are used: a row with defaults, a file with rows."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def golden(query_id: str = "q1", *relevant: str, **fields: Any) -> Row:
    """Return a golden row that wants ``relevant`` documents (``doc1`` if none is named)."""
    return {
        "id": query_id,
        "query": f"What about {query_id}?",
        "relevant_doc_ids": list(relevant or ["doc1"]),
        **fields,
    }


def run(query_id: str = "q1", *doc_ids: str, **fields: Any) -> Row:
    """Return a run row that retrieved ``doc_ids`` (``doc1`` if none is named), best first."""
    return {"query_id": query_id, "results": [{"doc_id": doc_id} for doc_id in doc_ids or ["doc1"]], **fields}


def stored_query(query_id: str = "q1", *doc_ids: str, **fields: Any) -> Row:
    """Return a query of a stored baseline that retrieved ``doc_ids`` (``doc1`` if none is named)."""
    question = golden(query_id)["query"]
    return {
        "id": query_id,
        "query": question,
        "doc_ids": list(doc_ids or ["doc1"]),
        "ranks": {},
        "metrics": {},
        **fields,
    }


def baseline(*queries: Row, **fields: Any) -> Row:
    """Return a baseline file of ``queries`` (one, if none is given)."""
    return {
        "format_version": 1,
        "created_at": "2026-01-02T03:04:05+00:00",
        "created_by": {"name": "rag-contract", "version": "1.0.0"},
        "golden_sha256": "0" * 64,
        "k": [5],
        "versions": {},
        "metrics": {},
        "tags": {},
        "queries": list(queries) or [stored_query()],
        **fields,
    }


def as_jsonl(*rows: Row) -> str:
    """Return rows as JSON lines."""
    return "".join(json.dumps(row) + "\n" for row in rows)


def write_jsonl(path: Path, rows: Iterable[Row]) -> Path:
    """Write rows as JSON lines and return the path."""
    path.write_text(as_jsonl(*rows), encoding="utf-8")
    return path


def write_baseline(path: Path, *queries: Row, **fields: Any) -> Path:
    """Write a stored baseline and return the path."""
    path.write_text(json.dumps(baseline(*queries, **fields), indent=2), encoding="utf-8")
    return path


OLD_FILES = {
    "report.md": b"the report of yesterday\n",
    "report.json": b'{"of": "yesterday"}\n',
    "junit.xml": b"<testsuites/>\n",
}


def good_workspace(folder: Path) -> Path:
    """Write a contract that holds, and reports of an older check; returns the folder."""
    write_jsonl(folder / "golden.jsonl", [golden("q1", "doc1"), golden("q2", "doc2")])
    write_jsonl(folder / "current_run.jsonl", [run("q1", "doc1"), run("q2", "doc2")])
    write_baseline(folder / "baseline.json", stored_query("q1", "doc1"), stored_query("q2", "doc2"))
    (folder / "ragcontract.yml").write_text("k: 5\nfail_on:\n  mrr_drop_gt: 0.1\n", encoding="utf-8")
    for name, data in OLD_FILES.items():
        (folder / name).write_bytes(data)
    return folder
