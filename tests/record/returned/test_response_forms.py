"""Whatever a system may return is read as a response: each form of the table, and what is none of them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
import pytest
from msgspec import UNSET, Struct

from ragcontract.core.errors import InputError
from ragcontract.record.interface import CallFailed, Response
from ragcontract.record.returned.response_forms import FORMS, response_of
from ragcontract.record.returned.result_forms import DocumentIds

IDS = DocumentIds(None)


class Document:
    """As LangChain's: found by its attributes."""

    def __init__(self, text: str, *, own: str | None = None, **metadata: Any) -> None:
        self.id, self.page_content, self.metadata = own, text, metadata


class Node:
    """As LlamaIndex's."""

    def __init__(self, node_id: str, document: str | None, text: str) -> None:
        self.node_id, self.ref_doc_id, self.metadata, self._text = node_id, document, {"page": 2}, text

    def get_content(self) -> str:
        return self._text


class NodeWithScore:
    def __init__(self, node: Node, score: float | None) -> None:
        self.node, self.score = node, score


class EngineResponse:
    def __init__(self, response: str, *nodes: NodeWithScore) -> None:
        self.response, self.source_nodes = response, list(nodes)


class StreamingResponse(EngineResponse):
    def get_response(self) -> EngineResponse:
        return EngineResponse("whole", *self.source_nodes)


class Grade:
    """A record of pydantic, which iterates over the names and values of its fields."""

    model_fields = ("fits",)
    fits = True

    def __iter__(self) -> Iterator[tuple[str, bool]]:
        yield "fits", self.fits


class Said:
    """A message of LangChain, whose text is also an attribute."""

    model_fields = ("type", "content", "tool_calls")
    type = "ai"
    content = text = "x"
    tool_calls = ({"name": "find", "args": {}},)


@dataclass
class ToolCallResult:
    tool: str
    args: dict[str, Any]


@dataclass
class PipelineOutput:
    """As the eval harness has it."""

    answer: str
    retrieved_contexts: list[str] = field(default_factory=list)
    tool_calls: list[ToolCallResult] = field(default_factory=list)
    turn_history: list[dict[str, str]] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)


class PlainOutput:
    """The same, without a dataclass."""

    def __init__(self) -> None:
        self.answer, self.retrieved_contexts = "yes", ["a text"]


class Hit(NamedTuple):
    doc_id: str
    score: float


class Found(Struct):
    doc_id: str
    text: str


class Whole:
    """As a scalar of numpy."""

    def __init__(self, value: float) -> None:
        self.value, self.size = value, 1

    def item(self) -> float:
        return self.value


class Object:
    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


@dataclass
class Message:
    type: str
    content: Any
    tool_calls: list[Any] = field(default_factory=list)


@dataclass
class Cut(Message):
    invalid_tool_calls: list[Any] = field(default_factory=list)


def generated() -> Iterator[str]:
    yield from ("a", "b")


CALL = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{}"}}
USE = {"type": "tool_use", "id": "c1", "name": "find", "input": {}}
COMPLETION = {
    "choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "yes", "tool_calls": [CALL]}}],
    "model": "m-1",
    "usage": {"total_tokens": 7},
}
COMPLETED = {
    "response": "yes",
    "tool_calls": [CALL],
    "finish_reason": "stop",
    "llm_model": "m-1",
    "usage": {"total_tokens": 7},
}
AS_OBJECT = Object(choices=[Object(message=Object(content="yes", tool_calls=None), finish_reason="stop")], model="m-1")
CHROMA = {
    "ids": [["c1", "c2"]],
    "distances": [[0.25, 0.5]],
    "documents": [["one", "two"]],
    "metadatas": [[{"source": "a.md"}, {"source": "b.md"}]],
    "embeddings": None,
}
TURNS = [
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Hello!"},
    {"role": "user", "content": "And?"},
    {"role": "assistant", "content": "That is all.", "tool_calls": [CALL]},
]
AGENT = {
    "messages": [Message("human", "And?"), Message("ai", "", [{"name": "find", "args": {}}]), Message("ai", "So.")]
}

