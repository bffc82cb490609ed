"""``mode: post-comment``: what a stranger's check has left is posted where it belongs, or not read at all."""

import json
import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ragcontract.core import bounds
from tests import scenarios
from tests.builders import golden, run, stored_query, write_baseline, write_jsonl
from tests.github.relayed import (
    HEAD,
    INPUTS,
    Json,
    assert_contained,
    event,
    everything,
    failing,
    nothing_posted,
    passing,
    posted,
    relayed,
    said,
    unjudgeable,
)
from tests.github.standin import ACTIONS_BOT, TOKEN, Fault, GitHub, Sent
from tests.golden_cases import CASES, copied
from tests.process import rag_contract
from tests.runner import InProcess, Runner

HOLDS = "### ✅ 1 query holds; no limits are set\n"


@pytest.fixture
def github() -> Iterator[GitHub]:
    with GitHub() as standin:
        standin.add_pull(7, sha=HEAD, head="stranger/app")
        yield standin


@pytest.fixture
def runner(tmp_path: Path, github: GitHub) -> InProcess:
    return InProcess(tmp_path, github)


def test_the_report_is_posted_on_the_pull_request_that_the_workflow_ran_for(runner: Runner, github: GitHub) -> None:
    result = relayed(runner)
    assert result.exit_code == 0
    assert result.outputs == {"comment-url": github.comments[0]["html_url"]}
    assert github.comments[0]["issue_url"].endswith("/issues/7")
    assert github.bodies()[0].partition("\n")[2].startswith(HOLDS)


def test_its_foot_and_its_marker_are_those_of_the_run_that_checked(runner: Runner, github: GitHub) -> None:
    relayed(runner)
    body = github.bodies()[0]
    assert body.startswith("<!-- rag-contract name= run=55.2 state=pass ")
    assert "<sub>Posted 2026-01-02 00:00 UTC · [run 5, attempt 2](https://github.com/octo/app/actions/runs/55)" in body
    assert f"commit {HEAD}" in body


def test_it_updates_the_comment_of_the_same_contract_unless_that_is_newer(runner: Runner, github: GitHub) -> None:
    relayed(runner, failing())
    relayed(runner, passing(), id=56)
    assert "✅" in github.bodies()[0]
    assert "A newer run has commented already" in relayed(runner, failing()).log
    assert "✅" in github.bodies()[0]
    assert len(github.comments) == 1


@pytest.mark.parametrize(
    ("what", "icon", "state"), [(passing, "✅", "pass"), (failing, "❌", "fail"), (unjudgeable, "⚠️", "error")]
)
def test_the_verdict_is_that_of_the_report(
    runner: Runner, github: GitHub, what: Callable[[], Json], icon: str, state: str
) -> None:
    relayed(runner, what())
    assert f" state={state} " in github.bodies()[0]
    assert said(github.bodies()[0]).startswith(f"### {icon} ")


def test_each_contract_has_its_comment_by_the_name_that_this_workflow_gives_it(runner: Runner, github: GitHub) -> None:
    other = passing()
    other["source"] = {"commit": HEAD, "contract": "another"}
    for name in ("search", "", "search"):
        relayed(runner, other, {"name": name})
    assert [said(body).partition(" holds")[0] for body in github.bodies()] == [
        "### ✅ search — 1 query",
        "### ✅ 1 query",
    ]


def test_the_pull_request_is_never_that_of_the_file_or_of_an_input(runner: Runner, github: GitHub) -> None:
    github.add_pull(8, sha=HEAD, head="octo/app")
    source = {"pull_request": 8, "commit": HEAD, "repository": "octo/app", "run_url": "https://evil.example"}
    assert relayed(runner, passing() | {"source": source}, {"pull-request": "8"}).exit_code == 0
    assert github.comments[0]["issue_url"].endswith("/issues/7")
    assert "evil.example" not in github.bodies()[0]


@pytest.mark.parametrize(("number", "inputs"), [(8, {}), (7, {"pull-request": "7"}), (8, {"pull-request": "9"})])
def test_of_two_pull_requests_from_one_branch_it_is_the_one_that_was_checked(
    runner: Runner, github: GitHub, number: int, inputs: dict[str, str]
) -> None:
    github.add_pull(8, sha=HEAD, head="stranger/app", base="release")
    assert relayed(runner, passing() | {"source": {"commit": HEAD, "pull_request": 8}}, inputs).exit_code == 0
    assert [comment["issue_url"].rpartition("/")[2] for comment in github.comments] == [str(number)]


