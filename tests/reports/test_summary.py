"""The headline and the metric table."""

from pathlib import Path
from typing import Any

import pytest
from ragcontract.reports.summary import Row, headline, rows, shared_note, tags_worst_first

from ragcontract.files.problems import Diagnostics
from ragcontract.reports.report import Report
from tests.records import Rows, query, report

LOW = {"mrr_drop_gt": 0.1}


def ranked(*ranks: int | None) -> dict[str, list[str]]:
    """Return a run whose queries q1, q2, … find their document A at these ranks."""
    return {
        f"q{number}": ["x"] * ((rank or 9) - 1) + ["A"] * (rank is not None)
        for number, rank in enumerate(ranks, start=1)
    }


def checked(now: list[int | None], before: list[int | None] | None = None, **config: Any) -> Report:
    queries = [query(f"q{number}", "A", must_include_any=True) for number in range(1, len(now) + 1)]
    fail_on = {**config.pop("fail_on", {})}
    minimums = {**config.pop("minimums", {})}
    baseline = None if before is None else ranked(*before)
    return report(queries, ranked(*now), baseline, {"fail_on": fail_on, "minimums": minimums, **config})


def row(report: Report, label: str = "MRR@5") -> Row:
    return next(row for row in rows(report) if row.label == label)


def test_the_issues_example() -> None:
    # MRR 0.82 before and 0.68 now, over 25 queries.
    before: list[int | None] = [1] * 19 + [2, 2, 2] + [None] * 3
    now: list[int | None] = [1] * 14 + [2] * 6 + [None] * 5
    found = row(checked(now, before, fail_on=LOW))
    assert (found.baseline, found.current, found.change, found.status) == ("0.82", "0.68", "-0.14", "fail")
    assert found.limits == "allowed drop 0.10"


def test_without_a_baseline_there_is_no_change_and_no_status_without_a_gate() -> None:
    found = row(checked([1, 2]))
    assert (found.label, found.tag, found.limits, found.status) == ("MRR@5", None, "", "none")
    assert (found.baseline, found.current, found.current_shared, found.change) == ("-", "0.75", "-", "-")
    assert not found.compared


def test_every_limit_of_a_metric_is_named() -> None:
    config = {"fail_on": {"mrr_drop_gt": "10%", "recall_drop_gt": 0.05}, "minimums": {"mrr_at_k": 0.5}}
    found = checked([1, 2], [1, 1], **config)
    assert row(found).limits == "allowed drop 10% (0.10), minimum 0.50"
    assert row(found).status == "fail"
    assert (row(found, "Recall@5").limits, row(found, "Recall@5").status) == ("allowed drop 0.05", "pass")
    assert (row(found, "HitRate@5").limits, row(found, "HitRate@5").status) == ("", "none")


def test_a_percentage_is_also_given_in_points() -> None:
    assert row(checked([2, 2], [2, 2], fail_on={"mrr_drop_gt": "12.5%"})).limits == "allowed drop 12.5% (0.06)"


def test_a_limit_broken_by_a_hair_does_not_read_as_kept() -> None:
    found = row(checked([1, 2], minimums={"mrr_at_k": 0.7504}))
    assert (found.current, found.limits) == ("0.7500", "minimum 0.7504")
    relative = row(checked([None], [5], fail_on={"mrr_drop_gt": "98%"}))
    assert (relative.change, relative.limits) == ("-0.200", "allowed drop 98% (0.196)")


def test_a_limit_is_shown_as_it_was_given() -> None:
    found = row(checked([1, 2], minimums={"mrr_at_k": 0.7499}))
    assert (found.current, found.limits) == ("0.7500", "minimum 0.7499")


def test_a_small_change_is_shown_and_leaves_the_other_rows_alone() -> None:
    before: list[int | None] = [1] * 400
    found = checked([2, *before[1:]], before)
    assert (row(found).baseline, row(found).current, row(found).change) == ("1.000", "0.999", "-0.001")
    assert (row(found, "Recall@5").baseline, row(found, "Recall@5").change) == ("1.00", "0.00")


def test_an_unanswerable_set_has_no_numbers() -> None:
    found = row(report([query("q")], {"q": []}, {"q": []}))
    assert (found.current, found.baseline, found.change, found.status) == ("-", "-", "-", "none")


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (checked([1, 1]), "nothing broken in 2 queries; no gates are set"),
        (checked([1], minimums={"mrr_at_k": 0.5}), "nothing broken in 1 query and 1 gate"),
        (checked([1, None]), "1 of 2 queries broken"),
        (checked([None]), "1 of 1 query broken"),
        (checked([2, 2], [1, 1], fail_on=LOW), "MRR@5 fell by 0.50, allowed drop 0.10"),
        (
            checked([2, None], [1, 1], fail_on={**LOW, "hitrate_drop_gt": 0.9}),
            "MRR@5 fell by 0.75, allowed drop 0.10; 1 of 2 queries broken",
        ),
        (
            checked([None, 1], [1, 1], fail_on={**LOW, "recall_drop_gt": 0.1}, minimums={"hitrate_at_k": 0.8}),
            "MRR@5 fell by 0.50, allowed drop 0.10 (and 2 more gates broken); 1 of 2 queries broken",
        ),
        (
            checked([2, 2], [1, 1], fail_on=LOW, minimums={"mrr_at_k": 0.8}),
            "MRR@5 fell by 0.50, allowed drop 0.10 (and 1 more gate broken)",
        ),
        (
            checked([1, None], [None, 1], fail_on=LOW, minimums={"hitrate_at_k": 0.8}),
            "HitRate@5 is 0.50, minimum 0.80; 1 of 2 queries broken",
        ),
        (checked([None] * 1200), "1,200 of 1,200 queries broken"),
    ],
)
def test_the_headline_says_what_the_verdict_rests_on(made: Report, expected: str) -> None:
    assert headline(made) == expected


