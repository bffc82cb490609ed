"""Which events read a history in the action, and which record: what GitHub was asked, and what the branch has then."""

from pathlib import Path
from typing import Any

import pytest

from tests import scenarios
from tests.github.standin import GitHub
from tests.history.action_jobs import (
    APP,
    BRANCH,
    IN_BRANCH,
    Job,
    entries,
    is_of_history,
    merge_group,
    messages,
    notes_of,
    pull_request,
    push,
    recorded,
    report_of,
    writes,
)
from tests.needs import require
from tests.runner import PULL_REQUEST, SHA, InProcess

ANY = {"history-record": "any-branch"}
NEVER = {"history-record": "never"}


@pytest.fixture
def runner(tmp_path: Path, github: GitHub) -> InProcess:
    """A contract that holds; the main branch has one entry, the branch release two."""
    require("npm")
    runner = InProcess(tmp_path, github)
    recorded(runner, run=1)
    for run in (2, 3):
        scenarios.passing(runner.workspace)
        push(branch="release").run(runner, IN_BRANCH | ANY, run=run)
    assert [entry.source.branch for entry in entries(github)] == ["main", "release", "release"]
    github.sent.clear()
    return runner


SCHEDULE = Job(name="schedule", event={"schedule": "0 4 * * *"})
DISPATCH = Job(name="workflow_dispatch")
DEPENDABOT = pull_request()
TAG = Job(ref="refs/tags/v1")

# By name: the job, its inputs, the branch whose entries it reads with their number, and whether it records.
TABLE: dict[str, tuple[Job, dict[str, str], tuple[str, int] | None, bool]] = {
    "push to main": (push(), {}, ("main", 1), True),
    "push to main, any-branch": (push(), ANY, ("main", 1), True),
    "push to main, never": (push(), NEVER, ("main", 1), False),
    "schedule": (SCHEDULE, {}, ("main", 1), True),
    "schedule whose event names the repository": (Job(name="schedule"), {}, ("main", 1), True),
    "schedule, never": (SCHEDULE, NEVER, ("main", 1), False),
    "workflow_dispatch": (DISPATCH, {}, ("main", 1), True),
    "workflow_dispatch on another branch": (
        Job(name="workflow_dispatch", ref="refs/heads/release"),
        {},
        ("main", 1),
        False,
    ),
    "workflow_dispatch on a tag": (Job(name="workflow_dispatch", ref="refs/tags/v1"), ANY, None, False),
    "push to release": (push(branch="release"), {}, ("main", 1), False),
    "push to release, any-branch": (push(branch="release"), ANY, ("main", 1), True),
    "push to a branch named as a path": (push(branch="refs/heads/main"), {}, ("main", 1), False),
    "push of a tag": (TAG, {}, None, False),
    "push of a tag, any-branch": (TAG, ANY, None, False),
    "push whose event is not known": (Job(event={}), {}, None, False),
    "pull request": (pull_request(), {}, ("main", 1), False),
    "pull request, any-branch": (pull_request(), ANY, ("main", 1), False),
    "pull request of a fork": (pull_request(head="ann/app"), ANY, ("main", 1), False),
    "pull request into release": (pull_request(base="release"), {}, ("release", 2), False),
    "pull request whose base is not known": (Job(name="pull_request", event=PULL_REQUEST), ANY, None, False),
    "merge queue": (merge_group(), ANY, ("main", 1), False),
    "merge queue of release": (merge_group(base="release"), ANY, ("release", 2), False),
    "pull_request_target": (pull_request(name="pull_request_target"), ANY, None, False),
    "workflow_run": (Job(name="workflow_run", event=APP | {"workflow_run": {}}), ANY, None, False),
    "release": (Job(name="release", ref="refs/tags/v1"), ANY, None, False),
    "repository_dispatch": (Job(name="repository_dispatch"), ANY, None, False),
}


@pytest.mark.parametrize(("job", "inputs", "read", "records"), TABLE.values(), ids=TABLE.keys())
def test_an_event_reads_the_entries_of_its_branch_and_records_or_not(
    runner: InProcess, job: Job, inputs: dict[str, str], read: tuple[str, int] | None, *, records: bool
) -> None:
    github = runner.github
    head = github.repository.branches[BRANCH]
    result = job.run(runner, IN_BRANCH | inputs)
    assert (result.exit_code, result.outputs["verdict"]) == (0, "pass"), result.log
    history = report_of(runner).get("history")
    assert (history and (history["branch"], history["entries"])) == read
    assert bool([sent for sent in github.sent if is_of_history(sent)]) == bool(read)
    assert bool([sent for sent in github.sent if writes(sent)]) == records
    assert (github.repository.branches[BRANCH] != head) == records
    assert len(entries(github)) == 3 + records
    assert ("history-entry" in result.outputs) == records
    assert not messages(result, "warning")


