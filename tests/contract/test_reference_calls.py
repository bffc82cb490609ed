"""The tool calls of golden rows."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ragcontract import InputError, load_golden
from ragcontract.answers.tool_calls import ToolCall
from ragcontract.core import bounds
from tests.builders import golden, write_jsonl

CALL = ToolCall("get_order", {"id": "1"})


def read(folder: Path, calls: Sequence[dict[str, Any]]) -> tuple[Any, list[str]]:
    """Return the calls that a golden row wants, and what is wrong with them."""
    path = write_jsonl(folder / "golden.jsonl", [golden("q", reference_tool_calls=calls)])
    try:
        answer = load_golden(path)["q"].answer
    except InputError as error:
        return None, [problem.removeprefix(f"{path}:1: ") for problem in error.problems]
    return answer and answer.reference_tool_calls, []


@pytest.mark.parametrize(
    "written",
    [
        {"name": "get_order", "arguments": {"id": "1"}},
        {"name": "get_order", "args": {"id": "1"}},
        {"tool": "get_order", "input_parameters": {"id": "1"}},
        {"id": "c", "type": "function", "function": {"name": "get_order", "arguments": '{"id": "1"}'}},
    ],
)
def test_calls_have_the_forms_of_runs(written: dict[str, Any], tmp_path: Path) -> None:
    assert read(tmp_path, [written]) == ((CALL,), [])
    assert read(tmp_path, []) == ((), [])


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
def test_what_is_wrong_is_reported_with_its_path(written: dict[str, Any], problem: str, tmp_path: Path) -> None:
    _, [found] = read(tmp_path, [{"name": "f"}, written])
    assert found.startswith(problem)


def test_calls_and_arguments_are_limited(tmp_path: Path) -> None:
    most = [{"name": "f"}] * bounds.REFERENCE_CALLS
    assert read(tmp_path, most)[1] == []
    assert len(read(tmp_path, [*most, {"name": "f"}])[1]) == 1
    arguments = {str(number): 1 for number in range(bounds.ARGUMENTS // 2)}
    all_arguments = [{"name": "f", "args": arguments}] * 2
    assert read(tmp_path, all_arguments)[1] == []
    assert len(read(tmp_path, [*all_arguments, {"name": "f", "args": {"a": 1}}])[1]) == 1
