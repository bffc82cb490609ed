"""Read and write BEIR's format: ``queries.jsonl`` and ``corpus.jsonl`` (``_id``, ``text``), ``qrels/test.tsv``.

The qrels have a header. BEIR has no run format of its own, so runs are read and written in TREC's.
"""

import csv
from collections.abc import Iterator
from contextlib import suppress
from io import StringIO
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from ragcontract.convert import trec
from ragcontract.convert.collection import BOM, Collection, First, Format, Output, Pairs, Source, labelled
from ragcontract.convert.trec import as_grade, judged, rows
from ragcontract.core.ids import Id, as_id, some
from ragcontract.core.phrase import Location
from ragcontract.files.json_lines import read_jsonl
from ragcontract.files.problems import Collector, located
from ragcontract.files.schema import shown

HEADER = ("query-id", "corpus-id", "score")
QREL = "<TAB>".join(HEADER)


class Text(Struct, frozen=True, kw_only=True, gc=False):
    """A line of ``queries.jsonl``."""

    id: Annotated[Id, Meta(description="The query's id.")] = msgspec.field(name="_id")
    text: str


class Document(Struct, frozen=True, kw_only=True, gc=False):
    """A line of ``corpus.jsonl``; only the id is used."""

    id: Id = msgspec.field(name="_id")


def read(source: Source) -> Collection:
    """Read the ``qrels``, ``queries``, ``corpus`` and ``run`` files that the wanted parts need."""
    queries = rankings = None
    if "golden" in source.wanted:
        queries = labelled(_read_qrels(source), _read_queries(source), source.problems)
    if "run" in source.wanted:
        rankings = trec.read_run(source)
    collection = Collection(queries=queries, rankings=rankings)
    if source.files["corpus"]:
        _compare_with_corpus(collection, source)
    return collection


def _read_qrels(source: Source) -> Pairs[float]:
    problems = source.problems
    labels = Pairs[float]("corpus-id", problems)
    for row in rows(source.files["qrels"], _split, QREL, problems, source.progress, headers=1):
        if len(row.columns) != len(HEADER) or not all(row.columns):
            line = shown("\t".join(row.columns))
            problems.problem(row.location, f"expected the 3 columns `{QREL}`, found {line}")
        elif row.number == 1:
            if tuple(row.columns) != HEADER:
                line = shown("\t".join(row.columns))
                problems.problem(row.location, f"expected the header `{QREL}`, found {line}")
        else:
            query_id, doc_id, text = row.columns
            grade = as_grade(text, row.location.at("score"), problems)
            labels.add(query_id, doc_id, grade or 0, row.location)
    return labels


def _split(line: str) -> list[str]:
    line = line.rstrip("\r\n")
    if '"' in line:  # rare; BEIR reads this file with the csv module
        with suppress(csv.Error):
            return next(csv.reader([line], delimiter="\t"))
    return line.split("\t")


def _read_queries(source: Source) -> dict[str, str]:
    texts: dict[str, str] = {}
    first = First(source.problems)
    events = read_jsonl(source.files["queries"], Text, progress=source.progress)
    for location, row in located(events, source.problems):
        query_id = as_id(row.id)
        if first.is_new(query_id, location, repr(query_id), "_id"):
            texts[query_id] = row.text
    return texts


def _compare_with_corpus(collection: Collection, source: Source) -> None:
    paths = source.files["corpus"]
    events = read_jsonl(paths, Document, spell_check=0, progress=source.progress)
    known = {as_id(row.id) for _, row in located(events, source.problems)}
    if strange := [doc_id for doc_id in doc_ids(collection) if doc_id not in known]:
        source.problems.warning(f"{paths[0]}: {some(strange, 'document')} of the other files not in the corpus")


def doc_ids(collection: Collection) -> dict[str, None]:
    """Return all documents of a collection in the order of their first occurrence."""
    documents: dict[str, None] = {}
    for query in (collection.queries or {}).values():
        documents.update(dict.fromkeys(query.grades))
    for ranking in (collection.rankings or {}).values():
        documents.update(dict.fromkeys(result.doc_id for result in ranking.results))
    return documents


def write_qrels(collection: Collection, problems: Collector) -> Iterator[str]:
    """Yield the header and the labels as lines."""
    yield "\t".join(HEADER) + "\n"
    for label in judged(collection, problems, _refuse_tabs, _refuse_tabs):
        line = StringIO()
        csv.writer(line, delimiter="\t", lineterminator="\n").writerow(label)
        yield line.getvalue()


def write_queries(collection: Collection, _problems: Collector) -> Iterator[str]:
    """Yield the questions as lines."""
    for query in (collection.queries or {}).values():
        yield msgspec.json.encode({"_id": query.id, "text": query.text, "metadata": {}}).decode() + "\n"


def write_corpus(collection: Collection, problems: Collector) -> Iterator[str]:
    """Yield a line for each labelled or retrieved document: its id and an empty text, because its text is not known."""
    problems.warning("the corpus has the documents' ids only: their texts are not in golden queries or runs")
    for doc_id in doc_ids(collection):
        yield msgspec.json.encode({"_id": doc_id, "title": "", "text": ""}).decode() + "\n"


def _refuse_tabs(name: str, location: Location, problems: Collector) -> None:
    if any(char in name for char in "\t\r\n\0") or name.startswith(BOM):
        message = "has a tab, a line break or an invisible character in it, which BEIR's qrels cannot hold"
        problems.problem(location, f"{shown(name)} {message}")


FORMAT = Format(
    read=read,
    labels_everything=True,
    gives={"qrels": {"golden"}, "run": {"run"}},
    adds_to={"queries": "qrels", "corpus": "qrels"},
    outputs={
        "qrels": Output(needs={"golden"}, write=write_qrels),
        "queries": Output(needs={"golden"}, write=write_queries),
        "corpus": Output(needs={"golden"}, takes={"run"}, write=write_corpus),
        "run": Output(needs={"run"}, write=trec.write_run),
    },
)
