"""Where the fields of a response are found in an answer, and what is said if they are not."""

import re
from typing import Any

import pytest
from msgspec import UNSET

from ragcontract.record.adapters.service_client import AnswerMapping, EmptyResults, Fields
from ragcontract.record.interface import CallFailed, Response
from ragcontract.record.returned.result_forms import DocumentIds


def mapping(doc_id: str | None = None, empty: EmptyResults = "error", **fields: str) -> AnswerMapping:
    return AnswerMapping(
        Fields(**fields),
        doc_ids=DocumentIds(doc_id),
        empty=empty,
    )


def response(content: Any, **more: Any) -> Response:
    found = mapping(**more)
    assert not found.problems
    return found.response(content)


def failure(content: Any, **more: Any) -> CallFailed:
    with pytest.raises(CallFailed) as raised:
        response(content, **more)
    assert not raised.value.again
    return raised.value


def test_results_take_the_form_that_the_expression_gives_them() -> None:
    hits = [{"_id": "c1", "_score": 2.5, "_source": {"doc": "d1", "text": "a"}}, {"_source": {"doc": 7}}]
    expression = "hits.hits[*].{doc_id: _source.doc, score: _score, chunk_id: _id, text: _source.text, more: _id}"
    found = response({"hits": {"hits": hits}}, results=expression)
    assert found == Response(
        results=[{"doc_id": "d1", "score": 2.5, "chunk_id": "c1", "text": "a"}, {"doc_id": 7}], response=UNSET
    )


def test_results_may_be_ids() -> None:
    assert response({"ids": ["a", 7]}, results="ids").results == [{"doc_id": "a"}, {"doc_id": "7"}]


@pytest.mark.parametrize(
    ("doc_id", "result", "expected"),
    [
        (None, {"doc_id": "d", "metadata": {"source": "s"}}, "d"),
        (None, {"id": "i", "metadata": {"source": "s"}}, "s"),
        (None, {"id": 5}, "5"),
        ("metadata.source", {"doc_id": "d", "metadata": {"source": "s"}}, "d"),
        ("metadata.url", {"id": "i", "metadata": {"source": "s", "url": "u"}}, "u"),
    ],
)
def test_the_document_is_the_one_that_the_result_or_the_user_says(
    doc_id: str | None, result: dict[str, Any], expected: str
) -> None:
    results = response([result], results="@", doc_id=doc_id).results
    assert results is not None
    assert results[0]["doc_id"] == expected


def test_all_fields_of_an_answer_are_read() -> None:
    content = {
        "text": "30 days", "calls": [{"name": "f"}], "turns": [{"role": "user"}], "seen": ["a"], "m": "x", "u": {"t": 1}
    }  # fmt: skip
    fields = {"answer": "text", "tool_calls": "calls", "messages": "turns", "retrieved_contexts": "seen"}
    more = dict.fromkeys(("mode", "label", "refusal", "finish_reason", "llm_model"), "m")
    found = response(content, **fields, **more, usage="u", metadata="u", error="failed")
    assert found == Response(
        response="30 days",
        tool_calls=[{"name": "f"}],
        messages=[{"role": "user"}],
        retrieved_contexts=["a"],
        mode="x",
        label="x",
        refusal="x",
        finish_reason="x",
        llm_model="x",
        usage={"t": 1},
        metadata={"t": 1},
    )


def test_an_answer_that_is_not_there_is_null_and_one_that_nobody_asked_for_is_absent() -> None:
    assert response({"results": []}, answer="text").response is None
    assert response({"results": []}, results="results").response is UNSET


def test_results_that_are_not_there_are_no_empty_results() -> None:
    found = failure({"hits": [], "b\n": 1}, results="hist")
    assert found.kind == "no_results"
    assert str(found) == (
        r"response.results: `hist` finds nothing in the answer, which has: b\n, hits; "
        "if that means that nothing was found, add `empty_results: accept`"
    )
    assert "no keys, because it is a list" in str(failure([], results="hits"))
    assert response({"hits": []}, results="hits").results == []
    assert response({"hits": None}, results="hits", empty="accept").results == []


