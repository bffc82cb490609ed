"""The comparison of runs as rows of text, which the formats for people share."""

from collections.abc import Iterator, Mapping

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.numbers import count, fixed, signed
from ragcontract.core.text import shorten, visible
from ragcontract.reports.run_comparison import (
    AgainstFirst,
    ComparedMetric,
    Disagreement,
    Interval,
    RunComparison,
    largest_k,
)

DIGITS = 4
METHOD = (
    "Intervals are 95 %. That of a mean is for other queries of the same kind (Agresti and Coull); that of a change is "
    "of the paired differences, query by query (Bonett and Price), and needs five queries that changed."
)


class MeanRow(Struct, frozen=True, kw_only=True):
    """The mean of one metric in one run, and its change since the first run; empty where there is none."""

    key: str
    metric: ComparedMetric
    run: int
    mean: str
    interval: str
    change: str
    change_interval: str
    counts: str


def mean_rows(made: RunComparison) -> Iterator[MeanRow]:
    """Yield a row for each metric at the largest cut-off and each run, metric by metric."""
    for key, metric in largest_k(made).items():
        for number, run in enumerate(made.runs):
            found = run.metrics[key]
            change = found.against_first
            yield MeanRow(
                key=key,
                metric=metric,
                run=number,
                mean=fixed(found.mean, DIGITS),
                interval=_interval(found.interval),
                change=signed(change.delta, DIGITS) if change else "",
                change_interval=_change_interval(change) if change else "",
                counts=f"{change.wins:,} / {change.ties:,} / {change.losses:,}" if change else "",
            )


def _interval(interval: Interval | None) -> str:
    return "" if interval is None else " to ".join(fixed(end, DIGITS) for end in interval)


def _change_interval(change: AgainstFirst) -> str:
    if change.interval is None:
        return "too few changed" if change.wins + change.losses else "nothing changed"
    return " to ".join(signed(end, DIGITS) for end in change.interval)


def label(made: RunComparison, run: int) -> str:
    """Return the name of a run, with control characters visible, shortened from the left: paths differ at the end."""
    text = visible(made.runs[run].label)
    return text if len(text) <= bounds.RUN_LABEL else "…" + text[1 - bounds.RUN_LABEL :]


def notes(made: RunComparison) -> Iterator[tuple[str, str]]:
    """Yield the label of a run and a sentence that explains its metrics, with control characters visible, shortened."""
    for number, run in enumerate(made.runs):
        for note in run.notes:
            yield label(made, number), shorten(visible(note), bounds.MARKDOWN_LINE)


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
    return shorten(visible(item.query), length)
