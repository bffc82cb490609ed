"""A case is judged: calls are made, votes are counted, and what is missing stays missing."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from ragcontract.core.config_sections import Task
from ragcontract.judge.endpoint import query_keys
from ragcontract.judge.interface import NoReply, VoteSettings
from ragcontract.judge.judge_case import COMPROMISED, judge_case
from ragcontract.judgments.items import JudgeCase
from ragcontract.judgments.judgments_file import Judgment, query_key
from tests.judge.judges import BAD, GOOD, TASKS, Model, always, as_reply, case, changed, honest, honestly, read, real

AT = datetime(2026, 11, 22, tzinfo=UTC)
ONE = VoteSettings(votes=1)


def judged(case: JudgeCase, model: Model, settings: VoteSettings = ONE) -> list[Judgment]:
    return judge_case(case, model, settings, random.Random(1), lambda: AT)


def verdicts(judgments: Sequence[Judgment]) -> list[Any]:
    return [one.verdict if one.status == "ok" else one.status for one in judgments]


def items_asked(model: Model, judged: JudgeCase) -> list[list[str]]:
    """Return the items of each call that are no controls."""
    return [[item["text"] for item in real(read(ask), judged)] for ask in model.asked]


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("attribution", [True, False]),
        ("criteria", [True, False]),
        ("confirmation", ["asserts_unsupported", "denies_or_reports_absence", "supported_by_context"]),
    ],
)
@pytest.mark.parametrize("settings", [ONE, VoteSettings(), VoteSettings(confirm="all")], ids=["1", "failures", "all"])
def test_a_careful_judge_is_believed(task: Task, expected: list[Any], settings: VoteSettings) -> None:
    found = judged(case(task), Model(honestly), settings)
    assert verdicts(found) == expected
    assert [one.item for one in found] == [item.name for item in case(task).items]


def test_a_judgment_has_the_words_that_prove_it_and_where_they_are_from() -> None:
    yes, no = judged(case(), Model(honestly))
    assert (yes.quote, yes.context, yes.reason) == ("ccepted within 30 days of deli", 1, "read")
    assert (no.quote, no.context) == (None, None)


def test_a_judgment_says_who_judged_what_when_and_what_it_cost() -> None:
    model, settings = Model(honestly), VoteSettings()
    yes, no = judged(case(), model, settings)
    assert (query_key(yes), query_key(no)) == query_keys(case(), settings, model)
    assert yes.at == no.at == AT
    assert yes.model == "m-2026"
    assert yes.fingerprint == no.fingerprint == "m-2026 at models.example, protocol 1, 3 votes on failures"
    # One call on both, and one on the failure alone.
    assert (yes.tokens_in, yes.tokens_out) == (50, 15)
    assert (no.tokens_in, no.tokens_out) == (150, 45)


def test_models_that_answer_under_several_names_are_all_named() -> None:
    names = iter(["m-2", "m-1"])
    model = Model(lambda ask: as_reply(honest(read(ask)), model=next(names), dropped=("seed", "temperature")))
    (one,) = judged(case("attribution", "a refund in cash"), model, VoteSettings())
    assert one.model == "m-1 + m-2"
    assert one.fingerprint.startswith("m-1 + m-2 at models.example, ")
    assert one.fingerprint.endswith(", without seed, temperature")


def test_only_failures_are_asked_again_and_no_more_often_than_needed() -> None:
    model = Model(honestly)
    found = judged(case(), model, VoteSettings(votes=5))
    assert items_asked(model, case()) == [["within 30 days", "a refund in cash"], *[["a refund in cash"]] * 2]
    assert [one.votes for one in found] == [(True,), (False, False, False)]
    assert [(ask.temperature, ask.seed) for ask in model.asked] == [(0.0, 0), (0.7, 1), (0.7, 2)]


def test_a_failure_that_the_other_votes_do_not_confirm_does_not_stand() -> None:
    found = judged(case("attribution", "within 30 days"), Model(_denying, honestly), VoteSettings())
    assert [(one.verdict, one.votes) for one in found] == [(True, (False, True, True))]


def test_all_items_are_asked_again_if_all_votes_are_to_be_confirmed() -> None:
    model = Model(honestly, _denying, honestly)
    found = judged(case("attribution", "within 30 days"), model, VoteSettings(confirm="all"))
    assert [(one.verdict, one.votes) for one in found] == [(True, (True, False, True))]


def _denying(ask: Any) -> Any:
    """Deny everything but the control that must be there: a mistake that no control can show."""

    def deny(found: list[dict[str, Any]]) -> None:
        for one, item in zip(found, read(ask).items, strict=True):
            if item["text"] == "within 30 days":
                one |= {"supported": False, "quote": None, "context": None}

    return changed(deny)(ask)


def test_a_withheld_vote_does_not_lower_the_bar() -> None:
    """One against and one in favour of three are no majority, for either side."""
    model = Model(_denying, "garbage", "garbage", honestly)
    found = judged(case("attribution", "within 30 days"), model, VoteSettings())
    assert [(one.status, one.votes) for one in found] == [("unsure", (False, None, True))]


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("verdict", [GOOD, BAD], ids=["always yes", "always no"])
def test_a_judge_that_says_the_same_of_everything_is_compromised(task: Task, verdict: dict[str, Any]) -> None:
    model = Model(always(verdict))
    found = judged(case(task), model)
    assert {(one.status, one.verdict, one.quote, one.reason) for one in found} == {
        ("compromised", None, None, COMPROMISED)
    }
    assert len(model.asked) == 2, "once more, with another nonce"
    assert len({ask.user.partition("_")[0] for ask in model.asked}) == 2


def test_a_judge_that_was_compromised_once_is_asked_once_more_without_a_hint() -> None:
    model = Model(always(GOOD), honestly)
    assert verdicts(judged(case(), model)) == [True, False]
    assert "fault" not in read(model.asked[1]).data


@pytest.mark.parametrize("reply", ["garbage", "[]", '{"verdicts": []}'])
def test_an_invalid_reply_is_asked_for_once_more_with_what_was_wrong(reply: str) -> None:
    model = Model(reply, honestly)
    assert verdicts(judged(case(), model)) == [True, False]
    assert read(model.asked[1]).data["fault"].startswith("The last reply ")
    assert f"{model.asked[1].user[2:11]}_fault" in model.asked[1].system, "the rules say what that field is"


def test_two_invalid_replies_are_no_verdict() -> None:
    model = Model("garbage")
    found = judged(case(), model)
    assert verdicts(found) == ["unsure", "unsure"]
    assert found[0].reason.startswith("The last reply was not exactly one JSON object")
    assert len(model.asked) == 2


def test_a_reply_may_be_compromised_once_and_invalid_once() -> None:
    model = Model(always(GOOD), "garbage", honestly)
    assert verdicts(judged(case(), model)) == [True, False]
    model = Model(always(GOOD), "garbage", always(GOOD))
    assert verdicts(judged(case(), model)) == ["compromised", "compromised"]


def test_an_item_whose_quote_is_nowhere_is_asked_again_alone() -> None:
    def invent(ask: Any) -> Any:
        def change(found: list[dict[str, Any]]) -> None:
            for one, item in zip(found, read(ask).items, strict=True):
                if item["text"] == "within 30 days":
                    one["quote"] = "returns within a month"

        return changed(change)(ask)

    model = Model(invent, honestly)
    assert verdicts(judged(case(), model)) == [True, False]
    assert items_asked(model, case()) == [["within 30 days", "a refund in cash"], ["within 30 days"]]
    assert "its quote is not in the text" in read(model.asked[1]).data["fault"]
    assert verdicts(judged(case(), Model(invent))) == ["unsure", False]


@pytest.mark.parametrize("kind", ["timeout", "too_long", "budget"])
def test_without_a_reply_there_is_no_verdict_and_the_reason_is_kept(kind: str) -> None:
    found = judged(case(), Model(NoReply(kind, "it is so")))
    assert [(one.status, one.reason) for one in found] == [("failed", f"{kind}: it is so")] * 2
    assert found[0].fingerprint == "m at models.example, protocol 1, 1 vote"


def test_what_was_decided_before_replies_ended_is_kept() -> None:
    found = judged(case(), Model(honestly, NoReply("budget", "spent")), VoteSettings())
    assert [(one.status, one.votes) for one in found] == [("ok", (True,)), ("failed", (False, None, None))]


@pytest.mark.parametrize("contexts", [(), ("", " \n")], ids=["none", "blank"])
def test_nothing_supports_a_claim_if_nothing_was_retrieved_and_nobody_is_asked(contexts: tuple[str, ...]) -> None:
    model = Model()
    found = judged(case(contexts=contexts), model)
    assert [(one.status, one.verdict, one.votes) for one in found] == [("ok", False, ())] * 2
    assert not model.asked


@pytest.mark.parametrize("response", [None, "", " \n"])
def test_no_response_meets_no_criterion_and_nobody_is_asked(response: str | None) -> None:
    model = Model()
    assert verdicts(judged(case("criteria", response=response), model)) == [False, False]
    assert not model.asked


def test_many_items_are_asked_in_several_calls_each_with_controls() -> None:
    judging = case("attribution", *(f"claim {at}" for at in range(45)))
    model = Model(honestly)
    assert verdicts(judged(judging, model)) == [False] * 45
    assert [len(read(ask).items) for ask in model.asked] == [22, 22, 7]


def test_equal_dice_make_equal_asks() -> None:
    """So that a session that was stopped can go on within a case, with the replies that it has."""
    first, second = Model(honestly), Model(honestly)
    judged(case(), first, VoteSettings())
    judged(case(), second, VoteSettings())
    assert first.asked == second.asked


def test_a_case_without_items_is_not_asked() -> None:
    model = Model()
    empty = case("criteria")
    assert (
        judged(JudgeCase(task="criteria", query_id="q", question="?", items=(), response=empty.response), model) == []
    )
    assert not model.asked


def test_a_long_reason_is_cut() -> None:
    def change(found: list[dict[str, Any]]) -> None:
        for one in found:
            one["reason"] = "x" * 5000

    assert judged(case(), Model(changed(change)))[0].reason == "x" * 999 + "…"


def test_half_a_character_in_a_reason_can_be_written() -> None:
    def change(found: list[dict[str, Any]]) -> None:
        for one in found:
            one["reason"] = "half \ud800"

    assert judged(case(), Model(changed(change)))[0].reason == "half ?"