TABLE: list[tuple[str, object, Mapping[str, Any]]] = [
    ("a response", Response(results=[{"doc_id": "a"}]), {"results": [{"doc_id": "a"}]}),
    ("ids", ["a", "b"], {"results": [{"doc_id": "a"}, {"doc_id": "b"}]}),
    ("numbers as ids", (7, 8), {"results": [{"doc_id": 7}, {"doc_id": 8}]}),
    ("a generator", generated(), {"results": [{"doc_id": "a"}, {"doc_id": "b"}]}),
    ("nothing found", [], {"results": []}),
    ("keys of a mapping", {"a": 1}.keys(), {"results": [{"doc_id": "a"}]}),
    ("ids with scores", [("a", 0.5)], {"results": [{"doc_id": "a", "score": 0.5}]}),
    ("mappings", [{"doc_id": "a", "text": "A"}], {"results": [{"doc_id": "a", "text": "A"}]}),
    (
        "a mapping with an id",
        [{"id": "a", "score": 1.0}],
        {"results": [{"chunk_id": "a", "score": 1.0, "doc_id": "a"}]},
    ),
    (
        "mappings with metadata",
        [{"id": "c", "metadata": {"source": "a.md"}}],
        {"results": [{"chunk_id": "c", "metadata": {"source": "a.md"}, "doc_id": "a.md"}]},
    ),
    ("named tuples", [Hit("a", 0.5)], {"results": [{"doc_id": "a", "score": 0.5}]}),
    ("structs", [Found("a", "A")], {"results": [{"doc_id": "a", "text": "A"}]}),
    ("numbers of numpy", [{"doc_id": "a", "score": Whole(0.5)}], {"results": [{"doc_id": "a", "score": 0.5}]}),
    (
        "documents",
        [Document("A", own="c1", source="a.md")],
        {"results": [{"doc_id": "a.md", "chunk_id": "c1", "text": "A", "metadata": {"source": "a.md"}}]},
    ),
    (
        "documents with scores",
        [(Document("A", source="a.md"), 0.5)],
        {"results": [{"doc_id": "a.md", "text": "A", "metadata": {"source": "a.md"}, "score": 0.5}]},
    ),
    (
        "nodes",
        [NodeWithScore(Node("n1", "a", "A"), 0.5)],
        {"results": [{"doc_id": "a", "chunk_id": "n1", "score": 0.5, "text": "A", "metadata": {"page": 2}}]},
    ),
    (
        "a node made by hand",
        [NodeWithScore(Node("n1", None, "A"), None)],
        {"results": [{"doc_id": "n1", "chunk_id": "n1", "text": "A", "metadata": {"page": 2}}]},
    ),
    (
        "a query engine's response",
        EngineResponse("yes", NodeWithScore(Node("n1", "a", "A"), 0.5)),
        {
            "results": [{"doc_id": "a", "chunk_id": "n1", "score": 0.5, "text": "A", "metadata": {"page": 2}}],
            "response": "yes",
        },
    ),
    ("a streaming response", StreamingResponse("part"), {"results": [], "response": "whole"}),
    (
        "a query of Chroma",
        CHROMA,
        {
            "results": [
                {"doc_id": "a.md", "chunk_id": "c1", "score": 0.75, "text": "one", "metadata": {"source": "a.md"}},
                {"doc_id": "b.md", "chunk_id": "c2", "score": 0.5, "text": "two", "metadata": {"source": "b.md"}},
            ]
        },
    ),
    (
        "a query of Chroma with ids only",
        {"ids": [["a"]], "distances": None},
        {"results": [{"doc_id": "a", "chunk_id": "a"}]},
    ),
    ("a text", "yes", {"response": "yes"}),
    ("a mapping", {"results": ["a"], "answer": "yes"}, {"results": [{"doc_id": "a"}], "response": "yes"}),
    ("no answer", {"results": ["a"], "response": None}, {"results": [{"doc_id": "a"}], "response": None}),
    ("an error", {"results": [], "error": "down"}, {"results": [], "error": "down"}),
    ("another tool's names", {"output": "yes", "contexts": ["A"]}, {"response": "yes", "retrieved_contexts": ["A"]}),
    (
        "a chain's documents",
        {"input": "?", "context": [Document("A", source="a")], "answer": "yes"},
        {
            "results": [{"doc_id": "a", "text": "A", "metadata": {"source": "a"}}],
            "response": "yes",
            "metadata": {"input": "?"},
        },
    ),
    ("a message as the answer", {"answer": Message("ai", "yes")}, {"response": "yes", "tool_calls": []}),
    ("an answer in parts", {"answer": [{"type": "text", "text": "y"}, "es"]}, {"response": "yes"}),
    (
        "the eval harness' output",
        PipelineOutput("yes", ["A"], [ToolCallResult("find", {"q": 1})], [], {"model_ms": 7}),
        {
            "response": "yes",
            "retrieved_contexts": ["A"],
            "tool_calls": [{"tool": "find", "args": {"q": 1}}],
            "metadata": {"model_ms": 7},
        },
    ),
    ("the same without a dataclass", PlainOutput(), {"response": "yes", "retrieved_contexts": ["a text"]}),
    ("OpenAI's completion", COMPLETION, COMPLETED),
    (
        "the same as objects",
        AS_OBJECT,
        {"response": "yes", "tool_calls": [], "finish_reason": "stop", "llm_model": "m-1"},
    ),
    ("a message", {"role": "assistant", "content": "yes"}, {"response": "yes", "tool_calls": []}),
    (
        "a message with a refusal and an error",
        {"role": "assistant", "content": "yes", "refusal": "No.", "error": "boom"},
        {"response": "yes", "tool_calls": [], "refusal": "No.", "error": "boom"},
    ),
    (
        "a message of Anthropic that was stopped",
        {"role": "assistant", "content": "yes", "stop_reason": "refusal"},
        {"response": "yes", "tool_calls": [], "finish_reason": "refusal"},
    ),
    (
        "a refusal in messages",
        [TURNS[0], {"role": "assistant", "content": "yes", "refusal": "No."}],
        {
            "messages": [TURNS[0], {"role": "assistant", "content": "yes", "refusal": "No."}],
            "response": "yes",
            "tool_calls": [],
            "refusal": "No.",
        },
    ),
    (
        "the same answer, results and calls under two names",
        {
            "answer": "yes",
            "output": Message("ai", [{"type": "text", "text": "yes\n"}], [CALL]),
            "tool_calls": [CALL],
            "results": ["a"],
            "documents": [{"doc_id": "a"}],
            "context": [Document("A", source="a")],
        },
        {"response": "yes", "tool_calls": [CALL], "results": [{"doc_id": "a"}], "retrieved_contexts": ["A"]},
    ),
    (
        "a message with the older form of a call",
        {"role": "assistant", "content": None, "function_call": {"name": "find", "arguments": "{}"}},
        {"response": None, "tool_calls": [{"name": "find", "arguments": "{}"}]},
    ),
    (
        "a message of Anthropic",
        {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "yes"}, USE]},
        {"response": "yes", "tool_calls": [USE]},
    ),
    (
        "a message of LangChain with a call that is cut off",
        Cut("ai", ["Wait.", USE], [{"name": "find", "args": {}, "id": "c1"}], [{"name": "drop", "args": '{"id'}]),
        {
            "response": "Wait.",
            "tool_calls": [{"name": "find", "args": {}, "id": "c1"}, {"name": "drop", "args": '{"id'}],
        },
    ),
    (
        "a message beside the steps of an agent, which it does not have",
        {"answer": Message("ai", "yes"), "intermediate_steps": []},
        {"response": "yes", "metadata": {"intermediate_steps": []}},
    ),
    (
        "a message of LangChain",
        Message("ai", "yes", [{"name": "f"}]),
        {"response": "yes", "tool_calls": [{"name": "f"}]},
    ),
    ("messages", TURNS, {"messages": TURNS, "response": "That is all.", "tool_calls": [CALL]}),
    (
        "an agent's state",
        AGENT,
        {
            "messages": [
                {"role": "user", "content": "And?"},
                {"role": "assistant", "content": "", "tool_calls": [{"name": "find", "args": {}}]},
                {"role": "assistant", "content": "So."},
            ],
            "response": "So.",
            "tool_calls": [{"name": "find", "args": {}}],
        },
    ),
]


