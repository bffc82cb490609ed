"""The life of a comment, from run to run, through the action."""

import json
from collections.abc import Mapping
from datetime import timedelta
from itertools import permutations
from pathlib import Path

import pytest

from tests import scenarios
from tests.builders import golden, run, stored_query, write_baseline, write_jsonl
from tests.github import relayed
from tests.github.relayed import HEAD
from tests.github.standin import ACTIONS_BOT, Fault, GitHub, Sent
from tests.report.markdown.test_gfm import NASTY
from tests.report.page import Page
from tests.runner import InProcess, Result


@pytest.fixture
def runner(tmp_path: Path, github: GitHub) -> InProcess:
    return InProcess(tmp_path, github)


def headline(github: GitHub) -> str:
    assert len(github.comments) == 1
    return github.bodies()[0].split("\n")[1]


def test_what_was_broken_holds_again(runner: InProcess, github: GitHub) -> None:
    scenarios.failing(runner.workspace)
    runner.run()
    scenarios.passing(runner.workspace)
    runner.run(run=101)
    assert headline(github).startswith("### ✅ Holds again: ")
    runner.run(run=102)
    assert headline(github).startswith("### ✅ 2 queries hold")


def test_what_could_not_be_judged_holds_again(runner: InProcess, github: GitHub) -> None:
    scenarios.unusable(runner.workspace)
    runner.run()
    scenarios.passing(runner.workspace)
    runner.run(run=101)
    assert "Holds again" in headline(github)


def test_a_broken_contract_that_stays_broken_does_not_hold_again(runner: InProcess, github: GitHub) -> None:
    scenarios.failing(runner.workspace)
    for number in (100, 101):
        runner.run(run=number)
    assert "again" not in headline(github)
    assert "again" not in (runner.workspace / "report.md").read_text()


@pytest.mark.parametrize("when", ["always", "on-change", "on-failure"])
def test_no_red_comment_outlives_what_it_speaks_of(runner: InProcess, github: GitHub, when: str) -> None:
    scenarios.failing(runner.workspace)
    runner.run({"comment": when})
    assert "❌" in headline(github)
    scenarios.passing(runner.workspace)
    runner.run({"comment": when}, run=101)
    assert "✅" in headline(github)


@pytest.mark.parametrize(("late", "attempt"), [(99, 1), (99, 5), (100, 1)])
def test_a_run_that_ends_late_does_not_overwrite_a_newer_one(
    runner: InProcess, github: GitHub, late: int, attempt: int
) -> None:
    scenarios.failing(runner.workspace)
    runner.run(run=100, attempt=2)
    scenarios.passing(runner.workspace)
    result = runner.run(run=late, attempt=attempt)
    assert "A newer run has commented already" in result.log
    assert result.outputs["comment-url"] == github.comments[0]["html_url"]
    assert "❌" in headline(github)


def test_the_second_attempt_of_a_run_overwrites_the_first(runner: InProcess, github: GitHub) -> None:
    scenarios.failing(runner.workspace)
    runner.run(run=100, attempt=1)
    scenarios.passing(runner.workspace)
    runner.run(run=100, attempt=2)
    assert "✅" in headline(github)
    assert "[run 10, attempt 2](" in github.bodies()[0]


def test_on_change_leaves_a_report_that_says_the_same_alone(runner: InProcess, github: GitHub) -> None:
    scenarios.failing(runner.workspace)
    runner.run({"comment": "on-change"})
    before = github.bodies()
    runner.now += timedelta(days=3)
    rows = [run("refunds", "doc1", latency_ms=7), run("sso", "doc9", latency_ms=8)]
    write_jsonl(runner.workspace / "current_run.jsonl", rows)
    result = runner.run({"comment": "on-change"}, run=101, environ={"GITHUB_SHA": "d" * 40})
    assert list(map(relayed.said, github.bodies())) == list(map(relayed.said, before))
    assert "[run 10](" in github.bodies()[0]
    assert "The comment is up to date" in result.log
    assert result.outputs["comment-url"] == github.comments[0]["html_url"]


def test_on_change_writes_nothing_where_what_held_holds(runner: InProcess, github: GitHub) -> None:
    for number in (100, 101):
        scenarios.passing(runner.workspace)
        runner.run({"comment": "on-change"}, run=number)
    assert len(github.writes()) == 1


