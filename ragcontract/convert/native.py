"""Read and write the native format of ``rag-contract check``: golden rows and run rows as JSON lines."""

from collections.abc import Iterator

import msgspec

from ragcontract.contract.golden_file import Golden
from ragcontract.convert.collection import (
    Collection,
    First,
    Format,
    Output,
    Query,
    Ranking,
    Retrieved,
    Source,
    golden_of,
)
from ragcontract.core import bounds
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.ids import as_id, some
from ragcontract.core.phrase import Location
from ragcontract.core.run import RunRow, row_type
from ragcontract.files.json_lines import How
from ragcontract.files.problems import Collector, located
from ragcontract.files.rows import read_rows

# Derived from the records, so that fields that are added later are reported as lost, too.
GOLDEN_ONLY = [
    name
    for name in GoldenQuery.__struct_fields__
    if name not in {"id", "query", "relevant_doc_ids", "relevance", "location", "names_documents"}
    and name not in {"rules", "answer", "turns"}  # made from fields about the answer
]
RUN_ROW = row_type()
RUN_ONLY = [name for name in RUN_ROW.__struct_fields__ if name not in {"query_id", "results"}]
RESULT_ONLY = ("chunk_id", "metadata")


def read(source: Source) -> Collection:
    """Read the wanted ``golden`` and ``run`` files; warn of fields that other formats do not have."""
    queries = rankings = None
    if "golden" in source.wanted:
        golden = golden_of(source)
        queries = {query.id: as_graded(query) for query in golden.queries.values()}
        _warn_of_lost(_lost_from_golden(golden), source.problems)
    if "run" in source.wanted:
        rankings = _read_run(source)
    return Collection(queries=queries, rankings=rankings)


def as_graded(query: GoldenQuery) -> Query:
    """Return a golden query with the grades of its documents, which are 1 if it has none."""
    grades = query.relevance
    if grades is None:
        grades = dict.fromkeys(query.relevant_doc_ids, 1.0)
    return Query(id=query.id, text=query.query, grades=grades, location=query.location)


def _lost_from_golden(golden: Golden) -> dict[str, Location]:
    """Return the fields that are used and that other formats do not have, each with its first location."""
    defaults = GoldenQuery(id="", query="", relevant_doc_ids=(), location=Location(""))
    lost: dict[str, Location] = {}
    for query in golden.queries.values():
        for name in GOLDEN_ONLY:
            if getattr(query, name) != getattr(defaults, name):
                lost.setdefault(name, query.location)
    if golden.metadata:
        lost["metadata"] = golden.metadata
    return lost | golden.answer_fields


def _warn_of_lost(fields: dict[str, Location], problems: Collector) -> None:
    if fields:
        location = next(iter(fields.values()))
        problems.warning(f"{location}: not in the other format, and left out: {', '.join(fields)}")


def _read_run(source: Source) -> dict[str, Ranking]:
    rankings: dict[str, Ranking] = {}
    lost: dict[str, Location] = {}
    first = First(source.problems)
    how = How(known=RunRow, spell_check=bounds.SPELL_CHECKED, progress=source.progress)
    for location, row in located(read_rows(source.files["run"], RUN_ROW, **how), source.problems):
        query_id = as_id(row.query_id)
        if not first.is_new(query_id, location, repr(query_id), "query_id"):
            continue
        for name in _lost_from_run(row):
            lost.setdefault(name, location)
        results = [Retrieved(doc_id=as_id(result.doc_id), score=result.score) for result in row.results]
        rankings[query_id] = Ranking(query_id=query_id, results=results, location=location)
    _warn_of_lost(lost, source.problems)
    return rankings


def _lost_from_run(row: RunRow) -> Iterator[str]:
    yield from (name for name in RUN_ONLY if getattr(row, name) is not None)
    for name in RESULT_ONLY:
        if any(getattr(result, name) is not None for result in row.results):
            yield f"results.{name}"


def write_golden(collection: Collection, _problems: Collector) -> Iterator[str]:
    """Yield golden rows as lines, with all grades in ``relevance``; documents of grade 1 or more are relevant."""
    for query in (collection.queries or {}).values():
        if query.answer is not None:
            yield _line({"id": query.id, "query": query.text, **query.answer})
            continue
        # Write whole grades as integers, which are easier to read.
        relevance = {doc_id: int(grade) if grade == int(grade) else grade for doc_id, grade in query.grades.items()}
        yield _line({"id": query.id, "query": query.text, "relevance": relevance})


def write_run(collection: Collection, problems: Collector) -> Iterator[str]:
    """Yield run rows as lines."""
    rankings = collection.rankings or {}
    for ranking in rankings.values():
        if ranking.row is not None:
            yield ranking.row.decode() + "\n"
            continue
        results: list[dict[str, str | float]] = [
            {"doc_id": result.doc_id} if result.score is None else {"doc_id": result.doc_id, "score": result.score}
            for result in ranking.results
        ]
        yield _line({"query_id": ranking.query_id, "results": results})
    if missing := [query_id for query_id in collection.queries or {} if query_id not in rankings]:
        problems.warning(
            f"{some(missing)} not in the run: if nothing was found for them, say so with `missing_queries: zero`"
        )


def write_scores(collection: Collection, _problems: Collector) -> Iterator[str]:
    """Yield the rows of a scores file as lines."""
    yield from map(_line, collection.scores or [])


def _line(row: object) -> str:
    return msgspec.json.encode(row).decode() + "\n"


FORMAT = Format(
    read=read,
    gives={"golden": {"golden"}, "run": {"run"}},
    outputs={
        "golden": Output(needs={"golden"}, write=write_golden),
        "run": Output(needs={"run"}, write=write_run),
        "scores": Output(needs={"scores"}, write=write_scores),
    },
)
