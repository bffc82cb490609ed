"""Each kind of event, from a fork and not: which pull request gets the comment, and what is said where none can."""

from pathlib import Path
from typing import Any

import pytest

from tests import scenarios
from tests.github.standin import Fault, GitHub
from tests.report.page import Page
from tests.runner import SHA, InProcess, Result, Runner

ADVICE = "permissions: pull-requests: write"


@pytest.fixture
def runner(tmp_path: Path, github: GitHub) -> Runner:
    runner = InProcess(tmp_path, github)
    scenarios.failing(runner.workspace)
    return runner


def commented_on(github: GitHub) -> list[int]:
    return [int(comment["issue_url"].rpartition("/")[2]) for comment in github.comments]


def ran(runner: Runner, name: str, event: dict[str, Any], **inputs: str) -> Result:
    """Run a broken contract; whatever the event, it is reported by exit code, summary and outputs."""
    result = runner.run({key.replace("_", "-"): value for key, value in inputs.items()}, event=event, name=name)
    assert result.exit_code == 1
    assert result.outputs["verdict"] == "fail"
    assert "❌" in result.summary
    return result


@pytest.mark.parametrize("name", ["pull_request", "pull_request_target"])
def test_a_pull_request_gets_the_comment(runner: Runner, github: GitHub, name: str) -> None:
    head = {"sha": "b" * 40, "repo": {"full_name": "octo/app"}}
    result = ran(runner, name, {"action": "opened", "number": 12, "pull_request": {"number": 12, "head": head}})
    assert commented_on(github) == [12]
    assert result.outputs["comment-url"] == github.comments[0]["html_url"]
    assert f"commit {'b' * 40}" in github.bodies()[0]


def test_a_push_comments_on_the_open_pull_request_of_its_commit(runner: Runner, github: GitHub) -> None:
    github.add_pull(3, sha=SHA, state="closed")
    github.add_pull(4, sha=SHA)
    ran(runner, "push", {"ref": "refs/heads/topic", "after": SHA})
    assert commented_on(github) == [4]


def test_a_push_without_an_open_pull_request_says_so(runner: Runner, github: GitHub) -> None:
    github.add_pull(3, sha=SHA, state="closed")
    result = ran(runner, "push", {"ref": "refs/heads/main", "after": SHA})
    assert f"No comment: no open pull request has the commit {SHA[:12]}." in result.log
    assert github.comments == []


def test_a_push_that_deletes_a_branch_is_about_no_commit(runner: Runner, github: GitHub) -> None:
    result = ran(runner, "push", {"ref": "refs/heads/topic", "after": "0" * 40, "deleted": True})
    assert "No comment: the push left no commit." in result.log
    assert github.requests == []


def test_a_merge_group_gets_no_comment(runner: Runner, github: GitHub) -> None:
    result = ran(runner, "merge_group", {"merge_group": {"head_sha": SHA, "head_ref": "refs/heads/queue/pr-7"}})
    assert "No comment: a merge group is checked in the queue" in result.log
    assert github.requests == []


def test_a_run_by_hand_comments_on_the_pull_request_that_it_names(runner: Runner, github: GitHub) -> None:
    ran(runner, "workflow_dispatch", {"inputs": {"pull-request": "9"}}, pull_request="9")
    assert commented_on(github) == [9]


def test_a_run_by_hand_that_names_none_gets_no_comment(runner: Runner, github: GitHub) -> None:
    result = ran(runner, "workflow_dispatch", {"inputs": {}})
    assert "the input pull-request can name one" in result.log
    assert github.requests == []


def test_a_schedule_gets_no_comment(runner: Runner, github: GitHub) -> None:
    result = ran(runner, "schedule", {"schedule": "0 4 * * *"})
    assert "No comment: the event 'schedule' is not about a pull request" in result.log
    assert [one.level for one in result.annotations] == ["error"]
    assert github.requests == []


def test_a_comment_that_is_required_is_not_missed_where_there_is_no_pull_request(runner: Runner) -> None:
    scenarios.passing(runner.workspace)
    event = {"schedule": "0 4 * * *"}
    assert runner.run({"comment-required": "true"}, event=event, name="schedule").exit_code == 0


def workflow_run(sha: str) -> dict[str, Any]:
    head = {"head_sha": sha, "head_branch": "topic", "head_repository": {"full_name": "stranger/app"}}
    return {"workflow_run": {"id": 5, "pull_requests": [], **head}}


def test_a_workflow_run_comments_on_the_pull_request_of_its_head_though_the_event_lists_none(
    runner: Runner, github: GitHub
) -> None:
    github.add_pull(4, sha="c" * 40, head="stranger/app")
    ran(runner, "workflow_run", workflow_run("c" * 40))
    assert commented_on(github) == [4]


