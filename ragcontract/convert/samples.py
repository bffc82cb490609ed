"""Read and write single-turn samples of ragas with context ids, as JSON lines or as one JSON list.

The id of a sample is its question, unless it has an ``id`` field, which ragas ignores.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import msgspec
from msgspec import Meta, Struct

from ragcontract.convert.collection import Collection, Files, First, Part, Query, Ranking, Retrieved
from ragcontract.core import bounds
from ragcontract.core.golden import RELEVANT_GRADE
from ragcontract.core.ids import Id, as_id, as_ids, some, unique_ids
from ragcontract.files.json_lines import UNDECODABLE, read_jsonl
from ragcontract.files.json_text import JsonLocator, check_nesting, malformed
from ragcontract.files.opening import READ_ERRORS, UTF8_BOM, InputFile, Progress, no_progress, read_problem, read_whole
from ragcontract.files.problems import Collector, located
from ragcontract.files.schema import Mismatch, mismatches


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


def read(files: Files, wanted: set[Part], problems: Collector, progress: Progress) -> Collection:
    """Read ``samples`` files: reference contexts become golden queries, retrieved contexts become a run."""
    queries: dict[str, Query] = {}
    rankings: dict[str, Ranking] = {}
    first = First(problems)
    lost: dict[str, str] = {}
    for location, sample in Samples(files["samples"], Sample, problems, progress):
        sample_id = sample.user_input if sample.id is None else as_id(sample.id)
        if not first.is_new(sample_id, location, "user_input" if sample.id is None else "id", repr(sample_id)):
            continue
        if "golden" in wanted:
            expected = (name for name in LEFT_OUT if getattr(sample, name) not in (None, ""))
            lost = dict.fromkeys(expected, location) | lost
            relevant = _needed(sample.reference_context_ids, f"{location}: reference_context_ids", problems)
            grades = dict.fromkeys(unique_ids(list(relevant)), float(RELEVANT_GRADE))
            queries[sample_id] = Query(id=sample_id, text=sample.user_input, grades=grades, location=location)
        if "run" in wanted:
            retrieved = _needed(sample.retrieved_context_ids, f"{location}: retrieved_context_ids", problems)
            results = [Retrieved(doc_id=doc_id) for doc_id in as_ids(list(retrieved))]
            rankings[sample_id] = Ranking(query_id=sample_id, results=results, location=location)
    if lost:
        problems.warning(f"{next(iter(lost.values()))}: not read from samples, and left out: {', '.join(lost)}")
    return Collection(queries=queries if "golden" in wanted else None, rankings=rankings if "run" in wanted else None)


def _needed(ids: Sequence[str | int] | None, location: str, problems: Collector) -> Sequence[str | int]:
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


PEEKED = 1024

T = TypeVar("T", bound=msgspec.Struct)


class Samples(Generic[T]):
    """Iterates over the objects of one or more files, each with its location, such as ``samples.json:17``."""

    def __init__(
        self, paths: Sequence[str], row_type: type[T], problems: Collector, progress: Progress = no_progress
    ) -> None:
        """Prepare to read ``paths`` as objects of ``row_type``; ``problems`` collects what cannot be read."""
        self._paths = paths
        self._type = row_type
        self._problems = problems
        self._progress = progress

    def __iter__(self) -> Iterator[tuple[str, T]]:
        """Yield each valid object with its location."""
        for path in self._paths:
            try:
                if _starts_a_list(path):
                    yield from self._list(path)
                    continue
            except READ_ERRORS as error:
                self._problems.problem(path, read_problem(error))
                continue
            events = read_jsonl([path], self._type, spell_check=bounds.SPELL_CHECKED, progress=self._progress)
            yield from located(events, self._problems)

    def _list(self, path: str) -> Iterator[tuple[str, T]]:
        data, _ = read_whole(path, self._progress)
        try:
            text = data.decode()
            items = list_items(data)
        except UNDECODABLE as error:
            line, message = malformed(data, error)
            self._problems.problem(f"{path}:{line}", message)
            return
        if not items:
            self._problems.problem(path, "is an empty list; expected JSON objects in it")
        locate = JsonLocator(text)
        for index, (line, item) in enumerate(with_lines(data, items)):
            try:
                yield f"{path}:{line}", msgspec.json.decode(item, type=self._type)
            except UNDECODABLE as error:
                self._explain(path, index, item, error, locate)

    def _explain(self, path: str, index: int, item: bytes, error: Exception, locate: JsonLocator) -> None:
        if self._problems.full:
            self._problems.count()
            return
        for mismatch in mismatches(msgspec.json.decode(item), self._type) or [Mismatch((), str(error))]:
            self._problems.mismatch(f"{path}:{locate.line((index, *mismatch.path))}", mismatch)


def _starts_a_list(path: str) -> bool:
    if not Path(path).is_file():  # a pipe can be read only once; it is read as lines
        return False
    with InputFile(path) as file:
        return file.stream.peek(PEEKED)[:PEEKED].removeprefix(UTF8_BOM).lstrip().startswith(b"[")


def list_items(data: bytes) -> list[msgspec.Raw]:
    """Return the items of a JSON list without decoding them; raises one of ``UNDECODABLE``."""
    check_nesting(data)
    items = msgspec.json.decode(data, type=list[msgspec.Raw])
    msgspec.json.decode(data)  # decoding to Raw skips the items without validating them
    return items


def with_lines(data: bytes, items: Iterable[msgspec.Raw], start: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yield the items of a list, each with its line; the list begins at the offset ``start`` of ``data``."""
    at, number = start, 1 + data.count(b"\n", 0, start)
    for item in map(bytes, items):
        # Only white space and a comma precede the item, so index() finds it; a locator would scan from the start.
        begin = data.index(item, at)
        number += data.count(b"\n", at, begin)
        yield number, item
        number += item.count(b"\n")
        at = begin + len(item)
