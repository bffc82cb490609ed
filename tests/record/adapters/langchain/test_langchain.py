"""How LangChain is asked and what is read of it, with stand-ins; `make test-record` does it with LangChain itself."""

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import UNSET

from ragcontract.core.errors import InputError
from ragcontract.net.secrets import Secrets
from ragcontract.record.adapters.langchain import LangChain, LangChainOptions, Noted, listener, of_object, system
from ragcontract.record.interface import CallFailed, Surroundings
from tests.record.adapters.stand_ins import Chain, Document, Message, Retriever, langchain
from tests.record.systems import asked, doc_ids

EARLIER = ({"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"})
HERE = Surroundings()


@pytest.fixture(autouse=True)
def _langchain(monkeypatch: pytest.MonkeyPatch) -> None:
    langchain(monkeypatch)


def target(does: Any, schema: Any = None, **options: Any) -> LangChain:
    """Return the system for a chain."""
    return LangChain(Chain(does, schema), LangChainOptions(object="app:chain", **options), HERE)


def returning(returned: Any, **options: Any) -> LangChain:
    """Return the system for a chain that always returns the same."""
    return target(lambda *_: returned, **options)


def retrieves(*found: list[Document]) -> Any:
    """Return what a chain does that retrieves some times and answers."""

    def does(_: Any, heard: Any) -> str:
        for number, documents in enumerate(found):
            heard.on_retriever_start({}, "?", run_id=number, parent_run_id="chain")
            heard.on_retriever_end(documents, run_id=number)
        return "answered"

    return does


# What it is asked with


def noting(seen: list[Any]) -> Any:
    """Return what a chain does that notes what it is asked with."""

    def does(given: Any, _: Any) -> str:
        seen.append(given)
        return "x"

    return does


@pytest.mark.parametrize(
    ("schema", "given"),
    [
        (None, "?"),
        (["question"], {"question": "?"}),
        (["input"], {"input": "?"}),
        (["input", "chat_history"], {"input": "?", "chat_history": list(EARLIER)}),
        (["question", "chat_history"], {"question": "?", "chat_history": list(EARLIER)}),
        (["messages", "steps"], {"messages": [*EARLIER, {"role": "user", "content": "?"}]}),
        (ValueError("no schema"), "?"),
    ],
)
def test_a_chain_is_asked_as_its_schema_says(schema: Any, given: Any) -> None:
    seen: list[Any] = []
    asked(target(noting(seen), schema), messages=EARLIER)
    assert seen == [given]


def test_a_target_file_says_what_a_chain_is_asked_with() -> None:
    seen: list[Any] = []
    made = target(noting(seen), ["a", "b"], input={"a": "{query}", "b": "{top}"})
    asked(made, "{top}?", top=7)
    assert seen == [{"a": "{top}?", "b": 7}]


def test_a_misspelled_placeholder_is_an_error_before_the_first_question() -> None:
    with pytest.raises(InputError, match=r"langchain\.input\.a: \{qeury\} is not a placeholder"):
        target(noting([]), ["a"], input={"a": "{qeury}"})


@pytest.mark.parametrize("given", [{"a": "%(query)s"}, {"a": "fixed", "b": "{top}"}])
def test_a_chain_that_is_not_asked_the_question_is_an_error_before_the_first_one(given: dict[str, str]) -> None:
    with pytest.raises(InputError, match=r"langchain\.input: no placeholder stands for the question"):
        target(noting([]), [*given], input=given)


def test_several_inputs_need_to_be_named() -> None:
    with pytest.raises(InputError, match=r"several inputs \(a, b\); say what it is asked with"):
        target(lambda *_: "x", ["a", "b"]).setup()


def test_each_question_begins_a_conversation_of_its_own() -> None:
    made = returning("x")
    asked(made)
    asked(made)
    threads = [config["configurable"]["thread_id"] for config in made.target.configs]
    assert len(set(threads)) == 2
    assert made.target.configs[0]["metadata"] == {"rag_contract.query_id": "q1"}


# What it returns


