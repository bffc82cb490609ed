"""Which retrieval of a trace counts, and what is in its results."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from ragcontract.record.interface import CallFailed
from ragcontract.record.traces.retrievals import SEVERAL, Span, results_of_spans
from tests.record.traces.spans import documents, of, reading, retriever, span


def found(*spans: Span, **options: Any) -> list[Any] | None:
    """Return the ids of the documents of the retrieval that counts."""
    results = results_of_spans(spans, reading(**options))
    return None if results is None else [one["doc_id"] for one in results]


def failure(*spans: Span, **options: Any) -> CallFailed:
    with pytest.raises(CallFailed) as raised:
        results_of_spans(spans, reading(**options))
    return raised.value


def reranker(number: int, *found: dict[str, Any], parent: int = 0) -> Span:
    return span(number, "RERANKER", parent, attributes=documents(*found, within="reranker.output_documents"))


def test_a_result_has_what_the_span_says() -> None:
    one = of("doc1", id="chunk-7", score=0.5)
    [result] = results_of_spans([span(1, "RETRIEVER", attributes=documents(one))], reading()) or []
    assert result == {
        "doc_id": "doc1",
        "chunk_id": "chunk-7",
        "score": 0.5,
        "text": "text of doc1",
        "metadata": {"source": "doc1"},
    }


def test_a_result_has_no_fields_that_the_span_does_not_say() -> None:
    bare = span(1, "RETRIEVER", attributes=documents({"id": "doc1", "score": float("nan"), "metadata": {}}))
    assert results_of_spans([bare], reading()) == [{"doc_id": "doc1", "chunk_id": "doc1"}]


def test_chunk_ids_of_langchain_are_in_the_output() -> None:
    output = {"documents": [{"id": "chunk-7", "page_content": "text of doc1", "metadata": {}}]}
    one = retriever(1, "doc1", attributes={"output.value": json.dumps(output)})
    assert (results_of_spans([one], reading()) or [{}])[0]["chunk_id"] == "chunk-7"
    other = {"documents": [{"id": "chunk-7", "page_content": "another text"}]}
    one = retriever(1, "doc1", attributes={"output.value": json.dumps(other)})
    assert "chunk_id" not in (results_of_spans([one], reading()) or [{}])[0]


@pytest.mark.parametrize("as_text", [True, False])
def test_documents_of_opentelemetry_are_a_list_or_its_json(as_text: bool) -> None:
    items = [{"id": "c1", "score": 0.5, "content": "text", "url": "doc1"}, {"id": "c2", "metadata": {"url": "doc2"}}]
    given: Any = json.dumps(items) if as_text else items
    attributes = {"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.documents": given}
    assert results_of_spans([span(1, attributes=attributes)], reading(doc_id="metadata.url")) == [
        {"doc_id": "doc1", "chunk_id": "c1", "score": 0.5, "text": "text", "metadata": {"url": "doc1"}},
        {"doc_id": "doc2", "chunk_id": "c2", "metadata": {"url": "doc2"}},
    ]


def test_a_result_without_an_id_is_refused_with_what_its_metadata_has() -> None:
    bare = span(1, "RETRIEVER", attributes=documents({"content": "text", "metadata": {"place": "x", "title": "y"}}))
    assert "its metadata has: place, title" in str(failure(bare))
    assert found(bare, doc_id="metadata.place") == ["x"]


def test_metadata_of_any_type_and_expressions_that_fail_name_no_document() -> None:
    odd = span(1, "RETRIEVER", attributes=documents({"metadata": {"source": ["a"]}}))
    assert failure(odd).kind == "no_doc_id"
    assert failure(odd, doc_id="join('/', [metadata.path])").kind == "no_doc_id"


def test_a_trace_without_retrieval_has_no_results() -> None:
    assert found(span(1, "CHAIN"), span(2, "LLM", 1)) is None


def test_of_nested_retrievals_the_outermost_with_documents_counts() -> None:
    # As a query engine of LlamaIndex: an inner span of the same retriever has no documents.
    assert found(retriever(1, "doc1"), span(2, "RETRIEVER", 1)) == ["doc1"]
    # As an ensemble of retrievers.
    assert found(retriever(1, "doc1", "doc2"), span(2, "CHAIN", 1), retriever(3, "doc2", parent=2)) == ["doc1", "doc2"]
    assert found(span(1, "RETRIEVER"), retriever(2, "doc1", parent=1)) == ["doc1"]


@pytest.mark.parametrize("output", ["[]", '{"documents": []}'])
def test_a_retrieval_that_found_nothing_says_so(output: str) -> None:
    assert found(span(1, "RETRIEVER", attributes={"output.value": output})) == []
    assert found(span(1, "RETRIEVER", attributes={"retrieval.documents": []})) == []
    assert found(span(1, attributes={"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.documents": "[]"})) == []


def test_a_retrieval_that_says_nothing_of_documents_is_no_empty_one() -> None:
    silent = span(1, attributes={"gen_ai.operation.name": "retrieval"}, name="retrieval\x1b help")
    assert failure(silent).kind == "no_documents"
    assert "\x1b" not in str(failure(silent))
    assert found(silent, accept_empty=True) == []


def test_a_silent_retrieval_beside_others_is_a_failure_where_it_may_be_the_one_that_counts() -> None:
    spans = (span(1, "RETRIEVER"), retriever(2, "doc1"))
    assert failure(*spans).kind == failure(*spans, retrieved="first").kind == "no_documents"
    assert failure(*spans, retrieved="concat").kind == "no_documents"
    assert found(*spans, retrieved="last") == ["doc1"]
    assert found(retriever(1, "doc1"), span(2, "RETRIEVER"), retrieved="first") == ["doc1"]
    assert found(*spans, accept_empty=True) == ["doc1"]
    assert found(*spans, reranker(3, of("doc1"))) == ["doc1"]


def test_a_retrieval_that_failed_found_nothing_only_beside_others_that_found_some() -> None:
    failed = span(1, "RETRIEVER", error="timeout", attributes={"output.value": "[]"})
    assert failure(failed).kind == failure(failed, accept_empty=True).kind == "no_documents"
    assert found(failed, retriever(2, "doc1")) == ["doc1"]


def test_of_several_retrievals_somebody_must_say_which_counts() -> None:
    spans = (retriever(2, "doc2"), retriever(1, "doc1"))
    assert (failure(*spans).kind, "retrieved 2 times" in str(failure(*spans))) == (SEVERAL, True)
    assert found(*spans, retrieved="first") == ["doc1"]
    assert found(*spans, retrieved="last") == ["doc2"]
    assert found(*spans, retrieved="concat") == ["doc1", "doc2"]


def test_a_reranker_that_follows_has_the_ranking() -> None:
    spans = (retriever(1, "doc1", "doc2"), reranker(2, of("doc2", score=0.9), of("doc1", score=0.1)))
    assert found(*spans) == ["doc2", "doc1"]
    assert found(*spans, use="retriever") == ["doc1", "doc2"]
    assert found(*spans, use="reranker") == ["doc2", "doc1"]
    assert failure(retriever(1, "doc1"), use="reranker").kind == "no_documents"


def test_of_rerankers_in_a_row_the_last_one_counts() -> None:
    assert found(retriever(1, "doc1", "doc2"), reranker(2, of("doc1"), of("doc2")), reranker(3, of("doc2"))) == ["doc2"]


def test_a_reranker_before_a_retrieval_or_within_it_does_not_count() -> None:
    assert found(reranker(1, of("doc9")), retriever(2, "doc1")) == ["doc1"]
    assert found(retriever(1, "doc1"), reranker(2, of("doc9"), parent=1)) == ["doc1"]


def test_a_reranker_over_several_retrievals_is_one_ranking() -> None:
    assert found(retriever(1, "doc1"), retriever(2, "doc2"), reranker(3, of("doc2"), of("doc1"))) == ["doc2", "doc1"]


def test_several_retrievals_each_with_a_reranker_are_several() -> None:
    spans = (retriever(1, "a"), reranker(2, of("a")), retriever(3, "b"), reranker(4, of("b")))
    assert failure(*spans).kind == SEVERAL
    assert found(*spans, retrieved="last") == ["b"]


def test_a_reranker_that_says_texts_only_has_the_retrievers_metadata() -> None:
    assert found(retriever(1, "doc1", "doc2"), reranker(2, {"content": "text of doc2"})) == ["doc2"]


def silent_reranker(number: int, **fields: Any) -> Span:
    """Return a reranker of which only the input is known, as flat lists have it if nothing is left."""
    attributes = documents(of("doc1"), of("doc2"), within="reranker.input_documents")
    return span(number, "RERANKER", attributes=attributes, **fields)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({}, "the reranker span 'span 5' says nothing of documents; have it record them"),
        ({"error": "timeout"}, "the reranker span 'span 5' failed: timeout; or take the retriever's: `use: retriever`"),
        ({"dropped": 50}, "lost 50 attributes"),
    ],
    ids=["silent", "failed", "cut"],
)
@pytest.mark.parametrize(
    "before",
    [
        [retriever(1, "doc1", "doc2")],
        [retriever(1, "doc1"), retriever(2, "doc2")],
        [retriever(1, "doc1", "doc2"), reranker(2, of("doc2"), of("doc1"))],
    ],
    ids=["a retrieval", "two retrievals", "a retrieval and a reranker"],
)
def test_a_reranker_that_follows_and_has_no_documents_is_a_failure(
    before: list[Span], fields: dict[str, Any], why: str
) -> None:
    spans = (*before, silent_reranker(5, **fields))
    for retrieved in (None, "last", "concat"):
        assert why in str(failure(*spans, retrieved=retrieved))
    assert found(*spans, use="retriever", retrieved="concat") == ["doc1", "doc2"]
    if fields:
        assert why in str(failure(*spans, accept_empty=True))
    else:
        assert found(*spans, accept_empty=True) == []


def test_of_two_rerankers_in_a_row_the_last_must_say_its_documents_also_if_it_is_asked_for() -> None:
    row = (retriever(1, "doc1", "doc2"), reranker(2, of("doc2")))
    assert failure(*row, silent_reranker(3), use="reranker").kind == "no_documents"
    assert found(retriever(1, "doc1", "doc2"), silent_reranker(2, error="timeout"), reranker(3, of("doc2"))) == ["doc2"]


def test_a_silent_reranker_within_a_retrieval_or_before_it_does_not_matter() -> None:
    assert found(retriever(1, "doc1"), silent_reranker(2, parent=1)) == ["doc1"]
    assert found(silent_reranker(1), retriever(2, "doc1")) == ["doc1"]
    assert found(retriever(1, "doc1"), reranker(2, of("doc1")), silent_reranker(3, parent=2)) == ["doc1"]


def test_a_reranker_that_failed_and_has_documents_is_a_failure() -> None:
    ranked = replace(reranker(2, of("doc1")), error="timeout")
    assert "failed: timeout" in str(failure(retriever(1, "doc1", "doc2"), ranked))


@pytest.mark.parametrize("parent", [0, 4], ids=["beside the reranker", "in a tool"])
def test_a_retrieval_after_a_reranker_is_another_one(parent: int) -> None:
    tool = span(4, "TOOL")
    spans = (retriever(1, "doc1", "doc2"), reranker(2, of("doc1")), tool, retriever(5, "doc9", parent=parent))
    assert failure(*spans).kind == SEVERAL
    assert found(*spans, retrieved="first") == ["doc1"]
    assert found(*spans, retrieved="last") == ["doc9"]
    assert found(*spans, retrieved="concat") == ["doc1", "doc9"]
    assert found(*spans, use="reranker") == ["doc1"]


def test_a_retrieval_after_rerankers_in_a_row_does_not_make_them_several() -> None:
    row = (retriever(1, "doc1", "doc2"), reranker(2, of("doc2"), of("doc1")), reranker(3, of("doc2")))
    assert found(*row, retriever(5, "doc9"), retrieved="concat") == ["doc2", "doc9"]


def test_a_retrieval_after_a_reranker_must_say_its_documents() -> None:
    spans = (retriever(1, "doc1"), reranker(2, of("doc1")), span(5, "RETRIEVER"))
    assert failure(*spans).kind == failure(*spans, retrieved="last").kind == "no_documents"
    assert found(*spans, retrieved="first") == found(*spans, accept_empty=True) == ["doc1"]
    assert found(*spans[:2], span(5, "RETRIEVER", error="timeout")) == ["doc1"]


def test_a_reranker_around_a_retrieval_has_the_ranking() -> None:
    around = (reranker(1, of("doc1")), retriever(2, "doc1", "doc2", parent=1))
    assert found(*around) == ["doc1"]
    assert failure(*around, retriever(5, "doc9")).kind == SEVERAL
    assert failure(silent_reranker(1), around[1]).kind == "no_documents"


def test_a_retrieval_that_failed_and_has_documents_is_a_failure() -> None:
    failed = retriever(1, "doc1", error="timeout")
    assert "failed: timeout" in str(failure(failed))
    assert "failed: timeout" in str(failure(failed, retriever(2, "doc2")))
    assert found(failed, retriever(2, "doc2"), retrieved="last") == ["doc2"]
