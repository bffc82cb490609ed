"""Measures of confusion matrices, against their definitions and scikit-learn."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcontract.statistics.quantities import ClassMeasures, accuracy, classes, macro_f1, measures

PAIRS = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(["a", "b", "c", "d", "e"])), min_size=1)


def test_the_measures_of_a_small_matrix() -> None:
    confusion = {("a", "a"): 3, ("a", "b"): 1, ("b", "a"): 2, ("b", None): 4}
    assert accuracy(confusion) == 0.3
    assert classes(confusion) == ["a", "b"]
    assert measures(confusion, ["a", "b", "c"]) == {
        "a": ClassMeasures(precision=3 / 5, recall=3 / 4, f1=6 / 9),
        "b": ClassMeasures(precision=0.0, recall=0.0, f1=0.0),
        "c": ClassMeasures(precision=0.0, recall=0.0, f1=0.0),
    }
    assert macro_f1(confusion) == 3 / 9


def test_without_rows_there_is_nothing_to_average() -> None:
    assert (accuracy({}), macro_f1({}), classes({})) == (None, None, [])


def test_a_class_that_was_only_found_counts_as_much_as_one_that_was_expected() -> None:
    assert macro_f1({("a", "a"): 9, ("a", "z"): 0}) == 0.5


@given(PAIRS)
def test_macro_f1_is_the_mean_of_the_harmonic_means_of_precision_and_recall(pairs: list[tuple[str, str]]) -> None:
    names = {name for pair in pairs for name in pair}
    f1 = []
    for name in sorted(names):
        right = sum(expected == found == name for expected, found in pairs)
        of_found, of_expected = (sum(pair[side] == name for pair in pairs) for side in (1, 0))
        precision, recall = right / of_found if of_found else 0.0, right / of_expected if of_expected else 0.0
        f1.append(2 * precision * recall / (precision + recall) if precision + recall else 0.0)
    assert macro_f1(Counter(pairs)) == pytest.approx(sum(f1) / len(names), abs=1e-12)


# Expected and found classes, a letter each; what scikit-learn 1.9.1 says of them: macro F1, precisions, recalls.
OF_SCIKIT_LEARN = [
    (
        ("cbdaaacabaad", "cbaacababaad"),
        0.7,
        [0.833333333333, 0.666666666667, 0.5, 1.0],
        [0.833333333333, 1.0, 0.5, 0.5],
    ),
    (
        ("acbabcaaabddcddccbbbacdcdcaadbcbddaacccd", "dcbaacedabaccddbdbabacdcddbadaccddebeace"),
        0.4575438596491228,
        [0.444444444444, 0.571428571429, 0.777777777778, 0.636363636364, 0.0],
        [0.4, 0.5, 0.583333333333, 0.7, 0.0],
    ),
]


@pytest.mark.parametrize(("rows", "f1", "precisions", "recalls"), OF_SCIKIT_LEARN)
def test_measures_are_those_of_scikit_learn(
    rows: tuple[str, str], f1: float, precisions: list[float], recalls: list[float]
) -> None:
    confusion: Counter[tuple[str, str | None]] = Counter(zip(*rows, strict=True))
    ours = measures(confusion, classes(confusion))
    assert macro_f1(confusion) == pytest.approx(f1, abs=1e-12)
    assert [one.precision for one in ours.values()] == pytest.approx(precisions, abs=1e-12)
    assert [one.recall for one in ours.values()] == pytest.approx(recalls, abs=1e-12)
