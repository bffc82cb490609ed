"""A model behind a retriever: what it is asked, which model it is, and what is left of an attempt that fails."""

from collections.abc import Mapping, Sequence
from threading import Event
from typing import Any

import pytest
from msgspec import Struct

from ragcontract.core.errors import InputError
from ragcontract.net.secrets import Secrets
from ragcontract.record.adapters.chat import ChatOptions, around
from ragcontract.record.interface import CallFailed, Context, Response, Surroundings, System
from tests.net.service import Reply, Service, refused

TOKEN = "sk-standin-0123456789abcdef"
RESULTS: Sequence[Mapping[str, Any]] = [{"doc_id": "a", "text": "Thirty days."}, {"doc_id": "b", "text": "No fee."}]
WRITTEN = "[1] source=a\nThirty days.\n\n[2] source=b\nNo fee."
ANSWER = {
    "model": "m-2026",
    "choices": [{"message": {"role": "assistant", "content": "30 days."}, "finish_reason": "stop"}],
    "usage": {"total_tokens": 9},
}
CONTEXT = Context(query_id="q1", top=5, seconds=20, traceparent="00-aa-bb-01")


class Retriever:
    """Returns the same for every question, and counts what is done with it."""

    concurrency = 3

    def __init__(self, found: Response) -> None:
        self.found = found
        self.calls: list[str] = []

    def setup(self) -> None:
        self.calls.append("setup")

    def ask(self, query: str, _context: Context) -> Response:
        self.calls.append(query)
        return self.found

    def versions(self) -> Mapping[str, str]:
        return {"embedding_model": "e"}

    def facts(self) -> Mapping[str, Any]:
        return {"folder": "x"}

    def teardown(self) -> None:
        self.calls.append("teardown")


class Asked(Struct, frozen=True, kw_only=True):
    """What came of one question."""

    response: Response
    body: Any
    headers: dict[str, str]
    system: System


def with_model(url: str, found: Response | None = None, **options: Any) -> System:
    retriever = Retriever(Response(results=RESULTS) if found is None else found)
    surroundings = Surroundings(secrets=Secrets({"KEY": TOKEN}))
    return around(ChatOptions(**{"base_url": f"{url}/v1", "model": "m"} | options), retriever, surroundings)


def asked(
    reply: Reply,
    *,
    context: Context = CONTEXT,
    found: Response | None = None,
    models: Reply | None = None,
    **options: Any,
) -> Asked:
    with Service(reply, at={} if models is None else {"/v1/models": models}) as service:
        system = with_model(service.url, found, **options)
        system.setup()
        try:
            response = system.ask("How long?", context)
        finally:
            system.teardown()
    request = service.requests[-1]
    assert (request.method, request.path) == ("POST", "/v1/chat/completions")
    return Asked(response=response, body=request.json, headers=request.headers, system=system)


def fails(reply: Reply, **more: Any) -> CallFailed:
    with pytest.raises(CallFailed) as raised:
        asked(reply, **more)
    return raised.value


def unusable(**options: Any) -> list[str]:
    with pytest.raises(InputError) as raised:
        around(ChatOptions(**{"base_url": "http://h"} | options), Retriever(Response()), Surroundings())
    return raised.value.problems


def test_a_model_is_asked_with_what_was_retrieved() -> None:
    done = asked(Reply(content=ANSWER), api_key="${secret:KEY}", seed=7)
    assert done.body == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Answer only from the context."},
            {"role": "user", "content": f"Context:\n{WRITTEN}\n\nQuestion: How long?"},
        ],
        "stream": False,
        "max_tokens": 256,
        "temperature": 0.0,
        "seed": 7,
    }
    assert done.headers["authorization"] == f"Bearer {TOKEN}"
    assert done.headers["traceparent"] == "00-aa-bb-01"
    assert done.response == Response(
        results=RESULTS,
        response="30 days.",
        tool_calls=[],
        context_chars=len(WRITTEN),
        finish_reason="stop",
        llm_model="m-2026",
        usage={"total_tokens": 9},
    )


