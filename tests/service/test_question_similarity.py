"""How alike questions are."""

from itertools import pairwise

import pytest

from ragcontract.service.production.question_similarity import Questions, grams_of, normalised

KNOWN = ["How do I invite a teammate?", "What does it cost?", "Wie lade ich jemanden ein?", "!?", ""]


def test_the_nearest_question_is_the_first() -> None:
    near = Questions(KNOWN).nearest("inviting teammates", 2)
    assert near[0].place == 0
    assert 0.2 < near[0].likeness < 1
    assert all(first.likeness >= second.likeness for first, second in pairwise(near))


@pytest.mark.parametrize(
    "text", ["how do i INVITE a teammate", "How  do I\ninvite a teammate?!", "\uff28ow do I invite a teammate"]
)
def test_case_spaces_and_punctuation_do_not_count(text: str) -> None:
    place, likeness = Questions(KNOWN).nearest(text, 1)[0]
    assert (place, round(likeness, 6)) == (0, 1)


@pytest.mark.parametrize("text", ["", "?!", "zzzz", "\U0001f600"])
def test_a_question_that_shares_nothing_has_no_neighbours(text: str) -> None:
    assert Questions(KNOWN).nearest(text, 3) == []


def test_equal_questions_come_in_their_order() -> None:
    assert [each.place for each in Questions(["same", "same", "same"]).nearest("same", 2)] == [0, 1]


def test_a_vector_has_length_1() -> None:
    assert sum(weight**2 for weight in grams_of("What does it cost?").values()) == pytest.approx(1)
    assert normalised(" A,  B ") == "a b"
