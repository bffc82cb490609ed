"""The action's scenarios, against the stand-in for GitHub; ``tests/container`` runs the main ones in the image."""

import json
import re
import sys
from collections.abc import Iterator
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import junitparser
import msgspec
import pytest

from ragcontract import action
from ragcontract.action import FIXED_OUTPUTS
from ragcontract.report.record import ErrorReport
from tests import scenarios
from tests.builders import golden, run, write_jsonl
from tests.github.standin import ACTIONS_BOT, TOKEN, Fault, GitHub
from tests.process import files_in, spawn
from tests.runner import ROOT, SHA, InProcess, Runner
from tests.secret_forms import forms_of, pieces_in

ODD_TOKEN = "ghs_own+42=Zz~and/more&that"
IMPORTABLE = {"PYTHONPATH": str(ROOT)}


@pytest.fixture
def runner(tmp_path: Path, github: GitHub) -> Runner:
    return InProcess(tmp_path, github)


def test_no_inputs_are_needed_in_a_repository_laid_out_like_the_readme(runner: Runner, github: GitHub) -> None:
    scenarios.passing(runner.workspace)
    result = runner.run()
    assert result.exit_code == 0
    assert result.outputs == {
        "verdict": "pass",
        "summary": "2 queries hold; no limits are set",
        "metrics": '{"mrr_at_5":1.0,"recall_at_5":1.0,"precision_at_5":0.2,"hitrate_at_5":1.0,'
        '"ndcg_at_5":1.0,"map_at_5":1.0,"judged_at_5":1.0}',
        "mrr": "1.0",
        "recall": "1.0",
        "precision": "0.2",
        "hitrate": "1.0",
        "ndcg": "1.0",
        "map": "1.0",
        "failed-queries": "0",
        "new-failed-queries": "0",
        "report-md": "report.md",
        "report-json": "report.json",
        "junit": "junit.xml",
        "comment-url": github.comments[0]["html_url"],
    }
    assert json.loads((runner.workspace / "report.json").read_text())["verdict"] == "pass"
    assert "<testsuites" in (runner.workspace / "junit.xml").read_text()
    report = (runner.workspace / "report.md").read_text()
    assert result.summary.strip() == report.strip()
    marker, _, body = github.bodies()[0].partition("\n")
    assert re.fullmatch(
        r"<!-- rag-contract name= run=100\.1 state=pass content=[0-9a-f]{16} contract=[0-9a-f]{16} -->",
        marker,
    )
    assert body.startswith(report)
    assert body.removeprefix(report).strip() == (
        "<sub>Checked 2026-01-02 00:00 UTC · [run 10](https://github.com/octo/app/actions/runs/100)"
        f" · commit {SHA}</sub>"
    )


@pytest.mark.parametrize("variable", ["GITHUB_HEAD_REF", "GITHUB_SERVER_URL", "GITHUB_SHA", "INPUT_NAME"])
def test_bytes_of_the_environment_that_are_not_utf8_are_escaped_in_the_reports(runner: Runner, variable: str) -> None:
    scenarios.passing(runner.workspace)
    result = runner.run(environ={variable: "caf\udce9"})
    assert (result.exit_code, result.outputs["verdict"]) == (0, "pass")
    assert r"caf\\udce9" in (runner.workspace / "report.json").read_text()
    assert "Comment posted" in result.log


def test_of_several_cut_offs_the_outputs_are_those_of_the_largest(runner: Runner) -> None:
    scenarios.passing(runner.workspace)
    (runner.workspace / "ragcontract.yml").write_text("k: [1, 2, 10]\n")
    outputs = runner.run().outputs
    assert outputs["precision"] == "0.1"
    assert not [name for name in outputs if "_at_" in name]
    metrics = json.loads(outputs["metrics"])
    report = json.loads((runner.workspace / "report.json").read_text())["metrics"]
    assert metrics == {key: metric["current"] for key, metric in report.items()}
    assert len(metrics) == 3 * 7  # the ranking metrics and judged@k
    assert (metrics["precision_at_10"], metrics["precision_at_1"]) == (0.1, 1.0)