def test_a_workflow_run_for_an_older_commit_gets_no_comment(runner: Runner, github: GitHub) -> None:
    github.add_pull(4, sha="d" * 40, head="stranger/app")
    result = ran(runner, "workflow_run", workflow_run("c" * 40))
    assert "as its newest commit (any more)" in result.log
    assert github.comments == []


FORK = {"pull_request": {"number": 7, "head": {"sha": "b" * 40, "repo": {"full_name": "stranger/app", "fork": True}}}}
DEPENDABOT = {
    "pull_request": {"number": 7, "user": {"login": "dependabot[bot]"}},
    "sender": {"login": "dependabot[bot]"},
}


@pytest.mark.parametrize("event", [FORK, DEPENDABOT], ids=["fork", "dependabot"])
@pytest.mark.parametrize("status", [403, 404])
def test_a_token_that_may_not_write_is_a_notice_that_says_where_the_whole_report_is(
    runner: Runner, github: GitHub, event: dict[str, Any], status: int
) -> None:
    if status == 403:
        github.may_write = False
    else:
        github.faults = [Fault(method="POST", path="^/repos", status=404, message="Not Found")]
    result = ran(runner, "pull_request", event, comment_body_file="out/comment.md")
    notices = [one.message for one in result.annotations if one.level == "notice"]
    assert len(notices) == 1
    assert notices[0].startswith(f"The comment could not be posted: GitHub answered {status}: ")
    assert ADVICE in notices[0]
    assert "second workflow" in notices[0]
    assert [one.level for one in result.annotations] == ["error", "notice"]
    report = (runner.workspace / "report.md").read_text()
    assert result.summary == report + "\n"
    assert (runner.workspace / "out/comment.md").read_text() == f"{report}\nChecked 2026-01-02 00:00 UTC\n"
    assert "comment-url" not in result.outputs
    assert len(github.writes()) == 1


def test_a_fork_may_require_no_comment_where_it_holds(runner: Runner, github: GitHub) -> None:
    github.may_write = False
    scenarios.passing(runner.workspace)
    result = runner.run({"comment-required": "true"}, event=FORK)
    assert result.exit_code == 4
    assert result.annotations[-1].message.startswith("The contract holds, but comment-required is true")
    assert result.annotations[-1].level == "error"
    assert result.outputs["verdict"] == "pass"


def test_a_missing_comment_does_not_say_that_a_broken_contract_holds(runner: Runner, github: GitHub) -> None:
    github.may_write = False
    scenarios.failing(runner.workspace)
    result = runner.run({"comment-required": "true", "enforce": "false"}, event=FORK)
    assert result.exit_code == 4
    assert result.annotations[-1].message.startswith("The contract is broken and not enforced, but comment-required")


@pytest.mark.parametrize(("scenario", "code"), [(scenarios.failing, 1), (scenarios.unusable, 2)])
def test_a_missing_comment_hides_no_other_exit_code(runner: Runner, github: GitHub, scenario: Any, code: int) -> None:
    github.may_write = False
    scenario(runner.workspace)
    assert runner.run({"comment-required": "true"}, event=FORK).exit_code == code


def test_a_required_comment_that_is_there_is_no_failure(runner: Runner) -> None:
    scenarios.passing(runner.workspace)
    assert runner.run({"comment-required": "true"}).exit_code == 0


def test_the_body_file_is_there_also_for_input_that_cannot_be_judged(runner: Runner) -> None:
    scenarios.unusable(runner.workspace)
    result = runner.run({"comment-body-file": "body.md", "k": "x"})
    assert result.exit_code == 2
    assert "input k" in (runner.workspace / "body.md").read_text()


def test_a_body_file_that_cannot_be_written_is_reported_before_anything_is(runner: Runner) -> None:
    (runner.workspace / "body.md").mkdir()
    result = runner.run({"comment-body-file": "body.md"})
    assert result.exit_code == 2
    assert "body.md: is a folder" in result.log


def test_both_workflows_together_reach_a_strangers_pull_request(runner: Runner, github: GitHub) -> None:
    github.may_write = False
    ran(runner, "pull_request", FORK)
    assert github.comments == []
    github.may_write = True
    github.add_pull(7, sha="b" * 40, head="stranger/app")
    assert (
        runner.run({"mode": "post-comment"}, event=workflow_run("b" * 40), name="workflow_run", run=101).exit_code == 0
    )
    assert commented_on(github) == [7]
    posted = Page(github.bodies()[0])
    assert posted.tables == Page((runner.workspace / "report.md").read_text()).tables


def test_an_enterprise_servers_pull_request_gets_the_comment(tmp_path: Path) -> None:
    with GitHub(enterprise=True) as github:
        runner = InProcess(tmp_path, github)
        scenarios.failing(runner.workspace)
        assert runner.run().exit_code == 1
        assert runner.run(run=101).exit_code == 1
        assert len(github.comments) == 1
        assert github.requests[1] == "GET /api/v3/repos/octo/app/issues/7/comments?per_page=100"
