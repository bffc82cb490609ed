"""What was said and seen for a broken query: from the files of a check to its reports, or to none of them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ragcontract import pipeline
from ragcontract.core.errors import InputError
from ragcontract.core.lines import Line
from ragcontract.evaluation.source import Local
from ragcontract.github import runner_output
from ragcontract.pipeline import Outcome
from ragcontract.registry import BUILT_IN
from ragcontract.report import terminal
from ragcontract.report.formats import FORMATS
from ragcontract.runs.readers import open_baseline, open_run
from tests.builders import golden, run, write_jsonl
from tests.process import rag_contract
from tests.records import NOW
from tests.report.page import Page
from tests.toys import MustSay

REGISTRY = replace(BUILT_IN, rules=(*BUILT_IN.rules, Line(names=("must_say",), home=MustSay)))
CANARY = "canary-7f3a"
ASKED = golden(
    "refund", "doc", query="How long can I return an item?", rules=[{"type": "must_say", "phrase": "30 days"}]
)
NOW_SAYS = {
    "response": f"I cannot\nsay, {CANARY}.",
    "tool_calls": [{"name": f"find_{CANARY}", "arguments": {"text": CANARY}}],
    "retrieved_contexts": [f"A page of {CANARY}"],
    "finish_reason": CANARY,
    "label": CANARY,
    "refusal": CANARY,
    "error": CANARY,
    "mode": CANARY,
}


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A query whose answer got worse, one whose answer is fine, and one that lost its document."""
    monkeypatch.chdir(tmp_path)
    write_jsonl(tmp_path / "golden.jsonl", [ASKED, {**ASKED, "id": "fine"}, golden("lost", "doc_b")])
    fine = run("fine", "doc", response="Within 30 days.")
    write_jsonl(
        tmp_path / "current_run.jsonl",
        [run("refund", "doc", **NOW_SAYS), fine, run("lost", "x", response=f"No idea about {CANARY}.")],
    )
    good = run("refund", "doc", response=f"You have 30 days, {CANARY}.", tool_calls=[])
    write_jsonl(tmp_path / "good.jsonl", [good, fine, run("lost", "doc_b", response="Yes.")])
    return tmp_path


def check(baseline: str | None = "good.jsonl", **fields: Any) -> Outcome:
    request = pipeline.Inputs(
        golden=["golden.jsonl"],
        run=Local(open_run(["current_run.jsonl"])),
        baseline=Local(open_baseline([baseline])) if baseline else None,
        **fields,
    )
    return pipeline.check(request, now=NOW, registry=REGISTRY)


def outputs(outcome: Outcome) -> Iterator[tuple[str, str]]:
    """Yield everything that a check writes, by its name."""
    for form in FORMATS:
        yield form.name, b"".join(form.render(outcome)).decode()
    yield "terminal", terminal.check_text(outcome.report)
    yield "annotations", runner_output.of_report(outcome.report, "error", str)
    yield "summary", outcome.report.summary_line
    yield "Python", repr(outcome.report)


def queries(outcome: Outcome) -> dict[str, Any]:
    text = b"".join(next(form for form in FORMATS if form.name == "report-json").render(outcome))
    return {query["id"]: query for query in json.loads(text)["queries"]}


def test_report_json_has_what_was_said_for_a_broken_query_before_and_now() -> None:
    found = queries(check())
    assert found["refund"]["said"] == {
        "response": NOW_SAYS["response"],
        "error": CANARY,
        "mode": CANARY,
        "label": CANARY,
        "refusal": CANARY,
        "finish_reason": CANARY,
        "tool_calls": [{"name": f"find_{CANARY}", "arguments": '{"text":"' + CANARY + '"}'}],
        "contexts": [f"A page of {CANARY}"],
    }
    assert found["refund"]["baseline_said"] == {"response": f"You have 30 days, {CANARY}.", "tool_calls": []}
    assert found["refund"]["answer"] == {"status": "fail", "violations": ["must_say"]}
    assert found["fine"]["answer"] == {"status": "pass", "violations": []}
    assert "said" not in found["fine"]
    assert "answer" not in found["lost"]
    assert found["lost"]["said"] == {"response": f"No idea about {CANARY}."}


