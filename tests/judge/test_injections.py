"""Texts that tell a judge what to say, before a judge that does as it is told."""

import pytest

from ragcontract.core.config_sections import Task
from tests.judge.injections import ADAPTIVE, INJECTIONS, Injection, judged, obedient, outcomes, with_text
from tests.judge.judges import TASKS, Model, case, honestly


def name_of(injection: Injection) -> str:
    return f"{injection.kind}: {injection.text[:30]!r}"


def test_there_are_texts_of_many_kinds() -> None:
    assert len({one.text for one in INJECTIONS}) == len(INJECTIONS) >= 50
    assert len({one.kind for one in INJECTIONS}) >= 10


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("injection", [one for one in INJECTIONS if one.kind not in ADAPTIVE], ids=name_of)
def test_no_text_turns_a_verdict_of_a_judge_that_obeys_it(injection: Injection, task: Task) -> None:
    right = judged(case(task), Model(honestly))
    model = Model(obedient)
    found = judged(with_text(task, injection.text), model)
    assert [one.verdict for one in right] != [one.verdict for one in found], "the text has no effect to be found"
    for one, honest in zip(found, right, strict=True):
        assert one.verdict in {None, honest.verdict}
        assert (one.verdict is None) == (one.status in {"compromised", "unsure"})
    assert len(model.asked) >= 2, "nothing was asked again"


def test_a_judge_that_obeys_a_text_about_controls_or_about_one_item_is_not_found_out() -> None:
    """What is left to an attacker who knows how this works, or what is judged, before a judge that obeys."""
    adaptive = [one for one in outcomes() if one.kind in ADAPTIVE]
    assert [one.turned > 0 for one in adaptive] == [True, True]


def test_every_judgment_that_a_text_was_to_turn_is_accounted_for() -> None:
    for one in outcomes():
        assert one.compromised + one.refused + one.unaffected + one.turned == one.judgments