def test_on_change_writes_a_report_that_says_something_else(runner: InProcess, github: GitHub) -> None:
    scenarios.failing(runner.workspace)
    runner.run({"comment": "on-change"})
    write_jsonl(runner.workspace / "current_run.jsonl", [run("refunds", "doc9"), run("sso", "doc9")])
    result = runner.run({"comment": "on-change"}, run=101)
    assert "Comment updated" in result.log
    assert "### ❌ 2 of 2 queries broken" in github.bodies()[0]


def test_always_writes_the_new_time_and_run(runner: InProcess, github: GitHub) -> None:
    scenarios.passing(runner.workspace)
    runner.run()
    runner.now += timedelta(days=3)
    runner.run(run=101)
    assert "Checked 2026-01-05 00:00 UTC · [run 11]" in github.bodies()[0]


def test_on_failure_says_nothing_while_all_is_well(runner: InProcess, github: GitHub) -> None:
    scenarios.passing(runner.workspace)
    assert "nothing is broken, and there is no earlier comment" in runner.run({"comment": "on-failure"}).log
    assert github.writes() == []


def test_each_name_has_its_comment_and_matrix_jobs_do_not_meet(runner: InProcess, github: GitHub) -> None:
    for number, name in enumerate(["en", "de", "en", "de", "", "e"]):
        scenarios.failing(runner.workspace)
        runner.run({"name": name}, run=100 + number)
    assert len(github.comments) == 4
    assert [body.split("\n")[1].split(" queries broken")[0] for body in github.bodies()] == [
        "### ❌ en — 1 of 2",
        "### ❌ de — 1 of 2",
        "### ❌ 1 of 2",
        "### ❌ e — 1 of 2",
    ]


CLASH = "Two results of this workflow run have the same name and differ"


def leg(
    runner: InProcess,
    folder: str = ".",
    *,
    passing: bool,
    run: int = 100,
    attempt: int = 1,
    runner_name: str = "",
    **inputs: str,
) -> Result:
    """Run a job of a matrix, whose contract may be in a folder of its own."""
    (runner.workspace / folder).mkdir(exist_ok=True)
    (scenarios.passing if passing else scenarios.failing)(runner.workspace / folder)
    given = {name.replace("_", "-"): value for name, value in inputs.items()}
    environ = {"RUNNER_NAME": runner_name}
    return runner.run({"working-directory": folder} | given, run=run, attempt=attempt, environ=environ)


def red(github: GitHub) -> bool:
    return headline(github).startswith("### ❌ ")


@pytest.mark.parametrize("red_first", [True, False])
def test_matrix_jobs_without_names_leave_the_red_comment_and_a_warning_that_names_the_input(
    runner: InProcess, github: GitHub, *, red_first: bool
) -> None:
    first = leg(runner, "a", passing=not red_first)
    second = leg(runner, "b", passing=red_first)
    assert CLASH not in first.log
    warnings = [one.message for one in second.annotations if one.level == "warning"]
    assert len(warnings) == 1
    assert CLASH in warnings[0]
    assert "the input name" in warnings[0]
    assert red(github)
    assert second.outputs["comment-url"] == github.comments[0]["html_url"]


@pytest.mark.parametrize("runner_name", ["", "the only one"])
def test_matrix_jobs_that_differ_in_their_export_alone_leave_the_red_comment_whatever_their_runners_name(
    runner: InProcess, github: GitHub, runner_name: str
) -> None:
    leg(runner, passing=False, job_index="0", runner_name=runner_name)
    assert CLASH in leg(runner, passing=True, job_index="1", runner_name=runner_name).log
    assert red(github)


def test_contracts_with_the_same_paths_and_other_queries_leave_the_red_comment(
    runner: InProcess, github: GitHub
) -> None:
    leg(runner, passing=False)
    write_jsonl(runner.workspace / "golden.jsonl", [golden("refunds", "doc1")])
    write_jsonl(runner.workspace / "current_run.jsonl", [run("refunds", "doc1")])
    assert CLASH in runner.run().log
    assert red(github)


