"""Tool metrics on the cases where the definitions of others disagree, with theirs beside ours."""

import time
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcontract.answers.tool_calls import ToolCall, tool_calls
from ragcontract.metrics import tool_use
from tests.answers import ragas_tools

Calls = list[dict[str, Any]]


def call(name: str = "f", **args: Any) -> dict[str, Any]:
    return {"name": name, "args": args}


class Case(NamedTuple):
    """A trace: ragas' accuracy in order, in any order, F1; our precision, recall, F1, arguments and order."""

    called: Calls
    wanted: Calls
    ragas: tuple[float, float, float]
    ours: tuple[float | None, float | None, float, float | None, float | None]
    by_arguments: float | None = None  # our F1 with `match: name_and_arguments`, where it differs
    strict: float | None = None  # our arguments with `strict_arguments`, where it differs
    lenient: float | None = None  # our arguments with `lenient`, where it differs


TWO = [call("a", x=1), call("b", y=2)]
THIRD: Any = pytest.approx(2 / 3, abs=1e-4)  # ragas rounds
CASES = {
    "the same": Case(TWO, TWO, (1, 1, 1), (1, 1, 1, 1, 1)),
    "both empty": Case([], [], (1, 1, 0), (1, 1, 1, 1, 1)),
    "an unexpected call, none wanted": Case(TWO[:1], [], (0, 0, 0), (0, None, 0, None, None)),
    "no call, one wanted": Case([], TWO[:1], (0, 0, 0), (None, 0, 0, 0, 0)),
    "an extra call": Case(TWO, TWO[:1], (0, 0, THIRD), (0.5, 1, THIRD, 1, 1)),
    "a missing call": Case(TWO[:1], TWO, (0, 0, THIRD), (1, 0.5, THIRD, 0.5, 0.5)),
    "swapped order": Case(TWO[::-1], TWO, (0, 1, 1), (1, 1, 1, 1, 0.5)),
    "half of the arguments": Case(
        [call(x=1)], [call(x=1, y=2)], (0.5, 0.5, 0), (1, 1, 1, 0.5, 1), by_arguments=0
    ),
    "an extra argument": Case(
        [call(x=1, y=2)], [call(x=1)], (1, 1, 0), (1, 1, 1, 1, 1), by_arguments=0, strict=0.5
    ),
    "a number as text": Case([call(x="1")], [call(x=1)], (1, 1, 0), (1, 1, 1, 0, 1), by_arguments=0, lenient=1),
    "a boolean as a number": Case([call(x=True)], [call(x=1)], (0, 0, 1), (1, 1, 1, 0, 1), by_arguments=0),
    "a number as a float": Case([call(x=1.0)], [call(x=1)], (0, 0, 1), (1, 1, 1, 1, 1)),
    "twice, wanted once": Case([call(x=1)] * 2, [call(x=1)], (0, 0, 1), (0.5, 1, THIRD, 1, 1)),
    "twice, wanted twice": Case([call(x=1)] * 2, [call(x=1)] * 2, (1, 1, 1), (1, 1, 1, 1, 1)),
    "the order of keys in an object": Case(
        [call(x={"b": 1, "a": 2})], [call(x={"a": 2, "b": 1})], (0, 0, 1), (1, 1, 1, 1, 1)
    ),
    "an argument where none is wanted": Case(
        [call(x=1)], [call()], (0, 0, 0), (1, 1, 1, 1, 1), by_arguments=0, strict=0
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_each_case_has_its_values_and_those_of_ragas_differ_as_they_are_known_to(case: Case) -> None:
    called, wanted = tool_calls(case.called), tool_calls(case.wanted)
    in_order, in_any = (ragas_tools.accuracy(case.called, case.wanted, in_order=order) for order in (True, False))
    assert (in_order, in_any, ragas_tools.f1(case.called, case.wanted)) == case.ragas
    assert (
        tool_use.precision(called, wanted, "name", lenient=False),
        tool_use.recall(called, wanted, "name", lenient=False),
        tool_use.f1(called, wanted, "name", lenient=False),
        tool_use.arguments(called, wanted, lenient=False, strict=False),
        tool_use.order(called, wanted),
    ) == case.ours
    *_, f1, arguments, _order = case.ours
    by_arguments = tool_use.f1(called, wanted, "name_and_arguments", lenient=False)
    assert by_arguments == (f1 if case.by_arguments is None else case.by_arguments)
    strict = tool_use.arguments(called, wanted, lenient=False, strict=True)
    assert strict == (arguments if case.strict is None else case.strict)
    lenient = tool_use.arguments(called, wanted, lenient=True, strict=False)
    assert lenient == (arguments if case.lenient is None else case.lenient)


def test_calls_of_one_tool_are_paired_by_their_arguments() -> None:
    called = tool_calls([call(x=1, y=1), call(x=1, y=2)])
    wanted = tool_calls([call(x=1, y=2), call(x=9, y=1)])
    assert tool_use.arguments(called, wanted, lenient=False, strict=False) == 0.75
    assert tool_use.arguments(called[:1], wanted, lenient=False, strict=False) == 0.25


traces = st.lists(
    st.builds(lambda name, args: {"name": name, "args": args}, st.sampled_from("abc"), st.dictionaries(
        st.sampled_from("xy"), st.sampled_from([1, "1", True, None, [1], {"k": 2}]))), max_size=5,
)  # fmt: skip


@given(st.data())
def test_the_same_calls_in_another_order_have_all_arguments(data: st.DataObject) -> None:
    wanted = data.draw(traces)
    called = tool_calls(data.draw(st.permutations(wanted)))
    for strict in (False, True):
        assert tool_use.arguments(called, tool_calls(wanted), lenient=False, strict=strict) == 1


def test_the_arguments_of_a_call_are_gone_through_once_however_many_calls_were_wanted() -> None:
    called = [ToolCall("f", {str(n): n for n in range(50_000)})]

    def seconds(calls: int) -> float:
        wanted = tool_calls([call()] * calls)
        start = time.process_time()
        tool_use.arguments(called, wanted, lenient=False, strict=False)
        return time.process_time() - start

    assert min(seconds(100) for _ in range(3)) < 3 * min(seconds(1) for _ in range(3))


def test_invalid_arguments_match_by_name_only() -> None:
    called = (ToolCall("f", None),)
    for wanted in tool_calls([call(x=1)]), tool_calls([call()]):
        assert tool_use.f1(called, wanted, "name", lenient=False) == 1
        assert tool_use.precision(called, wanted, "name_and_arguments", lenient=True) == 0
        assert tool_use.recall(called, wanted, "name_and_arguments", lenient=True) == 0
        assert tool_use.arguments(called, wanted, lenient=True, strict=False) == 0


@pytest.mark.parametrize(("called", "wanted", "value"), [(0, 0, 1), (0, 2, 1), (3, 0, 0), (4, 2, 0.5), (1, 2, 1)])
def test_step_efficiency_is_lost_by_calls_beyond_those_wanted(called: int, wanted: int, value: float) -> None:
    assert tool_use.step_efficiency(tool_calls([call()] * called), tool_calls([call()] * wanted)) == value


@given(traces, traces)
def test_the_metrics_relate_to_each_other_and_to_those_of_ragas(called: Calls, wanted: Calls) -> None:
    made, expected = tool_calls(called), tool_calls(wanted)
    for match in ("name", "name_and_arguments"):
        precision = tool_use.precision(made, expected, match, lenient=False)
        recall = tool_use.recall(made, expected, match, lenient=False)
        f1 = tool_use.f1(made, expected, match, lenient=False)
        if precision is None or recall is None:
            assert f1 == 0
        elif precision + recall:
            assert f1 == pytest.approx(2 * precision * recall / (precision + recall))
        assert tool_use.f1(expected, made, match, lenient=False) == f1
    assert f1 <= tool_use.f1(made, expected, "name", lenient=False)
    arguments = tool_use.arguments(made, expected, lenient=False, strict=False)
    strict = tool_use.arguments(made, expected, lenient=False, strict=True)
    assert (arguments is None) == (strict is None) == (tool_use.order(made, expected) is None)
    assert all(value is None or 0 <= value <= 1 for value in (arguments, strict))
    if ragas_tools.accuracy(called, wanted, in_order=True) == 1:
        assert (tool_use.order(made, expected), tool_use.f1(made, expected, "name", lenient=False)) == (1, 1)
