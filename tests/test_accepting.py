"""A broken contract that a label on the pull request accepts: what is shown, and which labels count."""

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import junitparser
import pytest
import requests

from ragcontract import action
from ragcontract.github.delivery import World
from tests import scenarios
from tests.builders import write_jsonl
from tests.github.relayed import failing
from tests.github.standin import ACTIONS_BOT, TOKEN, Fault, GitHub, Sent
from tests.runner import InProcess, Result, Runner

LABEL = "retrieval: accepted"
INPUTS = {"accept-label": LABEL}
OLD, HEAD = "a" * 40, "b" * 40
T0, T1, T2, T3 = (f"2026-01-01T10:0{minute}:00Z" for minute in range(4))
NOTICE = f"Accepted by label '{LABEL}', by @ann at 2026-01-01 10:02 UTC. The verdict stays fail; the job does not fail."
AGAIN = "Remove the label and set it again."


@pytest.fixture
def runner(tmp_path: Path, github: GitHub) -> Runner:
    """A broken contract of a pull request whose newest commit was pushed a minute ago."""
    github.add_pull(7, sha=OLD)
    github.push(HEAD, at=T1)
    runner = InProcess(tmp_path, github)
    scenarios.failing(runner.workspace)
    return runner


class Noting(InProcess):
    """Notes the exit codes that would stand if the process died."""

    def __init__(self, folder: Path, github: GitHub) -> None:
        super().__init__(folder, github)
        self.codes: list[int] = []

    def _execute(self, environ: dict[str, str]) -> tuple[int, str]:
        log = io.StringIO()
        world = World(stdout=log, clock=self.clock, session=requests.Session, timing=self.timing)
        with contextlib.chdir(self.workspace):
            return action.main(environ, world, self.codes.append), log.getvalue()


def event(sha: str = HEAD, action: str = "labeled") -> dict[str, Any]:
    return {"action": action, "number": 7, "pull_request": {"number": 7, "head": {"sha": sha}}}


def ran(runner: Runner, inputs: dict[str, str] = INPUTS, **more: Any) -> Result:
    return runner.run(inputs, **({"event": event()} | more))


def refused(runner: Runner, reason: str, **more: Any) -> Result:
    """Run, and see that the label does not count: the job fails as it does without one, and says why."""
    result = ran(runner, **more)
    assert result.exit_code == 1, result.log
    assert result.outputs["verdict"] == "fail"
    assert "accepted-by" not in result.outputs
    (warning,) = [one.message for one in result.annotations if one.level == "warning"]
    assert warning.startswith(f"The label '{LABEL}' does not count: "), warning
    assert reason in warning
    assert "error" in {one.level for one in result.annotations}
    assert result.summary.startswith("### ❌ 1 of 2 queries broken\n\nThe label `")
    assert "☑️" not in result.summary
    return result


def test_a_label_that_a_person_has_set_after_the_newest_push_lets_the_job_pass(runner: Runner, github: GitHub) -> None:
    github.set_label(LABEL, at=T2)
    result = ran(runner)
    assert result.exit_code == 0
    assert [(one.level, one.message) for one in result.annotations if one.level != "warning"] == [("notice", NOTICE)]
    assert result.outputs["accepted-by"] == "ann"
    for shown in (result.summary, github.bodies()[0]):
        assert "### ☑️ Accepted by label: 1 of 2 queries broken\n" in shown
        assert f"\n\nAccepted by label `{LABEL}`, by `@ann` at 2026-01-01 10:02 UTC. The verdict stays fail" in shown
        assert "❌ Retrieval" not in shown


def test_the_verdict_stays_fail_in_the_output_and_in_all_reports(runner: Runner, github: GitHub) -> None:
    without = {name: (ran(runner), (runner.workspace / name).read_text())[1] for name in ("report.md", "junit.xml")}
    github.set_label(LABEL, at=T2)
    result = ran(runner)
    assert result.outputs["verdict"] == "fail"
    assert result.outputs["failed-queries"] == "1"
    assert json.loads((runner.workspace / "report.json").read_text())["verdict"] == "fail"
    assert junitparser.JUnitXml.fromfile(str(runner.workspace / "junit.xml")).failures == 1
    assert {name: (runner.workspace / name).read_text() for name in without} == without


