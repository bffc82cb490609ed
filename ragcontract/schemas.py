"""The JSON Schemas of the five formats, by name, each made from the record that reads or writes it."""

from collections.abc import Callable
from typing import Any

from ragcontract.contract.config import Config, Drops, FailOn, Minimums
from ragcontract.contract.golden_file import GoldenRow
from ragcontract.files.schema import json_schema
from ragcontract.model import Report
from ragcontract.runs.run_file import RunRow
from ragcontract.runs.stored import BaselineFile

SCHEMAS: dict[str, Callable[[], dict[str, Any]]] = {
    "golden": lambda: json_schema(GoldenRow),
    "run": lambda: json_schema(RunRow),
    "baseline": lambda: json_schema(BaselineFile),
    "config": lambda: json_schema(Config, FailOn, Drops, Minimums, null_is_absent=True),
    "report": lambda: json_schema(Report),
}
