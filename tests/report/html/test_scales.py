"""Metrics that are not from 0 to 1, or of which less is better: bars, changes, limits and colours."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from ragcontract.core.golden import GoldenQuery
from ragcontract.core.lines import Line
from ragcontract.core.metric import Family, Metric, MetricSettings, Scale, SwitchedOn
from ragcontract.core.run import RunRow
from ragcontract.registry import BUILT_IN
from ragcontract.report.record import Report
from tests.records import evaluate, query, report_on
from tests.report.html.parsed import Parsed, parsed
from tests.report.ranked import found_at

CONFIG = {
    "fail_on": {"clutter_rise_gt": 10},
    "maximums": {"clutter": 45},
    "tags": {"t": {"fail_on": {"clutter_rise_gt": "50%"}}},
}


class Clutter:
    """Ten for every result that nobody wanted, from 5 (none) to 55."""

    needs = frozenset({"results"})
    from_ids = True
    switch = SwitchedOn.ALWAYS
    metrics: Sequence[Metric] = (Metric(key="clutter", label="Clutter", better="lower", scale=Scale(5, 55)),)

    def values(self, query: GoldenQuery, row: RunRow) -> tuple[float, ...]:
        return (5.0 + 10 * len(set(row.doc_ids) - set(query.relevant_doc_ids)),)


def clutter(_: MetricSettings) -> Iterable[Family]:
    return [Clutter()]


def cluttered(now: int, before: int) -> Report:
    """Return a report on six queries that return so many unwanted documents each, now and before."""
    registry = replace(BUILT_IN, metrics=(*BUILT_IN.metrics, Line(home=clutter, always=True)))
    queries = [query(f"q{number}", "A", tags=("t",)) for number in range(6)]
    run, base = (
        {asked.id: ["A", *(f"x{number}" for number in range(count))] for asked in queries} for count in (now, before)
    )
    return report_on(evaluate(queries, run, base, CONFIG, registry=registry))


def card(page: Parsed) -> str:
    text = page.text[page.text.index("Clutter ✕" if "Clutter ✕" in page.text else "Clutter ✓") :]
    return text[: text.index("Clutter", 1)]


def elements(page: Parsed, name: str) -> list[dict[str, Any]]:
    return [attributes for _, attributes in page.elements if attributes.get("class") == name]


def test_a_rise_of_what_should_be_low_is_worse() -> None:
    page = parsed(cluttered(now=4, before=1))
    assert (
        "Clutter ✕ fail before 15.00 → now 45.00 (+30.00) Limit allowed increase 10.00 (broken), maximum 45.00"
        in card(page)
    )
    assert re.search(r"Interval \+\d+\.\d\d to \+\d+\.\d\d over its limit", card(page))
    assert "Chance p 0.016 ≤ 0.05 for an increase (adjusted over 2 limits)" in card(page)
    assert "Queries 0 better, 0 the same, 6 worse Scale 5 to 55" in card(page)
    assert len(elements(page, "worse")) > 0
    assert "45.00 +30.00" in page.text


def test_a_fall_of_what_should_be_low_is_better() -> None:
    page = parsed(cluttered(now=1, before=4))
    assert "Clutter ✓ pass before 45.00 → now 15.00 (-30.00)" in card(page)
    assert "6 better, 0 the same, 0 worse" in card(page)
    assert elements(page, "worse") == []
    assert len(elements(page, "better")) > 0


def test_bars_are_parts_of_the_scale() -> None:
    page = parsed(cluttered(now=4, before=1))
    assert elements(page, "bar")[-1]["width"] == "80.00%"
    assert elements(page, "tick")[-1]["x"] == "20.00%"


def test_limits_are_marks_on_the_bar_of_their_metric() -> None:
    page = parsed(cluttered(now=4, before=1))
    marks = [attributes["x1"] for attributes in elements(page, "limit")]
    # 15 and 10, 45, and of the tag 15 and half of what it has above 5: of 5 to 55
    assert marks == ["40.00%", "80.00%", "30.00%"]


def test_the_bars_of_all_metrics_cover_their_whole_scale() -> None:
    page = parsed(found_at([2, None], [1, 1], **LIMITED))
    assert page.text.index("MRR@5") < page.text.index("Recall@5")
    assert [bar["width"] for bar in elements(page, "bar")[:2]] == ["25.00%", "50.00%"]
    assert [tick["x1"] for tick in elements(page, "tick")[:2]] == ["100.00%", "100.00%"]
    assert [limit["x1"] for limit in elements(page, "limit")] == ["90.00%", "80.00%", "75.00%"]


def test_a_limit_that_is_not_on_the_scale_has_no_mark() -> None:
    page = parsed(found_at([5], [5], fail_on={"mrr_drop_gt": 0.3}))  # 0.2 - 0.3
    assert elements(page, "bar")
    assert elements(page, "limit") == []


LIMITED = {"fail_on": {"mrr_drop_gt": 0.1, "recall_drop_gt": "25%"}, "minimums": {"mrr_at_k": 0.8}}


def test_the_script_knows_which_metrics_should_be_low() -> None:
    data = parsed(cluttered(now=4, before=1)).data()
    assert [label for label, lower in zip(data["metrics"], data["lower"], strict=True) if lower] == ["Clutter"]
