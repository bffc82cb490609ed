"""From results to ranks."""

from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcontract.scoring.metrics import metrics_at
from ragcontract.scoring.ranking import score_query, score_rows
from tests.records import query

METRICS = metrics_at(3)
doc_ids = st.lists(st.sampled_from("ABCDEFG"), max_size=12)


def test_ranks_are_those_of_the_first_result_at_any_depth() -> None:
    score = score_query(query("q", "A", "B", "C", forbidden_doc_ids=("F", "G")), list("xxxxAFAF"), METRICS)
    assert score.ranks == {"A": 5}
    assert score.forbidden_ranks == {"F": 6}


def test_counting_documents_takes_later_results_of_a_document_out() -> None:
    chunks = list("xxxAxBF")
    asked = query("q", "A", "B", forbidden_doc_ids=("F",))
    by_results = score_query(asked, chunks, METRICS, "results")
    by_documents = score_query(asked, chunks, METRICS, "documents")
    assert (by_results.ranks, by_results.forbidden_ranks) == ({"A": 4, "B": 6}, {"F": 7})
    assert (by_documents.ranks, by_documents.forbidden_ranks) == ({"A": 2, "B": 3}, {"F": 4})
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
    assert (score.values, score.ranks, score.forbidden_ranks) == ((), {}, {"F": 1})


def test_rows_without_a_golden_query_are_named() -> None:
    golden = {"q1": query("q1", "A")}
    scores, unknown = score_rows([("q9", ["A"]), ("q1", ["x", "A"]), ("q8", [])], golden, METRICS, "results")
    assert list(scores) == ["q1"]
    assert scores["q1"].ranks == {"A": 2}
    assert unknown == ["q9", "q8"]
