"""Whatever goes wrong around a check: the exit code is the check's, the reports are there, the cause is named."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from ragcontract.github.delivery import ADVICE
from tests import scenarios
from tests.github.standin import TOKEN, Fault, GitHub, Sent
from tests.process import NOBODY, folder_of_nobody
from tests.runner import AsProcess, InProcess, Result, Runner

REPORTS = ("report.md", "report.json", "junit.xml")
DEADLINE = "1"


class Moment(Struct, frozen=True, kw_only=True):
    """A request of ours that something can go wrong with."""

    method: str
    path: str
    second_run: bool = False  # the first has left a comment


MOMENTS = {
    "asking who we are": Moment(method="POST", path="graphql"),
    "listing the comments": Moment(method="GET", path="/comments"),
    "creating the comment": Moment(method="POST", path="/comments"),
    "updating the comment": Moment(method="PATCH", path="/comments", second_run=True),
}
STATUSES = {401: "no", 403: "no", 404: "no", 410: "no", 422: "no", 429: "no", 500: "no", 502: "no", 503: "no"}
BROKEN_OFF: dict[str, tuple[dict[str, Any], str]] = {
    "the connection drops": ({"kind": "drop"}, "GitHub could not be reached"),
    "half an answer comes": ({"kind": "half"}, "GitHub could not be reached"),
    "no answer comes": ({"kind": "hang"}, "github-timeout|could not be reached"),
    "the answer drips": ({"kind": "drip"}, "github-timeout|could not be reached"),
    "the answer is a page of HTML": ({"kind": "not json"}, "GitHub's answer is not JSON"),
    "the answer has another shape": ({"status": 200, "answer": "x"}, "does not say who|not the list|not the comment"),
    "a redirect comes": ({"status": 302, "headers": {"Location": "https://evil.example"}}, "GitHub answered 302"),
    "a secondary limit is hit": (
        {"status": 403, "message": "You have exceeded a secondary rate limit"},
        "GitHub answered 403: You have exceeded a secondary rate limit; the next try would come after",
    ),
    "the hour's requests are used up": (
        {"status": 403, "headers": {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "9999999999"}},
        "GitHub answered 403",
    ),
    "GitHub wants us to come back tomorrow": ({"status": 503, "headers": {"Retry-After": "86400"}}, "answered 503"),
}


@pytest.fixture
def runner(tmp_path: Path, github: GitHub) -> Runner:
    return InProcess(tmp_path, github)


def survived(runner: Runner, result: Result, reported: str, *, code: int = 1) -> None:
    """See that the verdict stands, that its reports are there, and that the log says what is wrong and no secret."""
    assert result.exit_code == code, result.log
    for name in REPORTS:
        assert (runner.workspace / name).stat().st_size > 0, name
    assert json.loads((runner.workspace / "report.json").read_text())["verdict"] == ("fail" if code == 1 else "pass")
    assert any(part in result.log for part in reported.split("|")), result.log
    assert "Traceback" not in result.log
    assert len(runner.github.comments) <= 1
    written = [file.read_text() for file in runner.workspace.rglob("*") if file.is_file()]
    assert not any(TOKEN in text for text in [result.log, result.summary, *written, *runner.github.bodies()])


def goes_wrong(runner: Runner, moment: Moment, fault: dict[str, Any], reported: str) -> Result:
    """Let a failing contract meet a fault, and a passing one that requires its comment."""
    scenarios.failing(runner.workspace)
    if moment.second_run:
        runner.run(run=90)
    runner.github.faults = [Fault(method=moment.method, path=moment.path, **fault)]
    # Waits are not waited for, so only a silent server takes the time that it may.
    result = runner.run({"github-timeout": DEADLINE if fault.get("kind") in {"hang", "drip"} else "20"})
    survived(runner, result, reported)
    assert result.outputs["verdict"] == "fail"
    assert "❌" in result.summary
    assert "comment-url" not in result.outputs
    return result


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("moment", MOMENTS)
def test_an_error_of_github_changes_no_verdict(runner: Runner, moment: str, status: int) -> None:
    message = "Resource not accessible by personal access token" if status == 403 else "no, because"
    fault = {"status": status, "message": message}
    result = goes_wrong(runner, MOMENTS[moment], fault, f"GitHub answered {status}: {message}")
    assert (ADVICE[:40] in result.log) == (status in {403, 404})
    repeated = [request for request in runner.github.requests if request.startswith(MOMENTS[moment].method)]
    assert status >= 500 or len(repeated) <= 3


@pytest.mark.parametrize("what", BROKEN_OFF)
@pytest.mark.parametrize("moment", MOMENTS)
def test_an_answer_that_is_none_changes_no_verdict(runner: Runner, moment: str, what: str) -> None:
    goes_wrong(runner, MOMENTS[moment], *BROKEN_OFF[what])


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_required_comment_that_is_not_there_exits_4_and_says_so(runner: Runner, moment: str) -> None:
    scenarios.passing(runner.workspace)
    if MOMENTS[moment].second_run:
        runner.run(run=90)
    runner.github.faults = [Fault(method=MOMENTS[moment].method, path=MOMENTS[moment].path, status=403, message="no")]
    result = runner.run({"comment-required": "true"})
    survived(runner, result, "comment-required is true and the comment could not be posted", code=4)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_fault_that_passes_is_not_even_mentioned(runner: Runner, moment: str) -> None:
    scenarios.failing(runner.workspace)
    if MOMENTS[moment].second_run:
        runner.run(run=90)
    runner.github.faults = [Fault(method=MOMENTS[moment].method, path=MOMENTS[moment].path, status=502, times=2)]
    result = runner.run({"github-timeout": "60"})
    survived(runner, result, "Comment posted|Comment updated")
    assert [one.level for one in result.annotations] == ["error"]
    assert len(runner.github.comments) == 1


@pytest.mark.parametrize("kind", ["do and drop"])
@pytest.mark.parametrize("moment", MOMENTS)
def test_what_was_done_although_no_answer_came_makes_no_second_comment(runner: Runner, moment: str, kind: Any) -> None:
    scenarios.failing(runner.workspace)
    where = MOMENTS[moment]
    if where.second_run:
        runner.run(run=90)
    runner.github.faults = [Fault(method=where.method, path=where.path, kind=kind, times=1)]
    survived(runner, runner.run({"github-timeout": "60"}), "Comment posted|Comment updated|The comment is up to date")
    assert len(runner.github.comments) == 1


def test_a_token_that_github_echoes_is_published_nowhere(runner: Runner, github: GitHub) -> None:
    scenarios.failing(runner.workspace)
    runner.run(run=90)
    github.comments[0]["html_url"] += f"?{TOKEN}"
    result = runner.run(run=91)
    survived(runner, result, "Comment updated")
    assert TOKEN not in str(result.outputs)
    github.faults = [Fault(status=422, message=f"no, {TOKEN[:-9]} and {TOKEN}")]
    result = runner.run(run=92)
    survived(runner, result, "GitHub answered 422: no, *** and ***")
    assert TOKEN[:12] not in result.log


def event_is(text: str | bytes | None) -> Callable[[Runner], None]:
    def write(runner: Runner) -> None:
        file = runner.folder / "workflow" / "event.json"
        if text is not None:
            file.write_bytes(text if isinstance(text, bytes) else text.encode())

    return write


EVENTS: dict[str, tuple[Callable[[Runner], None], str]] = {
    "missing": (event_is(None), "The comment could not be posted: the event's file cannot be read ([Errno 2]"),
    "empty": (event_is(""), "The comment could not be posted: the event's file cannot be read"),
    "cut off": (event_is('{"pull_request": {"num'), "The comment could not be posted: the event's file cannot be read"),
    "a list": (event_is("[1]"), "The comment could not be posted: the event's file holds no JSON object"),
    "not utf-8": (event_is(b'{"a": "\xff"}'), "The comment could not be posted: the event's file cannot be read"),
    "nested beyond measure": (
        event_is("[" * 200_000),
        "The comment could not be posted: the event's file cannot be read",
    ),
    "huge": (event_is(json.dumps({"pull_request": {"body": "x" * 30_000_000, "number": 7}})), "Comment posted"),
    "with a number that is none": (
        event_is('{"pull_request": {"number": 1e999}}'),
        "The comment could not be posted: the event's file cannot be read",
    ),
    "with a negative number": (event_is('{"pull_request": {"number": -7}}'), "has no pull request's number"),
    "with true for a number": (event_is('{"pull_request": {"number": true}}'), "has no pull request's number"),
}


@pytest.mark.parametrize("what", EVENTS)
def test_an_event_in_any_shape_changes_no_verdict(runner: Runner, what: str) -> None:
    scenarios.failing(runner.workspace)
    prepare, reported = EVENTS[what]
    prepare(runner)
    survived(runner, runner.run(event=None), reported)


@pytest.mark.parametrize(
    "token", ["", "  ", "ghs_a\nb", "ghs_a\r\nX-Evil: 1", "ghs_…", "ghs_\x00", "ghs a", "\udcff", "ghs_wrong"]
)
def test_a_token_in_any_shape_changes_no_verdict_and_shows_itself_nowhere(runner: Runner, token: str) -> None:
    scenarios.failing(runner.workspace)
    result = runner.run({"github-token": token})
    survived(runner, result, "github-token|GitHub answered 401: Bad credentials")
    assert not token.strip() or token.strip() not in result.log
    assert "X-Evil" not in result.log
    assert len(result.annotations) == 2


@pytest.mark.parametrize("kind", ["hang", "drip"])
def test_a_comment_that_is_there_is_not_said_to_be_missing_because_the_look_after_it_hangs(
    runner: InProcess, github: GitHub, kind: Any
) -> None:
    def hang(sent: Sent) -> None:
        if sent.method == "POST" and "comments" in sent.path:
            github.faults.append(Fault(method="GET", kind=kind))

    github.meanwhile = hang
    scenarios.passing(runner.workspace)
    result = runner.run({"github-timeout": DEADLINE, "comment-required": "true"})
    assert result.exit_code == 0
    assert result.outputs["comment-url"] == github.comments[0]["html_url"]
    assert "could not" not in result.log


def test_an_input_out_of_the_workspace_is_reported_in_the_body_file_too(runner: InProcess) -> None:
    scenarios.passing(runner.workspace)
    (runner.workspace / "golden.jsonl").unlink()
    (runner.workspace / "golden.jsonl").symlink_to("/etc/passwd")
    assert runner.run({"comment-body-file": "c.md"}).exit_code == 2
    assert "leads out of the workspace" in (runner.workspace / "c.md").read_text()


def test_no_program_that_is_started_inherits_the_token(tmp_path: Path, github: GitHub) -> None:
    setup = "import atexit, subprocess\natexit.register(lambda: print(subprocess.check_output(['env'], text=True)))"
    runner = AsProcess(tmp_path, github, setup)
    scenarios.passing(runner.workspace)
    result = runner.run(environ={"RAG_CONTRACT_TOKEN": "the key of a service"})
    assert "INPUT_GOLDEN=" in result.log
    assert TOKEN not in result.log
    assert "the key of a service" not in result.log
    assert len(github.comments) == 1


def test_no_token_at_all_changes_no_verdict(runner: Runner) -> None:
    scenarios.failing(runner.workspace)
    environ = {"INPUT_GITHUB-TOKEN": ""}
    survived(runner, runner.run(environ=environ), "there is no github-token")


@pytest.mark.parametrize("file", ["GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"])
@pytest.mark.parametrize("path", ["", "/nowhere/file", "/dev/full", "/"])
def test_a_file_of_the_runners_that_cannot_be_written_changes_no_verdict(
    runner: Runner, github: GitHub, file: str, path: str
) -> None:
    scenarios.failing(runner.workspace)
    result = runner.run(environ={file: path})
    what = {"GITHUB_OUTPUT": "The outputs", "GITHUB_STEP_SUMMARY": "The summary"}[file]
    survived(runner, result, f"{what} could not be delivered (" if path else "Comment posted")
    assert len(github.comments) == 1


def test_outputs_that_cannot_be_written_are_no_missing_comment(runner: Runner, github: GitHub) -> None:
    scenarios.passing(runner.workspace)
    (runner.folder / "file_commands" / "set_output").mkdir()
    result = runner.run({"comment-required": "true"})
    survived(runner, result, "The outputs could not be delivered (IsADirectoryError", code=0)
    assert len(github.comments) == 1


def test_all_deliveries_failing_at_once_change_no_verdict(runner: Runner, github: GitHub) -> None:
    scenarios.failing(runner.workspace)
    for name in ("set_output", "step_summary"):
        (runner.folder / "file_commands" / name).mkdir()
    github.faults = [Fault(status=500)]
    survived(runner, runner.run({"github-timeout": "20"}), "The comment could not be posted: GitHub answered 500")


@pytest.mark.parametrize(
    "environ",
    [
        {"GITHUB_API_URL": "http://127.0.0.1:1"},
        {"GITHUB_GRAPHQL_URL": "http://127.0.0.1:1/graphql"},
        {"GITHUB_GRAPHQL_URL": "http://nowhere.invalid/graphql"},
        {"GITHUB_GRAPHQL_URL": "http://["},
        {"GITHUB_GRAPHQL_URL": "graphql"},
        {"GITHUB_REPOSITORY": ""},
        {"GITHUB_REPOSITORY": "octo/other"},
        {"GITHUB_RUN_ID": "x", "GITHUB_RUN_ATTEMPT": "", "GITHUB_RUN_NUMBER": ""},
    ],
)
def test_an_environment_in_any_shape_changes_no_verdict(
    runner: Runner, github: GitHub, environ: dict[str, str]
) -> None:
    scenarios.failing(runner.workspace)
    result = runner.run({"github-timeout": "20"}, environ=environ)
    github.refused.clear()
    survived(runner, result, "The comment could not be posted: GitHub|Comment posted")


def unwritable(runner: Runner, github: GitHub, result: Result, reported: str) -> None:
    """See that reports that cannot be written are reported in all other ways, as no verdict, and leave no litter."""
    assert result.exit_code == 2, result.log
    assert reported in result.log
    assert "Traceback" not in result.log
    assert result.outputs["verdict"] == "error"
    assert reported in result.summary.replace("\\", "").replace("&#8203;", "")
    assert len(github.comments) == 1
    assert not list(runner.workspace.rglob(".rag-contract*"))


@pytest.mark.parametrize("name", ["report-md", "report-json", "junit", "report-html", "comment-body-file"])
def test_a_report_in_a_folder_that_is_a_file_is_reported(runner: Runner, github: GitHub, name: str) -> None:
    scenarios.failing(runner.workspace)
    (runner.workspace / "out").touch()
    unwritable(runner, github, runner.run({name: "out/report"}), "is a file, not a folder")


def test_a_full_disk_is_reported_and_leaves_no_half_report(tmp_path: Path, github: GitHub) -> None:
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, 2_000))"
    runner = AsProcess(tmp_path, github, full)
    scenarios.failing(runner.workspace)
    unwritable(runner, github, runner.run(), "cannot be written (File too large)")
    assert (runner.workspace / "report.md").read_text().endswith("Fix the input and run the check again.\n")
    assert json.loads((runner.workspace / "report.json").read_text())["verdict"] == "error"


def test_a_disk_with_no_room_for_a_single_byte_still_gets_the_comment(tmp_path: Path, github: GitHub) -> None:
    runner = AsProcess(tmp_path, github, "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))")
    scenarios.failing(runner.workspace)
    result = runner.run()
    assert result.exit_code == 2, result.log
    assert "could not be delivered (OSError: [Errno 27]" in result.log
    assert "could not be judged" in github.bodies()[0]


def test_a_workspace_that_may_only_be_read_is_reported(github: GitHub) -> None:
    nobody = f"os.getuid() or (os.setgroups([]), os.setgid({NOBODY}), os.setuid({NOBODY}))"
    with folder_of_nobody() as folder:
        runner = AsProcess(folder / "job", github, nobody)
        scenarios.failing(runner.workspace)
        for path in (runner.folder, *runner.folder.rglob("*")):
            path.chmod(0o777)
        runner.workspace.chmod(0o555)
        commands = runner.folder / "file_commands"
        for file in ("set_output", "step_summary"):
            (commands / file).touch()
            (commands / file).chmod(0o666)
        unwritable(runner, github, runner.run(), "cannot be written (Permission denied")
        temporary = {name: str(runner.folder / "runner_temp" / name) for name in ("report-md", "report-json", "junit")}
        again = runner.run(temporary)
        assert again.exit_code == 1, again.log
        assert os.access(runner.folder / "runner_temp" / "report-md", os.R_OK)


def test_a_workspace_that_is_gone_is_reported(runner: Runner, github: GitHub) -> None:
    scenarios.failing(runner.workspace)
    gone = str(runner.folder / "gone")
    result = runner.run(environ={"GITHUB_WORKSPACE": gone})
    assert result.exit_code == 2
    assert "leads out of the workspace" in result.log
    assert len(github.comments) == 1
