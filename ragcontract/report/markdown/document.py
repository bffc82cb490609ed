"""The report as Markdown for a pull request: verdict and reason first, details folded."""

from collections.abc import Sequence

from msgspec import UNSET, Struct

from ragcontract.core import bounds
from ragcontract.core.numbers import count, more
from ragcontract.core.phrase import render as render_phrase
from ragcontract.core.safe_text import clipped
from ragcontract.report.formats import Reported
from ragcontract.report.headline import VERDICTS, drift, headline, subject
from ragcontract.report.limit_text import could_hide, not_proven_notes
from ragcontract.report.markdown.folds import folds, inputs_fold, outcomes_folds, overlap_fold, warnings_fold
from ragcontract.report.markdown.gfm import bullets, code, cut, line, sentence, table, text
from ragcontract.report.markdown.query_tables import answers_fold, metric_tables, query_cell, retrieved_fold
from ragcontract.report.notes import change_notes, scope_note
from ragcontract.report.queries import FindingsByQuery, broken_queries, failing_since, since, sizes_since
from ragcontract.report.record import ErrorReport, QueryReport, Report

ICONS = {"pass": "✅", "fail": "❌"}
ACCEPTED = "☑️"
JUDGED_HERE = "This pull request edits stored judgments. Review them like code:"
JUDGED_UNKNOWN = "It is not known whether this pull request edits stored judgments: GitHub did not list all files"


class Layout(Struct, frozen=True, kw_only=True):
    """How much of a report to render."""

    rows: int = bounds.ROWS  # in each table
    retrieved: int = bounds.ROWS  # broken queries whose results and texts are listed, in folded sections
    folds: bool = True
    inputs: bool = True  # they differ for each run


FULL = Layout()


class Remark(Struct, frozen=True, kw_only=True):
    """What is known about a verdict beyond the report."""

    status: str = ""  # added to the heading of a broken contract that does not fail the job
    markdown: str = ""  # under the heading


NO_REMARK = Remark()


def render(
    report: Report,
    *,
    name: str = "",
    layout: Layout = FULL,
    recovered: bool = False,
    remark: Remark = NO_REMARK,
    replaced_here: bool | None = None,
    judged_here: Sequence[str] | None = (),
) -> str:
    """Render the report; ``name`` is the contract's name, ``recovered`` says that the contract was broken before.

    ``replaced_here`` says whether the pull request changes the baseline's file, and ``judged_here`` are the files of
    judgments, and the calibration, that it changes. Each is None if that is not known.
    """
    verdict = VERDICTS[report.verdict] + (" again" if recovered else "") + (remark.status and f", {remark.status}")
    icon = ACCEPTED if remark.status else ICONS[report.verdict]
    parts = [
        f"### {icon} {_titled(subject(report), name)} {verdict}: {sentence(headline(report))}",
        *([remark.markdown] if remark.markdown else []),
        *([sentence(scope)] if (scope := scope_note(report)) else []),
        *([sentence(hidden)] if (hidden := could_hide(report)) else []),
        *_notes(report, replaced_here=replaced_here, judged_here=judged_here),
        *metric_tables(report, layout.rows, folds=layout.folds),
        *_broken_queries(report, layout.rows),
    ]
    if layout.folds:
        parts += outcomes_folds(report)
        parts += answers_fold(report, layout.retrieved)
        parts += retrieved_fold(report, layout.retrieved)
        parts += folds(report, layout.rows)
        parts += overlap_fold(report, layout.rows)
        parts += _judge_fold(report, layout.retrieved)
    if layout.folds and layout.inputs:
        parts.append(inputs_fold(report))
    return "\n\n".join(parts) + "\n"


def _judge_fold(report: Report, max_queries: int) -> list[str]:
    if report.judge is UNSET:
        return []
    from ragcontract.report.judge_section import judge_fold

    return judge_fold(report, max_queries)


def render_error(
    report: ErrorReport,
    *,
    name: str = "",
    advice: str = "Fix the input and run the check again.",
    max_rows: int = bounds.ROWS,
) -> str:
    """Render the report on input that cannot be judged."""
    problems = count(len(report.problems) + report.more_problems, "problem")
    parts = [
        f"### ⚠️ {_titled(subject(report), name)} could not be judged: {problems}",
        bullets(report.problems, max_rows, report.more_problems),
        *warnings_fold(report.warnings, max_rows),
        f"No verdict was reached. {advice}",
    ]
    return "\n\n".join(parts) + "\n"


def file_of(outcome: Reported) -> list[bytes]:
    """Render the whole report of a check."""
    return [render(outcome.report, name=outcome.report.contract).encode()]


def file_of_error(report: ErrorReport) -> bytes:
    """Render the whole report on input that cannot be judged."""
    return render_error(report, name=report.contract).encode()


def _titled(about: str, name: str) -> str:
    return f"{about} {text(clipped(name, bounds.MARKDOWN_NAME))}" if name else about


def _notes(report: Report, *, replaced_here: bool | None, judged_here: Sequence[str] | None) -> list[str]:
    notes = [sentence(phrase, line) for phrase in report.likely_mistakes]
    notes += [sentence(phrase, line) for phrase in (*not_proven_notes(report), *report.label_notes)]
    notes += [sentence(phrase) for phrase in change_notes(report, replaced_here=replaced_here)]
    if judged_here is None:
        notes.append(JUDGED_UNKNOWN)
    elif judged_here:
        notes.append(f"{JUDGED_HERE} {', '.join(map(code, judged_here[: bounds.NAMES]))}")
    notes += [render_phrase(phrase, code) for phrase in drift(report)]
    return ["\n".join(f"- {note}" for note in notes)] if notes else []


def _broken_queries(report: Report, max_rows: int) -> list[str]:
    broken = broken_queries(report)
    if not broken:
        return []
    findings = FindingsByQuery(report)
    ages_differ = len({since(report, query) for query in broken}) > 1

    def as_table(queries: Sequence[QueryReport]) -> str:
        notes = [line(failing_since(report, query, findings, age=ages_differ)) for query in queries]
        body = [
            [query_cell(query, note), _broken_rules(query, findings)]
            for query, note in zip(queries, notes, strict=True)
        ]
        return table(["Query", "Expected: <b>found</b>"], "ll", body)

    order = ", worst first" if len(broken) > 1 else ""
    in_baseline = sum(query.in_baseline for query in broken)
    sizes = sizes_since(report, len(broken) - in_baseline, in_baseline)
    title = f"**{_of_broken(report, len(broken))}{sizes}**{order}"
    return [title, *cut(broken, max_rows, "broken query", as_table)]


def _of_broken(report: Report, failing: int) -> str:
    """Return how many queries are broken and, if only some of them fail, how many fail; the headline counts all."""
    if failing >= report.broken.queries:
        return count(failing, "broken query")
    return f"{failing:,} of {count(report.broken.queries, 'broken query')} {'fails' if failing == 1 else 'fail'}"


def _broken_rules(query: QueryReport, findings: FindingsByQuery) -> str:
    """Return what was expected and found, one line per finding; it is one column, so that a phone shows both."""
    failing = findings.failing(query.id)
    lines = [
        f"{sentence((*finding.expected, ': '))}<b>{sentence(finding.found, marks='')}</b>"
        for finding in failing[: bounds.MARKDOWN_FINDINGS]
    ]
    return "<br>".join(filter(None, [*lines, more(len(failing), len(lines), form="… and {}")]))
