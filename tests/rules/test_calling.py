"""Rules about tool calls."""

from typing import Any

import pytest

from ragcontract.answers.metric_options import CannotScoreError
from ragcontract.core.phrase import Name, render
from ragcontract.core.rule import RowContext, RuleSettings, Violation
from ragcontract.core.run import RunRow
from ragcontract.rules.tools import MustCallTool, MustNotCallTool, OneTool, ToolArgumentsValid, ToolRule, calls_of
from tests.records import query

CONTEXT = RowContext(settings=RuleSettings(k=5))


def call(name: str, arguments: Any = None) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


def violations(rule: ToolRule, *calls: dict[str, Any]) -> list[Violation]:
    return list(rule.violations(query("q"), RunRow(query_id="q", results=[], tool_calls=list(calls)), CONTEXT))


def said(violation: Violation) -> tuple[str, str]:
    return render(violation.expected), render(violation.actual)


def test_a_tool_must_be_called() -> None:
    rule = MustCallTool(tool="refund")
    assert violations(rule, call("get_order"), call("refund", {"id": 1})) == []
    [broken] = violations(rule, call("get_order", {"id": 1}))
    assert said(broken) == ("a call of refund", "get_order(id=1)")
    [broken] = violations(rule)
    assert said(broken) == ("a call of refund", "no tool was called")


def test_a_tool_must_be_called_so_many_times() -> None:
    rule = MustCallTool(tool="f", at_least=2, at_most=3)
    assert [len(violations(rule, *[call("f")] * count)) for count in range(5)] == [1, 1, 0, 0, 1]
    [few], [many] = violations(rule, call("f")), violations(rule, *[call("f")] * 4)
    assert said(few) == ("a call of f at least 2 times", "1 such call; f()")
    assert said(many) == ("a call of f at most 3 times", "4 such calls")
    assert few.wrong != many.wrong
    [twice] = violations(MustCallTool(tool="f", at_most=1), call("f"), call("f"))
    assert said(twice) == ("a call of f at most once", "2 such calls")


def test_a_tool_must_not_be_called() -> None:
    rule = MustNotCallTool(tool="refund")
    assert violations(rule, call("get_order")) == []
    [broken] = violations(rule, call("refund", {"id": 1}), call("refund", {"id": 2}), call("refund", {"id": 1}))
    assert said(broken) == ("no call of refund", "refund(id=1), refund(id=2), refund(id=1)")
    assert broken.wrong == {"refund(id=1)", "refund(id=2)"}


def test_what_the_application_called_can_be_left_out_of_reports() -> None:
    [broken] = violations(MustNotCallTool(tool="refund"), call("refund", {"id": "secret"}))
    assert [part.said for part in broken.actual if isinstance(part, Name)] == [True]
    assert [part.said for part in broken.expected if isinstance(part, Name)] == [False]


@pytest.mark.parametrize(
    ("wanted", "made", "fits"),
    [
        ({}, {"a": 1}, True),
        ({"a": 1}, {"a": 1.0, "b": 2}, True),
        ({"a": 1}, {"a": "1"}, False),
        ({"a": 1}, {"a": True}, False),
        ({"a": None}, {}, False),
        ({"a": {"x": 1, "y": 2}}, {"a": {"y": 2, "x": 1}}, True),
        ({"a": {"x": 1}}, {"a": {"y": 2, "x": 1}}, False),
        ({"a": {"regex": "^[0-9]{4}$"}}, {"a": "1234"}, True),
        ({"a": {"regex": "^[0-9]{4}$"}}, {"a": "12345"}, False),
        ({"a": {"regex": "EUR"}}, {"a": "12 eur"}, True),
        ({"a": {"regex": "EUR", "ignore_case": False}}, {"a": "12 eur"}, False),
    ],
)
def test_the_arguments_of_a_call_are_those_wanted_and_any_others(wanted: Any, made: Any, fits: bool) -> None:
    assert violations(MustCallTool(tool="f", arguments=wanted), call("f", made)) == [] or not fits
    assert bool(violations(MustNotCallTool(tool="f", arguments=wanted), call("f", made))) is fits


