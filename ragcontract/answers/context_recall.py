"""Context recall: the fraction of the reference contexts that were retrieved.

By ids it is the IDBasedContextRecall of ragas, by the distance of texts its NonLLMContextRecall. By coverage, a
reference counts as retrieved if enough of its shingles (all sequences of three words) are in any of the texts, so that
the value does not depend on how documents are cut into chunks. Shingles are those of Broder, "On the resemblance and
containment of documents" (1997).
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import islice
from typing import TypeAlias

from ragcontract.answers.cannot_score import CannotScoreError, NoWordsError
from ragcontract.answers.composing import continues
from ragcontract.answers.metric_options import Measure
from ragcontract.answers.tokens import outline, outline_of, tokens
from ragcontract.core import bounds

Shingle: TypeAlias = tuple[bytes, ...]
Sought: TypeAlias = tuple[frozenset[Shingle], float]  # the shingles of a reference, and how many must be found

FEW = 16  # references: what is done for each of them over all contexts would not be linear in their number
SHORT, OUTLINED = 64, 1 << 16  # shingles of a reference, characters of contexts: of others, no outlines are searched
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
    left: list[Sought] = []
    for text in reference:
        words = _words_of(text)
        # Searching for the text takes a tenth of the time of taking the contexts apart; not so for many references.
        if len(reference) <= FEW and _is_in(text, retrieved) and _is_enough(words, threshold):
            continue
        wanted = frozenset(_shingles(words, min(SHINGLE, len(words))))
        needed = (threshold - TOLERANCE) * len(wanted)
        if needed > 0:
            left.append((wanted, needed))
    covered = len(reference) - len(left)
    # Looking for the outlines of a reference that is in no context takes half the time of taking the contexts apart.
    if left and len(left) <= FEW and sum(map(len, retrieved)) <= OUTLINED:
        left = _possible(left, retrieved)
    if not left:
        return covered
    sought = frozenset[Shingle]().union(*[wanted for wanted, _ in left])
    by_size = [frozenset(one for one in sought if len(one) == size) for size in range(1, SHINGLE + 1)]
    found: set[Shingle] = set()
    for context in retrieved:
        words = tokens(context)
        for size, of_size in enumerate(by_size, start=1):
            if of_size:
                found |= of_size.intersection(_shingles(words, size))
        if len(left) <= FEW and all(len(wanted & found) >= needed for wanted, needed in left):
            return covered + len(left)
    return covered + sum(len(wanted & found) >= needed for wanted, needed in left)


def _possible(references: Iterable[Sought], contexts: Sequence[str]) -> list[Sought]:
    """Return the references without those of which the outlines of too many shingles are in no context."""
    text = outline("\n".join(contexts))
    return [one for one in references if not _lacks(text, *one)]


def _lacks(text: bytes, wanted: frozenset[Shingle], needed: float) -> bool:
    spare = len(wanted) - needed  # so many need not be found
    absent = (one for one in wanted if outline_of(one) not in text)
    return len(wanted) <= SHORT and sum(1 for _ in islice(absent, int(spare) + 1)) > spare


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


def _words_of(text: str) -> list[bytes]:
    """Return the words of a reference, of which there is at least one."""
    words = tokens(text)
    if not words:
        raise NoWordsError("has a text without words in reference_contexts")
    return words


def _is_enough(words: Sequence[bytes], threshold: float) -> bool:
    """Return whether a reference counts as retrieved if all of its shingles are found but the first and the last.

    These are of words that may go on in a context that has the whole text. Each different word but the last ones
    begins another shingle: with fewer shingles, fewer must be found, but two are a larger part of them.
    """
    fewest = len(set(words)) - (SHINGLE - 1)
    return (threshold - TOLERANCE) * fewest <= fewest - 2


def _shingles(words: Sequence[bytes], size: int) -> Iterable[Shingle]:
    return zip(*[words[start:] for start in range(size)], strict=False)  # not strict: the last words start none
