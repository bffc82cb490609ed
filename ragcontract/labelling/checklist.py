"""The candidates of questions as a text file to tick, and the labels in a ticked one."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping

import msgspec
from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.nearest import NearNames
from ragcontract.core.text import shorten, visible
from ragcontract.files.problems import Collector
from ragcontract.files.schema import shown
from ragcontract.labelling.labels import NOT_RELEVANT, Candidate, Labels, Question, labels_of
from ragcontract.labelling.question_list import read_text

NOTHING = "(nothing answers it)"
HEAD = f"""\
# Put an x between the brackets of every document that answers its question: [x]
# Where at least one is ticked, the others count as not relevant. Where none is ticked, the question stays open.
# If a document that answers it is not listed, add a line with its id. If nothing answers it, tick {NOTHING}.
# Then: rag-contract label --ticked FILE
"""
ITEM = re.compile(r"[-*]?\s*\[(?P<tick>[^\]]{0,3})\]\s*(?P<rest>.*)")
TICKS = {"": False, "x": True}
EXPECTED = "expected a line such as `- [x] ID` or `- [ ] ID`, or `## ID` above the documents of a question"


def checklist(questions: Iterable[Question]) -> Iterator[str]:
    """Yield the text of a file to tick: for each question that is not decided, its candidates without a label."""
    yield HEAD
    for question in questions:
        if question.is_decided(question.labels):
            continue
        yield f"\n## {_id(question.id)}\nQ: {visible(shorten(question.text, bounds.CANDIDATE_TEXT))}\n"
        for candidate in question.undecided(question.labels):
            yield _item(candidate)
        if question.can_be_unanswerable and not question.labels.relevant:
            yield f"- [ ] {NOTHING}\n"


def _item(candidate: Candidate) -> str:
    score = "" if candidate.score is None else f"  {candidate.score:.4g}"
    text = f"  {visible(shorten(candidate.text, bounds.CANDIDATE_TEXT))}" if candidate.text else ""
    return f"- [ ] {_id(candidate.doc_id)}{score}{text}\n"


def _id(name: str) -> str:
    """Return an id as it is, or as JSON where it would not end at the first blank, or has invisible characters."""
    if visible(name) != name:
        return json.dumps(name)
    is_plain = name.split() == [name] and not name.startswith(('"', "("))
    return name if is_plain else json.dumps(name, ensure_ascii=False)


class _Ticked(Struct, kw_only=True):
    """What is ticked for one question, as it is read."""

    query: GoldenQuery
    grades: dict[str, float] = {}
    nothing: str | None = None  # the location of the tick

    def labels(self) -> Labels | None:
        """Return the labels of the question, or None if nothing is ticked. What was decided earlier stays."""
        before = labels_of(self.query)
        ticked = {doc_id: grade for doc_id, grade in self.grades.items() if grade and doc_id not in before.relevant}
        others = {doc_id: grade for doc_id, grade in self.grades.items() if not grade and doc_id not in before.grades}
        if self.nothing:
            return Labels(grades={**before.grades, **others}, unanswerable=True)
        return before.graded({**others, **ticked}) if any(self.grades.values()) else None


def read_checklist(path: str, queries: Mapping[str, GoldenQuery], problems: Collector) -> dict[str, Labels]:
    """Return the labels in a ticked file by query id; ``problems`` collects what is wrong with it, by line."""
    reader = _Reader(path, queries, problems)
    text = read_text(path, bounds.TICKED, "candidates")
    for number, line in enumerate(text.split("\n"), start=1):
        reader.line(f"{path}:{number}", line.strip())
    return reader.finish()


class _Reader:
    def __init__(self, path: str, queries: Mapping[str, GoldenQuery], problems: Collector) -> None:
        self._path = path
        self._queries = queries
        self._problems = problems
        self._near = NearNames(queries)
        self._ticked: dict[str, _Ticked] = {}
        self._first: dict[str, str] = {}
        self._current: _Ticked | None = None
        self._is_below_a_question = False

    def line(self, location: str, line: str) -> None:
        if line.startswith("##"):
            self._question(location, line.removeprefix("##").strip())
        elif item := ITEM.fullmatch(line):
            self._item(location, item["tick"].strip().lower(), item["rest"].strip())
        elif line and not line.startswith(("#", "Q:")):
            self._problems.problem(location, f"{EXPECTED}, found {shown(line)}")

    def _question(self, location: str, text: str) -> None:
        self._is_below_a_question = True
        self._current = None
        query_id = self._read_id(location, text)
        if query_id is None:
            return
        if query_id not in self._queries:
            advice = self._near.advice(query_id, "the ids have to stay as they were written")
            self._problems.problem(location, f"no golden query has the id {shown(query_id)}; {advice}")
        elif query_id in self._first:
            self._problems.problem(location, f"duplicate id {query_id!r}, first at {self._first[query_id]}")
        else:
            self._first[query_id] = location
            self._ticked[query_id] = self._current = _Ticked(query=self._queries[query_id])

    def _item(self, location: str, tick: str, text: str) -> None:
        if tick not in TICKS:
            self._problems.problem(location, f"expected [x] or [ ], found [{tick}]")
        elif not self._is_below_a_question:
            self._problems.problem(location, "is above the first question; questions begin with `## ID`")
        elif text == NOTHING:
            if self._current and TICKS[tick]:
                self._current.nothing = location
        elif (doc_id := self._read_id(location, text)) is not None and self._current:
            grades = self._current.grades
            grades[doc_id] = max(grades.get(doc_id, NOT_RELEVANT), int(TICKS[tick]))

    def _read_id(self, location: str, text: str) -> str | None:
        name = text.split(maxsplit=1)[0] if text else ""
        if text.startswith('"'):
            try:
                name, _ = json.JSONDecoder().raw_decode(text)
                msgspec.json.encode(name)  # half of a surrogate pair
            except (ValueError, RecursionError):
                self._problems.problem(location, f"expected an id as JSON writes it, found {shown(text)}")
                return None
        if not 0 < len(name) <= bounds.ID:
            self._problems.problem(location, f"expected an id of 1 to {bounds.ID:,} characters")
            return None
        return name

    def finish(self) -> dict[str, Labels]:
        labels = {}
        for query_id, ticked in self._ticked.items():
            if ticked.nothing and (any(ticked.grades.values()) or labels_of(ticked.query).relevant):
                message = f"{NOTHING} is ticked, but so is a document of {query_id!r}, or one is relevant already"
                self._problems.problem(ticked.nothing, message)
            elif ticked.nothing and ticked.query.must_rank_at_most is not None:
                message = f"{NOTHING} is ticked, but {query_id!r} has must_rank_at_most, which needs a document"
                self._problems.problem(ticked.nothing, message)
            elif (one := ticked.labels()) is not None:
                labels[query_id] = one
        if not self._ticked and not self._problems.found():
            self._problems.problem(self._path, f"has no questions; {EXPECTED}")
        return labels
