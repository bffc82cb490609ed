"""A result is reported on a pull request, but another commit is checked out: log, comment and reports say so."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests import scenarios
from tests.github.standin import GitHub
from tests.runner import SHA, InProcess, Result

HEAD = "b" * 40
PULL: dict[str, Any] = {
    "number": 7,
    "head": {"sha": HEAD, "repo": {"full_name": "octo/app"}},
    "base": {"sha": "d" * 40},
}
OF_RUN = {"id": 5, "head_sha": HEAD, "head_branch": "topic", "head_repository": {"full_name": "octo/app"}}
REPOSITORY = {"default_branch": "main"}
EVENTS: dict[str, dict[str, Any]] = {
    "pull_request_target": {"action": "opened", "number": 7, "pull_request": PULL},
    "workflow_run": {"workflow_run": OF_RUN},
    "issue_comment": {"issue": {"number": 7}, "repository": REPOSITORY},
    "schedule": {"schedule": "0 4 * * *"},
    "workflow_dispatch": {"repository": REPOSITORY},
}
DETACHED = {"HEAD": f"{SHA}\n"}
BRANCH = {"HEAD": "ref: refs/heads/main\n", "refs/heads/main": f"{SHA}\n"}
PACKED = {
    "HEAD": "ref: refs/heads/main\n",
    "packed-refs": f"# peeled\n{SHA} refs/heads/main\n^{HEAD}\n",
}


@pytest.fixture
def runner(tmp_path: Path, github: GitHub) -> InProcess:
    github.add_pull(7, sha=HEAD, branch="topic")
    runner = InProcess(tmp_path, github)
    scenarios.passing(runner.workspace)
    return runner


def checked_out(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / ".git" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / ".git" / name).write_text(text)


def ran(runner: InProcess, event: str, branch: str = "main", **inputs: str) -> Result:
    of_pull = {} if event in {"pull_request_target", "workflow_run"} else {"pull-request": "7"}
    return runner.run({**of_pull, **inputs}, event=EVENTS[event], name=event, environ={"GITHUB_REF_NAME": branch})


@pytest.mark.parametrize("git", [DETACHED, BRANCH, PACKED], ids=["detached", "branch", "packed"])
@pytest.mark.parametrize("event", EVENTS)
def test_the_commit_that_an_event_checks_out_by_itself_is_not_the_pull_requests(
    runner: InProcess, github: GitHub, event: str, git: dict[str, str]
) -> None:
    checked_out(runner.workspace, git)
    result = ran(runner, event)
    warning = f"The checkout is {SHA[:12]}"
    (annotation,) = [one for one in result.annotations if warning in one.message]
    assert (annotation.level, "ref: " in annotation.message) == ("warning", True)
    assert f"\nThe checkout is `{SHA[:12]}`" in github.bodies()[0]
    report = json.loads((runner.workspace / "report.json").read_text())
    assert [warning in one for one in report["warnings"]].count(True) == 1


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("git", [{"HEAD": f"{HEAD}\n"}, {}, {"HEAD": "ref: refs/../../x\n"}, {"HEAD": "odd"}])
def test_the_pull_requests_commit_or_an_unknown_one_is_checked_out(
    runner: InProcess, event: str, git: dict[str, str]
) -> None:
    checked_out(runner.workspace, git)
    assert "The checkout is" not in ran(runner, event).log


def test_the_repository_of_the_contracts_folder_counts(runner: InProcess) -> None:
    checked_out(runner.workspace, DETACHED)
    (runner.workspace / "head").mkdir()
    scenarios.passing(runner.workspace / "head")
    checked_out(runner.workspace / "head", {"HEAD": HEAD})
    inputs = {"working-directory": "head"}
    assert "The checkout is" not in ran(runner, "pull_request_target", **inputs).log
    checked_out(runner.workspace / "head", {"HEAD": "d" * 40})  # the base of the pull request
    assert f"The checkout is {'d' * 12}" in ran(runner, "pull_request_target", **inputs).log


def test_a_workflow_that_is_started_for_another_branch_checks_that_branch(runner: InProcess) -> None:
    checked_out(runner.workspace, DETACHED)
    assert "The checkout is" not in ran(runner, "workflow_dispatch", branch="topic").log


OF_PULL: dict[str, Any] = {
    "action": "opened",
    "pull_request": {**PULL, "head": {**PULL["head"], "ref": "topic"}, "base": {**PULL["base"], "ref": "main"}},
}
BASE = {"HEAD": "d" * 40}
NEWER_BASE = {"HEAD": "ref: refs/heads/main\n", "refs/heads/main": "e" * 40}


@pytest.mark.parametrize("git", [BASE, NEWER_BASE], ids=["its commit", "its branch"])
@pytest.mark.parametrize("event", ["pull_request", "pull_request_review", "pull_request_target"])
def test_the_base_of_a_pull_request_is_not_its_commit(
    runner: InProcess, github: GitHub, event: str, git: dict[str, str]
) -> None:
    checked_out(runner.workspace, git)
    result = runner.run({}, event=OF_PULL, name=event)
    commit = "d" * 12 if git is BASE else "e" * 12
    warning = f"The checkout is {commit} of the pull request's base, but this result is of {HEAD[:12]}; check that out"
    assert [warning in one.message for one in result.annotations].count(True) == 1
    assert f"\nThe checkout is `{commit}`" in github.bodies()[0]


@pytest.mark.parametrize("git", [{"HEAD": HEAD}, DETACHED, {"HEAD": "ref: refs/heads/topic", "refs/heads/topic": HEAD}])
def test_a_pull_requests_commit_and_its_merge_are_its_own(runner: InProcess, git: dict[str, str]) -> None:
    checked_out(runner.workspace, git)
    assert "The checkout is" not in runner.run({}, event=OF_PULL, name="pull_request").log


OF_FORK = {**OF_PULL, "pull_request": {**OF_PULL["pull_request"], "head": {**PULL["head"], "ref": "main"}}}


def test_the_base_is_not_the_branch_of_a_fork_that_has_its_name(runner: InProcess) -> None:
    checked_out(runner.workspace, NEWER_BASE)
    warning = (
        f"The checkout is {'e' * 12} of a branch that has the name of the pull request's base, but this result is of"
    )
    result = runner.run({}, event=OF_FORK, name="pull_request")
    assert [one.message.startswith(warning) for one in result.annotations].count(True) == 1


def test_the_branch_of_a_fork_may_have_the_name_of_the_base(runner: InProcess) -> None:
    checked_out(runner.workspace, {"HEAD": "ref: refs/heads/main", "refs/heads/main": HEAD})
    assert "The checkout is" not in runner.run({}, event=OF_FORK, name="pull_request").log


def test_a_push_to_the_default_branch_is_not_of_the_pull_request_that_is_named(runner: InProcess) -> None:
    checked_out(runner.workspace, DETACHED)
    pushed = {"repository": REPOSITORY}
    ended = runner.run({"pull-request": "7"}, event=pushed, name="push", environ={"GITHUB_REF_NAME": "main"})
    assert f"The checkout is {SHA[:12]} of the default branch" in ended.log
    ended = runner.run({"pull-request": "7"}, event=pushed, name="push", environ={"GITHUB_REF_NAME": "topic"})
    assert "The checkout is" not in ended.log
