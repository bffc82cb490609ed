"""Many processes write one folder at once, and are killed at any moment: nothing is lost and nothing is half there."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragcontract.history.entry import decode, entry_path
from ragcontract.history.folder import Folder
from tests.history.entries import RUN, digest, new_entry, results_of
from tests.runner import ROOT

WRITERS = 8
# Each process imports what it needs once, and forks its writers, because a test process may have threads.
START = """
import os, random, signal, sys, time, traceback
from datetime import timedelta
from ragcontract.history.folder import Folder
from tests.history.entries import FIRST, RUN, new_entry

def writers(write):
    children = []
    for number in range({writers}):
        child = os.fork()
        if child == 0:
            try:
                write(number)
            except BaseException:
                traceback.print_exc()
            os._exit(1)
        children.append(child)
    return children
"""
ALL_AT_ONCE = """
def write(number):
    folder = Folder("history")
    for round in range(20):
        mine = new_entry(run=RUN + number * 100 + round, results=b"x%d" % number * 10_000)
        same = new_entry("same", run=RUN + round, results=b"y%d" % round * 10_000)
        assert folder.add(mine) == "added"
        os.write(1, (folder.add(same) + " ").encode())
    os._exit(0)

for child in writers(write):
    assert os.waitpid(child, 0)[1] == 0
"""
KILLED = """
moments = random.Random(31)
for round in range(100):
    def write(number):
        folder = Folder("history")
        for at in range(10_000):
            run = RUN + (round * 8 + number) * 10_000 + at
            folder.add(new_entry(run=run, summary="s" * 50_000, results=b"%d " % run * 50_000))
    children = writers(write)
    time.sleep(moments.uniform(0, 0.05))
    for child in children:
        os.kill(child, signal.SIGKILL)
    for child in children:
        assert os.waitpid(child, 0)[1] == signal.SIGKILL
"""
# Kills itself at the n-th thing that it asks of the system, whatever that is.
KILLED_AT_A_STEP = """
new = new_entry(results=b"x" * 10_000)
for step in range(1, 1_000):
    child = os.fork()
    if child == 0:
        steps = iter(range(1, step + 1))
        def count(event, arguments):
            if event == "open" or event.startswith("os."):
                if next(steps) == step:
                    os.kill(os.getpid(), signal.SIGKILL)
        sys.addaudithook(count)
        Folder("%d" % step).add(new)
        os._exit(0)
    if os.waitpid(child, 0)[1] == 0:
        break
print(step)
"""


def run(program: str, path: Path) -> str:
    """Run a program in a folder; return what it prints."""
    start = START.format(writers=WRITERS)
    environ = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", start + program],
        check=False,
        cwd=path,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def whole_entries(path: Path) -> Iterator[str]:
    """Yield the ids of all entries of a folder; each must be whole, and its result set must be there."""
    folder = Folder(str(path))
    for contract in folder.contracts():
        ids = folder.ids(contract, folder.months(contract))
        files = [file.name for file in (path / "entries" / contract).rglob("*") if file.is_file()]
        assert sorted(files) == sorted(f"{entry.id}.json" for entry in ids)
        for entry_id, content in folder.read(contract, ids).items():
            entry = decode(content, entry_path(contract, entry_id))
            assert entry.results is not None
            results = folder.results(entry.results.sha256)
            assert digest(results) == entry.results.sha256
            yield entry_id
    for sha256 in folder.result_sets():
        assert digest(folder.results(sha256)) == sha256


def leftovers(path: Path) -> list[Path]:
    return [file for file in path.rglob("*.tmp") if file.is_file()]


def test_many_writers_at_once_lose_nothing_and_store_nothing_twice(tmp_path: Path) -> None:
    assert sorted(run(ALL_AT_ONCE, tmp_path).split()) == ["added"] * 20 + ["exists"] * 20 * (WRITERS - 1)
    history = tmp_path / "history"
    assert len(list(whole_entries(history))) == WRITERS * 20 + 20
    assert len(Folder(str(history)).result_sets()) == WRITERS + 20
    assert not leftovers(history)


def test_writers_that_are_killed_leave_whole_entries_or_none(tmp_path: Path) -> None:
    run(KILLED, tmp_path)
    history = tmp_path / "history"
    before = list(whole_entries(history))
    for file in leftovers(history):
        os.utime(file, (0, 0))
    Folder(str(history)).add(new_entry(run=RUN - 1, results=results_of("d1")))
    assert not leftovers(history)
    assert len(list(whole_entries(history))) == len(before) + 1


def test_a_writer_may_be_killed_at_any_step(tmp_path: Path) -> None:
    steps = int(run(KILLED_AT_A_STEP, tmp_path))
    assert steps > 5
    new = new_entry(results=b"x" * 10_000)
    for step in range(1, steps + 1):
        path = tmp_path / f"{step}"
        stored = list(whole_entries(path))
        assert stored in ([], [new.entry.id])
        assert Folder(str(path)).add(new) == ("exists" if stored else "added")
        assert list(whole_entries(path)) == [new.entry.id]
    assert stored == [new.entry.id]


def test_a_signal_that_ends_a_process_politely_leaves_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    folder = Folder(str(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        folder.add(new_entry())
    assert not leftovers(tmp_path)
    assert list(whole_entries(tmp_path)) == []
