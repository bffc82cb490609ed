"""What else changed between the baseline and the run, said before any number: it is often the cause."""

from collections.abc import Iterator

from ragcontract.core.numbers import count
from ragcontract.core.phrase import Quote
from ragcontract.core.run import VERSION_FIELDS
from ragcontract.reports.rank_changes import changed_versions
from ragcontract.reports.report import Report


def drift(report: Report, quote: Quote = str) -> Iterator[str]:
    """Yield sentences about what makes run and baseline hard to compare; ``quote`` is for names."""
    run, baseline = report.inputs.run.versions, report.inputs.baseline
    mixed = {field: run[field] for field in VERSION_FIELDS if len(run.get(field, ())) > 1}
    for field, values in mixed.items():
        yield f"The run's rows disagree about the {_name(field)}: {_values(values, quote)}"
    if baseline is None:
        return
    changed = changed_versions(run, baseline.versions)
    if changed:
        steps = [f"{_name(field)} {quote(old)} → {quote(new)}" for field, (old, new) in changed.items()]
        moved = any(metric.delta for metric in report.metrics.values())
        yield f"{'The likely cause' if moved else 'Changed since the baseline'}: {', '.join(steps)}"
    if baseline.too_old:
        yield (
            f"The baseline is {count(baseline.age_days or 0, 'day')} old, more than max_baseline_age allows; "
            "recreate it with `rag-contract baseline`"
        )
    if baseline.k is not None and max(baseline.k) != max(report.k):
        yield f"The baseline was made with k = {max(baseline.k)} and is compared here at k = {max(report.k)}"


def _name(field: str) -> str:
    return field.replace("_", " ")


def _values(values: list[str], quote: Quote) -> str:
    more = [f"{len(values) - 3} more"] if len(values) > 3 else []  # noqa: PLR2004 (three say enough)
    return ", ".join([*map(quote, values[:3]), *more])
