"""The order in which trec_eval looks at a run: by score, not by rank, and not by the lines of the file.

trec_eval (and pytrec_eval, which is the same code) sorts a query's documents by score, highest first, and those of
equal score by document id, last first, comparing bytes. It keeps scores as 32-bit floats: two that differ only after
the seventh digit or so are equal to it.
"""

from array import array
from collections.abc import Sequence
from itertools import pairwise
from math import isfinite

from ragcontract.convert.collection import Retrieved


def as_trec_eval_keeps(scores: Sequence[float]) -> list[float]:
    """Return scores rounded to 32 bits; what is too large for them is infinite."""
    return array("f", scores).tolist()


def in_trec_evals_order(results: Sequence[Retrieved]) -> list[Retrieved]:
    """Sort the results of one query, all of which have scores and documents of their own."""
    kept = as_trec_eval_keeps([result.score or 0.0 for result in results])
    # Code points are in the order of their UTF-8 bytes.
    ordered = sorted(zip(kept, results, strict=True), key=lambda pair: (pair[0], pair[1].doc_id), reverse=True)
    return [result for _, result in ordered]


def scores_in_order(results: Sequence[Retrieved]) -> tuple[list[float], bool]:
    """Return scores by which trec_eval's order is that of ``results``, and whether they are the results' own.

    Where any is missing, or they do not descend strictly once they are rounded, all of them count down to 1 instead.
    """
    own = [result.score for result in results if result.score is not None]
    if len(own) == len(results):
        kept = as_trec_eval_keeps(own)
        if all(map(isfinite, kept)) and all(better > worse for better, worse in pairwise(kept)):
            return own, True
    return [float(rank) for rank in range(len(results), 0, -1)], False
