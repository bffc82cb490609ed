"""Read the scores of deepeval, which saves its test runs in the folder that ``DEEPEVAL_RESULTS_FOLDER`` names.

deepeval leaves a metric that raised an error out of its average; here the score is null.
"""

import re
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from ragcontract.convert.collection import Collection, Source, of_scores
from ragcontract.convert.input_files import documents
from ragcontract.convert.measured import Measured, ScoreRows, error_text, score_rows
from ragcontract.core.phrase import Location
from ragcontract.files.json_text import first_doubled
from ragcontract.files.problems import Collector

ZIPPED = "expected a test run of deepeval, such as test_run_20260131_120000.json"
# The names that deepeval gives to test cases without one.
_DEFAULT = re.compile(r"(conversational_)?test_case_[0-9]+")


class MetricData(Struct, frozen=True, kw_only=True):
    """The result of one metric."""

    name: str
    score: float | None = None
    reason: str | None = None
    error: str | None = None
    evaluationModel: str | None = None  # noqa: N815


class SavedCase(Struct, frozen=True, kw_only=True):
    """A test case; a conversation has no input."""

    name: str | None = None
    input: str | None = None
    metricsData: list[MetricData] | None = None  # noqa: N815


class SavedRun(Struct, frozen=True, kw_only=True):
    """A saved test run."""

    testCases: Annotated[list[msgspec.Raw], Meta(title="a list of test cases")]  # noqa: N815
    conversationalTestCases: list[msgspec.Raw] = []  # noqa: N815


def read(source: Source) -> Collection:
    """Read ``results`` files."""
    rows, problems = score_rows(source), source.problems
    for file, run in documents(source, SavedRun, zipped=ZIPPED):
        for name in ("testCases", "conversationalTestCases"):
            for location, case in file.items(getattr(run, name), SavedCase, problems, after=name.encode()):
                _add(case, location, rows, problems)
    nothing = "has no scores; expected testCases with metricsData, as deepeval saves them in DEEPEVAL_RESULTS_FOLDER"
    return rows.collection(source.files["results"], nothing)


def _add(case: SavedCase, location: Location, rows: ScoreRows, problems: Collector) -> None:
    metrics = case.metricsData or []
    if repeated := first_doubled([metric.name for metric in metrics]):
        problems.problem(location.at("metricsData"), f"has several metrics {repeated!r}; give each a name of its own")
        return
    own_name = case.name if case.name and not _DEFAULT.fullmatch(case.name) else None
    if own_name is None and not case.input:
        message = "is not given by you, and there is no input to use instead; name each test case as its golden query"
        problems.problem(location.at("name"), message)
        return
    judges = dict.fromkeys(metric.evaluationModel for metric in metrics if metric.evaluationModel)
    rows.add(
        Measured(
            location=location,
            id=own_name,
            id_field="name",
            question=case.input or None,
            question_field="input",
            scores={metric.name: metric.score if metric.error is None else None for metric in metrics},
            reasons={metric.name: text for metric in metrics if (text := _reason(metric))},
            scored_by=f"deepeval ({', '.join(judges)})" if judges else "deepeval",
        )
    )


def _reason(metric: MetricData) -> str | None:
    return metric.reason if metric.error is None else error_text(metric.error)


FORMAT = of_scores(read)
