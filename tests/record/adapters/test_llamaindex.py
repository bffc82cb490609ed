"""How LlamaIndex is asked and what is read of it, with stand-ins; `make test-record` does it with LlamaIndex itself."""

from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import UNSET

from ragcontract.core.errors import InputError
from ragcontract.record.adapters.llamaindex import LlamaIndex, LlamaIndexOptions, of_object, system
from ragcontract.record.interface import CallFailed, Surroundings
from tests.builders import write_jsonl
from tests.process import spawn
from tests.record.adapters.stand_ins import Node, llama_index, of
from tests.record.systems import asked, context, doc_ids

EARLIER = ({"role": "user", "content": "Hello"}, {"role": "assistant", "content": None})
HERE = Surroundings()
NODES = [Node("t", 0.5, node_id="n1", ref_doc_id="a"), Node("u", None, node_id="n2")]


@pytest.fixture(autouse=True)
def _llama_index(monkeypatch: pytest.MonkeyPatch) -> None:
    llama_index(monkeypatch)


def answer(text: str | None = "x", nodes: list[Node] = NODES, **more: Any) -> Any:
    """Return what an engine returns."""
    return SimpleNamespace(response=text, source_nodes=nodes, **more)


def engine(returned: Any, name: str = "BaseQueryEngine", **members: Any) -> LlamaIndex:
    """Return the system for a query engine that always returns the same."""
    return LlamaIndex(of("llama_index", name, query=lambda *_: returned, **members)(), HERE)


def chat_engine(*names: str, returned: Any = None, said: list[Any] | None = None) -> LlamaIndex:
    """Return the system for a chat engine, which notes what it is asked with."""
    said = [] if said is None else said

    def chat(_: Any, message: str, chat_history: list[Any]) -> Any:
        said.append((message, [vars(one) for one in chat_history]))
        return returned or answer()

    made = of("llama_index", *names, "BaseChatEngine", chat=chat, reset=lambda _: said.append("reset"))
    return LlamaIndex(made(), HERE)


def test_a_retriever_gives_its_nodes() -> None:
    made = of_object(of("llama_index", "BaseRetriever", retrieve=lambda *_: NODES)(), HERE)
    assert made is not None
    response = asked(made)
    assert response.results == [
        {"doc_id": "a", "chunk_id": "n1", "score": 0.5, "text": "t"},
        {"doc_id": "n2", "chunk_id": "n2", "text": "u"},
    ]
    assert response.response is UNSET


def test_a_query_engine_gives_its_answer_and_its_nodes() -> None:
    response = asked(engine(answer("y")))
    assert (doc_ids(response), response.response, response.tool_calls) == (["a", "n2"], "y", None)
    assert asked(engine(answer(None, []))).response is None
    assert asked(engine(answer(None, []))).results == []


def test_a_custom_engine_that_returns_only_a_text_does_not_say_what_it_retrieved() -> None:
    custom = of("llama_index", "CustomQueryEngine", "BaseQueryEngine", query=lambda *_: answer("x", []))
    assert asked(LlamaIndex(custom(), HERE)).results is None
    custom = of("llama_index", "CustomQueryEngine", "BaseQueryEngine", query=lambda *_: answer())
    assert doc_ids(asked(LlamaIndex(custom(), HERE))) == ["a", "n2"]


def test_a_recording_of_such_an_engine_does_not_pass_where_documents_are_forbidden(tmp_path: Path) -> None:
    package = tmp_path / "llama_index" / "core"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").write_text("")
    (package / "__init__.py").write_text("class BaseQueryEngine: ...\nclass CustomQueryEngine(BaseQueryEngine): ...\n")
    (tmp_path / "app.py").write_text(
        "from types import SimpleNamespace\nfrom llama_index.core import CustomQueryEngine\n\n"
        "class Engine(CustomQueryEngine):\n"
        "    def query(self, question):\n"
        "        return SimpleNamespace(response='From the salaries.', source_nodes=[])\n\n"
        "engine = Engine()\n"
    )
    row = {"id": "a", "query": "q", "relevant_doc_ids": [], "forbidden_doc_ids": ["salaries"]}
    write_jsonl(tmp_path / "golden.jsonl", [row])
    ended = spawn("record", "app.py:engine", cwd=tmp_path)
    assert (ended.code, "1 row without `results`" in ended.err) == (0, True), ended
    assert spawn("check", cwd=tmp_path).code == 2


