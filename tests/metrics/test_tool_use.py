"""The tool metrics of a row: which queries they apply to, and their options."""

from typing import Any

import pytest

from ragcontract.answers.metric_options import ToolArgumentsOptions, ToolMatchOptions
from ragcontract.answers.tool_calls import tool_calls
from ragcontract.core.golden import ExpectedAnswer, GoldenQuery
from ragcontract.core.metric import Invalid, MetricSettings, Missing
from ragcontract.core.run import RunRow, Values
from ragcontract.metrics.tool_use import tool_use
from tests.records import query

ORDER, REFUND = {"name": "get_order", "args": {"id": "1"}}, {"name": "refund", "args": {}}


def asked(*calls: dict[str, Any]) -> GoldenQuery:
    return query("q", answer=ExpectedAnswer(reference_tool_calls=tool_calls(calls)))


def values(
    wanted: GoldenQuery, calls: list[dict[str, Any]] | None, **declared: Any
) -> dict[str, Values | Missing | Invalid]:
    row = RunRow(query_id="q", results=[], tool_calls=calls)
    families = tool_use(MetricSettings(cutoffs=(5,), declared=declared))
    return {family.metrics[0].key: family.values(wanted, row) for family in families}


def test_all_metrics_are_computed_from_one_row() -> None:
    assert values(asked(ORDER), [ORDER, REFUND]) == {
        "tool_precision": (0.5,),
        "tool_recall": (1.0,),
        "tool_f1": (pytest.approx(2 / 3),),
        "tool_arguments": (1.0,),
        "tool_order": (1.0,),
        "step_efficiency": (0.5,),
    }


def test_where_no_tool_may_be_called_only_what_is_defined_counts() -> None:
    found = values(asked(), [REFUND])
    assert {key for key, value in found.items() if value == (0.0,)} == {"tool_precision", "tool_f1", "step_efficiency"}
    assert {key for key, value in found.items() if value == ()} == {"tool_recall", "tool_arguments", "tool_order"}
    assert set(values(asked(), []).values()) == {(1.0,)}
    assert values(asked(ORDER), [])["tool_precision"] == ()


def test_a_row_without_tool_calls_is_missing_them_where_the_query_has_a_reference() -> None:
    why = Missing("has no tool_calls, which the tool metrics need; export them ([] if no tool was called)")
    assert set(values(asked(), None).values()) == {why}
    assert set(values(query("q", "a"), None).values()) == {()}


def test_an_application_that_failed_called_no_tool_that_it_had_to() -> None:
    failed = RunRow(query_id="q", results=[], error="timeout")
    families = tool_use(MetricSettings(cutoffs=(5,)))
    assert [family.values(asked(ORDER), failed) for family in families] == [(0.0,)] * 6


def test_calls_that_are_none_are_reported() -> None:
    [found] = set(values(asked(ORDER), [ORDER, {"nome": "f"}]).values())
    assert isinstance(found, Missing)
    assert found.why.startswith("has no name in tool_calls[1]; write")


def test_the_options_are_each_metrics_own() -> None:
    other = {"name": "get_order", "args": {"id": 1, "fast": True}}
    by_arguments = ToolMatchOptions(match="name_and_arguments")
    found = values(asked(ORDER), [other], tool_f1=by_arguments, tool_arguments=ToolArgumentsOptions(lenient=True))
    assert (found["tool_f1"], found["tool_recall"], found["tool_arguments"]) == ((0.0,), (1.0,), (1.0,))
    both = ToolArgumentsOptions(lenient=True, strict_arguments=True)
    assert values(asked(ORDER), [other], tool_arguments=both)["tool_arguments"] == (0.5,)
    number = {"name": "get_order", "args": {"id": 1}}
    lenient = ToolMatchOptions(match="name_and_arguments", lenient=True)
    assert values(asked(ORDER), [number], tool_precision=lenient)["tool_precision"] == (1.0,)


def test_other_options_make_other_numbers() -> None:
    options: tuple[dict[str, Any], ...] = (
        {},
        {"tool_f1": ToolMatchOptions(lenient=True)},
        {"tool_f1": ToolMatchOptions(match="name_and_arguments")},
    )
    prints = [
        {
            family.metrics[0].key: family.metrics[0].fingerprint
            for family in tool_use(MetricSettings(cutoffs=(5,), declared=one))
        }
        for one in options
    ]
    assert len({one["tool_f1"] for one in prints}) == 3
    assert len({one["tool_recall"] for one in prints}) == 1
