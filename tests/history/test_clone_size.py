"""A history stays small in git: a clone of a branch with hundreds of entries."""

import random
import subprocess
from datetime import timedelta
from pathlib import Path

from tests.history.entries import FIRST, RUN, ChangingRuns, new_entry


def branch(folder: Path, entries: int, *, queries: int, changed_runs: float, changed_queries: float) -> None:
    """Make a repository with a commit for each entry, of which a share has other results than the one before."""
    subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=history", str(folder)], check=True)
    retriever = ChangingRuns(queries, changed_queries)
    chance = random.Random(7)
    results = retriever.next()
    stream = []
    for number in range(entries):
        if chance.random() < changed_runs:
            results = retriever.next()
        new = new_entry(at=FIRST + timedelta(hours=7 * number), run=RUN + number, results=results)
        assert new.entry.results is not None
        sha256 = new.entry.results.sha256
        stream += [
            b"commit refs/heads/history\ncommitter a <a@example.com> %d +0000\n" % (1_800_000_000 + number),
            b"data 6\nRecord\n",
            b"M 100644 inline %s\ndata %d\n%s\n" % (new.path.encode(), len(new.content), new.content),
            b"M 100644 inline results/%s/%s.jsonl\ndata %d\n" % (sha256[:2].encode(), sha256.encode(), len(results)),
            results,
            b"\n",
        ]
    # Each file is an object of its own, as each was pushed by itself. A clone then packs them.
    imported = ["git", "-C", str(folder), "-c", "fastimport.unpackLimit=100000", "fast-import", "--quiet"]
    subprocess.run(imported, input=b"".join(stream), check=True)


def size_of_clone(folder: Path, entries: int, *, queries: int, changed_runs: float, changed_queries: float) -> int:
    branch(folder / "origin", entries, queries=queries, changed_runs=changed_runs, changed_queries=changed_queries)
    clone = ["git", "clone", "--quiet", "--no-checkout", f"file://{folder / 'origin'}", str(folder / "clone")]
    subprocess.run(clone, check=True)
    return sum(file.stat().st_size for file in (folder / "clone" / ".git" / "objects").rglob("*") if file.is_file())


def test_a_clone_of_a_hundred_runs_of_a_thousand_queries_stays_under_a_megabyte(tmp_path: Path) -> None:
    size = size_of_clone(tmp_path, 100, queries=1_000, changed_runs=0.3, changed_queries=0.3)
    assert 100_000 < size < 1_000_000


def test_equal_results_add_nothing_to_a_clone_but_their_entries(tmp_path: Path) -> None:
    size = size_of_clone(tmp_path, 100, queries=1_000, changed_runs=0, changed_queries=1)
    assert 10_000 < size < 250_000
