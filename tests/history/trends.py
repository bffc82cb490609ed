"""Histories of a retriever that gets worse at a known run, made where they are used."""

import hashlib
import random
from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from ragcontract.history.entry import Entry, EntryMetric, NewEntry, encode, entry_path, folder_of, results_path
from tests.builders import golden, stored_query, write_jsonl
from tests.history.entries import FIRST, RUN, new_entry

QUERIES = 25
URL = "https://github.com/org/app/actions/runs/{}"
LIMITS = "k: 5\nminimums:\n  mrr_at_k: 0.7\nhistory:\n  mrr_drop_gt: 0.05\n"


def ids_of(queries: int = QUERIES) -> list[str]:
    return [f"question-{number:02}" for number in range(queries)]


def contract(folder: Path, *, queries: int = QUERIES, config: str = LIMITS) -> None:
    """Write the golden file and the configuration of the contract whose runs are recorded."""
    write_jsonl(folder / "golden.jsonl", [golden(name, f"{name}.md") for name in ids_of(queries)])
    (folder / "ragcontract.yml").write_text(config, encoding="utf-8")


def commit_of(number: int) -> str:
    """Return the commit of a run, by its number from 0."""
    return hashlib.sha256(b"%d" % number).hexdigest()[:12]


def results_at(ranks: Mapping[str, int]) -> bytes:
    """Return a result set in which the relevant document of each query has a rank."""
    rows = []
    for name, rank in ranks.items():
        docs = [f"{name}-other-{place}.md" for place in range(5)]
        docs[rank - 1 : rank] = [f"{name}.md"] if rank <= len(docs) else []
        rows.append(stored_query(name, *docs))
    return b"".join(msgspec.json.encode(row) + b"\n" for row in rows)


def run_at(
    number: int,
    results: bytes | None,
    *,
    contract: str = "docs",
    hours: float = 12,
    mean: float | None = None,
    failed: Iterable[str] = (),
    source: Mapping[str, Any] | None = None,
    **fields: Any,
) -> NewEntry:
    """Return the entry of a run; without a ``mean``, no metric was recorded."""
    at = FIRST + timedelta(hours=hours * number)
    new = new_entry(contract, at=at, commit=commit_of(number), run=RUN + number, results=results)
    names = [*failed]
    metric = EntryMetric(label="MRR@5", value=mean, k=5, status="pass")
    entry: Entry = replace(
        new.entry,
        source=replace(new.entry.source, run_url=URL.format(RUN + number), **(source or {})),
        verdict="fail" if names else "pass",
        failed=names,
        broken=replace(new.entry.broken, queries=len(names)),
        retrieval=hashlib.sha256(results or b"").hexdigest(),
        metrics={} if mean is None else {"mrr_at_5": metric},
    )
    entry = replace(entry, **fields)
    return NewEntry(entry=entry, content=encode(entry), results=results)


def stored(folder: Path, entries: Iterable[NewEntry]) -> str:
    """Write entries into a history, faster than a store does, and return its path."""
    history = folder / "history"
    for new in entries:
        files = {entry_path(folder_of(new.entry.contract), new.entry.id): new.content}
        if new.results is not None:
            files[results_path(hashlib.sha256(new.results).hexdigest())] = new.results
        for path, content in files.items():
            (history / path).parent.mkdir(parents=True, exist_ok=True)
            (history / path).write_bytes(content)
    return str(history)


def runs_of(
    number: int, *, losses: Mapping[int, Iterable[str]], noise: float = 0.0, queries: int = QUERIES, **fields: Any
) -> list[NewEntry]:
    """Return consecutive runs, the oldest first; from each number in ``losses`` on, its queries find less.

    ``noise`` is the share of the other queries whose ranks change from run to run.
    """
    dice = random.Random(32)
    ranks = dict.fromkeys(ids_of(queries), 1)
    lost: dict[str, int] = {}
    entries = []
    for count in range(number):
        lost |= dict.fromkeys(losses.get(count, ()), 5)
        now = {name: lost.get(name, dice.choice([1, 2]) if dice.random() < noise else 1) for name in ranks}
        mean = sum(1 / rank for rank in now.values()) / len(now)
        failed = [name for name, rank in now.items() if rank > 2]
        entries.append(run_at(count, results_at(now), mean=mean, failed=failed, **fields))
    return entries
