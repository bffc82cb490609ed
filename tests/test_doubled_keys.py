"""A key twice in one JSON object: decoders take the last value, which may be the one that nobody meant."""

import json
from functools import cache
from pathlib import Path

import pytest

from tests.builders import Row, as_jsonl, golden, good_workspace, run
from tests.judgment_files import judged_workspace, write_good_calibration, write_judgments_on
from tests.process import rag_contract

CLEAN = '{"id": "q2", "query": "b?", "relevant_doc_ids": ["doc2"]}\n'
GOLDEN = {
    "relevant_doc_ids": '{"id": "q1", "query": "a?", "relevant_doc_ids": ["lost"], "relevant_doc_ids": ["doc1"]}',
    "doc1": '{"id": "q1", "query": "a?", "relevance": {"doc1": 3, "doc2": 1, "doc1": 1}}',
    "name": (
        '{"id": "q1", "query": "a?", "relevant_doc_ids": ["doc1"], '
        '"rules": [{"type": "must_call_tool", "name": "refund", "name": "lookup"}]}'
    ),
    "forbidden_doc_ids": (
        '{"id": "q1", "query": "a?", "relevant_doc_ids": ["doc1"], '
        '"forbidden_doc_ids": ["doc1"], "forbidden\\u005fdoc_ids" : []}'
    ),
    "note": '{"id": "q1", "query": "a?", "relevant_doc_ids": ["doc1"], "metadata": {"note": 1, "note": 2}}',
}
RUN = {
    "results": '{"query_id": "q1", "results": [{"doc_id": "x"}], "results": [{"doc_id": "doc1"}]}',
    "doc_id": '{"query_id": "q1", "results": [{"doc_id": "a"}, {"doc_id": "x", "score": 1, "doc_id": "doc1"}]}',
    "query_id": '{"query_id": "q2", "results": [{"doc_id": "doc1"}], "query_id": "q1"}',
    "id": (
        '{"query_id": "q1", "results": [{"doc_id": "doc1"}], '
        '"tool_calls": [{"name": "refund", "arguments": {"id": "1", "id": "2"}}]}'
    ),
    "faith": '{"query_id": "q1", "results": [{"doc_id": "doc1"}], "scores": {"faith": 0.1, "faith": 0.9}}',
}
LEAVE = "in one object; leave one of the two values"


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))


@pytest.mark.parametrize("command", ["check", "lint", "validate"])
@pytest.mark.parametrize(("key", "line"), GOLDEN.items(), ids=GOLDEN)
def test_a_golden_row_with_a_key_twice_is_refused_with_its_line(key: str, line: str, command: str) -> None:
    Path("golden.jsonl").write_text(f"{CLEAN}\n{line}\n")
    ended = rag_contract(command)
    assert (ended.code, f"golden.jsonl:3: duplicate key '{key}' {LEAVE}" in ended.err) == (2, True)


@pytest.mark.parametrize("command", ["check", "lint", "validate"])
@pytest.mark.parametrize(("key", "line"), RUN.items(), ids=RUN)
def test_a_run_row_with_a_key_twice_is_refused_with_its_line(key: str, line: str, command: str) -> None:
    Path("current_run.jsonl").write_text(f"{as_jsonl(run('q2', 'doc2'))}{line}\n")
    ended = rag_contract(command)
    assert (ended.code, f"current_run.jsonl:2: duplicate key '{key}' {LEAVE}" in ended.err) == (2, True)


LATE = 12_001


@cache
def many_rows(**fields: object) -> str:
    return as_jsonl(*(golden(f"g{number}", forbidden_doc_ids=["secret"]) | fields for number in range(1, LATE)))


@pytest.mark.parametrize("row", [{}, {"note of mine": 1}, {"query": "At 12:30, in short: what?"}], ids=str)
@pytest.mark.parametrize(("key", "line"), GOLDEN.items(), ids=GOLDEN)
def test_a_golden_file_is_searched_to_its_end(key: str, line: str, row: Row) -> None:
    Path("golden.jsonl").write_text(many_rows(**row) + line + "\n" + CLEAN)
    assert Path("golden.jsonl").stat().st_size > 1 << 20
    ended = rag_contract("validate")
    assert (ended.code, f"golden.jsonl:{LATE}: duplicate key '{key}' {LEAVE}" in ended.err) == (2, True)


BLANKS = {"a blank": " ", "blanks and a tab": "  \t", "a carriage return": "\r", "nothing": ""}


@pytest.mark.parametrize("blanks", BLANKS.values(), ids=BLANKS)
@pytest.mark.parametrize("name", ["forbidden_doc_ids", "forbidden\\u005fdoc_ids", "severity"])
def test_however_a_key_is_written_its_row_is_refused_in_a_long_file(name: str, blanks: str) -> None:
    rows = many_rows()
    key = json.loads(f'"{name}"')
    twice = f'"{key}"{blanks}: null, "{name}" {blanks}: null'
    Path("golden.jsonl").write_text(f'{rows}{{"id": "q1", "query" :"a?", "relevant_doc_ids": ["doc1"], {twice}}}\n')
    ended = rag_contract("validate")
    assert (ended.code, f"golden.jsonl:{LATE}: duplicate key '{key}' {LEAVE}" in ended.err) == (2, True)


