"""The example that sends what a LangChain application is asked, with LangChain itself."""

import importlib.util
from typing import Any

import pytest

from tests.record.frameworks.needed import need
from tests.runner import ROOT

pytestmark = pytest.mark.record

REFUND = "How do I get a refund, my money back?"


class Sent:
    """A client that keeps what it is to send."""

    def __init__(self) -> None:
        self.fields: list[dict[str, Any]] = []

    def send(self, query: str, **fields: Any) -> None:
        self.fields.append({"query": query, **fields})


@pytest.fixture
def sent() -> Sent:
    need("langgraph")
    return Sent()


def handler(sent: Sent) -> Any:
    """Return the handler of the example."""
    path = ROOT / "examples" / "langchain_interactions.py"
    spec = importlib.util.spec_from_file_location("langchain_interactions", path)
    assert spec
    assert spec.loader
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    return example.SendInteractions(sent)


def app() -> Any:
    from tests.record.frameworks.apps import langchain_app

    return langchain_app


def test_a_chain_with_a_retriever_is_one_interaction(sent: Sent) -> None:
    from langchain_core.runnables import RunnableLambda

    chain = app().retriever | RunnableLambda(lambda documents: f"It is in {documents[0].metadata['source']}.")
    sending = handler(sent)
    answer = chain.invoke(REFUND, {"callbacks": [sending], "metadata": {"user": "ana"}})
    (fields,) = sent.fields
    assert fields.pop("latency_ms") >= 0
    found = [{"doc_id": document.metadata["source"]} for document in app().retriever.invoke(REFUND)]
    assert fields == {"query": REFUND, "user": "ana", "response": answer, "results": found}
    assert not sending._calls


def test_a_call_that_fails_is_an_interaction_with_its_error(sent: Sent) -> None:
    from langchain_core.runnables import RunnableLambda

    def fail(_question: object) -> str:
        raise TimeoutError("no answer")

    chain = RunnableLambda(lambda question: question) | RunnableLambda(fail)
    with pytest.raises(TimeoutError):
        chain.invoke({"question": REFUND}, {"callbacks": [handler(sent)]})
    (fields,) = sent.fields
    assert (fields["query"], fields["error"]) == (REFUND, "TimeoutError: no answer")


def test_messages_are_an_interaction_with_the_last_of_them(sent: Sent) -> None:
    from langchain_core.messages import AIMessage, HumanMessage
    from langchain_core.runnables import RunnableLambda

    chain = RunnableLambda(lambda state: {"messages": [*state["messages"], AIMessage("Like this.")]})
    chain.invoke({"messages": [HumanMessage("Hello"), HumanMessage(REFUND)]}, {"callbacks": [handler(sent)]})
    (fields,) = sent.fields
    assert (fields["query"], fields["response"]) == (REFUND, "Like this.")


def test_two_calls_are_two_interactions(sent: Sent) -> None:
    sending = handler(sent)
    for model in (app().ToyModel(), app().ToyModel()):
        (model | (lambda message: message.content)).invoke(REFUND, {"callbacks": [sending]})
    assert [fields["query"] for fields in sent.fields] == [REFUND, REFUND]
    assert not sending._calls
