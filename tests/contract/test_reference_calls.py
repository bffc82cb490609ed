"""The tool calls of golden rows."""

from typing import Any

import pytest

from ragcontract.answers.tool_calls import ToolCall
from ragcontract.contract.answer_fields import reference_calls
from ragcontract.core import bounds
from ragcontract.files.schema import dotted

CALL = ToolCall("get_order", {"id": "1"})


@pytest.mark.parametrize(
    "written",
    [
        {"name": "get_order", "arguments": {"id": "1"}},
        {"name": "get_order", "args": {"id": "1"}},
        {"tool": "get_order", "input_parameters": {"id": "1"}},
        {"id": "c", "type": "function", "function": {"name": "get_order", "arguments": '{"id": "1"}'}},
    ],
)
def test_calls_have_the_forms_of_runs(written: dict[str, Any]) -> None:
    assert reference_calls([written]) == (CALL,)
    assert reference_calls([]) == ()


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ({"name": "f", "argumnets": {}}, "reference_tool_calls[1].argumnets: unknown key; did you mean 'arguments'?"),
        (
            {"function": {"name": "f", "args": {}}},
            "reference_tool_calls[1].function.args: unknown key; expected one of ",
        ),
        ({"function": "f"}, "reference_tool_calls[1].function: expected an object with name and arguments, found "),
        ({}, "reference_tool_calls[1].name: is missing; write a call as"),
        ({"name": 5}, "reference_tool_calls[1].name: expected text of 1 to 2,000 characters, found 5"),
        ({"name": "f", "tool": "g"}, "reference_tool_calls[1].tool: stands beside name; leave one of them out"),
        ({"name": "f", "args": {}, "arguments": {}}, "reference_tool_calls[1].args: stands beside arguments; leave"),
        ({"name": "f", "arguments": [1]}, "reference_tool_calls[1].arguments: expected a JSON object of at most 100"),
        ({"name": "f", "arguments": "{"}, "reference_tool_calls[1].arguments: expected a JSON object of at most 100"),
    ],
)
def test_what_is_wrong_is_reported_with_its_path(written: dict[str, Any], problem: str) -> None:
    found = reference_calls([{"name": "f"}, written])
    assert isinstance(found, list)
    [mismatch] = found
    assert f"{dotted(mismatch.path)}: {mismatch.message}".startswith(problem)


def test_calls_and_arguments_are_limited() -> None:
    most = [{"name": "f"}] * bounds.REFERENCE_CALLS
    assert isinstance(reference_calls(most), tuple)
    assert isinstance(reference_calls([*most, {"name": "f"}]), list)
    arguments = {str(number): 1 for number in range(bounds.ARGUMENTS // 2)}
    assert isinstance(reference_calls([{"name": "f", "args": arguments}] * 2), tuple)
    assert isinstance(reference_calls([{"name": "f", "args": arguments}] * 2 + [{"name": "f", "args": {"a": 1}}]), list)
