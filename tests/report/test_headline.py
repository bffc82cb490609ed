"""The headline, and the note on what is compared."""

import pytest

from ragcontract.core.phrase import render
from ragcontract.report.headline import headline, shared_note
from ragcontract.report.record import Report
from tests.records import Rows, query, report
from tests.report.ranked import LOW, found_at, noisy, tagged

OTHERS = "2 more gates broken: drop of Recall@5, minimum of HitRate@5"


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (found_at([1, 1]), "nothing broken in 2 queries; no gates are set"),
        (found_at([1], minimums={"mrr_at_k": 0.5}), "nothing broken in 1 query and 1 gate"),
        (found_at([1, None]), "1 of 2 queries broken"),
        (found_at([None]), "1 of 1 query broken"),
        (found_at([2, 2], [1, 1], fail_on=LOW), "MRR@5 fell by 0.50, allowed drop 0.10"),
        (
            found_at([2, None], [1, 1], fail_on={**LOW, "hitrate_drop_gt": 0.9}),
            "MRR@5 fell by 0.75, allowed drop 0.10; 1 of 2 queries broken, new",
        ),
        (
            found_at([None, 1], [1, 1], fail_on={**LOW, "recall_drop_gt": 0.1}, minimums={"hitrate_at_k": 0.8}),
            f"MRR@5 fell by 0.50, allowed drop 0.10 (and {OTHERS}); 1 of 2 queries broken, new",
        ),
        (
            found_at([2, 2], [1, 1], fail_on=LOW, minimums={"mrr_at_k": 0.8}),
            "MRR@5 fell by 0.50, allowed drop 0.10 (and 1 more gate broken: minimum of MRR@5)",
        ),
        (
            found_at([1, None], [None, 1], fail_on=LOW, minimums={"hitrate_at_k": 0.8}),
            "HitRate@5 is 0.50, minimum 0.80; 1 of 2 queries broken, new",
        ),
        (found_at([None] * 1200), "1,200 of 1,200 queries broken"),
    ],
)
def test_the_headline_says_what_the_verdict_rests_on(made: Report, expected: str) -> None:
    assert render(headline(made)) == expected


def test_a_comparison_over_all_queries_needs_no_note() -> None:
    assert shared_note(found_at([1, 2])) is None
    assert shared_note(found_at([1, 2], [1, 2])) is None


def test_a_comparison_over_some_queries_says_so() -> None:
    queries = [query("q1", "A"), query("q2", "A"), query("q3", "A")]
    before = Rows(
        docs={"q1": ["A"], "q2": ["A"], "gone": []},
        name="b",
        questions={"q1": "What about q1?", "q2": "?", "gone": "?"},
    )
    note = shared_note(report(queries, {"q1": ["x", "A"], "q2": ["A"], "q3": ["A"]}, before))
    assert note == (
        "Compared over the 1 query that both sides have "
        "(1 new, 1 with another question, 1 gone); current over all 3 queries: MRR@5 0.83, nDCG@5 0.88, MAP@5 0.83."
    )


def test_where_only_the_baseline_has_more_the_means_are_the_same() -> None:
    before = {"q1": ["A"]} | {f"gone{number}": ["A"] for number in range(1000)}
    note = shared_note(report([query("q1", "A")], {"q1": ["A"]}, before))
    assert note == "Compared over the 1 query that both sides have (1,000 gone)."


def test_a_mean_with_a_row_of_its_own_is_not_repeated_in_the_note() -> None:
    queries = [query("q1", "A"), query("q2", "A")]
    config = {"minimums": {"mrr_at_k": 0.1, "ndcg_at_k": 0.1, "map_at_k": 0.1}}
    note = shared_note(report(queries, {"q1": ["A"], "q2": ["x", "A"]}, {"q1": ["A"]}, config))
    assert note == "Compared over the 1 query that both sides have (1 new)."


def test_a_drop_that_is_not_proven_is_counted_apart_from_what_is_broken() -> None:
    assert (
        render(headline(noisy())) == "nothing broken in 40 queries and 1 gate; 1 drop is over its limit and not proven"
    )
    assert render(headline(noisy(minimums={"hitrate_at_k": 0.9}))) == (
        "HitRate@5 is 0.72, minimum 0.90; 1 more drop is over its limit and not proven"
    )
    both = noisy(fail_on={"recall_drop_gt": 0.05}, minimums={"hitrate_at_k": 0.9})
    assert render(headline(both)).endswith("; 2 more drops are over their limits and not proven")


def test_of_many_broken_gates_the_first_are_named_and_all_are_counted() -> None:
    low = {"minimums": dict.fromkeys(("mrr_at_k", "recall_at_k", "ndcg_at_k"), 0.9)}
    made = tagged(minimums={"map_at_k": 0.9}, tags={"bad": low, "poor": low})
    assert render(headline(made), "<{}>".format) == (
        "MAP@5 is 0.50, minimum 0.90 (and 6 more gates broken: <bad>: minimum of MRR@5, <bad>: minimum of Recall@5, "
        "<bad>: minimum of nDCG@5, 3 more); 3 of 6 queries broken, all new"
    )


def test_the_headline_names_the_tag() -> None:
    made = tagged(tags={"bad": {"minimums": {"mrr_at_k": 0.4}}})
    assert render(headline(made), "<{}>".format) == "<bad>: MRR@5 is 0.00, minimum 0.40; 3 of 6 queries broken, all new"
    shouted = render(headline(made), "<{}>".format, str.upper)
    assert shouted == "<bad>: MRR@5 IS 0.00, MINIMUM 0.40; 3 OF 6 QUERIES BROKEN, ALL NEW"
