"""The similarity of texts as sequences of words: ROUGE-L, and context recall.

Context recall is the fraction of the reference contexts that were retrieved. By ids it is the IDBasedContextRecall of
ragas, by the distance of texts its NonLLMContextRecall. By coverage, a reference counts as retrieved if enough of its
shingles (all sequences of three words) are in any of the texts, so that the value does not depend on how documents are
cut into chunks. Shingles are those of Broder, "On the resemblance and containment of documents" (1997).
"""

import re
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from functools import lru_cache
from itertools import islice
from typing import TypeAlias

from ragcontract.answers.metric_options import CannotScoreError, Measure, NoWordsError
from ragcontract.answers.normalising import composed, continues
from ragcontract.core import bounds

# Scripts that are written without blanks: Han, Hiragana, Katakana and Thai, by their letters, marks and digits.
_UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e50-\u0e59"
    "\u2e80-\u2e99\u2e9b-\u2ef3\u2f00-\u2fd5\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303c"
    "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
_TOKEN = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")
_LOWER = "".join([chr(code).lower() if chr(code).isalnum() or chr(code) == "_" else " " for code in range(128)])
_BYTES = _LOWER.encode() + bytes(range(128, 256))  # of UTF-8
_NO_OUTLINE = bytes({*range(256)}.difference(_LOWER.replace(" ", "").encode()))
_SHORT = 64  # bytes: longer parts of a text are not remembered


def tokens(text: str) -> list[bytes]:
    """Return the words of a text in UTF-8, regardless of case and of forms of one character (NFKC, then casefolded).

    A word is a run of letters, digits and underscores. In scripts that are written without blanks, each character is a
    word.
    """
    # No character combines with an ASCII character outside of words, so each part between these can be taken alone.
    # Only parts that are not ASCII need more than this, which takes half of the time.
    parts = text.encode(errors="surrogatepass").translate(_BYTES).split()
    if text.isascii():
        return parts
    words: list[bytes] = []
    done = 0
    for at in [at for at, part in enumerate(parts) if not part.isascii()]:
        words += parts[done:at]
        words += _remembered(parts[at]) if len(parts[at]) <= _SHORT else _words(parts[at])
        done = at + 1
    words += parts[done:]
    return words


def outline(text: str) -> bytes:
    """Return the ASCII letters, digits and underscores of a text, regardless of case, and nothing between them.

    It contains the outline of any words that follow each other in the text. It may contain outlines of others, too.
    """
    return _folded(text).encode(errors="surrogatepass").translate(None, _NO_OUTLINE)


def outline_of(words: Iterable[bytes]) -> bytes:
    """Return the outline of words, which are in UTF-8, as :func:`tokens` returns them."""
    return b"".join(words).translate(None, _NO_OUTLINE)


def has_words(text: str) -> bool:
    """Return whether a text has any words; a text that is too long for a comparison has."""
    try:
        return _TOKEN.search(_folded(text)) is not None
    except CannotScoreError:
        return True


def _words(part: bytes) -> list[bytes]:
    text = _folded(part.decode(errors="surrogatepass"))
    return [word.encode(errors="surrogatepass") for word in _TOKEN.findall(text)]


_remembered = lru_cache(maxsize=4096)(_words)


def _folded(text: str) -> str:
    return composed(text, "NFKC").casefold()


def common_length(first: Sequence[Hashable], second: Sequence[Hashable]) -> int:
    """Return the length of the longest common subsequence.

    Bit-parallel, after Hyyrö, "Bit-parallel LCS-length computation revisited" (2004): a column of the table of lengths
    is one integer, in which a 0 marks where the length grows. The shorter sequence is the column, because each of its
    distinct items takes as many bits.
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
    """Return ROUGE-L (Lin, 2004), the harmonic mean of the fractions of both texts' words that they share in order.

    The words are those of :func:`tokens`, not stemmed. Raises CannotScoreError.
    """
    words, expected = tokens(response), tokens(reference)
    if len(words) * len(expected) > bounds.SUBSEQUENCE:
        raise CannotScoreError(
            f"has a response of {len(words):,} words and a reference of {len(expected):,}, too many for rouge_l: their "
            f"product is over {bounds.SUBSEQUENCE:,}"
        )
    if not words or not expected:
        return 0.0
    return 2 * common_length(expected, words) / (len(words) + len(expected))


Shingle: TypeAlias = tuple[bytes, ...]
Sought: TypeAlias = tuple[frozenset[Shingle], float]  # the shingles of a reference, and how many must be found

FEW = 16  # references; a search of all contexts for each of them is only done for so many, so that time stays linear
SHORT, OUTLINED = 64, 1 << 16  # most shingles of a reference and characters of contexts for a search for outlines
SHINGLE = 3  # words; a shorter reference is one shingle
TOLERANCE = 1e-9  # so that 0.3 of ten shingles are three
RESEMBLING = 0.9  # two English sentences about different things have Jaro similarities of 0.56 to 0.84
_AROUND = " \n.,;:!?\"'()"  # characters that may be around a sentence and are not in words
INSTALL = "needs rapidfuzz; install it: pip install 'rag-contract[text]', or use measure: coverage"
_CLASSES = {"levenshtein": "Levenshtein", "hamming": "Hamming", "jaro": "Jaro", "jaro_winkler": "JaroWinkler"}


def recall_of_ids(retrieved: Iterable[str], reference: Collection[str]) -> float:
    """Return the fraction of the different reference ids (at least one) that were retrieved."""
    wanted = frozenset(reference)
    return len(wanted.intersection(retrieved)) / len(wanted)


def recall_of_texts(
    retrieved: Sequence[str], reference: Sequence[str], *, measure: Measure = "coverage", threshold: float = 0.5
) -> float:
    """Return the fraction of the reference texts (at least one) that were retrieved.

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
    """Return the function that computes the distance of two texts, from 0 to 1, character by character.

    Raises ImportError without rapidfuzz.
    """
    try:
        from rapidfuzz import distance
    except ImportError as error:
        raise ImportError(f"{measure} {INSTALL}") from error
    function: Callable[[str, str], float] = getattr(distance, _CLASSES[measure]).normalized_distance
    return function


