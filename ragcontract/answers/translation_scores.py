"""BLEU and chrF of an answer, which sacrebleu computes: the scores of translations, for one sentence or text.

BLEU is that of sacrebleu's ``sentence_bleu``: up to four words in a row, of which orders that the text is too short for
do not count (``effective_order``), with exponential smoothing. chrF is its ``sentence_chrf``: up to six characters in a
row, recall twice as important as precision. Both are case-sensitive, and from 0 to 1 here.
"""

from functools import lru_cache
from typing import Any

from ragcontract.answers.metric_options import CannotScoreError, Tokenizer
from ragcontract.core import bounds

INSTALL = (
    "needs sacrebleu; install it: pip install 'rag-contract[text]'. The action's image does not have it: there, use "
    "rouge_l, or compute the score in a step of your own and declare it under metrics"
)


def bleu(response: str, reference: str, tokenize: Tokenizer = "13a") -> float:
    """Return sentence BLEU (Papineni et al., 2002), from 0 to 1. Raises CannotScoreError, and ImportError."""
    return _score("bleu", tokenize, response, reference)


def chrf(response: str, reference: str) -> float:
    """Return sentence chrF (Popović, 2015), from 0 to 1. Raises CannotScoreError, and ImportError."""
    return _score("chrf", "", response, reference)


@lru_cache(maxsize=8)
def metric_of(name: str, tokenize: str = "") -> Any:
    """Return sacrebleu's metric. Raises ImportError without sacrebleu."""
    try:
        from sacrebleu import BLEU, CHRF
    except ImportError as error:
        raise ImportError(f"{name} {INSTALL}") from error
    if name == "bleu":
        return BLEU(tokenize=tokenize, effective_order=True)
    return CHRF(char_order=6, word_order=0, beta=2)


def _score(name: str, tokenize: str, response: str, reference: str) -> float:
    size = len(response) + len(reference)
    if size > bounds.TRANSLATION:
        raise CannotScoreError(
            f"has a response of {len(response):,} characters and a reference of {len(reference):,}, too many for "
            f"{name}: together over {bounds.TRANSLATION:,}"
        )
    metric = metric_of(name, tokenize)
    score: float = metric.sentence_score(response, [reference]).score
    _forget_texts(getattr(metric, "tokenizer", None))
    return min(1.0, max(0.0, score / 100))


def _forget_texts(tokenizer: object) -> None:
    """Empty the caches in which sacrebleu keeps 65,536 texts of any length."""
    inner = getattr(tokenizer, "_post_tokenizer", None)
    for each in (*type(tokenizer).__mro__, *type(inner).__mro__):
        if clear := getattr(vars(each).get("__call__"), "cache_clear", None):
            clear()