@pytest.mark.parametrize(
    ("returned", "answer"),
    [
        ("text", "text"),
        (Message("ai", "of a message"), "of a message"),
        (Message("ai", [{"type": "text", "text": "in "}, "blocks", {"type": "image"}]), "in blocks"),
        ({"answer": "a", "result": "a", "output": None}, "a"),
        ({"result": Message("ai", "b")}, "b"),
        ({"output": "c", "context": "no documents"}, "c"),
        ({"messages": [Message("human", "?"), Message("ai", "d"), Message("tool", "e"), Message("ai", "f")]}, "d\nf"),
    ],
)
def test_an_answer_is_found(returned: Any, answer: str) -> None:
    assert asked(returning(returned)).response == answer


@pytest.mark.parametrize("name", ["context", "source_documents", "documents"])
def test_documents_in_what_is_returned_are_what_was_retrieved(name: str) -> None:
    response = asked(returning({"answer": "x", name: [Document("t", id="c1", source="a"), Document("u", path="b")]}))
    assert response.results == [
        {"doc_id": "a", "chunk_id": "c1", "text": "t", "metadata": {"source": "a"}},
        {"doc_id": "b", "text": "u", "metadata": {"path": "b"}},
    ]


def test_a_chain_that_returns_documents_has_no_answer() -> None:
    response = asked(returning([Document("t", id="a")]))
    assert (doc_ids(response), response.response) == (["a"], UNSET)
    assert asked(returning({"documents": []})).results == []


@pytest.mark.parametrize("returned", [7, None, ["a text"], {"something": "else"}, {"messages": []}, {"results": "x"}])
def test_what_says_nothing_is_refused(returned: Any) -> None:
    with pytest.raises(InputError, match=r"there is neither an answer .* nor documents"):
        asked(returning(returned))


def test_a_document_without_an_id_fails_the_attempt() -> None:
    with pytest.raises(CallFailed, match="say where with --doc-id"):
        asked(returning([Document("t")]))


def test_the_command_lines_expression_wins() -> None:
    here = Surroundings(doc_id="metadata.b")
    made = LangChain(
        Chain(lambda *_: [Document("t", a="1", b="2")]), LangChainOptions(object="x:y", doc_id="metadata.a"), here
    )
    assert doc_ids(asked(made)) == ["2"]


# What is heard


def test_what_retrievers_return_is_heard() -> None:
    response = asked(target(retrieves([Document("t", id="a")])))
    assert (doc_ids(response), response.response, response.tool_calls) == (["a"], "answered", None)


def test_several_retrievals_need_to_be_told_apart() -> None:
    does = retrieves([Document("t", id="a")], [Document("t", id="b"), Document("t", id="a")])
    with pytest.raises(InputError, match="retrieved 2 times for one question"):
        asked(target(does))
    found = {how: doc_ids(asked(target(does, retrieved=how))) for how in ("first", "last", "concat")}
    assert found == {"first": ["a"], "last": ["b", "a"], "concat": ["a", "b", "a"]}


def test_no_retrieval_is_an_empty_one_only_where_somebody_said_that_there_are_some() -> None:
    assert asked(returning("x")).results is None
    assert asked(returning("x", retrieved="last")).results == []


def test_retrievals_within_a_retriever_and_tools_within_a_tool_are_its_own() -> None:
    noted = Noted()
    heard = listener(noted)
    heard.on_chain_start({}, {}, run_id="chain")
    heard.on_retriever_start({}, "?", run_id="outer", parent_run_id="chain")
    heard.on_chat_model_start({}, [], run_id="step", parent_run_id="outer")
    heard.on_retriever_start({}, "?", run_id="inner", parent_run_id="step")
    heard.on_retriever_end(["x", "y"], run_id="inner")
    heard.on_retriever_end(["y"], run_id="outer")
    heard.on_retriever_start({}, "?", run_id="failed", parent_run_id="chain")
    heard.on_tool_start({"name": "search"}, "{'q': 1}", run_id="tool", parent_run_id="chain", inputs={"q": 1})
    heard.on_tool_start(None, "?", run_id="within", parent_run_id="tool")
    heard.on_tool_start(None, "?", run_id="nameless", parent_run_id="nameless")
    assert noted.retrieved() == [["y"]]
    assert noted.tool_calls()[0] == {"name": "search", "arguments": {"q": 1}}
    assert [call["name"] for call in noted.tool_calls()] == ["search"]


