import pytest

from ragcontract.core.errors import InputError
from ragcontract.files.problems import Diagnostics
from ragcontract.files.schema import Mismatch


def test_nothing_wrong_raises_nothing() -> None:
    diagnostics = Diagnostics()
    diagnostics.warning("odd")
    diagnostics.raise_problems()
    assert diagnostics.warnings == ["odd"]


def test_problems_are_raised_together_and_with_the_warnings() -> None:
    diagnostics = Diagnostics()
    diagnostics.problem("a:1", "is bad")
    diagnostics.warning("odd")
    diagnostics.problem("b:2: id", "is worse")
    with pytest.raises(InputError) as caught:
        diagnostics.raise_problems()
    assert caught.value.lines() == ["a:1: is bad", "b:2: id: is worse"]
    assert caught.value.warnings == ["odd"]
    assert str(caught.value) == "a:1: is bad\nb:2: id: is worse"


def test_fifty_are_enough() -> None:
    diagnostics = Diagnostics()
    for number in range(49):
        diagnostics.problem(str(number), "x")
    full = [diagnostics.full]
    diagnostics.problem("49", "x")
    full.append(diagnostics.full)
    diagnostics.problem("50", "x")
    assert full == [False, True]
    with pytest.raises(InputError) as caught:
        diagnostics.raise_problems()
    assert caught.value.lines()[-2:] == ["49: x", "… and 1 more like these"]


def test_long_ones_are_cut_so_that_place_and_message_both_show() -> None:
    diagnostics = Diagnostics()
    diagnostics.problem("p" * 5000, "m" * 5000)
    diagnostics.warning("w" * 5000)
    with pytest.raises(InputError) as caught:
        diagnostics.raise_problems()
    assert caught.value.problems == ["p" * 999 + "…: " + "m" * 999 + "…"]
    assert diagnostics.warnings == ["w" * 999 + "…"]


def test_a_misfit_is_told_by_its_path_where_it_has_one() -> None:
    diagnostics = Diagnostics()
    diagnostics.mismatch("a:1", Mismatch(("results", 3, "doc_id"), "is missing"))
    diagnostics.mismatch("a:2", Mismatch((), "is no object"))
    with pytest.raises(InputError) as caught:
        diagnostics.raise_problems()
    assert caught.value.problems == ["a:1: results[3].doc_id: is missing", "a:2: is no object"]


def test_problems_without_words_are_counted_behind_the_others() -> None:
    diagnostics = Diagnostics()
    diagnostics.problem("a", "x")
    diagnostics.count_one()
    diagnostics.count_one()
    assert diagnostics.problems == 3
    with pytest.raises(InputError) as caught:
        diagnostics.raise_problems()
    assert caught.value.lines() == ["a: x", "… and 2 more like these"]
