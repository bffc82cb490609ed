"""BLEU beside NLTK, in an environment that `make test-oracles` sets up."""

import random

import pytest

from ragcontract.answers.translation_scores import bleu
from tests.oracles.outside import asked

WORDS = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta")
pytestmark = pytest.mark.oracles


def test_bleu_of_words_is_that_of_nltk() -> None:
    chance = random.Random(7)
    pairs = []
    for _ in range(300):
        words = chance.choices(WORDS, k=chance.randint(4, 20))
        response = [word if chance.random() < 0.8 else "other" for word in words] + ["more"] * chance.randint(0, 3)
        pairs.append((words, [*response[chance.randint(0, 1) :], "end"]))
    ours = [bleu(" ".join(response), " ".join(words)) for words, response in pairs]
    theirs = asked("bleu_scores", pairs)
    shared = [at for at, value in enumerate(theirs) if value]  # without a shared word, NLTK has 0 as well
    assert len(shared) > 250
    assert [theirs[at] for at in shared] == pytest.approx([ours[at] for at in shared], abs=1e-12)