def test_what_is_broken_is_still_annotated_as_a_warning(runner: Runner, github: GitHub) -> None:
    github.set_label(LABEL, at=T2)
    (warning,) = [one for one in ran(runner).annotations if one.level == "warning"]
    assert (warning.file, warning.line, warning.title) == ("golden.jsonl", "2", "Broken query sso")


def test_without_the_input_nobody_is_asked_and_a_label_does_nothing(runner: Runner, github: GitHub) -> None:
    github.set_label(LABEL, at=T2)
    assert ran(runner, {"comment": "never"}).exit_code == 1
    assert github.requests == []


def test_a_pull_request_without_the_label_fails_without_a_word_about_it(runner: Runner, github: GitHub) -> None:
    github.set_label("retrieval", at=T2)
    result = ran(runner)
    assert result.exit_code == 1
    assert "label" not in result.log + result.summary


@pytest.mark.parametrize("scenario", [scenarios.passing, scenarios.failing])
def test_a_contract_that_holds_or_is_not_enforced_asks_for_no_label(
    runner: Runner, github: GitHub, scenario: Any
) -> None:
    scenario(runner.workspace)
    enforce = "true" if scenario is scenarios.passing else "false"
    assert ran(runner, INPUTS | {"enforce": enforce, "comment": "never"}).exit_code == 0
    assert github.requests == []


def test_input_that_cannot_be_judged_is_never_accepted(runner: Runner, github: GitHub) -> None:
    scenarios.unusable(runner.workspace)
    github.set_label(LABEL, at=T2)
    result = ran(runner, INPUTS | {"comment": "never"})
    assert result.exit_code == 2
    assert github.requests == []


def test_a_label_is_the_same_in_upper_and_lower_case_as_on_github(runner: Runner, github: GitHub) -> None:
    github.set_label(LABEL.upper(), at=T2)
    assert ran(runner).exit_code == 0


def test_the_author_of_the_pull_request_may_set_it_too(runner: Runner, github: GitHub) -> None:
    github.pulls[0]["user"] = {"login": "ann"}
    github.set_label(LABEL, at=T2, by="ann")
    assert ran(runner).exit_code == 0


def test_a_label_set_before_the_newest_push_does_not_count(runner: Runner, github: GitHub) -> None:
    github.set_label(LABEL, at=T0)
    refused(runner, f"it was set before the newest push. {AGAIN}")


def test_a_label_set_in_the_second_of_the_newest_push_does_not_count(runner: Runner, github: GitHub) -> None:
    github.set_label(LABEL, at=T1)
    refused(runner, "it was set before the newest push")


def test_a_label_that_was_removed_and_set_again_after_the_push_counts(runner: Runner, github: GitHub) -> None:
    github.set_label(LABEL, at=T0, by="bob")
    github.remove_label(LABEL, at=T2)
    github.set_label(LABEL, at=T3, by="ann")
    assert ran(runner).outputs["accepted-by"] == "ann"


def test_a_managed_user_with_an_underscore_in_the_login_is_a_person(runner: Runner, github: GitHub) -> None:
    github.set_label(LABEL, at=T2, by="ann-b_octo")
    assert ran(runner).outputs["accepted-by"] == "ann-b_octo"


def test_an_enterprise_server_is_asked_at_its_own_address(tmp_path: Path) -> None:
    with GitHub(enterprise=True) as github:
        github.add_pull(7, sha=OLD)
        github.push(HEAD, at=T1)
        github.set_label(LABEL, at=T2)
        runner = InProcess(tmp_path, github)
        scenarios.failing(runner.workspace)
        assert ran(runner).exit_code == 0
        asked = [request for request in github.requests if request.startswith("GET /api/v3/repos/octo/app/activity?")]
        assert len(asked) == 1


