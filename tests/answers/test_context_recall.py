"""Context recall by ids and by texts, with the values that were measured with ragas 0.4.3."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcontract.answers.metric_options import CannotScoreError, Measure
from ragcontract.answers.similarity import FEW, OUTLINED, SHORT, has_words, recall_of_ids, recall_of_texts, tokens
from ragcontract.core import bounds
from tests.answers.texts import TEXTS, chunks, sentences

PARIS = "Paris is the capital of France."
TOWER = "The Eiffel Tower is one of the most famous landmarks in Paris."
DISTANCES: tuple[Measure, ...] = ("levenshtein", "hamming", "jaro", "jaro_winkler")


def test_recall_of_ids_counts_each_reference_once_at_any_depth() -> None:
    assert recall_of_ids(["doc_1", "doc_2", "doc_3"], ["doc_1", "doc_4", "doc_5", "doc_6"]) == 0.25
    assert recall_of_ids(["b", "a"], ["a", "a", "c"]) == 0.5
    assert recall_of_ids([], ["a"]) == 0.0
    assert recall_of_ids(["1"], ["01"]) == 0.0


@pytest.mark.parametrize("measure", ["coverage", "levenshtein", "hamming"])
def test_the_example_of_ragas_has_its_value(measure: Measure) -> None:
    assert recall_of_texts([PARIS], [PARIS, TOWER], measure=measure) == 0.5


@pytest.mark.parametrize("measure", ["coverage", *DISTANCES])
def test_nothing_retrieved_is_zero(measure: Measure) -> None:
    assert recall_of_texts([], [PARIS], measure=measure) == 0.0


@pytest.mark.parametrize("measure", ["coverage", *DISTANCES])
def test_references_that_repeat_count_each_time(measure: Measure) -> None:
    assert recall_of_texts([PARIS], [PARIS, PARIS, "zzz"], measure=measure, threshold=0.9) == pytest.approx(2 / 3)


# Coverage


def test_coverage_finds_a_reference_in_a_longer_text_whatever_its_case_and_punctuation() -> None:
    retrieved = ["Of old: PARIS is the “capital” of France, and large."]
    assert recall_of_texts(retrieved, [PARIS], threshold=1) == 1.0
    assert recall_of_texts(retrieved, [PARIS], measure="levenshtein") == 1.0
    assert recall_of_texts([PARIS.upper()], [PARIS], measure="levenshtein") == 0.0


def test_coverage_counts_shingles_of_all_texts_together() -> None:
    reference = "a b c d e f"  # abc bcd cde def
    assert recall_of_texts(["a b c d"], [reference], threshold=0.5) == 1.0
    assert recall_of_texts(["a b c d"], [reference], threshold=0.51) == 0.0
    assert recall_of_texts(["a b c d", "c d e"], [reference], threshold=0.75) == 1.0
    assert recall_of_texts(["a b c", "d e f"], [reference], threshold=0.75) == 0.0, "no shingle across two texts"
    assert recall_of_texts(["f e d c b a"], [reference], threshold=0.01) == 0.0, "the order counts"


def test_a_coverage_exactly_at_the_threshold_counts_in_spite_of_rounding() -> None:
    words = [f"w{number}" for number in range(12)]  # ten shingles
    assert 0.1 + 0.2 > 3 / 10
    assert recall_of_texts([" ".join(words[:5])], [" ".join(words)], threshold=0.1 + 0.2) == 1.0


@pytest.mark.parametrize("reference", ["refunds", "refunds take"])
def test_a_reference_of_one_or_two_words_is_one_shingle(reference: str) -> None:
    assert recall_of_texts(["Most refunds take a week"], [reference], threshold=1) == 1.0
    assert recall_of_texts(["Most take refunds"], [reference], threshold=1) == (reference == "refunds")


def test_shingles_that_repeat_in_the_reference_count_once() -> None:
    assert recall_of_texts(["no no no"], ["no no no no no yes"], threshold=0.5) == 1.0


def test_a_threshold_of_zero_counts_every_reference() -> None:
    assert recall_of_texts([], ["a b c"], threshold=0) == 1.0


def test_coverage_refuses_a_reference_without_words_and_a_distance_does_not() -> None:
    with pytest.raises(CannotScoreError, match="has a text without words in reference_contexts"):
        recall_of_texts([PARIS], [PARIS, "— … —"])
    assert recall_of_texts(["— … —"], ["— … —"], measure="levenshtein") == 1.0


def test_coverage_does_not_depend_on_the_size_of_chunks() -> None:
    """The retrieval is perfect: all chunks of the document. By distance, recall measures the size of chunks."""
    document = sentences(400, seed=7)
    references = [" ".join(document[start : start + 2]) for start in range(0, 400, 2)]
    text = " ".join(document)
    sizes = (150, 300, 600, 1_200, len(text))
    by_coverage = [recall_of_texts(chunks(text, size), references) for size in sizes]
    assert max(by_coverage) - min(by_coverage) <= 0.02
    assert min(by_coverage) > 0.97
    assert recall_of_texts(chunks(text, 600), [" ".join(sentences(2, seed=8))]) == 0.0
    few = references[:20]
    by_distance = [recall_of_texts(chunks(text, size), few, measure="levenshtein") for size in (300, 1_200)]
    assert by_distance[0] - by_distance[1] > 0.1


words = st.lists(st.sampled_from("abcd"), min_size=1, max_size=9).map(" ".join)


@given(st.lists(words, max_size=4), words, st.floats(0, 1))
def test_more_texts_never_lower_coverage(retrieved: list[str], reference: str, threshold: float) -> None:
    before = recall_of_texts(retrieved[:2], [reference], threshold=threshold)
    assert recall_of_texts(retrieved, [reference], threshold=threshold) >= before
    assert recall_of_texts([reference], [reference], threshold=1) == 1.0


# Distances


@pytest.mark.parametrize("measure", DISTANCES)
def test_a_similarity_exactly_at_the_threshold_does_not_count(measure: Measure) -> None:
    """As in ragas. The prefix that they share counts for Jaro-Winkler only where they resemble each other by 0.7."""
    similarity = {"levenshtein": 0.5, "hamming": 0.5, "jaro": 2 / 3, "jaro_winkler": 2 / 3}[measure]
    assert recall_of_texts(["ab"], ["ac"], measure=measure, threshold=similarity) == 0.0
    assert recall_of_texts(["ab"], ["ac"], measure=measure, threshold=similarity - 0.01) == 1.0


@pytest.mark.parametrize("measure", DISTANCES)
def test_distances_know_no_case_and_take_the_best_text(measure: Measure) -> None:
    assert recall_of_texts(["PARIS", "zzzzz"], ["paris"], measure=measure) == 0.0
    assert recall_of_texts(["PARIS", "zzzzz", "paris"], ["paris"], measure=measure) == 1.0
    assert recall_of_texts([""], [""], measure=measure) == 1.0


def test_unrelated_sentences_resemble_each_other_by_jaro() -> None:
    assert recall_of_texts([PARIS], ["Refunds take five working days."], measure="jaro") == 1.0


def test_texts_whose_distance_would_take_minutes_are_refused() -> None:
    long, short = "a" * (bounds.DISTANCE // 10), "b" * 10
    assert recall_of_texts([long], [short], measure="hamming") == 0.0
    with pytest.raises(CannotScoreError, match="too many for hamming: their product is over 10,000,000,000; use"):
        recall_of_texts([long], [short, "c"], measure="hamming")


def in_full(retrieved: Sequence[str], reference: Sequence[str], threshold: float) -> float:
    """Return the recall by the definition: all shingles of all texts, nothing left out."""

    def shingles(text: str, size: int) -> set[tuple[bytes, ...]]:
        words = tokens(text)
        return {tuple(words[at : at + size]) for at in range(len(words) - size + 1)}

    covered = 0
    for text in reference:
        size = min(3, len(tokens(text)))
        wanted = shingles(text, size)
        found = wanted & set[tuple[bytes, ...]]().union(*(shingles(one, size) for one in retrieved))
        covered += len(found) / len(wanted) >= threshold - 1e-9
    return covered / len(reference)


@given(
    st.lists(TEXTS, max_size=4),
    st.lists(TEXTS.filter(has_words), min_size=1, max_size=3),
    st.sampled_from([0.0, 0.3, 0.5, 0.9, 1.0]),
    st.sampled_from([1, FEW]),
)
def test_what_is_searched_for_first_changes_no_value(
    retrieved: list[str], reference: list[str], threshold: float, times: int
) -> None:
    reference = reference * times
    retrieved = [*retrieved, "a " + reference[0] + "b"]
    assert recall_of_texts(retrieved, reference, threshold=threshold) == in_full(retrieved, reference, threshold)


@pytest.mark.parametrize("size", [SHORT, SHORT + 1, SHORT + 2, SHORT + 3])
@pytest.mark.parametrize("length", [100, OUTLINED + 1])
@pytest.mark.parametrize("had", [0, 30, 36, 60])
def test_neither_long_references_nor_long_texts_change_a_value(size: int, length: int, had: int) -> None:
    reference = [f"wörd{number}" for number in range(size)]
    retrieved = [" – ".join([*reference[:had], "x"]), "y " * (length // 2)]
    texts = [" ".join(reference), "never seen anywhere at all"]
    assert recall_of_texts(retrieved, texts) == in_full(retrieved, texts, 0.5)