@pytest.mark.parametrize(
    ("expression", "content", "problem"),
    [
        ("hits[*].doc", {"hits": [{"d": "a"}]}, "finds nothing in 1 of 1 items"),
        ("hits[*].doc", {"hits": [{"doc": "a"}, {"id": "b"}]}, "finds nothing in 1 of 2 items"),
        ("hits[*]", {"hits": ["a", None]}, "finds nothing in 1 of 2 items"),
        ("hits[].doc", {"hits": [{"doc": "a"}, "b"]}, "finds nothing in 1 of 2 items"),
        ("hits[:1].doc", {"hits": [{"d": "a"}]}, "finds nothing in 1 of 1 items"),
        ("hits.*.doc", {"hits": {"a": {"d": "a"}}}, "finds nothing in 1 of 1 items"),
        ("hits[*].doc.{doc_id: id}", {"hits": [{"d": {"id": "a"}}]}, "finds nothing in 1 of 1 items"),
        ("hits[].docs[].id", {"hits": [{"d": []}]}, "finds nothing in 1 of 1 items"),
        ("hits[*].doc | sort(@)", {"hits": [{"doc": "a"}, {"d": "b"}]}, "finds nothing in 1 of 2 items"),
        ("reverse(hits[*].doc)", {"hits": [{"doc": "a"}, {"d": "b"}]}, "finds nothing in 1 of 2 items"),
        ("found || hits[*].doc", {"hits": [{"d": "a"}]}, "finds nothing in 1 of 1 items"),
        ("[0] | hits[*].doc", [{"hits": [{"d": "a"}]}], "finds nothing in 1 of 1 items"),
        ("hits[?doc].doc", {"hits": [{"d": "a"}]}, "its filter looks for what none of 1 items has"),
        ("hits[?kind=='doc'].id", {"hits": [{"type": "doc", "id": "a"}]}, "looks for what none of 1 items has"),
        ("hits[?score > `1`].doc", {"hits": [{"score": 2, "d": "a"}]}, "finds nothing in 1 of 1 items"),
    ],
)
def test_items_that_an_expression_drops_are_no_empty_results(expression: str, content: Any, problem: str) -> None:
    found = failure(content, results=expression)
    assert found.kind == "bad_answer"
    assert str(found).startswith(f"response.results: `{expression}`: ")
    assert problem in str(found)


def test_tool_calls_that_an_expression_drops_are_not_none() -> None:
    for expression in ("calls[*].function", "calls[].function.{name: name}"):
        found = failure({"a": "x", "calls": [{"fn": {"name": "refund"}}]}, answer="a", tool_calls=expression)
        assert "finds nothing in 1 of 1 items; correct it" in str(found)
    assert response({"a": "x", "calls": []}, answer="a", tool_calls="calls[*].function").tool_calls == []
    assert response({"a": "x"}, answer="a", tool_calls="calls[*].function").tool_calls is None


@pytest.mark.parametrize(
    ("expression", "content", "expected"),
    [
        ("hits[*].doc", {"hits": []}, []),
        ("hits[?doc].doc", {"hits": [{"doc": "a"}, {"id": "b"}]}, ["a"]),
        ("hits[?score > `1`].doc", {"hits": [{"score": 0, "doc": "a"}]}, []),
        ("hits[?!deleted].doc", {"hits": [{"deleted": True, "doc": "a"}]}, []),
        ("events[?sources] | [0].sources", {"events": [{"text": "x"}, {"sources": ["a"]}]}, ["a"]),
        ("events[*].sources | [0]", {"events": [{"text": "x"}, {"sources": ["a"]}]}, ["a"]),
        ("events[].sources[].id", {"events": [{"text": "x"}, {"sources": [{"id": "a"}]}]}, ["a"]),
    ],
)
def test_items_that_an_expression_leaves_out_on_purpose_are_left_out(
    expression: str, content: Any, expected: list[str]
) -> None:
    results = response(content, results=expression).results or []
    assert [one["doc_id"] for one in results] == expected