def test_the_label_is_found_behind_hundreds_of_other_events(runner: Runner, github: GitHub) -> None:
    for number in range(250):
        github.set_label(f"label {number}", at=T0)
    github.set_label(LABEL, at=T2)
    assert ran(runner).exit_code == 0


def test_a_label_that_was_removed_again_does_nothing(runner: Runner, github: GitHub) -> None:
    github.set_label(LABEL, at=T2)
    github.remove_label(LABEL, at=T3)
    assert ran(runner).exit_code == 1


def test_a_label_that_is_removed_while_github_is_asked_does_not_count(runner: Runner, github: GitHub) -> None:
    def remove(sent: Sent) -> None:
        if "/events" in sent.path:
            github.remove_label(LABEL, at=T3)

    github.set_label(LABEL, at=T2)
    github.meanwhile = remove
    refused(runner, "GitHub does not say who set it")


def test_who_set_it_last_is_who_accepts(runner: Runner, github: GitHub) -> None:
    github.set_label(LABEL, at=T2, by="ann")
    github.remove_label(LABEL, at=T3)
    github.set_label(LABEL, at=T3, by=ACTIONS_BOT)
    refused(runner, "a bot or an app set it")


@pytest.mark.parametrize("sha", [HEAD, OLD])
def test_returning_to_an_accepted_commit_by_force_needs_a_new_label(runner: Runner, github: GitHub, sha: str) -> None:
    github.set_label(LABEL, at=T2)
    github.push("c" * 40, at="2026-01-01T10:02:30Z")
    github.push(sha, at=T3, activity="force_push")
    refused(runner, "it was set before the newest push", event=event(sha))


@pytest.mark.parametrize("automatic", [False, True])
def test_a_label_for_a_merge_into_another_base_branch_does_not_count(
    runner: Runner, github: GitHub, *, automatic: bool
) -> None:
    github.set_label(LABEL, at=T2)
    github.change_base("release", at=T3, automatic=automatic)
    refused(runner, "it was set before the pull request got another base branch")
    github.remove_label(LABEL, at="2026-01-01T10:04:00Z")
    github.set_label(LABEL, at="2026-01-01T10:04:01Z")
    assert ran(runner).exit_code == 0


def test_a_list_of_pushes_that_lags_behind_a_forced_one_accepts_nothing(runner: Runner, github: GitHub) -> None:
    github.set_label(LABEL, at=T2)
    github.push("c" * 40, at="2026-01-01T10:02:30Z")
    github.push(HEAD, at=T3, activity="force_push")
    github.activities["octo/app"] = github.activities["octo/app"][2:]
    refused(runner, "it was set before the newest push")


def test_a_push_that_github_does_not_list_yet_accepts_nothing(runner: Runner, github: GitHub) -> None:
    github.set_label(LABEL, at=T2)
    github.push("c" * 40, at=T3)
    github.activities["octo/app"].pop(0)
    refused(runner, f"GitHub does not list the push of the commit {'c' * 12} as the newest", event=event("c" * 40))


def test_the_dates_of_commits_and_pushes_to_other_branches_play_no_part(runner: Runner, github: GitHub) -> None:
    github.set_label(LABEL, at=T2)
    github.add_pull(8, sha=OLD, branch="other")
    github.push("c" * 40, at=T3, number=8)
    assert ran(runner).exit_code == 0


def test_the_label_counts_only_for_the_commit_that_was_judged(runner: Runner, github: GitHub) -> None:
    github.set_label(LABEL, at=T2)
    refused(runner, f"the judged commit {'a' * 12} is not the newest one of the pull request", event=event(OLD))


@pytest.mark.parametrize("action", ["opened", "synchronize", "labeled", "unlabeled"])
def test_what_the_event_says_of_the_label_is_not_believed(runner: Runner, github: GitHub, action: str) -> None:
    claimed = event(action=action) | {"label": {"name": LABEL}, "sender": {"login": "ann", "type": "User"}}
    claimed["pull_request"]["labels"] = [{"name": LABEL}]
    assert ran(runner, event=claimed).exit_code == 1
    github.set_label(LABEL, at=T2)
    assert ran(runner, event=event(action=action)).exit_code == 0