def test_a_scores_file_is_searched_to_its_end() -> None:
    Path("ragcontract.yml").write_text("metrics: {faith: {from: scores}}\nminimums: {faith: 0.5}\n")
    rows = "".join(
        f'{{"query_id": "g{number}", "scores": {{"faith": 0.9, "{"x" * 100}": 1}}}}\n' for number in range(LATE)
    )
    last = '{"query_id": "q1", "scores": {"faith": 0.1, "faith": 0.9}}\n{"query_id": "q2", "scores": {"faith": 0.9}}\n'
    Path("scores.jsonl").write_text(rows + last)
    ended = rag_contract("check", "--scores", "scores.jsonl")
    assert (ended.code, f"scores.jsonl:{LATE + 1}: duplicate key 'faith' {LEAVE}" in ended.err) == (2, True)


STORED = {
    "k": ('"k":', '"k": [1], "k":'),
    "queries": ('"queries":', '"queries": [], "queries":'),
    "doc_ids": ('"doc_ids":', '"doc_ids": ["lost"], "doc_ids":'),
}


@pytest.mark.parametrize("argv", [("check",), ("baseline", "--update")], ids=" ".join)
@pytest.mark.parametrize(("key", "edit"), STORED.items(), ids=STORED)
def test_a_stored_baseline_has_each_key_once(key: str, edit: tuple[str, str], argv: tuple[str, ...]) -> None:
    text = Path("baseline.json").read_text()
    Path("baseline.json").write_text(text.replace(*edit, 1))
    ended = rag_contract(*argv)
    assert (ended.code, f"baseline.json: duplicate key '{key}' {LEAVE}" in ended.err) == (2, True)


def test_all_rows_with_a_key_twice_are_reported_with_what_else_is_wrong() -> None:
    Path("golden.jsonl").write_text(f"{GOLDEN['relevant_doc_ids']}\n{{}}\n{GOLDEN['note']}\n")
    Path("current_run.jsonl").write_text(f"{RUN['results']}\n")
    ended = rag_contract("check")
    assert ended.code == 2
    assert [line.partition(" ")[2].partition(" in one")[0].partition(";")[0] for line in ended.err.splitlines()] == [
        "golden.jsonl:1: duplicate key 'relevant_doc_ids'",
        "golden.jsonl:2: id: is missing",
        "golden.jsonl:2: query: is missing",
        "golden.jsonl:3: duplicate key 'note'",
        "current_run.jsonl:1: duplicate key 'results'",
    ]


def test_the_scores_of_a_scores_file_have_each_name_once() -> None:
    Path("ragcontract.yml").write_text("metrics: {faith: {from: scores}}\nminimums: {faith: 0.5}\n")
    Path("scores.jsonl").write_text(
        '{"query_id": "q1", "scores": {"faith": 0.1, "faith": 0.9}}\n{"query_id": "q2", "scores": {"faith": 0.9}}\n'
    )
    ended = rag_contract("check", "--scores", "scores.jsonl")
    assert (ended.code, f"scores.jsonl:1: duplicate key 'faith' {LEAVE}" in ended.err) == (2, True)


def test_a_judgment_has_each_field_once(tmp_path: Path) -> None:
    judged_workspace(tmp_path, "minimums: {context_recall: 0.5}\njudge: {uncalibrated: advisory}\n", ["Refunds."])
    write_judgments_on(tmp_path, ["Refunds."])
    line = Path("judgments.jsonl").read_text()
    Path("judgments.jsonl").write_text(line.replace('"verdict":', '"verdict": false, "verdict":'))
    ended = rag_contract("check", "--judgments", "judgments.jsonl")
    assert (ended.code, f"judgments.jsonl:1: duplicate key 'verdict' {LEAVE}" in ended.err) == (2, True)


def test_a_calibration_has_each_field_once(tmp_path: Path) -> None:
    judged_workspace(tmp_path, "minimums: {context_recall: 0.5}\n", ["Refunds."])
    write_judgments_on(tmp_path, ["Refunds."])
    write_good_calibration(tmp_path)
    text = Path("judge-calibration.json").read_text()
    Path("judge-calibration.json").write_text(text.replace('"task":', '"task": "attribution", "task":', 1))
    ended = rag_contract("check", "--judgments", "judgments.jsonl", "--calibration", "judge-calibration.json")
    assert (ended.code, f"judge-calibration.json: duplicate key 'task' {LEAVE}" in ended.err) == (2, True)


def test_keys_that_different_objects_share_and_texts_that_look_like_keys_are_fine() -> None:
    text = 'He said {"a": 1, "a": 2} and "query_id": \\ "x"'
    rows = [
        run("q1", "doc1", "doc3", response=text, tool_calls=[{"name": "a", "arguments": json.dumps({"a": {"a": 1}})}]),
        run("q2", "doc2", "doc3", response=text),
    ]
    Path("current_run.jsonl").write_text(as_jsonl(*rows))
    Path("golden.jsonl").write_text(
        as_jsonl(golden("q1", "doc1", metadata={"id": "q1", "query": text}), golden("q2", "doc2"))
    )
    assert [rag_contract(command).code for command in ("check", "lint", "validate")] == [0, 0, 0]
