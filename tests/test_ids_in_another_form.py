"""Ids that are written in another form than the contract's are reported once, with the way out, and never guessed."""

import json
from pathlib import Path

import pytest

from tests.builders import Row, golden, run, write_jsonl
from tests.five_queries import GOLDEN, QUERIES, RUN, five_queries
from tests.github.standin import GitHub
from tests.process import Ended, rag_contract
from tests.runner import InProcess

NOWHERE = ("--report-json", "", "--junit", "")


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    five_queries(tmp_path, monkeypatch)


def chunked(row: Row, form: str) -> Row:
    """Return a run row with its ids in another form, such as ``{}#3``."""
    return row | {"results": [{"doc_id": form.format(result["doc_id"])} for result in row["results"]]}


NEVER = "5 of 5 relevant ids never occur in the run; 5 would match"
CHUNKS = "are these chunk ids? A result has the document's id as doc_id and the chunk's as chunk_id"
SAME = "write ids the same way in the contract and in the run"
# What the run's ids are instead of those of the contract, and what is said of it.
IDS = {
    "chunk ids": ("{}#3", f"{NEVER} without the suffix #n of the run's ids (doc_0#3 for doc_0): {CHUNKS}"),
    "chunk ids with a colon": ("{}:3", f"{NEVER} without the suffix :n of the run's ids (doc_0:3 for doc_0): {CHUNKS}"),
    "numbered chunks": (
        "{}_chunk_12",
        f"{NEVER} without the suffix _chunk_n of the run's ids (doc_0_chunk_12 for doc_0): {CHUNKS}",
    ),
    "an extension": ("{}.md", f"{NEVER} without the extension .md of the run's ids (doc_0.md for doc_0): {SAME}"),
    "paths": ("kb/{}.md", f"{NEVER} without the folder and extension of the run's ids (kb/doc_0.md for doc_0): {SAME}"),
    "trailing blanks": ("{} ", f"{NEVER} without the blanks of the run's ids (doc_0␣ for doc_0): {SAME}"),
    "other ids": (
        "a{}",
        (
            "5 of 5 relevant ids never occur in the run, which has adoc_0, adoc_1, adoc_2: "
            "is it of another index, or do run and contract write the ids differently?"
        ),
    ),
}


def said_once(sentence: str, ended: Ended) -> None:
    """Assert that a sentence is once in each output: terminal, JSON warnings, Markdown, HTML."""
    assert ended.out.count(sentence) + ended.err.count(sentence) == 1
    assert [sentence] == [one for one in json.loads(Path("report.json").read_text())["warnings"] if one == sentence]
    start, end = sentence.partition(";")[0].partition(",")[0], sentence.rpartition(": ")[2].partition("?")[0]
    for name in ("report.md", "report.html"):
        page = Path(name).read_text().replace("\\_", "_").replace("&#39;", "'")
        assert (page.count(start), page.count(end)) == (1, 1), name


@pytest.mark.parametrize(("form", "expected"), IDS.values(), ids=IDS.keys())
def test_ids_in_another_form_are_said_once_in_every_output(form: str, expected: str) -> None:
    write_jsonl(Path("current_run.jsonl"), [chunked(row, form) for row in RUN])
    ended = rag_contract("check", "--report-html", "report.html")
    assert ended.code == 1
    said_once(expected, ended)


def test_ids_in_other_case_are_said_once() -> None:
    write_jsonl(Path("current_run.jsonl"), [json.loads(json.dumps(row).replace("doc_", "DOC_")) for row in RUN])
    for row in (rows_now := [json.loads(line) for line in Path("current_run.jsonl").read_text().splitlines()]):
        row["results"] = [{"doc_id": result["DOC_id"]} for result in row["results"]]
    write_jsonl(Path("current_run.jsonl"), rows_now)
    ended = rag_contract("check", "--report-html", "report.html")
    said_once(f"{NEVER} in other case (DOC_0 for doc_0): {SAME}", ended)


def test_chunk_ids_in_the_contract_are_said_once() -> None:
    write_jsonl(Path("golden.jsonl"), [golden(f"q{n}", f"doc_{n}#1") for n in range(QUERIES)])
    ended = rag_contract("check", "--report-html", "report.html")
    said_once(f"{NEVER} without their suffix #n (doc_0 for doc_0#1): {CHUNKS}", ended)


def test_it_is_said_under_the_headline_of_report_md_and_above_the_verdict_of_the_terminal() -> None:
    write_jsonl(Path("current_run.jsonl"), [chunked(row, "{}#3") for row in RUN])
    ended = rag_contract("check")
    assert Path("report.md").read_text().split("\n\n")[1].startswith("5 of 5 relevant ids never occur in the run")
    cause, verdict = ended.out.splitlines()[-2:]
    assert (cause.startswith("5 of 5 relevant"), verdict.startswith("FAIL  ")) == (True, True)


