"""The comparison of runs as Markdown: ``rag-contract compare --format md``."""

from collections.abc import Iterator

from ragcontract.core import bounds
from ragcontract.core.text import clipped
from ragcontract.reports import comparison_rows
from ragcontract.reports.markdown.gfm import breaking_code, code, inline, table, text
from ragcontract.reports.run_comparison import RunComparison

BELOW = "<br>"


def render(made: RunComparison) -> str:
    """Render the means of all runs, and where the runs disagree."""
    tag = "" if made.tag is None else f", tag {code(made.tag)}"
    rest = comparison_rows.rest(made)
    parts = [
        f"### {comparison_rows.title(made)}{tag}",
        f"Changes are since {code(comparison_rows.labels(made)[0])}.",
        "Below a mean or a change is its interval, then how many queries are better / the same / worse.",
        *_means(made),
        *_notes(made),
        comparison_rows.METHOD,
        f"**{comparison_rows.disagreements_title(made)}**",
    ]
    if made.disagreements:
        parts += ["The ranks of their relevant documents:", _disagreements(made)]
    return "\n\n".join([*parts, *([rest] if rest else [])]) + "\n"


def _notes(made: RunComparison) -> list[str]:
    items = [f"- {code(name)}: {inline(note)}" for name, note in comparison_rows.notes(made)]
    return ["\n".join(items)] if items else []


def _means(made: RunComparison) -> Iterator[str]:
    """Yield a table for each metric; one for all of them would be too wide for a phone."""
    for one in comparison_rows.mean_tables(made):
        body = [
            [
                breaking_code(label),
                BELOW.join(filter(None, [row.mean, row.interval])),
                BELOW.join(filter(None, [row.change, row.change_interval, row.counts])),
            ]
            for label, row in zip(comparison_rows.labels(made), one.rows, strict=True)
        ]
        yield table([text(clipped(one.metric.label, bounds.MARKDOWN_NAME)), "Mean", "Change"], "lrr", body)


def _disagreements(made: RunComparison) -> str:
    head = ["Query", *map(breaking_code, comparison_rows.labels(made))]
    body = []
    for item in made.disagreements:
        question = text(comparison_rows.question(item, bounds.MARKDOWN_QUESTION))
        body.append([f"{breaking_code(item.id)}{BELOW}{question}", *map(comparison_rows.ranks, item.ranks)])
    return table(head, "l" * len(head), body)