def test_a_metric_that_no_query_has_is_null_among_all_and_empty_by_its_name(runner: Runner) -> None:
    write_jsonl(runner.workspace / "golden.jsonl", [golden() | {"relevant_doc_ids": []}])
    write_jsonl(runner.workspace / "current_run.jsonl", [run()])
    outputs = runner.run().outputs
    assert set(json.loads(outputs["metrics"]).values()) == {None}
    assert [outputs[name] for name in FIXED_OUTPUTS] == [""] * 6


def test_the_first_run_comments_and_the_second_updates_that_comment(runner: Runner, github: GitHub) -> None:
    scenarios.passing(runner.workspace)
    first = runner.run()
    scenarios.failing(runner.workspace)
    second = runner.run()
    assert len(github.comments) == 1
    assert first.outputs["comment-url"] == second.outputs["comment-url"]
    assert "❌" in github.bodies()[0]


def test_the_reports_have_the_name_of_the_contract(runner: Runner) -> None:
    scenarios.failing(runner.workspace)
    runner.run({"name": "docs-en", "report-html": "report.html"})
    written = {name: (runner.workspace / name).read_text() for name in ("report.md", "junit.xml", "report.html")}
    assert written["report.md"].startswith("### ❌ docs-en — ")
    assert 'classname="rag-contract.docs-en.queries" file="golden.jsonl" line="2"' in written["junit.xml"]
    assert "<h1>Retrieval contract docs-en broken</h1>" in written["report.html"]


def test_a_broken_contract_exits_1_after_posting(runner: Runner, github: GitHub) -> None:
    scenarios.failing(runner.workspace)
    result = runner.run()
    assert result.exit_code == 1
    assert result.outputs["verdict"] == "fail"
    assert result.outputs["failed-queries"] == "1"
    assert "Expected doc2 in top 5" in result.log
    assert "`doc2`: missing" in github.bodies()[0]


def test_all_formats_count_the_same_broken_queries_where_only_new_ones_fail(runner: Runner) -> None:
    """One query that the baseline breaks already, and one that is new."""
    scenarios.passing(runner.workspace)
    write_jsonl(runner.workspace / "base.jsonl", [run("refunds", "doc9"), run("sso", "doc2")])
    write_jsonl(runner.workspace / "current_run.jsonl", [run("refunds", "doc9"), run("sso", "doc9")])
    (runner.workspace / "ragcontract.yml").write_text("per_query:\n  fail_on: new\n")
    result = runner.run({"baseline": "base.jsonl"})
    assert (result.outputs["failed-queries"], result.outputs["new-failed-queries"]) == ("2", "1")
    assert result.outputs["summary"].endswith("2 of 2 queries broken: 1 new, 1 already in the baseline")
    assert "**1 query fails**\n" in (runner.workspace / "report.md").read_text()
    assert [one.title for one in result.annotations] == ["Broken query sso (new)"]


def test_enforce_false_reports_a_broken_contract_and_exits_0(runner: Runner, github: GitHub) -> None:
    scenarios.failing(runner.workspace)
    result = runner.run({"enforce": "false"})
    assert result.exit_code == 0
    assert result.outputs["verdict"] == "fail"
    assert "❌" in github.bodies()[0]


def test_enforce_false_still_fails_on_input_that_cannot_be_judged(runner: Runner) -> None:
    scenarios.unusable(runner.workspace)
    assert runner.run({"enforce": "false"}).exit_code == 2


def test_input_that_cannot_be_judged_replaces_a_green_comment_and_the_reports(runner: Runner, github: GitHub) -> None:
    scenarios.passing(runner.workspace)
    runner.run()
    (runner.workspace / "page.html").write_text("committed, all green")
    scenarios.unusable(runner.workspace)
    result = runner.run({"report-html": "page.html"})
    assert result.exit_code == 2
    assert result.outputs == {
        "verdict": "error",
        "summary": "could not be judged: current_run.jsonl:2: is cut off in the middle; "
        "was the export stopped before it had finished?",
        "report-md": "report.md",
        "report-json": "report.json",
        "junit": "junit.xml",
        "report-html": "page.html",
        "comment-url": github.comments[0]["html_url"],
    }
    assert len(github.comments) == 1
    for location in (github.bodies()[0], result.summary):
        assert "could not be judged" in location
        assert "current\\_run.jsonl:2" in location.replace("&#8203;", "")
    reported = result.annotations[0]
    assert (reported.level, reported.file, reported.line) == ("error", "current_run.jsonl", "2")
    assert reported.message.startswith("current_run.jsonl:2: is cut off in the middle")
    for name in ("report.md", "report.json", "junit.xml", "page.html"):
        assert "is cut off in the middle" in (runner.workspace / name).read_text(), name
    assert json.loads((runner.workspace / "report.json").read_text())["verdict"] == "error"
    suites = junitparser.JUnitXml.fromfile(str(runner.workspace / "junit.xml"))
    assert (suites.tests, suites.errors, suites.failures) == (1, 1, 0)