def test_a_stream_is_read_to_its_end() -> None:
    assert asked(engine(SimpleNamespace(get_response=lambda: answer("whole")))).response == "whole"


def test_a_chat_engine_forgets_what_was_said_and_goes_on_with_the_conversation() -> None:
    said: list[Any] = []
    made = chat_engine(said=said)
    assert doc_ids(asked(made, "q")) == ["a", "n2"]
    asked(made, "r", messages=EARLIER)
    history = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": ""}]
    assert said == ["reset", ("q", []), "reset", ("r", history)]


def test_a_chat_engine_that_is_busy_fails_the_attempt() -> None:
    made = chat_engine()
    with made._conversation, pytest.raises(CallFailed, match="ask with --concurrency 1") as failed:
        made.ask("?", context(seconds=0.01))
    assert (failed.value.kind, failed.value.again) == ("busy", True)


def test_a_chat_engine_without_a_retriever_does_not_say_that_it_found_nothing() -> None:
    assert asked(chat_engine("SimpleChatEngine", returned=answer(nodes=[]))).results is None


def test_an_agent_says_which_tools_it_called() -> None:
    outputs = [
        SimpleNamespace(tool_name="search", raw_input={"args": (), "kwargs": {"q": 1}}),
        SimpleNamespace(tool_name="add", raw_input={"a": 1}),
        SimpleNamespace(tool_name="say", raw_input="hello"),
    ]
    response = asked(chat_engine("BaseAgent", returned=answer(sources=outputs)))
    assert response.tool_calls == [
        {"name": "search", "arguments": {"q": 1}},
        {"name": "add", "arguments": {"a": 1}},
        {"name": "say", "arguments": {"input": "hello"}},
    ]


def agent(*raw: Any, text: str | None = "done", retrieved: Any = None, said: list[Any] | None = None) -> LlamaIndex:
    """Return the system for an agent whose tools hand these things over."""
    calls = [
        SimpleNamespace(
            tool_name=f"tool{number}", tool_kwargs={"n": number}, tool_output=SimpleNamespace(raw_output=one)
        )
        for number, one in enumerate(raw)
    ]

    async def run(_: Any, **given: Any) -> Any:
        if said is not None:
            said.append(given)
        return SimpleNamespace(response=SimpleNamespace(role="assistant", content=text), tool_calls=calls)

    return LlamaIndex(of("llama_index", "BaseWorkflowAgent", run=run)(), HERE, None, retrieved)


def test_a_workflows_agent_gives_its_answer_its_tool_calls_and_what_they_retrieved() -> None:
    response = asked(agent("text", answer()))
    assert (doc_ids(response), response.response) == (["a", "n2"], "done")
    assert response.tool_calls == [{"name": "tool0", "arguments": {"n": 0}}, {"name": "tool1", "arguments": {"n": 1}}]
    assert doc_ids(asked(agent(NODES[:1]), seconds=float("inf"))) == ["a"]
    assert asked(agent(text=None)).response == ""


def step(text: str, *calls: str, raw: Any = None, more: Any = None) -> Any:
    """Return what the model of an agent says in a step."""
    message = SimpleNamespace(role="assistant", content=text, additional_kwargs=more or {})
    selected = [SimpleNamespace(tool_name=name, tool_kwargs={}) for name in calls]
    return of("llama_index", "AgentOutput", response=message, tool_calls=selected, raw=raw, current_agent_name="a")()


def speaking(*steps: Any, kind: str = "FunctionAgent", answered: Any = None) -> LlamaIndex:
    """Return the system for an agent that streams these steps; the last one is its answer, unless another one is."""

    class Handler:
        async def stream_events(self) -> AsyncIterator[Any]:
            for event in steps:
                yield event

        def __await__(self) -> Any:
            yield from ()
            return answered or steps[-1]

    return LlamaIndex(of("llama_index", kind, "BaseWorkflowAgent", run=lambda *_, **__: Handler())(), HERE)


def test_what_an_agent_says_before_it_calls_a_tool_is_part_of_its_answer() -> None:
    steps = [step("Let me see.", "search"), step("It is 2.")]
    response = asked(speaking(*steps))
    assert (response.response, response.tool_calls) == ("Let me see.\nIt is 2.", [{"name": "search", "arguments": {}}])
    assert asked(speaking(*steps, kind="ReActAgent")).response == "It is 2."
    direct = of("llama_index", "ToolCallResult", tool_output=SimpleNamespace(raw_output=NODES))()
    response = asked(speaking(steps[0], direct, answered=step("found", "search")))
    assert (response.response, response.tool_calls) == ("Let me see.\nfound", [{"name": "search", "arguments": {}}])
    assert doc_ids(response) == ["a", "n2"]


