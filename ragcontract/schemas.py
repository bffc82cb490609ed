"""The JSON Schemas of the file formats, generated from the records that read or write them."""

from collections.abc import Callable, Iterable
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from ragcontract.contract.config import DEFAULT_K, config_record
from ragcontract.contract.declared import NAME, names_taken
from ragcontract.contract.golden_row import typed_record
from ragcontract.contract.limits import AT_K, limit_keys, sections
from ragcontract.core.gate import LevelPercentage, LimitKey, Percentage
from ragcontract.core.lines import Line
from ragcontract.core.metric import MetricSettings
from ragcontract.core.rule import RowRule
from ragcontract.core.run import row_type
from ragcontract.files.schema import json_schema
from ragcontract.judgments.calibration import CalibrationFile
from ragcontract.judgments.judgments_file import Judgment
from ragcontract.metrics.named_scores import DeclaredScore
from ragcontract.registry import BUILT_IN, Registry
from ragcontract.report.comparison import RunComparison
from ragcontract.report.rank_changes import DiffReport
from ragcontract.report.record import ErrorReport, Report
from ragcontract.rules.turns import InTurns
from ragcontract.runs.baseline_file import BaselineFile
from ragcontract.runs.scores_files import ScoresRow

# With a declared score, because run rows have a field for them.
_SETTINGS = MetricSettings(cutoffs=(DEFAULT_K,), declared={"faithfulness": DeclaredScore(source="scores")})
_NUMBER = msgspec.json.schema(float)
_CHANGE = msgspec.json.schema(Annotated[float, Meta(ge=0)] | Percentage)
_LEVEL_CHANGE = msgspec.json.schema(Annotated[float, Meta(ge=0)] | LevelPercentage)
_DECLARED = {"$ref": "#/$defs/DeclaredScore"}

_SECTIONS = {
    "Drops": "fail_on",
    "FailOn": "fail_on",
    "LevelDrops": "history",
    "HistoryLimits": "history",
    "Minimums": "minimums",
    "TagMinimums": "minimums",
    "Maximums": "maximums",
    "TagMaximums": "maximums",
}


def schema_of(name: str, registry: Registry = BUILT_IN) -> dict[str, Any]:
    """Return the schema of a format. A check is stricter than the schema of configurations, which ignores ``k``."""
    return SCHEMAS[name](registry)


def _config(registry: Registry) -> dict[str, Any]:
    keys = limit_keys(registry, [DEFAULT_K])
    generic = [key for key in keys if not AT_K.search(key.name)]
    record = config_record(registry, generic)
    schema = json_schema(record)
    _refuse_null(schema["$defs"], record)
    for definition, section in _SECTIONS.items():
        patterns = _patterns(definition, [key for key in keys if key.section == section])
        if definition in schema["$defs"] and patterns:
            schema["$defs"][definition]["patternProperties"] = patterns
    _allow_declared(schema["$defs"], names_taken(keys))
    return schema


def _refuse_null(definitions: dict[str, Any], config: type[Struct]) -> None:
    """Refuse keys without a value, except for those of sections and lists."""
    null = {"type": "null"}
    for definition in definitions.values():
        for field in definition.get("properties", {}).values():
            if "anyOf" in field:
                field["anyOf"] = [branch for branch in field["anyOf"] if branch != null]
            if field.get("default", ...) is None:  # nobody can write a value that means absent
                del field["default"]
    for record in (config, *filter(None, sections(config).values())):
        properties = definitions[record.__name__]["properties"]
        for name in sections(record):
            properties[name] = {"anyOf": [properties[name], null]}


def _allow_declared(definitions: dict[str, Any], taken: Iterable[str]) -> None:
    """Allow any name that a configuration could declare. Only a check knows whether it does declare it.

    Names that are ``taken`` by built-in metrics are not allowed, with or without a cut-off.
    """
    weaker = "A check is stricter: other metrics must be declared under `metrics`, and limits fit their scale."
    built_in = "|".join(sorted(taken))
    for name, end, limit in (
        ("Minimums", "", _NUMBER),
        ("Maximums", "", _NUMBER),
        ("TagMinimums", "", _NUMBER),
        ("TagMaximums", "", _NUMBER),
        ("Drops", "_(drop|rise)_gt", _CHANGE),
        ("FailOn", "_(drop|rise)_gt", _CHANGE),
        ("LevelDrops", "_(drop|rise)_gt", _LEVEL_CHANGE),
        ("HistoryLimits", "_(drop|rise)_gt", _LEVEL_CHANGE),
    ):
        pattern = f"^(?!({built_in})(_at_[0-9k]+)?{end}$){NAME}{end}$"
        if name in definitions:
            definitions[name].setdefault("patternProperties", {})[pattern] = {**limit, "description": weaker}
    definitions |= msgspec.json.schema(DeclaredScore)["$defs"]
    metrics = definitions["Metrics"]
    metrics["patternProperties"] = {f"^(?!({'|'.join(metrics['properties'])})$){NAME}$": _DECLARED}


def _patterns(definition: str, keys: list[LimitKey]) -> dict[str, Any]:
    """Return patterns for keys that name a cut-off, like ``recall_at_1``, with the schema of the key without one."""
    patterns = {}
    for key in keys:
        if AT_K.search(key.name):
            generic = next(other.name for other in keys if other.quantity == key.quantity and other.name != key.name)
            pattern = AT_K.sub("_at_[1-9][0-9]*", key.name)
            patterns[f"^{pattern}$"] = {"$ref": f"#/$defs/{definition}/properties/{generic}"}
    return patterns


def _run(registry: Registry) -> dict[str, Any]:
    metrics = [family for provider in registry.providers for family in provider(_SETTINGS)]
    needs = frozenset().union(
        *(family.needs for family in metrics),
        *(rule.needs | InTurns.needs for line in registry.rules if issubclass(rule := line.load(), RowRule)),
    )
    return json_schema(row_type(needs, results_required=False))


def _report(registry: Registry) -> dict[str, Any]:
    (judged, error), definitions = msgspec.json.schema_components([Report, ErrorReport], ref_template="#/$defs/{name}")
    names = sorted({name for line in registry.rules for name in line.names})
    definitions["ViolationReport"]["properties"]["rule"]["enum"] = names
    draft = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": draft, "anyOf": [judged, error], "$defs": definitions}


# These belong to layers that few commands need.
_TARGETS: Line[Callable[[], dict[str, Any]]] = Line(home="ragcontract.record.target:schema")
_ENTRY: Line[type[Struct]] = Line(home="ragcontract.history.entry:Entry")
_LABELS: Line[type[Struct]] = Line(home="ragcontract.judge.calibration_run:LabelRow")
SCHEMAS: dict[str, Callable[[Registry], dict[str, Any]]] = {
    "golden": lambda registry: json_schema(typed_record(registry)),
    "run": _run,
    "scores": lambda _registry: json_schema(ScoresRow),
    "judgments": lambda _registry: json_schema(Judgment),
    "calibration": lambda _registry: json_schema(CalibrationFile),
    "labels": lambda _registry: json_schema(_LABELS.load()),
    "baseline": lambda _registry: json_schema(BaselineFile),
    "config": _config,
    "record": lambda _registry: _TARGETS.load()(),
    "report": _report,
    "history": lambda _registry: json_schema(_ENTRY.load()),
    "diff": lambda _registry: json_schema(DiffReport),
    "comparison": lambda _registry: json_schema(RunComparison),
}
