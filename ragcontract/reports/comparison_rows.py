"""The comparison of runs as rows of text, which the formats for people share."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.numbers import count, fixed, signed
from ragcontract.core.text import clipped, visible
from ragcontract.reports.run_comparison import (
    AgainstFirst,
    ComparedMetric,
    Disagreement,
    Interval,
    RunComparison,
    RunMean,
    at_largest_k,
)

DIGITS = 4
METHOD = (
    "Intervals are 95 %. That of a mean is for other queries of the same kind (Agresti and Coull); that of a change is "
    "of the paired differences, query by query (after Bonett and Price, corrected for skewness as Hall does)."
)


class MeanRow(Struct, frozen=True, kw_only=True):
    """The mean of a metric in one run, and its change since the first run; empty where there is none.

    ``numbers`` are the same, unrounded.
    """

    numbers: RunMean
    mean: str
    interval: str
    change: str
    change_interval: str
    counts: str


class MeanTable(Struct, frozen=True, kw_only=True):
    """One metric, with a row for each run in their order."""

    metric: ComparedMetric
    rows: Sequence[MeanRow]


def mean_tables(made: RunComparison) -> Iterator[MeanTable]:
    """Yield a table for each metric at the largest cut-off."""
    for key, metric in at_largest_k(made).items():
        yield MeanTable(metric=metric, rows=[_row(run.metrics[key]) for run in made.runs])


def _row(numbers: RunMean) -> MeanRow:
    change = numbers.against_first
    return MeanRow(
        numbers=numbers,
        mean=fixed(numbers.mean, DIGITS),
        interval=_interval(numbers.interval),
        change=signed(change.delta, DIGITS) if change else "",
        change_interval=_change_interval(change) if change else "",
        counts=f"{change.wins:,} / {change.ties:,} / {change.losses:,}" if change else "",
    )


def _interval(interval: Interval | None) -> str:
    return "" if interval is None else " to ".join(fixed(end, DIGITS) for end in interval)


def _change_interval(change: AgainstFirst) -> str:
    if change.interval is None:
        return "nothing changed"
    return " to ".join(signed(end, DIGITS) for end in change.interval)


def labels(made: RunComparison) -> list[str]:
    """Return the names of the runs, with control characters visible, shortened from the left: paths end differently."""
    texts = [visible(run.label) for run in made.runs]
    return [text if len(text) <= bounds.RUN_LABEL else "…" + text[1 - bounds.RUN_LABEL :] for text in texts]


def notes(made: RunComparison) -> Iterator[tuple[str, str]]:
    """Yield the label of a run and a sentence that explains its metrics, with control characters visible, shortened."""
    for label, run in zip(labels(made), made.runs, strict=True):
        for note in run.notes:
            yield label, clipped(note, bounds.MARKDOWN_LINE)


def ranks(ranks_of_run: Mapping[str, int | None]) -> str:
    """Return the ranks of the relevant documents, a dash for one that was not retrieved: ``1, –``."""
    listed = [str(rank or "–") for rank in list(ranks_of_run.values())[: bounds.LISTED]]
    return ", ".join(listed) + (", …" if len(ranks_of_run) > bounds.LISTED else "")


def title(made: RunComparison) -> str:
    """Return what is compared: ``3 runs over 32 queries, k = 5``; without the tag, which outputs quote differently."""
    k = ", ".join(map(str, made.k))
    return f"{count(len(made.runs), 'run')} over {count(made.queries, 'query')}, k = {k}"


def disagreements_title(made: RunComparison) -> str:
    """Return the heading of the list of queries."""
    number = len(made.disagreements) + made.more_disagreements
    if not number:
        return "The runs agree about every query"
    order = ", largest difference first" if number > 1 else ""
    return f"{count(number, 'query')} that the runs disagree about{order}"


def rest(made: RunComparison) -> str:
    """Return a line that counts the queries that are not listed; empty if there are none."""
    return f"… and {count(made.more_disagreements, 'more query')}." if made.more_disagreements else ""


def question(item: Disagreement, length: int) -> str:
    """Return the question of a query, with control characters visible, shortened."""
    return clipped(item.query, length)