@pytest.mark.parametrize("attempt", [1, 2])
@pytest.mark.parametrize(
    ("input_", "value"), [("scores", "scores.jsonl"), ("repeats", "true"), ("tag", "t"), ("job-index", "1")]
)
def test_a_check_that_differs_in_one_input_does_not_replace_the_red_comment(
    runner: InProcess, github: GitHub, input_: str, value: str, attempt: int
) -> None:
    scenarios.failing(runner.workspace)
    runner.run()
    scenarios.passing(runner.workspace)
    write_jsonl(runner.workspace / "golden.jsonl", [golden("refunds", "doc1", tags=["t"]), golden("sso", "doc2")])
    write_jsonl(runner.workspace / "scores.jsonl", [{"query_id": "refunds", "scores": {"faithfulness": 1}}])
    result = runner.run({input_: value}, attempt=attempt)
    assert result.outputs["verdict"] == "pass"
    assert CLASH in result.log
    assert red(github)


@pytest.mark.parametrize("files", [{"judgments": "j.jsonl"}, {"judgments": "j.jsonl", "calibration": "c.json"}])
def test_a_second_attempt_with_judgments_replaces_none_without(
    runner: InProcess, github: GitHub, files: Mapping[str, str]
) -> None:
    scenarios.failing(runner.workspace)
    runner.run()
    result = runner.run(files, attempt=2)  # there are no such files: less bad than a broken contract
    assert result.exit_code == 2
    assert CLASH in result.log
    assert red(github)


def test_two_steps_of_one_job_that_differ_in_nothing_leave_the_red_comment(runner: InProcess, github: GitHub) -> None:
    leg(runner, passing=False)
    assert CLASH in leg(runner, passing=True).log
    assert red(github)
    assert CLASH in leg(runner, passing=True, attempt=2).log  # of which of the two is this the second attempt?
    assert red(github)


def test_two_steps_of_one_job_are_distinguished_in_its_second_attempt(runner: InProcess, github: GitHub) -> None:
    for attempt, outcomes in ((1, (False, True)), (2, (True, True))):
        for step, passing in zip(("__org_rag-contract", "__org_rag-contract_2"), outcomes, strict=True):
            (scenarios.passing if passing else scenarios.failing)(runner.workspace)
            runner.run(attempt=attempt, environ={"GITHUB_ACTION": step})
    assert "Holds again" in headline(github)


def test_the_next_run_of_the_same_job_writes_what_it_finds(runner: InProcess, github: GitHub) -> None:
    leg(runner, "a", passing=False)
    leg(runner, "b", passing=True)
    assert CLASH not in leg(runner, "a", passing=True, run=101).log
    assert "Holds again" in headline(github)


@pytest.mark.parametrize("runner_name", ["", "runner 2"])
def test_the_second_attempt_of_a_red_job_of_a_matrix_turns_its_comment_green(
    runner: InProcess, github: GitHub, runner_name: str
) -> None:
    leg(runner, passing=False, job_index="0")
    leg(runner, passing=True, job_index="1")
    result = leg(runner, passing=True, job_index="0", attempt=2, runner_name=runner_name)
    assert "Comment updated" in result.log
    assert CLASH not in result.log
    assert "Holds again" in headline(github)
    assert CLASH in leg(runner, passing=False, job_index="1", attempt=3).log
    assert red(github)


@pytest.mark.parametrize("first", ["0", "1"])
def test_of_two_red_jobs_of_a_matrix_both_must_be_repaired_before_the_comment_is_green(
    runner: InProcess, github: GitHub, first: str
) -> None:
    leg(runner, passing=False, job_index="0")
    leg(runner, passing=False, job_index="1")
    assert CLASH in leg(runner, passing=True, job_index=first, attempt=2).log
    assert red(github)
    assert CLASH not in leg(runner, passing=True, job_index="10"[int(first)], attempt=3).log
    assert "Holds again" in headline(github)


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_the_jobs_of_a_matrix_may_end_in_any_order_in_every_attempt(
    runner: InProcess, github: GitHub, order: tuple[int, ...]
) -> None:
    for attempt, broken in enumerate([{0, 1}, {1}, set(), {2}, set()], 1):
        for index in order:
            leg(runner, passing=index not in broken, job_index=str(index), attempt=attempt)
        assert red(github) == bool(broken), attempt


