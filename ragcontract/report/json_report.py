"""The report as JSON, written and read again; ``rag-contract schema report`` prints its schema."""

import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.numbers import mebibytes
from ragcontract.core.phrase import Phrase
from ragcontract.files.json_lines import UNDECODABLE, explained
from ragcontract.files.json_text import check_nesting, doubled_key, fault
from ragcontract.files.problems import Problem
from ragcontract.files.writing import document
from ragcontract.report.formats import Reported
from ragcontract.report.history_report import notes_of
from ragcontract.report.record import Detail, ErrorReport, QueryReport, Report


def render(report: Report, queries: Iterable[QueryReport], detail: Detail) -> Iterator[bytes]:
    """Encode the report with these queries as UTF-8: indented by two spaces, long lists with one item per line."""
    lists = {"queries": queries, "failed_checks": report.failed_checks, "findings": report.findings}
    return document(replace(report, detail=detail, queries=[], failed_checks=[], findings=[]), lists)


def render_error(report: ErrorReport) -> bytes:
    """Encode the report on input that cannot be judged, as UTF-8."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"


def file_of(outcome: Reported) -> Iterator[bytes]:
    """Encode the report of a check, with the queries that it lists."""
    return render(outcome.report, outcome.queries(), outcome.detail)


file_of_error = render_error


def render_score(report: Report) -> str:
    """Encode the metrics of one run, overall and by tag."""
    golden = report.inputs.golden
    score = {
        "k": report.k,
        "queries": golden.queries,
        "answerable": golden.answerable,
        "metrics": {key: metric.current for key, metric in report.metrics.items()},
        "tags": {name: {"queries": tag.queries, "metrics": tag.metrics} for name, tag in report.tags.items()},
        "latency": report.latency.current if report.latency else None,
        "repeats": report.repeats,
        "warnings": report.warnings,
    }
    return msgspec.json.format(msgspec.json.encode(score), indent=2).decode() + "\n"


def read(path: Path) -> Report | ErrorReport:
    """Read a report that a check wrote; raises InputError if it is of another version, or was edited."""
    return decoded(_read(path), str(path))


def decoded(data: bytes, path: str) -> Report | ErrorReport:
    """Read the content of a report, as :func:`read` does; messages begin with ``path``."""
    record: type[Report | ErrorReport] = Report
    try:
        check_nesting(data)
        if msgspec.json.decode(data, type=_Verdict).verdict == "error":
            record = ErrorReport
        report = msgspec.json.decode(data, type=record)
    except UNDECODABLE as error:
        if len(data) > bounds.REPORT_EXPLAINED:
            raise InputError([f"{path}: is not a report of this version of rag-contract ({error})"]) from error
        problems = [str(Problem.of(path, reason)) for reason in explained(data, error, record)]
        raise InputError(problems[: bounds.PROBLEMS], more=len(problems[bounds.PROBLEMS :])) from error
    if (key := doubled_key(data)) is not None:
        raise InputError([f"{path}: {fault(key)}"])
    if isinstance(report, Report):
        _refuse_another_verdict(report, path)
        _refuse_unwritten(report, path)
    return report


@contextmanager
def refusing_inconsistent(path: Path | str) -> Iterator[None]:
    """Raise InputError if a report cannot be rendered because its parts do not fit together, as in no check's."""
    try:
        yield
    except (ArithmeticError, LookupError, MemoryError, RuntimeError, StopIteration, TypeError, ValueError) as error:
        raise InputError([f"{path}: its parts are inconsistent ({type(error).__name__})"]) from error


class _Verdict(msgspec.Struct):
    verdict: str = ""


def _read(path: Path) -> bytes:
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # reading a pipe could block
            raise InputError([f"{path}: is not a file"])
        with path.open("rb") as file:
            data = file.read(bounds.REPORT + 1)
    except OSError as error:
        raise InputError([f"{path}: cannot be read ({error.strerror or error})"]) from error
    if len(data) > bounds.REPORT:
        advice = "report-json-detail: failed makes a smaller one"
        raise InputError([f"{path}: is larger than {mebibytes(bounds.REPORT)}; {advice}"])
    return data


def _refuse_another_verdict(report: Report, path: str) -> None:
    """Raise :class:`InputError` if the verdict does not follow from its reasons: a red check would look green.

    Only a report that was edited has such a verdict.
    """
    reasons = {
        "failed_checks": len(report.failed_checks),
        "findings": sum(finding.status == "fail" for finding in report.findings),
        "gates": sum(gate.status == "fail" for gate in report.gates),
        "queries": sum(query.status == "fail" for query in report.queries),
    }
    failed = ", ".join(name for name, number in reasons.items() if number)
    if report.verdict == "pass" and failed:
        raise InputError([f'{path}: verdict: is "pass", but {failed} say what failed; use the report of the check'])
    if report.verdict == "fail" and not failed:
        raise InputError([f'{path}: verdict: is "fail", but nothing in it failed; use the report of the check'])


NOTES = "likely_mistakes, run_notes, label_notes, causes, history.notes"


def _refuse_unwritten(report: Report, path: str) -> None:
    """Raise :class:`InputError` for a report that fits the schema, but that no check writes and that renders slowly."""
    ids = [query.id for query in report.queries]
    phrases = (
        phrase
        for finding in report.findings
        for phrase in (finding.expected, finding.found, finding.found_now, *finding.details)
    )
    causes = [cause.phrase for cause in report.causes]
    of_run: list[Phrase] = [(note,) for note in report.run_notes]
    of_notes = (report.likely_mistakes, of_run, report.label_notes, causes, notes_of(report.history))
    too_long = f"a sentence has more than {bounds.REPORT_SENTENCE:,} characters"
    most_notes = max(map(len, of_notes))
    problems = {
        "queries: an id occurs twice": len(set(ids)) < len(ids),
        "k: a cut-off occurs twice": len(set(report.k)) < len(report.k),
        f"findings: {too_long}": any(map(_is_too_long, phrases)),
        f"{NOTES}: {too_long}": any(map(_is_too_long, chain.from_iterable(of_notes))),
        f"{NOTES}: more than {bounds.REPORT_NOTES:,}": most_notes > bounds.REPORT_NOTES,
    }
    if present := [f"{path}: {problem}" for problem, is_there in problems.items() if is_there]:
        raise InputError(present)


def _is_too_long(phrase: Phrase) -> bool:
    return sum(len(part) if isinstance(part, str) else len(part.name) for part in phrase) > bounds.REPORT_SENTENCE
