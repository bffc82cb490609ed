"""Judgments are found by the texts that they were made on, and by the judge that the configuration names."""

from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from ragcontract.core.config_sections import JudgeSettings
from ragcontract.judgments.judgments_file import Judgment
from ragcontract.judgments.replay import Replay
from tests.judgment_files import FALSE, FINGERPRINT, NOW, TRUE, asked, case_of, judgments_on
from tests.runs.judgment_lines import JUDGE

CASE = case_of(asked(1, [TRUE, FALSE]))


def replay(*judgments: Judgment, **settings: Any) -> Replay:
    return Replay(judgments, JudgeSettings(**settings))


def test_each_item_has_its_judgment_whatever_the_order_of_the_file() -> None:
    said = replay(*reversed(judgments_on(CASE))).judgments(CASE)
    assert not isinstance(said, str)
    assert [(one.item, one.verdict) for one in said] == [("claim:1", True), ("claim:2", False)]


def test_with_one_item_judged_the_others_are_named() -> None:
    why = replay(judgments_on(CASE)[0]).judgments(CASE)
    assert why == "has no verdict on 1 of 2 items: claim:2; run `rag-contract judge` again"


def test_of_several_judges_the_one_counts_that_is_configured() -> None:
    both = [*judgments_on(CASE), *judgments_on(CASE, judge=replace(JUDGE, votes=5))]
    assert "judge.votes in ragcontract.yml" in str(replay(*both).judgments(CASE))
    said = replay(*both, votes=5).judgments(CASE)
    assert {one.judge.votes for one in said if isinstance(one, Judgment)} == {5}
    other_rules = judgments_on(CASE, judge=replace(JUDGE, instructions="older"))
    assert "keep those of one, or ask again" in str(replay(*judgments_on(CASE), *other_rules).judgments(CASE))


def test_fingerprints_are_those_of_the_last_replies_on_each_query() -> None:
    changed = replace(CASE, contexts=("Older.",))
    older = judgments_on(changed, fingerprint="older", at=NOW - timedelta(days=3))
    assert replay(*judgments_on(CASE), *older).fingerprints("attribution", ["q1"]) == {FINGERPRINT}
    assert replay(*judgments_on(CASE)).fingerprints("attribution", ["q2"]) == frozenset()
    unasked = judgments_on(replace(CASE, contexts=()), votes=(), fingerprint="as asked for")
    assert replay(*unasked).fingerprints("attribution", ["q1"]) == frozenset()