def test_the_headline_counts_the_queries_that_are_broken_in_their_answers() -> None:
    report = check().report
    assert report.broken.answers == 1
    assert report.summary_line.endswith("2 of 3 queries broken (1 in its answer), all new")


def test_where_all_are_broken_in_their_answers_the_headline_says_so(workspace: Path) -> None:
    write_jsonl(workspace / "golden.jsonl", [ASKED, {**ASKED, "id": "lost", "relevant_doc_ids": ["x"]}])
    assert "2 of 2 queries broken in their answers: 1 new" in check().report.summary_line


def test_report_md_shows_both_sides_in_a_fold() -> None:
    outcome = check()
    text = dict(outputs(outcome))["report-md"]
    assert "<summary>What was answered, before and now</summary>" in text
    lost, refund = Page(text).answered
    assert lost == [["", "Before", "Now"], ["Answer", "Yes.", f"No idea about {CANARY}."]]
    assert refund[:3] == [
        ["", "Before", "Now"],
        ["Answer", f"You have 30 days, {CANARY}.", f"I cannot say, {CANARY}."],
        ["Error", "", CANARY],
    ]
    assert ["Tool calls", "none", f'find_{CANARY} {{"text":"{CANARY}"}}'] in refund
    assert ["Contexts", "", f"A page of {CANARY}"] in refund


def test_without_a_baseline_only_the_run_is_shown() -> None:
    text = dict(outputs(check(None)))["report-md"]
    assert "<summary>What was answered</summary>" in text
    assert Page(text).answered[0] == [["", "Now"], ["Answer", f"No idea about {CANARY}."]]


def test_what_did_not_change_is_not_repeated(workspace: Path) -> None:
    lines = (workspace / "good.jsonl").read_text().replace("You have 30 days", "I cannot say")
    (workspace / "good.jsonl").write_text(lines)
    write_jsonl(workspace / "current_run.jsonl", [json.loads(line) for line in lines.splitlines()])
    assert ["Answer", f"I cannot say, {CANARY}.", "the same"] in Page(dict(outputs(check()))["report-md"]).answered[0]


def test_the_terminal_and_junit_have_the_answer_on_one_line() -> None:
    made = dict(outputs(check()))
    assert f"\n  Found: I cannot\\nsay, {CANARY}.\n" in made["terminal"]
    assert "Answer:" not in made["terminal"]  # it is what was found
    assert f"Answer: I cannot say, {CANARY}." in made["junit"]


def test_a_contract_of_documents_only_shows_no_texts(workspace: Path) -> None:
    write_jsonl(workspace / "golden.jsonl", [golden("refund", "other")])
    outcome = check()
    assert outcome.report.verdict == "fail"
    lists_all_answers = "report-v2"  # whatever the contract is about
    assert not any(CANARY in text for name, text in outputs(outcome) if name != lists_all_answers)
    assert not {"said", "baseline_said", "answer"} & queries(outcome)["refund"].keys()


@pytest.mark.parametrize("name", [*(form.name for form in FORMATS), "terminal"])
def test_texts_are_in_every_output_unless_they_are_left_out(name: str) -> None:
    assert CANARY in dict(outputs(check()))[name]


def test_with_no_answers_nothing_that_was_said_or_seen_is_in_any_output() -> None:
    outcome = check(no_answers=True)
    assert [name for name, text in outputs(outcome) if CANARY in text] == []
    assert "expected 30 days in the answer; found: (not shown)" in [one.message for one in outcome.report.failed_checks]
    whole = check()
    assert whole.report.broken == outcome.report.broken
    assert [one.status for one in whole.report.queries] == [one.status for one in outcome.report.queries]