@pytest.mark.parametrize(
    ("inputs", "reported"),
    [
        ({"k": "zero"}, "input k: expected a whole number from 1 to 1,000,000,000, found 'zero'"),
        ({"k": "0"}, "input k: expected a whole number"),
        (
            {"comment": "allways"},
            "input comment: expected always or on-change or on-failure or never, found 'allways'; did you mean",
        ),
        ({"enforce": "yes"}, "input enforce: expected true or false, found 'yes'"),
        ({"working-directory": "nowhere"}, "input working-directory: 'nowhere' is not a folder"),
        ({"baseline": "old.json"}, "old.json: no such file"),
        ({"config": "limits.yml"}, "limits.yml: no such file"),
        ({"report-md": "golden.jsonl"}, "golden.jsonl: is an input"),
        ({"report-html": "golden.jsonl"}, "golden.jsonl: is an input"),
        ({"junit": "report.json"}, "report.json: is another output"),
    ],
)
def test_a_wrong_input_is_reported_everywhere_and_exits_2(
    runner: Runner, github: GitHub, inputs: dict[str, str], reported: str
) -> None:
    scenarios.passing(runner.workspace)
    result = runner.run(inputs)
    assert result.exit_code == 2
    assert reported in result.log
    assert "could not be judged" in github.bodies()[0]


def test_while_nothing_is_labelled_the_job_shows_the_line_of_the_command(runner: Runner, github: GitHub) -> None:
    write_jsonl(runner.workspace / "golden.jsonl", [golden(f"q{number}", "TODO") for number in range(5)])
    result = runner.run()
    problem = "golden.jsonl: nothing is labelled yet: run rag-contract label"
    assert result.exit_code == 2
    assert [one.message for one in result.annotations if one.level == "error"] == [problem]
    assert result.outputs["summary"] == f"could not be judged: {problem}"
    assert "nothing is labelled yet" in github.bodies()[0]


def test_in_an_empty_workspace_the_job_shows_how_to_start(runner: Runner, github: GitHub) -> None:
    (runner.workspace / "report.json").write_text('{"verdict": "pass"}')
    result = runner.run()
    problem = "there is no contract in this folder: start with `rag-contract init`"
    assert result.exit_code == 2
    assert [one.message for one in result.annotations if one.level == "error"] == [problem]
    assert result.outputs["summary"] == f"could not be judged: {problem}"
    assert error_in(runner.workspace / "report.json").problems == [problem]
    assert "there is no contract in this folder" in github.bodies()[0]


def test_all_wrong_inputs_are_reported_at_once(runner: Runner) -> None:
    scenarios.passing(runner.workspace)
    log = runner.run({"k": "x", "comment": "x", "enforce": "x"}).log
    assert [f"input {name}:" in log for name in ("k", "comment", "enforce")] == [True] * 3


def test_on_failure_does_not_comment_on_a_pass(runner: Runner, github: GitHub) -> None:
    scenarios.passing(runner.workspace)
    result = runner.run({"comment": "on-failure"})
    assert github.comments == []
    assert "comment-url" not in result.outputs


def test_on_failure_turns_its_own_red_comment_green_again(runner: Runner, github: GitHub) -> None:
    scenarios.failing(runner.workspace)
    runner.run({"comment": "on-failure"})
    scenarios.passing(runner.workspace)
    runner.run({"comment": "on-failure"})
    assert len(github.comments) == 1
    assert "✅" in github.bodies()[0]


def test_never_talks_to_nobody(runner: Runner, github: GitHub) -> None:
    scenarios.failing(runner.workspace)
    assert runner.run({"comment": "never"}).exit_code == 1
    assert github.requests == []


def test_each_name_keeps_its_own_comment(runner: Runner, github: GitHub) -> None:
    scenarios.passing(runner.workspace)
    for name in ("search", "chat --> <b>", "search"):
        runner.run({"name": name})
    assert len(github.comments) == 2
    assert "--> <b>" not in github.bodies()[1]


