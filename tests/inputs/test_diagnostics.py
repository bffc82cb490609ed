import pytest

from ragcontract.errors import InputError
from ragcontract.inputs.diagnostics import Diagnostics


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