@pytest.mark.parametrize("job", [pull_request(head="ann/app"), DEPENDABOT, merge_group()])
def test_a_token_that_may_only_read_is_enough_for_what_records_nothing(runner: InProcess, job: Job) -> None:
    github = runner.github
    github.repository.access, github.may_write = "read", False
    result = job.run(runner)
    assert result.exit_code == 0
    assert notes_of(runner) == []
    assert report_of(runner)["history"]["entries"] == 1


def test_an_entry_says_where_and_by_what_event_its_check_ran(runner: InProcess, github: GitHub) -> None:
    runner.workspace.joinpath("ragcontract.yml").write_text("k: 5\n")
    sha = github.repository.commit("main", {"app.py": b""})
    result = Job(name="schedule", event={"schedule": "0 4 * * *"}, sha=sha).run(runner, run=400, attempt=2)
    [entry] = [entry for entry in entries(github) if entry.source.commit == sha]
    assert result.outputs["history-entry"] == entry.id == f"20260102T000100Z-{sha[:12]}-400-2"
    assert entry.contract == "docs"
    source: dict[str, Any] = {name: getattr(entry.source, name) for name in entry.source.__struct_fields__}
    assert source == {
        "repository": "octo/app",
        "commit": sha,
        "branch": "main",
        "pull_request": None,
        "run_url": "https://github.com/octo/app/actions/runs/400",
        "contract": "docs",
        "event": "schedule",
        "run_id": 400,
        "run_attempt": 2,
        "dirty": False,
    }
    recorded_line = f"Recorded: entries/docs/2026-01/{entry.id}.json in branch {BRANCH}"
    assert result.log.splitlines()[-1] == recorded_line
    assert github.repository.history(BRANCH)[-1].message == f"Record docs {sha[:7]} pass [skip ci]"


def test_a_check_that_fails_is_recorded_and_one_without_a_verdict_is_not(runner: InProcess, github: GitHub) -> None:
    scenarios.failing(runner.workspace)
    assert push().run(runner, run=10).exit_code == 1
    assert push().run(runner, IN_BRANCH | {"enforce": "false"}, run=11).exit_code == 0
    scenarios.unusable(runner.workspace)
    result = push().run(runner, run=12)
    assert result.exit_code == 2
    assert "history-entry" not in result.outputs
    [before, failed, not_enforced] = [entry for entry in entries(github) if entry.source.branch == "main"]
    assert before.verdict == "pass"
    assert [failed.verdict, not_enforced.verdict] == ["fail", "fail"]
    assert (failed.failed, failed.accepted) == (["sso"], False)


def test_a_check_of_one_tag_reads_and_is_not_recorded(runner: InProcess, github: GitHub) -> None:
    golden = runner.workspace / "golden.jsonl"
    golden.write_text(golden.read_text().replace('"query"', '"tags": ["smoke"], "query"', 1))
    result = push().run(runner, IN_BRANCH | {"tag": "smoke"}, run=10)
    assert result.exit_code == 0
    assert (
        "Not recorded: the check covers only part of the contract (--tag smoke); only whole checks are recorded.\n"
        in result.log
    )
    assert not messages(result, "warning")
    assert len(entries(github)) == 3
    assert report_of(runner)["history"]["entries"] == 1


def test_posting_a_comment_asks_for_no_history_and_shows_that_of_the_report(runner: InProcess, github: GitHub) -> None:
    recorded(runner, run=10, scenario=scenarios.failing)
    pull_request().run(runner, IN_BRANCH | {"comment": "never"})
    github.add_pull(7, sha="b" * 40)
    run = {"head_repository": {"full_name": "octo/app"}, "head_branch": "topic", "head_sha": "b" * 40}
    github.sent.clear()
    posting = Job(name="workflow_run", event=APP | {"workflow_run": run})
    result = posting.run(runner, IN_BRANCH | ANY | {"mode": "post-comment"})
    assert result.exit_code == 0, result.log
    assert f"broken since `{SHA[:7]}` on `main`" in github.bodies()[0]
    assert not [sent for sent in github.sent if is_of_history(sent)]
    assert len(entries(github)) == 4


@pytest.mark.parametrize("job", [push(), SCHEDULE, pull_request(), merge_group()])
def test_without_the_input_nothing_is_asked_written_or_said(runner: InProcess, job: Job) -> None:
    github = runner.github
    before = dict(github.repository.branches)
    result = job.run(runner, {"name": "docs"})
    assert result.exit_code == 0
    assert not [sent for sent in github.sent if is_of_history(sent)]
    assert github.repository.branches == before
    assert "history" not in report_of(runner)
    assert "history-entry" not in result.outputs
    assert "Trend" not in result.log
    assert "ecorded" not in result.log