def test_a_tool_without_arguments_by_name_has_its_input() -> None:
    noted = Noted()
    listener(noted).on_tool_start(None, "?", run_id="tool", name="search")
    assert noted.tool_calls() == [{"name": "search", "arguments": {"input": "?"}}]


def test_tokens_are_added_up_and_the_model_is_the_last_one() -> None:
    def does(_: Any, heard: Any) -> str:
        for said in ({"model_name": "m-1"}, {"model": "m-2"}, {}):
            message = Message("ai", "x", usage_metadata={"input_tokens": 2, "details": {}}, response_metadata=said)
            heard.on_llm_end(SimpleNamespace(generations=[[SimpleNamespace(message=message)]]))
        heard.on_llm_end(SimpleNamespace(generations=[[SimpleNamespace(text="no chat model")]]))
        return "x"

    response = asked(target(does))
    assert (response.usage, response.llm_model) == ({"input_tokens": 6}, "m-2")


def test_the_models_messages_say_which_tools_it_asked_for_in_which_order() -> None:
    calls = [{"name": name, "args": {"n": 1}, "id": name} for name in ("search", "erase")]
    turn = [Message("human", "?"), Message("ai", "", tool_calls=calls), Message("tool", "t"), Message("ai", "done")]
    before = [Message("human", "!"), Message("ai", "", tool_calls=calls[:1]), Message("ai", "good")]

    def does(_: Any, heard: Any) -> Any:
        heard.on_tool_start({"name": "search"}, "", run_id=1, inputs={"n": 1})
        return {"messages": before + turn}

    response = asked(target(does))
    assert response.tool_calls == [{"name": name, "arguments": {"n": 1}} for name in ("search", "erase")]


def test_tools_that_only_callbacks_know_of_count() -> None:
    def does(_: Any, heard: Any) -> Any:
        heard.on_tool_start({"name": "search"}, "", run_id=1, inputs={"at": Path("x")})
        return "done"

    assert asked(target(does)).tool_calls == [{"name": "search", "arguments": {"at": "x"}}]


def test_documents_that_a_tool_hands_over_are_what_was_retrieved() -> None:
    tool = Message("tool", "t", artifact=[Document("t", id="a")])
    assert doc_ids(asked(returning({"messages": [Message("human", "?"), tool, Message("ai", "done")]}))) == ["a"]


# What a model asked for, wherever it was said


REFUND = {"name": "refund", "args": {"id": 7}, "id": "c1"}
REFUNDED = {"name": "refund", "arguments": {"id": 7}}


def saying(returned: Any, *messages: Message, ran: Any = None, schema: str | None = None) -> LangChain:
    """Return the system for a chain whose models say these messages; it runs a tool, and returns something."""

    def does(_: Any, heard: Any) -> Any:
        options = schema and {"ls_structured_output_format": {"schema": {"title": schema}}}
        for number, message in enumerate(messages):
            heard.on_chat_model_start({}, [], run_id=number, parent_run_id="chain", options=options)
            heard.on_llm_end(SimpleNamespace(generations=[[SimpleNamespace(message=message)]]), run_id=number)
        if ran is not None:
            heard.on_tool_start({"name": "refund"}, str(ran), run_id="tool", inputs=ran if ran != "7" else None)
        return returned

    return target(does)


CALLING = Message("ai", "", tool_calls=[REFUND])


@pytest.mark.parametrize(
    "returned",
    [
        "fine",
        Message("ai", "fine"),
        {"verdict": "x", "answer": "fine"},
        {"messages": [Message("human", "?"), Message("ai", "fine")]},
        {"messages": [Message("human", "?"), CALLING, Message("human", "Is that so?"), Message("ai", "fine")]},
        {"output": "fine", "intermediate_steps": [(SimpleNamespace(tool="refund", tool_input={"id": 7}), "done")]},
    ],
)
@pytest.mark.parametrize("ran", [None, {"id": 7}])
def test_a_call_that_a_model_asked_for_is_written_once_whatever_is_returned(returned: Any, ran: Any) -> None:
    response = asked(saying(returned, CALLING, Message("ai", "fine"), ran=ran))
    assert (response.response, response.tool_calls) == ("fine", [REFUNDED])