def test_a_comparison_over_all_queries_needs_no_note() -> None:
    assert shared_note(checked([1, 2])) is None
    assert shared_note(checked([1, 2], [1, 2])) is None


def test_a_comparison_over_some_queries_says_so() -> None:
    queries = [query("q1", "A"), query("q2", "A"), query("q3", "A")]
    before = Rows(
        docs={"q1": ["A"], "q2": ["A"], "gone": []},
        name="b",
        questions={"q1": "What about q1?", "q2": "?", "gone": "?"},
    )
    note = shared_note(report(queries, {"q1": ["x", "A"], "q2": ["A"], "q3": ["A"]}, before))
    assert note == (
        "Changes are taken over the 1 query that both sides have (1 new, 1 with another question, 1 gone); "
        "the run's means over those: MRR@5 0.50, Recall@5 1.00, Precision@5 0.20, HitRate@5 1.00, "
        "nDCG@5 0.63, MAP@5 0.50."
    )


def test_where_only_the_baseline_has_more_the_means_are_the_same() -> None:
    before = {"q1": ["A"]} | {f"gone{number}": ["A"] for number in range(1000)}
    note = shared_note(report([query("q1", "A")], {"q1": ["A"]}, before))
    assert note == "Changes are taken over the 1 query that both sides have (1,000 gone)."


def tagged(**config: Any) -> Report:
    """Return a report on a tag of each name: of ``bad``, ``poor`` and ``good``, 0, half and all is found at rank 1."""
    found: dict[str, list[int | None]] = {"bad": [None, None], "poor": [1, None], "good": [1, 1]}
    names = [f"{tag}{number}" for tag in found for number in (1, 2)]
    queries = [query(name, "A", tags=(name[:-1],)) for name in names]
    now = {
        f"{tag}{number}": ["A"] * (rank or 0) for tag, ranks in found.items() for number, rank in enumerate(ranks, 1)
    }
    return report(queries, now, {name: ["A"] for name in names}, {**config})


def test_limited_tags_follow_the_means_over_all_with_the_worst_first() -> None:
    limits = {"minimums": {"mrr_at_k": 0.4}}
    drop = {"minimums": {"recall_at_k": 0.9}, "fail_on": {"recall_drop_gt": 0.3}}
    made = tagged(tags={"good": limits, "poor": drop, "bad": limits}, minimums={"mrr_at_k": 0.1})
    found = list(rows(made))
    assert [row.tag for row in found[:6]] == [None] * 6
    # By how far they are beyond the limit: 0.4, 0.4 and 0.2, and 0.6 on the right side.
    assert [(row.tag, row.label, row.current, row.limits, row.status) for row in found[6:]] == [
        ("poor", "Recall@5", "0.50", "minimum 0.90, allowed drop 0.30", "fail"),
        ("bad", "MRR@5", "0.00", "minimum 0.40", "fail"),
        ("good", "MRR@5", "1.00", "minimum 0.40", "pass"),
    ]
    assert (found[6].baseline, found[6].current_shared, found[6].change) == ("1.00", "0.50", "-0.50")
    assert (found[0].limits, found[0].status) == ("minimum 0.10", "pass")


def test_the_headline_names_the_tag() -> None:
    made = tagged(tags={"bad": {"minimums": {"mrr_at_k": 0.4}}})
    assert headline(made, "<{}>".format) == "<bad>: MRR@5 is 0.00, minimum 0.40; 3 of 6 queries broken"


def test_of_smaller_cut_offs_only_what_is_limited_is_shown(tmp_path: Path) -> None:
    (tmp_path / "c.yml").write_text("k: [1, 3, 5]\nminimums: {mrr_at_3: 0.1, map_at_k: 0.1}")
    config = read_config(str(tmp_path / "c.yml"), Diagnostics()).config
    made = report([query("q", "A")], {"q": ["A"]}, config=config)
    labels = ["MRR@5", "Recall@5", "Precision@5", "HitRate@5", "nDCG@5", "MAP@5"]
    assert [row.label for row in rows(made)] == [*labels, "MRR@3"]
    assert row(made, "MRR@3").limits == row(made, "MAP@5").limits == "minimum 0.10"
    assert [row.label for row in rows(report([query("q", "A")], {"q": ["A"]}, config={"k": [1, 5]}))] == labels
    assert len(made.metrics) == 18


def test_tags_are_ordered_by_the_worst_change_of_any_metric_at_the_largest_cut_off() -> None:
    # "first" loses half of its MRR@5 and all of its MRR@1, "lost" all of its recall too; "poor" and "good" stay.
    names = ["good", "poor", "first", "lost", "nothing"]
    queries = [query(name, *(["A"] if name != "nothing" else []), tags=(name,)) for name in names]
    before = {"good": ["A"], "poor": ["x", "A"], "first": ["A"], "lost": ["x", "x", "A"], "nothing": []}
    now = before | {"first": ["x", "A"], "lost": []}
    made = report(queries, now, before, {"k": [1, 5]})
    assert [name for name, _ in tags_worst_first(made)] == ["lost", "first", "poor", "good", "nothing"]


def test_tags_without_a_baseline_are_ordered_by_where_they_stand() -> None:
    queries = [query("q1", "A", tags=("good",)), query("q2", "A", tags=("poor",))]
    made = report(queries, {"q1": ["A"], "q2": ["x", "A"]})
    assert [name for name, _ in tags_worst_first(made)] == ["poor", "good"]
