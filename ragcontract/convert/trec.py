"""Read and write TREC's formats: qrels, runs and topics.

Their lines are ``qid 0 docid grade``, ``qid Q0 docid rank score tag`` and ``qid<TAB>text``.

Files are read as trec_eval 10.0 reads them (``get_trec_results.c``, ``get_qrels.c``). Lines that start with ``#`` are
comments, in a run also after blanks. A ``#`` further on in a line is part of an id.

The ranks of a run are ignored, and so are its second column, its tag and any fields after the tag. trec_eval (and
pytrec_eval, which uses the same code) sorts the documents of a query by descending score, and those with equal scores
by document id in descending byte order. It stores scores as 32-bit floats, so scores that differ only after about seven
digits are equal.
"""

import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from math import inf, isfinite
from typing import NamedTuple

from ragcontract.convert.collection import (
    BOM,
    Collection,
    First,
    Format,
    Output,
    Pairs,
    Ranking,
    Retrieved,
    Source,
    labelled,
)
from ragcontract.core import bounds
from ragcontract.core.ids import some
from ragcontract.core.phrase import Location
from ragcontract.files.json_text import UnreadableError, lines_of, malformed
from ragcontract.files.opening import READ_ERRORS, InputFile, Progress, no_progress, read_problem
from ragcontract.files.problems import Collector
from ragcontract.files.schema import shown

QREL = "qid 0 docid grade"
RESULT = "qid Q0 docid rank score tag"
TOPIC = "qid<TAB>text"
TAG = "rag-contract"
COMMENT = "#"
Judged = tuple[str, str, int]
Refuse = Callable[[str, Location, Collector], None]
_BLANKS = " \t\n\r\v\f"  # the whitespace of C's isspace(); an id may contain a no-break space
_SPACE = re.compile(f"[{_BLANKS}]+")
_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")


class Row(NamedTuple):
    """A line."""

    location: Location  # such as `qrels.txt:3`
    number: int
    columns: list[str]


def read(source: Source) -> Collection:
    """Read the ``qrels``, ``queries`` and ``run`` files that the wanted parts need."""
    queries = rankings = None
    if "golden" in source.wanted:
        queries = labelled(_read_qrels(source), _read_topics(source), source.problems)
    if "run" in source.wanted:
        rankings = read_run(source)
    return Collection(queries=queries, rankings=rankings)


def read_run(source: Source) -> dict[str, Ranking]:
    """Read runs, with the results of each query in the order of trec_eval."""
    problems = source.problems
    retrieved = Pairs[Retrieved]("docid", problems)
    for row in rows(source.files["run"], _split_result, RESULT, problems, source.progress):
        if not _has(row, RESULT, problems, or_more=True):
            continue
        query_id, _, doc_id, _, text = row.columns[:5]
        score = float(text) if _NUMBER.fullmatch(text) else inf
        if not isfinite(score):
            problems.problem(row.location.at("score"), f"expected a number, found {shown(text)}")
        retrieved.add(query_id, doc_id, Retrieved(doc_id=doc_id, score=score), row.location)
    return {
        query_id: Ranking(
            query_id=query_id,
            results=in_trec_evals_order(list(results.values())),
            location=retrieved.locations[query_id],
        )
        for query_id, results in retrieved.values.items()
    }


def write_qrels(collection: Collection, problems: Collector) -> Iterator[str]:
    """Yield the labels as lines."""
    for query_id, doc_id, grade in judged(collection, problems, _refuse_query_id, _refuse_spaces):
        yield f"{query_id} 0 {doc_id} {grade}\n"


def judged(collection: Collection, problems: Collector, of_query: Refuse, of_document: Refuse) -> Iterator[Judged]:
    """Yield the ids of query and document and the grade of each label; both functions check ids."""
    unlabelled = []
    for query in (collection.queries or {}).values():
        of_query(query.id, query.location.at("id"), problems)
        if not query.grades:
            unlabelled.append(query.id)
        for doc_id, grade in query.grades.items():
            of_document(doc_id, query.location.at("relevant_doc_ids"), problems)
            if grade != int(grade):
                why = f"{shown(doc_id)} has the grade {grade:g}; grades are whole numbers in this format"
                problems.problem(query.location.at("relevance"), why)
            yield query.id, doc_id, int(grade)
    if unlabelled:
        problems.warning(f"{some(unlabelled)} without a judged document: left out, because qrels have no line for that")


