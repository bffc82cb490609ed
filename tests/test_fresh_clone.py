"""What a fresh clone runs: `make demo`."""

import json
import os
import sys
from pathlib import Path

import pytest

from scripts import docs
from tests.process import Ended, spawn

README = " ".join(docs.README.read_text().split())


def tool(folder: Path, name: str, script: str) -> None:
    """Put a shell script of that name into a folder."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def demo(folder: Path, rag_contract: str) -> Ended:
    """Run the demo with this interpreter instead of an environment of its own, and with a script for the command."""
    tool(folder / "bin", "python", f'exec "{sys.executable}" "$@"')
    tool(folder / "bin", "rag-contract", rag_contract)
    there = f"{folder}/venv/ready"
    command = ("make", "-C", str(docs.ROOT), "demo", f"DEMO={folder}", f"DEMO_BIN={folder}/bin", "-o", there)
    return spawn(cwd=folder, command=command, environ={"MAKEFLAGS": "", "PATH": os.environ["PATH"]})


def test_the_demo_shows_a_good_run_and_one_that_breaks_as_many_queries_as_the_readme_says(tmp_path: Path) -> None:
    assert "how an innocent change to it breaks six of 25 queries" in README
    shown = demo(tmp_path, f'exec "{sys.executable}" -m ragcontract "$@"')
    assert shown.code == 0, shown.err
    good, _, broken = shown.out.partition("# 2. A broken run")
    assert "\nPASS  nothing broken in 25 queries" in good
    assert "FAIL" not in good
    assert "\nFAIL phi-allowed\n  Expected hipaa_baa in top 2\n  Found: missing from top 5 (was rank 1)\n" in broken
    assert "6 of 25 queries broken" in broken
    for run, count in (("good", 0), ("broken", 6)):
        assert f"{tmp_path}/{run}/report.html" in broken
        assert {path.name for path in (tmp_path / run).glob("[jr]*")} == {
            *("junit.xml", "report.html", "report.json", "report.md")
        }
        queries = json.loads((tmp_path / run / "report.json").read_bytes())["queries"]
        assert (len(queries), sum(query["status"] == "fail" for query in queries)) == (25, count)


@pytest.mark.parametrize(
    ("good", "broken", "why"),
    [
        (0, 0, "this check exits 0, expected 1"),
        (0, 2, "this check exits 2, expected 1"),
        (1, 1, "this check exits 1, expected 0"),
    ],
)
def test_the_demo_fails_unless_the_good_run_passes_and_the_broken_one_breaks(
    good: int, broken: int, why: str, tmp_path: Path
) -> None:
    shown = demo(tmp_path, f'case "$*" in */good/*) exit {good} ;; *) exit {broken} ;; esac')
    assert shown.code == 2
    assert f"make demo: {why}\n" in shown.err
    assert "What happened" not in shown.out
