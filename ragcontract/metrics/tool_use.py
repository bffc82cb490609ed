"""Tool metrics: whether the tools that were called are those of ``reference_tool_calls``."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias, cast

from msgspec import Struct

from ragcontract.answers.metric_options import NoOptions, ToolArgumentsOptions, ToolMatchOptions
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.metric import Family, Metric, MetricSettings, Missing
from ragcontract.core.run import RunRow
from ragcontract.core.scores import Values

if TYPE_CHECKING:
    from ragcontract.answers.tool_calls import Call

Calls: TypeAlias = Sequence["Call"]
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
    """Return one family for each metric, because each is defined for other queries."""
    return [ToolUse(key, settings.declared.get(key) or OPTIONS[key]()) for key in LABELS]


class ToolUse:
    """One of the tool metrics; a query where it is not defined (a recall of nothing wanted) does not count."""

    needs = frozenset({"tool_calls", "messages", "error", "finish_reason"})
    from_ids = False
    switch = "reference_tool_calls"

    def __init__(self, key: str, options: Struct) -> None:
        """Store the key of the metric and its options."""
        self._key, self._options = key, options
        self._score: Score | None = None
        given = {name: getattr(options, name) for name in options.__struct_fields__}
        way = ", ".join(name if value is True else str(value) for name, value in given.items() if value is not False)
        self.metrics = (Metric(key=key, label=LABELS[key], suggested=key == "tool_f1", fingerprint=way),)

    def values(self, query: GoldenQuery, row: RunRow) -> Values | Missing:
        """Return the value for the calls of a row; the worst where none are known because the application failed."""
        if query.answer is None or query.answer.reference_tool_calls is None:
            return ()
        if row.tool_calls is None:
            return Missing(LACKING) if row.error is None else (self.metrics[0].worst,)
        from ragcontract.answers.cannot_score import CannotScoreError
        from ragcontract.answers.finish_reasons import uncalled
        from ragcontract.answers.tool_calls import tool_calls

        if lacking := uncalled(row.tool_calls, row.finish_reason):
            return Missing(lacking)
        try:
            called = tool_calls(row.tool_calls)
        except CannotScoreError as error:
            return Missing(str(error))
        if self._score is None:
            self._score = score_of(self._key, self._options)
        value = self._score(called, cast("Calls", query.answer.reference_tool_calls))
        return () if value is None else (value,)


def score_of(key: str, options: Struct) -> Score:
    """Return the function of a metric with its options."""
    from ragcontract.answers import tool_scores

    if isinstance(options, ToolMatchOptions):
        match, lenient = options.match, options.lenient
        function = {
            "tool_precision": tool_scores.precision,
            "tool_recall": tool_scores.recall,
            "tool_f1": tool_scores.f1,
        }[key]
        return lambda called, wanted: function(called, wanted, match, lenient=lenient)
    if isinstance(options, ToolArgumentsOptions):
        lenient, strict = options.lenient, options.strict_arguments
        return lambda called, wanted: tool_scores.arguments(called, wanted, lenient=lenient, strict=strict)
    return tool_scores.order if key == "tool_order" else tool_scores.step_efficiency
