"""The note on documents that nobody has judged, and the numbers that depend on them."""

from typing import Any

import pytest
from msgspec import UNSET

from ragcontract.core.phrase import render
from ragcontract.report.record import Report
from tests.records import query, report

ASKED = [query("q1", "A"), query("q2", "B")]
BEFORE = {"q1": ["A", "x"], "q2": ["B", "y"]}
UNSEEN = {"q1": ["new", "A"], "q2": ["B", "y"]}
SEEN = {"q1": ["x", "A"], "q2": ["B", "y"]}


def notes(made: Report) -> list[str]:
    return [render(note) for note in made.label_notes]


def of(run: dict[str, list[str]], before: dict[str, list[str]] | None = BEFORE, **config: Any) -> Report:
    return report(ASKED, run, before, config=config or {"fail_on": {"mrr_drop_gt": 0.1}})


@pytest.mark.parametrize(
    ("run", "config"),
    [
        (SEEN, {"fail_on": {"mrr_drop_gt": 0.1}}),  # everything is judged
        (UNSEEN, {"fail_on": {"mrr_drop_gt": 0.5}}),  # the limit holds
        (UNSEEN, {"minimums": {"mrr_at_k": 0.9}}),  # no drop is limited
        ({"q1": ["x", "A", "new"], "q2": ["B", "y"]}, {"fail_on": {"mrr_drop_gt": 0.1}}),  # below what decides MRR
        (SEEN, {"fail_on": {"mrr_drop_gt": 0.1}, "unjudged": "skip"}),
        (UNSEEN, {"fail_on": {"mrr_drop_gt": 0.1}, "minimums": {"judged_at_k": 0.7}, "unjudged": "skip"}),  # limited
        (
            UNSEEN,
            {"minimums": {"overlap_at_k": 0.1}, "unjudged": "skip"},
        ),  # no metric with documents left out is limited
    ],
)
def test_nothing_is_said_where_labels_do_not_matter(run: dict[str, list[str]], config: dict[str, Any]) -> None:
    assert notes(of(run, **config)) == []


@pytest.mark.parametrize("limits", [{"fail_on": {"mrr_drop_gt": 0.1}}, {"minimums": {"mrr_at_k": 0.9}}])
def test_what_a_pass_leaves_out_is_said_where_nothing_limits_it(limits: dict[str, Any]) -> None:
    made = of(UNSEEN, unjudged="skip", **limits)
    assert made.verdict == "pass"
    (note,) = notes(made)
    assert note == (
        "25% of the top 5 are documents that nobody has judged, and ranking metrics leave them out (unjudged: skip); "
        "limit minimums.judged_at_k, or judge them: rag-contract unjudged lists them"
    )


def test_the_best_case_is_a_mean_over_all_queries_by_weight() -> None:
    made = report([query("q1", "A", weight=3.0), query("q2", "B")], UNSEEN, BEFORE)
    assert made.metrics["mrr_at_5"].current == pytest.approx((3 * 0.5 + 1) / 4)
    assert made.metrics["mrr_at_5"].if_relevant == pytest.approx(1.0)
    assert made.metrics["precision_at_5"].if_relevant == pytest.approx((3 * 0.4 + 0.2) / 4)


def test_where_all_is_judged_there_is_no_best_case() -> None:
    assert of(SEEN).metrics["mrr_at_5"].if_relevant is UNSET
    assert of(SEEN).metrics["judged_at_5"].current == 1.0


def test_the_queries_with_the_least_overlap_come_first() -> None:
    made = report([query("same", "A"), query("none"), query("some", "B")],
                  {"same": ["A"], "none": ["z"], "some": ["B", "n"]},
                  {"same": ["A"], "none": ["y"], "some": ["B", "o"]})  # fmt: skip
    assert made.least_overlap
    assert [one.id for one in made.least_overlap] == ["none", "some"]
    assert [one.overlap for one in made.least_overlap] == pytest.approx([0, 1 / 3])
    assert made.metrics["overlap_at_5"].current == pytest.approx((1 + 0 + 1 / 3) / 3)


def test_little_overlap_is_a_note_on_the_run() -> None:
    made = report([query("q", "A")], {"q": ["A", "n", "m"]}, {"q": ["A", "x", "y"]})
    assert "Overlap@5 with the baseline is 0.20: most of the top 5 was not there." in made.run_notes


def test_without_a_baseline_there_is_no_overlap() -> None:
    made = of(UNSEEN, None, minimums={"mrr_at_k": 0.1})
    assert "overlap_at_5" not in made.metrics
    assert made.metrics["judged_at_5"].current == 0.5
