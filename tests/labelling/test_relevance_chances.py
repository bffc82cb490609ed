"""How likely an unjudged document is to be relevant: an estimate to order by."""

import pytest

from ragcontract.labelling.unjudged import AT_RANK, OF_QUERY, RelevanceChances


def test_where_nothing_is_judged_the_chance_is_the_same_for_all() -> None:
    chances = RelevanceChances()
    assert chances.overall == 0.5
    assert chances.of(1, 0, 0) == chances.of(9, 0, 0) == pytest.approx(0.5)


def test_ranks_and_queries_with_more_relevant_documents_have_a_higher_chance() -> None:
    chances = RelevanceChances()
    for _ in range(20):
        chances.note([["r", "n", "unjudged"]], {"r", "n"}, {"r"})
    assert chances.overall == pytest.approx(21 / 42)
    first, second, third = (chances.of(rank, 2, 1) for rank in (1, 2, 3))
    assert first > third > second > 0
    assert chances.of(3, 10, 5) > chances.of(3, 10, 1)


def test_the_share_of_all_counts_for_a_few_documents() -> None:
    chances = RelevanceChances()
    chances.note([["r"]], {"r"}, {"r"})
    overall = chances.overall
    at_rank, of_query = (1 + AT_RANK * overall) / (1 + AT_RANK), (1 + OF_QUERY * overall) / (1 + OF_QUERY)
    assert chances.of(1, 1, 1) == pytest.approx(min(1, at_rank * of_query / overall))
    assert chances.of(1, 10**6, 10**6) <= 1
