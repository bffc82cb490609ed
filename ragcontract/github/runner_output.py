"""Output for the runner: annotations, step outputs, and comments and job summaries that fit the size limits.

The formats are those of GitHub's documentation, "Workflow commands for GitHub Actions". Annotations show the reasons
for a verdict at the lines of the contract that they refer to.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from itertools import chain, islice
from pathlib import Path
from typing import Literal

from ragcontract.core import bounds
from ragcontract.core.errors import RagContractError
from ragcontract.core.finding import Finding, sentence
from ragcontract.core.numbers import count, more
from ragcontract.core.phrase import Location, location_of, render
from ragcontract.core.safe_text import clipped, shorten, visible
from ragcontract.files.writing import append
from ragcontract.github.context import Context
from ragcontract.report.markdown import Layout, text
from ragcontract.report.queries import FindingsByQuery, broken_gates, broken_queries, failing_since, not_proven_gates
from ragcontract.report.record import QueryReport, Report

Level = Literal["notice", "warning", "error"]


def annotation(level: Level, message: str, *, title: str = "rag-contract", location: Location | None = None) -> str:
    """Return the workflow command that annotates the job, or a file or its line if ``location`` is set."""
    properties = {} if location is None else {"file": location.path}
    if location is not None and location.line:
        properties["line"] = str(location.line)
    properties["title"] = shorten(_shown(title), bounds.ANNOTATION_TITLE)
    written = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{level} {written}::{_data(shorten(_shown(message), bounds.ANNOTATION))}\n"


def _shown(value: str) -> str:
    return visible(value).replace("##[", r"##\x5b")


def _data(value: str) -> str:
    return _shown(value).replace("%", "%25")


def _property(value: str) -> str:
    return _data(value).replace(":", "%3A").replace(",", "%2C")


def set_outputs(path: Path, outputs: Mapping[str, str]) -> None:
    """Append step outputs to the runner's file; the random delimiter cannot occur in a value."""
    text = ""
    for name, value in outputs.items():
        delimiter = f"end-{os.urandom(16).hex()}"
        text += f"{name}<<{delimiter}\n{value}\n{delimiter}\n"
    append(path, text.encode())


def append_summary(path: Path, markdown: str) -> None:
    """Append Markdown to the job summary."""
    append(path, f"{markdown}\n".encode())


# What reviewers need least is left out first: the trend, most of the lists of results, which are the largest part, all
# folded sections, then the less severe broken queries, and finally all broken queries. Whole parts are left out; text
# is never truncated.
LEVELS = (
    Layout(),
    *(Layout(retrieved=queries, trend=False) for queries in (bounds.ROWS, 20, 5, 0)),
    *(Layout(rows=rows, folds=False, trend=False) for rows in (bounds.ROWS, 50, 20, 10, 5, 2, 0)),
)

Render = Callable[[Layout], str]


def fitting(render: Render, max_bytes: int) -> str:
    """Render in the largest layout that fits into ``max_bytes``, or in the smallest if none does.

    A layout is smaller than those before it, so most of them need not be rendered.
    """
    body = render(LEVELS[0])
    if len(body.encode()) <= max_bytes:
        return body
    fits, rest = "", LEVELS[1:]
    while rest:
        middle = len(rest) // 2
        body = render(rest[middle])
        if len(body.encode()) <= max_bytes:
            fits, rest = body, rest[:middle]
        else:
            rest = rest[middle + 1 :]
    return fits or body


def foot(context: Context, when: str) -> str:
    """Return the footer: the text ``when`` about the time, then links to the run and the commit."""
    parts = [when]
    if context.run_url:
        attempt = f", attempt {context.run[1]}" if context.run[1] > 1 else ""
        parts.append(f"[run {context.run_number or context.run[0]}{attempt}]({context.run_url})")
    if context.commit:
        parts.append(f"commit {context.commit}")
    return f"\n<sub>{' · '.join(parts)}</sub>\n"


def when_checked(report: Report | None, now: datetime) -> str:
    """Return the time of the check and the age of the baseline, for the footer."""
    return " · ".join(filter(None, (f"Checked {minute(now)}", _baseline_age(report))))


