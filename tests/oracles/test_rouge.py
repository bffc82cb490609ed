"""ROUGE-L beside rouge_score without its stemmer, in an environment that `make test-oracles` sets up."""

import random

import pytest

from ragcontract.answers.similarity import rouge_l
from tests.answers.texts import sentences
from tests.oracles.outside import asked

pytestmark = pytest.mark.oracles


def test_rouge_l_of_ascii_text_is_that_of_rouge_score() -> None:
    chance = random.Random(11)
    prose = sentences(60, seed=2)
    pairs = [("", ""), ("", "a"), ("?!", "a b"), ("It's 3.5 USD", "it s 3 5 usd")]
    for _ in range(400):
        words = " ".join(chance.sample(prose, 2)).split()
        response = [word for word in words if chance.random() < 0.8]
        if chance.random() < 0.5:
            chance.shuffle(response)
        pairs.append((" ".join(words), " ".join(response)))
    ours = [rouge_l(response, reference) for reference, response in pairs]
    assert asked("rouge_scores", pairs) == pytest.approx(ours, abs=1e-12)
    assert len({round(value, 3) for value in ours}) > 100


def test_rouge_score_knows_ascii_only() -> None:
    """The reason for our own: identical texts without ASCII letters get 0, different ones 1."""
    pairs = [("返品は三十日以内", "返品は三十日以内"), ("Größe", "Grüße")]
    assert asked("rouge_scores", pairs) == [0.0, 1.0]
    assert [rouge_l(response, reference) for reference, response in pairs] == [1.0, 0.0]