def write_topics(collection: Collection, problems: Collector) -> Iterator[str]:
    """Yield the questions as lines, with line breaks and tabs replaced by spaces."""
    for query in (collection.queries or {}).values():
        _refuse_query_id(query.id, query.location.at("id"), problems)
        yield f"{query.id}\t{' '.join(query.text.split())}\n"


def write_run(collection: Collection, problems: Collector) -> Iterator[str]:
    """Yield the results as lines, each document once per query, with scores that keep their order in trec_eval."""
    empty, rescored, repeated = [], [], []
    for ranking in (collection.rankings or {}).values():
        _refuse_query_id(ranking.query_id, ranking.location.at("query_id"), problems)
        results = _each_once(ranking.results)
        scores, are_own = scores_in_order(results)
        if not results:
            empty.append(ranking.query_id)
        if not are_own:
            rescored.append(ranking.query_id)
        if len(results) < len(ranking.results):
            repeated.append(ranking.query_id)
        for rank, (result, score) in enumerate(zip(results, scores, strict=True), start=1):
            _refuse_spaces(result.doc_id, ranking.location.at("results", rank - 1, "doc_id"), problems)
            yield f"{ranking.query_id} Q0 {result.doc_id} {rank} {score!r} {TAG}\n"
    if empty:
        problems.warning(f"{some(empty)} without results: left out, because a run has no line for that")
    if rescored:
        problems.warning(
            f"{some(rescored)} with scores that are missing or do not descend: written with scores that count down"
        )
    if repeated:
        problems.warning(f"{some(repeated)} with a document again: only its best rank is written")


def _split_qrel(line: str) -> list[str]:
    return [] if line.startswith(COMMENT) else _SPACE.split(line.strip(_BLANKS))


def _split_result(line: str) -> list[str]:
    stripped = line.strip(_BLANKS)
    return [] if stripped.startswith(COMMENT) else _SPACE.split(stripped)


def _split_topic(line: str) -> list[str]:
    return [] if line.startswith(COMMENT) else line.strip("\r\n").split("\t", 1)


def _has(row: Row, expected: str, problems: Collector, *, or_more: bool = False) -> bool:
    """Return whether a row has the expected number of columns, ``or_more``; if not, add a problem."""
    wanted = len(expected.split())
    if len(row.columns) == wanted or (or_more and len(row.columns) > wanted):
        return True
    line = shown(" ".join(row.columns))
    problems.problem(row.location, f"expected the {wanted} columns `{expected}`, found {len(row.columns)}: {line}")
    return False


def _read_qrels(source: Source) -> Pairs[float]:
    problems = source.problems
    labels = Pairs[float]("docid", problems)
    for row in rows(source.files["qrels"], _split_qrel, QREL, problems, source.progress):
        if not _has(row, QREL, problems):
            continue
        query_id, _, doc_id, text = row.columns
        grade = as_grade(text, row.location.at("grade"), problems)
        labels.add(query_id, doc_id, grade or 0, row.location)
    return labels


def _read_topics(source: Source) -> dict[str, str]:
    problems = source.problems
    texts: dict[str, str] = {}
    first = First(problems)
    for row in rows(source.files["queries"], _split_topic, TOPIC, problems, source.progress):
        query_id = row.columns[0].strip()
        if query_id.startswith("<") and len(row.columns) == 1:
            problems.problem(row.location, f"is a topics file with tags; expected lines of `{TOPIC}`")
            break
        if len(row.columns) == 1 or not query_id:
            problems.problem(row.location, f"expected `{TOPIC}`, found {shown(row.columns[0])}")
        elif first.is_new(query_id, row.location, repr(query_id), "qid"):
            texts[query_id] = row.columns[1].strip()
    return texts


def _each_once(results: Sequence[Retrieved]) -> list[Retrieved]:
    best: dict[str, Retrieved] = {}
    for result in results:
        best.setdefault(result.doc_id, result)
    return list(best.values())


def _refuse_query_id(name: str, location: Location, problems: Collector) -> None:
    if name.startswith(COMMENT):
        problems.problem(location, f"{shown(name)} starts with #, as a comment does in TREC's formats")
    else:
        _refuse_spaces(name, location, problems)