def test_where_missing_results_mean_none_items_without_an_id_are_still_no_empty_results() -> None:
    for expression in ("events[?sources] | [0].sources", "events[].sources[].id"):
        assert response({"events": [{"text": "x"}]}, results=expression, empty="accept").results == []
    with pytest.raises(CallFailed, match="1 of 1 items"):
        response({"hits": [{"d": "a"}]}, results="hits[*].doc", empty="accept")


@pytest.mark.parametrize("error", ["timeout", {"code": 500}, True])
def test_an_error_at_the_top_of_an_answer_is_a_failure_if_the_mapping_names_none(error: object) -> None:
    content = {"answer": "x", "error": error, "status": {"error": None}}
    assert failure(content, answer="answer").kind == "service_error"
    assert response(content, answer="answer", error="status.error").response == "x"
    nothings: tuple[object, ...] = (None, "", False, {}, [])
    for nothing in nothings:
        assert response({**content, "error": nothing}, answer="answer").response == "x"


def test_an_error_in_an_answer_is_a_failure() -> None:
    found = failure({"error": {"message": "index\nis gone"}, "hits": []}, results="hits", error="error.message")
    assert found.kind == "service_error"
    assert str(found) == r"the service answered with an error: index\nis gone"
    nothings: list[Any] = [None, False, "", {}]
    for nothing in nothings:
        assert response({"error": nothing, "hits": []}, results="hits", error="error").results == []


@pytest.mark.parametrize(
    ("content", "fields", "message"),
    [
        ({"r": "a"}, {"results": "r"}, "response.results: `r`: expected a list, found text"),
        ({"r": [True]}, {"results": "r"}, "expected ids or objects with a doc_id, found true or false at [0]"),
        ({"r": [{"doc_id": "a", "score": "0.9"}]}, {"results": "r"}, "[0].score: expected a number, found '0.9'"),
        ({"r": [{"doc_id": "a", "score": float("nan")}]}, {"results": "r"}, "[0].score: expected a number, found nan"),
        ({"a": ["x"]}, {"answer": "a"}, "response.answer: `a`: expected text, found a list"),
        (
            {"a": "x", "c": [1]},
            {"answer": "a", "tool_calls": "c"},
            "response.tool_calls: `c`: expected a list of objects",
        ),
        ({"a": "x", "c": 1}, {"answer": "a", "usage": "c"}, "response.usage: `c`: expected an object, found a number"),
        ({"a": "x"}, {"answer": "sum(a)"}, "response.answer: `sum(a)` fails: "),
    ],
)
def test_what_has_a_wrong_form_is_said_with_its_expression(content: Any, fields: dict[str, str], message: str) -> None:
    found = failure(content, **fields)
    assert found.kind == "bad_answer"
    assert message in str(found)


def test_a_result_without_a_document_says_what_it_has() -> None:
    found = failure([{"metadata": {"page": 3}}], results="@")
    assert found.kind == "no_doc_id"
    assert "its metadata has: page" in str(found)


def test_a_result_whose_document_is_not_where_the_expression_looks_names_the_expression() -> None:
    found = failure([{"doc": "a", "text": "A text."}], results="[*].{doc_id: dok, text: text}")
    assert found.kind == "no_doc_id"
    assert str(found) == "response.results: `[*].{doc_id: dok, text: text}`: [0].doc_id: finds nothing"


def test_expressions_that_are_none_are_all_named() -> None:
    found = mapping(tool_calls="a[", usage="b..c").problems
    assert len(found) == 3
    assert found[0].startswith("response.tool_calls: is not a JMESPath expression: 'a['")
    assert found[1].startswith("response.usage: is not a JMESPath expression: 'b..c'")
    assert re.search("where the results are", found[2])
