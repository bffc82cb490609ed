"""Kills judgings at random moments: ``python -m tests.judge.crash [QUERIES [KILLS]]`` says what came of it.

The model is the stand-in, which notes what it is asked. What was judged is replayed on several machines.
"""

import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from ragcontract.judge.interface import Ask
from ragcontract.judge.judgment_journal import digest_of
from tests.builders import golden, write_jsonl
from tests.judge.machines import differing, give_a_limit
from tests.judge_server import JudgeServer
from tests.process import COMMAND

CONTEXT = "Returns are accepted within 30 days. Refunds take five days."
CLAIMS = ["Refunds take five days.", "Returns are accepted.", "Refunds take a year.", "30 days.", "Nobody pays."]
CONCURRENCY = 8


class Came(Struct, frozen=True, kw_only=True):
    """What came of it: how often it was killed, what was asked more than once, and what differs in the judgments."""

    kills: int
    asked: int
    needed: int  # calls, without a kill
    again: int  # asked although the journal had the reply
    differs: bool
    left: list[str]  # files beside those that there should be
    reports: list[str]  # of a check on them that are not the same on every machine


def crash(folder: Path, queries: int, kills: int, seed: int) -> Came:
    """Judge in a folder, killing the process ``kills`` times, and compare with a judging that is left alone.

    The last kill is as soon as there is a judgments file.
    """
    chance = random.Random(seed)
    with JudgeServer(seconds=0.002) as server:
        for name in ("whole", "killed"):
            (folder / name).mkdir()
            rows = [golden(f"q{number}", reference_claims=CLAIMS) for number in range(queries)]
            write_jsonl(folder / name / "golden.jsonl", rows)
            run = [{"query_id": row["id"], "results": [], "retrieved_contexts": [CONTEXT]} for row in rows]
            write_jsonl(folder / name / "current_run.jsonl", run)
        assert _started(folder / "whole", server.openai).wait() == 0
        needed = len(server.asked)
        killed = folder / "killed"
        known: set[str] = set()
        again = done = 0
        for number in range(kills + 1):
            before = len(server.came)
            judging = _started(killed, server.openai)
            if number < kills - 1:
                calls = before + chance.randint(0, 2 * needed // kills)
                _kill_once(judging, partial(_has_come, server, calls), seconds=chance.random() / 100)
            elif number < kills:
                _kill_once(judging, (killed / "judgments.jsonl").exists)
            done += judging.wait() == 0
            host = server.origin.removeprefix("http://")
            again += sum(_digest(one.body, host) in known for one in server.came[before:])
            known |= _known(killed / ".judgments.jsonl.journal")
        asked = len(server.asked) - needed
    differs = _judgments(killed) != _judgments(folder / "whole")
    left = sorted({path.name for path in killed.iterdir()} - {path.name for path in (folder / "whole").iterdir()})
    give_a_limit(killed)
    return Came(
        kills=kills + 1 - done,
        asked=asked,
        needed=needed,
        again=again,
        differs=differs,
        left=left,
        reports=differing(killed, folder),
    )


def _started(folder: Path, url: str) -> "subprocess.Popen[bytes]":
    options = ["--model", "toy", "--judge-url", url, "--max-calls", "100000", "--concurrency", str(CONCURRENCY)]
    return subprocess.Popen(
        [*COMMAND, "judge", *options],
        cwd=folder,
        env={
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "XDG_STATE_HOME": str(folder.parent / "state"),
        },
        stdout=subprocess.DEVNULL,
    )


def _has_come(server: JudgeServer, calls: int) -> bool:
    return len(server.came) >= calls


def _kill_once(judging: "subprocess.Popen[bytes]", is_time: Callable[[], bool], *, seconds: float = 0) -> None:
    """Kill a process so many seconds after it is time, if it has not ended by then."""
    while judging.poll() is None and not is_time():
        time.sleep(0.001)
    time.sleep(seconds)
    judging.kill()


def _digest(body: dict[str, Any], host: str) -> str:
    ask = Ask(
        system=body["messages"][0]["content"],
        user=body["messages"][1]["content"],
        schema=body["response_format"]["json_schema"]["schema"],
        temperature=body["temperature"],
        seed=body["seed"],
        max_tokens=body["max_completion_tokens"],
    )
    return digest_of("toy", host, ask)


def _known(journal: Path) -> set[str]:
    """Return what a journal has replies to."""
    found = set()
    for line in journal.read_text().splitlines() if journal.exists() else ():
        try:
            found.add(json.loads(line.partition("\t")[0]).get("ask"))
        except ValueError:  # cut off
            continue
    return found - {None}


def _judgments(folder: Path) -> list[tuple[Any, ...]]:
    rows = map(json.loads, (folder / "judgments.jsonl").read_text().splitlines())
    names = ("key", "query_id", "item", "verdict", "quote", "context", "votes", "status", "fingerprint")
    return [tuple(map(str, map(row.get, names))) for row in rows]


if __name__ == "__main__":
    size, times = (int(word) for word in (sys.argv[1:] + ["1000", "30"][len(sys.argv) - 1 :])[:2])
    with tempfile.TemporaryDirectory() as made:
        print(crash(Path(made), size, times, seed=random.randrange(10**6)))  # noqa: T201
