"""Context recall: the fraction of the reference contexts that were retrieved.

By ids it is the IDBasedContextRecall of ragas, by the distance of texts its NonLLMContextRecall. By coverage, a
reference counts as retrieved if enough of its shingles (all sequences of three words) are in any of the texts, so that
the value does not depend on how documents are cut into chunks. Shingles are those of Broder, "On the resemblance and
containment of documents" (1997).
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeAlias

from ragcontract.answers.cannot_score import CannotScoreError, NoWordsError
from ragcontract.answers.composing import continues
from ragcontract.answers.metric_options import Measure
from ragcontract.answers.tokens import tokens
from ragcontract.core import bounds

Shingle: TypeAlias = tuple[bytes, ...]

FEW = 16  # references: what is done for each of them over all contexts would not be linear in their number
SHINGLE = 3  # words; a shorter reference is one shingle
TOLERANCE = 1e-9  # so that 0.3 of ten shingles are three
RESEMBLING = 0.9  # two English sentences about different things have Jaro similarities of 0.56 to 0.84
_AROUND = " \n.,;:!?\"'()"  # what may be around a sentence, and is in no word
INSTALL = "needs rapidfuzz; install it: pip install 'rag-contract[text]', or use measure: coverage"
_CLASSES = {"levenshtein": "Levenshtein", "hamming": "Hamming", "jaro": "Jaro", "jaro_winkler": "JaroWinkler"}


def recall_of_ids(retrieved: Iterable[str], reference: Collection[str]) -> float:
    """Return the fraction of the different reference ids, of which there is at least one, that were retrieved."""
    wanted = frozenset(reference)
    return len(wanted.intersection(retrieved)) / len(wanted)


def recall_of_texts(
    retrieved: Sequence[str], reference: Sequence[str], *, measure: Measure = "coverage", threshold: float = 0.5
) -> float:
    """Return the fraction of the reference texts, of which there is at least one, that were retrieved.

    By coverage a reference counts from the threshold on. By another measure it counts if its similarity to any of the
    texts is above the threshold, as in ragas. Raises NoWordsError for a reference without words (by coverage), and
    CannotScoreError for texts that are too long (by another measure).
    """
    if measure == "coverage":
        return _covered(retrieved, reference, threshold) / len(reference)
    if not retrieved:
        return 0.0
    size, other = sum(map(len, retrieved)), sum(map(len, reference))
    if size * other > bounds.DISTANCE:
        raise CannotScoreError(
            f"has {size:,} characters of contexts and {other:,} of reference_contexts, too many for {measure}: their "
            f"product is over {bounds.DISTANCE:,}; use measure: coverage"
        )
    distance = distance_of(measure)
    best = (max(1 - distance(context, text) for context in retrieved) for text in reference)
    return sum(similarity > threshold for similarity in best) / len(reference)


def distance_of(measure: Measure) -> Callable[[str, str], float]:
    """Return the function of a distance from 0 to 1 of two texts, compared character by character.

    Raises ImportError without rapidfuzz.
    """
    try:
        from rapidfuzz import distance
    except ImportError as error:
        raise ImportError(f"{measure} {INSTALL}") from error
    function: Callable[[str, str], float] = getattr(distance, _CLASSES[measure]).normalized_distance
    return function


def _covered(retrieved: Sequence[str], reference: Sequence[str], threshold: float) -> int:
    """Return how many of the references have enough of their shingles in the contexts, in linear time."""
    left: list[tuple[frozenset[Shingle], float]] = []  # shingles, and how many must be found
    for text in reference:
        wanted = _wanted(text)
        needed = (threshold - TOLERANCE) * len(wanted)
        # A context with the whole text has all shingles but perhaps the first and the last, whose words may go on.
        # Searching for the text takes a tenth of the time of taking the contexts apart; not so for many references.
        if needed <= 0 or (len(reference) <= FEW and needed <= len(wanted) - 2 and _is_in(text, retrieved)):
            continue
        left.append((wanted, needed))
    if not left:
        return len(reference)
    sought = frozenset[Shingle]().union(*[wanted for wanted, _ in left])
    by_size = [frozenset(one for one in sought if len(one) == size) for size in range(1, SHINGLE + 1)]
    found: set[Shingle] = set()
    for context in retrieved:
        words = tokens(context)
        for size, of_size in enumerate(by_size, start=1):
            if of_size:
                found |= of_size.intersection(_shingles(words, size))
        if len(left) <= FEW and all(len(wanted & found) >= needed for wanted, needed in left):
            return len(reference)
    return len(reference) - sum(len(wanted & found) < needed for wanted, needed in left)


def _is_in(text: str, contexts: Sequence[str]) -> bool:
    """Return whether a context has the whole text, written in the same way.

    Where a character may combine with the one before it, the words may be others than those of the text.
    """
    text = text.strip(_AROUND)
    if not text or continues(text[0]):
        return False
    return any(
        (at := context.find(text)) >= 0 and not continues(context[at + len(text) : at + len(text) + 1] or " ")
        for context in contexts
    )


def _wanted(text: str) -> frozenset[Shingle]:
    """Return the shingles of a reference."""
    words = tokens(text)
    if not words:
        raise NoWordsError("has a text without words in reference_contexts")
    return frozenset(_shingles(words, min(SHINGLE, len(words))))


def _shingles(words: Sequence[bytes], size: int) -> Iterable[Shingle]:
    return zip(*[words[start:] for start in range(size)], strict=False)  # not strict: the last words start none
