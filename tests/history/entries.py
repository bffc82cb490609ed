"""Entries of a history, made where they are used."""

import hashlib
import json
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from ragcontract.history.entry import Entry, EntryId, NewEntry, encode, new_id
from tests.builders import as_jsonl, baseline, stored_query

FIRST = datetime(2026, 11, 21, 20, 30, tzinfo=UTC)
RUN = 17345678901


def results_of(*doc_ids: str) -> bytes:
    """Return a result set of one query that retrieved ``doc_ids``."""
    return as_jsonl(stored_query("q1", *doc_ids)).encode()


def new_entry(
    contract: str = "docs",
    *,
    at: datetime = FIRST,
    commit: str = "3f9c1a2b4d5e",
    run: int | None = RUN,
    attempt: int = 1,
    results: bytes | None = None,
    summary: str = "",
    **others: Any,
) -> NewEntry:
    """Return an entry to be stored; ``run`` None is that of a laptop. ``others`` replace fields of it."""
    entry_id = new_id(at, commit, f"{run}" if run else hashlib.sha256(summary.encode()).hexdigest()[:12], attempt)
    head = baseline()
    del head["queries"]
    fields: dict[str, Any] = {
        "id": entry_id,
        "contract": contract,
        "created_at": at.isoformat(),
        "source": {"commit": f"{commit:0<40}", "branch": "main", "run_id": run, "run_attempt": attempt},
        "tool": {"name": "rag-contract", "version": "1.0.0"},
        "verdict": "pass",
        "summary": summary,
        "inputs": {"golden": {"sha256": [], "queries": 1, "answerable": 1}, "run": {"sha256": []}},
        "metrics": {},
        "gates": [],
        "broken": {"queries": 0, "new": 0, "in_baseline": 0},
        "failed": [],
        "head": head,
        "retrieval": "0" * 64,
        "results": results
        and {"sha256": hashlib.sha256(results).hexdigest(), "queries": results.count(b"\n"), "bytes": len(results)},
    } | others
    entry = msgspec.json.decode(json.dumps(fields, default=bytes.decode), type=Entry)
    return NewEntry(entry=entry, content=encode(entry), results=results)


def runs(count: int, contract: str = "docs", *, hours: float = 24) -> list[NewEntry]:
    """Return the entries of runs that follow each other, the oldest first; each retrieved another document."""
    return [
        new_entry(
            contract, at=FIRST + timedelta(hours=hours * number), run=RUN + number, results=results_of(f"d{number}")
        )
        for number in range(count)
    ]


def id_of(new: NewEntry) -> EntryId:
    """Return the id of an entry."""
    found = EntryId.of(new.entry.id)
    assert found is not None
    return found


def digest(data: bytes | None) -> str:
    """Return the name of a result set."""
    assert data is not None
    return hashlib.sha256(data).hexdigest()


TEXT = (
    "how can a customer change the delivery address of an order that was paid by invoice before it is sent "
    "return refund voucher account password warehouse price tax country contract cancel renew upgrade"
)


class ChangingRuns:
    """The result sets of a retriever of which a share of the queries change from run to run."""

    def __init__(self, queries: int, share: float, seed: int = 7) -> None:
        self._random = random.Random(seed)
        self._share = share
        self._queries = [self._query(number) for number in range(queries)]

    def _query(self, number: int) -> dict[str, Any]:
        question = " ".join(self._random.choices(TEXT.split(), k=10))
        return stored_query(f"q{number:04}", *(self._doc_id() for _ in range(10)), query=question)

    def _doc_id(self) -> str:
        return f"docs/guide-{self._random.randrange(5_000):04}.md"

    def next(self) -> bytes:
        """Return the result set of the next run, in which neighbours swapped places or a document was replaced."""
        for query in self._queries:
            relevant = query["doc_ids"][0] if not query["ranks"] else next(iter(query["ranks"]))
            if self._random.random() < self._share:
                at = self._random.randrange(9)
                docs = query["doc_ids"]
                docs[at], docs[at + 1] = docs[at + 1], docs[at]
                if self._random.random() < 0.3:
                    docs[9] = self._doc_id()
            rank = query["doc_ids"].index(relevant) + 1 if relevant in query["doc_ids"] else None
            metrics = {f"recall_at_{k}": float(rank is not None and rank <= k) for k in (5, 10)}
            query.update(
                ranks={relevant: rank}, metrics={"mrr_at_5": 1 / rank if rank and rank <= 5 else 0.0} | metrics
            )
        return b"".join(msgspec.json.encode(query) + b"\n" for query in self._queries)
