"""Models behind OpenAI's API, asked over sockets."""

import json

import pytest

from ragcontract.judge.interface import NoReply
from tests.judge.lab import SCHEMA, Judge, an_ask
from tests.judge_server import MODEL, Fault, JudgeServer


def test_a_reply_comes_with_the_model_as_it_answered_and_the_tokens_as_billed() -> None:
    with JudgeServer() as server:
        judge = Judge(server.openai)
        reply = judge.model.ask(an_ask())
    assert json.loads(reply.text)["verdicts"][0]["supported"] is True
    assert (reply.model, reply.cut, reply.dropped, reply.retried) == (MODEL, False, (), 0)
    spent = judge.spending.spent
    assert (spent.calls, spent.tokens_in, spent.tokens_out) == (1, reply.tokens_in, reply.tokens_out)
    assert reply.tokens_in > 0 < reply.tokens_out


def test_what_is_asked_is_sent_with_its_schema_and_how_it_is_drawn() -> None:
    with JudgeServer() as server:
        Judge(server.openai).model.ask(an_ask(temperature=0.7, seed=3, max_tokens=99))
        body = server.came[0].body
    assert server.came[0].path == "/v1/chat/completions"
    assert body["messages"][0] == {"role": "system", "content": "Judge."}
    assert (body["model"], body["temperature"], body["seed"]) == ("toy", 0.7, 3)
    assert (body["max_completion_tokens"], "max_tokens" in body) == (99, False)
    assert body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "judgment", "strict": True, "schema": SCHEMA},
    }


@pytest.mark.parametrize("names_them", [True, False])
@pytest.mark.parametrize(
    ("refused", "dropped", "calls"),
    [
        (["json_schema"], ["json_schema"], 2),
        (["json_schema", "json_object"], ["json_object", "json_schema"], 3),
        (["temperature"], ["temperature"], 2),
        (["seed"], ["seed"], 2),
        (["max_completion_tokens"], ["max_completion_tokens"], 2),
        (["max_completion_tokens", "max_tokens"], ["max_completion_tokens", "max_tokens"], 3),
        (["temperature", "seed", "json_schema"], ["json_schema", "seed", "temperature"], 4),
    ],
)
def test_a_parameter_that_is_refused_is_left_out_and_remembered(
    refused: list[str], dropped: list[str], calls: int, names_them: bool
) -> None:
    with JudgeServer(refuses=refused, names_them=names_them) as server:
        judge = Judge(server.openai)
        first, second = judge.model.ask(an_ask()), judge.model.ask(an_ask())
    assert set(dropped) <= set(first.dropped)
    assert first.dropped == second.dropped
    if names_them:
        assert list(first.dropped) == dropped
        assert (first.retried, len(server.came)) == (calls - 1, calls + 1)
    assert second.retried == 0


def test_an_older_server_gets_the_older_name_of_the_limit() -> None:
    with JudgeServer(refuses=["max_completion_tokens"]) as server:
        Judge(server.openai).model.ask(an_ask(max_tokens=77))
    assert server.came[1].body["max_tokens"] == 77


def test_a_call_that_is_refused_however_it_is_put_changes_nothing_for_the_others() -> None:
    hopeless = [Fault(status=400, content={"error": {"message": "bad request"}})] * 7
    with JudgeServer(faults=hopeless) as server:
        judge = Judge(server.openai)
        assert judge.failure().kind == "http_error"
        assert judge.model.ask(an_ask()).dropped == ()
    assert "response_format" in server.came[-1].body


def test_a_question_that_is_too_long_is_told_apart_from_a_parameter_that_is_refused() -> None:
    said = {"message": "This model's maximum context length is 8192 tokens.", "code": "context_length_exceeded"}
    with JudgeServer(faults=[Fault(status=400, content={"error": said})]) as server:
        failure = Judge(server.openai).failure()
    assert (failure.kind, failure.final, len(server.came)) == ("too_long", False, 1)


def test_a_reply_that_is_cut_off_is_asked_for_once_more_with_twice_the_length() -> None:
    with JudgeServer(longest=150) as server:
        reply = Judge(server.openai).model.ask(an_ask(max_tokens=100))
    assert not reply.cut
    assert [came.body["max_completion_tokens"] for came in server.came] == [100, 200]
    assert reply.retried == 1


def test_a_reply_that_is_cut_off_twice_says_so() -> None:
    with JudgeServer(longest=10_000) as server:
        reply = Judge(server.openai).model.ask(an_ask(max_tokens=100))
    assert reply.cut
    assert len(server.came) == 2


def test_ollama_behind_its_compatible_address_is_noticed_because_it_cuts_in_silence() -> None:
    with JudgeServer(mark="fp_ollama") as server:
        failure = Judge(server.openai).failure()
    assert (failure.kind, failure.final) == ("wrong_api", True)
    assert "--judge-api ollama" in str(failure)


@pytest.mark.parametrize(
    "content", [{}, [], {"choices": []}, {"choices": [3]}, {"choices": [{}]}, {"choices": [{"message": "x"}]}, 7, None]
)
def test_an_answer_without_a_message_is_no_reply(content: object) -> None:
    with JudgeServer(faults=[Fault(status=200, content=content)]) as server:
        assert Judge(server.openai).failure().kind in {"no_message", "not_json"}


def test_an_answer_that_only_says_what_is_wrong_is_quoted() -> None:
    content = {"error": {"message": "No provider has\x1b this model."}}
    with JudgeServer(faults=[Fault(status=200, content=content)]) as server:
        failure = Judge(server.openai).failure()
    assert str(failure) == r"the answer has no message, but says: No provider has\x1b this model."


def test_a_message_of_several_parts_is_their_text_and_a_refusal_is_what_it_says() -> None:
    for message, text in (
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "ab"),
        ({"content": None, "refusal": "I cannot."}, "I cannot."),
        ({"content": None}, ""),
    ):
        with JudgeServer(faults=[Fault(status=200, content={"choices": [{"message": message}]})]) as server:
            assert Judge(server.openai).model.ask(an_ask()).text == text


def test_tokens_that_no_answer_names_are_estimated() -> None:
    content = {"choices": [{"message": {"content": "{}"}}], "usage": {"prompt_tokens": -1, "completion_tokens": True}}
    with JudgeServer(faults=[Fault(status=200, content=content)]) as server:
        judge = Judge(server.openai)
        reply = judge.model.ask(an_ask())
    assert (reply.tokens_in, judge.spending.spent.estimated) == (0, 1)
    assert judge.spending.spent.tokens_in > 0
    assert 2 <= judge.spending.spent.tokens_out <= 200  # a short answer, whatever might have been


def test_the_first_call_finds_out_alone_what_is_refused() -> None:
    from concurrent.futures import ThreadPoolExecutor

    with JudgeServer(refuses=["json_schema", "temperature"], seconds=0.02) as server:
        judge = Judge(server.openai)
        with ThreadPoolExecutor(8) as pool:
            replies = list(pool.map(lambda _: judge.model.ask(an_ask()), range(16)))
    assert len(server.came) == 16 + 2
    assert {reply.dropped for reply in replies} == {("json_schema", "temperature")}


def test_no_reply_is_an_exception_whose_message_can_be_shown() -> None:
    assert str(NoReply("x", "why")) == "why"
