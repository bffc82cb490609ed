"""The metric table: its rows, their limits, and how many decimals they have."""

import re
from typing import Any

from msgspec.structs import replace

from ragcontract.core.run import Latency
from ragcontract.report.html import page as html
from ragcontract.report.markdown import render
from ragcontract.report.metric_table import Row, table_rows
from ragcontract.report.record import Report
from tests.records import Rows, query, report
from tests.report.ranked import LOW, found_at, noisy, tagged


def row(report: Report, label: str = "MRR@5") -> Row:
    return next(row for row in table_rows(report) if row.label == label)


def test_the_issues_example() -> None:
    # MRR 0.82 before and 0.68 now, over 25 queries.
    before: list[int | None] = [1] * 19 + [2, 2, 2] + [None] * 3
    now: list[int | None] = [1] * 14 + [2] * 6 + [None] * 5
    found = row(found_at(now, before, fail_on=LOW))
    assert (found.baseline, found.current, found.change, found.status) == ("0.82", "0.68", "-0.14", "fail")
    assert found.limits == "allowed drop 0.10"


def test_without_a_baseline_there_is_no_change_and_no_status_without_a_gate() -> None:
    found = row(found_at([1, 2]))
    assert (found.label, found.tag, found.limits, found.status) == ("MRR@5", None, "", "none")
    assert (found.baseline, found.current, found.change) == ("no value", "0.75", "no value")
    assert (found.compared, found.values()) == (False, "0.75")


def test_every_limit_of_a_metric_is_named() -> None:
    config = {"fail_on": {"mrr_drop_gt": "10%", "recall_drop_gt": 0.05}, "minimums": {"mrr_at_k": 0.5}}
    found = found_at([1, 2], [1, 1], **config)
    assert row(found).limits == "allowed drop 10% (0.10) (broken), minimum 0.50"
    assert row(found).status == "fail"
    assert (row(found, "Recall@5").limits, row(found, "Recall@5").status) == ("allowed drop 0.05", "pass")
    assert (row(found, "HitRate@5").limits, row(found, "HitRate@5").status) == ("", "none")


def test_of_several_limits_the_broken_ones_are_marked_unless_all_are() -> None:
    limits = {"fail_on": {"mrr_drop_gt": 0.1}, "minimums": {"mrr_at_k": 0.8}}
    assert row(found_at([1, 2], [1, 1], **limits)).limits == "allowed drop 0.10, minimum 0.80"
    assert row(found_at([1, 1], [1, 1], **limits)).limits == "allowed drop 0.10, minimum 0.80"
    assert row(found_at([2, 2], [2, 2], **limits)).limits == "allowed drop 0.10, minimum 0.80 (broken)"


def test_a_percentage_is_also_given_in_points() -> None:
    assert row(found_at([2, 2], [2, 2], fail_on={"mrr_drop_gt": "12.5%"})).limits == "allowed drop 12.5% (0.06)"


def test_a_limit_is_shown_as_it_was_written() -> None:
    config = {"fail_on": {"mrr_drop_gt": 0.084, "recall_drop_gt": "12.345%"}, "minimums": {"map_at_k": 0.1}}
    found = found_at([1, 2], [1, 2], **config)
    assert row(found).limits == "allowed drop 0.084"
    assert row(found, "Recall@5").limits == "allowed drop 12.345% (0.12)"
    assert row(found, "MAP@5").limits == "minimum 0.10"
    latency = row(timed({"p95_ms": 179.875, "p95_increase_gt": "12.25%"}), "p95 latency")
    assert latency.limits == "allowed 179.875 ms, allowed increase 12.25%"


def test_no_value_is_rounded_to_the_other_side_of_its_limit() -> None:
    before: list[int | None] = [1] * 250
    within = row(found_at([*[2] * 39, *[1] * 211], before, fail_on={"mrr_drop_gt": 0.079}))
    assert (within.change, within.status) == ("-0.078", "pass")
    beyond = row(found_at([*[2] * 40, *[1] * 210], before, fail_on={"mrr_drop_gt": 0.0795}))
    assert (beyond.change, beyond.status) == ("-0.08", "fail")


def test_a_limit_broken_by_a_hair_does_not_read_as_met() -> None:
    found = row(found_at([1, 2], minimums={"mrr_at_k": 0.7504}))
    assert (found.current, found.limits) == ("0.75", "minimum 0.7504")
    relative = row(found_at([None], [5], fail_on={"mrr_drop_gt": "98%"}))
    assert (relative.change, relative.limits) == ("-0.200", "allowed drop 98% (0.196)")


def test_a_limit_is_shown_as_it_was_given() -> None:
    found = row(found_at([1, 2], minimums={"mrr_at_k": 0.7499}))
    assert (found.current, found.limits) == ("0.75", "minimum 0.7499")


