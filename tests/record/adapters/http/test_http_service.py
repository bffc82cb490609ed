"""A service over HTTP as a system: what it is sent, what it gives back, and which options are refused."""

import json
from typing import Any
from urllib.parse import parse_qsl

import msgspec
import pytest

from ragcontract.core.errors import InputError
from ragcontract.net.secrets import Secrets
from ragcontract.record.adapters.http_service import HttpOptions, system
from ragcontract.record.interface import CallFailed, Context, Response, Surroundings
from tests.net.service import Reply, Request, Service

TOKEN = "sk-standin-0123456789abcdef"
SURROUNDINGS = Surroundings(secrets=Secrets({"TOKEN": TOKEN}))
CONTEXT = Context(query_id="q1", top=5, seconds=20, traceparent="00-aa-bb-01")
ASKED = {"q": "{query}"}
FOUND = Reply(content={"results": [{"doc_id": "a", "text": "A"}]})


def asked(
    *replies: Reply,
    question: str = "why?",
    surroundings: Surroundings = SURROUNDINGS,
    context: Context = CONTEXT,
    **more: Any,
) -> tuple[Response, Request]:
    """Ask a service one question; return its response and the last request."""
    with Service(*(replies or (FOUND,))) as service:
        options = msgspec.convert({"url": f"{service.url}/search", "query": ASKED} | more, HttpOptions)
        made = system(options, surroundings)
        made.setup()
        try:
            return made.ask(question, context), service.requests[-1]
        finally:
            made.teardown()


def problems(**options: Any) -> list[str]:
    with pytest.raises(InputError) as raised:
        system(msgspec.convert({"url": "http://h", "query": ASKED} | options, HttpOptions), SURROUNDINGS)
    return raised.value.problems


def test_a_question_is_sent_as_json() -> None:
    headers = {"Authorization": "Bearer ${secret:TOKEN}", "X-Query": "{query_id}"}
    body = {"question": "{query}", "size": "{top}", "filter": {"n": [1, True, None]}}
    response, request = asked(json=body, headers=headers)
    assert response == Response(results=[{"doc_id": "a", "text": "A"}])
    assert (request.method, request.path) == ("POST", "/search")
    assert request.json == {"question": "why?", "size": 5, "filter": {"n": [1, True, None]}}
    assert request.headers["authorization"] == f"Bearer {TOKEN}"
    assert request.headers["x-query"] == "q1"
    assert request.headers["accept"] == "application/json"
    assert request.headers["traceparent"] == "00-aa-bb-01"


def test_a_question_is_sent_in_the_address() -> None:
    query = {"q": "{query}", "n": "{top}", "tag": ["a", "b"], "flag": True, "no": None, "history": "{history}"}
    context = Context(query_id="q1", top=5, messages=({"role": "user", "content": "ü"},))
    _, request = asked(question="a&b=ü", query=query, context=context)
    assert request.method == "GET"
    assert request.query == [
        ("q", "a&b=ü"),
        ("n", "5"),
        ("tag", "a"),
        ("tag", "b"),
        ("flag", "true"),
        ("history", '[{"role": "user", "content": "ü"}]'),
    ]


def test_a_question_is_sent_as_a_form() -> None:
    _, request = asked(form={"q": "{query}", "n": "{top}"}, method="put")
    assert (request.method, parse_qsl(request.body.decode())) == ("PUT", [("q", "why?"), ("n", "5")])


def test_a_header_takes_any_question() -> None:
    _, request = asked(question="ü\r\nX-Evil: 1\x00", headers={"X-Question": "{query}"})
    assert request.headers["x-question"].encode("latin-1").decode() == "ü X-Evil: 1"
    assert "x-evil" not in request.headers


def test_a_traceparent_of_the_user_stays() -> None:
    _, request = asked(headers={"TraceParent": "mine"})
    assert request.headers["traceparent"] == "mine"
    _, request = asked(context=Context(query_id="q", top=1))
    assert "traceparent" not in request.headers


def test_fields_are_found_by_expressions() -> None:
    answer = {"hits": [{"id": "c1", "doc": "a", "s": 0.5}], "answer": {"text": "Because."}, "model": "m"}
    fields = {"results": "hits[*].{doc_id: doc, score: s, chunk_id: id}", "answer": "answer.text", "llm_model": "model"}
    response, _ = asked(Reply(content=answer), response=fields)
    results = [{"doc_id": "a", "score": 0.5, "chunk_id": "c1"}]
    assert response == Response(results=results, response="Because.", llm_model="m")