def test_its_comment_is_found_behind_a_hundred_others_and_nobody_elses_is_touched(
    runner: Runner, github: GitHub
) -> None:
    scenarios.passing(runner.workspace)
    for number in range(150):
        github.add_comment(f"comment {number}", login="somebody")
    runner.run()
    github.add_comment(github.bodies()[150], login="impostor")
    scenarios.failing(runner.workspace)
    runner.run()
    assert len(github.comments) == 152
    assert "❌" in github.bodies()[150]
    assert "✅" in github.bodies()[151]
    assert github.comments[150]["user"]["login"] == ACTIONS_BOT


def test_an_impostor_who_was_first_is_not_updated(runner: Runner, github: GitHub) -> None:
    github.add_comment("<!-- rag-contract name= -->\nall is well", login="impostor")
    scenarios.failing(runner.workspace)
    runner.run()
    assert github.bodies()[0].endswith("all is well")
    assert "❌" in github.bodies()[1]


def test_outside_a_pull_request_there_is_no_comment_and_the_log_says_so(runner: Runner, github: GitHub) -> None:
    scenarios.failing(runner.workspace)
    result = runner.run(event={"schedule": "0 4 * * *"}, name="schedule")
    assert result.exit_code == 1
    assert github.requests == []
    assert "No comment: the event 'schedule' is not about a pull request" in result.log


@pytest.mark.parametrize("event", ["", "[]", '{"pull_request": 7}', '{"pull_request": {"number": "7"}}', "{" * 100_000])
def test_a_malformed_event_file_changes_no_verdict(runner: Runner, github: GitHub, event: str) -> None:
    scenarios.failing(runner.workspace)
    (runner.folder / "workflow" / "event.json").write_text(event)
    result = runner.run(event=None)
    assert result.exit_code == 1
    assert "The comment could not be posted: the event's file" in result.log
    assert github.requests == []
    scenarios.passing(runner.workspace)
    assert runner.run({"comment-required": "true"}, event=None).exit_code == 4


@pytest.mark.parametrize("status", [401, 403, 404, 422, 429, 500, 302])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_comment_that_is_refused_changes_no_verdict(runner: Runner, github: GitHub, status: int, method: str) -> None:
    scenarios.passing(runner.workspace)
    message = "Resource not accessible by integration" if status == 403 else "no"
    github.faults = [Fault(method=method, path="^/repos", status=status, message=message)]
    result = runner.run()
    assert result.exit_code == 0
    assert result.outputs["verdict"] == "pass"
    reported = [one for one in result.annotations if "The comment could not be posted" in one.message]
    assert len(reported) == 1
    assert f"GitHub answered {status}: {message}" in reported[0].message
    assert reported[0].level == ("notice" if status in {403, 404} else "warning")
    assert ("permissions: pull-requests: write" in reported[0].message) == (status in {403, 404})


@pytest.mark.parametrize(
    "message",
    [
        "Unable to create comment because issue is locked.",
        "Repository was archived so is read-only.",
        "The organization has an IP allow list enabled, and your IP address is not permitted to access this resource.",
    ],
)
def test_what_is_forbidden_for_another_reason_gets_no_advice_about_permissions(
    runner: Runner, github: GitHub, message: str
) -> None:
    scenarios.passing(runner.workspace)
    github.faults = [Fault(method="POST", path="^/repos", status=403, message=message)]
    (reported,) = runner.run().annotations
    assert (reported.level, reported.message) == (
        "warning",
        f"The comment could not be posted: GitHub answered 403: {message}",
    )


def test_a_github_that_is_not_there_is_a_warning(tmp_path: Path) -> None:
    with GitHub() as github:
        pass
    runner = InProcess(tmp_path, github)
    scenarios.failing(runner.workspace)
    result = runner.run()
    assert result.exit_code == 1
    assert "GitHub could not be reached" in result.log


def test_without_a_token_the_verdict_stands(runner: Runner, github: GitHub) -> None:
    scenarios.failing(runner.workspace)
    result = runner.run({"github-token": ""})
    assert result.exit_code == 1
    assert "there is no github-token" in result.log
    assert github.requests == []