def given(response: Response) -> dict[str, Any]:
    """Return the fields that a response has."""
    fields = msgspec.structs.asdict(response)
    return {
        name: value
        for name, value in fields.items()
        if value is not UNSET and (value is not None or name == "response")
    }


@pytest.mark.parametrize(("returned", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_what_a_system_returns_becomes_a_response(returned: object, expected: Mapping[str, Any]) -> None:
    assert given(response_of(returned, IDS)) == expected


def test_every_form_of_the_table_is_tried() -> None:
    first = {next(form.what for form in FORMS if form.fits(returned)) for _, returned, _ in TABLE}
    assert first == {form.what for form in FORMS}


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (None, "returned nothing (None), as a function without `return` does; return document ids, best first"),
        (7, "of type int"),
        ({"a": 0.5}, "of type dict"),
        ({"a"}, "of type set"),
        (Grade(), "of type Grade that says neither what was retrieved"),
        ({"answer": [Said()]}, "of type list as the answer"),
        (b"yes", "of type bytes"),
        (Object(columns=["doc_id"], __iter__=None), "of type Object"),
        ([True], "which is not an id"),
        ([0.5], "of type float among its results"),
        ([("a", "b")], "of which a list or tuple must be a result and its score"),
        ([{"score": 1}], "which has no `doc_id`"),
        ({"results": "a"}, "where a list of results was expected"),
        ({"answer": 7}, "as the answer, which is a text"),
        ({"ids": [["a"], ["b"]], "distances": None}, "with the results of 2 questions, not of one"),
        ({"ids": [["a"]], "distances": [[0.1, 0.2]]}, "cannot be read as one"),
        ({"answer": "yes", "reslts": ["a"]}, "an unknown field 'reslts'; did you mean 'results'?"),
        ({"tool_calls": ["find"]}, "among its tool calls"),
        ({"messages": ["hello"]}, "among its messages"),
        ({"role": "assistant", "content": [{"type": "hologram"}]}, 'has "hologram" as the type of message.content[0]'),
        ({"role": "assistant", "content": "x", "toolCalls": [CALL]}, "has toolCalls in message, which is not read"),
        ({"messages": [{"role": "assistant", "content": "x", "parts": ["y"]}]}, "has parts in message"),
    ],
)
def test_anything_else_is_refused_with_what_it_was(returned: object, said: str) -> None:
    with pytest.raises(InputError) as refused:
        response_of(returned, IDS)
    assert said in str(refused.value)


