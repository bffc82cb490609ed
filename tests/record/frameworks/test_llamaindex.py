"""LlamaIndex itself: rows equal those made by hand from its own call."""

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from ragcontract.core.errors import InputError
from ragcontract.record.adapters.llamaindex import LlamaIndexOptions, of_object, system
from ragcontract.record.interface import CallFailed, Context, Surroundings, System
from tests.record.frameworks.needed import asked, need

pytestmark = pytest.mark.record

REFUND, SSO = "How do I get a refund, my money back?", "Which plan does single sign-on need?"
EARLIER = ({"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Good morning"})
CHAT = ["context_engine", "condensing_engine", "both_engine"]


@pytest.fixture(autouse=True)
def _llamaindex() -> None:
    need("llama_index")


def app(name: str) -> Any:
    """Return something of the application."""
    from tests.record.frameworks.apps import llamaindex_app

    return getattr(llamaindex_app, name)


def target(name: str, **options: Any) -> System:
    """Return the system for something of the application."""
    return system(
        LlamaIndexOptions(object=f"tests.record.frameworks.apps.llamaindex_app:{name}", **options), Surroundings()
    )


def by_hand(nodes: list[Any]) -> list[Mapping[str, Any]]:
    """Return the results of a row for nodes."""
    return [
        {
            "doc_id": one.node.ref_doc_id,
            "chunk_id": one.node_id,
            "score": one.score,
            "text": one.node.get_content(),
            "metadata": one.metadata,
        }
        for one in nodes
    ]


def test_a_retriever_gives_the_nodes_that_it_returns() -> None:
    responses = asked(target("retriever"), REFUND, SSO)
    assert [one.results for one in responses] == [by_hand(app("retriever").retrieve(query)) for query in (REFUND, SSO)]
    assert responses[0].response is UNSET
    assert (responses[1].results or [{}])[0]["doc_id"] == "sso_setup"


def test_a_node_without_a_document_is_named_by_its_own_id_or_by_an_expression() -> None:
    [response] = asked(target("by_hand"), REFUND)
    assert response.results == [{"doc_id": "node-7", "chunk_id": "node-7", "text": REFUND}]
    [response] = asked(target("by_hand", doc_id="text"), REFUND)
    assert response.results == [{"doc_id": REFUND, "chunk_id": "node-7", "text": REFUND}]


def test_a_file_that_its_reader_has_loaded_is_the_document(tmp_path: Path) -> None:
    """The reader gives a document an id that no golden query can name, and names the file in its metadata."""
    from llama_index.core import SimpleDirectoryReader, VectorStoreIndex

    from tests.record.frameworks.apps.llamaindex_app import ToyEmbedding

    (tmp_path / "refunds.txt").write_text(REFUND)
    documents = SimpleDirectoryReader(str(tmp_path)).load_data()
    index = VectorStoreIndex.from_documents(documents, embed_model=ToyEmbedding(model_name="toy"))
    made = of_object(index.as_retriever(), Surroundings())
    assert made is not None
    [response] = asked(made, REFUND)
    assert [result["doc_id"] for result in response.results or ()] == ["refunds.txt"]


@pytest.mark.parametrize("name", ["query_engine", "streaming_engine"])
def test_a_query_engine_gives_its_answer_and_its_nodes(name: str) -> None:
    [response] = asked(target(name), REFUND)
    own = app("query_engine").query(REFUND)
    assert (response.response, response.results) == (own.response, by_hand(own.source_nodes))


@pytest.mark.parametrize("name", CHAT)
def test_a_chat_engine_answers_each_question_as_if_it_were_the_first(name: str) -> None:
    responses = asked(target(name), SSO, REFUND)
    engine = app(name)
    engine.reset()
    own = engine.chat(REFUND)
    assert (responses[1].response, responses[1].results) == (own.response, by_hand(own.source_nodes))
    assert responses[1].tool_calls is None


@pytest.mark.parametrize("name", CHAT)
def test_a_chat_engine_goes_on_with_a_conversation(name: str) -> None:
    from llama_index.core.llms import ChatMessage

    [response] = asked(target(name), REFUND, messages=EARLIER)
    engine = app(name)
    engine.reset()
    own = engine.chat(REFUND, [ChatMessage(role=one["role"], content=one["content"]) for one in EARLIER])
    assert (response.response, response.results) == (own.response, by_hand(own.source_nodes))


def test_a_chat_engine_that_is_busy_fails_the_attempt() -> None:
    engine = target("context_engine")
    engine.setup()
    with engine._conversation, pytest.raises(CallFailed, match="busy with another question; ask with --concurrency 1"):  # type: ignore[attr-defined]
        engine.ask(REFUND, Context(query_id="q", top=5, seconds=0.01))
    engine.teardown()


def test_an_engine_without_a_retriever_does_not_say_that_it_found_nothing() -> None:
    [response] = asked(target("simple_engine"), REFUND)
    assert response.results is None
    assert REFUND in str(response.response)


def test_an_agent_gives_its_answer_its_tool_calls_and_what_they_retrieved() -> None:
    if version("llama-index-core") == "0.12.0":  # agents were chat engines then
        with pytest.raises(ImportError):
            app("agent")()
        return
    made = of_object(app("agent")(), Surroundings())
    assert made is not None
    [response, other] = asked(made, REFUND, SSO)
    assert response.results == by_hand(app("query_engine").query(REFUND).source_nodes)
    assert response.response == "it is in the help"
    assert response.tool_calls == [{"name": "help", "arguments": {"input": REFUND}}]
    assert other.results == by_hand(app("query_engine").query(SSO).source_nodes)


@pytest.mark.parametrize("name", ["retriever", "query_engine", *CHAT])
def test_the_embedding_model_is_the_retrievers(name: str) -> None:
    assert target(name).versions() == {"embedding_model": "toy-embedding-2"}
    assert target(name).facts()["llamaindex"]["object"].startswith("llama_index.core.")


def test_engines_are_found_by_their_classes() -> None:
    found = [of_object(app(name), Surroundings()) for name in ("retriever", "query_engine", "context_engine")]
    assert all(found)
    assert of_object(app("index"), Surroundings()) is None


def test_what_cannot_be_asked_is_refused() -> None:
    with pytest.raises(InputError, match=r"index is a .*VectorStoreIndex; expected a retriever, an engine or an agent"):
        target("index")


def test_a_function_agent_gives_all_that_its_model_says_and_why_it_stopped() -> None:
    if version("llama-index-core") == "0.12.0":  # there were none then
        with pytest.raises(ModuleNotFoundError):
            import_module("tests.record.frameworks.apps.llamaindex_calls")
        return
    from tests.record.frameworks.apps.llamaindex_calls import agent

    call = {"name": "refund", "arguments": {"order": 7}}
    for made, expected in (
        (agent("Let me see.", "Done."), ("Let me see.\nDone.", [call], "stop")),
        (agent("Let me see.", direct=True), ("Let me see.\nrefunded 7", [call], None)),
        (agent("Her", reason="content_filter"), ("Her", [], "content_filter")),
        (agent("Done.", reason="tool_calls"), ("Done.", None, "tool_calls")),
    ):
        target = of_object(made, Surroundings())
        assert target is not None
        [response] = asked(target, "?")
        assert (response.response, response.tool_calls, response.finish_reason) == expected