@pytest.mark.parametrize(
    "row",
    [
        f'{{"query_id": "refund", "results": [], "response": ["{CANARY}"]}}',
        f'{{"query_id": "refund", "results": [], "response": "x", {CANARY}',
        f'{{"query_id": "refund", "results": [], "response": "x"}} {CANARY}',
        f'{{"query_id": "refund", "results": "{CANARY}"}}',
    ],
    ids=["another type", "not JSON", "goes on", "no results"],
)
def test_with_no_answers_no_problem_of_a_row_quotes_it(workspace: Path, row: str) -> None:
    lines = (workspace / "good.jsonl").read_text().splitlines()
    (workspace / "current_run.jsonl").write_text("\n".join([*lines[1:], row]))
    with pytest.raises(InputError) as whole:
        check()
    assert CANARY in str(whole.value.problems)
    with pytest.raises(InputError) as left_out:
        check(no_answers=True)
    (problem,) = left_out.value.problems
    assert problem.startswith("current_run.jsonl:3: ")
    assert problem.endswith("(not shown)")
    assert CANARY not in str((left_out.value.problems, left_out.value.warnings))


def test_the_command_line_leaves_texts_out(workspace: Path) -> None:
    modes = {"expected_mode": "abstain"}
    write_jsonl(workspace / "golden.jsonl", [golden("refund", "doc", **modes)])
    said = {**NOW_SAYS, "mode": "trustworthy"}
    write_jsonl(workspace / "current_run.jsonl", [run("refund", "doc", **said)])
    whole = rag_contract("check", "--report-html", "report.html")
    assert whole.code == 1
    reports = [Path(name) for name in ("report.md", "report.json", "report.html", "junit.xml")]
    assert all(CANARY in path.read_text() for path in reports)
    assert CANARY in whole.out
    short = rag_contract("check", "--report-html", "report.html", "--no-answers")
    assert short.code == 1
    assert not any(CANARY in path.read_text() for path in reports)
    assert CANARY not in short.out + short.err


def test_a_baseline_is_updated_without_quoting_answers(workspace: Path) -> None:
    asked = {"id": "q", "query": "How long?", "answer_must_include": ["30 days"]}
    write_jsonl(workspace / "golden.jsonl", [asked])
    write_jsonl(workspace / "current_run.jsonl", [run("q", response="30 days")])
    assert rag_contract("baseline").code == 0
    write_jsonl(workspace / "current_run.jsonl", [run("q", response=f"No idea, {CANARY}.")])
    assert CANARY in rag_contract("baseline", "--update").out
    ended = rag_contract("baseline", "--update", "--no-answers")
    assert ended.code == 1
    assert CANARY not in ended.out + ended.err
    write_jsonl(workspace / "current_run.jsonl", [{"query_id": "q", "response": [CANARY]}])
    for options in ((), ("--update",)):
        ended = rag_contract(
            "baseline", "--out", "other.json" if not options else "baseline.json", *options, "--no-answers"
        )
        assert ended.code == 2
        assert CANARY not in ended.err


def test_what_a_judge_says_of_an_answer_is_left_out_with_the_answers(workspace: Path) -> None:
    (workspace / "ragcontract.yml").write_text("metrics: {f: {from: scores}}\nminimums: {f: 0.5}\n")
    ids = ("refund", "fine", "lost")
    rows = [{"query_id": one, "scores": {"f": 0.1}, "reasons": {"f": f"It says {CANARY}."}} for one in ids]
    write_jsonl(workspace / "scores.jsonl", rows)
    asked = {"config": "ragcontract.yml", "scores": ["scores.jsonl"]}
    assert CANARY in dict(outputs(check(None, **asked)))["terminal"].partition("Why the worst scores")[2]
    for name, text in outputs(check(None, no_answers=True, **asked)):
        assert CANARY not in text, name