def test_a_refusal_shows_a_line_of_code() -> None:
    with pytest.raises(InputError, match=r'return \["doc_a", "doc_b"\]'):
        response_of(None, IDS)


ANSWER = {"role": "assistant", "content": "A salary of 1."}
CALLING = {"role": "assistant", "content": "ok", "tool_calls": [{"name": "refund", "args": {}}]}


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ({"answer": "ok", "output": ANSWER}, "two answers that differ, as 'answer' and 'output'"),
        ({"answer": "ok", "response": [{"type": "text", "text": "A salary"}]}, "two answers that differ"),
        ({"answer": "ok", "result": {"content": "A salary"}}, "two answers that differ, as 'answer' and 'result'"),
        ({"answer": ANSWER, "output": {**ANSWER, "content": "ok"}}, "two answers that differ"),
        ({"answer": "", "response": "A salary"}, "two answers that differ"),
        ({"results": ["a"], "documents": ["secret"]}, "two lists of results that differ, as 'results' and 'documents'"),
        ({"results": [], "source_documents": ["secret"]}, "two lists of results that differ"),
        ({"documents": ["a"], "context": [Document("A", source="secret")]}, "two lists of results that differ"),
        ({"response": "ok", "tool_calls": [], "tools_called": CALLING["tool_calls"]}, "two lists of tool calls"),
        ({"answer": "x", "tool_calls": [], "function_call": {"name": "refund"}}, "two lists of tool calls"),
        ({"response": "ok", "final_answer": "A salary."}, "two answers that differ"),
        ({"response": CALLING, "tool_calls": []}, "returned 'response', a message, and other calls beside it"),
        ({"response": CALLING, "tool_calls": [{"name": "look", "args": {}}]}, "and other calls beside it"),
        ({"response": CALLING, "output": {**CALLING, "tool_calls": []}, "messages": [TURNS[0], ANSWER]}, "other calls"),
        ({"response": "x", "mode": "trustworthy", "actual_mode": "abstain"}, "two modes that differ"),
    ],
)
def test_what_is_returned_twice_must_be_the_same(returned: object, said: str) -> None:
    with pytest.raises(InputError) as refusal:
        response_of(returned, IDS)
    assert said in refusal.value.problems[0]


@pytest.mark.parametrize(
    "returned",
    [
        {"type": "error", "content": "Internal"},
        {"role": "user", "content": "Q?"},
        {"role": "system", "content": "Be brief."},
        {"answer": {"role": "user", "content": "Q?"}},
        {"type": "function_call_output", "call_id": "c1", "output": "A salary"},
    ],
)
def test_a_message_that_is_not_the_assistants_is_no_answer(returned: object) -> None:
    with pytest.raises(CallFailed, match="an answer is a message of the assistant"):
        response_of(returned, IDS)


def test_a_result_that_names_no_document_fails_its_question_only() -> None:
    with pytest.raises(CallFailed, match="its metadata has: page"):
        response_of([Document("A", page=1)], IDS)


def test_an_expression_says_where_the_document_is() -> None:
    ids = DocumentIds("metadata.url")
    assert given(response_of([Document("A", url="u")], ids))["results"][0]["doc_id"] == "u"


def test_what_a_generator_raises_is_not_taken_for_what_it_returns() -> None:
    def failing() -> Iterator[str]:
        yield "a"
        raise ValueError("down")

    with pytest.raises(ValueError, match="down"):
        response_of(failing(), IDS)
