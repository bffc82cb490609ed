"""BLEU and chrF, against sacrebleu itself, values of its documentation, and a model of chrF."""

import random
import sys
from collections import Counter

import pytest
import sacrebleu

from ragcontract.answers.metric_options import CannotScoreError, Tokenizer
from ragcontract.answers.translation_scores import bleu, chrf, metric_of
from ragcontract.core import bounds

CAT = "the cat sat on the mat"
WORDS = ("the", "a", "cat", "sat,", "on", "mat.", "It's", "3.5", "USD;", "<br>", "größe", "返品", "三十日", "—", "end!")
TOKENIZERS: tuple[Tokenizer, ...] = ("13a", "intl", "zh", "char")


def pairs(number: int) -> list[tuple[str, str]]:
    chance = random.Random(5)
    made = [" ".join(chance.choices(WORDS, k=chance.randint(1, 12))) for _ in range(2 * number)]
    return [*zip(made[::2], made[1::2], strict=True), (CAT, CAT), ("", CAT), (CAT, ""), ("", "")]


def test_the_scores_are_those_of_sacrebleu_from_0_to_1() -> None:
    for response, reference in pairs(200):
        expected = sacrebleu.sentence_bleu(response, [reference], use_effective_order=True).score / 100
        assert bleu(response, reference) == pytest.approx(expected, abs=1e-12)
        assert chrf(response, reference) == pytest.approx(sacrebleu.sentence_chrf(response, [reference]).score / 100)
        assert min(bleu(response, reference), chrf(response, reference)) >= 0
        assert max(bleu(response, reference), chrf(response, reference)) <= 1


@pytest.mark.parametrize("tokenize", TOKENIZERS)
def test_bleu_has_the_words_of_the_tokenizer(tokenize: Tokenizer) -> None:
    for response, reference in pairs(50):
        of_sacrebleu = sacrebleu.BLEU(tokenize=tokenize, effective_order=True).sentence_score(response, [reference])
        assert bleu(response, reference, tokenize) == pytest.approx(of_sacrebleu.score / 100, abs=1e-12)


def test_known_values() -> None:
    # Papineni et al.: of seven words, two of "the" count; sacrebleu's smoothing halves what it adds for each order.
    assert bleu("the the the the the the the", CAT) == pytest.approx((2 / 7 / (2 * 6) / (4 * 5) / (8 * 4)) ** 0.25)
    assert bleu("the cat sat on mat", CAT) == pytest.approx(0.5789, abs=1e-4)
    assert bleu(CAT, CAT) == chrf(CAT, CAT) == 1.0
    assert bleu("the", "the") == 1.0  # orders that the text is too short for do not count
    assert bleu(CAT.upper(), CAT) == 0.0
    assert bleu("返品は三十日以内", "返品は三十日") == 0.0
    assert bleu("返品は三十日以内", "返品は三十日", "char") == pytest.approx((6 / 8 * 5 / 7 * 4 / 6 * 3 / 5) ** 0.25)


def of_model(response: str, reference: str) -> float:
    """Return chrF by its definition: mean precision and recall of the orders that both texts have."""
    texts = ["".join(text.split()) for text in (response, reference)]
    shares = []
    for order in range(1, 7):
        grams = [Counter(text[at : at + order] for at in range(len(text) - order + 1)) for text in texts]
        if all(grams):
            same = (grams[0] & grams[1]).total()
            shares.append((same / grams[0].total(), same / grams[1].total()))
    if not shares:
        return 0.0
    precision, recall = (sum(share[side] for share in shares) / len(shares) for side in (0, 1))
    return 5 * precision * recall / (4 * precision + recall) if precision + recall else 0.0


def test_chrf_is_that_of_its_definition() -> None:
    for response, reference in pairs(200):
        assert chrf(response, reference) == pytest.approx(of_model(response, reference), abs=1e-9)


@pytest.mark.parametrize("score", [bleu, chrf])
def test_texts_that_take_too_long_are_refused(score: object, monkeypatch: pytest.MonkeyPatch) -> None:
    assert callable(score)
    monkeypatch.setattr(bounds, "TRANSLATION", 10)
    assert score("abcde", "abcde") == 1.0
    with pytest.raises(CannotScoreError, match="a response of 6 characters and a reference of 5, too many for"):
        score("abcdef", "abcde")


def test_no_text_is_kept() -> None:
    bleu("a text that nobody else has", CAT)
    for tokenizer in {
        type(metric_of("bleu", "13a").tokenizer),
        type(metric_of("bleu", "13a").tokenizer._post_tokenizer),
    }:
        assert vars(tokenizer)["__call__"].cache_info().currsize == 0


@pytest.mark.parametrize("name", ["bleu", "chrf"])
def test_without_sacrebleu_the_error_says_what_to_install(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    metric_of.cache_clear()
    for module in [module for module in sys.modules if module.split(".")[0] == "sacrebleu"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    with pytest.raises(ImportError, match=rf"^{name} needs sacrebleu; install it: pip install 'rag-contract\[text\]'"):
        metric_of(name, "13a")
