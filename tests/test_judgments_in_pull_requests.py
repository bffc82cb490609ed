"""The action replays judgments, and says where a pull request changes them; it never asks a judge."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ragcontract.core import bounds
from tests.github.standin import GitHub
from tests.judgment_files import FALSE, TRUE, judged_workspace, write_good_calibration, write_judgments_on
from tests.runner import InProcess

NOTE = "This pull request changes what a judge is said to have said; review it as you review code:"
INPUTS = {"judgments": "judgments.jsonl", "calibration": "judge-calibration.json"}


@pytest.fixture
def runner(tmp_path: Path, github: GitHub) -> InProcess:
    made = InProcess(tmp_path, github)
    made.now = datetime.now(UTC)
    (made.workspace / ".git").mkdir()
    judged_workspace(made.workspace, "minimums: {context_recall: 0.75}\n", [TRUE], [FALSE])
    write_judgments_on(made.workspace, [TRUE], [FALSE])
    write_good_calibration(made.workspace)
    return made


def test_the_inputs_are_files_of_the_workspace(runner: InProcess, github: GitHub) -> None:
    result = runner.run(INPUTS)
    assert result.exit_code == 1
    assert "Context recall (judged) is 0.50" in result.log
    report = json.loads((runner.workspace / "report.json").read_text())
    assert report["judge"]["judgments"] == 2
    assert f"| {FALSE} | ❌ by the letter |" in github.bodies()[0]
    outside = runner.run({**INPUTS, "judgments": "../judgments.jsonl"})
    assert outside.exit_code == 2
    without = runner.run({})
    assert without.exit_code == 2
    assert "the input judgments" in without.log


def test_a_link_to_judgments_shows_nothing_of_what_it_leads_to(runner: InProcess) -> None:
    (runner.workspace / "secret.txt").write_text("a secret\n")
    (runner.workspace / "linked.jsonl").symlink_to("secret.txt")
    result = runner.run({**INPUTS, "judgments": "linked.jsonl"})
    assert result.exit_code == 2
    assert "a secret" not in result.log
    assert "no details are shown" in result.log


@pytest.mark.parametrize("changed", ["judgments.jsonl", "judge-calibration.json"])
def test_a_comment_says_that_the_pull_request_changes_judgments(
    changed: str, runner: InProcess, github: GitHub
) -> None:
    github.files = ["docs/a.md", changed]
    runner.run(INPUTS)
    assert f"{NOTE} `{changed}`" in github.bodies()[0]


def test_a_comment_says_if_github_lists_too_few_files_to_know(
    runner: InProcess, github: GitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody can hide judgments behind many other files."""
    monkeypatch.setattr(bounds, "PULL_REQUEST_FILES", 20)
    github.files = [*(f"a{at:03}.md" for at in range(20)), "judgments.jsonl"]
    runner.run(INPUTS)
    assert NOTE not in github.bodies()[0]
    assert "It is not known whether this pull request changes what a judge is said to have said" in github.bodies()[0]


def test_a_pull_request_that_leaves_judgments_has_no_note(runner: InProcess, github: GitHub) -> None:
    github.files = ["docs/a.md", "golden.jsonl"]
    runner.run(INPUTS)
    assert NOTE not in github.bodies()[0]