@pytest.mark.parametrize(
    "who",
    [
        {"by": ACTIONS_BOT},
        {"by": "Copilot", "type": "Bot"},
        {"by": "octo", "type": "Organization"},
        {"by": "x[bot]", "type": "User"},
        {"by": "ann b", "type": "User"},
        {"by": "", "type": "User"},
    ],
    ids=str,
)
def test_a_label_that_no_person_has_set_does_not_count(runner: Runner, github: GitHub, who: dict[str, str]) -> None:
    github.set_label(LABEL, at=T2, by=who["by"])
    if "type" in who:
        github.events[-1]["actor"]["type"] = who["type"]
    refused(runner, "set it. A person has to remove the label and set it again.")


def test_a_label_that_an_app_has_set_for_a_person_does_not_count(runner: Runner, github: GitHub) -> None:
    github.set_label(LABEL, at=T2)
    events = [github.events[-1] | {"performed_via_github_app": {"id": 1, "slug": "merger"}}]
    github.faults = [Fault(path="/events", status=200, answer=events)]
    refused(runner, "a bot or an app set it")


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ([], "GitHub does not say who set it"),
        ([None, "x", {"event": "labeled"}, {"event": "labeled", "label": LABEL}], "GitHub does not say who set it"),
        ([{"event": "labeled", "label": {"name": LABEL}}], "a time that cannot be read ('')"),
        (
            [{"event": "labeled", "label": {"name": LABEL}, "created_at": "0001-01-01T00:00:00+2359"}],
            "a time that cannot be read ('0001-01-01T00:00:00+2359')",
        ),
        ([{"event": "labeled", "label": {"name": LABEL}, "created_at": T2}], "no person set it"),
        ([{"event": "labeled", "label": {"name": LABEL}, "created_at": T2, "actor": None}], "no person set it"),
    ],
)
def test_events_that_do_not_say_who_set_it_accept_nothing(
    runner: Runner, github: GitHub, events: list[Any], reason: str
) -> None:
    github.set_label(LABEL, at=T2)
    github.faults = [Fault(path="/events", status=200, answer=events)]
    refused(runner, reason)


@pytest.mark.parametrize(
    ("activities", "reason"),
    [
        ([], "GitHub does not list the push"),
        ([None, {"ref": "refs/heads/main", "after": HEAD, "timestamp": T1}], "GitHub does not list the push"),
        ([{"ref": "refs/heads/topic", "after": HEAD}], "a time that cannot be read ('')"),
        ([{"ref": "refs/heads/topic", "after": OLD, "timestamp": T1}], "GitHub does not list the push"),
    ],
)
def test_activities_that_do_not_say_when_it_was_pushed_accept_nothing(
    runner: Runner, github: GitHub, activities: list[Any], reason: str
) -> None:
    github.set_label(LABEL, at=T2)
    github.faults = [Fault(path="/activity", status=200, answer=activities)]
    refused(runner, reason)


@pytest.mark.parametrize("repo", [None, {}, {"full_name": "../.."}, {"full_name": "octo/.."}, {"full_name": "a/b/c"}])
def test_a_branch_whose_repository_is_gone_accepts_nothing(runner: Runner, github: GitHub, repo: Any) -> None:
    github.set_label(LABEL, at=T2)
    github.pulls[0]["head"]["repo"] = repo
    refused(runner, "the repository of the pull request's branch cannot be read")


PULLS = "The job needs `permissions: pull-requests: read`."
CONTENTS = "The job needs `permissions: contents: read`"


@pytest.mark.parametrize("status", [403, 404])
@pytest.mark.parametrize(("path", "permission"), [("/pulls/7", PULLS), ("/events", PULLS), ("/activity", CONTENTS)])
def test_a_label_that_the_token_may_not_read_does_not_count_and_the_permission_is_named(
    runner: Runner, github: GitHub, path: str, permission: str, status: int
) -> None:
    github.set_label(LABEL, at=T2)
    github.faults = [Fault(method="GET", path=path, status=status, message="Resource not accessible by integration")]
    refused(runner, permission)


