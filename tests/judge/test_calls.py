"""One call: what is sent is data under a nonce, and a verdict counts only if everything about it is right."""

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from ragcontract.core.config_sections import Task
from ragcontract.judge.calls import ModelCall, Read, ReplyFault, call_on, read_reply
from ragcontract.judge.interface import VoteSettings
from ragcontract.judgments.items import JudgeCase, sent_contexts
from ragcontract.judgments.replay import Evidence
from tests.judge.judges import RETURNS, SHOES, TASKS, as_reply, case, honest, read, real


def call(judged: JudgeCase, seed: int = 1, **more: Any) -> ModelCall:
    return call_on(judged, range(len(judged.items)), random.Random(seed), VoteSettings(), **more)


def reading(judged: JudgeCase, change: Callable[[list[dict[str, Any]]], Any] = lambda _: None) -> Read:
    """Return what is read of an honest reply, changed: the items first, in their order, then the controls."""
    made = call(judged)
    verdicts = {one["id"]: one for one in honest(read(made.ask))}
    ordered = [verdicts[at] for at in (*made.items, *made.controls)]
    change(ordered)
    said = None if judged.task == "attribution" else judged.response
    return read_reply(made, as_reply(ordered), Evidence(sent_contexts(judged), said))


def put(at: int, **fields: Any) -> Callable[[list[dict[str, Any]]], Any]:
    return lambda verdicts: verdicts[at].update(fields)


FIELDS = {
    "attribution": {"question", "claims", "contexts"},
    "confirmation": {"question", "contexts", "response", "flagged"},
    "criteria": {"question", "response", "criteria"},
}


@pytest.mark.parametrize("task", TASKS)
def test_all_data_are_values_of_one_object_whose_names_begin_with_a_nonce(task: Task) -> None:
    made = call(case(task))
    named = json.loads(made.ask.user)
    nonce = next(iter(named)).partition("_")[0]
    assert len(nonce) == 9
    assert {name.removeprefix(f"{nonce}_") for name in named} == FIELDS[task]
    assert f"{nonce}_" in made.ask.system
    assert "{nonce}" not in made.ask.system
    assert nonce not in json.dumps(list(named.values())), "items have no nonce"


def test_a_criterion_is_judged_with_reference_and_contexts_if_there_are_any() -> None:
    data = read(call(case("criteria", reference="30 days", contexts=(RETURNS,))).ask).data
    assert set(data) == FIELDS["criteria"] | {"reference", "contexts"}


@pytest.mark.parametrize("task", TASKS)
def test_every_call_has_its_own_nonce_and_controls(task: Task) -> None:
    asks = [call(case(task), seed).ask for seed in range(20)]
    assert len({ask.user for ask in asks}) == 20
    assert len({ask.system for ask in asks}) == 20


@pytest.mark.parametrize("task", TASKS)
def test_controls_stand_anywhere_among_the_items_which_keep_their_order(task: Task) -> None:
    judged = case(task)
    orders = set()
    for seed in range(60):
        made = call(judged, seed)
        asked = read(made.ask)
        assert [item["id"] for item in asked.items] == list(range(1, len(judged.items) + 3))
        assert [item["text"] for item in real(asked, judged)] == [item.text for item in judged.items]
        orders.add(tuple(sorted(made.controls.items())))
    assert len(orders) > 8


def test_a_context_keeps_its_rank_as_its_id_and_blank_ones_are_not_sent() -> None:
    judged = case(contexts=(" ", RETURNS, "", SHOES))
    assert sent_contexts(judged) == {2: RETURNS, 4: SHOES}
    assert reading(judged).votes[0].context == 2


def test_what_nobody_sees_in_a_text_is_escaped_for_the_judge() -> None:
    made = call(case(contexts=(f"{RETURNS} \u202e\U000e0041 \x1b \ud800",)))
    for escaped in (r"\u202e", r"\udb40\udc41", r"\u001b", r"\ud800"):
        assert escaped in made.ask.user
    made.ask.user.encode()


@pytest.mark.parametrize(("vote", "temperature"), [(0, 0.0), (1, 0.7), (4, 0.7)])
def test_the_first_vote_is_drawn_at_temperature_0_and_each_has_its_seed(vote: int, temperature: float) -> None:
    ask = call(case(), vote=vote).ask
    assert (ask.temperature, ask.seed) == (temperature, vote)


@pytest.mark.parametrize("task", TASKS)
def test_an_honest_reply_is_read_whole(task: Task) -> None:
    found = reading(case(task))
    assert len(found.votes) == len(case(task).items)
    assert (found.faults, found.compromised) == ({}, False)