@pytest.mark.parametrize(
    "returned",
    [
        {"answer": "fine", "tool_calls": [REFUND]},
        {"answer": "fine", "output": Message("ai", "fine", tool_calls=[REFUND])},
        {"messages": [Message("human", "?"), CALLING, Message("human", "Is that so?"), Message("ai", "fine")]},
        {"output": "fine", "intermediate_steps": [(SimpleNamespace(tool="refund", tool_input={"id": 7}), "done")]},
        {
            "answer": "fine",
            "messages": [
                {"role": "user", "content": "?"},
                {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "function": REFUNDED}]},
                {"role": "tool", "content": "done", "tool_call_id": "c1"},
                {"role": "assistant", "content": "fine"},
            ],
        },
    ],
)
def test_a_call_that_is_only_returned_is_written(returned: Any) -> None:
    response = asked(returning(returned))
    assert (response.response, response.tool_calls) == ("fine", [REFUNDED])


def test_calls_of_an_earlier_turn_are_not_those_of_a_question_that_the_application_rewrites() -> None:
    earlier = [Message("human", "Hello"), CALLING, Message("ai", "Done.")]
    response = asked(
        returning({"messages": [*earlier, Message("human", "Context: … Question: ?"), Message("ai", "fine")]})
    )
    assert (response.response, response.tool_calls) == ("fine", [])


def test_calls_of_messages_models_and_tools_are_written_together() -> None:
    search = {"name": "search", "args": {}, "id": "c2"}
    messages = [Message("human", "?"), Message("ai", "", tool_calls=[search]), Message("ai", "fine")]
    response = asked(saying({"messages": messages}, Message("ai", "", tool_calls=[search]), ran={"id": 7}))
    assert response.tool_calls == [{"name": "search", "arguments": {}}, REFUNDED]
    other = asked(saying({"messages": messages}, CALLING, ran={"id": 8}))
    assert other.tool_calls == [
        {"name": "search", "arguments": {}},
        REFUNDED,
        {"name": "refund", "arguments": {"id": 8}},
    ]


def test_a_model_that_asks_twice_is_written_twice() -> None:
    assert asked(saying("fine", CALLING, CALLING)).tool_calls == [REFUNDED, REFUNDED]


def test_a_tool_that_gets_its_only_argument_as_a_text_is_the_one_that_the_model_asked_for() -> None:
    message = Message("ai", "", tool_calls=[{"name": "refund", "args": {"__arg1": "7"}, "id": "c1"}])
    assert asked(saying("fine", message, ran="7")).tool_calls == [{"name": "refund", "arguments": {"__arg1": "7"}}]


def test_calls_that_nothing_is_known_of_are_not_written() -> None:
    assert asked(returning("fine")).tool_calls is None
    assert asked(returning({"answer": "fine", "context": []})).tool_calls is None
    assert asked(saying("fine", Message("ai", "fine"))).tool_calls == []
    assert asked(returning({"answer": Message("ai", "fine")})).tool_calls == []


@pytest.mark.parametrize("reason", [{"finish_reason": "tool_calls"}, {"stop_reason": "tool_use"}])
def test_calls_that_a_model_stopped_for_and_that_are_not_there_are_not_none(reason: Any) -> None:
    message = Message("ai", "fine", response_metadata=reason)
    for made in (returning(message), returning({"messages": [message]}), saying("fine", message), saying("x", message)):
        assert asked(made).tool_calls is None


def test_a_call_whose_arguments_cannot_be_told_is_written_as_it_is() -> None:
    call = {"name": "refund", "args": {}, "amount": {"eur": 5}}
    assert asked(returning({"answer": "fine", "tool_calls": [call]})).tool_calls == [call]


def test_the_schema_of_an_answer_is_no_tool() -> None:
    grade = Message("ai", "", tool_calls=[{"name": "Grade", "args": {"ok": True}, "id": "c1"}])
    assert asked(saying("fine", grade, schema="Grade")).tool_calls == []
    assert asked(saying("fine", CALLING, schema="Grade")).tool_calls == [REFUNDED]


