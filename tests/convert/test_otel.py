"""Runs from traces of OpenTelemetry and OpenInference."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.record.traces.retrievals import Span
from tests.builders import golden, write_jsonl
from tests.process import Ended, rag_contract
from tests.record.traces.spans import documents, otlp, retriever, sdk, span

BY_QUESTION = retriever(1, "doc1", "doc2", attributes={"input.value": " What is q1? "})
BY_ID = retriever(1, "doc2", attributes={"rag_contract.query_id": "q2"})


@pytest.fixture(autouse=True)
def _workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_jsonl(Path("golden.jsonl"), [golden(f"q{number}", query=f"What is q{number}?") for number in (1, 2)])


def trace(number: int, *spans: Span) -> list[Span]:
    """Return spans of a trace of its own."""
    return [replace(one, trace=f"{number:032x}") for one in spans]


TWO = [*trace(1, BY_QUESTION), *trace(2, BY_ID)]


def convert(*lines: Any, options: Sequence[str] = ()) -> Ended:
    """Convert a file of these lines."""
    Path("traces.jsonl").write_text(
        "".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines)
    )
    files = ("--traces", "traces.jsonl", "--golden", "golden.jsonl", "--run-out", "run.jsonl")
    return rag_contract("convert", "--from", "otel", *files, "--force", *options)


def rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path("run.jsonl").read_text().splitlines()]


def ids_in(found: list[dict[str, Any]]) -> dict[str, list[str]]:
    return {row["query_id"]: [one["doc_id"] for one in row["results"]] for row in found}


@pytest.mark.parametrize(
    "lines",
    [
        [otlp(*TWO)],
        [otlp(TWO[0]), {"resourceMetrics": []}, "\n", {"resourceLogs": []}, otlp(TWO[1])],
        [json.dumps(otlp(*TWO), indent=2)],
        [sdk(one) for one in TWO],
        [json.dumps([sdk(one) for one in TWO], indent=2)],
        [{"data": [sdk(one) for one in TWO], "next_cursor": None}],
    ],
    ids=["a line", "several lines", "a document", "spans", "a list of spans", "an answer of Phoenix"],
)
def test_traces_become_a_run_in_every_form(lines: list[Any]) -> None:
    ended = convert(*lines)
    assert ended == Ended(0, "converted 2 queries (2 with relevant documents), a run of 2 queries and 3 results\n", "")
    assert ids_in(rows()) == {"q1": ["doc1", "doc2"], "q2": ["doc2"]}
    assert rag_contract("validate", "--run", "run.jsonl").code == 0


def test_a_row_has_all_that_a_trace_says() -> None:
    chain = span(1, "CHAIN", attributes={"input.value": "What is q1?", "output.value": "An answer."})
    said = {"llm.output_messages.0.message.content": "An answer."}
    model = span(3, "LLM", 1, attributes={"llm.model_name": "m-7", **said})
    embedding = span(4, "EMBEDDING", 1, attributes={"embedding.model_name": "e5"})
    long = replace(chain, end=chain.start + 250_000_000)
    assert convert(otlp(long, retriever(2, "doc1", parent=1), model, embedding, *trace(2, BY_ID))).code == 0
    assert rows()[0] == {
        "query_id": "q1",
        "results": [{"doc_id": "doc1", "text": "text of doc1", "metadata": {"source": "doc1"}}],
        "latency_ms": 250.0,
        "response": "An answer.",
        "tool_calls": [],
        "llm_model": "m-7",
        "embedding_model": "e5",
    }


def test_a_trace_that_failed_has_an_error_and_no_answer() -> None:
    failed = span(1, "CHAIN", attributes={"input.value": "What is q1?"}, error="the model is down")
    assert convert(otlp(failed, retriever(2, "doc1", parent=1), *trace(2, BY_ID))).code == 0
    assert (rows()[0]["response"], rows()[0]["error"]) == (None, "the model is down")


def test_an_id_wins_over_a_question() -> None:
    both = retriever(1, "doc1", attributes={"input.value": "What is q1?", "rag_contract.query_id": "q2"})
    assert convert(otlp(both)).code == 0
    assert ids_in(rows()) == {"q2": ["doc1"]}


def test_spans_of_a_trace_may_be_in_several_files() -> None:
    chain = span(9, "CHAIN", attributes={"input.value": "What is q1?"})
    Path("more.jsonl").write_text(json.dumps(otlp(chain)))
    bare = replace(BY_QUESTION, parent=chain.id, attributes=retriever(1, "doc1").attributes)
    assert convert(otlp(bare, *trace(2, BY_ID)), options=("--traces", "more.jsonl")).code == 0
    assert ids_in(rows()) == {"q1": ["doc1"], "q2": ["doc2"]}


def test_other_traces_are_left_out_with_a_warning_and_missing_queries_are_named() -> None:
    other = retriever(1, "doc9", attributes={"input.value": "Of a user"})
    ended = convert(otlp(*trace(1, BY_QUESTION)), otlp(*trace(3, other)))
    assert ended.code == 0
    assert "traces.jsonl:2: 1 trace belongs to no golden query and is left out" in ended.err
    assert "'q2'" in ended.err
    assert ids_in(rows()) == {"q1": ["doc1", "doc2"]}


def test_everything_that_is_wrong_is_said_at_once() -> None:
    twice = trace(3, BY_ID)
    bare = trace(4, span(1, "RETRIEVER", attributes={"input.value": "What is q1?"}))
    ended = convert(
        otlp(*trace(2, BY_ID)), otlp(*twice), otlp(*bare), {"spans": []}, "nonsense\n", {"trace_id": 7}, [7]
    )
    assert ended.code == 2
    for line, problem in {
        2: "trace: duplicate trace of the query 'q2', first defined at traces.jsonl:1",
        3: "says nothing of documents",
        4: "has no spans; expected OTLP as JSON lines",
        5: "is not JSON",
        6: "expected an id of a trace",
        7: "has no spans",
    }.items():
        assert any(f"traces.jsonl:{line}: " in one and problem in one for one in ended.err.splitlines()), (
            line,
            ended.err,
        )
    assert not Path("run.jsonl").exists()


def test_a_question_of_two_golden_queries_belongs_to_neither() -> None:
    write_jsonl(Path("golden.jsonl"), [golden("q1", query="What is q1?"), golden("q2", query="What is q1? ")])
    ended = convert(otlp(BY_QUESTION))
    assert (ended.code, "set the attribute rag_contract.query_id" in ended.err) == (2, True)


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ([""], "traces.jsonl: is empty; expected OTLP as JSON lines"),
        ([otlp(retriever(1, "d"))], "traces.jsonl:1: no trace belongs to a golden query"),
        ([{"resourceSpans": 7}], "traces.jsonl:1: is not OTLP as JSON"),
        ([otlp(span(1, "LLM", attributes={"rag_contract.query_id": "q1"}))], "none of its spans is a retrieval"),
        (
            [otlp(retriever(1, "d" * 3_000, attributes={"rag_contract.query_id": "q1"}))],
            'query "q1": results[0].doc_id: expected',
        ),
    ],
)
def test_files_that_make_no_run_are_refused(lines: list[Any], problem: str) -> None:
    ended = convert(*lines)
    assert (ended.code, ended.out) == (2, "")
    assert problem in ended.err


def test_a_file_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "RESULTS", 1 << 20)
    assert "is larger than 1 MiB; convert it in several parts" in convert(" " * ((1 << 20) + 1)).err


def test_options_say_which_ranking_counts_and_where_ids_are() -> None:
    two = [BY_QUESTION, replace(retriever(2, "doc3"), id="b")]
    assert "convert --retrieved" in convert(otlp(*two)).err
    assert (
        convert(otlp(*two), options=("--retrieved", "last", "--doc-id", "join('/', ['help', metadata.source])")).code
        == 0
    )
    assert ids_in(rows()) == {"q1": ["help/doc3"]}


def test_a_reranker_that_left_nothing_is_no_run_of_what_the_retriever_found() -> None:
    given = documents({"id": "doc1"}, {"id": "doc2"}, within="reranker.input_documents")
    ended = convert(otlp(BY_QUESTION, span(2, "RERANKER", attributes=given), *trace(2, BY_ID)))
    assert (ended.code, "the reranker span 'span 2' says nothing of documents" in ended.err) == (2, True)
    assert "convert --use retriever" in ended.err


def test_a_retrieval_after_a_reranker_is_named_or_chosen() -> None:
    ranked = span(2, "RERANKER", attributes=documents({"id": "doc1"}, within="reranker.output_documents"))
    spans = [BY_QUESTION, ranked, retriever(3, "secret")]
    assert "retrieved 2 times for one question" in convert(otlp(*spans)).err
    assert convert(otlp(*spans), options=("--retrieved", "concat")).code == 0
    assert ids_in(rows()) == {"q1": ["doc1", "secret"]}


def test_options_of_traces_are_for_traces() -> None:
    for option in (("--use", "retriever"), ("--retrieved", "last"), ("--doc-id", "id")):
        ended = rag_contract("convert", "--from", "trec", "--run", "run.txt", "--run-out", "run.jsonl", *option)
        assert (ended.code, f"{option[0]} is for --from otel" in ended.err) == (2, True)


def test_golden_queries_are_needed() -> None:
    ended = rag_contract("convert", "--from", "otel", "--traces", "golden.jsonl", "--run-out", "run.jsonl")
    assert (ended.code, "--traces needs --golden" in ended.err) == (2, True)


def test_traces_become_a_run_of_trec_too() -> None:
    Path("traces.jsonl").write_text(json.dumps(otlp(*TWO)))
    files = ("--traces", "traces.jsonl", "--golden", "golden.jsonl", "--run-out", "run.txt")
    assert rag_contract("convert", "--from", "otel", "--to", "trec", *files).code == 0
    assert [line.split()[:3] for line in Path("run.txt").read_text().splitlines()] == [
        ["q1", "Q0", "doc1"],
        ["q1", "Q0", "doc2"],
        ["q2", "Q0", "doc2"],
    ]