@pytest.mark.parametrize("source", [{}, {"pull_request": None}, {"pull_request": 9}])
@pytest.mark.parametrize(("required", "code"), [("false", 0), ("true", 4)])
def test_of_two_pull_requests_from_one_branch_none_is_guessed(
    runner: Runner, github: GitHub, source: Json, required: str, code: int
) -> None:
    github.add_pull(8, sha=HEAD, head="stranger/app", base="release")
    result = relayed(runner, passing() | {"source": {"commit": HEAD} | source}, {"comment-required": required})
    assert result.exit_code == code
    assert "the pull requests #7 and #8 have the same branch and commit" in result.log
    assert github.comments == []


def test_a_pull_request_that_has_moved_on_gets_no_comment(runner: Runner, github: GitHub) -> None:
    result = relayed(runner, passing() | {"source": {"commit": "d" * 40}}, head_sha="d" * 40)
    assert result.exit_code == 0
    assert "No comment: no open pull request has dddddddddddd of stranger/app" in result.log
    assert github.comments == []


@pytest.mark.parametrize("name", ["pull_request", "push", "workflow_dispatch"])
@pytest.mark.parametrize(("required", "code"), [("false", 0), ("true", 4)])
def test_another_event_than_a_workflow_run_is_reported_and_fails_where_the_comment_is_required(
    runner: Runner, github: GitHub, name: str, required: str, code: int
) -> None:
    (runner.workspace / "report.json").write_text(json.dumps(passing()))
    result = runner.run(INPUTS | {"comment-required": required}, event={"after": HEAD}, name=name)
    assert result.exit_code == code
    assert f"mode post-comment needs the event workflow_run, and this is '{name}'" in result.log
    assert github.comments == []


@pytest.mark.parametrize(
    ("required", "code"),
    [("false", 0), ("true", 4)],
)
def test_a_refusal_is_reported_and_fails_where_the_comment_is_required(
    runner: Runner, github: GitHub, required: str, code: int
) -> None:
    github.may_write = False
    result = relayed(runner, inputs={"comment-required": required})
    assert result.exit_code == code
    assert "permissions: pull-requests: write" in result.log


def test_without_a_token_it_says_so(runner: Runner) -> None:
    result = relayed(runner, inputs={"github-token": "", "comment-required": "true"})
    assert result.exit_code == 4
    assert "there is no github-token" in result.log


def test_outputs_that_cannot_be_written_take_no_comment_back(runner: Runner, github: GitHub) -> None:
    (runner.folder / "file_commands" / "set_output").mkdir()
    result = relayed(runner)
    assert result.exit_code == 0
    assert "could not be delivered (IsADirectoryError" in result.log
    assert len(github.comments) == 1


def test_a_post_that_was_received_is_not_repeated(runner: Runner, github: GitHub) -> None:
    github.faults = [Fault(method="POST", path="^/repos", kind="do and drop")]
    assert relayed(runner).exit_code == 0
    assert len(github.comments) == 1


def test_a_file_that_is_not_there_is_reported_and_not_made(runner: Runner) -> None:
    nothing_posted(runner, posted(runner), "report.json: cannot be read (No such file")
    assert not (runner.workspace / "report.json").exists()


def test_a_file_of_16_mib_is_read_and_one_byte_more_is_refused(runner: Runner, github: GitHub) -> None:
    data = json.dumps(passing()).encode().ljust(bounds.REPORT)
    assert bounds.REPORT == 16 << 20
    nothing_posted(runner, relayed(runner, data + b" "), "is larger than 16 MiB; report-json-detail: failed")
    assert relayed(runner, data).exit_code == 0
    assert len(github.comments) == 1


ANOTHER = "d" * 40


