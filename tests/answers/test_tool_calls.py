"""Tool calls in the forms in which applications export them."""

from typing import Any

import pytest

from ragcontract.answers.metric_options import CannotScoreError
from ragcontract.answers.tool_calls import ToolCall, brief, tool_calls
from ragcontract.core import bounds

ORDER = ToolCall("get_order", {"id": "1234"})


@pytest.mark.parametrize(
    "exported",
    [
        {"id": "c1", "type": "function", "function": {"name": "get_order", "arguments": '{"id": "1234"}'}},
        {"function": {"name": "get_order", "arguments": {"id": "1234"}}},
        {"name": "get_order", "arguments": {"id": "1234"}},
        {"name": "get_order", "args": {"id": "1234"}, "id": "c1", "type": "tool_call"},
        {"name": "get_order", "arguments": None, "args": {"id": "1234"}},
        {"name": "get_order", "input_parameters": {"id": "1234"}, "output": 1},
        {"tool": "get_order", "args": '{"id": "1234"}'},
        {"function": {"tool": "get_order", "args": {"id": "1234"}}},
        {"function": None, "name": "get_order", "arguments": {"id": "1234"}},
    ],
)
def test_each_form_is_the_same_call(exported: dict[str, Any]) -> None:
    assert tool_calls([exported]) == (ORDER,)


@pytest.mark.parametrize("arguments", [{}, "{}", "", " ", None])
def test_a_call_may_have_no_arguments(arguments: object) -> None:
    assert tool_calls([{"name": "f", "arguments": arguments}]) == (ToolCall("f", {}),)


@pytest.mark.parametrize(
    "arguments",
    ["[1]", "{", "{'a': 1}", "1", 1, True, [1], '{"a": NaN}', "[" * 5_000, '{"a": ' + "[" * 101 + "]" * 101],
)
def test_what_is_no_json_object_is_no_arguments(arguments: object) -> None:
    assert tool_calls([{"name": "f", "arguments": arguments}]) == (ToolCall("f", None),)


@pytest.mark.parametrize("exported", [{}, {"name": ""}, {"name": 1}, {"function": {}}, {"function": "f"}])
def test_a_call_without_a_name_is_refused_with_the_way_out(exported: dict[str, Any]) -> None:
    with pytest.raises(CannotScoreError, match=r"has no name in tool_calls\[1\]; write \{\"name\": …"):
        tool_calls([{"name": "f"}, exported])


@pytest.mark.parametrize(
    ("call", "both"),
    [
        ({"name": "f", "arguments": {"a": 1}, "args": {"a": 2}}, "arguments and args"),
        ({"name": "f", "arguments": {}, "input_parameters": {"a": True}}, "arguments and input_parameters"),
        ({"name": "f", "args": {"a": 1}, "input_parameters": {"a": True}}, "args and input_parameters"),
        ({"function": {"name": "f", "arguments": '{"a": 1}', "args": "no JSON"}}, "arguments and args"),
        ({"name": "f", "tool": "g"}, "name and tool"),
    ],
)
def test_a_call_that_contradicts_itself_is_refused(call: dict[str, Any], both: str) -> None:
    message = rf"has {both} in tool_calls\[1\], which differ; export only one"
    with pytest.raises(CannotScoreError, match=message):
        tool_calls([{"name": "f"}, call])


def test_a_call_may_say_the_same_twice() -> None:
    call = {"name": "get_order", "tool": "get_order", "arguments": '{"id": "1234"}', "args": {"id": "1234"}}
    assert tool_calls([call]) == (ORDER,)


def test_more_calls_than_the_limit_are_refused() -> None:
    assert len(tool_calls([{"name": "f"}] * bounds.CALLS)) == bounds.CALLS
    with pytest.raises(CannotScoreError, match="has 1,001 tool_calls, more than 1,000"):
        tool_calls([{"name": "f"}] * (bounds.CALLS + 1))


def test_a_call_is_shown_as_people_write_it_and_short() -> None:
    assert brief(ORDER) == 'get_order(id="1234")'
    assert brief(ToolCall("f", None)) == "f(invalid arguments)"
    assert brief(ToolCall("f", {"a": [1, {"b": None}], "c": True})) == 'f(a=[1,{"b":null}], c=true)'
    long = brief(ToolCall("f", {f"a{number}": "x" * 999 for number in range(9)}))
    assert len(long) == bounds.EXCERPT
