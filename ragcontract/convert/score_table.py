"""Read scores from tables, as CSV, JSON lines or a JSON list: those of any tool, and those of ragas.

The table of any tool has a column of ids, and columns of numbers that the user names. That of ragas is an
``EvaluationResult``: every column with numbers is a score, except for the fields of a sample. ragas leaves missing
values out of its means.
"""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from ragcontract.convert import samples
from ragcontract.convert.collection import Collection, Files, Format, Output, Part, of_scores
from ragcontract.convert.measured import Measured, ScoreRows, as_number, golden_ids, row_error
from ragcontract.convert.spreadsheet import NAMES
from ragcontract.convert.tables import TableRow, table_rows
from ragcontract.core import bounds
from ragcontract.core.nearest import NearNames
from ragcontract.core.questions import column_name
from ragcontract.core.safe_text import shorten
from ragcontract.files.opening import Progress
from ragcontract.files.problems import Collector
from ragcontract.files.schema import shown

EXAMPLE = "query_id,faithfulness"


def reader(
    id_column: str | None, score_columns: Sequence[str]
) -> Callable[[Files, set[Part], Collector, Progress], Collection]:
    """Return a function that reads ``results`` files with these columns; None to recognize the column of ids."""

    def read(files: Files, _wanted: set[Part], problems: Collector, progress: Progress) -> Collection:
        rows = ScoreRows(golden_ids(files, problems, progress), problems)
        there: set[str] = set()
        first: TableRow | None = None
        for row in table_rows(files["results"], EXAMPLE, problems, progress):
            first = first or row
            there |= row.cells.keys() & set(score_columns)
            _add(row, id_column, score_columns, rows, problems)
        if first is not None:
            for name in (name for name in score_columns if name not in there):
                problems.problem(first.location, f"no column {shown(name)} for the scores; {_meant(name, first)}")
        return Collection(scores=rows.finished(lambda: (files["results"][0], "has no rows")))

    return read


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
        problems.problem(f"{row.location}: {columns[0]}", f"expected an id, found {shown(query_id)}")
        return
    question = row.cells[asked[0]] if asked else None
    scores: dict[str, float | None] = {}
    for name in score_columns:
        try:
            scores[name] = as_number(row.cells.get(name))
        except ValueError as error:
            problems.problem(f"{row.location}: {name}", str(error))
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
    more = ", …" if len(columns) > bounds.LISTED else ""
    there = f"there are {', '.join(map(shown, columns[: bounds.LISTED]))}{more}"
    return NearNames(columns).advice(name, there) if name else there


WRITE = 'write the file with `result.to_pandas().to_json(FILE, orient="records", lines=True)`'
RAGAS_EXAMPLE = "user_input,response,faithfulness"
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
INDEX = "Unnamed: 0"  # pandas' name for the row numbers that it has written to CSV and read again


def read(files: Files, _wanted: set[Part], problems: Collector, progress: Progress) -> Collection:
    """Read ``results`` files of ragas."""
    collected: list[tuple[TableRow, str | int | None, str | None, str | None]] = []
    texts: dict[str, str] = {}  # columns with anything but numbers, with its first location
    for location, cells in table_rows(files["results"], RAGAS_EXAMPLE, problems, progress):
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
    """Return the id and the question of a row; if it has neither, add a problem and return None."""
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
    texts_only = f"; found only texts in {_listed(list(texts))}" if texts else ""
    return f"has no column with numbers{texts_only}; {WRITE}"


def _listed(names: Sequence[str]) -> str:
    listed = ", ".join(repr(shorten(name, bounds.NAME)) for name in names[: bounds.NAMES])
    return f"{listed}, …" if len(names) > bounds.NAMES else listed


FORMAT = of_scores(reader(None, ()))


def _read_ragas(files: Files, wanted: set[Part], problems: Collector, progress: Progress) -> Collection:
    """Read samples, results, or both."""
    scores = read(files, wanted, problems, progress).scores if "scores" in wanted else None
    if not wanted - {"scores"}:
        return Collection(scores=scores)
    return replace(samples.read(files, wanted, problems, progress), scores=scores)


RAGAS = Format(
    read=_read_ragas,
    gives={"samples": {"golden", "run"}, "results": {"scores"}},
    adds_to={"golden": "results"},
    outputs={"samples": Output(needs={"golden"}, takes={"run"}, write=samples.write_samples)},
)
