"""What may explain a result: mistakes in the input, and what else changed between baseline and run."""

from collections.abc import Iterator, Mapping

from ragcontract.core import bounds
from ragcontract.core.numbers import count
from ragcontract.core.phrase import Name, Phrase, Quote, joined, render
from ragcontract.core.run import COMPARED_VERSIONS, VERSION_FIELDS
from ragcontract.core.text import encodable
from ragcontract.reports.report import Report
from ragcontract.reports.report_inputs import BaselineInput


def drift(report: Report, quote: Quote = str) -> Iterator[str]:
    """Yield sentences about what makes run and baseline hard to compare; ``quote`` escapes names."""
    for phrase in drift_phrases(report):
        yield render(phrase, quote)


def drift_phrases(report: Report) -> Iterator[Phrase]:
    """Yield the same as phrases, for reports that format names differently; commands are in backquotes."""
    run, baseline = report.inputs.run.versions, report.inputs.baseline
    mixed = {field: run[field] for field in VERSION_FIELDS if len(run.get(field, ())) > 1}
    for field, values in mixed.items():
        first = joined(([Name(value)] for value in values[: bounds.NAMES]), len(values) - bounds.NAMES)
        yield (f"The run's rows disagree about the {_spoken(field)}: ", *first)
    if baseline is None:
        return
    changed = changed_versions(run, baseline.versions)
    if changed:
        steps = ((f"{_spoken(field)} ", Name(old), " → ", Name(new)) for field, (old, new) in changed.items())
        yield ("Also changed since the baseline: ", *joined(steps))
    if baseline.too_old:
        age = f"The baseline is {count(baseline.age_days or 0, 'day')} old, more than max_baseline_age allows"
        yield (f"{age}; update it with `rag-contract baseline --update`",)
    if baseline.k is not None and max(baseline.k) != max(report.k):
        yield (f"The baseline was made with k = {max(baseline.k)} and is compared here at k = {max(report.k)}",)


def likely_mistakes(report: Report, name: Quote = str, text: Quote = str) -> Iterator[str]:
    """Yield sentences about likely mistakes in the input; ``name`` and ``text`` escape names and other text."""
    for phrase in report.likely_mistakes:
        yield render(phrase, name, text)


def as_warning(mistake: Phrase) -> str:
    """Return a likely mistake as plain text, as it is among the warnings of the report."""
    return encodable(render(mistake))


def other_warnings(report: Report) -> list[str]:
    """Return the warnings that are not likely mistakes, for reports that show those at the top."""
    said = set(map(as_warning, report.likely_mistakes))
    return [warning for warning in report.warnings if warning not in said]


def _spoken(field: str) -> str:
    return field.replace("_", " ")


def changed_versions(run: Mapping[str, list[str]], baseline: Mapping[str, list[str]]) -> dict[str, tuple[str, str]]:
    """Return ``{field: (baseline's, run's)}`` of the version fields that both sides have and that differ."""
    return {
        field: (", ".join(before), ", ".join(now))
        for field in COMPARED_VERSIONS
        if (now := run.get(field)) and (before := baseline.get(field)) and set(before) != set(now)
    }


def not_compared(baseline: BaselineInput) -> dict[str, list[str]]:
    """Return the ids of the queries that only one side has, or asks another question, by what they are called."""
    groups = {"new": baseline.new, "with another question": baseline.changed, "gone": baseline.gone}
    return {name: query_ids for name, query_ids in groups.items() if query_ids}