def _covered(retrieved: Sequence[str], reference: Sequence[str], threshold: float) -> int:
    """Return the number of references with enough of their shingles in the contexts, in linear time."""
    left: list[Sought] = []
    for text in reference:
        words = _words_of(text)
        # Searching for the text takes a tenth of the time of taking the contexts apart, but not for many references.
        if len(reference) <= FEW and _is_in(text, retrieved) and _is_enough(words, threshold):
            continue
        wanted = frozenset(_shingles(words, min(SHINGLE, len(words))))
        needed = (threshold - TOLERANCE) * len(wanted)
        if needed > 0:
            left.append((wanted, needed))
    covered = len(reference) - len(left)
    # If a reference is in no context, searching for its outlines takes half the time of taking the contexts apart.
    if left and len(left) <= FEW and sum(map(len, retrieved)) <= OUTLINED:
        left = _possible(left, retrieved)
    if not left:
        return covered
    sought = frozenset[Shingle]().union(*[wanted for wanted, _ in left])
    by_size = [frozenset(shingle for shingle in sought if len(shingle) == size) for size in range(1, SHINGLE + 1)]
    present: set[Shingle] = set()
    for context in retrieved:
        words = tokens(context)
        for size, of_size in enumerate(by_size, start=1):
            if of_size:
                present |= of_size.intersection(_shingles(words, size))
        if len(left) <= FEW and all(len(wanted & present) >= needed for wanted, needed in left):
            return covered + len(left)
    return covered + sum(len(wanted & present) >= needed for wanted, needed in left)


def _possible(references: Iterable[Sought], contexts: Sequence[str]) -> list[Sought]:
    """Return the references that may be covered, because the contexts have the outlines of enough shingles."""
    text = outline("\n".join(contexts))
    return [wanted for wanted in references if not _lacks(text, *wanted)]


def _lacks(text: bytes, wanted: frozenset[Shingle], needed: float) -> bool:
    spare = len(wanted) - needed  # so many need not be found
    absent = (shingle for shingle in wanted if outline_of(shingle) not in text)
    return len(wanted) <= SHORT and sum(1 for _ in islice(absent, int(spare) + 1)) > spare


def _is_in(text: str, contexts: Sequence[str]) -> bool:
    """Return whether a context has the whole text, written in the same way.

    It does not count where a character may combine with the one before it, because that may change the words.
    """
    text = text.strip(_AROUND)
    if not text or continues(text[0]):
        return False
    return any(
        (at := context.find(text)) >= 0 and not continues(context[at + len(text) : at + len(text) + 1] or " ")
        for context in contexts
    )


def _words_of(text: str) -> list[bytes]:
    """Return the words of a reference; raises NoWordsError if it has none."""
    words = tokens(text)
    if not words:
        raise NoWordsError("has a text without words in reference_contexts")
    return words


def _is_enough(words: Sequence[bytes], threshold: float) -> bool:
    """Return whether a reference counts as retrieved if all of its shingles are found except the first and the last.

    In a context with the whole text, the words of these two may go on. Each different word except the last ones begins
    another shingle. With fewer shingles, fewer must be found, but two are a larger part of them.
    """
    fewest = len(set(words)) - (SHINGLE - 1)
    return (threshold - TOLERANCE) * fewest <= fewest - 2


def _shingles(words: Sequence[bytes], size: int) -> Iterable[Shingle]:
    return zip(*[words[start:] for start in range(size)], strict=False)  # not strict: the last words start none
