"""Annotations: show the reasons for a verdict at the lines of the contract that they refer to."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice

from ragcontract.core import bounds
from ragcontract.core.errors import RagContractError
from ragcontract.core.finding import Finding, sentence
from ragcontract.core.phrase import render
from ragcontract.github.commands import Level, annotation
from ragcontract.reports.broken import FindingsByQuery, broken_gates, broken_queries, failing_since, not_proven_gates
from ragcontract.reports.report import QueryReport, Report

# The runner shows ten annotations of each level per step and silently drops the rest. Delivery can add six warnings.
MOST: dict[Level, int] = {"error": bounds.ERRORS, "warning": bounds.WARNINGS}

InRepository = Callable[[str], str]


def of_report(report: Report, level: Level, in_repository: InRepository) -> str:
    """Return annotations for broken gates at their config lines, then broken queries (worst first) and warnings.

    Changes over their limits that do not fail come first among the warnings, at their config lines as well.
    ``in_repository`` converts a location of the report to one relative to the repository.
    """
    failed, not_proven, findings = broken_gates(report), not_proven_gates(report), FindingsByQuery(report)
    broken = broken_queries(report)
    # Generators, because there can be many thousands and each location searches the disk for its repository.
    gates = (_of_gate(finding, level, in_repository) for finding in failed)
    queries = (
        _of_query(query, findings.failing(query.id), failing_since(report, query, findings), level, in_repository)
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
    placed = [(problem, _location(problem)) for problem in error.problems]
    found = [
        annotation("error", problem, location=in_repository(location) if location else "")
        for problem, location in placed
    ]
    warned = [annotation("warning", warning) for warning in error.warnings]
    where = "the job's summary has more of them"  # though not always all of them; there is no report
    return "".join(
        [
            *_capped(found, len(found) + error.more, "error", where),
            *_capped(warned, len(warned), "warning", where),
        ]
    )


def _of_gate(finding: Finding, level: Level, in_repository: InRepository) -> str:
    message = f"{sentence(finding)}{f': {finding.why}' if finding.why else ''}"
    return annotation(level, message, title=finding.ids[0], location=in_repository(finding.location))


def _of_query(
    query: QueryReport, findings: Iterable[Finding], age: str, level: Level, in_repository: InRepository
) -> str:
    parts = [f"Expected {render(one.expected)}. Found: {render(one.found)}." for one in findings]
    location = in_repository(query.location)
    title = f"Broken query {query.id}{f' ({age})' if age else ''}"
    return annotation(level, " ".join(parts), title=title, location=location)


def _location(problem: str) -> str:
    """Return the location in a message: ``golden.jsonl:17`` from ``golden.jsonl:17: relevant_doc_ids: is missing``."""
    location, colon, _ = problem.partition(": ")
    return location if colon and location.rpartition(":")[2].isdecimal() else ""


def _capped(commands: Iterable[str], count: int, level: Level, where: str = "the report has them all") -> Iterator[str]:
    """Yield as many of the ``count`` commands as the runner shows; the last one says ``where`` the others are."""
    most = MOST[level]
    if count <= most:
        yield from commands
    else:
        yield from islice(commands, most - 1)
        yield annotation(level, f"… and {count - most + 1:,} more like these; {where}")
