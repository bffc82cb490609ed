"""The metrics of tool calls, which compare the calls with those of ``reference_tool_calls``, as multisets.

Each function returns None where its value is not defined, as a precision without calls or a recall without wanted
calls. If both are empty, that is a perfect match.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import TypeAlias, cast

from msgspec import Struct

from ragcontract.answers.metric_options import (
    CannotScoreError,
    Match,
    NoOptions,
    ToolArgumentsOptions,
    ToolMatchOptions,
    uncalled,
)
from ragcontract.answers.similarity import common_length
from ragcontract.answers.tool_calls import ToolCall, tool_calls
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.metric import Family, Metric, MetricSettings, Missing, OneMetric
from ragcontract.core.run import RunRow

Calls: TypeAlias = Sequence["ToolCall"]
Score: TypeAlias = Callable[[Calls, Calls], float | None]

LABELS = {
    "tool_precision": "Tool precision",
    "tool_recall": "Tool recall",
    "tool_f1": "Tool F1",
    "tool_arguments": "Tool arguments",
    "tool_order": "Tool order",
    "step_efficiency": "Step efficiency",
}
MATCHED = ("tool_precision", "tool_recall", "tool_f1")
OPTIONS: dict[str, type[Struct]] = {
    **dict.fromkeys(MATCHED, ToolMatchOptions),
    "tool_arguments": ToolArgumentsOptions,
    "tool_order": NoOptions,
    "step_efficiency": NoOptions,
}
LACKING = "has no tool_calls, which the tool metrics need; export them ([] if no tool was called)"


def tool_use(settings: MetricSettings) -> Iterable[Family]:
    """Return one family for each metric, because each is defined for different queries."""
    return [_family(key, settings.declared.get(key) or OPTIONS[key]()) for key in LABELS]


def _family(key: str, options: Struct) -> Family:
    chosen = {name: getattr(options, name) for name in options.__struct_fields__}
    way = ", ".join(name if value is True else str(value) for name, value in chosen.items() if value is not False)
    return OneMetric(
        metrics=(Metric(key=key, label=LABELS[key], suggested=key == "tool_f1", fingerprint=way),),
        needs=frozenset({"tool_calls", "messages", "error", "finish_reason"}),
        switch="reference_tool_calls",
        value=partial(_value, score_of(key, options)),
    )


def _value(score: Score, query: GoldenQuery, row: RunRow) -> float | Missing | None:
    """Return the value for the calls of a row; the worst if they are unknown because the application failed."""
    if query.answer is None or query.answer.reference_tool_calls is None:
        return None
    if row.tool_calls is None:
        return Missing(LACKING) if row.error is None else 0.0
    if lacking := uncalled(row.tool_calls, row.finish_reason):
        return Missing(lacking)
    try:
        called = tool_calls(row.tool_calls)
    except CannotScoreError as error:
        return Missing(str(error))
    return score(called, cast("Calls", query.answer.reference_tool_calls))


def score_of(key: str, options: Struct) -> Score:
    """Return the function of a metric with its options."""
    if isinstance(options, ToolMatchOptions):
        match, lenient = options.match, options.lenient
        function = {
            "tool_precision": precision,
            "tool_recall": recall,
            "tool_f1": f1,
        }[key]
        return lambda called, wanted: function(called, wanted, match, lenient=lenient)
    if isinstance(options, ToolArgumentsOptions):
        lenient, strict = options.lenient, options.strict_arguments
        return lambda called, wanted: arguments(called, wanted, lenient=lenient, strict=strict)
    return order if key == "tool_order" else step_efficiency


Arguments = dict[str, Hashable] | None


def precision(called: Sequence[ToolCall], wanted: Sequence[ToolCall], match: Match, *, lenient: bool) -> float | None:
    """Return the fraction of the calls that were wanted."""
    return _fraction(called, wanted, len(called), match, lenient=lenient)


def recall(called: Sequence[ToolCall], wanted: Sequence[ToolCall], match: Match, *, lenient: bool) -> float | None:
    """Return the fraction of the wanted calls that were made."""
    return _fraction(called, wanted, len(wanted), match, lenient=lenient)


def f1(called: Sequence[ToolCall], wanted: Sequence[ToolCall], match: Match, *, lenient: bool) -> float:
    """Return the harmonic mean of precision and recall, twice the calls that match by all calls of both sides."""
    if not called and not wanted:
        return 1.0
    return 2 * _matching(called, wanted, match, lenient=lenient) / (len(called) + len(wanted))


def _fraction(
    called: Sequence[ToolCall], wanted: Sequence[ToolCall], whole: int, match: Match, *, lenient: bool
) -> float | None:
    if not called and not wanted:
        return 1.0
    return _matching(called, wanted, match, lenient=lenient) / whole if whole else None


def _matching(called: Sequence[ToolCall], wanted: Sequence[ToolCall], match: Match, *, lenient: bool) -> int:
    """Return how many calls are in both multisets. With arguments, a call with invalid ones matches no other."""
    if match == "name":
        return (Counter(call.name for call in called) & Counter(call.name for call in wanted)).total()
    first, second = (
        Counter(
            (call.name, frozenset(comparable.items()))
            for call in calls
            if (comparable := call.comparable(lenient=lenient)) is not None
        )
        for calls in (called, wanted)
    )
    return (first & second).total()


def arguments(called: Sequence[ToolCall], wanted: Sequence[ToolCall], *, lenient: bool, strict: bool) -> float | None:
    """Return the mean over the wanted calls of the fraction of their arguments that the call paired with them has.

    Calls of one name are paired by the highest fraction first; a wanted call without a pair counts 0. If ``strict``,
    arguments that were not wanted count as wrong.
    """
    if not wanted:
        return None if called else 1.0
    made: dict[str, list[Arguments]] = {}
    for call in called:
        made.setdefault(call.name, []).append(call.comparable(lenient=lenient))
    expected: dict[str, list[Arguments]] = {}
    for call in wanted:
        expected.setdefault(call.name, []).append(call.comparable(lenient=lenient))
    total = sum(_paired(made.get(name, []), of_name, strict=strict) for name, of_name in expected.items())
    return total / len(wanted)


def _paired(made: Sequence[Arguments], wanted: Sequence[Arguments], *, strict: bool) -> float:
    """Return the sum of the fractions of the pairs of calls of one tool.

    Of equal fractions, the pair with more equal arguments and fewer others is taken first, so that the same calls in
    another order are paired with each other; then the pair of the earlier calls.
    """
    pairs = []
    for number, expected in enumerate(wanted):
        for other, actual in enumerate(made):
            if actual is not None and expected is not None:
                equal = sum(name in actual and actual[name] == value for name, value in expected.items())
                more = len(actual) - sum(name in actual for name in expected)  # faster than with a set
                counted = len(expected) + (more if strict else 0)
                pairs.append((-equal / counted if counted else -1.0, -equal, more, number, other))
    left, free, total = set(range(len(wanted))), set(range(len(made))), 0.0
    for score, _, _, number, other in sorted(pairs):
        if number in left and other in free:
            left.remove(number)
            free.remove(other)
            total -= score
    return total


def order(called: Sequence[ToolCall], wanted: Sequence[ToolCall]) -> float | None:
    """Return the share of the wanted calls in the longest sequence of them that was called in order, by name."""
    if not wanted:
        return None if called else 1.0
    return common_length([call.name for call in called], [call.name for call in wanted]) / len(wanted)


def step_efficiency(called: Sequence[ToolCall], wanted: Sequence[ToolCall]) -> float:
    """Return the number of wanted calls by the number of calls, at most 1."""
    return min(1.0, len(wanted) / len(called)) if called else 1.0
