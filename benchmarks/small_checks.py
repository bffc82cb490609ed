"""Checks of small sets in memory, for simulations: the Python API judges, exactly as the command does."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.stages import Row, write_config, write_lines
from ragcontract import check
from ragcontract.api import Report

RULES_OFF = {"per_query": {"enforce_must_include": False}}  # only means are judged
Run = Mapping[str, Sequence[str]]


def write_set(folder: Path, golden: Sequence[Row], baseline: Run) -> None:
    """Write the golden queries and a baseline, which is a run."""
    write_lines(folder, "golden", golden)
    write_lines(folder, "baseline", run_rows(baseline))


def judged(folder: Path, run: Run, **config: Any) -> Report:
    """Check a run against the set in ``folder``; ``config`` is the configuration, beside the rules that are off."""
    write_config(folder, **{**RULES_OFF, **config})
    return check(
        golden=folder / "golden.jsonl",
        run={query: list(documents) for query, documents in run.items()},
        baseline=folder / "baseline.jsonl",
        config=folder / "ragcontract.yml",
    )


def run_rows(run: Run) -> list[Row]:
    """Return the rows of a run."""
    return [
        {"query_id": query, "results": [{"doc_id": document} for document in documents]}
        for query, documents in run.items()
    ]
