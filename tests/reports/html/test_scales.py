"""Metrics that are not from 0 to 1, or of which less is better: bars, changes, limits and colours."""

from collections.abc import Iterable, Sequence
from typing import Any

from ragcontract.core.golden import GoldenQuery
from ragcontract.core.metric import Family, Metric, MetricSettings, Scale
from ragcontract.core.run import RunRow
from ragcontract.registry import BUILT_IN, Registry
from ragcontract.reports.report import Report
from tests.records import evaluate, query, report_on
from tests.reports.html.parsed import Parsed, parsed

CONFIG = {
    "fail_on": {"clutter_rise_gt": 10},
    "maximums": {"clutter": 45},
    "tags": {"t": {"fail_on": {"clutter_rise_gt": "50%"}}},
}


class Clutter:
    """Ten for every result that nobody wanted, from 5 (none) to 55."""

    needs = frozenset({"results"})
    from_ids = True
    metrics: Sequence[Metric] = (Metric(key="clutter", label="Clutter", better="lower", scale=Scale(5, 55)),)

    def values(self, query: GoldenQuery, row: RunRow) -> tuple[float, ...]:
        return (5.0 + 10 * len(set(row.doc_ids) - set(query.relevant_doc_ids)),)


def clutter(_: MetricSettings) -> Iterable[Family]:
    return [Clutter()]


def cluttered(now: int, before: int) -> Report:
    """Return a report on six queries that return so many unwanted documents each, now and before."""
    registry = Registry(metrics=(*BUILT_IN.metrics, clutter), rules=BUILT_IN.rules, quantities=BUILT_IN.quantities)
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
    assert "Clutter ✕ fail before 15.00 → now 45.00 Change +30.00 Interval +8.750 to +36.250 (95 %)" in card(page)
    assert "of an increase" in card(page)
    assert "Queries 0 better, 0 the same, 6 worse Limit allowed increase 10.00, maximum 45.00" in card(page)
    assert len(elements(page, "worse")) > 0
    assert "45.000 +30.000" in page.text


def test_a_fall_of_what_should_be_low_is_better() -> None:
    page = parsed(cluttered(now=1, before=4))
    assert "Clutter ✓ pass before 45.00 → now 15.00 Change -30.00" in card(page)
    assert "6 better, 0 the same, 0 worse" in card(page)
    assert elements(page, "worse") == []
    assert len(elements(page, "better")) > 0


def test_bars_are_parts_of_the_scale() -> None:
    page = parsed(cluttered(now=4, before=1))
    assert elements(page, "bar")[-1]["width"] == "80.00%"
    assert elements(page, "tick")[-1]["x"] == "20.00%"


def test_an_allowed_increase_is_on_the_right_of_no_change() -> None:
    page = parsed(cluttered(now=4, before=1))
    limits = [attributes["x1"] for attributes in elements(page, "limit")]
    assert limits == ["62.54%", "61.36%"]  # 10 where 1.1 * 36.25 is the end; of the tag half of 15, where 33 is


def test_the_script_knows_which_metrics_should_be_low() -> None:
    data = parsed(cluttered(now=4, before=1)).data()
    assert [label for label, lower in zip(data["metrics"], data["lower"], strict=True) if lower] == ["Clutter"]