def test_only_limits_need_more_decimals_than_two() -> None:
    before: list[int | None] = [1] * 400
    assert row(found_at([2, *before[1:]], before)).values() == "1.00 → 1.00 (0.00)"
    found = found_at([2, *before[1:]], before, fail_on={"mrr_drop_gt": 0.001})
    assert row(found).values() == "1.0000 → 0.9988 (-0.0012)"
    assert row(found, "Recall@5").values() == "1.0000 → 1.0000 (0.0000)"
    assert {one.digits for one in table_rows(found)} == {4}


def test_the_decimals_of_one_limit_are_those_of_the_whole_table() -> None:
    found = found_at([1, 2], [1, 1], fail_on={"ndcg_drop_gt": 0.184})
    assert row(found).values() == "1.000 → 0.750 (-0.250)"


def test_a_limit_that_is_broken_by_less_than_4_decimals_show_is_said_to_be() -> None:
    found = row(found_at([1, 1, None], minimums={"mrr_at_k": 0.66667}))
    assert (found.current, found.limits, found.status) == ("0.6667", "minimum 0.66667 (just under)", "fail")
    found = row(found_at([1, 1, 2], [1, 1, 1], fail_on={"mrr_drop_gt": 0.16666}))
    assert (found.change, found.limits, found.status) == ("-0.17", "allowed drop 0.16666", "fail")
    found = row(found_at([1, 1, 3], [1, 1, 1], fail_on={"mrr_drop_gt": 0.22222}))
    assert (found.change, found.limits, found.status) == ("-0.2222", "allowed drop 0.22222 (just over)", "fail")


def only_some_are_shared(**config: Any) -> Report:
    """Return a report on two queries, one of which is new and finds nothing; the other finds its document later."""
    queries = [query("old", "A", tags=("t",)), query("new", "A", tags=("t",))]
    return report(queries, {"old": ["x", "A"], "new": []}, {"old": ["A"]}, config)


def test_current_and_change_are_over_the_same_queries() -> None:
    assert row(only_some_are_shared()).values() == "1.00 → 0.50 (-0.50)"
    assert [one.over for one in table_rows(only_some_are_shared())] == [""] * 6


def test_where_a_minimum_counts_more_queries_their_mean_has_a_row_of_its_own() -> None:
    limits = {"fail_on": {"mrr_drop_gt": 0.6}, "minimums": {"mrr_at_k": 0.3}}
    made = only_some_are_shared(**limits, tags={"t": limits})
    found = [one for one in table_rows(made) if one.label == "MRR@5"]
    assert [(one.tag, one.over, one.values(), one.limits, one.status) for one in found] == [
        (None, "", "1.00 → 0.50 (-0.50)", "allowed drop 0.60", "pass"),
        (None, "all 2 queries", "0.25", "minimum 0.30", "fail"),
        ("t", "", "1.00 → 0.50 (-0.50)", "allowed drop 0.60", "pass"),
        ("t", "all 2 queries", "0.25", "minimum 0.30", "fail"),
    ]


def test_a_drop_that_is_not_proven_has_a_status_of_its_own_and_is_marked_among_other_limits() -> None:
    found = row(noisy())
    chance = "allowed drop 0.05; chance alone explains up to 0.18"
    assert (found.change, found.status, found.limits) == ("-0.10", "unproven", chance)
    found = row(noisy(minimums={"mrr_at_k": 0.5}))
    assert (found.status, found.limits) == (
        "unproven",
        "allowed drop 0.05 (over), minimum 0.50; chance alone explains up to 0.18",
    )


def test_a_change_says_how_much_of_it_chance_explains_where_limits_count_that() -> None:
    # Ten of forty are lost for sure, of eleven lost and seven found again nobody knows.
    def chance(found: Row) -> str:
        return found.limits.partition("; ")[2]

    lost = found_at([*[None] * 10, *[1] * 30], [1] * 40, fail_on={"mrr_drop_gt": 0.05, "mode": "significant"})
    assert re.fullmatch(r"chance alone explains up to 0\.1\d", chance(row(lost)))
    assert chance(row(noisy())) == "chance alone explains up to 0.18"
    assert chance(row(found_at([2], [1], fail_on=LOW))) == ""
    few = found_at([2, *[1] * 9], [1] * 10, fail_on={"mrr_drop_gt": 0.01, "mode": "significant"})
    assert chance(row(few)) == "too few queries changed to tell (needs 400)"
    inferior = found_at([2, *[1] * 9], [1] * 10, fail_on={"mrr_drop_gt": 0.06, "mode": "noninferiority"})
    assert re.fullmatch(r"up to 0\.\d\d is not excluded", chance(row(inferior)))


def test_an_unanswerable_set_has_no_numbers() -> None:
    found = row(report([query("q")], {"q": []}, {"q": []}))
    assert (found.current, found.baseline, found.change, found.status) == (*["no value"] * 3, "none")