@pytest.mark.parametrize("what", [passing, failing, unjudgeable])
@pytest.mark.parametrize(
    ("source", "reported"),
    [
        ({"commit": ANOTHER, "pull_request": 7, "repository": "octo/app"}, f'is "{ANOTHER}", but'),
        ({"commit": "c" * 12}, 'is "cccccccccccc", but'),
        ({"commit": "x\n::error::y"}, r'is "x\n::error::y", but'),
        ({"commit": ""}, "is missing, and"),
        ({"contract": "docs"}, "is missing, and"),
        (None, "is missing, and"),
    ],
)
def test_a_report_that_was_in_the_repository_is_not_posted_for_another_commit(
    runner: Runner, what: Callable[[], Json], source: Json | None, reported: str
) -> None:
    result = relayed(runner, what() | {"source": source}, conclusion="failure")
    nothing_posted(runner, result, f"report.json: source.commit: {reported} the first workflow ran for {HEAD}; upload")


def test_a_report_of_the_command_line_is_not_posted_for_any_commit(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(runner.workspace)
    scenarios.passing(runner.workspace)
    assert rag_contract("check").code == 0
    nothing_posted(runner, posted(runner), "source.commit: is missing, and the first workflow ran for")


def test_a_report_with_a_key_twice_is_refused(runner: Runner) -> None:
    data = json.dumps(failing()).encode().replace(b'"verdict":', b'"verdict": "pass", "verdict":', 1)
    nothing_posted(runner, relayed(runner, data), "report.json: duplicate key 'verdict' in one object")


@pytest.mark.parametrize("kept", [("failed_checks",), ("findings",), ("queries",), ("failed_checks", "queries")])
def test_a_verdict_that_its_own_reasons_deny_is_refused(runner: Runner, kept: Sequence[str]) -> None:
    edited = failing() | {"verdict": "pass"}
    edited |= {name: [] for name in ("failed_checks", "findings", "queries") if name not in kept}
    why = f'report.json: verdict: is "pass", but {", ".join(kept)} say what failed; use the report of the check'
    nothing_posted(runner, relayed(runner, edited), why)


def test_a_pass_with_a_gate_that_failed_is_refused(runner: Runner) -> None:
    edited = everything()
    assert [gate["status"] for gate in edited["gates"]].count("fail") > 0
    edited |= {"verdict": "pass", "failed_checks": [], "findings": [], "queries": []}
    nothing_posted(runner, relayed(runner, edited), 'report.json: verdict: is "pass", but gates say what failed')


def test_a_failure_without_a_reason_is_refused(runner: Runner) -> None:
    result = relayed(runner, passing() | {"verdict": "fail"})
    nothing_posted(runner, result, 'report.json: verdict: is "fail", but nothing in it failed')


@pytest.mark.parametrize("contract", ["b", None])
def test_a_green_report_of_another_contract_does_not_replace_a_red_one(
    runner: Runner, github: GitHub, contract: str | None
) -> None:
    relayed(runner, failing() | {"source": {"commit": HEAD, "contract": "a"}}, run_attempt=2)
    relayed(runner, passing() | {"source": {"commit": HEAD, "contract": contract}}, run_attempt=3)
    assert said(github.bodies()[0]).startswith("### ❌ ")
    relayed(runner, passing() | {"source": {"commit": HEAD, "contract": "a"}}, run_attempt=4)
    assert said(github.bodies()[0]).startswith("### ✅ ")
    assert len(github.comments) == 1


@pytest.mark.parametrize("make", [lambda path: path.mkdir(), os.mkfifo])
def test_what_is_no_file_is_not_read(runner: Runner, make: Any) -> None:
    make(runner.workspace / "report.json")
    nothing_posted(runner, posted(runner), "report.json: is not a file")


@pytest.mark.parametrize("target", ["/etc/hostname", "/proc/self/environ", "../home/secret"])
def test_a_link_out_of_the_workspace_is_not_followed(runner: Runner, target: str) -> None:
    (runner.folder / "home" / "secret").write_text("secret")
    (runner.workspace / "report.json").symlink_to(target)
    nothing_posted(runner, posted(runner), "leads out of the workspace")


def test_a_link_to_another_file_of_the_workspace_is_not_followed(runner: Runner) -> None:
    (runner.workspace / ".git").mkdir()
    (runner.workspace / ".git" / "report.json").write_text(json.dumps(passing()))
    (runner.workspace / "artifact").symlink_to(".git")
    (runner.workspace / "report.json").symlink_to(".git/report.json")
    nothing_posted(runner, posted(runner), "is behind a symbolic link")
    nothing_posted(runner, posted(runner, {"report-json": "artifact/report.json"}), "is behind a symbolic link")
    nothing_posted(runner, posted(runner, {"working-directory": "artifact"}), "is behind a symbolic link")


def test_a_link_to_itself_is_reported(runner: Runner) -> None:
    (runner.workspace / "report.json").symlink_to("report.json")
    nothing_posted(runner, posted(runner), "report.json: is behind a symbolic link")


@pytest.mark.parametrize("path", ["../home/secret", "/etc/hostname", "a/../../home/secret"])
def test_a_file_outside_of_the_workspace_is_not_read(runner: Runner, path: str) -> None:
    (runner.folder / "home" / "secret").write_text("secret")
    nothing_posted(runner, posted(runner, {"report-json": path}), "leads out of the workspace")


def test_the_file_is_found_in_the_working_directory_and_by_the_machines_path(runner: Runner, github: GitHub) -> None:
    data = json.dumps(passing())
    (runner.workspace / "artifact").mkdir()
    (runner.workspace / "artifact/report.json").write_text(data)
    assert posted(runner, {"working-directory": "artifact"}).exit_code == 0
    assert posted(runner, {"report-json": "/home/runner/work/app/app/artifact/report.json"}).exit_code == 0
    (runner.folder / "runner_temp/r.json").write_text(data)
    assert posted(runner, {"report-json": str(runner.folder / "runner_temp/r.json")}).exit_code == 0
    assert len(github.comments) == 1


@pytest.mark.parametrize(
    "inputs", [{"comment": "never"}, {"comment-body-file": "comment.md"}, {"working-directory": ".."}]
)
def test_inputs_that_do_not_go_together_are_reported(runner: Runner, inputs: dict[str, str]) -> None:
    nothing_posted(runner, relayed(runner, inputs=inputs), "input ")


def test_a_body_file_is_refused_with_the_name_of_the_input_that_replaces_it(runner: Runner) -> None:
    result = relayed(runner, inputs={"comment-body-file": "comment.md"})
    nothing_posted(runner, result, "name it here with the input report-json, and remove comment-body-file")


def test_a_comment_that_was_red_says_so_when_the_contract_holds_again(runner: Runner, github: GitHub) -> None:
    for number, broken in enumerate((failing(), unjudgeable())):
        relayed(runner, broken, id=60 + 10 * number)
        relayed(runner, passing(), id=61 + 10 * number)
        assert said(github.bodies()[0]).startswith("### ✅ Holds again: ")
        relayed(runner, passing(), id=62 + 10 * number)
        assert "Holds again" not in github.bodies()[0]


def test_on_change_leaves_a_report_alone_that_differs_in_time_and_inputs_only(runner: Runner, github: GitHub) -> None:
    for number, (what, day) in enumerate(((passing(), 1), (passing(), 2), (failing(), 3), (failing(), 4))):
        what["created_at"] = f"2026-01-0{day}"
        what["inputs"]["run"]["files"][0]["sha256"] = f"{day}" * 64
        relayed(runner, what, {"comment": "on-change"}, id=60 + number)
        assert f"2026-01-0{1 if day < 3 else 3}" in github.bodies()[0]


def test_a_late_run_of_an_older_commit_overwrites_nothing(runner: Runner, github: GitHub) -> None:
    def push(sent: Sent) -> None:
        if "comments" in sent.path:
            github.pulls[0]["head"]["sha"] = "d" * 40

    github.meanwhile = push
    result = relayed(runner)
    assert result.exit_code == 0
    assert "the pull request has a newer commit by now" in result.log
    assert github.comments == []


@pytest.mark.parametrize(("required", "code"), [("false", 0), ("true", 4)])
def test_an_event_that_cannot_be_read_is_reported_and_fails_where_the_comment_is_required(
    runner: Runner, required: str, code: int
) -> None:
    (runner.workspace / "report.json").write_text(json.dumps(passing()))
    (runner.folder / "workflow" / "event.json").write_text("{")
    result = runner.run(INPUTS | {"comment-required": required}, event=None, name="workflow_run")
    assert result.exit_code == code
    assert "The comment could not be posted: the event's file cannot be read" in result.log


@pytest.mark.parametrize(("required", "code"), [("false", 0), ("true", 4)])
def test_a_setting_of_the_network_that_is_wrong_is_no_bug_of_ours(
    runner: Runner, monkeypatch: pytest.MonkeyPatch, required: str, code: int
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/no/such/bundle")
    inputs = INPUTS | {"comment-required": required}
    (runner.workspace / "report.json").write_text(json.dumps(passing()))
    api = {"GITHUB_API_URL": "https://127.0.0.1:9", "GITHUB_GRAPHQL_URL": "https://127.0.0.1:9/graphql"}
    result = runner.run(inputs, event=event(), name="workflow_run", environ=api)
    assert result.exit_code == code
    assert "The comment could not be posted (OSError: Could not find a suitable TLS CA certificate bundle" in result.log


def both(runner: InProcess, inputs: dict[str, str] | None = None, code: int | None = None) -> tuple[str, str]:
    """Run both workflows; returns the comment of a first one that may write, and that of the second."""
    own = {name: value for name, value in (inputs or {}).items() if name == "name"}
    with GitHub() as there:
        there.add_pull(7, sha=HEAD, head="stranger/app")
        there.files = runner.github.files
        job = InProcess(runner.folder / "first", there)
        shutil.rmtree(job.workspace)
        shutil.copytree(runner.workspace, job.workspace)
        result = job.run(inputs, event={"number": 7, "pull_request": {"number": 7, "head": {"sha": HEAD}}})
        assert code is None or result.exit_code == code, result.log
        (runner.workspace / "report.json").write_bytes((job.workspace / "report.json").read_bytes())
        shutil.rmtree(job.folder)
        (first,) = there.bodies()
    result = posted(runner, own)
    assert result.exit_code == 0, result.log
    (second,) = runner.github.bodies()
    return first, second


def state_and_content(body: str) -> Sequence[str]:
    found = re.match(r"<!-- rag-contract name=(\S*) run=\S+ state=(\w+) content=(\w+) contract=\S+ -->", body)
    assert found
    return found.groups()


@pytest.mark.parametrize("name", ["", "search <b>"])
@pytest.mark.parametrize(
    ("scenario", "code"), [(scenarios.passing, 0), (scenarios.failing, 1), (scenarios.unusable, 2)]
)
def test_the_comment_is_the_one_that_the_first_workflow_could_not_post(
    runner: InProcess, scenario: Callable[[Path], None], code: int, name: str
) -> None:
    scenario(runner.workspace)
    first, second = both(runner, {"name": name}, code)
    assert said(second) == said(first)
    assert state_and_content(second) == state_and_content(first)


def inputs_of(case: Path) -> dict[str, str]:
    """Return the inputs of the action that are a golden case's arguments."""
    given: dict[str, str] = {}
    name = ""
    for arg in shlex.split((case / "args").read_text()) if (case / "args").exists() else ():
        if arg.startswith("--"):
            name = arg.removeprefix("--")
        else:
            given[name] = f"{given[name]}\n{arg}" if name in given else arg
    return given


@pytest.mark.parametrize("case", sorted(CASES.iterdir()), ids=lambda case: case.name)
def test_the_comment_on_every_golden_case_is_the_one_that_the_first_workflow_would_post(
    runner: InProcess, github: GitHub, case: Path
) -> None:
    github.files = ["baseline.json"]
    copied(case, runner.workspace, runner.now)
    first, second = both(runner, inputs_of(case), int((case / "expected" / "exit_code").read_text()))
    assert said(second) == said(first)
    assert state_and_content(second) == state_and_content(first)
    assert_contained(said(second))


def test_the_report_of_a_huge_check_fits_into_the_comment(runner: InProcess) -> None:
    workspace = runner.workspace
    ids = [f"query {number} |{'ü' * 40}" for number in range(3000)]
    write_jsonl(workspace / "golden.jsonl", [golden(one, "doc1", "doc2", tags=[one]) for one in ids])
    write_jsonl(workspace / "current_run.jsonl", [run(one, "x") for one in ids])
    write_baseline(workspace / "baseline.json", *[stored_query(one, "doc1", query=golden(one)["query"]) for one in ids])
    first, second = both(runner)
    assert "more broken queries, in `report.json`" in second
    assert len(second.encode()) < 65_536
    assert said(second) == said(first)


def test_the_token_is_in_nothing_that_is_written(runner: Runner, github: GitHub) -> None:
    assert github.login == ACTIONS_BOT
    result = relayed(runner)
    assert TOKEN not in result.log + result.summary + "".join(github.bodies())