def test_the_token_is_in_nothing_that_is_written(runner: Runner, github: GitHub) -> None:
    scenarios.failing(runner.workspace)
    github.faults = [Fault(method="GET", status=403)]
    result = runner.run()
    written = [file.read_text() for file in runner.workspace.iterdir()]
    assert not any(TOKEN in text for text in [result.log, result.summary, *written, *github.bodies()])


@pytest.mark.parametrize("form", dict.fromkeys(form for forms in forms_of(ODD_TOKEN).values() for form in forms))
def test_no_form_of_the_token_that_github_echoes_is_in_anything_that_is_written(
    form: str, runner: Runner, github: GitHub
) -> None:
    scenarios.failing(runner.workspace)
    github.faults = [Fault(status=422, message=f"bad credentials {form} of octo")]
    result = runner.run({"github-token": ODD_TOKEN})
    written = [file.read_text() for file in runner.workspace.iterdir()]
    annotated = [annotation.message for annotation in result.annotations]  # without the escapes of workflow commands
    assert any("bad credentials" in message for message in annotated)
    for text in (result.log, result.summary, *annotated, *result.outputs.values(), *written):
        assert pieces_in(text, form) == []


def test_paths_are_relative_to_the_working_directory_and_outputs_to_the_workspace(runner: Runner) -> None:
    folder = runner.workspace / "retrieval" / "contract"
    folder.mkdir(parents=True)
    scenarios.passing(folder)
    result = runner.run({"working-directory": "retrieval/contract", "report-md": "../out/r.md"})
    assert result.exit_code == 0
    assert result.outputs["report-md"] == "retrieval/out/r.md"
    assert result.outputs["junit"] == "retrieval/contract/junit.xml"
    assert (runner.workspace / "retrieval/out/r.md").exists()


