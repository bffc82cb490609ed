"""Rows of queries that the golden set does not have."""

from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.evaluation.observations import Unknown, UnknownQueries
from ragcontract.evaluation.plan import Plan
from ragcontract.evaluation.side import evaluate_side
from tests.evaluation.test_evaluate import plan_of, rows
from tests.records import query

PLAN = replace(plan_of(query("q")), not_judged=frozenset({"skipped"}))
IDS = [f"u{number}" for number in range(bounds.UNKNOWN + 2)]


def unknown(plan: Plan, *query_ids: str) -> Unknown:
    return evaluate_side(plan, [rows(*((query_id, "A") for query_id in query_ids))]).observed(UnknownQueries)


def test_they_are_listed_once_up_to_a_number_and_the_rows_of_others_are_counted() -> None:
    assert unknown(PLAN, *IDS, *IDS, "skipped") == Unknown(listed=tuple(IDS[: bounds.UNKNOWN]), more=4)


def test_those_of_a_baseline_are_all_listed() -> None:
    assert unknown(PLAN.for_baseline(), *IDS) == Unknown(listed=tuple(IDS))
