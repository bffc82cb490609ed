"""The comparison of runs as text for a terminal."""

from collections.abc import Iterator

from ragcontract.core import bounds
from ragcontract.core.text import visible
from ragcontract.reports.comparison_rows import (
    METHOD,
    disagreements_title,
    label,
    mean_rows,
    notes,
    question,
    ranks,
    rest,
    title,
)
from ragcontract.reports.run_comparison import RunComparison
from ragcontract.reports.terminal import aligned


def render(made: RunComparison) -> str:
    """Render the means of all runs, and where the runs disagree."""
    tag = "" if made.tag is None else f", tag {visible(made.tag)}"
    parts = [f"{title(made)}{tag}; changes are since {label(made, 0)}", "\n".join(_means(made))]
    parts += ["\n".join(f"{name}: {note}" for name, note in notes(made)), METHOD]
    parts = [part for part in parts if part]
    return "\n\n".join([*parts, "\n".join(_disagreements(made))]) + "\n"


def _means(made: RunComparison) -> Iterator[str]:
    cells = [["", "", "mean", "95 % interval", "change", "95 % interval", "better / same / worse"]]
    for row in mean_rows(made):
        metric = "" if row.run else row.metric.label
        cells.append(
            [metric, label(made, row.run), row.mean, row.interval, row.change, row.change_interval, row.counts]
        )
    yield from aligned(cells)


def _disagreements(made: RunComparison) -> Iterator[str]:
    ranked = "; the ranks of their relevant documents" if made.disagreements else ""
    yield f"{disagreements_title(made)}{ranked}"
    if made.disagreements:
        cells = [["", *(label(made, run) for run in range(len(made.runs))), ""]]
        cells += [
            [visible(item.id), *map(ranks, item.ranks), question(item, bounds.TERMINAL_QUESTION)]
            for item in made.disagreements
        ]
        yield from (f"  {line}" for line in aligned(cells))
    if more := rest(made):
        yield f"  {more}"
