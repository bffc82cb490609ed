"""The action replays judgments, and says where a pull request changes them; it never asks a judge."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ragcontract.core import bounds
from tests.github.relayed import HEAD, of_commit, relayed
from tests.github.standin import Fault, GitHub
from tests.judgment_files import FALSE, TRUE, judged_workspace, write_good_calibration, write_judgments_on
from tests.process import rag_contract
from tests.runner import InProcess

UNKNOWN = "It is not known whether this pull request edits stored judgments"
NOTE = "This pull request edits stored judgments. Review them like code:"
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
    assert "Context recall (judged) is 0.50" in runner.run({}).log, "files with these names are used"
    (runner.workspace / "judgments.jsonl").unlink()
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
    assert "It is not known whether this pull request edits stored judgments" in github.bodies()[0]


def test_a_pull_request_that_leaves_judgments_has_no_note(runner: InProcess, github: GitHub) -> None:
    github.files = ["docs/a.md", "golden.jsonl"]
    runner.run(INPUTS)
    assert NOTE not in github.bodies()[0]


def test_a_file_that_took_the_place_of_judgments_is_named(runner: InProcess, github: GitHub) -> None:
    github.files, github.renamed = ["judgments.jsonl"], {"judgments.jsonl": "drafts/judgments.jsonl"}
    runner.run(INPUTS)
    assert f"{NOTE} `judgments.jsonl`" in github.bodies()[0]


def test_judgments_are_found_on_any_page_in_any_folder_and_files_are_listed_once(
    runner: InProcess, github: GitHub
) -> None:
    folder = runner.workspace / "rag"
    folder.mkdir()
    for file in runner.workspace.glob("*.*"):
        if file.is_file():
            file.rename(folder / file.name)
    (folder / "baseline.jsonl").write_bytes((folder / "current_run.jsonl").read_bytes())
    others = [f"docs/{number}.md" for number in range(350)]
    github.files = ["judgments.jsonl", *others, "rag/judgments.jsonl", "rag/baseline.jsonl", *others]
    runner.run({**INPUTS, "baseline": "baseline.jsonl", "working-directory": "rag"})
    (body,) = github.bodies()
    assert f"{NOTE} `rag/judgments.jsonl`" in body
    listed = [request for request in github.requests if "/files" in request]
    assert len(listed) == len(set(listed)) == 8


@pytest.mark.parametrize("files", [["judgments.jsonl"], []])
def test_where_github_does_not_list_the_files_the_comment_says_so(
    files: list[str], runner: InProcess, github: GitHub
) -> None:
    github.files = files
    github.faults = [Fault(method="GET", path="/files", status=500)]
    runner.run(INPUTS)
    (body,) = github.bodies()
    assert UNKNOWN in body
    assert NOTE not in body


def test_no_judgments_no_question(runner: InProcess, github: GitHub) -> None:
    (runner.workspace / "ragcontract.yml").write_text("k: 5\n")
    runner.run({})
    (body,) = github.bodies()
    assert UNKNOWN not in body
    assert not [request for request in github.requests if "/files" in request]


def test_a_second_workflow_finds_them_by_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    judged_workspace(tmp_path, "", [TRUE])
    write_judgments_on(tmp_path, [TRUE])
    assert rag_contract("check", "--judgments", "judgments.jsonl").code == 0
    report = of_commit((tmp_path / "report.json").read_bytes())
    with GitHub() as github:
        github.add_pull(7, sha=HEAD, head="stranger/app")
        github.files = ["rag/judgments.jsonl"]
        relayed(InProcess(tmp_path / "second", github), report)
        assert f"{NOTE} `judgments.jsonl`" in github.bodies()[0]