@pytest.mark.parametrize(
    "change",
    [
        lambda verdicts: verdicts.pop(),
        lambda verdicts: verdicts.append(dict(verdicts[0])),
        lambda verdicts: verdicts.append({**verdicts[0], "id": 99}),
        put(0, id=2),
        put(0, id="1"),
        put(0, id=1.0),
        put(0, id=True),
        put(0, id=None),
        lambda verdicts: verdicts[0].pop("id"),
    ],
)
def test_the_ids_are_those_asked_for_each_once(change: Any) -> None:
    with pytest.raises(ReplyFault, match="each id from 1 to 4 exactly once"):
        reading(case(), change)


@pytest.mark.parametrize("value", [1, 0, "true", "yes", None, [], {}, "TRUE_VIOLATION"])
@pytest.mark.parametrize(("task", "field"), [("attribution", "supported"), ("criteria", "met")])
def test_a_verdict_is_true_or_false_and_nothing_like_it(task: Task, field: str, value: Any) -> None:
    found = reading(case(task), put(0, **{field: value}))
    assert list(found.votes) == [1]
    assert f"its '{field}' is none of [true, false]" in found.faults[0]


@pytest.mark.parametrize("value", [True, "Asserts_unsupported", "asserts_unsupported ", "asserts", "", None])
def test_a_confirmation_is_one_of_three_words(value: Any) -> None:
    assert list(reading(case("confirmation"), put(0, verdict=value)).faults) == [0]


@pytest.mark.parametrize("value", [1, "true", None, "yes"])
def test_a_control_without_a_verdict_makes_the_whole_reply_invalid(value: Any) -> None:
    with pytest.raises(ReplyFault, match="no allowed value"):
        reading(case(), put(-1, supported=value))


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"quote": None}, "it has no quote"),
        ({"quote": " "}, "it has no quote"),
        ({"quote": 3}, "it has no quote"),
        ({"quote": "within a month of delivery"}, "not in the text that it names"),
        ({"context": 2}, "not in the text that it names"),
        ({"quote": "within"}, "less than 8 characters"),
        ({"quote": "x" * 2001}, "more than 2,000 characters"),
        ({"context": None}, "it names no context"),
        ({"context": 3}, "not the id of a text"),
        ({"context": "1"}, "not the id of a text"),
        ({"context": True}, "not the id of a text"),
        ({"context": 1.0}, "not the id of a text"),
        ({"context": [1]}, "not the id of a text"),
        ({"reason": None}, "it has no reason"),
        ({"reason": {"a": 1}}, "it has no reason"),
    ],
)
def test_yes_is_refused_without_words_that_are_where_it_says(fields: dict[str, Any], why: str) -> None:
    found = reading(case(), put(0, **fields))
    assert why in found.faults[0]
    assert list(found.votes) == [1]


@pytest.mark.parametrize("fields", [{"quote": "invented words"}, {"context": 9}, {"quote": "days", "context": None}])
def test_no_needs_no_proof_and_a_false_one_is_dropped(fields: dict[str, Any]) -> None:
    vote = reading(case(), put(1, **fields)).votes[1]
    assert (vote.verdict, vote.quote, vote.context) == (False, None, None)


def test_a_text_that_is_cleared_needs_words_of_the_response_or_of_a_context() -> None:
    faults = [
        reading(case("confirmation"), put(1, quote="it is said nowhere")).faults,
        reading(case("confirmation"), put(2, quote="thirty days or so")).faults,
        reading(case("confirmation"), put(2, context=None)).faults,
    ]
    assert [list(found) for found in faults] == [[1], [2], [2]]
    assert not reading(case("confirmation"), put(0, quote=None)).faults, "what stands needs none"


def test_a_quote_of_what_controls_added_to_a_response_is_no_proof() -> None:
    judged = case("confirmation")
    made = call(judged)
    added = next(line for line in read(made.ask).data["response"].split("\n") if line not in str(judged.response))
    assert "not in the text" in reading(judged, put(1, quote=added)).faults[1]


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("at", [-1, -2])
def test_a_reply_that_fails_one_control_is_compromised_whatever_else_it_says(task: Task, at: int) -> None:
    field = {"attribution": "supported", "criteria": "met", "confirmation": "verdict"}[task]

    def turn(verdicts: list[dict[str, Any]]) -> None:
        value = verdicts[at][field]
        verdicts[at][field] = not value if isinstance(value, bool) else "supported_by_context"

    assert reading(case(task), turn) == Read(compromised=True)


def test_what_was_wrong_is_sent_in_a_field_of_our_own() -> None:
    assert read(call(case(), fault="The last reply was …").ask).data["fault"] == "The last reply was …"