@pytest.mark.parametrize("kind", ["drop", "not json", "hang", "drip"])
@pytest.mark.parametrize("path", ["/pulls/7", "/events", "/activity"])
def test_a_label_that_cannot_be_read_does_not_count(runner: Runner, github: GitHub, path: str, kind: Any) -> None:
    github.set_label(LABEL, at=T2)
    github.faults = [Fault(method="GET", path=path, kind=kind)]
    refused(runner, "it could not be read", inputs=INPUTS | {"comment": "never", "github-timeout": "2"})


@pytest.mark.parametrize("fault", [{"kind": "hang"}, {"status": 503}])
def test_waiting_for_the_label_leaves_time_for_the_comment(
    runner: Runner, github: GitHub, fault: dict[str, Any]
) -> None:
    github.set_label(LABEL, at=T2)
    busy = Fault(method="GET", path="/comments", times=1, status=503, headers={"Retry-After": "1"})
    github.faults = [Fault(method="GET", path="/events", **fault), busy]
    refused(runner, "it could not be read", inputs=INPUTS | {"github-timeout": "4"})
    assert "### ❌" in github.bodies()[0]


def test_the_comment_gets_only_the_time_that_asking_for_the_label_has_left(runner: Runner, github: GitHub) -> None:
    github.set_label(LABEL, at=T2)
    github.faults = [
        Fault(method="GET", path="/events", times=2, status=503, headers={"Retry-After": "4"}),
        Fault(method="POST", path="/comments", status=503, headers={"Retry-After": "13"}),
    ]
    result = ran(runner, INPUTS | {"github-timeout": "20"})
    assert result.exit_code == 0
    assert "the next try would come after the 12 seconds that github-timeout allows" in result.log


def test_a_check_that_dies_while_it_asks_for_the_label_has_failed(tmp_path: Path, github: GitHub) -> None:
    github.add_pull(7, sha=OLD)
    github.push(HEAD, at=T1)
    github.set_label(LABEL, at=T2)
    runner = Noting(tmp_path, github)
    scenarios.failing(runner.workspace)
    noted: list[list[int]] = []
    github.meanwhile = lambda _sent: noted.append(list(runner.codes))
    assert ran(runner).exit_code == 0
    assert noted[0] == [1]
    assert runner.codes == [1, 0]


def test_without_a_token_the_label_does_not_count(runner: Runner, github: GitHub) -> None:
    github.set_label(LABEL, at=T2)
    inputs = INPUTS | {"github-token": "", "comment": "never"}
    refused(runner, "it could not be read: there is no github-token", inputs=inputs)
    assert github.requests == []


def test_a_merge_queue_has_no_label_and_says_so(runner: Runner, github: GitHub) -> None:
    github.set_label(LABEL, at=T2)
    group = {"merge_group": {"head_sha": HEAD, "head_ref": f"refs/heads/gh-readonly-queue/main/pr-7-{OLD}"}}
    refused(
        runner, "a merge queue judges a commit of its own, which nobody has labelled", event=group, name="merge_group"
    )
    assert github.requests == []


def test_outside_of_a_pull_request_nothing_is_said_about_labels(runner: Runner) -> None:
    result = ran(runner, event={"schedule": "0 4 * * *"}, name="schedule")
    assert result.exit_code == 1
    assert "label" not in result.log


def test_a_push_is_accepted_by_the_label_on_its_open_pull_request(runner: Runner, github: GitHub) -> None:
    github.set_label(LABEL, at=T2)
    assert ran(runner, event={"ref": "refs/heads/topic", "after": HEAD}, name="push").exit_code == 0


def test_a_run_by_hand_is_accepted_only_if_it_judged_the_named_pull_requests_commit(
    runner: Runner, github: GitHub
) -> None:
    github.set_label(LABEL, at=T2)
    inputs = INPUTS | {"pull-request": "7"}
    by_hand: dict[str, Any] = {"inputs": inputs, "event": {"inputs": {}}, "name": "workflow_dispatch"}
    refused(runner, "is not the newest one of the pull request", **by_hand)
    assert ran(runner, environ={"GITHUB_SHA": HEAD}, **by_hand).exit_code == 0