def test_what_a_model_within_a_tool_asks_for_is_its_own() -> None:
    noted = Noted()
    heard = listener(noted)
    heard.on_tool_start({"name": "search"}, "?", run_id="tool")
    heard.on_chat_model_start({}, [], run_id="inner", parent_run_id="tool")
    heard.on_llm_end(SimpleNamespace(generations=[[SimpleNamespace(message=CALLING)]]), run_id="inner")
    assert noted.said() == []


# How an answer came about


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (Message("ai", "x", response_metadata={"finish_reason": "content_filter"}), ("x", "content_filter", None)),
        (Message("ai", "x", response_metadata={"stop_reason": "max_tokens"}), ("x", "max_tokens", None)),
        (Message("ai", "", additional_kwargs={"refusal": "I cannot."}), ("", None, "I cannot.")),
        (Message("ai", [{"type": "refusal", "refusal": "I cannot."}]), ("", None, "I cannot.")),
        (Message("ai", [{"type": "markdown", "markdown": "**x**"}]), ("**x**", None, None)),
    ],
)
def test_what_a_message_says_of_itself_is_kept(message: Message, expected: Any) -> None:
    conversation = [Message("human", "?"), message]
    text = message.content if isinstance(message.content, str) else expected[0]
    for made in (message, {"answer": message}, {"messages": conversation}, conversation):
        response = asked(returning(made))
        assert (response.response, response.finish_reason, response.refusal) == expected
    response = asked(saying(text, message))
    assert (response.response, response.finish_reason, response.refusal) == expected


def test_why_another_model_stopped_is_not_why_the_answer_ended() -> None:
    cut = Message("ai", "a draft", response_metadata={"finish_reason": "length"})
    assert asked(saying("fine", cut)).finish_reason is None


def test_a_part_of_an_unknown_type_is_refused() -> None:
    with pytest.raises(InputError, match='"secret" as the type of message'):
        asked(returning(Message("ai", [{"type": "secret", "text": "x"}])))


# Two answers


@dataclass
class Answered:
    """What a chain with a schema of its own returns."""

    answer: str
    chat_history: list[str]