def test_a_red_job_that_leaves_its_comment_unchanged_is_not_replaced_by_a_green_one(
    runner: InProcess, github: GitHub
) -> None:
    leg(runner, passing=False, job_index="0", comment="on-change")
    assert "up to date" in leg(runner, passing=False, job_index="0", comment="on-change", run=101).log
    assert CLASH in leg(runner, passing=True, job_index="1", comment="on-change", run=101).log
    assert red(github)


def test_a_second_workflow_distinguishes_the_jobs_of_the_first_by_the_reports_it_reads(
    runner: InProcess, github: GitHub
) -> None:
    github.add_pull(7, sha=HEAD, head="stranger/app")
    for folder, passing, attempt in (("a", False, 1), ("b", True, 1), ("b", True, 2), ("a", True, 2)):
        report = json.dumps(relayed.passing() if passing else relayed.failing())
        (runner.workspace / folder).mkdir(exist_ok=True)
        (runner.workspace / folder / "report.json").write_text(report)
        result = relayed.posted(runner, {"report-json": f"{folder}/report.json"}, run_attempt=attempt)
        assert (CLASH in result.log) == (folder == "b")
        assert red(github) == ((folder, attempt) != ("a", 2))


@pytest.mark.parametrize("attempt", [1, 2])
def test_a_comment_of_an_earlier_version_is_found_and_replaced(runner: InProcess, github: GitHub, attempt: int) -> None:
    fields = "run=99.1 state=fail content=0123456789abcdef contract=0123456789abcdef.0123456789abcdef"
    github.add_comment(f"<!-- rag-contract name= {fields} -->\nold", login=ACTIONS_BOT)
    assert CLASH not in leg(runner, passing=True, run=98 + attempt, attempt=3 - attempt).log
    assert "Holds again" in headline(github)


def test_spare_comments_that_cannot_be_deleted_take_no_time_from_the_result(runner: InProcess, github: GitHub) -> None:
    scenarios.failing(runner.workspace)
    for number in range(20):
        github.add_comment(f"<!-- rag-contract name= run={number}.1 state=pass content=0 -->", login=ACTIONS_BOT)
    github.faults = [Fault(method="DELETE", kind="hang")]
    result = runner.run({"github-timeout": "2"})
    assert "Comment updated" in result.log
    assert result.outputs["comment-url"] == github.comments[19]["html_url"]
    assert "❌" in github.bodies()[19]


def test_a_marker_that_somebody_has_planted_is_not_taken_for_ours(runner: InProcess, github: GitHub) -> None:
    scenarios.failing(runner.workspace)
    runner.run()
    ours = github.comments.pop()["body"]
    for login in ("impostor", "github-actions", "dependabot[bot]"):
        github.add_comment(ours.replace("run=100.1", "run=999999.1"), login=login)
    planted = github.bodies()
    runner.run(run=101)
    assert github.bodies()[:3] == planted
    assert github.comments[3]["user"]["login"] == ACTIONS_BOT
    runner.run(run=102)
    assert len(github.comments) == 4


@pytest.mark.parametrize("number", ["55.", ".1", "x.1", "999999.x", "999999"])
def test_a_comment_whose_run_cannot_be_read_is_older_than_any(number: str, runner: InProcess, github: GitHub) -> None:
    scenarios.failing(runner.workspace)
    runner.run(run=100)
    github.add_comment(github.bodies()[0].replace("run=100.1", f"run={number}"), login=ACTIONS_BOT)
    assert runner.run(run=101).exit_code == 1
    assert "run=101.1" in github.bodies()[0]
    assert len(github.comments) == 1


def test_its_comment_is_found_on_the_third_page(runner: InProcess, github: GitHub) -> None:
    scenarios.passing(runner.workspace)
    for number in range(230):
        github.add_comment(f"comment {number}", login=ACTIONS_BOT)
    runner.run()
    for number in range(90):
        github.add_comment(f"comment {number}", login=ACTIONS_BOT)
    runner.run(run=101)
    assert len(github.comments) == 321
    assert "run=101.1" in github.bodies()[230]


