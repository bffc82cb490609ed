"""Read the scores of Inspect (inspect_ai) from its logs as JSON.

Each epoch of a sample is a row. Inspect leaves samples without a score out of its means; here their score is null.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from ragcontract.convert.collection import Collection, Source, of_scores
from ragcontract.convert.input_files import documents
from ragcontract.convert.measured import Measured, ScoreRows, as_number, error_text, score_rows
from ragcontract.core import bounds
from ragcontract.core.ids import Id
from ragcontract.core.phrase import Location
from ragcontract.core.safe_text import shorten
from ragcontract.files.problems import Collector
from ragcontract.files.schema import shown

VERSION = 2
AS_JSON = "inspect log convert FILE --to json --output-dir FOLDER"
GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0, "yes": 1.0, "no": 0.0}  # as in Inspect's own means


class Score(Struct, frozen=True, kw_only=True):
    """The result of one scorer."""

    value: Any = None
    explanation: str | None = None
    reason: str | None = None


class Sample(Struct, frozen=True, kw_only=True):
    """One epoch of a sample."""

    id: Id
    input: Any = None
    scores: dict[str, Score] | None = None
    error: Any = None
    invalidation: Any = None  # who set the sample aside, and why


class InspectEvaluation(Struct, frozen=True, kw_only=True):
    """About the evaluation."""

    packages: dict[str, str] | None = None


class Log(Struct, frozen=True, kw_only=True):
    """The whole file."""

    version: int | None = None
    status: str | None = None
    eval: InspectEvaluation | None = None
    samples: list[msgspec.Raw] | None = None


def read(source: Source) -> Collection:
    """Read ``results`` files."""
    rows, problems = score_rows(source), source.problems
    zipped = f"write the log as JSON: `{AS_JSON}`"
    for file, log in documents(source, Log, zipped=zipped):
        if log.version != VERSION:
            message = f"expected {VERSION}, found {shown(log.version)}; write it with a current Inspect: `{AS_JSON}`"
            problems.problem(f"{file.path}: version", message)
            continue
        if log.samples is None:
            message = "is missing; was the log written with its header only, or without samples (log_samples)?"
            problems.problem(f"{file.path}: samples", message)
            continue
        if log.status != "success":
            problems.warning(f"{file.path}: the evaluation ended as {shown(log.status)}; samples may be missing")
        version = (log.eval.packages or {}).get("inspect_ai") if log.eval else None
        for location, sample in file.items(log.samples, Sample, problems, after=b"samples"):
            _add(sample, location, f"inspect_ai {version}" if version else "inspect_ai", rows, problems)
    nothing = "has no scores; was the evaluation run with --no-score? `inspect score FILE` adds them"
    return rows.collection(source.files["results"], nothing)


def _add(sample: Sample, location: Location, tool: str, rows: ScoreRows, problems: Collector) -> None:
    scores: dict[str, float | None] = {}
    failed = _error(sample)
    for scorer, score in (sample.scores or {}).items():
        for name, value in _values(scorer, score):
            try:
                scores[name] = _number(value) if failed is None else None
            except ValueError as error:
                problems.problem(location.at(f"scores.{shorten(scorer, bounds.NAME)}.value"), f"{error}; or C, I, P, N")
    rows.add(
        Measured(
            location=location,
            id=sample.id,
            question=sample.input if isinstance(sample.input, str) and sample.input else None,
            question_field="input",
            scores=scores,
            reasons=dict(_reasons(sample.scores or {})),
            scored_by=tool,
            error=failed,
        )
    )


def _error(sample: Sample) -> str | None:
    if sample.error is not None:
        return error_text(sample.error)
    return None if sample.invalidation is None else error_text(sample.invalidation, "invalidated")


def _values(scorer: str, score: Score) -> Iterator[tuple[str, object]]:
    """Yield the names and values of a score; those of several values are such as ``scorer.part``."""
    if isinstance(score.value, dict):
        yield from ((f"{scorer}.{part}", value) for part, value in score.value.items())
    else:
        yield scorer, score.value


def _reasons(scores: dict[str, Score]) -> Iterator[tuple[str, str]]:
    for scorer, score in scores.items():
        if text := score.explanation or score.reason:
            yield from ((name, text) for name, _ in _values(scorer, score))


def _number(value: object) -> float | None:
    grade = GRADES.get(value, GRADES.get(value.lower())) if isinstance(value, str) else None
    return as_number(value) if grade is None else grade


FORMAT = of_scores(read)
