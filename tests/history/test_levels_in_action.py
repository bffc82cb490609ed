"""Limits on levels in the action: what GitHub is asked for them, and what a history that cannot be read means."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.builders import golden, run, write_jsonl
from tests.github.standin import Fault, GitHub
from tests.history.action_jobs import QUERY, Job, is_of_history, pull_request, push, recorded, report_of
from tests.needs import require
from tests.runner import InProcess

RUNS, QUERIES = 31, 10
LEVEL = "history:\n  mrr_drop_gt: 0.05\n"


def scene(workspace: Path, right: int, config: str = "") -> None:
    """Write a contract and a run that finds the documents of the first ``right`` questions."""
    write_jsonl(workspace / "golden.jsonl", [golden(f"q{number}", f"doc{number}") for number in range(QUERIES)])
    rows = [run(f"q{number}", f"doc{number}" if number < right else "other") for number in range(QUERIES)]
    write_jsonl(workspace / "current_run.jsonl", rows)
    (workspace / "ragcontract.yml").write_text(f"per_query:\n  enforce_must_include: false\n{config}")


@pytest.fixture
def runner(tmp_path: Path, github: GitHub) -> InProcess:
    """A main branch with 40 recorded runs, which have three distinct result sets."""
    require("npm")
    runner = InProcess(tmp_path, github)
    for number in range(RUNS):
        sha = github.repository.commit("main", {"app.py": b"%d" % number})
        recorded(runner, sha, scenario=partial(scene, right=QUERIES - number % 3), run=number + 1)
    github.sent.clear()
    return runner


@pytest.fixture
def merged(runner: InProcess, github: GitHub) -> Job:  # noqa: ARG001 (main must be there first)
    """The job of a pull request, which checks out its merge with main."""
    main = github.repository.branches["main"]
    github.repository.branches["topic"] = main
    topic = github.repository.commit("topic", {"app.py": b"better"})
    github.add_pull(7, sha="b" * 40)
    return pull_request(github.repository.merge(main, topic))


def gate_of(runner: InProcess) -> dict[str, Any]:
    """Return the only limit in the report."""
    (gate,) = report_of(runner)["gates"]
    return dict(gate)


def test_a_pull_request_asks_little_more_for_a_history(runner: InProcess, github: GitHub, merged: Job) -> None:
    scene(runner.workspace, QUERIES)
    assert merged.run(runner, run=900).exit_code == 0
    asked = [sent for sent in github.sent if is_of_history(sent)]
    assert len(asked) <= 6
    github.sent.clear()
    scene(runner.workspace, QUERIES - 1, LEVEL)
    assert merged.run(runner, run=901).exit_code == 0
    asked = [sent for sent in github.sent if is_of_history(sent)]
    assert len(asked) <= 10 + 3
    assert gate_of(runner)["level"]["runs"] == 30
    assert (gate_of(runner)["now"], gate_of(runner)["status"]) == (0.9, "pass")
    scene(runner.workspace, QUERIES - 2, LEVEL)
    assert merged.run(runner, run=902).exit_code == 1


def test_a_push_is_not_in_its_own_past(runner: InProcess, github: GitHub) -> None:
    scene(runner.workspace, QUERIES - 1, LEVEL)
    sha = github.repository.branches["main"]
    for attempt in (1, 2):
        assert push(sha).run(runner, run=900, attempt=attempt).exit_code == 0
    assert gate_of(runner)["level"]["runs"] == 30


FAULTS = {
    "500": Fault(body=QUERY, status=500),
    "403": Fault(body=QUERY, status=403, message="Resource not accessible by integration"),
    "not JSON": Fault(body=QUERY, kind="not json"),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_limit_on_a_level_needs_a_history_that_can_be_read(
    runner: InProcess, github: GitHub, merged: Job, fault: Fault
) -> None:
    github.faults = [fault]
    scene(runner.workspace, QUERIES, LEVEL)
    result = merged.run(runner, run=900)
    assert result.exit_code == 2, result.log
    assert "history.mrr_drop_gt cannot be judged: branch rag-contract-history: GitHub" in result.log
