"""The headline, and the note on what is compared."""

import pytest
from msgspec.structs import replace

from ragcontract.report.headline import headline, shared_note
from ragcontract.report.record import Report
from tests.records import Rows, query, report
from tests.report.ranked import LOW, found_at, noisy, tagged


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (found_at([1, 1]), "2 queries hold; no limits are set"),
        (found_at([1]), "1 query holds; no limits are set"),
        (found_at([1], minimums={"mrr_at_k": 0.5}), "1 query and 1 limit hold"),
        (found_at([1, None]), "1 of 2 queries broken"),
        (found_at([None]), "1 of 1 query broken"),
        (found_at([2, 2], [1, 1], fail_on=LOW), "1 limit broken: drop of MRR@5; no query is broken"),
        (
            found_at([2, 2], [1, 1], fail_on=LOW, minimums={"mrr_at_k": 0.8}),
            "2 limits broken; no query is broken",
        ),
        (found_at([2, None], [1, 1], fail_on=LOW), "1 of 2 queries broken, new; 1 limit broken"),
        (
            found_at([None, 1], [1, 1], fail_on={**LOW, "recall_drop_gt": 0.1}, minimums={"hitrate_at_k": 0.8}),
            "1 of 2 queries broken, new; 3 limits broken",
        ),
        (found_at([1, None], [None, 1]), "1 of 2 queries broken, new; 1 fixed"),
        (found_at([1, 1], [None, 1]), "2 queries hold; no limits are set; 1 fixed"),
        (found_at([None] * 1200), "1,200 of 1,200 queries broken"),
    ],
)
def test_the_headline_says_what_broke_queries_first(made: Report, expected: str) -> None:
    assert headline(made) == expected


@pytest.mark.parametrize("number", [1, 9_999, 999_999])
def test_the_headline_has_at_most_90_characters_and_leaves_out_what_matters_less(number: int) -> None:
    made = found_at([None, 1], [1, 1], fail_on={"mrr_drop_gt": 0.1})
    golden = replace(made.inputs.golden, queries=number * 2)
    counts = {"queries": number, "new": number // 2, "in_baseline": number - number // 2, "answers": number // 2}
    broken = replace(made.broken, **counts, fixed=number)
    text = headline(replace(made, broken=broken, inputs=replace(made.inputs, golden=golden)))
    assert len(text) <= 90
    assert text.startswith(f"{number:,} of {number * 2:,} queries broken")
    assert ("already in the baseline" in text) == (number < 999_999)


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
    assert headline(noisy()) == "40 queries hold; 1 change over the limit, not proven"
    assert headline(noisy(minimums={"hitrate_at_k": 0.9})) == (
        "1 limit broken: minimum of HitRate@5; no query is broken"
    )
    both = noisy(fail_on={"recall_drop_gt": 0.05}, minimums={"hitrate_at_k": 0.9})
    assert headline(both).startswith("1 limit broken")


def test_a_limit_of_a_tag_is_counted() -> None:
    made = tagged(tags={"bad": {"minimums": {"mrr_at_k": 0.4}}})
    assert headline(made) == "3 of 6 queries broken, all new; 1 limit broken"
