"""judged@k, the best values over what nobody has judged, and condensed lists."""

from collections.abc import Sequence
from itertools import combinations

import ir_measures
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcontract.core.golden import GoldenQuery
from ragcontract.core.ids import EVERYTHING, packed
from ragcontract.core.run import QueryScore
from ragcontract.metrics.ranking import Ranking
from tests.records import query, report

DOCUMENTS = list("ABCDEFGH")
LISTS = st.lists(st.sampled_from(DOCUMENTS), unique=True, max_size=8)
SETS = st.sets(st.sampled_from(DOCUMENTS), min_size=1, max_size=4).map(sorted)


def score(asked: GoldenQuery, doc_ids: Sequence[str], pool: Sequence[str] | None, *, skip: bool = False) -> QueryScore:
    ranking = Ranking([4, 2], unjudged="skip" if skip else "count")
    return ranking.score(asked, doc_ids, None if pool is None else packed([pool]))


def test_relevant_forbidden_and_graded_documents_are_judged_and_so_is_the_pool() -> None:
    asked = query("q", "A", forbidden_doc_ids=("F",), relevance={"A": 1.0, "G": 0.0})
    assert score(asked, ["A", "F", "G", "P"], ["P"]).judged == (1.0, 1.0)
    assert score(asked, ["A", "F", "G", "P"], None).judged == (0.75, 1.0)
    assert score(asked, ["x", "A", "P", "y", "z"], ["P"]).judged == (0.5, 0.5)


def test_a_short_list_counts_as_long_as_it_is_and_an_empty_one_has_nothing_unjudged() -> None:
    asked = query("q", "A")
    assert score(asked, ["A", "x", "y"], []).judged == pytest.approx((1 / 3, 0.5))
    assert score(asked, [], ["x"]).judged == (1.0, 1.0)


def test_chunks_of_a_document_count_each_unless_ranks_count_documents() -> None:
    asked, doc_ids = query("q", "A"), ["x", "x", "x", "A"]
    assert Ranking([4]).score(asked, doc_ids, packed([[]])).judged == (0.25,)
    assert Ranking([4], "documents").score(asked, doc_ids, packed([[]])).judged == (0.5,)


def test_a_query_without_relevant_documents_has_none() -> None:
    assert score(query("q"), ["x"], []).judged == ()


def test_what_a_baseline_has_first_is_judged() -> None:
    found = Ranking([4]).score(query("q", "A"), ["x", "y"], EVERYTHING)
    assert (found.judged, found.if_relevant) == ((1.0,), ())


def test_the_family_judges_a_row_by_the_golden_row_alone() -> None:
    asked = [query("q", "A"), query("none")]
    config = {"k": [1, 2], "minimums": {"judged_at_1": 0, "judged_at_2": 0}}
    made = report(asked, {"q": ["A", "x"], "none": ["A", "x"]}, config=config)
    found = {key: metric.current for key, metric in made.metrics.items() if key.startswith("judged")}
    assert list(found.items()) == [("judged_at_2", 0.5), ("judged_at_1", 1.0)]


@given(doc_ids=LISTS.filter(bool), relevant=SETS, pool=SETS)
def test_it_is_what_ir_measures_computes(doc_ids: list[str], relevant: list[str], pool: list[str]) -> None:
    qrels = {"q": {**dict.fromkeys(pool, 0), **dict.fromkeys(relevant, 1)}}
    run = {"q": {doc_id: float(-rank) for rank, doc_id in enumerate(doc_ids)}}
    measures = [ir_measures.Judged @ 4, ir_measures.Judged @ 2]
    expected = ir_measures.calc_aggregate(measures, qrels, run)
    found = score(query("q", *relevant), doc_ids, pool).judged
    assert found == pytest.approx([expected[one] for one in measures])


@given(doc_ids=LISTS, relevant=SETS, pool=LISTS)
def test_the_best_value_is_the_best_of_all_ways_to_judge_the_unjudged(
    doc_ids: list[str], relevant: list[str], pool: list[str]
) -> None:
    found = score(query("q", *relevant), doc_ids, pool)
    unjudged = [doc_id for doc_id in doc_ids[:4] if doc_id not in {*relevant, *pool}]
    assert bool(found.if_relevant) == bool(unjudged)
    ways = [more for size in range(len(unjudged) + 1) for more in combinations(unjudged, size)]
    of_ways = [Ranking([4, 2]).score(query("q", *relevant, *more), doc_ids, EVERYTHING).values for more in ways]
    # Documents between the cut-offs cannot raise a metric at the smaller one, so each cut-off has its own best.
    assert (found.if_relevant or found.values) == pytest.approx([max(column) for column in zip(*of_ways, strict=True)])


def test_with_grades_what_nobody_judged_could_have_the_highest_one() -> None:
    asked = query("q", "A", relevance={"A": 3.0, "B": 1.0})
    found = score(asked, ["x", "A"], [])
    known = Ranking([4]).score(query("q", "A", "x", relevance={"A": 3.0, "B": 1.0, "x": 3.0}), ["x", "A"], EVERYTHING)
    assert found.if_relevant[4] == pytest.approx(known.values[4])
    assert found.if_relevant[4] > found.values[4]


def test_a_chunk_of_a_document_is_not_credited_again_in_the_best_case() -> None:
    found = Ranking([4]).score(query("q", "A"), ["x", "x", "x", "A"], packed([[]]))
    assert found.if_relevant == Ranking([4]).score(query("q", "A", "x"), ["x", "x", "x", "A"], EVERYTHING).values


@given(doc_ids=LISTS, relevant=SETS, pool=LISTS)
def test_skipped_documents_leave_a_condensed_list_and_ranks_as_they_are(
    doc_ids: list[str], relevant: list[str], pool: list[str]
) -> None:
    asked = query("q", *relevant, forbidden_doc_ids=("known as not relevant",))
    condensed = [doc_id for doc_id in doc_ids if doc_id in {*relevant, *pool}]
    found = score(asked, doc_ids, pool, skip=True)
    counted = score(asked, doc_ids, pool)
    assert found.values == pytest.approx(Ranking([4, 2]).score(asked, condensed, EVERYTHING).values)
    assert (found.ranks, found.clean_rank, found.judged) == (counted.ranks, counted.clean_rank, counted.judged)
    assert found.if_relevant == ()


def test_grades_move_up_with_their_documents() -> None:
    asked = query("q", "A", relevance={"A": 2.0, "B": 1.0, "C": 0.0})
    found = score(asked, ["x", "B", "y", "A"], [], skip=True)
    assert found.values == Ranking([4, 2]).score(asked, ["B", "A"], EVERYTHING).values


def test_where_nothing_is_known_as_not_relevant_nothing_is_skipped() -> None:
    found = score(query("q", "A"), ["x", "A"], None, skip=True)
    assert found.values == score(query("q", "A"), ["x", "A"], None).values
    assert found.judged == (0.5, 0.5)
    for pool in [], ["A"]:  # a baseline that returned nothing else
        assert score(query("q", "A"), ["x", "A"], pool, skip=True).values == found.values
    assert score(query("q", "A", forbidden_doc_ids=("F",)), ["x", "A"], None, skip=True).values[0] == 1.0
