"""Calls that fail: which are sent again, after how long, and what is said of those that are not."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from typing import Any

import pytest

from ragcontract.core import bounds
from ragcontract.judge.interface import NoReply
from ragcontract.judge.model_calls import Budget, CallLimits
from ragcontract.net.pacing import Timing
from tests.judge.lab import NOW, Judge, an_ask
from tests.judge_server import Fault, JudgeServer
from tests.net.service import refused

KEY = "sk-a-long-secret-0123456789"
WITH_KEY = {"RAG_CONTRACT_JUDGE_KEY": KEY}


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 0])
def test_what_may_succeed_later_is_sent_again(status: int) -> None:
    with JudgeServer(faults=[Fault(status=status)] * 2) as server:
        judge = Judge(server.openai)
        assert judge.model.ask(an_ask()).retried == 2
    assert (judge.spending.spent.calls, judge.spending.spent.retried) == (3, 2)
    assert 0.25 + 0.5 <= sum(judge.clock.slept) <= 0.5 + 1


def test_after_four_more_attempts_there_is_no_reply() -> None:
    with JudgeServer(faults=[Fault(status=503)] * 9) as server:
        failure = Judge(server.openai).failure()
    assert (failure.kind, failure.final, len(server.came)) == ("http_error", False, 5)
    assert "answered 503: not now" in str(failure)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7),
        ({"Retry-After": formatdate(NOW + 30, usegmt=True)}, 30),
        ({"Retry-After": "1m30s"}, 90),
        ({"retry-after-ms": "2500"}, 2.5),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6s"}, 6),
        ({"Retry-After": str(NOW + 12)}, 12),
        ({"Retry-After": "99999999"}, bounds.ASKED_PAUSE),
    ],
)
def test_a_pause_that_the_server_asks_for_is_waited_for(headers: dict[str, str], seconds: float) -> None:
    with JudgeServer(faults=[Fault(status=429, headers=headers)]) as server:
        judge = Judge(server.openai)
        judge.model.ask(an_ask())
    assert sum(judge.clock.slept) == pytest.approx(seconds, abs=0.5)


def test_everybody_waits_for_a_pause_that_one_was_asked_for() -> None:
    with JudgeServer(faults=[Fault(status=429, headers={"Retry-After": "40"})] * 5) as server:
        judge = Judge(server.openai)
        judge.failure()
        before = sum(judge.clock.slept)
        judge.model.ask(an_ask())
    assert sum(judge.clock.slept) == pytest.approx(before + 40, abs=0.5)


def test_too_many_calls_at_a_time_are_halved_until_they_are_few_enough() -> None:
    timing = Timing(monotonic=lambda: time.monotonic() * 50, sleep=lambda seconds: time.sleep(seconds / 50))
    with JudgeServer(seconds=0.02, at_once=2) as server:
        judge = Judge(server.openai, limits=CallLimits(concurrency=16, retries=20), timing=timing)
        judge.model.ask(an_ask())
        with ThreadPoolExecutor(16) as pool:
            assert len(list(pool.map(lambda _: judge.model.ask(an_ask()), range(40)))) == 40
    assert judge.calls.throttle.limit < 16
    assert judge.spending.spent.retried > 0


def test_a_server_that_says_nothing_is_left_and_asked_again() -> None:
    with JudgeServer(seconds=0.4) as server:
        judge = Judge(server.openai, limits=CallLimits(retries=1, seconds=0.05))
        failure = judge.failure()
    assert failure.kind == "read_timeout"
    assert "--timeout allows more" in str(failure)
    assert (len(server.came), judge.spending.spent.estimated) == (2, 2)


def test_a_host_that_is_dead_ends_all_after_the_last_attempt() -> None:
    judge = Judge(refused())
    failure = judge.failure()
    assert (failure.kind, failure.final) == ("unreachable", True)
    assert (judge.spending.spent.retried, judge.spending.spent.tokens_in) == (4, 0)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_and_the_key_goes_nowhere(status: int) -> None:
    with JudgeServer() as elsewhere:
        leads = Fault(status=status, headers={"Location": f"{elsewhere.openai}/chat/completions"})
        with JudgeServer(faults=[leads]) as server:
            failure = Judge(server.openai, environ=WITH_KEY).failure()
            assert server.came[0].headers["authorization"] == f"Bearer {KEY}"
    assert (failure.kind, failure.final) == ("redirect", True)
    assert elsewhere.came == []


def test_a_redirect_within_the_host_is_not_followed_either() -> None:
    with JudgeServer(faults=[Fault(status=307, headers={"Location": "/v1/elsewhere"})]) as server:
        assert Judge(server.openai, environ=WITH_KEY).failure().kind == "redirect"
    assert len(server.came) == 1


def test_a_key_that_is_refused_ends_all_and_is_not_shown_although_the_server_repeats_it() -> None:
    with JudgeServer(key="another") as server:
        failure = Judge(server.openai, environ=WITH_KEY).failure()
    assert (failure.kind, failure.final, len(server.came)) == ("http_error", True, 1)
    assert "answered 401: wrong key: Bearer ***" in str(failure)
    assert KEY[:8] not in str(failure)


def test_a_key_that_a_model_repeats_is_not_in_the_reply() -> None:
    content = {"choices": [{"message": {"content": f"The key is {KEY}."}}], "model": f"m {KEY}"}
    with JudgeServer(faults=[Fault(status=200, content=content)]) as server:
        reply = Judge(server.openai, environ=WITH_KEY).model.ask(an_ask())
    assert (reply.text, reply.model) == ("The key is ***", "m ***")


def _escaped(text: str) -> str:
    return "".join(f"\\u{ord(char):04x}" for char in text)


@pytest.mark.parametrize(
    "hidden",
    [
        _escaped(KEY),
        _escaped(KEY).upper().replace("\\U", "\\u"),
        "".join(_escaped(char) if at % 7 == 0 else char for at, char in enumerate(KEY)),
    ],
)
def test_a_key_that_escapes_hide_in_the_json_of_a_reply_is_taken_out(hidden: str) -> None:
    said = '{"verdicts": [{"id": 1, "quote": null, "context": null, "reason": "It is %s.", "supported": false}]}'
    content = {"choices": [{"message": {"content": said % hidden}}]}
    with JudgeServer(faults=[Fault(status=200, content=content)]) as server:
        text = Judge(server.openai, environ=WITH_KEY).model.ask(an_ask()).text
    assert KEY[:12] not in json.dumps(json.loads(text))
    assert json.loads(text)["verdicts"][0]["supported"] is False


def test_a_key_in_several_parts_of_a_message_is_taken_out() -> None:
    parts = [{"type": "text", "text": KEY[at : at + 6]} for at in range(0, len(KEY), 6)]
    with JudgeServer(faults=[Fault(status=200, content={"choices": [{"message": {"content": parts}}]})]) as server:
        assert Judge(server.openai, environ=WITH_KEY).model.ask(an_ask()).text == "***"


def test_an_account_without_money_is_not_asked_again() -> None:
    said = {"message": "You exceeded your current quota.", "code": "insufficient_quota"}
    with JudgeServer(faults=[Fault(status=429, content={"error": said})]) as server:
        failure = Judge(server.openai).failure()
    assert (failure.final, len(server.came)) == (True, 1)


def test_openai_is_not_asked_without_a_key() -> None:
    failure = Judge("https://api.openai.com/v1").failure()
    assert (failure.kind, failure.final) == ("no_key", True)
    assert str(failure).endswith("set RAG_CONTRACT_JUDGE_KEY (or OPENAI_API_KEY) in the environment")


def test_what_is_no_json_is_no_reply() -> None:
    with JudgeServer(faults=[Fault(status=200, content=b"<html>", headers={"Content-Type": "text/html"})]) as server:
        failure = Judge(server.openai).failure()
    assert (failure.kind, failure.final) == ("not_json", False)


def test_json_that_is_nested_without_end_is_no_reply() -> None:
    with JudgeServer(faults=[Fault(status=200, content=b"[" * 100_000)]) as server:
        assert Judge(server.openai).failure().kind == "not_json"


def test_an_answer_that_is_too_large_is_no_reply() -> None:
    with JudgeServer(faults=[Fault(status=200, content=b" " * (bounds.HTTP_ANSWER + 1))]) as server:
        assert Judge(server.openai).failure().kind == "too_large"


def test_a_file_of_certificates_that_is_not_there_ends_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/no/such/file")
    assert Judge("https://localhost:1").failure().kind == "machine"


def test_a_pause_beyond_the_deadline_is_not_waited_for() -> None:
    with JudgeServer(faults=[Fault(status=429, headers={"Retry-After": "600"})]) as server:
        judge = Judge(server.openai, budget=Budget(deadline=60))
        failure = judge.failure()
    assert (failure.kind, failure.final) == ("deadline", True)
    assert sum(judge.clock.slept) < 1
    with pytest.raises(NoReply, match="the deadline is nearer than the 600 s to wait"):
        judge.spending.check()


def test_a_reply_that_does_not_come_before_the_deadline_is_not_waited_for() -> None:
    with JudgeServer(seconds=5) as server:
        judge = Judge(server.openai, budget=Budget(deadline=0.1), timing=Timing())
        assert judge.failure().kind == "deadline"


def test_a_refusal_of_another_kind_is_what_the_server_says() -> None:
    with JudgeServer(faults=[Fault(status=422, content={"detail": [{"loc": ["body"]}]})] * 9) as server:
        failure = Judge(server.openai).failure()
    assert "answered 422" in str(failure)


@pytest.mark.parametrize("status", [200, 400])
def test_an_answer_that_is_nested_too_deeply_is_no_json_on_any_python(status: int) -> None:
    content: Any = "deep down"
    for _ in range(bounds.NESTING + 1):
        content = {"error": content}
    with JudgeServer(faults=[Fault(status=status, content=content)] * 10) as server:
        failure = Judge(server.openai).failure()
    assert "deep down" not in str(failure)