def choice(reason: str, **more: Any) -> Any:
    """Return a model's own response."""
    return {"choices": [{"finish_reason": reason, **more}]}


CALL = {"id": "c1", "function": {"name": "refund", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([step("x", raw=choice("content_filter"))], ([], "content_filter", None)),
        ([step("x", raw={"stop_reason": "max_tokens"})], ([], "max_tokens", None)),
        ([step("", more={"refusal": "I cannot."})], ([], None, "I cannot.")),
        ([step("x", raw=choice("tool_calls"))], (None, "tool_calls", None)),
        ([step("x", raw=choice("tool_calls")), step("y", raw=choice("stop"))], (None, "stop", None)),
        ([step("x", "refund", raw=choice("tool_calls")), step("y", raw=choice("stop"))], (["refund"], "stop", None)),
        ([step("x", raw=choice("tool_calls", message={"tool_calls": [CALL]}))], (["refund"], "tool_calls", None)),
        ([step("x", "refund", more={"tool_calls": [CALL]}), step("y")], (["refund"], None, None)),
        ([step("x", more={"tool_calls": [CALL]}), step("y")], (["refund"], None, None)),
    ],
)
def test_what_the_model_of_an_agent_says_of_its_answer_is_kept(steps: list[Any], expected: Any) -> None:
    response = asked(speaking(*steps))
    names = None if response.tool_calls is None else [call["name"] for call in response.tool_calls]
    assert (names, response.finish_reason, response.refusal) == expected


def test_several_retrievals_of_an_agent_need_to_be_told_apart() -> None:
    with pytest.raises(InputError, match=r"retrieved 2 times .* under `llamaindex` in the target file"):
        asked(agent(NODES, NODES[:1]))
    found = {how: doc_ids(asked(agent(NODES[1:], NODES[:1], retrieved=how))) for how in ("first", "last", "concat")}
    assert found == {"first": ["n2"], "last": ["a"], "concat": ["n2", "a"]}


def test_an_agent_that_retrieves_nothing_found_nothing_only_if_it_is_known_to_retrieve() -> None:
    assert asked(agent("text")).results is None
    assert asked(agent("text", retrieved="last")).results == []


def test_an_agent_goes_on_with_a_conversation() -> None:
    said: list[Any] = []
    asked(agent(said=said), "q", messages=EARLIER)
    assert said[0]["user_msg"] == "q"
    assert [one.content for one in said[0]["chat_history"]] == ["Hello", ""]


def test_the_models_are_those_of_the_retriever_and_the_engine() -> None:
    retriever = SimpleNamespace(_embed_model=SimpleNamespace(model_name="bge-m3"))
    llm = SimpleNamespace(metadata=SimpleNamespace(model_name="m-1"))
    made = engine(answer(), _retriever=retriever, _response_synthesizer=SimpleNamespace(_llm=llm))
    assert made.versions() == {"embedding_model": "bge-m3", "llm_model": "m-1"}
    assert engine(answer()).versions() == {}
    assert set(made.facts()["llamaindex"]) == {"object"}


def test_what_is_raised_is_a_failed_attempt() -> None:
    def retrieve(*_: Any) -> Any:
        raise TimeoutError("too slow")

    made = LlamaIndex(of("llama_index", "BaseRetriever", retrieve=retrieve)(), HERE)
    with pytest.raises(CallFailed, match="too slow"):
        asked(made)


def test_a_target_file_names_an_object(tmp_path: Path) -> None:
    code = "from tests.record.adapters.stand_ins import of\nindex = of('llama_index', 'BaseIndex')()\n"
    code += "nodes = of('llama_index', 'BaseRetriever', retrieve=lambda *_: [])()\n"
    (tmp_path / "indexes.py").write_text(code)
    here = Surroundings(folder=tmp_path)
    assert asked(system(LlamaIndexOptions(object="indexes.py:nodes"), here)).results == []
    with pytest.raises(
        InputError, match=r"indexes.py:index is a .*MyBaseIndex; expected a retriever, an engine or an agent"
    ):
        system(LlamaIndexOptions(object="indexes.py:index"), here)


def test_an_object_that_cannot_be_asked_is_none() -> None:
    assert of_object(of("llama_index", "BaseIndex")(), HERE) is None