def test_the_wanted_arguments_are_shown() -> None:
    [broken] = violations(MustCallTool(tool="f", arguments={"a": 1, "b": {"regex": "x"}}))
    assert render(broken.expected) == 'a call of f(a=1, b={"regex":"x"})'


def test_arguments_must_be_json_objects() -> None:
    rule = ToolArgumentsValid()
    assert violations(rule, call("f", {}), call("f"), {"function": {"name": "f", "arguments": '{"a": 1}'}}) == []
    [broken] = violations(rule, call("f", "{'a': 1}"), call("g", "{}"), call("h", [1]))
    assert said(broken) == (
        "a JSON object as the arguments of every call",
        "f(invalid arguments), h(invalid arguments)",
    )


@pytest.mark.parametrize("rule", [MustCallTool(tool="f"), MustNotCallTool(tool="f"), ToolArgumentsValid()])
def test_a_row_must_have_tool_calls(rule: ToolRule) -> None:
    name = rule.__struct_config__.tag
    row = RunRow(query_id="q", results=[])
    lacking = f"has no tool_calls, which {name} needs; export them ([] if no tool was called)"
    assert rule.lacking(query("q"), row, CONTEXT) == lacking
    assert rule.lacking(query("q"), RunRow(query_id="q", results=[], tool_calls=[]), CONTEXT) is None
    why = rule.lacking(query("q"), RunRow(query_id="q", results=[], tool_calls=[{}]), CONTEXT)
    assert why is not None
    assert why.startswith("has no name in tool_calls[0]; write")


def test_calls_that_are_none_are_an_error_of_their_own() -> None:
    with pytest.raises(CannotScoreError):
        calls_of(RunRow(query_id="q", results=[], tool_calls=[{}]), CONTEXT)


def test_rules_with_arguments_that_python_takes_for_equal_are_not_shared() -> None:
    one, true, same = (MustCallTool(tool="f", arguments={"a": value}) for value in (1, True, 1.0))
    assert hash(one) != hash(true)
    assert hash(one) == hash(same)


deep: Any = 1
for _ in range(101):
    deep = [deep]


@pytest.mark.parametrize(
    ("rule", "path", "message"),
    [
        (MustCallTool(tool="f", at_least=3, at_most=2), ("at_most",), "is less than at_least (3); no number of calls"),
        (MustCallTool(tool="f", arguments={"a": deep}), ("arguments", "a"), "is nested more than 100 levels deep"),
        (
            MustNotCallTool(tool="f", arguments={"a": {"regex": "("}}),
            ("arguments", "a", "regex"),
            "is not an RE2 pattern",
        ),
        (
            MustNotCallTool(tool="f", arguments={"a": {"regex": 1}}),
            ("arguments", "a", "regex"),
            "expected text of at most 2,000 characters",
        ),
        (MustCallTool(tool="f", arguments={"a": {"regex": "x", "flags": "i"}}), ("arguments", "a", "flags"), "unknown"),
    ],
)
def test_what_is_wrong_with_a_rule_is_reported_with_its_path(
    rule: OneTool, path: tuple[str, ...], message: str
) -> None:
    [(found, why)] = rule.faults()
    assert found == path
    assert message in why
    hash(rule)


@pytest.mark.parametrize("rule", [MustCallTool(tool="f"), MustNotCallTool(tool="f"), ToolArgumentsValid()], ids=repr)
def test_without_a_row_nobody_knows_what_was_called_so_no_rule_about_it_holds(rule: ToolRule) -> None:
    missing = RunRow(query_id="q", results=[])
    assert len(list(rule.violations(query("q"), missing, CONTEXT))) == 1


def test_a_row_with_an_error_breaks_rules_about_tools_and_without_one_it_cannot_be_judged() -> None:
    rule = MustNotCallTool(tool="f")
    for error, lacks in (("timeout", False), (None, True)):
        row = RunRow(query_id="q", results=[], error=error)
        assert bool(rule.lacking(query("q"), row, CONTEXT)) is lacks
        assert len(list(rule.violations(query("q"), row, CONTEXT))) == 1