@pytest.mark.parametrize(
    ("returned", "problem"),
    [
        ({"answer": "fine", "output": "SECRET"}, "two answers that differ, as 'answer' and 'output'"),
        (
            {"answer": "fine", "response": Message("ai", "SECRET")},
            "two answers that differ, as 'answer' and 'response'",
        ),
        ({"answer": "fine", "messages": [Message("human", "?"), Message("ai", "SECRET")]}, "answer that differs from"),
        ({"answer": "", "messages": [Message("ai", "SECRET")]}, "answer that differs from"),
        ({"answer": "x", "output": {"text": "SECRET"}}, "a value of type dict as the answer"),
        (
            {"context": [Document("t", id="a")], "source_documents": [Document("t", id="b")], "result": "x"},
            "two lists of results that differ, as 'source_documents' and 'context'",
        ),
        (
            {"answer": "x", "tool_calls": [REFUND], "function_call": {"name": "a"}},
            "two lists of tool calls that differ",
        ),
    ],
)
def test_two_versions_of_the_same_are_refused(returned: Any, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        asked(returning(returned))


def test_an_error_beside_the_answer_is_kept() -> None:
    response = asked(returning({"result": "fine", "error": "boom"}))
    assert (response.response, response.error) == ("fine", "boom")
    assert asked(returning({"error": "boom"})).error == "boom"
    assert asked(returning({"result": "fine", "error": None})).error is None
    assert asked(returning({"result": "fine", "error": False})).error is None


@pytest.mark.parametrize(
    ("returned", "answer"),
    [
        ({"question": "?", "chat_history": [Message("human", "?")], "answer": "fine"}, "fine"),
        ({"input": "?", "history": "Human: ?", "output": "fine"}, "fine"),
        ({"documents": ["a text"], "generation": "fine", "max_retries": 3, "steps": ["search"]}, "fine"),
        ({"results": "SELECT 1", "answer": "fine"}, "fine"),
        ({"context": {"user": 1}, "answer": "fine"}, "fine"),
        ({"mode": 3, "model": Message("ai", "x"), "answer": "fine"}, "fine"),
        (Answered("fine", chat_history=["?"]), "fine"),
        ({"messages": [Message("ai", "Let me see."), Message("ai", "fine")], "answer": "fine"}, "Let me see.\nfine"),
        ({"messages": [Message("human", "?"), Message("ai", "fine")], "answer": None}, "fine"),
    ],
)
def test_fields_of_a_state_that_mean_something_else_are_not_read(returned: Any, answer: str) -> None:
    response = asked(returning(returned))
    assert (response.response, response.results, response.messages, response.metadata) == (answer, None, None, None)


def test_a_context_that_is_a_text_is_what_the_model_saw() -> None:
    response = asked(returning({"context": "a text", "answer": "fine"}))
    assert (response.results, response.retrieved_contexts) == (None, ["a text"])
    response = asked(returning({"context": [], "answer": "fine"}))
    assert (response.results, response.retrieved_contexts) == ([], None)


# Failing, asynchronous


def test_what_is_raised_is_a_failed_attempt_without_secrets() -> None:
    def does(*_: Any) -> Any:
        raise ConnectionError("refused with key 0123456789abcdef")

    here = Surroundings(secrets=Secrets({"KEY": "0123456789abcdef"}))
    with pytest.raises(CallFailed) as failed:
        asked(LangChain(Chain(does), LangChainOptions(object="x:y"), here))
    assert failed.value.again
    assert "0123456789" not in str(failed.value)


@pytest.mark.parametrize(
    "error",
    [
        TypeError("No synchronous function provided; invoke via the async API (ainvoke, astream, etc.)"),
        NotImplementedError("StructuredTool does not support sync invocation."),
    ],
)
def test_what_is_only_asynchronous_says_how_to_ask_it(error: Exception) -> None:
    def does(*_: Any) -> Any:
        raise error

    with pytest.raises(InputError, match="say `ainvoke: true` under `langchain`"):
        asked(target(does))


def test_another_type_error_is_a_failed_attempt() -> None:
    with pytest.raises(CallFailed, match="TypeError"):
        asked(target(lambda given, _: given + 1))


@pytest.mark.parametrize("seconds", [20, float("inf")])
def test_what_is_asynchronous_is_awaited(seconds: float) -> None:
    assert asked(returning("x", ainvoke=True), "q", seconds=seconds).response == "awaited q"


# Which objects


def test_a_retriever_is_asked_with_the_question() -> None:
    class Mine(Retriever):  # type: ignore[misc]
        vectorstore = SimpleNamespace(embeddings=SimpleNamespace(model="bge-m3"))

        def invoke(self, given: Any, **_: Any) -> Any:
            return [Document(given, id="a")]

    made = of_object(Mine(), HERE)
    assert made is not None
    assert asked(made, "q").results == [{"doc_id": "a", "chunk_id": "a", "text": "q"}]
    assert made.versions() == {"embedding_model": "bge-m3"}
    assert made.facts()["langchain"]["object"].endswith("Mine")


def test_an_object_that_cannot_be_invoked_is_none() -> None:
    assert of_object(Document("t"), HERE) is None
    assert returning("x").versions() == {}


def test_a_target_file_names_an_object(tmp_path: Path) -> None:
    code = "from tests.record.adapters.stand_ins import Chain\nchain = Chain(lambda *_: 'x')\nnumber = 7\n"
    (tmp_path / "chains.py").write_text(code)
    here = Surroundings(folder=tmp_path)
    assert asked(system(LangChainOptions(object="chains.py:chain"), here)).response == "x"
    with pytest.raises(InputError, match=r"chains.py:number is a builtins.int; expected a retriever, a chain or a c"):
        system(LangChainOptions(object="chains.py:number"), here)


def test_what_an_application_prints_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    def talking(given: Any, _: Any) -> str:
        print(given)  # noqa: T201
        return "x"

    asked(target(talking), "noise")
    assert capsys.readouterr() == ("", "noise\n")
