"""The judged pool that a baseline brings: what it returned first when its labels were made."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.ids import pool_of, unpacked
from ragcontract.evaluation.side import Side, evaluate_side
from ragcontract.metrics.ranking import Ranking
from ragcontract.runs.baseline_file import ComparedQuery, StoredBatch
from ragcontract.runs.readers import RunEvent
from tests.evaluation.test_evaluate import rows
from tests.evaluation.test_listed_results import HEAD
from tests.records import query
from tests.runs.sides import plan_of

PLAN = replace(plan_of([query("q", "A"), query("p", "A")], repeats=True).for_baseline(), ranking=Ranking([2]))


def stored(pool: list[str | int] | None = None, *repeats: list[str | int]) -> ComparedQuery:
    doc_ids: list[str | int] = ["A", 2, "C", "D", "E", "F"]
    return ComparedQuery(id="q", query="What about q?", doc_ids=doc_ids, repeats=[*repeats], pool=pool)


def pool(side: Side) -> set[str]:
    return {*pool_of(side.ids.pools["q"])}


def side_of(*events: RunEvent) -> Side:
    return evaluate_side(PLAN, events)


def first(side: Side) -> Sequence[Sequence[str]]:
    return unpacked(side.ids.first_ids["q"])


def test_the_pool_of_a_run_is_the_first_k_of_each_row() -> None:
    side = side_of(rows(("q", ["A", "B", "C"]), ("p", []), ("q", ["D", "A", "E"])))
    assert first(side) == [["A", "B"], ["D", "A"]]
    assert pool(side) == {"A", "B", "D"}
    assert unpacked(side.ids.pools["p"]) == [[]]
    assert side.ids.pools is side.ids.first_ids


def test_the_pool_of_a_stored_baseline_has_the_first_k_at_its_own_largest_cut_off() -> None:
    side = side_of(HEAD, StoredBatch([stored(None, ["x"])]))
    assert first(side) == [["A", "2"], ["x"]]
    assert pool(side) == {"A", "2", "C", "D", "E", "x"}


def test_a_pool_in_the_baseline_is_taken_as_it_is() -> None:
    assert pool(side_of(HEAD, StoredBatch([stored(["Z", 7])]))) == {"Z", "7"}
    assert pool(side_of(HEAD, StoredBatch([stored([])]))) == set()


def test_a_query_with_another_question_brings_none() -> None:
    side = side_of(HEAD, StoredBatch([ComparedQuery(id="q", query="Another?", doc_ids=["A"])]))
    assert (side.ids.pools, side.ids.first_ids) == ({}, {})


def test_where_ranks_count_documents_the_first_documents_are_the_pool() -> None:
    plan = replace(PLAN, ranking=Ranking([2], "documents"))
    assert pool(evaluate_side(plan, [rows(("q", ["A", "A", "B", "C"]))])) == {"A", "B"}


def test_a_run_brings_no_pool() -> None:
    side = evaluate_side(plan_of([query("q", "A")]), [rows(("q", ["A"]))])
    assert (side.ids.pools, side.ids.first_ids) == ({}, {})


def test_of_very_many_rows_of_a_query_the_first_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "BASELINE_ROWS", 3)
    side = side_of(rows(*[("q", [str(number)]) for number in range(5)]))
    assert first(side) == [["0"], ["1"], ["2"]]