@pytest.mark.parametrize("where", ["option", "command line"])
def test_documents_are_found_as_the_user_says(where: str) -> None:
    reply = Reply(content={"results": [{"metadata": {"source": "x", "url": "s"}}]})
    if where == "option":
        response, _ = asked(reply, doc_id="metadata.url")
    else:
        surroundings = Surroundings(doc_id="metadata.url")
        response, _ = asked(reply, doc_id="metadata.other", surroundings=surroundings)
    assert response.results == [{"doc_id": "s", "metadata": {"source": "x", "url": "s"}}]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"results": ["a"]}, Response(results=[{"doc_id": "a"}])),
        (
            {"documents": ["a"], "answer": "x", "took": 3},
            Response(results=[{"doc_id": "a"}], response="x", metadata={"took": 3}),
        ),
        ([{"id": "a", "score": 2}], Response(results=[{"doc_id": "a", "chunk_id": "a", "score": 2}])),
    ],
)
def test_an_answer_that_is_a_row_needs_no_expressions(content: Any, expected: Response) -> None:
    response, _ = asked(Reply(content=content))
    assert response == expected


@pytest.mark.parametrize("content", [{"results": None}, {"results": None, "took": 3}])
def test_results_that_are_null_are_an_error_unless_they_mean_none(content: Any) -> None:
    with pytest.raises(CallFailed, match="there are neither results nor a response; there are: results"):
        asked(Reply(content=content))
    response, _ = asked(Reply(content=content), empty_results="accept")
    assert response.results == []


@pytest.mark.parametrize("content", [{"hits": []}, 7, {"error": "gone"}])
def test_an_answer_that_is_no_row_is_a_failure(content: Any) -> None:
    with pytest.raises(CallFailed) as raised:
        asked(Reply(content=content))
    assert raised.value.kind == ("error" if content == {"error": "gone"} else "bad_answer")
    assert raised.value.detail is not None


def test_an_answer_without_results_fails_with_what_it_was() -> None:
    with pytest.raises(CallFailed, match=r"`results` finds nothing in the answer, which has: hist") as raised:
        asked(Reply(content={"hist": [TOKEN]}), response={"results": "results"})
    assert raised.value.detail == {
        "status_code": 200,
        "content_type": "application/json",
        "response_snippet": '{"hist": ["***"]}',
    }


def events(*data: Any) -> Reply:
    """Return a streamed answer."""
    lines = [one if isinstance(one, str) else f"data: {json.dumps(one)}\r\n\r\n" for one in data]
    return Reply(content="".join(lines).encode(), headers={"Content-Type": "text/event-stream; charset=utf-8"})


def test_a_streamed_answer_is_put_together() -> None:
    pieces = [{"delta": "Thirty "}, ": a comment\n\n", {"delta": None}, {"sources": ["a", "b"]}, {"delta": "däys."}]
    reply = events("event: x\nid: 1\n\n", *pieces, "data: [DONE]\n\n")
    response, _ = asked(reply, sse="delta")
    assert response == Response(response="Thirty däys.")
    fields = {"answer": "text", "results": "events[?sources] | [0].sources"}
    response, _ = asked(reply, sse="delta", response=fields)
    assert response == Response(response="Thirty däys.", results=[{"doc_id": "a"}, {"doc_id": "b"}])


def test_data_of_an_event_may_have_several_lines() -> None:
    response, _ = asked(events('data: {"delta":\ndata:"a"}\n\n', 'data: {"delta": "b"}'), sse="delta")
    assert response.response == "ab"


def test_a_secret_that_is_streamed_in_pieces_is_redacted() -> None:
    response, _ = asked(events({"d": f"key {TOKEN[:9]}"}, {"d": TOKEN[9:]}), sse="d")
    assert response.response == "key ***"


def test_an_answer_that_is_not_streamed_is_read_as_it_is() -> None:
    response, _ = asked(Reply(content={"text": "at once"}), sse="delta")
    assert response.response == "at once"


@pytest.mark.parametrize("data", ["data: {\n\n", 'data: {"delta": {}}\n\n'])
def test_a_stream_that_cannot_be_read_is_a_failure(data: str) -> None:
    with pytest.raises(CallFailed) as raised:
        asked(events(data), sse="sum(delta)")
    assert raised.value.kind == "not_json"


@pytest.mark.parametrize(
    ("data", "kind", "problem"),
    [
        ([{"error": {"message": "overloaded"}}], "service_error", "answered with an error: overloaded"),
        ([{"error": True}], "service_error", 'answered with an error: {"error": true}'),
        ([{"type": "error", "message": f"bad key {TOKEN}"}], "service_error", "answered with an error: bad key ***"),
        (['event: error\ndata: "gone"\n\n'], "service_error", 'answered with an error: "gone"'),
        ([{"delta": ["b"]}], "bad_answer", "http.sse: expected text, found ['b'] in events[1]"),
        ([{"delta": {"text": "b"}}], "bad_answer", "http.sse: expected text, found {'text': 'b'} in events[1]"),
        ([{"delta": 7}], "bad_answer", "http.sse: expected text, found 7 in events[1]"),
        (['data: {"delta": "b", "delta": "c"}\n\n'], "bad_answer", "duplicate key 'delta' in one object"),
    ],
)
def test_a_stream_that_breaks_off_is_no_shorter_answer(data: list[Any], kind: str, problem: str) -> None:
    with pytest.raises(CallFailed) as raised:
        asked(events({"delta": "a"}, *data, "data: [DONE]\n\n"), sse="delta")
    assert raised.value.kind == kind
    assert problem in str(raised.value)
    assert raised.value.detail is not None


