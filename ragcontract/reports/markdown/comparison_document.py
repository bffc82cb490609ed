"""The comparison of runs as Markdown: ``rag-contract compare --format md``."""

from collections.abc import Iterator
from itertools import groupby

from ragcontract.core import bounds
from ragcontract.core.text import shorten, visible
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
from ragcontract.reports.markdown.gfm import breaking_code, code, inline, table, text
from ragcontract.reports.run_comparison import RunComparison

BELOW = "<br>"


def render(made: RunComparison) -> str:
    """Render the means of all runs, and where the runs disagree."""
    tag = "" if made.tag is None else f", tag {code(made.tag)}"
    parts = [
        f"### {title(made)}{tag}",
        f"Changes are since {code(label(made, 0))}.",
        "Below a mean or a change is its interval, then how many queries are better / the same / worse.",
        *_means(made),
        *(["\n".join(said)] if (said := [f"- {code(name)}: {inline(note)}" for name, note in notes(made)]) else []),
        METHOD,
        f"**{disagreements_title(made)}**",
    ]
    if made.disagreements:
        parts += ["The ranks of their relevant documents:", _disagreements(made)]
    return "\n\n".join([*parts, *([rest(made)] if rest(made) else [])]) + "\n"


def _means(made: RunComparison) -> Iterator[str]:
    """Yield a table for each metric; one for all of them would be too wide for a phone."""
    for metric, rows in groupby(mean_rows(made), key=lambda row: row.metric):
        body = [
            [
                breaking_code(label(made, row.run)),
                BELOW.join(filter(None, [row.mean, row.interval])),
                BELOW.join(filter(None, [row.change, row.change_interval, row.counts])),
            ]
            for row in rows
        ]
        yield table([text(shorten(visible(metric.label), bounds.MARKDOWN_NAME)), "Mean", "Change"], "lrr", body)


def _disagreements(made: RunComparison) -> str:
    head = ["Query", *(breaking_code(label(made, run)) for run in range(len(made.runs)))]
    body = [
        [f"{breaking_code(item.id)}{BELOW}{text(question(item, bounds.MARKDOWN_QUESTION))}", *map(ranks, item.ranks)]
        for item in made.disagreements
    ]
    return table(head, "l" * len(head), body)
