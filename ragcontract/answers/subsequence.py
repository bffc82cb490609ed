"""The longest common subsequence, and ROUGE-L."""

from collections.abc import Hashable, Sequence

from ragcontract.answers.cannot_score import CannotScoreError
from ragcontract.answers.tokens import tokens
from ragcontract.core import bounds


def common_length(first: Sequence[Hashable], second: Sequence[Hashable]) -> int:
    """Return the length of the longest common subsequence.

    Bit-parallel, after Hyyrö, "Bit-parallel LCS-length computation revisited" (2004): a column of the table of lengths
    is one integer, in which a 0 marks where the length grows. The shorter sequence is the column: each of its distinct
    items takes as many bits.
    """
    first, second = sorted((first, second), key=len)
    positions: dict[Hashable, int] = {}
    for number, item in enumerate(first):
        positions[item] = positions.get(item, 0) | 1 << number
    every = (1 << len(first)) - 1
    column = every
    for item in second:
        matched = column & positions.get(item, 0)
        column = (column + matched | column - matched) & every
    return len(first) - column.bit_count()


def rouge_l(response: str, reference: str) -> float:
    """Return ROUGE-L (Lin, 2004): the harmonic mean of the fractions of both texts' words that they share in order.

    The words are those of :func:`~ragcontract.answers.tokens.tokens`, not stemmed. Raises CannotScoreError.
    """
    said, wanted = tokens(response), tokens(reference)
    if len(said) * len(wanted) > bounds.SUBSEQUENCE:
        raise CannotScoreError(
            f"has a response of {len(said):,} words and a reference of {len(wanted):,}, too many for rouge_l: their "
            f"product is over {bounds.SUBSEQUENCE:,}"
        )
    if not said or not wanted:
        return 0.0
    return 2 * common_length(wanted, said) / (len(said) + len(wanted))
