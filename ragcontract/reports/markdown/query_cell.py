"""How a table names a golden query: by its question, and by its id where that says more."""

from ragcontract.core import bounds
from ragcontract.core.text import clipped
from ragcontract.reports.markdown.gfm import code, text
from ragcontract.reports.report import QueryReport

SHORTEST = 12  # letters and digits; a shorter id may begin like the question by chance


def query_cell(query: QueryReport, mark: str = "") -> str:
    """Return the question, and below it the id, unless the id repeats how the question begins; then a mark, if any."""
    lines = [text(clipped(query.query, bounds.MARKDOWN_QUESTION))]
    if not repeats(query.id, query.query):
        lines.append(code(query.id))
    if mark:
        lines.append(f"({mark})")
    return "<br>".join(lines)


def query_heading(query: QueryReport) -> str:
    """Return id and question as the heading of a query's own table."""
    return f"**{code(query.id)}** {text(clipped(query.query, bounds.MARKDOWN_QUESTION))}"


def repeats(query_id: str, question: str) -> bool:
    """Return whether an id is the question, or its beginning, in another spelling: ``how-do-i-get-a-refund``."""
    words, asked = _letters(query_id[: bounds.QUESTION]), _letters(question[: bounds.QUESTION])
    if not words:
        return query_id == question
    return words == asked or (len(words) >= SHORTEST and asked.startswith(words))


def _letters(value: str) -> str:
    return "".join(filter(str.isalnum, value.casefold()))
