import pytest

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.phrase import Location
from ragcontract.files.problems import Collector, MoreProblems, Problem, Problems, Warned
from ragcontract.files.schema import Mismatch


def refused(problems: Problems) -> InputError:
    with pytest.raises(InputError) as caught:
        problems.raise_if_any()
    return caught.value


def test_nothing_wrong_raises_nothing() -> None:
    collector = Collector()
    collector.warning("odd")
    collector.collected().raise_if_any()
    assert collector.collected().warnings == ("odd",)
    assert not collector.collected()


def test_problems_are_raised_together_and_with_the_warnings() -> None:
    collector = Collector()
    collector.problem("a:1", "is bad")
    collector.warning("odd")
    collector.problem("b:2: id", "is worse")
    error = refused(collector.collected())
    assert error.lines() == ["a:1: is bad", "b:2: id: is worse"]
    assert list(error.warnings) == ["odd"]
    assert str(error) == "a:1: is bad\nb:2: id: is worse"


def test_fifty_are_enough() -> None:
    collector = Collector()
    for number in range(49):
        collector.problem(str(number), "x")
    full = [collector.full]
    collector.problem("49", "x")
    full.append(collector.full)
    collector.problem("50", "x")
    assert full == [False, True]
    assert refused(collector.collected()).lines()[-2:] == ["49: x", "… and 1 more like these"]


def test_long_ones_are_cut_so_that_location_and_message_both_show() -> None:
    collector = Collector()
    collector.problem("p" * 5000, "m" * 5000)
    collector.warning("w" * 5000)
    assert list(refused(collector.collected()).problems) == ["p" * 999 + "…: " + "m" * 999 + "…"]
    assert collector.collected().warnings == ("w" * 999 + "…",)


def test_a_mismatch_is_reported_by_its_path_where_it_has_one() -> None:
    collector = Collector()
    collector.mismatch(Location("a", 1), Mismatch(("results", 3, "doc_id"), "is missing"))
    collector.mismatch("a:2", Mismatch((), "is no object"))
    assert list(refused(collector.collected()).problems) == ["a:1: results[3].doc_id: is missing", "a:2: is no object"]


def test_problems_that_are_only_counted_come_after_the_others() -> None:
    collector = Collector()
    collector.problem("a", "x")
    collector.count()
    collector.count()
    assert (len(collector.collected().problems), collector.collected().more) == (1, 2)
    assert refused(collector.collected()).lines() == ["a: x", "… and 2 more like these"]


def test_what_a_reader_yields_is_collected_as_what_it_is() -> None:
    collector = Collector()
    for event in (Problem("a:1", "x"), Warned("w" * 2000), MoreProblems(3), Problem("a:2", "y")):
        collector.add(event)
    found = collector.collected()
    assert (found.problems, found.more) == (("a:1: x", "a:2: y"), 3)
    assert found.warnings == ("w" * 999 + "…",)


def some(name: str, count: int, more: int = 0) -> Problems:
    return Problems(problems=tuple(f"{name}{n}" for n in range(count)), more=more, warnings=(name,))


@pytest.mark.parametrize(
    ("counts", "described", "more"),
    [((0, 0), 0, 0), ((1, 2), 3, 0), ((30, 20), 50, 0), ((30, 21), 50, 1), ((50, 50), 50, 50), ((0, 50, 1), 50, 1)],
)
def test_of_problems_that_are_added_fifty_stay_described_and_the_rest_is_counted(
    counts: tuple[int, ...], described: int, more: int
) -> None:
    parts = [some("abc"[number], count, more=number) for number, count in enumerate(counts)]
    added = sum(parts, Problems())
    every = [one for part in parts for one in part.problems]
    assert added.problems == tuple(every[: bounds.PROBLEMS])
    assert (len(added.problems), added.more) == (described, more + sum(range(len(counts))))
    assert added.warnings == tuple("abc"[: len(counts)])


@pytest.mark.parametrize("had", [0, 30, 49, 50])
def test_a_collector_includes_what_another_found_as_addition_does(had: int) -> None:
    collector = Collector()
    for number in range(had):
        collector.problem(f"a{number}", "x")
    collector.warning("first")
    before = collector.collected()
    collector.include(some("b", 30, more=7))
    assert collector.collected() == before + some("b", 30, more=7)
    assert collector.full == (had + 30 >= bounds.PROBLEMS)


def test_what_was_found_does_not_change_when_more_is_collected() -> None:
    collector = Collector()
    collector.problem("a", "x")
    found = collector.collected()
    collector.problem("b", "y")
    assert found.problems == ("a: x",)
    assert bool(found)
    assert not Problems(warnings=("odd",))
    assert not Problems(more=0)
