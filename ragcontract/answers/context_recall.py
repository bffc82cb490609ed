"""Context recall: the fraction of the reference contexts that were retrieved.

By ids it is the IDBasedContextRecall of ragas, by the distance of texts its NonLLMContextRecall. By coverage, a
reference counts as retrieved if enough of its shingles (all sequences of three words) are in any of the texts, so that
the value does not depend on how documents are cut into chunks. Shingles are those of Broder, "On the resemblance and
containment of documents" (1997).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TypeAlias

from ragcontract.answers.cannot_score import CannotScoreError, NoWordsError
from ragcontract.answers.metric_options import Measure
from ragcontract.answers.tokens import tokens
from ragcontract.core import bounds

Shingle: TypeAlias = tuple[str, ...]

SHINGLE = 3  # words; a shorter reference is one shingle
TOLERANCE = 1e-9  # so that 0.3 of ten shingles are three
RESEMBLING = 0.9  # two English sentences about different things have Jaro similarities of 0.56 to 0.84
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
        contexts = _Shingles(retrieved)
        return sum(_is_covered(text, contexts, threshold) for text in reference) / len(reference)
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


def _is_covered(reference: str, contexts: "_Shingles", threshold: float) -> bool:
    """Return whether enough of the shingles of a reference are in the contexts."""
    words = tokens(reference)
    if not words:
        raise NoWordsError("has a text without words in reference_contexts")
    size = min(SHINGLE, len(words))
    wanted = frozenset(_shingles(words, size))
    needed = (threshold - TOLERANCE) * len(wanted)
    found: set[Shingle] = set()
    if needed <= 0:
        return True
    for shingles in contexts.of(size):
        found |= wanted.intersection(shingles)
        if len(found) >= needed:
            return True
    return False


class _Shingles:
    """The shingles of texts, whose words are found once and as late as possible."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._words: list[list[str]] = []

    def of(self, size: int) -> Iterator[Iterable[Shingle]]:
        """Yield the shingles of each text."""
        for number, text in enumerate(self._texts):
            if number == len(self._words):
                self._words.append(tokens(text))
            yield _shingles(self._words[number], size)


def _shingles(words: Sequence[str], size: int) -> Iterable[Shingle]:
    return zip(*[words[start:] for start in range(size)], strict=False)  # not strict: the last words start none
