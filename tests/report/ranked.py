"""Reports on queries that find their document at given ranks."""

import re
from typing import Any

from ragcontract.report.record import Report
from tests.records import query, report

LOW = {"mrr_drop_gt": 0.1}


def without_bounds(text: str) -> str:
    """Return a text with ``#`` for the bounds beside changes, whose formula has tests of its own."""
    return re.sub(r"(Interval|to) [+-]?\d+\.\d+", r"\1 #", text)


def ranked(*ranks: int | None) -> dict[str, list[str]]:
    """Return a run whose queries q1, q2, … find their document A at these ranks."""
    return {
        f"q{number}": ["x"] * ((rank or 9) - 1) + ["A"] * (rank is not None)
        for number, rank in enumerate(ranks, start=1)
    }


def found_at(now: list[int | None], before: list[int | None] | None = None, **config: Any) -> Report:
    """Return a report on queries that find their document at these ranks, under these limits."""
    queries = [query(f"q{number}", "A", must_include_any=True) for number in range(1, len(now) + 1)]
    return report(queries, ranked(*now), None if before is None else ranked(*before), config)


def tagged(**config: Any) -> Report:
    """Return a report on a tag of each name: of ``bad``, ``poor`` and ``good``, 0, half and all is found at rank 1."""
    found: dict[str, list[int | None]] = {"bad": [None, None], "poor": [1, None], "good": [1, 1]}
    names = [f"{tag}{number}" for tag in found for number in (1, 2)]
    queries = [query(name, "A", tags=(name[:-1],)) for name in names]
    now = {
        f"{tag}{number}": ["A"] * (rank or 0) for tag, ranks in found.items() for number, rank in enumerate(ranks, 1)
    }
    return report(queries, now, {name: ["A"] for name in names}, config)


def noisy(**config: Any) -> Report:
    """Return a report on 40 queries, of which 7 are found again and 11 lost: over the limit, and within noise."""
    before = [*[None] * 7, *[1] * 33]
    now = [*[1] * 7, *[None] * 11, *[1] * 22]
    fail_on = {"mode": "significant", "mrr_drop_gt": 0.05, **config.pop("fail_on", {})}
    per_query = {"enforce_must_include": False}
    return found_at(now, before, fail_on=fail_on, per_query=per_query, **config)