def test_limited_tags_follow_the_means_over_all_with_the_worst_first() -> None:
    limits = {"minimums": {"mrr_at_k": 0.4}}
    drop = {"minimums": {"recall_at_k": 0.9}, "fail_on": {"recall_drop_gt": 0.3}}
    made = tagged(tags={"good": limits, "poor": drop, "bad": limits}, minimums={"mrr_at_k": 0.1})
    found = table_rows(made)
    assert [row.tag for row in found[:6]] == [None] * 6
    # By how far they are beyond the limit: 0.4, 0.4 and 0.2, and 0.6 on the right side.
    assert [(row.tag, row.label, row.current, row.limits, row.status) for row in found[6:]] == [
        ("poor", "Recall@5", "0.50", "minimum 0.90, allowed drop 0.30", "fail"),
        ("bad", "MRR@5", "0.00", "minimum 0.40", "fail"),
        ("good", "MRR@5", "1.00", "minimum 0.40", "pass"),
    ]
    assert found[6].values() == "1.00 → 0.50 (-0.50)"
    assert (found[0].limits, found[0].status) == ("minimum 0.10", "pass")


def test_of_smaller_cut_offs_only_what_is_limited_is_shown() -> None:
    config = {"k": [1, 3, 5], "minimums": {"mrr_at_3": 0.1, "map_at_k": 0.1}}
    made = report([query("q", "A")], {"q": ["A"]}, config=config)
    labels = ["MRR@5", "Recall@5", "Precision@5", "HitRate@5", "nDCG@5", "MAP@5"]
    assert [row.label for row in table_rows(made)] == [*labels, "MRR@3"]
    assert row(made, "MRR@3").limits == row(made, "MAP@5").limits == "minimum 0.10"
    assert [row.label for row in table_rows(report([query("q", "A")], {"q": ["A"]}, config={"k": [1, 5]}))] == labels
    assert len(made.metrics) == 18 + 3


NOW_MS, BEFORE_MS = (
    Latency(rows=2, p50_ms=41.2, p95_ms=180, max_ms=950),
    Latency(rows=2, p50_ms=40, p95_ms=120, max_ms=900),
)


def timed(latency: dict[str, Any], *, before: bool = True, **config: Any) -> Report:
    """Return a report on a run whose latencies are limited."""
    now, then = (Rows(docs={"q": ["A"]}, name="r", latency=ms) for ms in (NOW_MS, BEFORE_MS))
    asked = [query("q", "A", tags=("t",))]
    return report(asked, now, then if before else None, {"latency": latency, **config})


def test_limited_latencies_stand_between_the_metrics_and_the_tags() -> None:
    limits = {"p50_ms": 60, "p95_ms": 150, "p95_increase_gt": "10%", "max_ms": 949.5}
    made = timed(limits, tags={"t": {"minimums": {"mrr_at_k": 0.5}}})
    found = table_rows(made)
    assert [(row.label, row.tag) for row in found[6:]] == [
        ("p50 latency", None),
        ("p95 latency", None),
        ("max latency", None),
        ("MRR@5", "t"),
    ]
    assert all(row.metric is not None and row.tag is None for row in found[:6])
    values = [(row.baseline, row.current, row.change, row.limits, row.status) for row in found[6:9]]
    assert values == [
        ("40 ms", "41.2 ms", "+1.2 ms", "allowed 60 ms", "pass"),
        ("120 ms", "180 ms", "+60 ms", "allowed 150 ms, allowed increase 10%", "fail"),
        ("900 ms", "950 ms", "+50 ms", "allowed 949.5 ms", "fail"),
    ]
    assert all(row.metric is None and row.compared for row in found[6:9])


def test_a_latency_without_a_limit_has_no_row() -> None:
    assert len(table_rows(timed({}))) == 6


def test_a_latency_without_a_baseline_is_compared_with_nothing() -> None:
    found = table_rows(timed({"p95_ms": 179.5}, before=False))[6]
    assert (found.values(), found.compared) == ("180 ms", False)
    assert (found.limits, found.status) == ("allowed 179.5 ms", "fail")


def test_latencies_stand_in_the_order_of_their_quantities_whatever_is_limited() -> None:
    found = table_rows(timed({"max_ms": 1000, "p95_increase_gt": 70, "p50_ms": 60}))[6:]
    assert [row.label for row in found] == ["p50 latency", "p95 latency", "max latency"]


def test_a_contract_about_answers_alone_has_no_metrics_of_documents() -> None:
    made = report([query("q", names_documents=False)], {"q": []})
    assert {row.current for row in table_rows(made)} == {"no value"}
    answers = replace(made, broken=replace(made.broken, answers=0))
    assert table_rows(answers) == []
    assert "| Metric |" not in render(answers)
    assert "metrics-title" in html.render(made).decode()
    assert "metrics-title" not in html.render(answers).decode()
