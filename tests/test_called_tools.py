"""Rules about tool calls, however an application writes down what it called: from the run to the exit code."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders import Row, golden, run, write_jsonl
from tests.process import Ended, rag_contract

FORBIDDEN = {"type": "must_not_call_tool", "tool": "refund", "arguments": {"id": 7}}
VALID = {"type": "tool_arguments_valid"}
SEVEN = '{"id": 7}'


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def checked(*calls: Row, rules: list[Row]) -> Ended:
    """Check a run that made these calls, for a query with these rules."""
    write_jsonl(Path("golden.jsonl"), [golden(rules=rules)])
    write_jsonl(Path("current_run.jsonl"), [run(response="Done.", tool_calls=list(calls))])
    return rag_contract("check")


def broken(ended: Ended) -> list[str]:
    """Return what was expected and found for each broken rule."""
    assert ended.code == 1, ended
    lines = [line.strip() for line in ended.out.splitlines()]
    return [line for line in lines if line.startswith(("Expected", "Found"))]


FORMS: dict[str, Row] = {
    "input": {"name": "refund", "input": {"id": 7}},
    "parameters": {"name": "refund", "parameters": {"id": 7}},
    "kwargs": {"name": "refund", "kwargs": {"id": 7}},
    "args as text": {"name": "refund", "args": SEVEN},
    "LangChain's agents": {"tool": "refund", "tool_input": {"id": 7}},
    "LlamaIndex": {"tool_name": "refund", "tool_kwargs": {"id": 7}},
    "Anthropic": {"type": "tool_use", "id": "c1", "name": "refund", "input": {"id": 7}},
    "in function": {"function": {"name": "refund", "parameters": SEVEN}},
    "beside function": {"function": {"name": "refund"}, "arguments": SEVEN},
    "all beside an empty function": {"function": {}, "name": "refund", "input": {"id": 7}},
}


@pytest.mark.parametrize("call", FORMS.values(), ids=FORMS.keys())
def test_a_forbidden_call_is_read_in_every_form(call: Row) -> None:
    ended = checked(call, rules=[FORBIDDEN, VALID])
    assert broken(ended) == ["Expected no call of refund(id=7)", "Found: refund(id=7)"]
    assert checked(call, rules=[{**FORBIDDEN, "arguments": {"id": 8}}, VALID]).code == 0


UNREADABLE: dict[str, Any] = {
    "cut off": '{"id": 7',
    "encoded twice": '"{\\"id\\": 7}"',
    "a list": [7],
    "a list as text": '[{"id": 7}]',
    "single quotes": "{'id': 7}",
    "a number": 7,
    "two objects": SEVEN + SEVEN,
    "a key twice": '{"id": 7, "id": 8}',
    "a key twice, within": '{"of": [{"id": 7, "id": 8}]}',
}


@pytest.mark.parametrize("arguments", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_arguments_that_cannot_be_read_may_be_the_forbidden_ones(arguments: Any) -> None:
    for call in ({"name": "refund", "arguments": arguments}, {"function": {"name": "refund", "input": arguments}}):
        assert broken(checked(call, rules=[FORBIDDEN, VALID])) == [
            "Expected no call of refund(id=7)",
            "Found: refund(invalid arguments)",
            "Expected a JSON object as the arguments of every call",
            "Found: refund(invalid arguments)",
        ]
    assert checked({"name": "get_order", "arguments": arguments}, rules=[FORBIDDEN]).code == 0


@pytest.mark.parametrize(
    "under", [{"payload": {"id": 7}}, {"payload": SEVEN}, {"payload": [{"id": 7}]}, {"toolInput": {"id": 7}}]
)
def test_an_object_under_a_name_that_nobody_knows_may_be_the_arguments(under: Row) -> None:
    for call in ({"name": "refund", **under}, {"function": {"name": "refund", **under}}):
        assert "Found: refund(invalid arguments)" in broken(checked(call, rules=[FORBIDDEN, VALID]))
    beside = {"name": "refund", "id": "c1", "type": "tool_call", "output": {"id": 7}, "description": "Pays back."}
    assert checked(beside, rules=[FORBIDDEN, VALID]).code == 0


@pytest.mark.parametrize("empty", [{}, "", "{}"], ids=["an object", "a text", "an object as text"])
@pytest.mark.parametrize("under", [{"partial_json": SEVEN}, {"payload": {"id": 7}}, {"toolInput": [{"id": 7}]}])
def test_an_object_beside_arguments_that_are_empty_may_be_the_arguments(under: Row, empty: Any) -> None:
    for call in (
        {"type": "tool_use", "id": "t", "name": "refund", "input": empty, **under},
        {"function": {"name": "refund", "arguments": empty}, **under},
    ):
        assert "Found: refund(invalid arguments)" in broken(checked(call, rules=[FORBIDDEN, VALID]))
    beside = {"name": "refund", "arguments": empty, "id": "c1", "partial_json": "{}", "payload": {}, "caller": {"a": 1}}
    assert checked({**beside, "observation": [{"id": 7}]}, rules=[FORBIDDEN, VALID]).code == 0
    assert checked({"name": "refund", "arguments": {"id": 8}, **under}, rules=[FORBIDDEN, VALID]).code == 0


@pytest.mark.parametrize("name", ["", " ", "\u200b"])
def test_a_call_whose_name_nobody_sees_has_none(name: str) -> None:
    ended = checked({"name": name, "arguments": {}}, rules=[FORBIDDEN])
    assert ended.code == 2
    assert "has no name in tool_calls[0]" in ended.err


@pytest.mark.parametrize("came_to", [{"status": "failed"}, {"status": "incomplete"}, {"type": "invalid_tool_call"}])
def test_a_call_counts_whatever_came_of_it(came_to: Row) -> None:
    call = {"name": "refund", "arguments": {"id": 7}, **came_to}
    assert checked(call, rules=[FORBIDDEN]).code == 1
    assert checked(call, rules=[{**FORBIDDEN, "type": "must_call_tool"}]).code == 0


@pytest.mark.parametrize(
    "beside",
    [
        {"id": 7},
        {"id": 7, "reason": "late", "arguments": None},
        {"type": "tool_call", "id": 7},
        {"function": {"name": "refund", "id": 7}},
    ],
)
def test_arguments_beside_the_name_may_be_the_forbidden_ones(beside: Row) -> None:
    call = {"name": "refund", **beside}
    assert broken(checked(call, rules=[FORBIDDEN]))[0] == "Expected no call of refund(id=7)"
    assert "id=7" in broken(checked(call, rules=[FORBIDDEN]))[1]
    assert "id=7" in broken(checked(call, rules=[{**FORBIDDEN, "arguments": {"id": {"regex": "^7$"}}}]))[1]
    assert checked(call, rules=[{**FORBIDDEN, "arguments": {"id": 8}}, VALID]).code == 0
    assert checked(call, call, rules=[{**FORBIDDEN, "type": "must_call_tool", "at_most": 1}]).code == 1


def test_what_stands_beside_the_name_is_no_argument_where_there_are_arguments_or_of_a_call_that_is_wanted() -> None:
    assert checked({"name": "refund", "id": 7, "arguments": {"id": 8}}, rules=[FORBIDDEN]).code == 0
    assert checked({"name": "refund", "id": "call_7", "status": "done"}, rules=[FORBIDDEN, VALID]).code == 0
    assert checked({"name": "refund", "id": 7}, rules=[{**FORBIDDEN, "type": "must_call_tool"}]).code == 1


OTHER_NAMES = {
    "Refund": "Refund",
    "functions.refund": "functions.refund",
    "mcp__shop__refund": "mcp__shop__refund",
    "shop/refund": "shop/refund",
    "shop:refund": "shop:refund",
    "re\u200bfund": r"re\u200bfund",
    "\uff52efund": "\uff52efund",
    "re_fund ": "re_fund ",
    "refund()": "refund()",
    "Refund(id=7) ": "Refund(id=7) ",
    "refund:0": "refund:0",
    "functions.refund:12": "functions.refund:12",
    "tools-refund": "tools-refund",
    "functions_refund": "functions_refund",
    "refund<|channel|>commentary": "refund<|channel|>commentary",
    "<|channel|>commentary to=functions.refund <|constrain|>json": (
        "<|channel|>commentary to=functions.refund <|constrain|>json"
    ),
    "refund<|chan": "refund<|chan",
    '"refund"': '"refund"',
    "$refund": "$refund",
}


@pytest.mark.parametrize(("name", "shown"), OTHER_NAMES.items())
def test_a_forbidden_tool_is_found_under_its_name_in_another_form(name: str, shown: str) -> None:
    ended = checked({"name": name, "arguments": {"id": 7}}, rules=[FORBIDDEN])
    assert broken(ended) == ["Expected no call of refund(id=7)", f"Found: called as {shown}(id=7)"]


def test_a_forbidden_tool_that_is_named_with_a_namespace_is_found_without_it() -> None:
    rule = {"type": "must_not_call_tool", "tool": "mcp__shop__refund"}
    assert broken(
        checked({"name": "refund"}, {"name": "shop.refund"}, {"name": "mcp__shop__refund"}, rules=[rule])
    ) == [
        "Expected no call of mcp__shop__refund",
        "Found: called as refund(), called as shop.refund(), mcp__shop__refund()",
    ]
    assert checked({"name": "bank.refund"}, rules=[rule]).code == 0
    assert checked({"name": "mcp_shop_refund"}, rules=[rule]).code == 1  # an API that allows no dots has it like this


@pytest.mark.parametrize(
    "name",
    [
        "refund_status",
        "get_refund",
        "refunds",
        "refund.status",
        "prerefund",
        ".",
        "()",
        ":0",
        "tool_refund",
        "<|channel|>",
        "$",
    ],
)
def test_another_tool_is_not_the_forbidden_one(name: str) -> None:
    assert checked({"name": name, "arguments": {"id": 7}}, rules=[FORBIDDEN]).code == 0


@pytest.mark.parametrize(
    ("tool", "char"),
    [
        *(("delete_*", "*"), ("*", "*"), ("refund|cancel", "|"), ("refund.*", "*"), ("^refund", "^"), ("refund$", "$")),
        *(("refund, cancel", ","), ("[refund]", "["), ("(refund)", "("), ("refund.+", "+"), ("delete_%", "%")),
        *(("refund?", "?"), ("refund;cancel", ";"), ("{refund}", "{"), (r"\brefund\b", "\\"), ("refund cancel", " ")),
    ],
)
def test_a_pattern_or_a_list_is_no_name_of_a_forbidden_tool(tool: str, char: str) -> None:
    ended = checked({"name": "refund"}, rules=[{"type": "must_not_call_tool", "tool": tool}])
    assert ended.code == 2
    assert f"golden.jsonl:1: rules[0].tool: has {char!r}, and is compared as a name" in ended.err
    assert "write a rule for each tool, with its name" in ended.err


def test_a_tool_with_a_blank_in_its_name_is_forbidden_with_an_underscore_and_required_as_it_is() -> None:
    call = {"name": "Delete the file"}
    assert checked(call, rules=[{"type": "must_not_call_tool", "tool": "delete_the_file"}]).code == 1
    assert checked(call, rules=[{"type": "must_call_tool", "tool": "Delete the file"}]).code == 0


PARALLEL = "multi_tool_use.parallel"


@pytest.mark.parametrize("name", [PARALLEL, "functions.multi_tool_use.parallel", "multi_tool_use_parallel"])
def test_calls_that_are_made_at_once_by_another_one_are_calls(name: str) -> None:
    uses = [
        {"recipient_name": "functions.look", "parameters": {}},
        {"recipient_name": "functions.refund", "parameters": {"id": 7}},
    ]
    for arguments in ({"tool_uses": uses}, json.dumps({"tool_uses": uses})):
        call = {"function": {"name": name, "arguments": arguments}}
        assert broken(checked(call, rules=[FORBIDDEN])) == [
            "Expected no call of refund(id=7)",
            "Found: called as functions.refund(id=7)",
        ]
        assert checked(call, rules=[{**FORBIDDEN, "arguments": {"id": 8}}, VALID]).code == 0
        assert checked(call, rules=[{"type": "must_not_call_tool", "tool": PARALLEL}]).code == 1


@pytest.mark.parametrize("arguments", [{}, {"tool_uses": "refund"}, {"tool_uses": ["refund"]}, '{"tool_uses": ['])
def test_calls_within_another_one_that_cannot_be_read_are_refused(arguments: Any) -> None:
    ended = checked({"name": PARALLEL, "arguments": arguments}, rules=[FORBIDDEN])
    assert ended.code == 2
    assert "has a call of multi_tool_use.parallel in tool_calls[0], whose tool_uses cannot be read" in ended.err


NESTING = (
    "tool_calls",
    "toolCalls",
    "calls",
    "children",
    "steps",
    "actions",
    "function_calls",
    "sub_calls",
    "messages",
)


@pytest.mark.parametrize("field", NESTING)
def test_calls_in_a_field_of_another_one_are_refused(field: str) -> None:
    inner = [{"name": "refund", "arguments": {"id": 7}}]
    agent = {"name": "billing_agent", "arguments": {"task": "x"}}
    for nested in (inner, inner[0], json.dumps(inner)):
        for call in (
            {**agent, field: nested},
            {"function": agent, field: nested},
            {"function": {**agent, field: nested}},
        ):
            ended = checked(call, rules=[FORBIDDEN])
            assert ended.code == 2
            assert f"has {field} in tool_calls[0], where calls within it may be, which are not read" in ended.err
    nothings: list[Any] = [[], {}, None, "", 3]
    for nothing in nothings:
        assert checked({**agent, field: nothing}, rules=[FORBIDDEN, VALID]).code == 0
    assert checked({"name": "plan", "arguments": {field: inner}}, rules=[FORBIDDEN]).code == 0  # as the docs say


def test_a_tool_that_must_be_called_has_exactly_its_name_and_the_message_points_to_another_form_of_it() -> None:
    wanted = {"type": "must_call_tool", "tool": "refund"}
    assert broken(checked({"name": "functions.refund"}, rules=[wanted])) == [
        "Expected a call of refund",
        "Found: functions.refund(); under another name: functions.refund",
    ]
    assert broken(checked({"name": "refunds"}, rules=[wanted])) == ["Expected a call of refund", "Found: refunds()"]


def test_calls_that_may_be_such_calls_count_where_there_may_be_too_many() -> None:
    once = {"type": "must_call_tool", "tool": "refund", "arguments": {"id": 7}, "at_most": 1}
    call = {"name": "refund", "arguments": {"id": 7}}
    assert checked(call, rules=[once]).code == 0
    assert broken(checked(call, {**call, "name": "Refund"}, rules=[once])) == [
        "Expected a call of refund(id=7) at most once",
        "Found: 2 such calls; under another name: Refund",
    ]
    assert checked(call, {**call, "arguments": '{"id": 7'}, rules=[once]).code == 1
    assert checked({**call, "arguments": '{"id": 7'}, rules=[once]).code == 1


def test_a_call_whose_arguments_cannot_be_read_is_not_the_one_that_must_be_made() -> None:
    call = {"name": "refund", "arguments": '{"id": 7'}
    wanted: Row = {"type": "must_call_tool", "tool": "refund"}
    assert broken(checked(call, rules=[wanted])) == [
        "Expected a call of refund",
        "Found: refund(invalid arguments)",
    ]
    read = {**call, "arguments": SEVEN}
    assert checked(call, read, rules=[wanted]).code == 0
    assert checked(call, read, rules=[{**wanted, "at_least": 2}]).code == 1
    assert checked(call, read, rules=[{**wanted, "at_most": 1}]).code == 1
    assert checked(call, rules=[{"type": "must_not_call_tool", "tool": "refund"}]).code == 1


SEARCHED: dict[str, Any] = {
    "a number": 900,
    "a number with a point": 900.0,
    "a list": ["a", "900"],
    "a number in a list": [[7], 900],
    "an object": {"value": {"of": "900"}},
    "a key of an object": {"900": True},
    "a text": "900",
}


@pytest.mark.parametrize("value", SEARCHED.values(), ids=SEARCHED.keys())
def test_a_forbidden_pattern_is_found_wherever_it_stands_in_an_argument(value: Any) -> None:
    forbidden: Row = {"type": "must_not_call_tool", "tool": "refund", "arguments": {"amount": {"regex": "^9[0-9]+$"}}}
    call = {"name": "refund", "arguments": {"amount": value}}
    assert checked(call, rules=[forbidden]).code == 1
    assert checked(call, rules=[{**forbidden, "arguments": {"amount": {"regex": "^8"}}}]).code == 0
    once = {**forbidden, "type": "must_call_tool", "at_most": 1}
    assert checked({"name": "refund", "arguments": {"amount": "90"}}, call, rules=[once]).code == 1


def test_a_forbidden_pattern_finds_booleans_and_nothing_in_null() -> None:
    forbidden: Row = {"type": "must_not_call_tool", "tool": "refund", "arguments": {"all": {"regex": "."}}}
    assert checked({"name": "refund", "arguments": {"all": True}}, rules=[forbidden]).code == 1
    assert checked({"name": "refund", "arguments": {"all": None}}, rules=[forbidden]).code == 0


def test_a_pattern_that_must_be_in_a_call_is_searched_for_in_a_text_only() -> None:
    wanted: Row = {"type": "must_call_tool", "tool": "refund", "arguments": {"amount": {"regex": "^9"}}}
    assert checked({"name": "refund", "arguments": {"amount": 900}}, rules=[wanted]).code == 1
    assert checked({"name": "refund", "arguments": {"amount": "900"}}, rules=[wanted]).code == 0


@pytest.mark.parametrize("rule", ["must_not_call_tool", "must_call_tool"])
@pytest.mark.parametrize("key", ["regexp", "regx", "Regex", "reg-ex", "regular_expression"])
def test_an_argument_with_a_misspelled_pattern_is_refused(key: str, rule: str) -> None:
    for value in ({key: "^7"}, {key: "^7", "ignore_case": True}):
        ended = checked({"name": "refund"}, rules=[{"type": rule, "tool": "refund", "arguments": {"id": value}}])
        assert ended.code == 2
        assert f"golden.jsonl:1: rules[0].arguments.id.{key}: is not known; did you mean 'regex'?" in ended.err


LIKELY: dict[str, tuple[Any, str]] = {
    "text": ({"text": "7"}, "id.text"),
    "any": ({"any": ["7", "8"]}, "id.any"),
    "contains": ({"contains": "7"}, "id.contains"),
    "pattern": ({"pattern": "^7"}, "id.pattern"),
    "with an option": ({"startsWith": "7", "ignore_case": True}, "id.startsWith"),
    "a pattern within": ({"of": {"regex": "^7"}}, "id.of.regex"),
    "a pattern in a list": ([{"regex": "^7"}], "id.0.regex"),
    "a comparison": ({"gt": 100}, "id.gt"),
    "two comparisons": ({"gte": 100, "lte": 200}, "id.gte"),
    "an operator": ({"op": ">", "value": 100}, "id.op"),
    "MongoDB's": ({"$gt": 100}, "id.$gt"),
    "MongoDB's, beside another": ({"$near": 1, "of": 2}, "id.$near"),
    "a range": ({"min": 1, "max": 9}, "id.min"),
    "a minimum": ({"minimum": 100}, "id.minimum"),
    "camel case": ({"greaterThan": 100}, "id.greaterThan"),
    "an enumeration": ({"enum": ["7", "8"]}, "id.enum"),
    "a constant": ({"const": 7}, "id.const"),
    "that it exists": ({"exists": True}, "id.exists"),
    "its type": ({"type": "string"}, "id.type"),
    "a schema": ({"type": "string", "pattern": "^7"}, "id.pattern"),
    "a comparison as text": (">100", "id"),
    "another one": ("<= 7", "id"),
    "a star": ("*", "id"),
    "a star at the end": ("7*", "id"),
    "any characters": (".*", "id"),
    "a beginning": ("^7", "id"),
    "a class": (r"\d+", "id"),
    "a star in a list": (["*"], "id.0"),
}


@pytest.mark.parametrize(("value", "at"), LIKELY.values(), ids=LIKELY.keys())
def test_an_argument_that_looks_like_a_matcher_is_refused_where_it_would_forbid_nothing(value: Any, at: str) -> None:
    ended = checked({"name": "refund"}, rules=[{**FORBIDDEN, "arguments": {"id": value}}])
    assert ended.code == 2
    assert f"golden.jsonl:1: rules[0].arguments.{at}: is compared as a value, not searched for; write" in ended.err
    wanted = {**FORBIDDEN, "type": "must_call_tool", "arguments": {"id": value}}
    assert checked({"name": "refund", "arguments": {"id": value}}, rules=[wanted]).code == 0


PLAIN: list[Any] = [
    *({"text": "7", "to": "her"}, {"currency": "EUR"}, {}, ["7"], {"regexes": 1, "id": 7}),
    *({"type": "fixed", "value": 5}, {"min": 1, "max": 9, "currency": "EUR"}, "50%", "> see below", "US$", "2 * 3 = 6"),
    *("SELECT * FROM orders", r"C:\data", "7.5", "-7", "<b>7</b>", None, True),
]


@pytest.mark.parametrize("value", PLAIN)
def test_an_argument_that_looks_like_no_matcher_is_compared_as_a_value(value: Any) -> None:
    rule = {**FORBIDDEN, "arguments": {"id": value}}
    assert checked({"name": "refund", "arguments": {"id": value}}, rules=[rule]).code == 1
    assert checked({"name": "refund", "arguments": {"id": 7}}, rules=[rule]).code == 0


@pytest.mark.parametrize("name", ["orderId", "OrderID", "order-id", "ORDER_ID", "order id", "order\u200b_id"])
def test_a_forbidden_argument_is_found_under_its_name_in_another_form(name: str) -> None:
    forbidden: Row = {"type": "must_not_call_tool", "tool": "refund", "arguments": {"order_id": 7}}
    pattern = {**forbidden, "arguments": {"order_id": {"regex": "^7$"}}}
    call = {"name": "refund", "arguments": {name: 7}}
    assert checked(call, rules=[forbidden]).code == 1
    assert checked(call, rules=[pattern]).code == 1
    assert checked({"name": "refund", "arguments": {name: 8}}, rules=[forbidden, pattern]).code == 0
    assert checked(call, rules=[{**forbidden, "type": "must_call_tool"}]).code == 1
    once = {**forbidden, "type": "must_call_tool", "at_most": 1}
    assert checked({"name": "refund", "arguments": {"order_id": 7}}, call, rules=[once]).code == 1


@pytest.mark.parametrize("name", ["order", "id", "order_ids", "orders.id2"])
def test_another_argument_is_not_the_forbidden_one(name: str) -> None:
    forbidden = {"type": "must_not_call_tool", "tool": "refund", "arguments": {"order_id": 7}}
    assert checked({"name": "refund", "arguments": {name: 7}}, rules=[forbidden]).code == 0


def test_a_call_that_names_its_tool_or_arguments_twice_must_say_the_same() -> None:
    for call, fields in (
        ({"name": "get_order", "function": {"name": "refund"}}, "name and name beside function"),
        (
            {"arguments": "{}", "function": {"name": "refund", "arguments": SEVEN}},
            "arguments and arguments beside function",
        ),
        ({"name": "refund", "arguments": {}, "input": {"id": 7}}, "arguments and input"),
    ):
        ended = checked(call, rules=[FORBIDDEN])
        assert ended.code == 2
        assert f"has {fields} in tool_calls[0], which differ; export only one" in ended.err


@pytest.mark.parametrize("rule", ["must_not_call_tool", "must_call_tool"])
@pytest.mark.parametrize("tool", [" ", "\u200b", "\u2800"], ids=ascii)
def test_a_tool_without_a_name_is_refused_because_no_call_can_be_of_it(tool: str, rule: str) -> None:
    ended = checked({"name": "refund", "arguments": {}}, rules=[{"type": rule, "tool": tool}])
    assert ended.code == 2
    assert "golden.jsonl:1: rules[0].tool: has nothing but blanks and invisible characters" in ended.err


REASONS = (
    "tool_calls", "tool_use", "function_call", "MALFORMED_FUNCTION_CALL", "FinishReason.UNEXPECTED_TOOL_CALL",
    "tool-calls", "ToolUse",
)  # fmt: skip
RULES: list[Row] = [{"type": "must_not_call_tool", "tool": "refund"}, VALID, {"type": "must_call_tool", "tool": "look"}]


@pytest.mark.parametrize("reason", REASONS)
def test_a_model_that_stopped_for_calls_of_which_there_are_none_has_lost_them(reason: str) -> None:
    contracts: list[Row] = [*({"rules": [rule]} for rule in RULES), {"reference_tool_calls": []}]
    for expected in contracts:
        write_jsonl(Path("golden.jsonl"), [golden(**expected)])
        write_jsonl(Path("current_run.jsonl"), [run(response="Done.", tool_calls=[], finish_reason=reason)])
        ended = rag_contract("check")
        assert ended.code == 2
        assert f"has [] as tool_calls, and {reason!r} as finish_reason; export the calls" in " ".join(ended.err.split())
        write_jsonl(Path("current_run.jsonl"), [run(tool_calls=[{"name": "look"}], finish_reason=reason)])
        assert rag_contract("check").code < 2


@pytest.mark.parametrize("reason", ["stop", "end_turn", "STOP", "length", None])
def test_a_model_that_stopped_otherwise_called_nothing(reason: str | None) -> None:
    write_jsonl(Path("golden.jsonl"), [golden(rules=RULES[:2])])
    write_jsonl(Path("current_run.jsonl"), [run(response="Done.", tool_calls=[], finish_reason=reason)])
    assert rag_contract("check").code == 0


def talked(*messages: Row, **turns: Any) -> Ended:
    write_jsonl(Path("golden.jsonl"), [golden(rules=RULES[:1], **turns)])
    fields: Row = {} if turns else {"tool_calls": [], "response": "Done."}
    write_jsonl(Path("current_run.jsonl"), [run(messages=[{"role": "user", "content": "?"}, *messages], **fields)])
    return rag_contract("check")


@pytest.mark.parametrize("turns", [{}, {"turns": [{"query": "?"}]}], ids=["without turns", "with a turn"])
@pytest.mark.parametrize(
    "reason",
    [
        {"finish_reason": "tool_calls"},
        {"stop_reason": "tool_use"},
        {"response_metadata": {"finish_reason": "tool_calls"}},
    ],
)
def test_a_message_that_stopped_for_calls_of_which_there_are_none_has_lost_them(reason: Row, turns: Row) -> None:
    answer = {"role": "assistant", "content": "Done."}
    ended = talked({**answer, **reason}, **turns)
    assert ended.code == 2
    assert "has a message that stopped for tool calls in messages[1], and no call" in " ".join(ended.err.split())
    assert talked(answer, **turns).code == 0


def test_a_conversation_that_answers_after_the_result_of_a_tool_may_keep_the_reason_of_its_call() -> None:
    call: Row = {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": {"name": "look"}}]}
    result: Row = {"role": "tool", "tool_call_id": "c", "content": "7"}
    answer: Row = {"role": "assistant", "content": "Done."}
    reasons: list[Row] = [{}, {"finish_reason": "tool_calls"}]
    for reason in reasons:
        turns: Row = {"turns": [{"query": "?"}]}
        assert talked({**call, **reason}, result, answer, **turns).code == 0
        assert talked({**call, **reason}, result, {**answer, **reason}, **turns).code == 0


def test_a_recorded_completion_that_lost_its_calls_has_none_that_are_known() -> None:
    write_jsonl(Path("golden.jsonl"), [{"id": "q1", "query": "?", "rules": RULES[:1]}])
    message = {"role": "assistant", "content": "Done.", "tool_calls": None}
    for reason, code in (("tool_calls", 2), ("stop", 0)):
        completion = {"choices": [{"finish_reason": reason, "message": message}]}
        target = Path(f"{reason}.py")
        target.write_text(f"def ask(question):\n    return {completion!r}\n")
        assert rag_contract("record", f"{target}:ask", "--fresh").code == 0
        row = json.loads(Path("current_run.jsonl").read_text().splitlines()[-1])
        assert row.get("tool_calls") == (None if code else [])
        ended = rag_contract("check")
        assert ended.code == code, ended
