"""The order in which trec_eval ranks the results of a run: by score, not by rank or line.

trec_eval (and pytrec_eval, which uses the same code) sorts the documents of a query by descending score, and those with
equal scores by document id in descending byte order. It stores scores as 32-bit floats, so scores that differ only
after about seven digits are equal.
"""

from array import array
from collections.abc import Sequence
from itertools import pairwise
from math import isfinite

from ragcontract.convert.collection import Retrieved


def as_trec_eval_keeps(scores: Sequence[float]) -> list[float]:
    """Return scores rounded to 32-bit floats; scores out of range become infinite."""
    return array("f", scores).tolist()


def in_trec_evals_order(results: Sequence[Retrieved]) -> list[Retrieved]:
    """Sort the results of one query, which must have scores and distinct documents."""
    rounded = as_trec_eval_keeps([result.score or 0.0 for result in results])
    # The order of code points is that of their UTF-8 bytes.
    ordered = sorted(zip(rounded, results, strict=True), key=lambda pair: (pair[0], pair[1].doc_id), reverse=True)
    return [result for _, result in ordered]


def scores_in_order(results: Sequence[Retrieved]) -> tuple[list[float], bool]:
    """Return scores that preserve the order of ``results`` in trec_eval, and whether they are the original ones.

    If any score is missing, or they do not strictly descend after rounding, they are replaced by scores that count down
    to 1.
    """
    own = [result.score for result in results if result.score is not None]
    if len(own) == len(results):
        rounded = as_trec_eval_keeps(own)
        if all(map(isfinite, rounded)) and all(better > worse for better, worse in pairwise(rounded)):
            return own, True
    return [float(rank) for rank in range(len(results), 0, -1)], False
