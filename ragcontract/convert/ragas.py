"""Read and write the samples of ragas, and read the scores of its ``EvaluationResult``.

Samples have one turn and context ids, as JSON lines or as one JSON list. The id of a sample is its question, unless it
has an ``id`` field, which ragas ignores. In a table of scores, every column with numbers is a score, except for the
fields of a sample. ragas leaves missing values out of its means.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from ragcontract.convert.collection import (
    Collection,
    First,
    Format,
    Output,
    Query,
    Ranking,
    Retrieved,
    Source,
)
from ragcontract.convert.input_files import TableRow, objects, table_rows
from ragcontract.convert.measured import Measured, as_number, row_error, score_rows
from ragcontract.core.golden import RELEVANT_GRADE
from ragcontract.core.ids import Id, as_id, as_ids, first_names, some, unique_ids
from ragcontract.core.phrase import Location
from ragcontract.files.problems import Collector
from ragcontract.files.schema import shown


class Sample(Struct, frozen=True, kw_only=True, gc=False):
    """The fields of a sample that concern retrieval."""

    user_input: Annotated[str, Meta(min_length=1)]
    id: Id | None = None
    retrieved_context_ids: list[Id] | None = None
    reference_context_ids: list[Id] | None = None
    # These say what is expected of the answer, and are not converted.
    reference: Any = None
    reference_contexts: Any = None
    reference_tool_calls: Any = None
    reference_topics: Any = None
    rubrics: Any = None


LEFT_OUT = ("reference", "reference_contexts", "reference_tool_calls", "reference_topics", "rubrics")


def _read_samples(source: Source) -> Collection:
    """Read ``samples`` files: reference contexts become golden queries, retrieved contexts become a run."""
    wanted, problems = source.wanted, source.problems
    queries: dict[str, Query] = {}
    rankings: dict[str, Ranking] = {}
    first = First(problems)
    lost: dict[str, Location] = {}
    for location, sample in objects(source.files["samples"], Sample, problems, source.progress):
        sample_id = sample.user_input if sample.id is None else as_id(sample.id)
        if not first.is_new(sample_id, location, repr(sample_id), "user_input" if sample.id is None else "id"):
            continue
        if "golden" in wanted:
            expected = (name for name in LEFT_OUT if getattr(sample, name) not in (None, ""))
            lost = dict.fromkeys(expected, location) | lost
            relevant = _needed(sample.reference_context_ids, location.at("reference_context_ids"), problems)
            grades = dict.fromkeys(unique_ids(list(relevant)), float(RELEVANT_GRADE))
            queries[sample_id] = Query(id=sample_id, text=sample.user_input, grades=grades, location=location)
        if "run" in wanted:
            retrieved = _needed(sample.retrieved_context_ids, location.at("retrieved_context_ids"), problems)
            results = [Retrieved(doc_id=doc_id) for doc_id in as_ids(list(retrieved))]
            rankings[sample_id] = Ranking(query_id=sample_id, results=results, location=location)
    if lost:
        problems.warning(f"{next(iter(lost.values()))}: not read from samples, and left out: {', '.join(lost)}")
    return Collection(queries=queries if "golden" in wanted else None, rankings=rankings if "run" in wanted else None)


def _needed(ids: Sequence[str | int] | None, location: Location, problems: Collector) -> Sequence[str | int]:
    if ids is None:
        problems.problem(location, "is missing; expected a list of ids")
    return ids or []


def write_samples(collection: Collection, problems: Collector) -> Iterator[str]:
    """Yield a sample for each golden query, with its results if there is a run."""
    queries = collection.queries or {}
    rankings = collection.rankings
    for query in queries.values():
        sample: dict[str, object] = {"id": query.id, "user_input": query.text}
        if rankings is not None and query.id in rankings:
            sample["retrieved_context_ids"] = [result.doc_id for result in rankings[query.id].results]
        sample["reference_context_ids"] = [doc for doc, grade in query.grades.items() if grade >= RELEVANT_GRADE]
        yield msgspec.json.encode(sample).decode() + "\n"
    if graded := [query.id for query in queries.values() if set(query.grades.values()) - {RELEVANT_GRADE}]:
        problems.warning(f"{some(graded)} with grades other than 1: samples only say what is relevant")
    if rankings is not None:
        if missing := [query_id for query_id in queries if query_id not in rankings]:
            problems.warning(f"{some(missing)} not in the run: the samples have no retrieved_context_ids")
        if unknown := [query_id for query_id in rankings if query_id not in queries]:
            problems.warning(f"{some(unknown)} in the run only: left out, because a sample needs its question")


WRITE = 'write the file with `result.to_pandas().to_json(FILE, orient="records", lines=True)`'
EXAMPLE = "user_input,response,faithfulness"
# The fields of ragas' samples of one turn and of several.
SAMPLE = frozenset(
    {
        *Sample.__struct_fields__, "retrieved_contexts", "response", "multi_responses", "persona_name", "query_style",
        "query_length",
    }
)  # fmt: skip
INDEX = "Unnamed: 0"  # pandas' name for the row numbers that it has written to CSV and read again


def _read_scores(source: Source) -> Collection:
    problems = source.problems
    collected: list[tuple[TableRow, str | int | None, str | None, str | None]] = []
    texts: dict[str, Location] = {}  # columns with anything but numbers, with its first location
    for location, cells in table_rows(source, EXAMPLE):
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
    rows = score_rows(source)
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
        problems.warning(f"{location}: not only numbers, and left out: {first_names(list(texts))}")
    return rows.collection(source.files["results"], _nothing(texts))


def _named(
    location: Location, cells: dict[str, object], problems: Collector
) -> tuple[str | int | None, str | None] | None:
    """Return the id and the question of a row; if it has neither, add a problem and return None."""
    query_id, question = cells.get("id"), cells.get("user_input")
    if isinstance(query_id, str) and not query_id:
        query_id = None  # an empty cell
    if query_id is not None and (not isinstance(query_id, str | int) or isinstance(query_id, bool)):
        problems.problem(location.at("id"), f"expected text or a whole number, found {shown(query_id)}")
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
    problems.problem(location.at("user_input"), message)
    return None


def _nothing(texts: Iterable[str]) -> str:
    texts_only = f"; found only texts in {first_names(list(texts))}" if texts else ""
    return f"has no column with numbers{texts_only}; {WRITE}"


def read(source: Source) -> Collection:
    """Read samples, results, or both."""
    scores = _read_scores(source).scores if "scores" in source.wanted else None
    if not source.wanted - {"scores"}:
        return Collection(scores=scores)
    return replace(_read_samples(source), scores=scores)


FORMAT = Format(
    read=read,
    gives={"samples": {"golden", "run"}, "results": {"scores"}},
    adds_to={"golden": "results"},
    outputs={"samples": Output(needs={"golden"}, takes={"run"}, write=write_samples)},
)