def test_options_change_what_is_sent() -> None:
    options: dict[str, Any] = {
        "max_tokens": None,
        "temperature": None,
        "system": None,
        "prompt": "{query} {context} {top}",
    }
    extra = {"max_completion_tokens": 9, "user": "{query_id}"}
    done = asked(Reply(content=ANSWER), **options, extra=extra, headers={"X-Session": "{query_id}"})
    content = f"How long? {WRITTEN} {{top}}"
    assert done.body == {
        "model": "m", "messages": [{"role": "user", "content": content}], "stream": False, **extra, "user": "q1"
    }  # fmt: skip
    assert done.headers["x-session"] == "q1"
    assert "authorization" not in done.headers


def test_what_was_said_before_comes_before_the_question() -> None:
    history = ({"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"})
    done = asked(Reply(content=ANSWER), context=Context(query_id="q", top=1, messages=history))
    assert [message["role"] for message in done.body["messages"]] == ["system", "user", "assistant", "user"]
    assert done.body["messages"][1:3] == list(history)


def test_tool_calls_of_earlier_turns_are_sent_with_their_results_or_not_at_all() -> None:
    asked_for: dict[str, Any] = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "1", "function": {"name": "f"}}],
    }
    result = {"role": "tool", "tool_call_id": "1", "content": "7"}
    user = {"role": "user", "content": "Hi"}
    cases: list[tuple[list[dict[str, Any]], list[dict[str, Any]]]] = [
        ([user, asked_for], [user, {"role": "assistant", "content": ""}]),
        ([user, asked_for, result], [user, asked_for, result]),
        ([user, {**asked_for, "tool_calls": [{"name": "f"}]}, result], [user, {"role": "assistant", "content": ""}]),
    ]
    for history, sent in cases:
        done = asked(Reply(content=ANSWER), context=Context(query_id="q", top=1, messages=tuple(history)))
        assert done.body["messages"][1:-1] == sent


@pytest.mark.parametrize(
    ("most", "seen"),
    [
        (len(WRITTEN), None),
        (len(WRITTEN) - 1, ["Thirty days.", "No fee"]),
        (29, ["Thirty days."]),
        (20, ["Thirty "]),
        (5, []),
    ],
)
def test_a_long_context_is_cut_and_what_the_model_saw_is_said(most: int, seen: list[str] | None) -> None:
    done = asked(Reply(content=ANSWER), context_max_chars=most)
    assert WRITTEN[:most] in done.body["messages"][1]["content"]
    assert WRITTEN[: most + 1] not in done.body["messages"][1]["content"] or most == len(WRITTEN)
    assert (done.response.context_chars, done.response.retrieved_contexts) == (most, seen)


