"""From results to ranks."""

from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcontract.core.metric import MetricSettings
from ragcontract.core.run import Result, RunRow
from ragcontract.metrics.ranking import Ranking, clean_rank_of, ranking
from tests.records import query, score_query
from tests.work import Compared

K = 3
doc_ids = st.lists(st.sampled_from("ABCDEFG"), max_size=12)


def test_ranks_are_those_of_the_first_result_at_any_depth() -> None:
    score = score_query(query("q", "A", "B", "C", forbidden_doc_ids=("F", "G")), list("xxxxAFAF"), K)
    assert score.ranks == (5, None, None)
    assert score.forbidden_ranks == (6, None)


def test_counting_documents_takes_later_results_of_a_document_out() -> None:
    chunks = list("xxxAxBF")
    asked = query("q", "A", "B", forbidden_doc_ids=("F",))
    by_results = score_query(asked, chunks, K, "results")
    by_documents = score_query(asked, chunks, K, "documents")
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
    assert score_query(asked, once, K, "results") == score_query(asked, once, K, "documents")
    assert score_query(asked, found, K, "documents") == score_query(asked, once, K, "results")


def test_an_unanswerable_query_has_no_values() -> None:
    score = score_query(query("q", forbidden_doc_ids=("F",)), ["F"], K)
    assert (score.values, score.ranks, score.forbidden_ranks) == ((), (), (1,))


def test_queries_with_the_same_ranks_share_a_score() -> None:
    family = Ranking([K])
    first = family.score(query("q1", "A", "B", forbidden_doc_ids=("F",)), list("xBF"))
    assert family.score(query("q2", "C", "D", forbidden_doc_ids=("E",)), list("yDEz")) is first
    assert family.score(query("q3", "C", "D"), list("yDEz")) is not first
    assert family.score(query("q4", "C", "D", forbidden_doc_ids=("E",)), list("DyEz")) is not first


def test_queries_with_other_grades_share_none() -> None:
    family = Ranking([K])
    one, other = (query("q", "A", relevance={"A": 1.0, "B": grade}) for grade in (0.0, 0.5))
    assert family.score(one, list("BA")).values != family.score(other, list("BA")).values


def test_scores_are_right_when_more_of_them_came_than_are_remembered() -> None:
    family = Ranking([K], remembered=1)
    asked = query("q", "A")
    assert [family.score(asked, found).ranks for found in (["A"], ["x", "A"], ["A"])] == [(1,), (2,), (1,)]


def test_of_several_cut_offs_the_largest_comes_first_and_each_once() -> None:
    family = Ranking([1, 10, 5, 10])
    assert family.k == 10
    assert [(metric.key, metric.label, metric.k) for metric in family.metrics[::6]] == [
        ("mrr_at_10", "MRR@10", 10),
        ("mrr_at_5", "MRR@5", 5),
        ("mrr_at_1", "MRR@1", 1),
    ]
    assert len(family.metrics) == 18
    assert family.metrics[:6] == Ranking([10]).metrics
    assert family.score(query("q", "A"), list("xxA")).values[::6] == (1 / 3, 1 / 3, 0.0)


def test_metrics_are_named_by_their_formula_and_cut_off() -> None:
    metrics = Ranking([5]).metrics
    assert [(metric.key, metric.label) for metric in metrics] == [
        ("mrr_at_5", "MRR@5"),
        ("recall_at_5", "Recall@5"),
        ("precision_at_5", "Precision@5"),
        ("hitrate_at_5", "HitRate@5"),
        ("ndcg_at_5", "nDCG@5"),
        ("map_at_5", "MAP@5"),
    ]
    assert {metric.better for metric in metrics} == {"higher"}
    assert [metric.key for metric in metrics if metric.suggested] == ["mrr_at_5", "recall_at_5"]


def test_only_metrics_at_the_largest_cut_off_have_a_name_without_it() -> None:
    aliases = {metric.key: metric.aliases for metric in Ranking([1, 10]).metrics}
    assert (aliases["map_at_10"], aliases["map_at_1"]) == (("map_at_k",), ())


def test_the_provider_makes_one_family_by_the_settings() -> None:
    (family,) = ranking(MetricSettings(cutoffs=(3, 1), rank_by="documents", gain="exponential"))
    assert [metric.k for metric in family.metrics[::6]] == [3, 1]
    asked = query("q", "A", "B", relevance={"A": 3, "B": 1})
    row = RunRow(query_id="q", results=[Result(doc_id=doc_id) for doc_id in "BBA"])
    assert family.values(asked, row) == score_query(asked, list("BBA"), [3, 1], "documents", "exponential").values
    assert family.values(asked, row) != score_query(asked, list("BBA"), [3, 1], "results", "exponential").values
    assert family.values(asked, row) != score_query(asked, list("BBA"), [3, 1], "documents").values


@pytest.mark.parametrize(
    ("ranks", "forbidden", "first"),
    [
        ((2, 1, 3), (), 1),
        ((3,), (None,), 3),
        ((4,), (), 0),
        ((1, None), (), 0),
        ((1,), (9,), 0),
        ((), (), 1),
        ((), (2,), 0),
    ],
)
def test_the_clean_rank_of_is_that_of_queries_whose_documents_are_all_there(
    ranks: tuple[int | None, ...], forbidden: tuple[int | None, ...], first: int
) -> None:
    assert clean_rank_of(ranks, forbidden, K) == first


@given(st.lists(st.sampled_from("ABCDEFGHIJKL"), max_size=30), st.permutations("ABCDEFGHIJKL"))
def test_many_documents_have_the_same_ranks_as_few(found: list[str], wanted: list[str]) -> None:
    alone = [rank for doc_id in wanted for rank in score_query(query("q", doc_id), found, K).ranks]
    assert list(score_query(query("q", *wanted), found, K).ranks) == alone


def test_the_ranks_of_many_documents_take_as_many_comparisons_as_there_are_documents() -> None:
    size = 1_000
    relevant, found = ([Compared(f"document {number}") for number in range(size)] for _ in range(2))
    Compared.times = 0
    score = score_query(query("q", *relevant, forbidden_doc_ids=tuple(relevant)), found[::-1], K)
    assert score.ranks == score.forbidden_ranks == tuple(range(size, 0, -1))
    assert Compared.times < 5 * size
