"""Scores of ragas: the table of an ``EvaluationResult``, as JSON lines, a JSON list or CSV.

Every column with numbers is a score, but for the fields of a sample. ragas leaves missing values out of its means.
"""

from collections.abc import Sequence

from ragcontract.convert.collection import Collection, Files, Part
from ragcontract.convert.measured import Measured, ScoreRows, as_number, golden_ids, row_error
from ragcontract.convert.tables import TableRow, table_rows
from ragcontract.core import bounds
from ragcontract.core.text import shorten
from ragcontract.files.opening import Progress
from ragcontract.files.problems import Collector
from ragcontract.files.schema import shown

WRITE = 'write the file with `result.to_pandas().to_json(FILE, orient="records", lines=True)`'
EXAMPLE = "user_input,response,faithfulness"
# The fields of ragas' samples of one turn and of several.
SAMPLE = frozenset(
    {
        "id",
        "user_input",
        "retrieved_contexts",
        "reference_contexts",
        "retrieved_context_ids",
        "reference_context_ids",
        "response",
        "multi_responses",
        "reference",
        "rubrics",
        "persona_name",
        "query_style",
        "query_length",
        "reference_tool_calls",
        "reference_topics",
    }
)
INDEX = "Unnamed: 0"  # what pandas calls the numbers of the rows, which it has read back from CSV


def read(files: Files, _wanted: set[Part], problems: Collector, progress: Progress) -> Collection:
    """Read ``results`` files."""
    collected: list[tuple[TableRow, str | int | None, str | None, str | None]] = []
    texts: dict[str, str] = {}  # columns with something else than numbers, with the location of the first
    for location, cells in table_rows(files["results"], EXAMPLE, problems, progress):
        named = _named(location, cells, problems)
        if named is None:
            continue
        numbers: dict[str, object] = {}
        for column in cells.keys() - SAMPLE - {INDEX} - texts.keys():
            try:
                numbers[column] = as_number(cells[column])
            except ValueError:
                texts[column] = location
        ordered = {column: numbers[column] for column in cells if column in numbers}
        collected.append((TableRow(location, ordered), *named, row_error(cells)))
    rows = ScoreRows(golden_ids(files, problems, progress), problems)
    for row, query_id, question, error in collected:
        scores = {name: as_number(value) for name, value in row.cells.items() if name not in texts}
        rows.add(
            Measured(
                location=row.location,
                id=query_id,
                question=question,
                question_field="user_input",
                scores=scores,
                error=error,
            )
        )
    if texts:
        location = next(iter(texts.values()))
        problems.warning(f"{location}: not only numbers, and left out: {_listed(list(texts))}")
    return Collection(scores=rows.finished(lambda: (files["results"][0], _nothing(texts))))


def _named(location: str, cells: dict[str, object], problems: Collector) -> tuple[str | int | None, str | None] | None:
    """Return id and question of a row; None and a problem if it has neither."""
    query_id, question = cells.get("id"), cells.get("user_input")
    if isinstance(query_id, str) and not query_id:
        query_id = None  # an empty cell
    if query_id is not None and (not isinstance(query_id, str | int) or isinstance(query_id, bool)):
        problems.problem(f"{location}: id", f"expected text or a whole number, found {shown(query_id)}")
        return None
    if isinstance(question, str) and question:
        return query_id, question
    if query_id is not None:
        return query_id, None
    if isinstance(question, dict):
        message = f"has the values of all samples; {WRITE}"
    elif isinstance(question, list):
        message = "is a conversation; give each row an `id`, that of its golden query"
    else:
        message = "is missing; expected the question, or an `id`"
    problems.problem(f"{location}: user_input", message)
    return None


def _nothing(texts: dict[str, str]) -> str:
    found = f"; found only texts in {_listed(list(texts))}" if texts else ""
    return f"has no column with numbers{found}; {WRITE}"


def _listed(names: Sequence[str]) -> str:
    listed = ", ".join(repr(shorten(name, bounds.NAME)) for name in names[: bounds.NAMES])
    return f"{listed}, …" if len(names) > bounds.NAMES else listed