def minute(now: datetime) -> str:
    """Format a time to the minute: ``2026-01-02 03:04 UTC``."""
    return f"{now:%Y-%m-%d %H:%M} UTC"


def _baseline_age(report: Report | None) -> str:
    baseline = report.inputs.baseline if report else None
    if report is None or baseline is None or baseline.created_at is None:
        return ""
    if report.history and report.history.baseline:
        return ""  # a note under the verdict has it
    if baseline.age_days is None:  # a hand-made baseline
        return f"baseline made {text(clipped(baseline.created_at, bounds.BASELINE_TIME))}"
    return f"baseline made {count(baseline.age_days, 'day')} ago" if baseline.age_days > 0 else "baseline made today"


# The runner shows ten annotations of each level per step and silently drops the rest. Delivery can add six warnings.
MOST: dict[Level, int] = {"error": bounds.ERRORS, "warning": bounds.WARNINGS}

InRepository = Callable[[str], str]


def of_report(report: Report, level: Level, in_repository: InRepository) -> str:
    """Return annotations for broken gates at their config lines, then broken queries (worst first) and warnings.

    Changes over their limits that do not fail come first among the warnings, at their config lines as well.
    ``in_repository`` converts a path of the report to one relative to the repository.
    """
    failed, not_proven, findings = broken_gates(report), not_proven_gates(report), FindingsByQuery(report)
    broken = broken_queries(report)
    # Generators, because there can be many thousands and each location searches the disk for its repository.
    gates = (_of_gate(finding, level, in_repository) for finding in failed)
    queries = (
        _of_query(
            query, findings.failing(query.id), render(failing_since(report, query, findings)), level, in_repository
        )
        for query in broken
    )
    warnings = chain(
        (_of_gate(finding, "warning", in_repository) for finding in not_proven),
        (annotation("warning", message) for message in report.warnings),
    )
    reasons, warned = len(failed) + len(broken), len(not_proven) + len(report.warnings)
    if level == "warning":
        return "".join(_capped(chain(gates, queries, warnings), reasons + warned, "warning"))
    return "".join([*_capped(chain(gates, queries), reasons, level), *_capped(warnings, warned, "warning")])


def of_problems(error: RagContractError, in_repository: InRepository) -> str:
    """Return annotations for the problems of input that cannot be judged, at the file and line in their messages.

    Warnings are included because they often explain a problem: a misspelled field explains a missing one.
    """
    problems = [
        annotation("error", problem, location=_in(in_repository, location_of(problem))) for problem in error.problems
    ]
    warned = [annotation("warning", warning) for warning in error.warnings]
    where = "the job's summary has more of them"  # but not always all of them; there is no report
    return "".join(
        [
            *_capped(problems, len(problems) + error.more, "error", where),
            *_capped(warned, len(warned), "warning", where),
        ]
    )


def _of_gate(finding: Finding, level: Level, in_repository: InRepository) -> str:
    message = f"{sentence(finding)}{f': {finding.why}' if finding.why else ''}"
    return annotation(
        level, message, title=finding.ids[0], location=_in(in_repository, Location.of_report(finding.location))
    )


def _of_query(
    query: QueryReport, findings: Iterable[Finding], age: str, level: Level, in_repository: InRepository
) -> str:
    parts = [f"Expected {render(finding.expected)}. Found: {render(finding.found)}." for finding in findings]
    location = _in(in_repository, Location.of_report(query.location))
    title = f"Broken query {query.id}{f' ({age})' if age else ''}"
    return annotation(level, " ".join(parts), title=title, location=location)


def _in(in_repository: InRepository, location: Location | None) -> Location | None:
    """Return a location with its path relative to the repository."""
    return None if location is None else Location(in_repository(location.path), location.line)


def _capped(commands: Iterable[str], count: int, level: Level, where: str = "the report has them all") -> Iterator[str]:
    """Yield as many of the ``count`` commands as the runner shows; the last one says ``where`` the others are."""
    most = MOST[level]
    if count <= most:
        yield from commands
    else:
        yield from islice(commands, most - 1)
        yield annotation(level, more(count, most - 1, form=f"… and {{}} like these; {where}"))