def _refuse_spaces(name: str, location: Location, problems: Collector) -> None:
    # All Unicode whitespace, not only that of C: tools in many languages read these files.
    if name.split() != [name] or "\0" in name or name.startswith(BOM):
        message = "has whitespace or an invisible character in it, which ends a column in TREC's formats"
        problems.problem(location, f"{shown(name)} {message}")


def rows(
    paths: Sequence[str],
    split: Callable[[str], list[str]],
    expected: str,
    problems: Collector,
    progress: Progress = no_progress,
    *,
    headers: int = 0,
) -> Iterator[Row]:
    """Yield the non-blank lines, ``split`` into columns; ``problems`` collects what cannot be read.

    ``split`` returns no columns for a comment, which is skipped. ``expected`` describes a line, for messages about
    files that are empty or not text. A file counts as empty if it has only comments after its first ``headers`` lines.
    """
    for path in paths:
        try:
            file = InputFile(path, progress)
        except OSError as error:
            problems.problem(path, read_problem(error))
            continue
        with file:
            yield from _rows(file, split, expected, problems, headers)


def _rows(
    file: InputFile, split: Callable[[str], list[str]], expected: str, problems: Collector, headers: int
) -> Iterator[Row]:
    number, is_empty, but = 0, True, ""
    try:
        for number, line in enumerate(lines_of(file, f"lines of `{expected}`"), start=1):
            location = Location(file.path, number)
            try:
                text = line.decode()
            except UnicodeDecodeError as error:
                is_empty = False
                problems.problem(location, malformed(line, error)[1])
                continue
            if text.strip() and (columns := split(text)):
                is_empty = is_empty and number <= headers
                but = " but for its header"
                yield Row(location, number, columns)
    except UnreadableError as error:
        problems.problem(Location(file.path, number + error.lines_on), str(error))
    except READ_ERRORS as error:
        problems.problem(Location(file.path, number + 1), read_problem(error))
    else:
        if is_empty:
            problems.problem(file.path, f"is empty{but}; expected lines of `{expected}`")


def as_grade(text: str, location: Location, problems: Collector) -> float | None:
    """Parse an integer grade, with 0 for a negative one; if it is invalid, add a problem and return None."""
    digits = text.removeprefix("-")
    highest = bounds.GRADE
    if digits.isascii() and digits.isdecimal() and len(digits) <= len(str(highest)) and int(digits) <= highest:
        return max(0, int(text))
    problems.problem(location, f"expected a whole number of at most a billion, found {shown(text)}")
    return None


def as_trec_eval_keeps(scores: Sequence[float]) -> list[float]:
    """Return scores rounded to 32-bit floats; scores out of range become infinite."""
    return array("f", scores).tolist()


def in_trec_evals_order(results: Sequence[Retrieved]) -> list[Retrieved]:
    """Sort the results of one query, which must have scores and distinct documents."""
    rounded = as_trec_eval_keeps([result.score or 0.0 for result in results])
    # The order of code points is that of their UTF-8 bytes.
    ordered = sorted(zip(rounded, results, strict=True), key=lambda pair: (pair[0], pair[1].doc_id), reverse=True)
    return [result for _, result in ordered]


def scores_in_order(results: Sequence[Retrieved]) -> tuple[list[float], bool]:
    """Return scores that keep the order of ``results`` in trec_eval, and whether they are the original ones.

    If a score is missing, or the scores do not strictly descend after rounding, the returned scores count down to 1.
    """
    own = [result.score for result in results if result.score is not None]
    if len(own) == len(results):
        rounded = as_trec_eval_keeps(own)
        if all(map(isfinite, rounded)) and all(better > worse for better, worse in pairwise(rounded)):
            return own, True
    return [float(rank) for rank in range(len(results), 0, -1)], False


FORMAT = Format(
    read=read,
    labels_everything=True,
    gives={"qrels": {"golden"}, "run": {"run"}},
    adds_to={"queries": "qrels"},
    outputs={
        "qrels": Output(needs={"golden"}, write=write_qrels),
        "queries": Output(needs={"golden"}, write=write_topics),
        "run": Output(needs={"run"}, write=write_run),
    },
)
