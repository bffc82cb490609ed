"""Conversations: the system is asked for each turn with the messages so far, and the run has all of them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ragcontract import CallFailed, Context, Response, check
from ragcontract.record.asking import Conversation
from ragcontract.record.golden_questions import Question
from tests.builders import Row, golden
from tests.record.test_recording import problems, rows_of
from tests.record.workplace import Toy, Workplace

HI, BYE = {"role": "user", "content": "Hi"}, {"role": "user", "content": "Bye"}
HELLO, CIAO = {"role": "assistant", "content": "Hello"}, {"role": "assistant", "content": "Ciao"}
TALK = golden("chat", turns=[{"query": "Hi", "answer_must_include": ["Hello"]}, {"query": "Bye"}])
CALL = {"name": "wave", "arguments": {}}
USED = {"role": "tool", "content": "waved"}
Says = Callable[[str, Sequence[Any]], Response]


def only_answers(query: str, _so_far: Sequence[Any]) -> Response:
    return Response(response="Hello" if query == "Hi" else "Ciao", tool_calls=[])


def what_is_new(query: str, _so_far: Sequence[Any]) -> Response:
    return Response(messages=[HELLO] if query == "Hi" else [CIAO])


def the_turn(query: str, _so_far: Sequence[Any]) -> Response:
    return Response(messages=[HI, HELLO] if query == "Hi" else [BYE, CIAO])


def everything(query: str, so_far: Sequence[Any]) -> Response:
    return Response(messages=[*so_far, HI, HELLO] if query == "Hi" else [*so_far, BYE, CIAO])


@pytest.mark.parametrize("says", [only_answers, what_is_new, the_turn, everything])
def test_a_system_may_return_its_answer_or_what_is_new_or_the_whole_conversation(tmp_path: Path, says: Says) -> None:
    place = Workplace(tmp_path, [TALK])
    toy = Toy(lambda query, context: says(query, context.messages))
    assert place.record(toy).error is None
    assert [(query, context.messages) for query, context in toy.asked] == [("Hi", ()), ("Bye", (HI, HELLO))]
    (row,) = rows_of(place.out)
    assert row["messages"] == [HI, HELLO, BYE, CIAO]
    assert "response" not in row
    (tmp_path / "golden.jsonl").write_text((tmp_path / "golden.jsonl").read_text().replace("relevant_doc_ids", "was"))
    assert check(golden=tmp_path / "golden.jsonl", run=place.out).verdict == "pass"


def test_tool_calls_are_those_of_the_turns_message(tmp_path: Path) -> None:
    place = Workplace(tmp_path, [TALK])
    place.record(lambda *_: Response(response="Hello", tool_calls=[CALL]))
    (row,) = rows_of(place.out)
    assert row["messages"][1] == {**HELLO, "tool_calls": [CALL]}
    assert "tool_calls" not in row


def test_what_was_retrieved_is_that_of_the_last_turn_that_retrieved() -> None:
    inquiry = Conversation(Question(id="chat", query="-", turns=("Hi", "Bye")), 1)
    assert inquiry.took(Response(response="a", results=[{"doc_id": "a"}], retrieved_contexts=["A"]), 5) is None
    whole = inquiry.took(Response(response="b", mode="abstain"), 7)
    assert whole is not None
    assert (whole.results, whole.retrieved_contexts, whole.mode) == ([{"doc_id": "a"}], ["A"], "abstain")
    assert inquiry.ms == 12


@pytest.mark.parametrize("empty", [None, []])
def test_a_last_turn_that_retrieved_nothing_leaves_what_was_retrieved_before(empty: list[Any] | None) -> None:
    inquiry = Conversation(Question(id="chat", query="-", turns=("Hi", "Bye")), 1)
    inquiry.took(Response(response="a", results=[{"doc_id": "secret"}], retrieved_contexts=["A"]), 5)
    whole = inquiry.took(Response(response="b", results=empty, retrieved_contexts=empty), 5)
    assert whole is not None
    assert (whole.results, whole.retrieved_contexts) == ([{"doc_id": "secret"}], ["A"])


def test_a_conversation_that_retrieved_nothing_says_so() -> None:
    for first, second in (([], None), (None, []), ([], [])):
        inquiry = Conversation(Question(id="chat", query="-", turns=("Hi", "Bye")), 1)
        inquiry.took(Response(response="a", results=first), 5)
        whole = inquiry.took(Response(response="b", results=second), 5)
        assert whole is not None
        assert whole.results == []


def test_only_the_turn_that_failed_is_asked_again(tmp_path: Path) -> None:
    def answer(query: str, context: Context) -> Response:
        if query == "Bye" and context.attempt == 1:
            raise CallFailed("busy", "is busy", again=True)
        return only_answers(query, ())

    place, toy = Workplace(tmp_path, [TALK]), Toy(answer)
    assert place.record(toy).error is None
    assert [(query, context.attempt) for query, context in toy.asked] == [("Hi", 1), ("Bye", 1), ("Bye", 2)]


def test_a_conversation_that_ended_with_an_error_may_be_kept(tmp_path: Path) -> None:
    def answer(query: str, _context: Context) -> Response:
        if query == "Bye":
            raise CallFailed("http_error", "HTTP 500", partial=Response(results=[], response=None, error="HTTP 500"))
        return only_answers(query, ())

    place = Workplace(tmp_path, [TALK])
    assert "HTTP 500" in problems(place.record(answer))[1]
    assert place.record(answer, on_failure="keep-retrieval").error is None
    (row,) = rows_of(place.out)
    assert row["messages"] == [HI, HELLO, BYE]
    assert row["error"] == "HTTP 500"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (Response(results=[]), "no_answer: 1, such as query 'chat': a conversation needs an answer in each turn"),
        (
            Response(messages=[HI, HELLO, HI]),
            "messages: 1, such as query 'chat': messages with 2 of the user's after turn 1",
        ),
        (Response(messages=[]), "no_answer: 1, such as query 'chat': a conversation needs an answer in each turn"),
        (
            Response(messages=[HI, HELLO], tool_calls=[CALL]),
            "messages: 1, such as query 'chat': the answer to a turn has a call of",
        ),
        (
            Response(messages=[HELLO], response="A salary."),
            'messages: 1, such as query \'chat\': the answer to a turn has "A salary." as response, and "Hello"',
        ),
        (Response(messages=["Hello"]), "messages: 1, such as query 'chat': a message is a mapping"),  # type: ignore[list-item]
    ],
)
def test_what_cannot_go_on_is_a_failure(tmp_path: Path, said: Response, why: str) -> None:
    assert problems(Workplace(tmp_path, [TALK]).record(lambda *_: said))[1].startswith(why)


REMOVED = {"role": "assistant", "content": "[removed]"}
REWRITTEN = {
    "another answer": [REMOVED],
    "no answer": [],
    "another call": [{**HELLO, "tool_calls": [CALL]}],
    "another refusal": [{**HELLO, "refusal": "A salary."}],
    "one more message": [HELLO, REMOVED],
}


@pytest.mark.parametrize("earlier", REWRITTEN.values(), ids=REWRITTEN.keys())
def test_an_earlier_turn_that_is_told_in_another_way_is_a_failure(tmp_path: Path, earlier: list[Any]) -> None:
    def answer(query: str, _context: Context) -> Response:
        return Response(messages=[HI, HELLO] if query == "Hi" else [HI, *earlier, BYE, CIAO])

    (why,) = problems(Workplace(tmp_path, [TALK]).record(answer))[1:2]
    assert "messages in which turn 1 is not what was answered then" in why


def test_an_earlier_turn_may_be_told_in_another_form_and_stays_as_it_was_recorded(tmp_path: Path) -> None:
    called: list[dict[str, Any]] = [HI, {"role": "assistant", "content": "Hello", "tool_calls": [CALL]}]
    other: list[Row] = [
        {"type": "human", "content": "Hi"},
        {
            "type": "ai",
            "content": [{"type": "text", "text": "Hello "}],
            "tool_calls": [{"name": "wave", "args": "{}", "id": "c1"}],
        },
    ]

    def answer(query: str, _context: Context) -> Response:
        if query == "Hi":
            return Response(messages=called, refusal="No.")
        return Response(messages=[{"role": "system", "content": "Be brief."}, *other, BYE, CIAO])

    place = Workplace(tmp_path, [TALK])
    assert place.record(answer).error is None
    (row,) = rows_of(place.out)
    assert row["messages"] == [HI, {**called[1], "refusal": "No."}, BYE, CIAO]


NO_REFUSAL = {"type": "must_not_refuse"}
NO_SALARY = {"type": "must_not_contain", "value": "salary"}


@pytest.mark.parametrize("says", [only_answers, what_is_new])
@pytest.mark.parametrize("query", ["Hi", "Bye"])
@pytest.mark.parametrize(
    ("rule", "stated"),
    [
        (NO_SALARY, {"refusal": "A salary of 1."}),
        (NO_REFUSAL, {"refusal": "No."}),
        (NO_REFUSAL, {"mode": "abstain"}),
        (NO_REFUSAL, {"finish_reason": "content_filter"}),
    ],
)
def test_how_a_turn_was_answered_is_judged_in_that_turn(
    tmp_path: Path, says: Says, query: str, rule: Row, stated: dict[str, str]
) -> None:
    def answer(asked: str, _context: Context) -> Response:
        return replace(says(asked, ()), **stated) if asked == query else says(asked, ())

    talk = golden("chat", turns=[{"query": "Hi"}, {"query": "Bye"}], rules=[rule])
    del talk["relevant_doc_ids"]
    place = Workplace(tmp_path, [talk])
    toy = Toy(answer)
    assert place.record(toy).error is None
    assert "mode" not in str(toy.asked[-1][1].messages)  # a chat model may not take it
    result = check(golden=tmp_path / "golden.jsonl", run=place.out)
    assert result.verdict == "fail"
    number = 1 if query == "Hi" else 2
    assert all(f"turn {number}" in violation.message for violation in result.queries[0].violations)


def test_messages_of_a_single_question_stay_as_they_are(tmp_path: Path) -> None:
    place = Workplace(tmp_path, 1)
    place.record(lambda *_: Response(results=[], response="Hello", messages=[HI, USED, HELLO]))
    (row,) = rows_of(place.out)
    assert (row["response"], row["messages"]) == ("Hello", [HI, USED, HELLO])
