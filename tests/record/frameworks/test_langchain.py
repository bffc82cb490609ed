"""LangChain itself: rows equal those made by hand from its own call."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from ragcontract.answers.tool_calls import written
from ragcontract.core.errors import InputError
from ragcontract.record.adapters.langchain import LangChain, LangChainOptions, of_object, system
from ragcontract.record.interface import CallFailed, Response, Surroundings, System
from ragcontract.record.returned.response_forms import response_of
from ragcontract.record.returned.result_forms import DocumentIds
from tests.builders import write_jsonl
from tests.process import rag_contract
from tests.record.frameworks.needed import asked, need

pytestmark = pytest.mark.record

REFUND, SSO = "How do I get a refund, my money back?", "Which plan does single sign-on need?"
EARLIER = ({"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Good morning"})


@pytest.fixture(autouse=True)
def _langchain() -> None:
    need("langgraph")


def app(name: str) -> Any:
    """Return something of the application."""
    from tests.record.frameworks.apps import langchain_app

    return getattr(langchain_app, name)


def target(name: str, **options: Any) -> System:
    """Return the system for something of the application."""
    return system(
        LangChainOptions(object=f"tests.record.frameworks.apps.langchain_app:{name}", **options), Surroundings()
    )


def by_hand(documents: list[Any]) -> list[Mapping[str, Any]]:
    """Return the results of a row for documents."""
    return [
        {"doc_id": one.metadata["source"], "chunk_id": one.id, "text": one.page_content, "metadata": one.metadata}
        for one in documents
    ]


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"url": "https://help.example/refunds", "title": "Refunds"}, "https://help.example/refunds"),
        ({"url": "https://help.example/refunds", "filename": "refunds.md"}, "refunds.md"),
        ({"filename": "refunds.md", "source": "help/refunds.md"}, "help/refunds.md"),
    ],
)
def test_a_document_is_named_by_what_its_loader_says(metadata: Mapping[str, str], expected: str) -> None:
    from langchain_core.documents import Document
    from langchain_core.vectorstores import InMemoryVectorStore

    from tests.record.frameworks.apps.langchain_app import ToyEmbeddings

    store = InMemoryVectorStore(ToyEmbeddings())
    store.add_documents([Document(page_content=REFUND, metadata=dict(metadata))])
    made = of_object(store.as_retriever(), Surroundings())
    assert made is not None
    [response] = asked(made, REFUND)
    assert [result["doc_id"] for result in response.results or ()] == [expected]


def test_a_retriever_gives_the_documents_that_it_returns() -> None:
    responses = asked(target("retriever"), REFUND, SSO)
    assert [one.results for one in responses] == [by_hand(app("retriever").invoke(query)) for query in (REFUND, SSO)]
    assert responses[0].response is UNSET
    assert (responses[1].results or [{}])[0]["doc_id"] == "sso_setup"


def test_a_retriever_is_found_by_its_classes_too() -> None:
    found = of_object(app("retriever"), Surroundings())
    assert found is not None
    [response] = asked(found, REFUND)
    assert response.results == by_hand(app("retriever").invoke(REFUND))
    assert of_object(app("ToyEmbeddings")(), Surroundings()) is None


def test_a_document_is_named_by_an_expression() -> None:
    [response] = asked(target("retriever", doc_id="join('/', ['help', metadata.source])"), REFUND)
    assert (response.results or [{}])[0]["doc_id"] == "help/refund_policy"


def test_a_retrievers_store_says_its_embedding_model_and_the_details_its_class() -> None:
    found = target("retriever")
    assert found.versions() == {"embedding_model": "toy-embedding-1"}
    assert str(found.facts()["langchain"]["object"]).endswith(".VectorStoreRetriever")


def test_a_chain_that_returns_its_answer_only_is_heard_retrieving() -> None:
    [response] = asked(target("chain"), REFUND)
    assert response.response == app("chain").invoke(REFUND)
    assert response.results == by_hand(app("retriever").invoke(REFUND))
    assert response.tool_calls == []
    assert response.usage == {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    assert response.llm_model == "toy-1"


def test_a_chain_that_returns_its_documents_is_asked_as_its_schema_says() -> None:
    [response] = asked(target("sourced"), SSO)
    own = app("sourced").invoke({"input": SSO})
    assert response.response == own["answer"].content
    assert response.results == by_hand(own["context"])


def test_a_chain_with_several_inputs_needs_to_be_told() -> None:
    with pytest.raises(InputError, match=r"several inputs \(context, question\); say .* as `input: "):
        target("several").setup()
    [response] = asked(target("several", input={"context": "x {query_id}", "question": "{query}"}), SSO)
    assert response.response == app("several").invoke({"context": "x q0", "question": SSO}).content
    assert response.results is None


def test_a_retriever_that_asks_others_retrieves_once() -> None:
    both = app("both")
    [response] = asked(target("both"), REFUND)
    assert response.results == by_hand(both.invoke(REFUND))
    from langchain_core.runnables import RunnableLambda

    around = of_object(RunnableLambda(lambda query: str(len(both.invoke(query)))), Surroundings())
    assert around is not None
    [response] = asked(around, REFUND)
    assert (response.response, response.results) == ("5", by_hand(both.invoke(REFUND)))


def test_several_retrievals_need_to_be_told_apart() -> None:
    with pytest.raises(InputError, match="retrieved 2 times for one question; say which counts with `retrieved: first"):
        asked(target("twice"), SSO)
    first, last = (by_hand(found) for found in (app("retriever").invoke(SSO), app("narrow").invoke(f"refund {SSO}")))
    for retrieved, results in {"first": first, "last": last, "concat": first + last}.items():
        [response] = asked(target("twice", retrieved=retrieved), SSO)
        assert response.results == results


def test_an_agent_gives_its_answer_what_it_retrieved_and_its_tool_calls() -> None:
    [response] = asked(target("agent"), REFUND)
    own = app("agent").invoke({"messages": [("user", REFUND)]}, {"configurable": {"thread_id": "by hand"}})["messages"]
    assert response.response == own[-1].content
    assert response.results == by_hand(app("retriever").invoke(REFUND))
    assert response.tool_calls == [
        {"name": "search", "arguments": {"query": REFUND}},
        {"name": "add", "arguments": {"a": 1, "b": 2}},
        {"name": "erase", "arguments": {"all": True}},  # there is no such tool
    ]
    assert response.usage == {"input_tokens": 6, "output_tokens": 2, "total_tokens": 8}


def test_the_agent_that_comes_with_the_libraries_is_recorded_as_one_made_by_hand() -> None:
    [response] = asked(target("prebuilt"), REFUND)
    [own] = asked(target("agent"), REFUND)
    assert (response.results, response.tool_calls) == (own.results, own.tool_calls)
    assert response.response == app("prebuilt").invoke({"messages": [("user", REFUND)]})["messages"][-1].content


def test_an_agent_with_a_memory_begins_a_conversation_with_each_question() -> None:
    responses = asked(target("agent"), REFUND, REFUND)
    assert responses[0] == responses[1]


def test_an_agent_goes_on_with_a_conversation() -> None:
    [response] = asked(target("agent"), REFUND, messages=EARLIER)
    assert str(response.response).startswith("7 messages: ")
    assert len(response.tool_calls or ()) == 3


def test_an_agent_that_is_only_asynchronous_says_so() -> None:
    with pytest.raises(InputError, match=r"say `ainvoke: true` under `langchain`"):
        asked(target("async_agent"), REFUND)
    responses = asked(target("async_agent", ainvoke=True), REFUND, SSO)
    assert responses == asked(target("agent"), REFUND, SSO)


def test_documents_that_a_tool_hands_over_are_what_was_retrieved() -> None:
    [response] = asked(target("looking_up"), REFUND)
    assert response.results == by_hand([one for one, _ in app("store").similarity_search_with_score(REFUND, k=2)])


def test_an_agent_that_retrieves_nothing_found_nothing_only_if_it_is_known_to_retrieve() -> None:
    [response] = asked(target("silent"), REFUND)
    assert (response.results, response.tool_calls) == (None, [])
    [response] = asked(target("silent", retrieved="last"), REFUND)
    assert response.results == []


def test_what_is_neither_answer_nor_documents_is_refused() -> None:
    with pytest.raises(InputError, match=r"returned builtins.int: there is neither an answer"):
        asked(target("no_answer"), REFUND)


def test_what_an_application_raises_is_a_failed_attempt() -> None:
    with pytest.raises(CallFailed, match="the vector store is down") as failed:
        asked(target("failing"), REFUND)
    assert failed.value.again


def test_what_is_not_of_langchain_is_refused() -> None:
    with pytest.raises(InputError, match=r"CHUNKS is a builtins.list; expected a retriever, a chain or a compiled gra"):
        target("CHUNKS")


def test_several_questions_at_once_are_kept_apart() -> None:
    from concurrent.futures import ThreadPoolExecutor

    from ragcontract.record.interface import Context

    agent = target("agent")
    agent.setup()

    def ask(query: str) -> Response:
        return agent.ask(query, Context(query_id=query, top=5))

    with ThreadPoolExecutor(8) as pool:
        responses = list(pool.map(ask, [REFUND, SSO] * 20))
    agent.teardown()
    assert responses == asked(target("agent"), REFUND, SSO) * 20


def test_a_message_that_a_function_returns_says_which_tools_were_called() -> None:
    from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage

    asked_for = {"name": "add", "args": {"a": 1}, "id": "c1"}
    streamed = AIMessageChunk(
        content=[{"type": "tool_use", "id": "c1", "name": "add", "input": {}}],
        tool_call_chunks=[{"name": "add", "args": '{"a": 1}', "id": "c1", "index": 0, "type": "tool_call_chunk"}],
    )
    cut_off = AIMessage("", invalid_tool_calls=[{"name": "add", "args": '{"a', "id": "c1", "error": None}])
    for returned, calls in (
        (AIMessage("Done."), []),
        ({"answer": AIMessage("Done."), "context": []}, []),
        ({"messages": [HumanMessage("?"), AIMessage("Done.")]}, []),
        (AIMessage("", tool_calls=[asked_for]), [("add", {"a": 1})]),
        (streamed, [("add", {"a": 1})]),
        (cut_off, [("add", '{"a')]),
    ):
        response = response_of(returned, DocumentIds(None))
        assert response.tool_calls is not None
        assert [written(one) for one in response.tool_calls] == calls


def test_a_chain_that_ends_in_a_message_gives_the_calls_in_it() -> None:
    from langchain_core.messages import AIMessage
    from langchain_core.runnables import RunnableLambda

    asked_for = {"name": "add", "args": {"a": 1}, "id": "c1"}
    cut_off = {"name": "drop", "args": '{"a', "id": "c2", "error": None}
    message = AIMessage("", tool_calls=[asked_for], invalid_tool_calls=[cut_off])
    for returned in (message, {"answer": message}):
        chain = of_object(RunnableLambda(lambda _, returned=returned: returned), Surroundings())
        assert chain is not None
        [response] = asked(chain, REFUND)
        assert response.tool_calls == [{"name": "add", "arguments": {"a": 1}}, {"name": "drop", "arguments": '{"a'}]


def test_what_an_agent_says_before_it_calls_a_tool_is_part_of_its_answer() -> None:
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
    from langchain_core.runnables import RunnableLambda

    asked_for = {"name": "add", "args": {"a": 1}, "id": "c1"}
    said = [
        AIMessage("Earlier."),
        HumanMessage("?"),
        AIMessage("Let me see.", tool_calls=[asked_for]),
        ToolMessage("2", tool_call_id="c1"),
        AIMessage("It is 2."),
    ]
    chain = of_object(RunnableLambda(lambda _: {"messages": said}), Surroundings())
    assert chain is not None
    [response] = asked(chain, REFUND)
    assert response.response == "Let me see.\nIt is 2."


ASKED_FOR = {"name": "refund", "arguments": {"order": 7}}


def calling(name: str) -> Any:
    """Return something of the applications whose calls are not in what they return."""
    from tests.record.frameworks.apps import langchain_calls

    return getattr(langchain_calls, name)


def response_to(runnable: Any, **options: Any) -> Response:
    """Return the response of a runnable to a question."""
    made = LangChain(runnable, LangChainOptions(object="a:b", **options), Surroundings())
    [response] = asked(made, REFUND)
    return response


def test_a_call_that_a_model_asked_for_is_written_whatever_the_application_returns() -> None:
    calls = {name: response_to(runnable).tool_calls for name, runnable in calling("APPS").items()}
    erased = [ASKED_FOR, {"name": "erase", "arguments": {"order": 7}}]
    assert calls == {name: erased if "another tool" in name else [ASKED_FOR] for name in calls}


def test_an_output_schema_hides_no_call() -> None:
    from tests.record.frameworks.apps.langchain_calls import Answer, _answering

    for name in ("output_schema", "output"):  # as it is called in newer and in older versions
        try:
            graph = _answering(**{name: Answer})
        except TypeError:
            continue
        response = response_to(graph)
        assert (response.response, response.tool_calls) == ("fine", [ASKED_FOR])
        return
    raise AssertionError


def test_of_a_function_without_a_model_nothing_is_known_of_calls() -> None:
    assert response_to(calling("plain")).tool_calls is None


def test_the_schema_of_a_structured_output_is_no_tool() -> None:
    from langchain_core.language_models import chat_models

    is_told = hasattr(chat_models, "_format_ls_structured_output")  # older versions do not tell callbacks of it
    assert response_to(calling("graded")).tool_calls == (
        [] if is_told else [{"name": "Grade", "arguments": {"fits": True}}]
    )


def test_why_the_model_of_a_chain_stopped_and_what_it_refused_are_kept() -> None:
    from langchain_core.messages import AIMessage

    saying = calling("saying")
    filtered = response_to(saying(AIMessage("I", response_metadata={"finish_reason": "content_filter"})))
    refused = response_to(saying(AIMessage("", additional_kwargs={"refusal": "I cannot."})))
    lost = response_to(saying(AIMessage("fine", response_metadata={"stop_reason": "tool_use"})))
    assert (filtered.finish_reason, filtered.tool_calls) == ("content_filter", [])
    assert (refused.response, refused.refusal) == ("", "I cannot.")
    assert (lost.finish_reason, lost.tool_calls) == ("tool_use", None)


def test_a_state_with_two_answers_is_refused() -> None:
    from langchain_core.messages import AIMessage, HumanMessage
    from langchain_core.runnables import RunnableLambda

    state = {"answer": "fine", "messages": [HumanMessage("?"), AIMessage("SECRET")]}
    with pytest.raises(InputError, match="an answer that differs from the one in its messages"):
        response_to(RunnableLambda(lambda _: state))


@pytest.mark.parametrize("name", ["a chain that ends in a text", "trimmed messages", "a state"])
def test_a_forbidden_call_breaks_the_contract(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code = "from tests.record.frameworks.apps.langchain_calls import APPS\n"
    Path("app.py").write_text(f"{code}chain = APPS[{name!r}]\n")
    rule = {"type": "must_not_call_tool", "tool": "refund"}
    write_jsonl(Path("golden.jsonl"), [{"id": "q1", "query": REFUND, "rules": [rule]}])
    recorded = rag_contract("record", "app.py:chain")
    assert recorded.code == 0, recorded.err
    ended = rag_contract("check")
    assert ended.code == 1
    assert "refund" in ended.out
