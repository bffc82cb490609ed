"""A contract with everything in it, and runs of any size, the same each time."""

import json
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.builders import Row, golden, write_jsonl

QUERIES = 60
CONFIG = """
k: [1, 3, 10]
missing_queries: zero
gain: exponential
rank_by: {rank_by}
minimums: {{recall_at_10: 0.2}}
fail_on: {{mrr_drop_gt: 0.05}}
latency: {{p95_ms: 90}}
per_query: {{forbidden_within: 5}}
tags: {{even: {{minimums: {{ndcg_at_3: 0.3}}}}}}
"""


def write_contract(folder: Path, *, rank_by: str = "results") -> tuple[Path, Path]:
    """Write golden queries of every sort and a configuration; returns both paths."""
    rows = [golden(f"q{n}", f"d{n % 9}", "d1" if n % 9 != 1 else "d2") for n in range(QUERIES)]
    for n, row in enumerate(rows):
        row |= {"tags": ["even"] if n % 2 == 0 else ["odd", f"mod{n % 5}"], "weight": 1 + n % 4 / 3}
        if n % 6 == 0:
            row |= {"relevance": {"d3": 2, "d4": 1, "d5": 0.5}, "relevant_doc_ids": None}
        if n % 7 == 0:
            row |= {"forbidden_doc_ids": ["d8", "d6"], "must_rank_at_most": 2}
        if n % 11 == 0:
            row |= {"must_include_any": True, "severity": "warn"}
        if n % 13 == 0:
            row |= {"relevant_doc_ids": [], "relevance": None, "must_rank_at_most": None, "must_include_any": None}
    asked = write_jsonl(folder / "golden.jsonl", rows)
    config = folder / "ragcontract.yml"
    config.write_text(CONFIG.format(rank_by=rank_by))
    return asked, config


def run_rows(query_ids: Iterable[str], *, seed: int) -> list[Row]:
    """Return a row for each query id, with documents that repeat, scores out of order here and there, latencies."""
    chance = random.Random(seed)
    rows: list[Row] = []
    for query_id in query_ids:
        doc_ids = [f"d{min(9, int(chance.expovariate(0.3)))}" for _ in range(chance.randrange(8))]
        scores = sorted((chance.random() for _ in doc_ids), reverse=chance.random() < 0.9)
        row: Row = {
            "query_id": query_id,
            "results": [
                {"doc_id": doc_id, "score": score, "text": "not read"}
                for doc_id, score in zip(doc_ids, scores, strict=True)
            ],
            "latency_ms": None if chance.random() < 0.1 else chance.uniform(0, 100),
            "embedding_model": chance.choice(["e1", "e2"]),
            "index_version": "7",
        }
        rows.append(row)
    return rows


def once(*, seed: int) -> list[Row]:
    """Return a row a query, without some queries, and with others that nobody asked for."""
    return run_rows([f"q{n}" for n in range(QUERIES) if n % 17 != 3] + [f"x{n}" for n in range(5)], seed=seed)


def skewed(rows: int, *, seed: int) -> list[Row]:
    """Return many rows per query, half of them of one query, in no order."""
    chance = random.Random(seed)
    ids = ["q4"] * (rows // 2) + [f"q{chance.randrange(QUERIES - 1)}" for _ in range(rows // 2)]
    chance.shuffle(ids)
    return run_rows(ids, seed=seed)


def write_parquet(folder: Path, rows: Sequence[Row], files: int = 4) -> str:
    """Write rows as several files of Parquet; returns the pattern that they match."""
    folder.mkdir(parents=True)
    result = pa.struct({"doc_id": pa.string(), "score": pa.float64(), "text": pa.string()})
    types: dict[str, Any] = {
        "query_id": pa.string(),
        "results": pa.list_(result),
        "latency_ms": pa.float64(),
        "embedding_model": pa.string(),
        "index_version": pa.string(),
    }
    for number in range(files):
        table = pa.Table.from_pylist(list(rows[number::files]), pa.schema(types))
        pq.write_table(table, folder / f"part-{number}.parquet")
    return f"{folder}/*.parquet"


def numbers(report: Any) -> dict[str, float | None]:
    """Return everything that a report says, by where it says it; but for when and of what files, and the warnings."""
    found: dict[str, Any] = {}

    def walk(value: Any, path: str) -> None:
        if isinstance(value, dict):
            for name, inner in value.items():
                # Of several rows of a query, a cluster lists any that breaks a rule, because its rows have no order.
                # It does not look for documents that vanished either.
                if name != "causes" and not (value.get("repeated") and name.endswith("retrieved")):
                    walk(inner, f"{path}.{name}")
        elif isinstance(value, list | tuple):
            for index, inner in enumerate(value):
                walk(inner, f"{path}[{index}]")
        else:
            found[path] = value

    left_out = {"created_at", "warnings", "repeats"}
    builtins = {name: value for name, value in report.items() if name not in left_out}
    for side in ("run", "baseline"):
        if builtins["inputs"][side]:
            builtins["inputs"][side] = {
                name: sorted(value) if name in {"unknown", "gone"} else _sorted_values(value)
                for name, value in builtins["inputs"][side].items()
                if name != "files"
            }
    walk(builtins, "")
    assert json.dumps(found)
    return found


def _sorted_values(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {name: sorted(inner) if isinstance(inner, list) else inner for name, inner in value.items()}
