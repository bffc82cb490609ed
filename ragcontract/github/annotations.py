"""Annotations: the reasons for a verdict, at the lines of the contract that they are about."""

from collections.abc import Callable, Iterator, Sequence

from ragcontract.github.commands import Level, annotation
from ragcontract.model import QueryReport, Report
from ragcontract.reports.findings import findings
from ragcontract.reports.movement import loss

# Of each level in a step the runner shows ten and drops the rest without a word. Delivering may add five warnings.
MOST: dict[Level, int] = {"error": 10, "warning": 5}

InRepository = Callable[[str], str]


def of_report(report: Report, level: Level, in_repository: InRepository) -> str:
    """Annotate every broken gate at the config's line and every broken query at the golden file's, worst first.

    ``in_repository`` turns a place as the report has it into one relative to the repository.
    """
    gates = [
        annotation(level, gate.message, title=gate.id, place=in_repository(gate.place))
        for gate in report.gates
        if gate.status == "fail"
    ]
    broken = sorted((query for query in report.queries if query.status == "fail"), key=loss)
    queries = [_of_query(query, max(report.k), level, in_repository(query.place)) for query in broken]
    warnings = [annotation("warning", message) for message in report.warnings]
    if level == "warning":
        return "".join(_capped([*gates, *queries, *warnings], "warning"))
    return "".join([*_capped([*gates, *queries], level), *_capped(warnings, "warning")])


def of_problems(problems: Sequence[str], warnings: Sequence[str], in_repository: InRepository) -> str:
    """Annotate what keeps the input from being judged, at the file and line that a problem begins with.

    The ``warnings`` beside it often explain a problem, as a misspelled field does a missing one.
    """
    placed = [(problem, _place(problem)) for problem in problems]
    told = [annotation("error", problem, place=in_repository(place) if place else "") for problem, place in placed]
    odd = [annotation("warning", warning) for warning in warnings]
    return "".join([*_capped(told, "error"), *_capped(odd, "warning")])


def _of_query(query: QueryReport, k: int, level: Level, place: str) -> str:
    said = [f"Expected {finding.expected()}. Found: {finding.found()}." for finding in findings(query, k)]
    return annotation(level, " ".join(said), title=f"Broken query {query.id}", place=place)


def _place(problem: str) -> str:
    """Return ``golden.jsonl:17`` of ``golden.jsonl:17: relevant_doc_ids: is missing``."""
    place, colon, _ = problem.partition(": ")
    return place if colon and place.rpartition(":")[2].isdecimal() else ""


def _capped(commands: Sequence[str], level: Level) -> Iterator[str]:
    most = MOST[level]
    if len(commands) <= most:
        yield from commands
    else:
        yield from commands[: most - 1]
        yield annotation(level, f"… and {len(commands) - most + 1:,} more like these; the report has them all")
