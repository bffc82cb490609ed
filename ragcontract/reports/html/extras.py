"""The folded sections at the end of the HTML report: queries not compared, accepted regressions, warnings, inputs."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.numbers import count, fixed, percent
from ragcontract.core.run import SourceFile
from ragcontract.reports.change_notes import about_baseline
from ragcontract.reports.drift import not_compared, other_warnings
from ragcontract.reports.html.page_text import Part, code, sentence, shown
from ragcontract.reports.judge_section import TaskSection, evidence, has_passed, heading, judge_section, name_of
from ragcontract.reports.overlap_report import LeastOverlap
from ragcontract.reports.overlap_section import DIGITS, overlap_section
from ragcontract.reports.report import Report
from ragcontract.reports.report_inputs import BaselineInput
from ragcontract.reports.score_reasons import REASONS, score_reasons
from ragcontract.runs.stored import Accepted

INDENT = "\u2003"
DIGEST = 12  # characters that are enough to recognise a file
Line = Sequence[Part]


class Fold(Struct, frozen=True, kw_only=True):
    """A folded section; ``more`` is a line that counts the omitted lines, or empty."""

    title: str
    lines: Sequence[Line]
    more: str


def folds(report: Report) -> list[Fold]:
    """Return the folded sections."""
    baseline = report.inputs.baseline
    found = []
    if reasons := score_reasons(report):
        found.append(_fold(REASONS, [sentence(phrase, bounds.HTML_REASON) for phrase in reasons]))
    if overlap := overlap_section(report):
        least = [_least(one) for one in overlap.least]
        found.append(_fold(overlap.title, [*([Part(shown(fact))] for fact in overlap.facts), *least]))
    if judged := judge_section(report):
        found.append(_fold(judged.title, [[Part(shown(fact))] for fact in judged.facts]))
        found += [_fold(shown(task.title), list(_judged(task))) for task in judged.tasks]
    if baseline:
        for name, ids in not_compared(baseline).items():
            found.append(_fold(f"{len(ids):,} {name}", [[Part(shown(query_id, bounds.HTML_ID))] for query_id in ids]))
        if baseline.accepted:
            times = len(baseline.accepted)
            title = "The baseline accepted regressions" + (f" {times} times" if times > 1 else "")
            found.append(_fold(title, [_accepted(one) for one in reversed(baseline.accepted)]))
    if warnings := other_warnings(report):
        title = count(len(warnings), "warning")
        found.append(_fold(title, [[Part(shown(warning))] for warning in warnings]))
    return [*found, _fold("Inputs", list(_inputs(report)))]


def _fold(title: str, lines: Sequence[Line]) -> Fold:
    more = f"… and {len(lines) - bounds.HTML_LINES:,} more" if len(lines) > bounds.HTML_LINES else ""
    return Fold(title=title, lines=lines[: bounds.HTML_LINES], more=more)


def _least(one: LeastOverlap) -> Line:
    numbers = f": overlap {fixed(one.overlap, DIGITS)}, RBO {fixed(one.rbo, DIGITS)}"
    return [Part(shown(one.id, bounds.HTML_ID)), Part(numbers)]


def _judged(task: TaskSection) -> Iterable[Line]:
    yield from ([Part(shown(fact))] for fact in task.facts)
    for query in task.queries:
        yield [code(query.id), Part(f": {heading(query, task.words)}")]
        for item in query.items:
            by = evidence(item, bounds.HTML_REASON)
            sign, verdict = ("✓", task.words.passed) if has_passed(item) else ("✕", task.words.failed)
            said = Part(f" {verdict}{f': {by}' if by else ''}", "small")
            yield [Part(f"{INDENT}{sign} {name_of(item, bounds.HTML_REASON)}"), said]


def _accepted(one: Accepted) -> Line:
    return [code(one.at), Part(f" {count(one.failed, 'failed check')}: {shown(one.reason)}")]


def _inputs(report: Report) -> Iterable[Line]:
    inputs, run = report.inputs, report.inputs.run
    yield [Part(f"k = {', '.join(map(str, report.k))}")]
    yield _source("golden", inputs.golden.files, count(inputs.golden.queries, "query"))
    repeated = [f"{percent(run.duplicate_rate)} of the results repeat a document"] if run.duplicate_rate else []
    missing = [f"{len(run.missing):,} missing"] if run.missing else []
    yield _source("run", run.files, count(run.queries, "query"), *missing, *repeated)
    if inputs.scores:
        yield _source("scores", inputs.scores.files)
    if inputs.judgments:
        yield _source("judgments", inputs.judgments.files)
    if inputs.baseline:
        yield _source("baseline", inputs.baseline.files, *_about(inputs.baseline))
    if inputs.config:
        yield _source("config", inputs.config.files, count(len(report.gates), "gate"))


def _about(baseline: BaselineInput) -> Iterable[str]:
    yield count(baseline.queries, "query")
    yield f"{baseline.shared:,} shared"
    if baseline.created_at:
        yield f"made {shown(baseline.created_at, bounds.HTML_ID)}"
    yield from about_baseline(baseline)


def _source(name: str, files: Sequence[SourceFile], *facts: str) -> Line:
    more = f" and {count(len(files) - 1, 'more file')}" if len(files) > 1 else ""
    digest = [Part(" "), Part(f"sha256 {shown(files[0].sha256[:DIGEST])}", "small")] if files[0].sha256 else []
    end = f", {', '.join(facts)}" if facts else ""
    return [Part(f"{name}: {shown(files[0].path)}"), *digest, Part(f"{more}{end}")]