def test_a_run_that_lost_documents_is_not_taken_for_a_mistake() -> None:
    others = [run(f"q{n}", f"doc_{n}" if n < 3 else "x", "y", "z") for n in range(QUERIES)]
    write_jsonl(Path("current_run.jsonl"), others)
    ended = rag_contract("check")
    assert (ended.code, json.loads(Path("report.json").read_text())["likely_mistakes"]) == (1, [])
    assert "never occur" not in ended.out + ended.err


def test_one_document_with_a_numbered_sibling_is_not_taken_for_a_chunk() -> None:
    write_jsonl(Path("current_run.jsonl"), [run("q0", "doc_0#2", "y", "z"), *RUN[1:]])
    assert rag_contract("check").code == 1
    assert json.loads(Path("report.json").read_text())["likely_mistakes"] == []


def test_a_document_that_another_query_returns_is_not_missing_from_the_run() -> None:
    write_jsonl(Path("current_run.jsonl"), [run(f"q{n}", f"doc_{(n + 1) % QUERIES}", "DOC_0", "z") for n in range(5)])
    rag_contract("check")
    assert json.loads(Path("report.json").read_text())["likely_mistakes"] == []


def test_a_run_without_any_result_is_said_to_be_one() -> None:
    write_jsonl(Path("current_run.jsonl"), [{"query_id": f"q{n}", "results": []} for n in range(QUERIES)])
    ended = rag_contract("check", "--report-html", "report.html")
    said_once("No row of the run has any result: did the export go wrong, or is the index empty?", ended)


def test_the_terminal_shows_20_broken_queries_and_says_where_the_others_are() -> None:
    write_jsonl(Path("golden.jsonl"), [golden(f"q{n}", f"doc_{n}") for n in range(500)])
    write_jsonl(Path("current_run.jsonl"), [run(f"q{n}", f"doc_{n}#1", "x", "y") for n in range(500)])
    Path("baseline.json").unlink()
    Path("ragcontract.yml").write_text("k: 3\n")
    ended = rag_contract("check")
    assert ended.out.count("FAIL q") == 20
    assert "\n\n… and 480 more broken, see report.md\n\n" in ended.out
    assert len(ended.out.splitlines()) < 100
    assert "see other.html" in rag_contract("check", "--report-md", "", "--report-html", "other.html", *NOWHERE).out
    assert "… and 480 more broken\n" in rag_contract("check", "--report-md", "", *NOWHERE).out


def test_lint_says_once_that_ids_are_in_another_form() -> None:
    write_jsonl(Path("current_run.jsonl"), [chunked(row, "{}#3") for row in RUN])
    assert rag_contract("lint").out.splitlines() == [
        (
            "golden.jsonl:1: [never-retrieved] 5 relevant ids never occur in a run; 5 do without the suffix '#n' "
            "of the run's ids ('doc_0#3' for 'doc_0'): write ids the same way in the contract and in the run"
        ),
        "1 finding",
    ]


def test_lint_does_not_guess_a_document_that_differs_in_a_number_or_a_short_part() -> None:
    write_jsonl(Path("golden.jsonl"), [golden("q1", "policy_2024"), golden("q2", "policy_eu"), golden("q3", "refnd")])
    write_jsonl(Path("current_run.jsonl"), [run("q1", "policy_2023", "policy_us", "refund")])
    first, second, third, _ = rag_contract("lint").out.splitlines()
    assert first.endswith("is the id right, and the document in the index?")
    assert second.endswith("is the id right, and the document in the index?")
    assert third.endswith("did you mean 'refund'?")


def test_lint_folds_findings_that_repeat() -> None:
    write_jsonl(Path("golden.jsonl"), [golden(f"q{n}", f"lost_{n}") for n in range(500)])
    lines = rag_contract("lint").out.splitlines()
    assert len(lines) == 12
    assert lines[-2:] == ["… and 490 more [never-retrieved]", "500 findings"]


def test_ids_in_another_form_are_one_annotation_and_at_the_top_of_the_comment(tmp_path: Path, github: GitHub) -> None:
    runner = InProcess(tmp_path / "action", github)
    write_jsonl(runner.workspace / "golden.jsonl", GOLDEN)
    write_jsonl(runner.workspace / "current_run.jsonl", [chunked(row, "{}#3") for row in RUN])
    said = [one.message for one in runner.run().annotations if "never occur" in one.message]
    assert said == [f"{NEVER} without the suffix #n of the run's ids (doc_0#3 for doc_0): {CHUNKS}"]
    assert "\n\n5 of 5 relevant ids never occur in the run; 5 would match without the suffix `#n`" in github.bodies()[0]


def test_a_pull_request_from_behind_a_link_shows_no_ids(tmp_path: Path, github: GitHub) -> None:
    runner = InProcess(tmp_path / "action", github)
    write_jsonl(runner.workspace / "golden.jsonl", GOLDEN)
    write_jsonl(runner.workspace / "real.jsonl", [chunked(row, "{}#secret") for row in RUN])
    (runner.workspace / "run.jsonl").symlink_to("real.jsonl")
    result = runner.run({"run": "run.jsonl"})
    assert result.exit_code == 1
    assert "secret" not in result.log
