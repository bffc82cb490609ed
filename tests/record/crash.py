"""Kills recordings at random moments: ``python -m tests.record.crash [QUERIES [KILLS]]`` says what came of it.

The system notes what it was asked, in a file of its own for each recording.
"""

import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from msgspec import Struct

from tests.builders import golden, write_jsonl
from tests.process import COMMAND

SYSTEM = """
import os, time
log = os.open(os.environ["ASKED"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)

def retrieve(query, context):
    os.write(log, context.query_id.encode() + b"\\n")
    time.sleep(0.004)
    return [{"doc_id": f"doc {len(query) % 7}", "score": 0.5, "text": query * 20}, {"doc_id": "doc1"}]
"""


class Came(Struct, frozen=True, kw_only=True):
    """What came of it: how often it was killed, what was asked more than once, and what differs in the run."""

    kills: int
    asked: int
    again: list[str]  # asked although the journal had the answer
    differs: bool
    left: list[str]  # files beside those that there should be


def crash(folder: Path, queries: int, kills: int, seed: int, concurrency: int = 4) -> Came:
    """Record in a folder, killing the process ``kills`` times, and compare with a recording that is left alone."""
    chance = random.Random(seed)
    for name in ("whole", "killed"):
        (folder / name).mkdir()
        (folder / name / "search.py").write_text(SYSTEM)
        write_jsonl(folder / name / "golden.jsonl", [golden(f"q{number}") for number in range(queries)])
    assert _started(folder / "whole", folder / "log", concurrency).wait() == 0
    killed = folder / "killed"
    again: list[str] = []
    done = asked = 0
    for kill in range(kills):
        log = folder / f"log {kill}"
        recording = _started(killed, log, concurrency)
        _kill_after(recording, log, chance.randint(0, queries // (kills + 1)), chance.uniform(0, 0.004))
        again += sorted(set(_lines(log)) & _answered_before(folder / "journal"))
        asked += len(_lines(log))
        done += recording.wait() == 0
        _keep(killed / ".current_run.jsonl.journal", folder / "journal")
    last = folder / "log last"
    assert _started(killed, last, concurrency).wait() == 0
    asked += len(_lines(last))
    if not done:
        again += sorted(set(_lines(last)) & _answered_before(folder / "journal"))
    return Came(
        kills=kills - done,
        asked=asked,
        again=again,
        differs=_run(killed) != _run(folder / "whole"),
        left=sorted({path.name for path in killed.iterdir()} - {path.name for path in (folder / "whole").iterdir()}),
    )


def _started(folder: Path, log: Path, concurrency: int) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [*COMMAND, "record", "search.py:retrieve", "--concurrency", str(concurrency), "--progress-every-seconds", "0"],
        cwd=folder,
        env={"ASKED": str(log), "PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path(__file__).parents[2])},
        stdout=subprocess.DEVNULL,
    )


def _kill_after(recording: "subprocess.Popen[bytes]", log: Path, questions: int, moment: float) -> None:
    """Kill a process a moment after it has asked some questions, if it has not ended by then."""
    while recording.poll() is None and len(_lines(log)) < questions:
        time.sleep(0.002)
    time.sleep(moment)
    recording.kill()
    recording.wait()


def _answered_before(journal: Path) -> set[str]:
    return {line["query_id"] for line in map(_parsed, _lines(journal)) if "row" in line}


def _keep(journal: Path, copy: Path) -> None:
    copy.write_bytes(journal.read_bytes() if journal.exists() else b"")


def _parsed(line: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(line)
    except ValueError:  # cut off
        return {}
    return found


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def _run(folder: Path) -> list[str]:
    """Return the rows of a run as they are in the file, without how long each took."""
    rows = (folder / "current_run.jsonl").read_text().splitlines()
    return [json.dumps({**json.loads(row), "latency_ms": 0}) for row in rows]


if __name__ == "__main__":
    size, times = (int(word) for word in (sys.argv[1:] + ["1000", "20"][len(sys.argv) - 1 :])[:2])
    with tempfile.TemporaryDirectory() as made:
        print(crash(Path(made), size, times, seed=random.randrange(10**6)))  # noqa: T201
