"""Rules in Parquet: a struct has the fields of all rows, so that none in it says which of them a rule has."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.builders import Row, run, write_jsonl
from tests.process import Ended, rag_contract

REFUND = {"name": "refund", "arguments": {"id": 7}}
NO_REFUND = {"type": "must_not_call_tool", "tool": "refund", "arguments": {"id": 7}}
NO_GET = {"type": "must_not_call_tool", "tool": "get", "arguments": {"order": "A"}}


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def checked(*fields: Row) -> Ended:
    """Check a run in which every query calls for a refund, with golden rows in Parquet."""
    rows = [{"id": f"q{number}", "query": "?", **row} for number, row in enumerate(fields)]
    pq.write_table(pa.Table.from_pylist(rows), "golden.parquet")
    write_jsonl(Path("current_run.jsonl"), [run(row["id"], response="Ok.", tool_calls=[REFUND]) for row in rows])
    return rag_contract("check", "--golden", "golden.parquet")


def as_texts(rules: list[Any]) -> list[str]:
    return [json.dumps(rule) for rule in rules]


@pytest.mark.parametrize(
    ("field", "at", "values"),
    [
        ("rules", "rules", ([NO_REFUND], [NO_GET])),
        ("reference_tool_calls", "reference_tool_calls", ([REFUND], [{"name": "get", "arguments": {"order": "A"}}])),
        ("turns", "turns.rules", ([{"query": "?", "rules": [NO_REFUND]}], [{"query": "?", "rules": [NO_GET]}])),
    ],
)
def test_arguments_in_structs_are_refused(field: str, at: str, values: tuple[list[Any], list[Any]]) -> None:
    ended = checked(*({field: value} for value in values))
    assert ended.code == 2
    assert f"golden.parquet: {at}: has structs under 'arguments'" in " ".join(ended.err.split())
    assert "write each object as JSON text, or export JSON lines" in " ".join(ended.err.split())


def test_rules_as_json_text_have_the_arguments_that_they_name() -> None:
    ended = checked({"rules": as_texts([NO_REFUND])}, {"rules": as_texts([NO_GET])})
    assert ended.code == 1
    assert "q0" in ended.out
    assert checked({"rules": as_texts([NO_GET])}, {"rules": as_texts([NO_GET])}).code == 0


def test_rules_without_objects_in_them_may_be_structs() -> None:
    rules: list[Row] = [{"type": "must_not_call_tool", "tool": "refund"}, {"type": "must_contain", "value": "Ok"}]
    assert checked({"rules": rules[:1]}, {"rules": rules[1:]}).code == 1
    assert checked({"rules": rules[1:]}, {"rules": rules[1:]}).code == 0


def test_a_run_without_any_result_is_judged() -> None:
    write_jsonl(
        Path("golden.jsonl"), [{"id": "q0", "query": "?", "relevant_doc_ids": [], "forbidden_doc_ids": ["secret"]}]
    )
    pq.write_table(pa.Table.from_pylist([{"query_id": "q0", "results": []}]), "run.parquet")
    ended = rag_contract("check", "--run", "run.parquet")
    assert ended.code == 0, ended


MATCHERS = [{"text": "secret", "word": True}, {"regex": "s.cret"}, {"any": ["secret", {"text": "nothing"}]}]


@pytest.mark.parametrize("field", ["forbidden_claims", "forbidden_elements"])
@pytest.mark.parametrize("matcher", MATCHERS, ids=["text", "regex", "any"])
def test_a_matcher_as_json_text_forbids_what_it_says(field: str, matcher: Row) -> None:
    pq.write_table(pa.Table.from_pylist([{"id": "q0", "query": "?", field: [json.dumps(matcher)]}]), "golden.parquet")
    for answer, code in {"The secret is out.": 1, "All is well.": 0}.items():
        write_jsonl(Path("current_run.jsonl"), [run("q0", response=answer)])
        ended = rag_contract("check", "--golden", "golden.parquet")
        assert ended.code == code, ended


def test_an_object_among_texts_must_be_a_matcher() -> None:
    ended = checked({"forbidden_claims": ['{"txt": "secret"}']})
    assert (ended.code, "forbidden_claims[0]" in ended.err) == (2, True), ended
    assert checked({"forbidden_claims": ["{secret", '{"text": "{secret}"}']}).code == 0


def test_structs_among_texts_are_refused_with_what_to_write() -> None:
    ended = checked({"forbidden_claims": MATCHERS[:1]})
    assert (ended.code, "expected lists of text, with objects as JSON text" in ended.err) == (2, True), ended


def test_criteria_as_json_text_have_their_ids() -> None:
    same = json.dumps({"id": "a", "text": "is short"})
    ended = checked({"criteria": [same, json.dumps({"id": "a", "text": "is right"})]})
    assert (ended.code, "criteria[1].id: has the id 'a' of criteria[0]" in ended.err) == (2, True), ended
