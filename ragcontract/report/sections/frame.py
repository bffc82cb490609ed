"""The sections around the results: the verdict and its notes at the top, warnings and inputs at the end."""

from collections.abc import Iterator, Sequence

from ragcontract.core import bounds
from ragcontract.core.numbers import count, more
from ragcontract.core.phrase import Name, Phrase
from ragcontract.core.run import SourceFile
from ragcontract.report.blocks import (
    Block,
    Fold,
    Form,
    Items,
    Note,
    Part,
    Parts,
    Sentence,
    Styled,
    Table,
    Text,
    between,
)
from ragcontract.report.headline import drift, headline
from ragcontract.report.history_report import notes_of
from ragcontract.report.limit_text import could_hide, left_open
from ragcontract.report.notes import about_inputs, change_notes, scope_note
from ragcontract.report.parts import BaselineInput
from ragcontract.report.queries import REASONS, score_reasons
from ragcontract.report.record import Report

JUDGED_HERE = "This pull request edits stored judgments. Review them like code: "
JUDGED_UNKNOWN = "It is not known whether this pull request edits stored judgments: GitHub did not list all files"


def cause(report: Report) -> Parts:
    """Return the likeliest cause of what broke: a mistake in the input, or else what both sides show; empty if none."""
    causes = [*report.likely_mistakes, *(cause.phrase for cause in report.causes if cause.is_likely)]
    return Sentence(causes[0], "line") if causes else ""


def other_causes(report: Report) -> Iterator[Block]:
    """Yield the section on the other causes, if there are any."""
    likely = next((cause for cause in report.causes if cause.is_likely and not report.likely_mistakes), None)
    others = [Sentence(cause.phrase, "line") for cause in report.causes if cause is not likely]
    if others:
        yield Fold(f"{'Less likely' if likely or report.likely_mistakes else 'Possible'} causes", [Items(others)])


def notes(
    report: Report, *, replaced_here: bool | None = None, judged_here: Sequence[str] | None = ()
) -> Iterator[Parts]:
    """Yield the notes under the headline; see the Markdown report for ``replaced_here`` and ``judged_here``."""
    for phrase in (*report.likely_mistakes[1:], *report.label_notes):
        yield Sentence(phrase, "line")
    yield from map(Sentence, change_notes(report, replaced_here=replaced_here))
    if judged_here is None:
        yield JUDGED_UNKNOWN
    elif judged_here:
        yield (JUDGED_HERE, between(", ", map(Name, judged_here[: bounds.NAMES])))
    yield from drift(report)
    yield from (Sentence(note, "line") for note in notes_of(report.history))


def verdict(report: Report) -> list[Parts]:
    """Return what remains open and what changed, the likeliest cause, and the verdict as the last line."""
    scope = scope_note(report)
    hidden = [phrase for phrase in (could_hide(report), scope) if phrase]
    phrases = [*hidden, *report.label_notes, *change_notes(report), *notes_of(report.history)]
    return [
        *map(Sentence, phrases),
        cause(report),
        (Text(report.verdict, "status"), "  ", Text(headline(report), "fact")),
    ]


def open_notes(report: Report) -> Iterator[Parts]:
    """Yield the notes beside a verdict, without which a pass says more than was checked."""
    phrases = (*left_open(report), *report.label_notes, *change_notes(report), *notes_of(report.history))
    yield from map(Sentence, phrases)


def reasons(report: Report, form: Form) -> Iterator[Block]:
    """Yield the section on why the worst scores are as they are, if the tool that scored them says why."""
    phrases = score_reasons(report)
    most = bounds.ROWS if form == "markdown" else len(phrases)
    if phrases:
        items = Items([Sentence(phrase, "reason") for phrase in phrases[:most]])
        rest = Note(more(len(phrases), most, "reason", "… and {}, in `report.json`."))
        yield Fold(REASONS + (":" if form == "terminal" else ""), [items, rest])


INPUTS = "Inputs"
NOT_GIVEN = {"baseline": "nothing was compared", "config": "rules on, no gates"}
DIGEST = 12  # characters that are enough to recognise a file


def listed(texts: Sequence[str], most: int, further: int = 0) -> Items:
    """Return the first texts as a list, with a count of the others, to which ``further`` is added."""
    rest = more(len(texts) + further, min(len(texts), most), form="… and {}")
    return Items([*(Text(text, "line") for text in texts[:most]), *([rest] if rest else [])])


def warnings(texts: Sequence[str], most: int) -> Iterator[Block]:
    """Yield the section of warnings, if there are any."""
    if texts:
        yield Fold(count(len(texts), "warning"), [listed(texts, most)])


def inputs(report: Report, form: Form) -> Block:
    """Return the section of inputs: files, digests and counts."""
    k = f"k = {', '.join(map(str, report.k))}"
    if form == "html":
        return Fold(INPUTS, [Items([k, *(_line(*about) for about in about_inputs(report))])])
    rows: dict[str, list[Parts]] = {}
    for name, files, phrases in about_inputs(report):
        facts = [Sentence(fact, "fact") for fact in phrases]
        digest: list[Part] = [" (sha256 ", Name(files[0].sha256[:DIGEST]), ")"] if files[0].sha256 else []
        path = files[0].path
        source = Text(path, "name") if path.startswith("history:") else Name(path)  # an id is too long for a phone
        rows[name] = [
            name,
            (source, *digest, more(len(files), 1, "file", " and {}")),
            between(", ", facts),
        ]
    rows["golden"][-1] = (rows["golden"][-1], f", {report.inputs.golden.answerable:,} with relevant documents")
    for name, what in NOT_GIVEN.items():
        rows[name] = rows.pop(name, [name, "", f"none given: {what}"])
    tool = Text(f"{report.tool.name} {report.tool.version}", "fact")
    foot = Note((f"{k} · ", tool, " · ", Name(report.created_at)))
    return Fold(
        INPUTS, [Table(["", "File", ""], "lll", list(rows.values())), *accepted(report.inputs.baseline, form), foot]
    )


def _line(name: str, files: Sequence[SourceFile], phrases: Sequence[Phrase]) -> Parts:
    """Return an input as one line."""
    facts = [Sentence(fact, "fact") for fact in phrases]
    digest: list[Part] = (
        [" ", Styled(("sha256 ", Text(files[0].sha256[:DIGEST], "id")), "small")] if files[0].sha256 else []
    )
    others = more(len(files), 1, "file", " and {}")
    return (f"{name}: ", Text(files[0].path, "line"), *digest, others, *([", ", between(", ", facts)] if facts else []))


def accepted(baseline: BaselineInput | None, form: Form) -> Iterator[Block]:
    """Yield the reasons for which broken contracts were accepted as the baseline: in HTML all, else the last one."""
    if baseline is None or not baseline.accepted:
        return
    title, number = "The baseline accepted regressions", len(baseline.accepted)
    if form == "html":
        lines = [
            (Name(item.at), f" {count(item.failed, 'failed check')}: ", Text(item.reason, "line"))
            for item in reversed(baseline.accepted)
        ]
        yield Fold(title + (f" {number} times" if number > 1 else ""), [Items(lines)])
        return
    last = baseline.accepted[-1]
    earlier = f" ({count(number - 1, 'earlier acceptance')} in `report.json`)" if number > 1 else ""
    checks = f", {count(last.failed, 'failed check')}): "
    yield Note((f"{title} (", Name(last.at), checks, Text(last.reason, "line"), earlier))
