"""Read the scores and checks of promptfoo, from what ``promptfoo eval -o out.json`` writes.

Only assertions with a ``metric`` have a name, under which promptfoo reports them, too. A result that is an error of the
provider has no scores: promptfoo leaves it out of a metric's score, and here it is null.

The score of a metric is the weighted mean of its assertions. Versions that do not write the weights may have the sum
instead: if one of two assertions passes, the score is then 1.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from ragcontract.convert.collection import Collection, Source, of_scores
from ragcontract.convert.input_files import Document, documents
from ragcontract.convert.measured import Measured, ScoreRows, error_text, score_rows
from ragcontract.core import bounds
from ragcontract.core.numbers import count
from ragcontract.core.phrase import Location
from ragcontract.core.questions import COLUMNS, column_name
from ragcontract.core.safe_text import shorten
from ragcontract.files.problems import Collector
from ragcontract.files.schema import shown
from ragcontract.runs.scores_files import Check

VERSION = 3
ERROR = 2  # the failure reason of an error; that of a failed assertion is 1, and it has an ``error``, too
ZIPPED = "expected what `promptfoo eval -o out.json` writes"


class Component(Struct, frozen=True, kw_only=True):
    """The result of one assertion."""

    passed: bool = msgspec.field(name="pass")
    score: float | None = None
    reason: str | None = None
    assertion: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None

    @property
    def metric(self) -> str | None:
        """The metric's name that the configuration gives the assertion, or its set of assertions."""
        of_a_set = (self.metadata or {}).get("assertionSet")
        name = (self.assertion or {}).get("metric") or (of_a_set.get("metric") if isinstance(of_a_set, dict) else None)
        return name if isinstance(name, str) else None

    @property
    def weight(self) -> float:
        """The weight of the assertion in the mean of its metric."""
        weight = (self.assertion or {}).get("weight")
        return weight if isinstance(weight, int | float) and not isinstance(weight, bool) and weight > 0 else 1


class Grading(Struct, frozen=True, kw_only=True):
    """The results of all assertions."""

    componentResults: list[Component] | None = None  # noqa: N815
    namedScoreWeights: dict[str, float | None] | None = None  # noqa: N815


class PromptfooCase(Struct, frozen=True, kw_only=True):
    """A test of the configuration."""

    description: str | None = None
    metadata: dict[str, Any] | None = None


class Result(Struct, frozen=True, kw_only=True):
    """The result of one test with one prompt and one provider."""

    vars: dict[str, Any] | None = None
    testCase: PromptfooCase | None = None  # noqa: N815
    description: str | None = None
    namedScores: dict[str, float | None] | None = None  # noqa: N815
    gradingResult: Grading | None = None  # noqa: N815
    error: str | None = None
    failureReason: int | None = None  # noqa: N815
    promptIdx: int = 0  # noqa: N815


class Results(Struct, frozen=True, kw_only=True):
    """All results, still encoded."""

    version: int | None = None
    results: list[msgspec.Raw] | None = None


class Metadata(Struct, frozen=True, kw_only=True):
    """About the evaluation."""

    promptfooVersion: str | None = None  # noqa: N815


class Output(Struct, frozen=True, kw_only=True):
    """The whole file."""

    results: Results
    metadata: Metadata | None = None


def read(source: Source) -> Collection:
    """Read ``results`` files."""
    rows, problems = score_rows(source), source.problems
    for file, output in documents(source, Output, zipped=ZIPPED):
        if output.results.version != VERSION or output.results.results is None:
            actual = shown(output.results.version)
            problems.problem(
                f"{file.path}: results.version",
                f"expected {VERSION}, found {actual}; write it with a current promptfoo: `promptfoo eval -o out.json`",
            )
            continue
        version = output.metadata.promptfooVersion if output.metadata else None
        _add_all(file, output.results.results, f"promptfoo {version}" if version else "promptfoo", rows, problems)
    nothing = "has no scores; give the assertions a `metric`, under which promptfoo reports them"
    return rows.collection(source.files["results"], nothing)


