import difflib
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcontract.core.nearest import NearNames, nearest
from tests.work import work


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("relevant_docs_ids", "relevant_doc_ids"),
        ("Relevant-Doc-IDs", "relevant_doc_ids"),
        ("wieght", "weight"),
        ("zz", None),
    ],
)
def test_the_nearest_word(word: str, meant: str | None) -> None:
    assert nearest(word, ["relevant_doc_ids", "weight"]) == meant


def test_the_nearest_word_keeps_its_case() -> None:
    assert nearest("doc_id", ["DOC_ID", "x"]) == "DOC_ID"


def test_among_names_that_begin_the_same_the_end_decides() -> None:
    names = NearNames(f"query about refunds {number:04}" for number in range(2_000))
    assert names.nearest("qeury about refunds 1234") == "query about refunds 1234"
    assert names.nearest("query about refunds 1234x") == "query about refunds 1234"
    assert names.nearest("something else") is None


def test_a_name_with_one_typing_error_is_found_among_thousands() -> None:
    dice = random.Random(1)
    names = [f"{dice.getrandbits(40):010x}" for _ in range(3_000)]
    near = NearNames(names)
    for name in names[:50]:
        assert near.nearest(name[:4] + "_" + name[5:]) == name


@given(st.lists(st.text("abc-_", min_size=1, max_size=6), max_size=8), st.text("abc-_", max_size=6))
def test_what_is_near_is_what_difflib_finds_among_few_names(names: list[str], word: str) -> None:
    found = nearest(word, names)
    plain = [name.replace("-", "_") for name in names]
    close = difflib.get_close_matches(word.replace("-", "_"), plain, n=1, cutoff=0.75)
    assert (found and found.replace("-", "_")) == (close[0] if close else None)


def test_no_names_are_near_to_nothing() -> None:
    assert nearest("x", []) is None
    assert nearest("", ["a"]) is None


def test_very_long_names_are_neither_indexed_nor_compared() -> None:
    assert nearest("x" * 10_000, ["x" * 100_000, "x" * 90]) == "x" * 90


def test_a_search_takes_as_long_among_any_number_of_names() -> None:
    few, many = (NearNames([f"query about refunds {number:05}" for number in range(size)]) for size in (500, 5_000))
    words = [f"qeury about refunds {number:05}" for number in range(50)]
    assert [few.nearest(word) for word in words] == [many.nearest(word) for word in words]  # both are indexed now
    assert work(lambda: [many.nearest(word) for word in words]) < 1.5 * work(
        lambda: [few.nearest(word) for word in words]
    )