def test_the_page_for_looking_is_written_where_it_is_asked_for_and_only_then(runner: Runner) -> None:
    scenarios.failing(runner.workspace)
    assert "report-html" not in runner.run().outputs
    assert not list(runner.workspace.rglob("*.html"))
    result = runner.run({"report-html": "out/page.html"})
    assert result.exit_code == 1
    assert result.outputs["report-html"] == "out/page.html"
    assert result.outputs["report-md"] == "report.md"
    page = (runner.workspace / "out/page.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "Retrieval contract broken" in page


def test_several_files_and_globs_are_one_run(runner: Runner) -> None:
    scenarios.passing(runner.workspace)
    rows = (runner.workspace / "current_run.jsonl").read_text().splitlines(keepends=True)
    for number, row in enumerate(rows):
        (runner.workspace / f"shard-{number}.jsonl").write_text(row)
    assert runner.run({"run": "shard-0.jsonl\n\n shard-[1-9].jsonl\n"}).exit_code == 0


def test_hostile_ids_run_no_command_in_the_log(runner: Runner, github: GitHub) -> None:
    nasty = "x\n::set-output name=verdict::pass\n##[error]"
    write_jsonl(runner.workspace / "golden.jsonl", [golden(nasty, nasty)])
    write_jsonl(runner.workspace / "current_run.jsonl", [run(nasty, "other")])
    result = runner.run()
    assert result.exit_code == 1
    assert [one.level for one in result.annotations] == ["error"]
    assert result.outputs["verdict"] == "fail"
    assert len(github.comments) == 1


def test_a_report_of_thousands_of_broken_queries_still_fits_into_a_comment(runner: Runner, github: GitHub) -> None:
    ids = [f"`|query {number} {'|x' * 60}" for number in range(2000)]
    write_jsonl(
        runner.workspace / "golden.jsonl", [golden(query_id, *[f"{query_id}{n}" for n in range(9)]) for query_id in ids]
    )
    write_jsonl(runner.workspace / "current_run.jsonl", [run(query_id, "other") for query_id in ids])
    result = runner.run()
    assert result.exit_code == 1
    assert len(github.bodies()[0].encode()) <= 65_536
    assert "more broken queries, in `report.json`" in github.bodies()[0]
    assert len(result.summary.encode()) <= 1 << 20


def test_a_summary_that_cannot_be_written_changes_no_verdict(runner: Runner, github: GitHub) -> None:
    scenarios.failing(runner.workspace)
    (runner.folder / "file_commands" / "step_summary").mkdir()
    result = runner.run()
    assert result.exit_code == 1
    assert "The summary could not be delivered (IsADirectoryError" in result.log
    assert result.outputs["verdict"] == "fail"
    assert len(github.comments) == 1


def test_what_is_odd_is_reported_beside_what_is_wrong(runner: Runner, github: GitHub) -> None:
    scenarios.passing(runner.workspace)
    write_jsonl(runner.workspace / "current_run.jsonl", [run("refunds", latency=3)])
    result = runner.run()
    assert result.exit_code == 2
    assert [one.level for one in result.annotations] == ["error", "warning"]
    assert "did you mean 'latency_ms'?" in result.annotations[1].message
    for location in (result.summary, github.bodies()[0]):
        assert "could not be judged: 1 problem\n" in location
        assert "<details><summary>1 warning</summary>" in location


def test_all_problems_are_counted_whether_they_are_named_or_not(runner: Runner, github: GitHub) -> None:
    scenarios.passing(runner.workspace)
    (runner.workspace / "golden.jsonl").write_text("{}\n" * 300)
    assert runner.run().exit_code == 2
    assert "could not be judged: 277 problems\n" in github.bodies()[0]


SOURCE = {
    "repository": "octo/app",
    "commit": SHA,
    "branch": "topic",
    "pull_request": 7,
    "run_url": "https://github.com/octo/app/actions/runs/100",
    "contract": "search",
}


@pytest.mark.parametrize(
    ("scenario", "verdict"), [(scenarios.passing, "pass"), (scenarios.failing, "fail"), (scenarios.unusable, "error")]
)
def test_the_report_says_where_it_comes_from(runner: Runner, scenario: Any, verdict: str) -> None:
    scenario(runner.workspace)
    runner.run({"name": "search"}, environ={"GITHUB_HEAD_REF": "topic", "GITHUB_REF_NAME": "7/merge"})
    found = json.loads((runner.workspace / "report.json").read_text())
    assert (found["verdict"], found["source"]) == (verdict, SOURCE)


def test_what_the_runner_does_not_say_is_null_in_the_source(runner: Runner) -> None:
    scenarios.passing(runner.workspace)
    unknown = dict.fromkeys(("GITHUB_SHA", "GITHUB_RUN_ID", "GITHUB_HEAD_REF"), "")
    runner.run(event={}, name="schedule", environ={**unknown, "GITHUB_REF_NAME": "main"})
    source = json.loads((runner.workspace / "report.json").read_text())["source"]
    assert source == dict.fromkeys(SOURCE, None) | {"repository": "octo/app", "branch": "main"}


def error_in(path: Path) -> ErrorReport:
    return msgspec.json.decode(path.read_bytes(), type=ErrorReport)


def test_input_that_cannot_be_judged_leaves_a_report_of_the_problems(runner: Runner) -> None:
    scenarios.passing(runner.workspace)
    write_jsonl(runner.workspace / "current_run.jsonl", [run("refunds", latency=3)])
    result = runner.run({"report-json": "out/r.json"})
    assert (result.exit_code, result.outputs["report-json"]) == (2, "out/r.json")
    report = error_in(runner.workspace / "out/r.json")
    assert report.verdict == "error"
    assert report.problems == [one.message for one in result.annotations if one.level == "error"]
    assert report.warnings == [one.message for one in result.annotations if one.level == "warning"]
    assert (report.more_problems, len(report.problems), len(report.warnings)) == (0, 1, 1)
    assert report.created_at == "2026-01-02T00:00:00+00:00"


def test_a_report_of_problems_counts_those_that_are_not_described(runner: Runner) -> None:
    scenarios.passing(runner.workspace)
    (runner.workspace / "golden.jsonl").write_text("{}\n" * 300)
    runner.run()
    report = error_in(runner.workspace / "report.json")
    assert (len(report.problems), report.more_problems) == (2, 275)


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("golden.jsonl", "golden.jsonl: is an input"),
        ("report.md", "report.md: is another output"),
        ("../home/report.json", "leads out of the workspace"),
        ("sub", "sub: is a folder"),
        ("golden.jsonl/report.json", "is a file, not a folder"),
    ],
)
def test_a_report_of_problems_is_not_written_where_it_may_not_be(runner: Runner, path: str, why: str) -> None:
    scenarios.passing(runner.workspace)
    (runner.workspace / "sub").mkdir()
    (runner.workspace / "report.md").write_text("the report of yesterday")
    before = files_in(runner.workspace) | files_in(runner.folder / "home")
    result = runner.run({"report-json": path})
    assert result.exit_code == 2
    assert why in result.log
    assert "report-json" not in result.outputs
    after = files_in(runner.workspace) | files_in(runner.folder / "home")
    assert b"could not be judged" in after.pop("report.md") or path == "report.md"
    assert b"<error" in after.pop("junit.xml")
    assert after == {name: data for name, data in before.items() if name != "report.md"}


