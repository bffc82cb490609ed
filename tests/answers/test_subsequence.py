"""The longest common subsequence and ROUGE-L."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcontract.answers.metric_options import CannotScoreError
from ragcontract.answers.similarity import common_length, rouge_l
from ragcontract.core import bounds

texts = st.text("abc", max_size=12)


def by_table(first: str, second: str) -> int:
    """Return the length by the textbook's table."""
    row = [0] * (len(second) + 1)
    for one in first:
        before = row[:]
        for number, other in enumerate(second):
            row[number + 1] = before[number] + 1 if one == other else max(before[number + 1], row[number])
    return row[-1]


@given(texts, texts)
def test_the_length_is_that_of_the_table(first: str, second: str) -> None:
    assert common_length(first, second) == by_table(first, second)


def test_a_sequence_of_more_bits_than_a_word_is_compared_whole() -> None:
    numbers = list(range(1_000))
    assert common_length(numbers, numbers[::2]) == 500
    assert common_length(numbers, numbers[::-1]) == 1
    assert common_length(numbers, []) == 0


@pytest.mark.parametrize(
    ("response", "reference", "value"),
    [
        ("The cat sat on the mat.", "the cat sat on the mat", 1.0),
        ("police killed the gunman", "police kill the gunman", 0.75),
        ("police ended the gunman", "the gunman police killed", 0.5),
        ("返品は三十日以内", "返品は三十日以内", 1.0),
        ("Größe", "Grüße", 0.0),
        ("", "anything", 0.0),
        ("!", "?", 0.0),
    ],
)
def test_rouge_l_is_the_share_of_both_texts_words_that_stand_in_order(
    response: str, reference: str, value: float
) -> None:
    assert rouge_l(response, reference) == pytest.approx(value)


def test_words_at_the_limit_are_compared_and_more_are_refused() -> None:
    reference = "w " * (bounds.SUBSEQUENCE // 500_000)
    assert rouge_l("x " * 500_000, reference) == 0.0
    with pytest.raises(CannotScoreError, match="500,001 words and a reference of 2,000, too many for rouge_l"):
        rouge_l("x " * 500_001, reference)
