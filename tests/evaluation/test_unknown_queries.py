"""Rows of queries that the golden set does not have."""

from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.evaluation.observations import UnknownQueries
from tests.evaluation.test_fold import plan_of
from tests.records import query

PLAN = replace(plan_of(query("q")), not_judged=frozenset({"skipped"}))
IDS = [f"u{number}" for number in range(bounds.UNKNOWN + 2)]


def test_they_are_listed_once_up_to_a_number_and_the_rows_of_others_are_counted() -> None:
    unknown = UnknownQueries(PLAN)
    for query_id in [*IDS, *IDS, "skipped"]:
        unknown.note(query_id)
    assert unknown.listed == tuple(IDS[: bounds.UNKNOWN])
    assert unknown.more == 4


def test_those_of_a_baseline_are_all_listed() -> None:
    unknown = UnknownQueries(PLAN.for_baseline())
    for query_id in IDS:
        unknown.note(query_id)
    assert (unknown.listed, unknown.more) == (tuple(IDS), 0)
