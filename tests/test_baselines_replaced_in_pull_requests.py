"""What a replaced baseline changed is said in the pull request that replaces it, and only there."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.builders import run
from tests.github.relayed import HEAD, of_commit, relayed
from tests.github.standin import Fault, GitHub
from tests.process import rag_contract
from tests.replacing import accept, check, made, made_on, notes, returned, with_baseline
from tests.runner import InProcess


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return with_baseline(tmp_path, monkeypatch)


def in_a_job(runner: InProcess, workspace: Path) -> None:
    """Copy the contract into a job's workspace, in a folder of the repository."""
    (runner.workspace / ".git").mkdir()
    for file in workspace.iterdir():
        if file.suffix in {".json", ".jsonl", ".yml"} and file.name != "report.json":
            (runner.workspace / "rag").mkdir(exist_ok=True)
            (runner.workspace / "rag" / file.name).write_bytes(file.read_bytes())
    runner.now = datetime.now(UTC)


IN_FOLDER = {"working-directory": "rag"}


@pytest.fixture
def runner(tmp_path: Path, github: GitHub, workspace: Path) -> InProcess:
    accept()
    made = InProcess(tmp_path / "job", github)
    in_a_job(made, workspace)
    return made


def test_a_comment_says_in_this_pull_request_where_github_lists_the_file(runner: InProcess, github: GitHub) -> None:
    github.files = [*(f"docs/{number}.md" for number in range(120)), "rag/baseline.json"]
    result = runner.run(IN_FOLDER)
    assert result.exit_code == 0
    assert notes(github.bodies()[0])[0].startswith("The baseline was replaced in this pull request: MRR@5 fell by 0.25")
    assert notes(result.summary)[0].startswith(f"The baseline was replaced on {made_on()}: ")


def test_a_comment_does_not_blame_a_pull_request_that_leaves_the_baseline(runner: InProcess, github: GitHub) -> None:
    github.files = ["baseline.json", "rag/golden.jsonl"]
    runner.run(IN_FOLDER)
    assert notes(github.bodies()[0]) == []


@pytest.mark.parametrize("status", [403, 404, 500])
def test_where_github_does_not_say_the_comment_has_the_date(status: int, runner: InProcess, github: GitHub) -> None:
    github.faults = [Fault(method="GET", path="/files", status=status)]
    result = runner.run(IN_FOLDER)
    assert result.outputs["comment-url"]
    assert notes(github.bodies()[0])[0].startswith(f"The baseline was replaced on {made_on()}: ")
    assert sum("/files" in request for request in github.requests) == 1


def test_a_comment_that_did_not_know_is_corrected_by_the_next_run(runner: InProcess, github: GitHub) -> None:
    github.files = ["rag/baseline.json"]
    github.faults = [Fault(method="GET", path="/files", times=1)]
    for number in (100, 101):
        runner.run({**IN_FOLDER, "comment": "on-change"}, run=number)
    assert len(github.comments) == 1
    assert "in this pull request" in notes(github.bodies()[0])[0]


def test_an_old_baseline_is_said_where_an_old_pull_request_replaces_it(
    runner: InProcess, github: GitHub, workspace: Path
) -> None:
    made(days_ago=40)
    in_a_job_again = runner.workspace / "rag" / "baseline.json"
    in_a_job_again.write_bytes((workspace / "baseline.json").read_bytes())
    github.files = ["rag/baseline.json"]
    result = runner.run(IN_FOLDER)
    assert "in this pull request" in notes(github.bodies()[0])[0]
    assert notes(result.summary) == []


UNSAID = "The baseline was changed in this pull request and names no older one, so how it differs is not known"


def test_a_baseline_that_was_deleted_and_made_again_does_not_pass_for_the_older_one(
    tmp_path: Path, github: GitHub, workspace: Path
) -> None:
    returned(run("q1", "x", "doc1"), run("q2", "doc2"))
    Path("baseline.json").unlink()
    assert rag_contract("baseline").code == 0
    runner = InProcess(tmp_path / "job", github)
    in_a_job(runner, workspace)
    github.files = ["rag/baseline.json"]
    result = runner.run(IN_FOLDER)
    assert result.exit_code == 0
    assert notes(github.bodies()[0]) == [UNSAID]
    assert notes(result.summary) == []


@pytest.mark.parametrize("files", [["rag/golden.jsonl"], ["rag/baseline.json"]])
def test_a_first_baseline_and_one_that_is_left_as_it_is_need_no_note(
    files: list[str], tmp_path: Path, github: GitHub, workspace: Path
) -> None:
    runner = InProcess(tmp_path / "job", github)
    in_a_job(runner, workspace)
    github.files, github.added = files, ["rag/baseline.json"]
    runner.run(IN_FOLDER)
    assert notes(github.bodies()[0]) == []


def test_a_second_workflow_says_it_too(tmp_path: Path) -> None:
    accept()
    check()
    report = of_commit(Path("report.json").read_bytes())
    with GitHub() as github:
        github.add_pull(7, sha=HEAD, head="stranger/app")
        github.files = ["baseline.json"]
        runner = InProcess(tmp_path / "second", github)
        relayed(runner, report)
        assert "in this pull request" in notes(github.bodies()[0])[0]
        github.files = ["rag/baseline.json"]  # the first workflow may have checked in a folder
        relayed(runner, report)
        assert notes(github.bodies()[-1])[0].startswith(f"The baseline was replaced on {made_on()}")
