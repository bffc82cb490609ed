"""Models that Ollama serves, asked over sockets."""

import json

import pytest

from ragcontract.judge.chat_model import STEP, context_length
from tests.judge.lab import SCHEMA, Judge, an_ask
from tests.judge_server import MODEL, Fault, JudgeServer


def test_the_length_of_the_context_is_sent_with_every_call() -> None:
    with JudgeServer() as server:
        reply = Judge(server.origin, api="ollama").model.ask(an_ask(temperature=0.7, seed=3, max_tokens=99))
        body = server.came[0].body
    assert server.came[0].path == "/api/chat"
    assert body["options"] == {"temperature": 0.7, "seed": 3, "num_ctx": 1024, "num_predict": 99}
    assert (body["format"], body["stream"], body["model"]) == (SCHEMA, False, "toy")
    assert (reply.model, json.loads(reply.text)["verdicts"][0]["supported"]) == (MODEL, True)


@pytest.mark.parametrize("characters", [0, 3_000, 6_144, 20_000, 90_000])
def test_the_length_is_at_least_a_third_of_the_characters_and_the_longest_reply(characters: int) -> None:
    ask = an_ask(user="word " * (characters // 5))
    length = context_length(ask)
    assert length >= characters / 3 + ask.max_tokens
    assert length % STEP == 0
    assert length < characters / 3 + ask.max_tokens + 2 * STEP


def test_digits_and_other_scripts_take_more_tokens_than_words() -> None:
    words, digits, script = (context_length(an_ask(user=text * 9_000)) for text in ("a", "7", "語"))
    assert digits == script
    assert digits - words >= 5_000


def test_what_ollama_would_cut_in_silence_is_judged_whole() -> None:
    claim = "The filing number is 7c1f9b2e."
    with JudgeServer() as server:
        judge = Judge(server.origin, api="ollama")
        data = {"x_claims": [{"id": 1, "text": claim}], "x_contexts": [{"id": 1, "text": claim + " padding" * 3_000}]}
        assert judge.verdicts(an_ask(user=json.dumps(data)))[0]["supported"] is True
    assert server.came[0].body["options"]["num_ctx"] > 8_192


def test_what_is_too_long_is_not_asked() -> None:
    with JudgeServer() as server:
        failure = Judge(server.origin, api="ollama", max_context=4_096).failure(an_ask(user="word " * 2_000))
    assert (failure.kind, failure.final, server.came) == ("too_long", False, [])
    assert "needs a context of 6,144 tokens, more than the 4,096 of --max-context" in str(failure)


def test_what_was_read_as_more_tokens_than_estimated_does_not_count() -> None:
    content = {"message": {"content": "{}"}, "prompt_eval_count": 5_000, "eval_count": 3}
    with JudgeServer(faults=[Fault(status=200, content=content)]) as server:
        failure = Judge(server.origin, api="ollama").failure()
    assert failure.kind == "too_long"
    assert "it may have been cut" in str(failure)


def test_an_older_version_that_takes_no_schema_is_asked_for_json() -> None:
    with JudgeServer(refuses=["format"]) as server:
        reply = Judge(server.origin, api="ollama").model.ask(an_ask())
    assert server.came[1].body["format"] == "json"
    assert reply.dropped == ("json_schema",)


def test_a_reply_that_is_cut_off_is_asked_for_with_a_longer_context_if_that_is_allowed() -> None:
    with JudgeServer(longest=3_000) as server:
        assert not Judge(server.origin, api="ollama").model.ask(an_ask()).cut
        assert [came.body["options"]["num_ctx"] for came in server.came] == [3_072, 5_120]
        assert Judge(server.origin, api="ollama", max_context=4_096).model.ask(an_ask()).cut


def test_a_model_that_is_not_there_ends_all() -> None:
    with JudgeServer(faults=[Fault(status=404, content={"error": "model 'toy' not found"})]) as server:
        failure = Judge(server.origin, api="ollama").failure()
    assert (failure.kind, failure.final) == ("http_error", True)
    assert "model 'toy' not found" in str(failure)


def test_an_answer_without_a_message_is_no_reply() -> None:
    with JudgeServer(faults=[Fault(status=200, content={"models": []})]) as server:
        assert Judge(server.origin, api="ollama").failure().kind == "no_message"