def test_nothing_found_is_a_context_too() -> None:
    done = asked(Reply(content=ANSWER), found=Response(results=[]))
    assert (done.response.context_chars, done.response.response) == (0, "30 days.")


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (Response(), "chat: the retriever returns no results"),
        (Response(results=[{"doc_id": "a"}]), "chat: the results have no `text`"),
    ],
)
def test_a_retriever_without_texts_is_unusable(found: Response, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        with_model("http://127.0.0.1:1", found).ask("q", CONTEXT)


def test_a_single_result_without_a_text_fails_its_question_only() -> None:
    found = Response(results=[*RESULTS, {"doc_id": "c\n"}])
    with pytest.raises(CallFailed, match=r"1 of 3 results have no `text`, the first is c\\n") as raised:
        with_model("http://127.0.0.1:1", found).ask("q", CONTEXT)
    assert (raised.value.kind, raised.value.again) == ("no_text", False)


MODELS = ["text-embedding-3", "bge-reranker", "whisper-1", "base-7b", "Base-7B-Instruct", "other-chat"]


@pytest.mark.parametrize(
    ("ids", "chosen", "why"),
    [
        (MODELS, "Base-7B-Instruct", "the first whose name has instruct or chat in it"),
        (MODELS[:4], "base-7b", "the first of the server's models"),
    ],
)
def test_auto_takes_the_first_model_for_chat(ids: list[str], chosen: str, why: str) -> None:
    models = Reply(content={"data": [{"id": name} for name in ids] + [{"id": 7}, "x"]})
    done = asked(Reply(content=ANSWER), models=models, model="auto")
    assert done.body["model"] == chosen
    facts = done.system.facts()
    assert facts["folder"] == "x"
    assert facts["llm"] | {"base_url": ""} == {
        "base_url": "",
        "model_arg": "auto",
        "model_field": chosen,
        "model_resolve": {"server_models": ids, "chosen_because": why, "fallback": None, "error": None},
    }


@pytest.mark.parametrize("status", [404, 405])
def test_a_server_that_lists_no_models_gets_the_word_auto(status: int) -> None:
    done = asked(Reply(content=ANSWER), models=Reply(status=status), model="auto")
    assert done.body["model"] == "auto"
    resolved = done.system.facts()["llm"]["model_resolve"]
    assert (resolved["fallback"], resolved["server_models"]) == ("auto", [])
    assert f"answered {status}" in resolved["error"]


@pytest.mark.parametrize(
    ("models", "problem"),
    [
        (Reply(status=401), "answered 401"),
        (Reply(status=500), "answered 500"),
        (Reply(content=b"<html>"), "not with JSON"),
        (Reply(content={"data": [{"id": "text-embedding-3"}]}), "finds no model for chat among .*text-embedding-3"),
        (Reply(content={"data": None}), r"finds no model for chat among the server's \(none\)"),
        (Reply(content=[]), "finds no model for chat"),
    ],
)
def test_a_server_that_cannot_say_its_models_is_unusable_before_any_question(models: Reply, problem: str) -> None:
    with pytest.raises(InputError, match=f"chat.model: `auto` .*{problem}"):
        asked(Reply(content=ANSWER), models=models, model="auto")


def test_a_server_that_is_not_there_is_unusable_too() -> None:
    with pytest.raises(InputError, match="the connection was refused"):
        with_model(refused(), model="auto").setup()


def test_a_model_that_is_named_is_not_looked_up() -> None:
    done = asked(Reply(content={"choices": ANSWER["choices"]}), models=Reply(status=500))
    assert done.response.llm_model == "m"
    assert done.system.facts()["llm"]["model_resolve"] is None


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"content": None, "tool_calls": [{"id": "1", "function": {"name": "f"}}]}, {"response": None}),
        ({"content": None, "refusal": "I cannot."}, {"response": None, "refusal": "I cannot."}),
        ({"content": ""}, {"response": ""}),
        ({"content": "x", "tool_calls": []}, {"response": "x"}),
        ({"content": "x", "tool_calls": None}, {"response": "x"}),
        ({"content": [{"type": "text", "text": "x"}]}, {"response": "x"}),
    ],
)
def test_an_answer_may_be_a_call_of_tools_or_a_refusal(message: Any, expected: dict[str, Any]) -> None:
    response = asked(Reply(content={"choices": [{"message": message}]})).response
    assert {name: getattr(response, name) for name in expected} == expected
    assert response.tool_calls == (message.get("tool_calls") or [])


def test_the_older_form_of_a_call_is_one_too() -> None:
    called = {"name": "refund", "arguments": "{}"}
    message = {"content": None, "function_call": called}
    assert asked(Reply(content={"choices": [{"message": message}]})).response.tool_calls == [called]


@pytest.mark.parametrize("wrong", [{"tool_calls": "refund"}, {"tool_calls": [7]}, {"function_call": "refund"}])
def test_calls_that_cannot_be_read_are_a_failure_and_not_none(wrong: dict[str, Any]) -> None:
    found = fails(Reply(content={"choices": [{"message": {"content": "x", **wrong}}]}))
    assert f"the {next(iter(wrong))} of choices[0].message" in str(found)


@pytest.mark.parametrize(
    "content", [{}, [], {"choices": []}, {"choices": [{"message": {"content": None}}]}, {"choices": 7}]
)
def test_an_answer_without_text_is_a_failure(content: Any) -> None:
    found = fails(Reply(content=content))
    assert (found.kind, found.again) == ("no_content", False)
    assert found.detail is not None
    assert found.detail["status_code"] == 200


@pytest.mark.parametrize("error", [{"message": "out of\nmemory"}, "out of\nmemory"])
def test_an_answer_with_an_error_is_a_failure_whatever_is_beside_it(error: Any) -> None:
    beside = {"choices": [{"message": {"content": "The beginning"}}]}
    found = fails(Reply(content={"error": error, **beside}))
    assert (found.kind, r"the answer has an error: out of\nmemory" in str(found)) == ("service_error", True)
    twice = Reply(content=b'{"choices": [], "choices": []}', headers={"Content-Type": "application/json"})
    assert "duplicate key 'choices'" in str(fails(twice))


