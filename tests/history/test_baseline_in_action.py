"""An entry of the history as the baseline of a check in the action."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import scenarios
from tests.builders import golden, run, write_jsonl
from tests.github.standin import Fault, GitHub
from tests.history.action_jobs import (
    BRANCH,
    IN_BRANCH,
    QUERY,
    Job,
    entries,
    is_of_history,
    merge_group,
    messages,
    pull_request,
    push,
    recorded,
    report_of,
)
from tests.needs import require
from tests.runner import InProcess, Result

LAST_PASS = IN_BRANCH | {"baseline": "history:last-pass"}
FORBIDDEN = "Resource not accessible by integration"
LIMIT = "fail_on:\n  mrr_drop_gt: 0.1\nper_query:\n  fail_on: new\n"

DELETED = "its result set was deleted, probably by `rag-contract history prune`"


@pytest.fixture
def runner(tmp_path: Path, github: GitHub) -> InProcess:
    """A contract that holds."""
    require("npm")
    runner = InProcess(tmp_path, github)
    scenarios.passing(runner.workspace)
    return runner


def commits(github: GitHub, number: int, branch: str = "main") -> list[str]:
    """Add commits to a branch, and return them, the oldest first."""
    before = len(github.repository.commits)
    return [github.repository.commit(branch, {"app.py": b"%d" % (before + each)}) for each in range(number)]


def branched(github: GitHub, start: str, branch: str = "topic") -> str:
    """Add a commit on a branch that starts at a commit."""
    github.repository.branches[branch] = start
    return commits(github, 1, branch)[0]


def checked(runner: InProcess, job: Job, baseline: str = "last-pass", **more: Any) -> Result:
    """Check with a limit on a change."""
    (runner.workspace / "ragcontract.yml").write_text(LIMIT)
    return job.run(runner, IN_BRANCH | {"baseline": f"history:{baseline}"}, **({"run": 900} | more))


def entry_of(runner: InProcess, job: Job, baseline: str = "last-pass", **more: Any) -> str:
    """Return the entry that is the baseline of a check."""
    result = checked(runner, job, baseline, **more)
    assert result.exit_code in {0, 1}, result.log
    return str(report_of(runner)["history"]["baseline"]["id"])


def refused(runner: InProcess, job: Job, baseline: str = "last-pass", **more: Any) -> str:
    """Return why a check cannot be judged."""
    before = len(entries(runner.github))
    result = checked(runner, job, baseline, **more)
    assert (result.exit_code, result.outputs["verdict"]) == (2, "error"), result.log
    [problem] = messages(result, "error")
    assert report_of(runner)["problems"] == [problem]
    assert len(entries(runner.github)) == before
    return problem


def test_a_pull_request_is_compared_with_the_newest_pass_of_its_base(runner: InProcess, github: GitHub) -> None:
    first, second, third = commits(github, 3)
    wanted = recorded(runner, first, run=1).outputs["history-entry"]
    recorded(runner, second, scenario=scenarios.failing, run=2)
    merged = github.repository.merge(third, branched(github, first))
    github.add_pull(7, sha="b" * 40)
    github.sent.clear()
    result = checked(runner, pull_request(merged))
    assert (result.exit_code, result.outputs["verdict"]) == (1, "fail")
    report = report_of(runner)
    trend = report["history"].pop("metrics")["mrr_at_5"]
    assert (trend["values"], trend["now"]) == ([1.0, 0.5], 0.5)
    assert report["history"] == {
        "branch": "main",
        "entries": 2,
        "baseline": {"id": wanted, "commit": first, "named": "last-pass", "behind": 2},
        "broken_since": {"sso": {"commit": second, "at": "2026-01-02T00:02:00+00:00"}},
        "failed": trend["ids"][1:],
    }
    assert [file["path"] for file in report["inputs"]["baseline"]["files"]] == [f"history:{wanted}"]
    [gate] = [gate for gate in report["gates"] if gate["status"] == "fail"]
    assert (gate["id"], gate["before"], gate["now"]) == ("fail_on.mrr_drop_gt", 1.0, 0.5)
    compared = (
        f"Compared with `main@{first[:7]}`, recorded today; 2 newer commits of `main` were not recorded or did not pass"
    )
    for shown in (github.bodies()[0], result.summary):
        assert compared in shown
        assert f"broken since `{second[:7]}` on `main`" in shown
    asked = [sent for sent in github.sent if is_of_history(sent)]
    assert len(asked) == 6
    assert len([sent for sent in asked if sent.path.startswith("/repos/octo/app/commits?")]) == 1


@pytest.mark.parametrize("behind", [0, 1, 2])
def test_how_far_the_base_is_ahead_is_counted_from_the_first_parent_of_the_merge(
    runner: InProcess, github: GitHub, behind: int
) -> None:
    first = commits(github, 1)[0]
    recorded(runner, first, run=1)
    topic = branched(github, first)
    topic = commits(github, 3, "topic")[-1]  # commits of the pull request do not count
    tip = [first, *commits(github, behind)][-1]
    assert entry_of(runner, pull_request(github.repository.merge(tip, topic)))
    assert report_of(runner)["history"]["baseline"].get("behind") == behind


def test_of_a_commit_that_is_no_merge_with_the_base_it_is_not_known_how_far_the_base_is_ahead(
    runner: InProcess, github: GitHub
) -> None:
    first = commits(github, 1)[0]
    entry = recorded(runner, first, run=1).outputs["history-entry"]
    assert entry_of(runner, pull_request(branched(github, first))) == entry
    assert "behind" not in report_of(runner)["history"]["baseline"]


def test_a_merge_queue_counts_from_the_commit_that_it_builds_on(runner: InProcess, github: GitHub) -> None:
    first, second = commits(github, 2)
    recorded(runner, first, run=1)
    merged = github.repository.merge(second, branched(github, first))
    assert entry_of(runner, merge_group(merged, base_sha=second))
    assert report_of(runner)["history"]["baseline"]["behind"] == 1


def test_a_push_does_not_count_itself(runner: InProcess, github: GitHub) -> None:
    first, _, third = commits(github, 3)
    recorded(runner, first, run=1)
    assert entry_of(runner, push(third))
    assert report_of(runner)["history"]["baseline"]["behind"] == 1


def test_until_something_is_recorded_a_push_leaves_limits_on_changes_out(runner: InProcess, github: GitHub) -> None:
    first, second = commits(github, 2)
    result = checked(runner, push(first))
    assert (result.exit_code, result.outputs["verdict"]) == (0, "pass")
    left_out = "history: nothing is recorded for 'docs' yet, so 1 limit on changes is left out: fail_on.mrr_drop_gt"
    assert messages(result, "warning") == [left_out]
    assert report_of(runner)["warnings"] == [left_out]
    assert [entry.id for entry in entries(github)] == [result.outputs["history-entry"]]
    scenarios.failing(runner.workspace)
    result = checked(runner, push(second), run=901)
    assert (result.exit_code, messages(result, "warning")) == (1, [])
    assert "fail_on.mrr_drop_gt" in [gate["id"] for gate in report_of(runner)["gates"] if gate["status"] == "fail"]


def test_the_first_run_that_records_can_be_run_again(runner: InProcess, github: GitHub) -> None:
    [first] = commits(github, 1)
    for attempt in (1, 2):
        result = checked(runner, push(first), attempt=attempt)
        assert result.exit_code == 0, result.log
        assert len(messages(result, "warning")) == 1
    assert [entry.source.run_attempt for entry in entries(github)] == [1, 2]


def a_change(github: GitHub, start: str) -> list[Job]:
    merged = github.repository.merge(start, branched(github, start))
    return [pull_request(merged), pull_request(merged, head="ann/app"), merge_group(merged, base_sha=start)]


@pytest.mark.parametrize("which", range(3))
def test_until_something_is_recorded_a_change_cannot_be_judged(runner: InProcess, github: GitHub, which: int) -> None:
    job = a_change(github, commits(github, 1)[0])[which]
    nothing = "history:last-pass: history has no entries of 'docs': record the base branch first"
    assert refused(runner, job) == nothing


def test_a_change_cannot_switch_limits_off_by_another_name_of_the_contract(runner: InProcess, github: GitHub) -> None:
    [first] = commits(github, 1)
    recorded(runner, first, run=1)
    job = a_change(github, first)[0]
    result = job.run(runner, LAST_PASS | {"name": "new"}, run=900)
    assert messages(result, "error") == [
        "history:last-pass: history has no entries of 'new': record the base branch first"
    ]


TOO_LATE = "; the next try would come after the 50 seconds that github-timeout allows"
NOT_KNOWN = "the commits that {sha} reaches are not known: "
UNREADABLE: dict[str, tuple[list[Fault], str]] = {
    "403": (
        [Fault(body=QUERY, status=403, message=FORBIDDEN)],
        f"branch {BRANCH}: GitHub answered 403: {FORBIDDEN}; reading it needs `permissions: contents: read`",
    ),
    "401": (
        [Fault(body=QUERY, status=401, message="Bad credentials")],
        f"branch {BRANCH}: GitHub answered 401: Bad credentials",
    ),
    "a limit on the rate of calls": (
        [Fault(body=QUERY, status=429, message="slow down", headers={"Retry-After": "51"})],
        f"branch {BRANCH}: GitHub answered 429: slow down{TOO_LATE}",
    ),
    "commits that may not be read": (
        [Fault(path="/commits", status=403, message=FORBIDDEN)],
        f"{NOT_KNOWN}GitHub answered 403: {FORBIDDEN}; reading them needs `permissions: contents: read`",
    ),
    "commits that are others": (
        [Fault(path="/commits", status=200, answer=[])],
        f"{NOT_KNOWN}GitHub lists others",
    ),
    "a result set that is not there": (
        [Fault(body="results", status=200, answer={"data": {"repository": {"ref": None, "results": None}}})],
        f"history:{{entry}}: {DELETED}; name another entry, such as history:last",
    ),
}


@pytest.mark.parametrize(("faults", "message"), UNREADABLE.values(), ids=UNREADABLE.keys())
@pytest.mark.parametrize("is_change", [True, False])
def test_a_baseline_that_cannot_be_read_is_input_that_cannot_be_judged(
    runner: InProcess, github: GitHub, faults: list[Fault], message: str, *, is_change: bool
) -> None:
    [first] = commits(github, 1)
    entry = recorded(runner, first, run=1).outputs["history-entry"]
    job = a_change(github, first)[0] if is_change else push(commits(github, 1)[0])
    github.faults = faults
    assert refused(runner, job) == message.format(sha=job.sha[:12], entry=entry)


def test_without_a_token_a_baseline_cannot_be_read(runner: InProcess, github: GitHub) -> None:
    [first] = commits(github, 1)
    recorded(runner, first, run=1)
    result = push(first).run(runner, LAST_PASS | {"github-token": ""}, run=900)
    assert (result.exit_code, messages(result, "error")) == (2, ["history: there is no github-token"])


def test_an_unexpected_fault_with_a_baseline_is_no_pass(
    runner: InProcess, github: GitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise KeyError("months")

    [first] = commits(github, 1)
    recorded(runner, first, run=1)
    monkeypatch.setattr("ragcontract.history.branch.Branch.months", broken)
    with pytest.raises(KeyError):
        checked(runner, push(first))
    assert report_of(runner)["verdict"] == "error"


@pytest.mark.parametrize(("since", "counts"), [(299, True), (300, False)])
def test_the_last_300_commits_are_asked_for_with_3_calls(
    runner: InProcess, github: GitHub, since: int, *, counts: bool
) -> None:
    first = commits(github, 1)[0]
    entry = recorded(runner, first, run=1).outputs["history-entry"]
    tip = commits(github, since)[-1]
    github.requests.clear()
    if counts:
        assert entry_of(runner, push(tip)) == entry
        assert report_of(runner)["history"]["baseline"]["behind"] == 298
    else:
        assert refused(runner, push(tip)) == (
            f"history:last-pass: no entry of 'docs' is on main among the last 300 commits of {tip[:7]}; "
            f"the newest is {entry} (main@{first[:7]})"
        )
    pages = [request for request in github.requests if "/commits?" in request]
    assert len(pages) == 3


def test_entries_of_commits_that_a_force_push_removed_do_not_count(runner: InProcess, github: GitHub) -> None:
    first, second = commits(github, 2)
    wanted = recorded(runner, first, run=1).outputs["history-entry"]
    recorded(runner, second, run=2)
    github.repository.branches["main"] = first
    third = commits(github, 1)[0]
    assert entry_of(runner, push(third)) == wanted
    assert entry_of(runner, a_change(github, third)[0]) == wanted


def test_a_nightly_run_is_compared_with_the_push_at_the_same_commit(runner: InProcess, github: GitHub) -> None:
    [first] = commits(github, 1)
    wanted = recorded(runner, first, run=1).outputs["history-entry"]
    nightly = Job(name="schedule", event={"schedule": "0 4 * * *"}, sha=first)
    assert entry_of(runner, nightly) == wanted
    assert report_of(runner)["history"]["baseline"]["behind"] == 0
    assert entry_of(runner, push(commits(github, 1)[0]), run=901) == entries(github)[-2].id


def test_a_second_attempt_is_not_compared_with_the_first(runner: InProcess, github: GitHub) -> None:
    first, second = commits(github, 2)
    wanted = recorded(runner, first, run=1).outputs["history-entry"]
    assert entry_of(runner, push(second), attempt=1) == wanted
    assert entry_of(runner, push(second), attempt=2) == wanted


def accepted(runner: InProcess, sha: str) -> None:
    """Record a broken contract that a label accepts."""
    github = runner.github
    github.add_pull(7, sha="0" * 40)
    github.push(sha, at="2026-01-01T10:01:00Z")
    github.set_label("accepted", at="2026-01-01T10:02:00Z")
    scenarios.failing(runner.workspace)
    assert push(sha).run(runner, IN_BRANCH | {"accept-label": "accepted"}, run=2).exit_code == 0
    assert entries(github)[-1].accepted or entries(github)[0].accepted


def on_another_branch(runner: InProcess, sha: str) -> None:
    """Record a pass of a branch at the same commit."""
    push(sha, branch="release").run(runner, IN_BRANCH | {"history-record": "any-branch"}, run=2)


def of_another_contract(runner: InProcess, sha: str) -> None:
    """Record a pass of another contract."""
    push(sha).run(runner, IN_BRANCH | {"name": "tickets"}, run=2)


def that_failed(runner: InProcess, sha: str) -> None:
    """Record a check that failed."""
    recorded(runner, sha, scenario=scenarios.failing, run=2)


@pytest.mark.parametrize("other", [accepted, on_another_branch, of_another_contract, that_failed])
def test_an_entry_that_is_newer_does_not_count(
    runner: InProcess, github: GitHub, other: Callable[[InProcess, str], None]
) -> None:
    first, second, third = commits(github, 3)
    wanted = recorded(runner, first, run=1).outputs["history-entry"]
    other(runner, second)
    assert len(entries(github)) == 2
    scenarios.passing(runner.workspace)
    assert entry_of(runner, push(third)) == wanted


def test_a_baseline_is_named_by_its_commit_or_its_id_or_as_the_last(runner: InProcess, github: GitHub) -> None:
    first, second, third = commits(github, 3)
    ids = [recorded(runner, first, run=1).outputs["history-entry"]]
    ids += [recorded(runner, second, scenario=scenarios.failing, run=2).outputs["history-entry"]]
    job = push(third)
    assert entry_of(runner, job, "last", run=901) == ids[1]
    assert entry_of(runner, job, second[:7], run=902) == ids[1]
    assert entry_of(runner, job, first, run=903) == ids[0]
    assert entry_of(runner, job, ids[0], run=904) == ids[0]
    assert refused(runner, job, "newest").startswith(
        "history:newest: is not the name of an entry; use history:last-pass, "
    )
    assert refused(runner, job, "0000000").startswith("history:0000000: none of the 6 entries of 'docs' ")


def test_without_a_history_an_entry_cannot_be_the_baseline(runner: InProcess) -> None:
    result = push().run(runner, {"baseline": "history:last-pass"})
    assert (result.exit_code, messages(result, "error")) == (
        2,
        ["baseline: history:last-pass: is an entry of a history; set the input history"],
    )


@pytest.mark.parametrize("job", [Job(ref="refs/tags/v1"), Job(name="pull_request_target")])
def test_an_event_without_a_branch_has_no_baseline_in_the_history(runner: InProcess, job: Job) -> None:
    assert refused(runner, job) == (
        f"history:last-pass: the event {job.name} does not name a branch whose history could be read"
    )


def test_an_entry_beside_a_file_is_refused(runner: InProcess) -> None:
    result = push().run(runner, IN_BRANCH | {"baseline": "history:last-pass\nbaseline.json"})
    assert result.exit_code == 2
    assert messages(result, "error") == ["baseline: history:last-pass is a baseline by itself; name no other beside it"]


def test_an_entry_takes_the_place_of_the_baseline_file_that_is_there(runner: InProcess, github: GitHub) -> None:
    (runner.workspace / "baseline.json").write_text("no JSON")
    first, second = commits(github, 2)
    scenarios.passing(runner.workspace)
    assert checked(runner, push(first)).exit_code == 0
    assert entry_of(runner, push(second), run=901) == entries(github)[0].id


def test_queries_that_are_broken_for_longer_say_since_when_in_the_comment(runner: InProcess, github: GitHub) -> None:
    shas = commits(github, 3)
    for number, sha in enumerate(shas):
        recorded(runner, sha, scenario=scenarios.failing, run=number + 1)
    github.add_pull(7, sha="b" * 40)
    a_change(github, shas[-1])[0].run(runner, run=900)
    assert f"broken on `main` since `{shas[0][:7]}` or earlier" in github.bodies()[0]


def test_a_stored_question_and_what_it_found_are_the_baseline(runner: InProcess, github: GitHub) -> None:
    """The entry has the ranks of the run, so a document that slipped is seen by its rank."""
    write_jsonl(runner.workspace / "golden.jsonl", [golden("refunds", "doc1")])
    write_jsonl(runner.workspace / "current_run.jsonl", [run("refunds", "doc1", "doc2")])
    first, second = commits(github, 2)
    assert checked(runner, push(first)).exit_code == 0
    write_jsonl(runner.workspace / "current_run.jsonl", [run("refunds", "doc2", "doc1")])
    result = checked(runner, push(second), run=901)
    assert result.exit_code == 1
    [gate] = [gate for gate in report_of(runner)["gates"] if gate["status"] == "fail"]
    assert (gate["id"], gate["before"], gate["now"]) == ("fail_on.mrr_drop_gt", 1.0, 0.5)
