"""Read scores from the table of any tool, as CSV, JSON lines or a JSON list.

It has a column of ids, and columns of numbers that the user names.
"""

from collections.abc import Sequence

from ragcontract.convert.collection import Collection, Source, of_scores
from ragcontract.convert.input_files import TableRow, table_rows
from ragcontract.convert.measured import Measured, ScoreRows, as_number, row_error, score_rows
from ragcontract.convert.spreadsheet import NAMES
from ragcontract.core import bounds
from ragcontract.core.nearest import NearNames
from ragcontract.core.numbers import beginning
from ragcontract.core.questions import column_name
from ragcontract.files.problems import Collector
from ragcontract.files.schema import shown

EXAMPLE = "query_id,faithfulness"


def read(source: Source) -> Collection:
    """Read ``results`` files; without a name, the column of ids is recognized."""
    rows, problems = score_rows(source), source.problems
    id_column: str | None = source.options.get("id_column")
    score_columns: Sequence[str] = source.options.get("score_column", ())
    there: set[str] = set()
    first: TableRow | None = None
    for row in table_rows(source, EXAMPLE):
        first = first or row
        there |= row.cells.keys() & set(score_columns)
        _add(row, id_column, score_columns, rows, problems)
    if first is not None:
        for name in (name for name in score_columns if name not in there):
            problems.problem(first.location, f"no column {shown(name)} for the scores; {_meant(name, first)}")
    return rows.collection(source.files["results"], "has no rows")


def _add(
    row: TableRow, id_column: str | None, score_columns: Sequence[str], rows: ScoreRows, problems: Collector
) -> None:
    columns = _columns(row, "id") if id_column is None else [name for name in row.cells if name == id_column]
    asked = _columns(row, "question")
    if not columns and (id_column is not None or not asked):
        wanted = (
            "no column for the ids is recognized; name it with --id"
            if id_column is None
            else (f"no column {shown(id_column)} for the ids")
        )
        problems.problem(row.location, f"{wanted}; {_meant(id_column or '', row)}")
        return
    query_id = row.cells[columns[0]] if columns else None
    query_id = query_id.strip() if isinstance(query_id, str) else query_id
    if columns and (not isinstance(query_id, str | int) or isinstance(query_id, bool)):
        problems.problem(row.location.at(columns[0]), f"expected an id, found {shown(query_id)}")
        return
    question = row.cells[asked[0]] if asked else None
    scores: dict[str, float | None] = {}
    for name in score_columns:
        try:
            scores[name] = as_number(row.cells.get(name))
        except ValueError as error:
            problems.problem(row.location.at(name), str(error))
    rows.add(
        Measured(
            location=row.location,
            id=query_id if isinstance(query_id, str | int) else None,
            id_field=columns[0] if columns else "id",
            question=question if isinstance(question, str) and question else None,
            question_field=asked[0] if asked else "question",
            scores=scores,
            error=row_error(row.cells, score_columns),
        )
    )


def _columns(row: TableRow, meaning: str) -> list[str]:
    """Return the columns whose names mean the ids or the questions, best name first."""
    named = {column_name(name): name for name in row.cells}
    return [named[name] for name in NAMES[meaning] if name in named]


def _meant(name: str, row: TableRow) -> str:
    columns = list(row.cells)
    there = f"there are {beginning([*map(shown, columns)], bounds.LISTED)}"
    return NearNames(columns).advice(name, there) if name else there


FORMAT = of_scores(read, "id_column", "score_column")
