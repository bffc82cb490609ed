"""A list that an expression of a target file makes lacks nothing: a recording that loses items fails, and says so."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.builders import write_jsonl
from tests.net.service import Reply, Service
from tests.process import Ended, rag_contract

HITS: list[Any] = [{"_source": {"title": "salaries"}}, {"_source": {"doc": "handbook"}}]
CALLS = [{"type": "function", "function": {"name": "get"}}, {"type": "custom", "custom": {"name": "refund"}}]
STEPS = [{"kind": "llm", "text": "hm"}, {"kind": "tool", "name": "refund", "input": {"id": 7}}]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_jsonl(tmp_path / "golden.jsonl", [{"id": "a", "query": "q", "relevant_doc_ids": ["handbook"]}])


def recorded(answer: Any, **http: Any) -> Ended:
    """Record a service that gives one answer; ``http`` are options of the target file."""
    with Service(Reply(content=answer)) as service:
        options = {"url": service.url, "json": {"q": "{query}"}, **http}
        Path("target.yml").write_text(yaml.safe_dump({"http": options}))
        return rag_contract("record", "target.yml", "--retries", "0")


def row() -> Any:
    (line,) = Path("current_run.jsonl").read_text().splitlines()
    return json.loads(line)


def refused(ended: Ended, problem: str) -> None:
    assert ended.code == 2, ended
    assert problem in ended.err
    assert not Path("current_run.jsonl").exists()


@pytest.mark.parametrize(
    "expression",
    [
        "hits.hits[*]._source.doc",
        "hits.hits[0:5]._source.doc",
        "indexes[0].hits[*]._source.doc",
        "@.hits.hits[*]._source.doc",
        "hits.hits[*]._source.not_null(doc)",
        "indexes[*].hits[*]._source.doc | []",
        "found[*]._source.doc[]",
        "found[*]._source.doc | []",
        "hits.hits[*]._source.doc | [:5]",
        "(found[*]._source.doc)[:5]",
        "found[*]._source.doc | @",
        "found[*]._source.doc | sort(@) | [:5]",
        "[found[*]._source.doc, hits.hits[*]._source.doc][]",
        "hits && hits.hits[*]._source.doc",
        "@.by_name.*.doc",
    ],
)
def test_a_hit_that_lacks_the_field_fails_wherever_the_list_is(expression: str) -> None:
    by_name = {"first": {"title": "salaries"}, "second": {"doc": "handbook"}}
    answer = {"hits": {"hits": HITS}, "indexes": [{"hits": HITS}], "found": HITS, "by_name": by_name}
    refused(recorded(answer, response={"results": expression}), "finds nothing in 1 of 2 items")


def test_hits_that_all_lack_the_field_are_not_none_found() -> None:
    ended = recorded({"hits": {"hits": HITS}}, response={"results": "hits.hits[*].doc"}, empty_results="accept")
    refused(ended, "finds nothing in 2 of 2 items")


def test_a_tool_call_of_another_kind_is_not_lost() -> None:
    answer = {"a": "ok", "choices": [{"message": {"tool_calls": CALLS}}]}
    expression = "choices[0].message.tool_calls[*].function"
    refused(recorded(answer, response={"answer": "a", "tool_calls": expression}), "finds nothing in 1 of 2 items")


@pytest.mark.parametrize(
    "expression",
    [
        "hits.hits[*]._source.doc",
        "indexes[].hits[]._source.doc",
        "indexes[*].hits[*]._source.doc | []",
        "hits.hits[?_source.doc]._source.doc | [:5]",
        "indexes[?hits] | [0].hits[*]._source.doc",
        "indexes[*].hits | [0][*]._source.doc",
    ],
)
def test_lists_of_which_some_are_missing_and_hits_that_a_filter_leaves_out_are_recorded(expression: str) -> None:
    answer = {"hits": {"hits": HITS[1:]}, "indexes": [{"took": 3}, {"hits": HITS[1:]}]}
    assert recorded(answer, response={"results": expression}).code == 0
    assert row()["results"] == [{"doc_id": "handbook"}]


@pytest.mark.parametrize(
    "condition",
    [
        "type=='tool'",
        "type=='tool' || type=='function'",
        "type=='tool' && name",
        "name && type=='tool'",
        "kind=='tool' && parameters",
        "!(type!='tool')",
        "to_string(type)=='tool'",
        "not_null(type, sort)=='tool'",
        "(type | @)=='tool'",
        "types[*].name",
    ],
)
def test_a_filter_for_a_field_that_no_step_has_loses_no_call(condition: str) -> None:
    expression = f"steps[?{condition}].{{name: name, arguments: input}}"
    ended = recorded({"answer": "ok", "steps": STEPS}, response={"answer": "answer", "tool_calls": expression})
    refused(ended, "its filter looks for what none of ")


@pytest.mark.parametrize(
    "condition",
    [
        "kind=='function' || type=='function'",
        "kind=='function' && arguments",
        "kind && name=='get'",
        "!kind",
        "not_null(type, kind)=='function'",
        "not_null(type, '')=='function'",
        "kind=='function' || name=='get'",
    ],
)
def test_a_filter_that_no_step_passes_finds_no_call(condition: str) -> None:
    expression = f"steps[?{condition}].{{name: name, arguments: input}}"
    answer = {"answer": "ok", "steps": STEPS}
    assert recorded(answer, response={"answer": "answer", "tool_calls": expression}).code == 0
    assert row()["tool_calls"] == []


def test_an_answer_with_errors_beside_a_part_of_its_data_is_not_whole() -> None:
    answer = {"data": {"hits": [{"doc": "handbook"}]}, "errors": [{"message": "shard 2 is down", "path": ["hits"]}]}
    refused(recorded(answer, response={"results": "data.hits[*].doc"}), "service_error: 1, such as query 'a'")
    assert recorded(answer, response={"results": "data.hits[*].doc", "error": "data.error"}).code == 0
    assert recorded(answer | {"errors": []}, response={"results": "data.hits[*].doc"}).code == 0
