"""The registry of metrics, rules and limited quantities. A new one needs a module and a line here.

The registry is passed as an argument; there is no global registration. Other things that can be added have tables of
the same lines where they belong: commands, report formats, formats of rows, targets of ``record``, formats of
``convert``.
"""

from collections.abc import Container, Mapping

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.core.gate import LimitKey
from ragcontract.core.lines import Line
from ragcontract.core.metric import Provider
from ragcontract.core.rule import Rule
from ragcontract.statistics.quantities import LABELS, LATENCY, PASS_RATES

Options = Mapping[str, type[Struct]]  # by metric, the record of its entry under ``metrics``


class Registry(Struct, frozen=True, kw_only=True):
    """The metrics, rules and limits that a contract can name, in the order in which reports show them."""

    metrics: tuple[Line[Provider], ...]  # a line names the keys of its metrics, without cut-offs
    rules: tuple[Line[type[Rule]], ...]  # those without golden fields are entries of ``rules`` in golden rows
    options: tuple[Line[Options], ...] = ()  # metrics that have options in a configuration
    quantities: tuple[LimitKey, ...] = ()  # limits on other quantities than metrics

    @property
    def providers(self) -> list[Provider]:
        """What provides the families of metrics."""
        return [line.load() for line in self.metrics]

    @property
    def entries(self) -> list[Line[type[Rule]]]:
        """The lines of the rules that are entries of ``rules`` in golden rows."""
        return [line for line in self.rules if not line.fields]

    @property
    def option_names(self) -> list[str]:
        """The metrics that have options."""
        return [name for line in self.options for name in line.names]

    def option_records(self) -> dict[str, type[Struct]]:
        """Return the records of options, by metric."""
        return {name: record for line in self.options for name, record in line.load().items()}

    def naming(self, names: Container[str]) -> "Registry":
        """Return the registry with the metrics that a contract with these names and golden fields has."""
        metrics, options = ([line for line in lines if line.is_named(names)] for lines in (self.metrics, self.options))
        return replace(self, metrics=tuple(metrics), options=tuple(options))


TEXT_RECALL = ("context_recall_ids", "context_recall_text")
TOOLS = ("tool_precision", "tool_recall", "tool_f1", "tool_arguments", "tool_order", "step_efficiency")
SIMILARITY = ("rouge_l", "bleu", "chrf", "exact_match")


def _rule(home: str, *names: str, field: str = "", always: bool = False) -> Line[type[Rule]]:
    return Line(names=names, home=f"ragcontract.rules.{home}", fields=(field,) if field else (), always=always)


BUILT_IN = Registry(
    metrics=(
        Line(home="ragcontract.metrics.ranking:ranking", always=True),
        Line(home="ragcontract.metrics.judged:judged", always=True),
        Line(home="ragcontract.metrics.overlap:overlap", always=True),
        Line(
            names=("mode_accuracy", "false_answer_rate", "over_refusal_rate"),
            home="ragcontract.metrics.answers:modes",
            fields=("expected_mode",),
        ),
        Line(names=("label_accuracy",), home="ragcontract.metrics.answers:labels", fields=("expected_label",)),
        Line(
            names=TEXT_RECALL, home="ragcontract.metrics.context_recall:context_recall", fields=("reference_contexts",)
        ),
        Line(names=("context_recall",), home="ragcontract.judgments.judged_metrics:supported_claims"),
        Line(names=("criteria_met",), home="ragcontract.judgments.judged_metrics:criteria_met"),
        Line(names=TOOLS, home="ragcontract.metrics.tool_use:tool_use", fields=("reference_tool_calls",)),
        Line(names=SIMILARITY, home="ragcontract.metrics.answers:similarity"),
        Line(home="ragcontract.metrics.named_scores:scores", always=True),
    ),
    options=(
        Line(names=TEXT_RECALL, home="ragcontract.metrics.context_recall:OPTIONS"),
        Line(names=TOOLS, home="ragcontract.metrics.tool_use:OPTIONS"),
        Line(names=SIMILARITY, home="ragcontract.metrics.answers:OPTIONS"),
    ),
    rules=(
        _rule("ranks:ForbiddenDocs", "forbidden_docs", field="forbidden_doc_ids", always=True),
        _rule("ranks:MustRankAtMost", "must_rank_at_most", field="must_rank_at_most", always=True),
        _rule("ranks:MustInclude", "must_include", "must_include_any", field="relevant_doc_ids", always=True),
        _rule("answered:Answered", "answered", field="rules"),
        _rule("text:AnswerMustInclude", "answer_must_include", field="answer_must_include"),
        _rule("text:MustContain", "must_contain"),
        _rule("text:MustNotContain", "must_not_contain"),
        _rule("text:RegexMustMatch", "regex_must_match"),
        _rule("text:RegexMustNotMatch", "regex_must_not_match"),
        _rule("claims:ForbiddenClaims", "forbidden_claims", field="forbidden_claims"),
        _rule("claims:RequiredElements", "required_elements", field="required_elements"),
        _rule("claims:ForbiddenElements", "forbidden_elements", field="forbidden_elements"),
        _rule("refusal:MustRefuse", "must_refuse"),
        _rule("refusal:MustNotRefuse", "must_not_refuse"),
        _rule("text:JsonSchema", "json_schema"),
        _rule("code:CodeParses", "code_parses"),
        _rule("leaks:MustNotLeak", "must_not_leak"),
        _rule("text:MaxChars", "max_chars"),
        _rule("citations:MustCite", "must_cite"),
        _rule("tools:MustCallTool", "must_call_tool"),
        _rule("tools:MustNotCallTool", "must_not_call_tool"),
        _rule("tools:ToolArgumentsValid", "tool_arguments_valid"),
        _rule("custom:Check", "check"),
        _rule("custom:Custom", "custom"),
        _rule("answered:ExpectedMode", "expected_mode", field="expected_mode"),
        _rule("scores:MinScore", "min_score"),
        _rule("scores:MaxScore", "max_score"),
        _rule("scores:MaxHallucinationRisk", "max_hallucination_risk"),
        _rule("scores:CompositeMinimum", "composite"),
    ),
    quantities=(*PASS_RATES, *LABELS, *LATENCY),
)