def _add_all(file: Document, encoded: list[msgspec.Raw], tool: str, rows: ScoreRows, problems: Collector) -> None:
    first: int | None = None
    for location, result in file.items(encoded, Result, problems, after=b"results"):
        first = result.promptIdx if first is None else first
        if result.promptIdx != first:
            message = (
                "the file has results of several prompts or providers, whose scores would be mixed; "
                "evaluate one, with --filter-prompts and --filter-providers"
            )
            problems.problem(location, message)
            return
        _add(result, location, tool, rows, problems)


def _add(result: Result, location: Location, tool: str, rows: ScoreRows, problems: Collector) -> None:
    values, case = result.vars or {}, result.testCase or PromptfooCase()
    scores = {} if _failed(result) else dict(_means(result, location, problems))
    query_id = values.get("query_id", (case.metadata or {}).get("query_id"))
    rows.add(
        Measured(
            location=location,
            id=query_id if isinstance(query_id, str | int) else case.description or result.description,
            id_field="vars.query_id",
            question=next(_questions(values), None),
            question_field="vars",
            scores={**(result.namedScores or {}), **scores},
            checks=_checks(result.gradingResult),
            scored_by=tool,
            error=error_text(result.error) if _failed(result) else None,
        )
    )


def _failed(result: Result) -> bool:
    """Return whether the provider had an error; older versions do not say so, but grade nothing then."""
    if result.failureReason is None:
        return bool(result.error) and result.gradingResult is None
    return result.failureReason == ERROR


def _questions(values: dict[str, Any]) -> Iterator[str]:
    """Yield the values of variables with the name of a question column, best name first."""
    named = {column_name(name): value for name, value in values.items()}
    yield from (named[name] for name in COLUMNS if isinstance(named.get(name), str) and named[name])


def _means(result: Result, location: Location, problems: Collector) -> Iterator[tuple[str, float]]:
    """Yield the mean of each metric over its assertions, unless the file has the weights."""
    grading, components = result.gradingResult or Grading(), dict[str, list[Component]]()
    for component in grading.componentResults or []:
        if component.metric is not None:
            components.setdefault(component.metric, []).append(component)
    for name, score in (result.namedScores or {}).items():
        of_metric = components.get(name, [])
        if score is None or not of_metric or name in (grading.namedScoreWeights or {}):
            continue
        mean = _mean_if(score, of_metric)
        if mean is None:
            problems.problem(
                location.at(f"namedScores.{name}"),
                f"is {shown(score)}, neither the mean nor the sum of its {count(len(of_metric), 'assertion')} "
                "(componentResults); "
                "evaluate with a current promptfoo, which writes namedScoreWeights",
            )
        else:
            yield name, mean


def _mean_if(score: float, components: Sequence[Component]) -> float | None:
    """Return the weighted mean of assertions if the score is their mean or sum, weighted or not; otherwise None."""
    if any(component.score is None for component in components):
        return None
    plain = [component.score or 0 for component in components]
    weighted = [value * component.weight for value, component in zip(plain, components, strict=True)]
    mean = sum(weighted) / sum(component.weight for component in components)
    expected = (mean, sum(weighted), sum(plain), sum(plain) / len(plain))
    return mean if any(math.isclose(score, value, rel_tol=1e-9, abs_tol=1e-9) for value in expected) else None


def _checks(grading: Grading | None) -> dict[str, Check]:
    """Return the checks by metric; of several for one metric, the first that failed, otherwise the first."""
    checks: dict[str, Check] = {}
    for component in (grading.componentResults if grading else None) or []:
        name = component.metric
        if name is not None and (name not in checks or (checks[name].passed and not component.passed)):
            reason = None if component.passed else shorten(component.reason or "", bounds.SCORE_REASON)
            checks[name] = Check(passed=component.passed, reason=reason)
    return checks


FORMAT = of_scores(read)
