"""The comparison of runs as text for a terminal."""

from collections.abc import Iterator

from ragcontract.core import bounds
from ragcontract.core.safe_text import visible
from ragcontract.report import comparison
from ragcontract.report.comparison import RunComparison
from ragcontract.report.terminal import aligned


def render(made: RunComparison) -> str:
    """Render the means of all runs, and where the runs disagree."""
    tag = "" if made.tag is None else f", tag {visible(made.tag)}"
    first = comparison.labels(made)[0]
    parts = [
        f"{comparison.title(made)}{tag}; changes are since {first}",
        "\n".join(_means(made)),
        "\n".join(f"{name}: {note}" for name, note in comparison.notes(made)),
        comparison.METHOD,
        "\n".join(_disagreements(made)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _means(made: RunComparison) -> Iterator[str]:
    cells = [["", "", "mean", "95 % interval", "change", "95 % interval", "better / same / worse"]]
    for table in comparison.mean_tables(made):
        metric = table.metric.label
        for label, row in zip(comparison.labels(made), table.rows, strict=True):
            cells.append([metric, label, row.mean, row.interval, row.change, row.change_interval, row.counts])
            metric = ""
    yield from aligned(cells)


def _disagreements(made: RunComparison) -> Iterator[str]:
    ranked = "; the ranks of their relevant documents" if made.disagreements else ""
    yield f"{comparison.disagreements_title(made)}{ranked}"
    if made.disagreements:
        cells = [["", *comparison.labels(made), ""]]
        for item in made.disagreements:
            question = comparison.question(item, bounds.TERMINAL_QUESTION)
            cells.append([visible(item.id), *map(comparison.ranks, item.ranks), question])
        yield from (f"  {line}" for line in aligned(cells))
    if rest := comparison.rest(made):
        yield f"  {rest}"
