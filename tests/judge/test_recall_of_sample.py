"""Judged context recall in Python, called as users of ragas call theirs; the model is a stand-in behind a socket."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from ragcontract import InputError, Judge, JudgedRecall, acontext_recall, context_recall
from ragcontract.judge.endpoint import KEY, OPENAI_KEY, URL
from tests.judge.judges import Model, always, honestly
from tests.judge_server import JudgeServer

EIFFEL: dict[str, Any] = {
    "user_input": "Where is the Eiffel Tower located?",
    "retrieved_contexts": ["Paris is the capital of France."],
    "reference": "The Eiffel Tower is located in Paris.",
}
REFUNDS: dict[str, Any] = {
    "question": "How long do refunds take?",
    "contexts": ["Returns are free.", "Refunds take five days."],
    "claims": ["Refunds take five days.", "Refunds take a year."],
}


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (URL, KEY, OPENAI_KEY):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with JudgeServer("generous") as found:
        yield found


def test_the_example_of_ragas_has_its_value(server: JudgeServer) -> None:
    with Judge("stand-in", url=server.openai) as judge:
        found = context_recall(**EIFFEL, judge=judge)
    assert (found.value, float(found)) == (1.0, 1.0)
    assert [(one.text, one.supported, one.context) for one in found.claims] == [(EIFFEL["reference"], True, 1)]
    assert found.claims[0].quote == "Paris is the capital of France."


def test_the_asynchronous_function_returns_the_same_and_the_other_works_in_a_running_loop(server: JudgeServer) -> None:
    async def in_a_loop() -> list[JudgedRecall]:
        beside = context_recall(**EIFFEL, judge=judge)
        return [beside, *await asyncio.gather(*[acontext_recall(**EIFFEL, judge=judge) for _ in range(3)])]

    with Judge("stand-in", url=server.openai) as judge:
        assert [one.value for one in asyncio.run(in_a_loop())] == [1.0] * 4
        assert judge.spent.calls == 8


def test_it_works_with_ollama(server: JudgeServer) -> None:
    with Judge("stand-in", url=server.origin, api="ollama") as judge:
        assert context_recall(**EIFFEL, judge=judge).value == 1.0


def test_claims_are_judged_as_they_are_given() -> None:
    found = context_recall(**REFUNDS, judge=Model(honestly))
    assert (found.value, [one.supported for one in found.claims]) == (0.5, [True, False])
    assert (found.claims[0].context, found.claims[1].quote) == (2, None)


def test_where_nothing_was_retrieved_nothing_is_asked() -> None:
    model = Model(honestly)
    assert context_recall(**{**EIFFEL, "retrieved_contexts": []}, judge=model).value == 0.0
    assert context_recall(**{**REFUNDS, "contexts": ["  "]}, judge=model).value == 0.0
    assert model.asked == []


@pytest.mark.parametrize("reply", ["garbage", json.dumps({"claims": []})])
def test_a_reference_that_is_not_split_is_an_error(reply: str) -> None:
    with pytest.raises(InputError, match="context_recall: the reference was not split into claims: "):
        context_recall(**EIFFEL, judge=Model(reply))


def test_a_claim_without_a_verdict_is_an_error_and_never_a_value() -> None:
    with pytest.raises(InputError, match="2 of 2 claims have no verdict; compromised: The judge failed its controls"):
        context_recall(**REFUNDS, judge=Model(always({"supported": True})))


def test_all_that_is_wrong_with_arguments_is_said() -> None:
    with pytest.raises(InputError) as raised:
        context_recall(judge=Model(honestly), user_input="?", question="?")
    assert raised.value.problems == [
        "context_recall: user_input: expected it or question, found both",
        "context_recall: retrieved_contexts: expected it or contexts, found neither",
        "context_recall: reference: expected it or claims, found neither",
    ]
    wrong: dict[str, Any] = {"user_input": "", "retrieved_contexts": "Paris", "reference": 7}
    with pytest.raises(InputError) as raised:
        context_recall(judge=Model(honestly), **wrong)
    assert [problem.split(": ")[1] for problem in raised.value.problems] == [
        "retrieved_contexts",
        "user_input",
        "reference",
    ]
    with pytest.raises(InputError, match="claims: is empty"):
        context_recall(judge=Model(honestly), **{**REFUNDS, "claims": []})


def test_all_that_is_wrong_with_a_judge_is_said() -> None:
    with pytest.raises(InputError) as raised:
        Judge("", url="nowhere", votes=2)
    assert [problem.split(": ")[1] for problem in raised.value.problems] == ["votes", "model", "url"]


def test_a_judge_stops_at_its_calls(server: JudgeServer) -> None:
    with Judge("stand-in", url=server.openai, max_calls=1) as judge, pytest.raises(InputError, match="budget"):
        context_recall(**EIFFEL, judge=judge)
    assert len(server.came) == 1
