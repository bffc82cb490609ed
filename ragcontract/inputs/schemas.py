"""The JSON Schemas of the five formats, by name, each made from the record that reads or writes it."""

from collections.abc import Callable
from typing import Any

from ragcontract.inputs.baseline import BaselineFile
from ragcontract.inputs.config import Config, Drops, FailOn, Minimums
from ragcontract.inputs.golden import GoldenRow
from ragcontract.inputs.run import RunRow
from ragcontract.inputs.schema import json_schema
from ragcontract.model import Report

SCHEMAS: dict[str, Callable[[], dict[str, Any]]] = {
    "golden": lambda: json_schema(GoldenRow),
    "run": lambda: json_schema(RunRow),
    "baseline": lambda: json_schema(BaselineFile),
    "config": lambda: json_schema(Config, FailOn, Drops, Minimums, null_is_absent=True),
    "report": lambda: json_schema(Report),
}