@pytest.mark.parametrize(
    ("reply", "kind", "again"),
    [
        (Reply(status=503, headers={"Retry-After": "3"}), "http_error", True),
        (Reply(status=400, content={"error": {"message": "no such model"}}), "http_error", False),
        (Reply(content=b"<html>"), "not_json", False),
        (Reply(kind="drop"), "connection_lost", True),
        (Reply(content={"choices": []}), "no_content", False),
    ],
)
def test_a_model_that_fails_leaves_what_was_retrieved(reply: Reply, kind: str, *, again: bool) -> None:
    found = fails(reply)
    assert (found.kind, found.again) == (kind, again)
    assert found.pause == (3 if "Retry-After" in reply.headers else None)
    assert found.partial == Response(
        results=RESULTS,
        response=None,
        error=f"{kind}: {found}",
        error_detail=found.detail,
        context_chars=len(WRITTEN),
    )


@pytest.mark.parametrize("kind", ["hang", "drip body"])
def test_a_model_that_takes_too_long_leaves_it_too(kind: Any) -> None:
    found = fails(Reply(kind=kind), context=Context(query_id="q1", top=5, seconds=0.3))
    assert found.kind == "read_timeout"
    assert found.partial is not None
    assert found.partial.results == RESULTS


def test_a_model_gets_the_time_that_the_retriever_leaves() -> None:
    class Slow(Retriever):
        def ask(self, query: str, context: Context) -> Response:
            Event().wait(0.05)
            return super().ask(query, context)

    with Service(Reply(content=ANSWER)) as service:
        system = around(ChatOptions(base_url=service.url, model="m"), Slow(Response(results=RESULTS)), Surroundings())
        with pytest.raises(CallFailed, match="over before this call") as raised:
            system.ask("q", Context(query_id="q1", top=5, seconds=0.01))
    assert service.requests == []
    assert raised.value.partial is not None


def test_a_retriever_that_fails_leaves_nothing() -> None:
    class Broken(Retriever):
        def ask(self, query: str, _context: Context) -> Response:
            raise CallFailed("gone", query)

    system = around(ChatOptions(base_url="http://h", model="m"), Broken(Response()), Surroundings())
    with pytest.raises(CallFailed, match="q") as raised:
        system.ask("q", CONTEXT)
    assert raised.value.partial is None


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (400, "This model's maximum context length is 4096 tokens."),
        (400, "the request exceeds the available context size"),
        (413, "prompt is too long"),
    ],
)
def test_a_context_that_is_too_long_says_what_to_lower(status: int, text: str) -> None:
    found = fails(Reply(status=status, content={"error": {"message": text}}))
    assert (found.kind, found.again) == ("context_too_long", False)
    assert str(found).endswith(f"{text}; lower context_max_chars, --top or max_tokens")
    assert fails(Reply(status=500, content={"error": {"message": text}})).kind == "http_error"


def test_no_echo_of_the_key_is_passed_on() -> None:
    found = fails(Reply(status=401, content={"error": f"bad key {TOKEN}"}), api_key="${secret:KEY}")
    assert TOKEN[:12] not in f"{found}{found.detail}{found.partial}"
    said = {"choices": [{"message": {"content": f"Your key is {TOKEN}."}}], "model": TOKEN, "usage": {TOKEN: 1}}
    assert TOKEN[:12] not in str(asked(Reply(content=said), api_key="${secret:KEY}").response)


def test_the_retriever_is_prepared_and_released() -> None:
    retriever = Retriever(Response(results=RESULTS))
    with Service(Reply(content=ANSWER)) as service:
        system = around(ChatOptions(base_url=service.url, model="m"), retriever, Surroundings())
        system.setup()
        system.ask("q", CONTEXT)
        system.teardown()
    assert retriever.calls == ["setup", "q", "teardown"]
    assert (system.concurrency, system.versions()) == (3, {"embedding_model": "e"})


def test_everything_that_is_wrong_is_said_at_once() -> None:
    options = {"api_key": "${secret:OTHER}", "headers": {"X Y": "a"}, "extra": {"a": "{nonsense}"}, "prompt": "{query}"}
    found = unusable(base_url="http://ann:pw@h", **options)
    assert [problem.partition(": ")[0] for problem in found] == [
        "chat.base_url", "chat.headers", "chat.headers.Authorization", "chat.extra.a", "chat.prompt",
    ]  # fmt: skip
