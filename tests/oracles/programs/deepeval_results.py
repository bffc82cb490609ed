"""Evaluates the rows on standard input with metrics of deepeval that need no model; saves the test run in a folder.

Run by the environment of `make test-oracles`. deepeval prints its averages as a table.
"""

import json
import os
import sys
from typing import Any

os.environ |= {"DEEPEVAL_RESULTS_FOLDER": sys.argv[1], "DEEPEVAL_TELEMETRY_OPT_OUT": "YES", "COLUMNS": "200"}

from deepeval import evaluate
from deepeval.evaluate import AsyncConfig, DisplayConfig, ErrorConfig
from deepeval.metrics import BaseMetric, ExactMatchMetric
from deepeval.test_case import LLMTestCase


class SharedWords(BaseMetric):
    """The share of the expected words that the answer has; an error if there is no answer."""

    def __init__(self) -> None:
        self.threshold, self.async_mode, self.strict_mode, self.evaluation_model = 0.5, False, False, "words"

    def measure(self, test_case: LLMTestCase, *_: Any, **__: Any) -> float:
        found, wanted = set(test_case.actual_output.split()), set(test_case.expected_output.split())
        if not found:
            raise ValueError("no answer")
        self.score = len(found & wanted) / len(wanted)
        self.success, self.reason = self.score >= self.threshold, f"{len(found & wanted)} of {len(wanted)} words"
        return self.score

    async def a_measure(self, test_case: LLMTestCase, *_: Any, **__: Any) -> float:
        return self.measure(test_case)

    def is_successful(self) -> bool:
        return bool(self.success)

    @property
    def __name__(self) -> str:
        return "Shared Words (v2)"


evaluate(
    [
        LLMTestCase(
            name=row.get("id"), input=row["user_input"], actual_output=row["response"], expected_output=row["reference"]
        )
        for row in json.load(sys.stdin)
    ],
    metrics=[ExactMatchMetric(), SharedWords()],
    async_config=AsyncConfig(run_async=False),
    display_config=DisplayConfig(show_indicator=False),
    error_config=ErrorConfig(ignore_errors=True),
)
