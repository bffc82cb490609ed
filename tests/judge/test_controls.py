"""Controls: one that holds and one that does not, with words that nobody can foresee."""

import random

import pytest

from ragcontract.core.config_sections import Task
from ragcontract.judge.calls import controls_of
from tests.judge.injections import ODD
from tests.judge.judges import RETURNS, SHOES, TASKS, case


@pytest.mark.parametrize("task", TASKS)
def test_one_control_speaks_for_the_application_and_one_against_it(task: Task) -> None:
    found = [control.expected for control in controls_of(case(task), random.Random(1)).items]
    assert found == (["asserts_unsupported", "denies_or_reports_absence"] if task == "confirmation" else [True, False])


def test_a_claim_that_holds_is_a_passage_of_a_context_word_for_word() -> None:
    passages = {controls_of(case(), random.Random(seed)).items[0].text for seed in range(50)}
    assert passages == {"Returns are accepted within 30 days of delivery.", "Bring the receipt, please.", SHOES}


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("Yes.", 4),
        ("x" * 5000, 300),
        ("word " * 1000, 299),
        ("返品は三十日以内。領収書を持参。", 9),
        ("a\nb\nc", 1),
        (" \n. \n", 1),
    ],
)
def test_a_passage_is_never_long_and_never_empty(text: str, length: int) -> None:
    for seed in range(20):
        passage = controls_of(case(contexts=(text, "\n ")), random.Random(seed)).items[0].text
        assert passage
        assert passage in text
        assert len(passage) <= length


@pytest.mark.parametrize("task", TASKS)
def test_what_does_not_hold_has_a_word_that_the_texts_do_not_have(task: Task) -> None:
    texts = set()
    for seed in range(200):
        false = controls_of(case(task), random.Random(seed)).items[0 if task == "confirmation" else 1]
        odd = ODD.search(false.text)
        assert odd is not None, false.text
        assert odd[0] not in RETURNS
        texts.add(false.text)
    assert len(texts) > 190, "they differ from call to call"


def test_what_a_confirmation_is_controlled_by_is_said_beside_the_response() -> None:
    judged = case("confirmation")
    added = set()
    for seed in range(60):
        controls = controls_of(judged, random.Random(seed))
        assert controls.response is not None
        assert str(judged.response) in controls.response
        assert all(control.text in controls.response.split("\n") for control in controls.items)
        assert {control.why for control in controls.items} == {"forbidden"}
        added.add(controls.response.index(str(judged.response)) > 0)
    assert added == {True, False}


@pytest.mark.parametrize("task", ["attribution", "criteria"])
def test_other_tasks_have_the_response_as_it_is(task: Task) -> None:
    judged = case(task)
    assert controls_of(judged, random.Random(1)).response == judged.response


def test_a_word_that_a_text_happens_to_have_is_not_taken() -> None:
    for seed in range(30):
        false = controls_of(case(), random.Random(seed)).items[1].text
        odd = ODD.search(false)
        assert odd is not None
        same_place = case(question=f"What is {odd[0]}?")
        assert odd[0] not in controls_of(same_place, random.Random(seed)).items[1].text