def test_events_without_text_have_no_part_in_the_answer() -> None:
    quiet = [{"delta": None}, {"delta": False}, {"delta": ""}, {"delta": {}}, {"error": None}, "event: done\n\n"]
    assert asked(events({"delta": "a"}, *quiet), sse="delta")[0].response == "a"


def test_a_stream_without_its_last_event_was_cut_off() -> None:
    for end in ("[DONE]", '{"done": true}'):
        assert asked(events({"d": "a"}, f"data: {end}\n\n"), sse="d", sse_end=end)[0].response == "a"
        with pytest.raises(CallFailed, match=r"http\.sse_end: the stream ended without"):
            asked(events({"d": "a"}), sse="d", sse_end=end)
    assert "http.sse_end: is for `sse`" in problems(sse_end="x")[0]


def test_an_answer_with_two_values_for_one_key_is_refused() -> None:
    twice = Reply(content=b'{"response": "A", "response": "B"}', headers={"Content-Type": "application/json"})
    with pytest.raises(CallFailed) as raised:
        asked(twice)
    assert (raised.value.kind, "duplicate key 'response' in one object" in str(raised.value)) == ("bad_answer", True)
    status = Reply(status=400, content=b'{"error": "no", "error": "bad"}', headers={"Content-Type": "application/json"})
    with pytest.raises(CallFailed) as raised:
        asked(status)
    assert raised.value.kind == "http_error"


def test_a_redirect_keeps_the_secret_within_the_host() -> None:
    headers = {"Authorization": "Bearer ${secret:TOKEN}"}
    moved = Reply(status=307, headers={"Location": "/new"})
    _, request = asked(moved, FOUND, headers=headers, json={})
    assert (request.path, request.headers["authorization"]) == ("/new", f"Bearer {TOKEN}")
    with Service(FOUND) as other:
        away = Reply(status=307, headers={"Location": f"{other.url}/steal"})
        with pytest.raises(CallFailed, match="another host"):
            asked(away, headers=headers, json={})
        assert other.requests == []


def test_facts_name_the_service_without_its_parameters() -> None:
    made = system(HttpOptions(url="https://h/a?key=x", json=ASKED), SURROUNDINGS)
    assert made.facts() == {"url": "https://h/a", "method": "POST"}
    assert made.versions() == {}
    assert made.concurrency == 8


@pytest.mark.parametrize(
    "url",
    [
        "",
        "h/search",
        "ftp://h",
        "http://",
        "http:///a",
        "http://h:x",
        "http://[",
        "http://h/a b",
        "http://h:0/",
        "http://h\n",
    ],
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    (problem,) = problems(url=url)
    assert problem.startswith("http.url: expected an address such as https://search.example/api, found ")


@pytest.mark.parametrize("url", ["http://ann:password@h", "ftp://ann:password@h/?key=password", "http://password@h"])
def test_credentials_in_an_address_are_refused_and_not_repeated(url: str) -> None:
    (problem,) = problems(url=url)
    assert problem.startswith("http.url: ")
    assert "password@" not in problem
    assert "key=" not in problem


def test_everything_that_is_wrong_is_said_at_once() -> None:
    found = problems(
        url="http://h/{query}",
        method="DELETE",
        headers={"X Y": "a", "Z": "${secret:OTHER}"},
        query={"q": "{qeury}"},
        json={"a": 1},
        form={"b": "{nonsense}"},
        response={"answer": "a["},
        sse="b[",
    )
    assert [problem.partition(": ")[0] for problem in found] == [
        "http.url", "http.headers", "http.method", "http", "http.headers.Z", "http.query.q", "http.form.b",
        "http.sse", "http.response.answer",
    ]  # fmt: skip
    assert "`json` and `form` are both the body; remove one of them" in found[3]


def test_an_expression_for_documents_that_is_none_is_refused() -> None:
    assert "doc_id: is not a JMESPath expression" in problems(doc_id="a[")[0]


def test_options_that_do_not_exist_are_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="unknown field `jason`"):
        msgspec.convert({"url": "http://h", "jason": {}}, HttpOptions)
