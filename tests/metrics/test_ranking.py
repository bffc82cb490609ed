"""From results to ranks."""

from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcontract.metrics.formulas import metrics_at
from ragcontract.metrics.ranking import Scorer, score_rows
from tests.records import query, score_query

METRICS = metrics_at(3)
doc_ids = st.lists(st.sampled_from("ABCDEFG"), max_size=12)


def test_ranks_are_those_of_the_first_result_at_any_depth() -> None:
    score = score_query(query("q", "A", "B", "C", forbidden_doc_ids=("F", "G")), list("xxxxAFAF"), METRICS)
    assert score.ranks == (5, None, None)
    assert score.forbidden_ranks == (6, None)


def test_counting_documents_takes_later_results_of_a_document_out() -> None:
    chunks = list("xxxAxBF")
    asked = query("q", "A", "B", forbidden_doc_ids=("F",))
    by_results = score_query(asked, chunks, METRICS, "results")
    by_documents = score_query(asked, chunks, METRICS, "documents")
    assert (by_results.ranks, by_results.forbidden_ranks) == ((4, 6), (7,))
    assert (by_documents.ranks, by_documents.forbidden_ranks) == ((2, 3), (4,))
    assert by_results.values == (0.0,) * 6
    assert by_documents.values == pytest.approx(
        # A and B at ranks 2 and 3, where 1 and 2 are the best.
        (1 / 2, 1.0, 2 / 3, 1.0, (1 / log2(3) + 1 / 2) / (1 + 1 / log2(3)), (1 / 2 + 2 / 3) / 2)
    )


@given(doc_ids)
def test_where_no_document_comes_twice_both_ways_agree(found: list[str]) -> None:
    once = list(dict.fromkeys(found))
    asked = query("q", "A", "B", forbidden_doc_ids=("C",))
    assert score_query(asked, once, METRICS, "results") == score_query(asked, once, METRICS, "documents")
    assert score_query(asked, found, METRICS, "documents") == score_query(asked, once, METRICS, "results")


def test_an_unanswerable_query_has_no_values() -> None:
    score = score_query(query("q", forbidden_doc_ids=("F",)), ["F"], METRICS)
    assert (score.values, score.ranks, score.forbidden_ranks) == ((), (), (1,))


def test_rows_without_a_golden_query_are_named() -> None:
    golden = {"q1": query("q1", "A")}
    scores, unknown, _ = score_rows([("q9", ["A"]), ("q1", ["x", "A"]), ("q8", [])], golden, Scorer(METRICS))
    assert list(scores) == ["q1"]
    assert scores["q1"].ranks == (2,)
    assert unknown == ["q9", "q8"]


def test_queries_that_fared_alike_share_a_score() -> None:
    scorer = Scorer(METRICS)
    first = scorer.score(query("q1", "A", "B", forbidden_doc_ids=("F",)), list("xBF"))
    assert scorer.score(query("q2", "C", "D", forbidden_doc_ids=("E",)), list("yDEz")) is first
    assert scorer.score(query("q3", "C", "D"), list("yDEz")) is not first
    assert scorer.score(query("q4", "C", "D", forbidden_doc_ids=("E",)), list("DyEz")) is not first


def test_queries_with_other_grades_share_none() -> None:
    scorer = Scorer(METRICS)
    one, other = (query("q", "A", relevance={"A": 1.0, "B": grade}) for grade in (0.0, 0.5))
    assert scorer.score(one, list("BA")).values != scorer.score(other, list("BA")).values


def test_scores_are_right_when_more_kinds_came_than_are_remembered() -> None:
    scorer = Scorer(METRICS, remembered=1)
    asked = query("q", "A")
    assert [scorer.score(asked, found).ranks for found in (["A"], ["x", "A"], ["A"])] == [(1,), (2,), (1,)]


def test_of_many_rows_without_a_golden_query_the_first_are_named_and_the_others_counted() -> None:
    rows = [(f"q{number % 5}", ["A"]) for number in range(12)]
    assert score_rows(rows, {}, Scorer(METRICS), listed=3) == ({}, ["q0", "q1", "q2"], 4)
