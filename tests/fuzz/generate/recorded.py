"""What a history holds: entries and a result set, whose names, commits and digests fit each other where they should."""

import hashlib
from collections.abc import Callable
from typing import Any

from ragcontract.history.entry import EntryMetric
from tests.fuzz.generate.by_schema import fitting, schema, value
from tests.fuzz.generate.values import Maker, question

RESULTS = "ab" * 32  # stands for the digest of the result set, which changes with each mutation of it
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


def _commit(second: int, *parents: str) -> bytes:
    """Return a commit as git stores it."""
    lines = [f"tree {EMPTY_TREE}", *(f"parent {parent}" for parent in parents)]
    lines += [f"{role} x <x@example.com> {1_767_312_000 + second} +0000" for role in ("author", "committer")]
    text = "\n".join([*lines, "", "x", ""]).encode()
    return b"commit %d\0%b" % (len(text), text)


def id_of(commit: bytes) -> str:
    """Return the id that git gives to a commit."""
    return hashlib.sha1(commit, usedforsecurity=False).hexdigest()


_OLD = _commit(0)
OBJECTS = (_OLD, _commit(1, id_of(_OLD)))
COMMITS = tuple(map(id_of, OBJECTS))  # those of the repository that a case runs in, the oldest first
ENTRIES = {f"entry-{number}.json": COMMITS[number % 2] for number in (1, 2, 3, 4)}  # each of one of the commits


def contract_of(maker: Maker) -> str:
    """Return the name of the contract of a case."""
    first = str(maker.queries[0])
    return first if maker.oddness and not first.startswith("q") else "docs"


def entry_id(name: str) -> str:
    """Return the id of the entry in the file of this name."""
    number = int(name[6])
    return f"2026010{number}T030405Z-{ENTRIES[name][:12]}-{100 + number}-1"


def entry(name: str) -> Callable[[Maker], dict[str, Any]]:
    """Return what makes the entry in the file of this name."""

    def made(maker: Maker) -> dict[str, Any]:
        created_at = f"2026-01-0{name[6]}T03:04:05+00:00"
        fields: dict[str, Any] = fitting(maker, "history")
        fields |= {
            "id": entry_id(name),
            "contract": contract_of(maker),
            "created_at": created_at,
            "retrieval": "0" * 64,
            "results": {"sha256": RESULTS, "queries": len(maker.queries), "bytes": 1},
            "metrics": {"mrr_at_5": _metric(maker), "recall_at_5": _metric(maker)},
        }
        fields["head"] |= {"format_version": 1, "created_at": created_at}
        fields["source"] |= {"commit": ENTRIES[name], "branch": "main", "run_id": 100 + int(name[6])}
        for listed in ("failed", "tolerated"):
            fields[listed] = [str(query_id) for query_id in maker.some(maker.queries, 3)]
        if maker.chance(0.7):
            fields |= {"verdict": "pass", "accepted": False}
            fields["source"]["dirty"] = False
        if maker.chance(0.1):
            fields |= {"results": None, "no_results": maker.text()}
        return fields

    return made


def _metric(maker: Maker) -> Any:
    definitions = schema("history")["$defs"]
    return value(maker, definitions[EntryMetric.__name__], definitions, "", 1)


def result_set(maker: Maker) -> list[Any]:
    """Return the rows of a result set, sorted by id."""
    definitions = schema("baseline")["$defs"]
    rows = [
        value(maker, definitions["BaselineQuery"], definitions, "", 1) | {"id": str(query_id)}
        for query_id in maker.queries
    ]
    for row, query_id in zip(rows, maker.queries, strict=True):
        row["query"] = question(query_id)
    return sorted(({"id": row.pop("id")} | row for row in rows), key=lambda row: row["id"])