def test_a_fork_with_a_token_that_only_reads_is_accepted_though_no_comment_says_so(
    runner: Runner, github: GitHub
) -> None:
    github.pulls.clear()
    github.add_pull(7, sha=OLD, head="stranger/app")
    github.push(HEAD, at=T1)
    github.set_label(LABEL, at=T2)
    github.may_write = False
    result = ran(runner)
    assert result.exit_code == 0
    assert "GET /repos/stranger/app/activity?ref=refs%2Fheads%2Ftopic&direction=desc&per_page=100" in github.requests
    assert "The comment could not be posted" in result.log
    assert github.comments == []


def test_a_required_comment_on_an_accepted_contract_that_is_missing_fails_the_job(
    runner: Runner, github: GitHub
) -> None:
    github.set_label(LABEL, at=T2)
    github.may_write = False
    result = ran(runner, INPUTS | {"comment-required": "true"})
    assert result.exit_code == 4
    said = "The contract is broken and accepted by label, but comment-required is true"
    assert result.annotations[-1].message.startswith(said)


def test_the_second_workflow_says_in_its_comment_that_a_label_accepts_a_broken_contract(
    runner: Runner, github: GitHub
) -> None:
    github.pulls.clear()
    github.add_pull(7, sha=OLD, head="stranger/app")
    github.push(HEAD, at=T1)
    github.set_label(LABEL, at=T2)
    write_jsonl(runner.workspace / "report.json", [failing() | {"source": {"commit": HEAD}}])
    run = {"id": 55, "head_sha": HEAD, "head_branch": "topic", "head_repository": {"full_name": "stranger/app"}}
    inputs = INPUTS | {"mode": "post-comment"}
    result = runner.run(inputs, event={"workflow_run": run}, name="workflow_run")
    assert result.exit_code == 0
    assert [one.message for one in result.annotations] == [NOTICE]
    assert "☑️ Accepted by label: " in github.bodies()[0]
    assert "`@ann` at 2026-01-01 10:02 UTC" in github.bodies()[0]
    github.push("c" * 40, at=T3)
    write_jsonl(runner.workspace / "report.json", [failing() | {"source": {"commit": "c" * 40}}])
    runner.run(inputs, event={"workflow_run": run | {"head_sha": "c" * 40}}, name="workflow_run", run=101)
    assert "### ❌" in github.bodies()[0]


def test_a_comment_turns_red_again_after_the_next_push(runner: Runner, github: GitHub) -> None:
    github.set_label(LABEL, at=T2)
    ran(runner, INPUTS | {"comment": "on-change"})
    github.push("c" * 40, at=T3)
    refused(runner, AGAIN, event=event("c" * 40), run=101, inputs=INPUTS | {"comment": "on-change"})
    assert len(github.comments) == 1
    assert "### ❌" in github.bodies()[0]


HOSTILE = "`x` @everyone ::error::pwned ##[error] <i>|#1 \x1b[2J" + "y" * 300


def test_a_hostile_name_of_a_label_stays_text_wherever_it_is_shown(runner: Runner, github: GitHub) -> None:
    github.set_label(HOSTILE, at=T2)
    result = ran(runner, {"accept-label": HOSTILE})
    assert result.exit_code == 0
    assert [one.level for one in result.annotations] == ["warning", "notice"]
    for shown in (result.summary, github.bodies()[0], result.log):
        assert "\x1b" not in shown
        assert HOSTILE not in shown
        assert TOKEN not in shown
    for shown in (result.summary, github.bodies()[0]):
        assert "@everyone" not in shown
        assert "<i>" not in shown


def test_an_input_of_two_labels_is_refused(runner: Runner) -> None:
    result = ran(runner, {"accept-label": "one\ntwo"})
    assert result.exit_code == 2
    assert "input accept-label: expected the name of one label, found 'one\\ntwo'" in result.log
