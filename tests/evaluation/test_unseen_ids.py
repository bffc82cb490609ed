"""Which relevant ids never occur in a run."""

from collections.abc import Mapping

import pytest

from ragcontract.core import bounds
from ragcontract.core.golden import GoldenQuery
from ragcontract.evaluation.observations import UnseenIds, UnseenIdSearch
from ragcontract.evaluation.side import evaluate_side
from tests.evaluation.test_evaluate import plan_of, rows
from tests.records import query


def search(run: Mapping[str, list[str]], *queries: GoldenQuery) -> UnseenIds:
    return evaluate_side(plan_of(*queries), [rows(*run.items())]).observed(UnseenIdSearch)


def test_an_id_that_any_row_returns_occurs() -> None:
    assert search({"q1": ["B"], "q2": ["A"]}, query("q1", "A"), query("q2", "B")) == UnseenIds(relevant=2)


def test_ids_that_never_occur_are_counted_and_compared() -> None:
    found = search({"q1": ["a"], "q2": ["B"]}, query("q1", "A", "C"), query("q2", "B"))
    assert (found.relevant, len(found.ids), found.compared, found.matched) == (3, 2, 2, 1)
    assert found.example is not None
    assert (found.example.wanted, found.example.actual, found.retrieved) == ("A", "a", ("a",))


def test_ids_of_queries_without_a_row_do_not_count() -> None:
    found = search({"q1": ["A"]}, query("q1", "A"), query("q2", "B"))
    assert (found.relevant, len(found.ids)) == (1, 0)


def test_rows_are_held_as_long_as_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "COMPARED_IDS", 2)
    found = search({f"q{n}": [f"d{n}", "x"] for n in range(3)}, *(query(f"q{n}", f"D{n}") for n in range(3)))
    assert (len(found.ids), found.compared, found.matched) == (3, 1, 1)