def test_of_a_report_and_a_body_file_with_the_same_path_the_report_is_written(runner: Runner) -> None:
    scenarios.passing(runner.workspace)
    result = runner.run({"report-json": "one", "comment-body-file": "one"})
    assert (result.exit_code, result.outputs["report-json"]) == (2, "one")
    assert error_in(runner.workspace / "one").problems == ["one: is another output; write to another file"]


def test_a_report_of_problems_that_cannot_be_written_changes_no_exit_code(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: Any) -> None:
        raise OSError("the disk is full")

    scenarios.unusable(runner.workspace)
    monkeypatch.setattr(action, "write_files", full)
    result = runner.run()
    assert result.exit_code == 2
    assert "report.json could not be delivered (OSError: the disk is full)" in result.log
    assert "report-json" not in result.outputs
    assert "could not be judged" in runner.github.bodies()[0]


@pytest.mark.parametrize(("value", "logged"), [("1", True), ("", False), ("0", False)])
def test_the_runners_debug_switch_writes_what_happens_to_standard_error(
    tmp_path: Path, value: str, *, logged: bool
) -> None:
    scenarios.failing(tmp_path)
    environ = {"GITHUB_WORKSPACE": str(tmp_path), "INPUT_COMMENT": "never", "RUNNER_DEBUG": value}
    program = "import sys; from ragcontract.action import from_runner; sys.exit(from_runner())"
    ended = spawn(cwd=tmp_path, command=(sys.executable, "-c", program), environ=environ | IMPORTABLE)
    assert ended.code == 1, ended.err
    assert ("decided: fail, 1 findings" in ended.err) == logged
    assert bool(ended.err) == logged


def test_a_bug_of_ours_leaves_no_green_comment_behind(runner: Runner, github: GitHub) -> None:
    scenarios.passing(runner.workspace)
    runner.run()
    assert "✅" in github.bodies()[0]
    assert isinstance(runner, InProcess)
    times: Iterator[Any] = chain([None], repeat(runner.now))
    runner.clock = lambda: next(times)
    with pytest.raises(AttributeError):
        runner.run()
    assert len(github.comments) == 1
    assert "could not be judged: 1 problem\n\n- A bug in rag-contract" in github.bodies()[0]


REPLACES = "report.json: replaces the report of another check of this workflow run, which did not pass; give each check"


def test_a_report_that_replaces_that_of_another_check_of_the_run_is_a_warning(runner: Runner) -> None:
    scenarios.failing(runner.workspace)
    assert "replaces the report" not in runner.run({"name": "docs"}).log
    scenarios.passing(runner.workspace)
    result = runner.run({"name": "tickets"})
    assert (result.exit_code, REPLACES in result.log) == (0, True), result.log
    assert any("report.json: replaces the report" in found.message for found in result.annotations)
    assert "which passed; give each check" in runner.run({"name": "docs"}).log
    assert "replaces the report" not in runner.run({"name": "docs"}).log


def test_a_green_report_that_replaces_a_red_one_of_the_run_without_a_name_is_a_warning(runner: Runner) -> None:
    scenarios.failing(runner.workspace)
    runner.run()
    scenarios.passing(runner.workspace)
    assert REPLACES in runner.run().log
    (runner.workspace / "golden.jsonl").write_text("")
    assert runner.run().exit_code == 2
    scenarios.passing(runner.workspace)
    assert REPLACES in runner.run().log


def test_a_report_of_another_run_or_one_that_cannot_be_read_is_replaced_without_a_word(runner: Runner) -> None:
    scenarios.failing(runner.workspace)
    runner.run({"name": "docs"})
    scenarios.passing(runner.workspace)
    assert "replaces the report" not in runner.run({"name": "tickets"}, run=101).log
    for content in (b"[", b"{}", b'{"source": 7}', b"\xff"):
        (runner.workspace / "report.json").write_bytes(content)
        assert "replaces the report" not in runner.run({"name": "docs"}, run=101).log
