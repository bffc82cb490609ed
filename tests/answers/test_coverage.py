from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from ragcontract.answers.context_recall import FEW, recall_of_texts
from ragcontract.answers.tokens import has_words, tokens

TEXTS = st.lists(
    st.sampled_from(["a", "b", "Ba", "É", "日", ".", ", ", " ", "  ", "’", "\u0301", "ก", "\u0e48", "\u0e38"]),
    max_size=14,
).map("".join)


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


@given(TEXTS)
def test_a_text_has_words_if_any_are_found(text: str) -> None:
    assert has_words(text) == bool(tokens(text))