def test_after_a_race_of_two_first_runs_one_comment_is_left(runner: InProcess, github: GitHub) -> None:
    scenarios.failing(runner.workspace)
    runner.run(run=100)
    theirs = github.comments.pop()["body"]

    def other_run_comments(sent: Sent) -> None:
        if sent.method == "POST" and "comments" in sent.path and not github.comments:
            github.add_comment(theirs, login=ACTIONS_BOT)

    github.meanwhile = other_run_comments
    runner.run(run=101)
    assert len(github.comments) == 1
    assert "run=101.1" in github.bodies()[0]


@pytest.mark.parametrize("when", ["always", "on-change", "on-failure"])
def test_a_run_of_an_older_commit_that_ends_late_leaves_no_red_comment(
    runner: InProcess, github: GitHub, when: str
) -> None:
    github.add_pull(7, sha="b" * 40)
    scenarios.failing(runner.workspace)
    old = {"pull_request": {"number": 7, "head": {"sha": "a" * 40}}}
    result = runner.run({"comment": when, "comment-required": "true"}, event=old)
    assert result.exit_code == 1
    assert "No comment: the pull request has a newer commit by now" in result.log
    assert github.comments == []


def test_a_post_that_was_received_although_no_answer_came_makes_no_second_comment(
    runner: InProcess, github: GitHub
) -> None:
    github.faults = [Fault(method="POST", path="^/repos", kind="do and drop")]
    scenarios.failing(runner.workspace)
    result = runner.run()
    assert result.exit_code == 1
    assert result.outputs["comment-url"] == github.comments[0]["html_url"]
    assert "could not" not in result.log
    assert len(github.comments) == 1


def test_requests_are_sent_one_after_the_other(runner: InProcess, github: GitHub) -> None:
    scenarios.failing(runner.workspace)
    runner.run()
    assert github.most_at_once == 1


def test_the_foot_says_how_old_the_baseline_is(runner: InProcess, github: GitHub) -> None:
    scenarios.passing(runner.workspace)
    write_baseline(
        runner.workspace / "baseline.json",
        stored_query("refunds", "doc1"),
        stored_query("sso", "doc2"),
        created_at="2025-12-03T00:00:00+00:00",
    )
    runner.run()
    assert "<sub>Checked 2026-01-02 00:00 UTC · baseline made 30 days ago · [run 10]" in github.bodies()[0]


def huge(runner: InProcess, count: int, *, passing: int = 0, word: str = "query") -> None:
    """Broken queries, and passing ones that moved; each has a tag of its own."""
    ids = [f"{word} {number}" for number in range(count + passing)]
    write_jsonl(runner.workspace / "golden.jsonl", [golden(one, "doc1", tags=[one]) for one in ids])
    rows = [run(one, "x", *(["doc1"] if number >= count else [])) for number, one in enumerate(ids)]
    write_jsonl(runner.workspace / "current_run.jsonl", rows)
    stored = [stored_query(one, "doc1", query=golden(one)["query"]) for one in ids]
    write_baseline(runner.workspace / "baseline.json", *stored)


@pytest.mark.parametrize("word", ["query", "`|<details>", "ü✅" * 20, "&<>$@" * 15, *NASTY[:3], "```\n" * 9])
def test_a_huge_contract_fits_and_is_whole(runner: InProcess, github: GitHub, word: str) -> None:
    huge(runner, 600, passing=600, word=word)
    result = runner.run({"name": word})
    assert result.exit_code == 1
    body = github.bodies()[0]
    assert len(body.encode()) < 65_536
    page = Page(body)  # fails where anything is left open
    assert page.tables[0][0][0] == "Metric"
    assert "more broken queries, in `report.json`." in body
    assert body.rstrip().endswith("</sub>")
    assert len(result.summary.encode()) <= 1 << 20


def test_of_a_large_contract_the_details_of_what_passes_go_first(runner: InProcess, github: GitHub) -> None:
    huge(runner, 100, passing=900, word="✅" * 45)
    runner.run()
    body = github.bodies()[0]
    assert "<details>" not in body
    assert len(Page(body).broken) == 100
    assert "<details>" in (runner.workspace / "report.md").read_text()


def test_the_report_in_the_comment_is_that_of_the_files(runner: InProcess, github: GitHub) -> None:
    scenarios.failing(runner.workspace)
    runner.run()
    assert (runner.workspace / "report.md").read_text() in github.bodies()[0]
    assert json.loads((runner.workspace / "report.json").read_text())["verdict"] == "fail"
