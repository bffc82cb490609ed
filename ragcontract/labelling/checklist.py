"""The candidates of questions as a text file to tick, and the labels in a ticked one."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from math import inf

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.golden import RELEVANT_GRADE, GoldenQuery
from ragcontract.core.nearest import NearNames
from ragcontract.core.phrase import Location
from ragcontract.core.safe_text import shorten, visible
from ragcontract.files.problems import Collector
from ragcontract.files.schema import shown
from ragcontract.labelling.labels import NOT_RELEVANT, Candidate, Labels, Question, labels_of
from ragcontract.labelling.sheet import read_text

NOTHING = "(nothing answers it)"
HEAD = f"""\
# Put an x between the brackets of every document that answers its question: [x]
# Where at least one is ticked, the others count as not relevant. Where none is ticked, the question stays open.
# [-] says that a document is not relevant, [?] leaves it open, [2] gives it that grade.
# If a document that answers it is not listed, add a line with its id. If nothing answers it, tick {NOTHING}.
# Then: rag-contract label --ticked FILE
"""
ASKED = "Q:"
ITEM = re.compile(r"[-*]?\s*\[(?P<tick>[^\]]{0,3})\]\s*(?P<rest>.*)")
GRADE = re.compile(r"[0-9]+(\.[0-9]+)?")
RELEVANT, IRRELEVANT, OPEN, UNMARKED = "x", "-", "?", ""
MARKS = {RELEVANT, IRRELEVANT, OPEN, UNMARKED}
EXPECTED = "expected a line such as `- [x] ID` or `- [ ] ID`, or `## ID` above the documents of a question"


def checklist(questions: Iterable[Question]) -> Iterator[str]:
    """Yield the text of a file to tick: for each question that is not decided, its candidates without a label."""
    yield HEAD
    for question in questions:
        if question.is_decided(question.labels):
            continue
        yield f"\n## {quoted_id(question.id)}\n{question_line(question.text)}\n"
        for candidate in question.undecided(question.labels):
            yield item(candidate, " ")
        if question.can_be_unanswerable and not question.labels.relevant:
            yield f"- [ ] {NOTHING}\n"


def question_line(text: str) -> str:
    """Return the line that shows a question to those who tick its documents."""
    return f"{ASKED} {visible(shorten(text, bounds.CANDIDATE_TEXT))}"


def item(candidate: Candidate, mark: str) -> str:
    """Return the line of a candidate, with a mark between its brackets."""
    score = "" if candidate.score is None else f"  {candidate.score:.4g}"
    text = f"  {visible(shorten(candidate.line, bounds.CANDIDATE_TEXT))}" if candidate.text else ""
    return f"- [{mark}] {quoted_id(candidate.doc_id)}{score}{text}\n"


def quoted_id(name: str) -> str:
    """Return an id as it is, or as JSON if it would not end at the first blank or has invisible characters."""
    if visible(name) != name:
        return json.dumps(name)
    is_plain = name.split() == [name] and not name.startswith(('"', "("))
    return name if is_plain else json.dumps(name, ensure_ascii=False)


class _Ticked(Struct, kw_only=True):
    """The marks of one question, which grow while the file is read."""

    query: GoldenQuery
    level: float
    grades: dict[str, float] = {}  # infinite for a document that is ticked without a grade
    unmarked: list[str] = []  # the documents without a mark
    nothing: Location | None = None  # the location of the tick

    def mark(self, doc_id: str, mark: str) -> None:
        """Note a mark. If a document has several, the highest grade counts."""
        if mark == UNMARKED:
            self.unmarked.append(doc_id)
        elif mark != OPEN:
            grade = inf if mark == RELEVANT else NOT_RELEVANT if mark == IRRELEVANT else float(mark)
            self.grades[doc_id] = max(grade, self.grades.get(doc_id, NOT_RELEVANT))

    @property
    def any_relevant(self) -> bool:
        """Whether a document is ticked, or graded as relevant."""
        return any(grade >= self.level for grade in self.grades.values())

    def labels(self) -> Labels | None:
        """Return the labels of the question, or None if nothing is decided. Earlier labels stay."""
        before = labels_of(self.query, self.level)
        decided = {doc_id: self._grade(doc_id, before) for doc_id in self.grades}
        closed = self.any_relevant or self.nothing
        left = [doc_id for doc_id in self.unmarked if doc_id not in self.grades and doc_id not in before.grades]
        grades = {**before.grades, **dict.fromkeys(left if closed else (), NOT_RELEVANT), **decided}
        if not decided and not self.nothing:
            return None
        nothing = bool(self.nothing) or (before.unanswerable and not self.any_relevant)
        return replace(before, grades=grades, unanswerable=nothing)

    def _grade(self, doc_id: str, before: Labels) -> float:
        grade = self.grades[doc_id]
        return grade if grade < inf else max(before.grades.get(doc_id, self.level), self.level)


def read_checklist(
    path: str, queries: Mapping[str, GoldenQuery], problems: Collector, level: float = RELEVANT_GRADE
) -> dict[str, Labels]:
    """Return the labels in a ticked file by query id; ``problems`` collects its problems, by line.

    A ticked document gets the grade ``level``, from which documents are relevant.
    """
    reader = _Reader(path, queries, problems, level)
    text = read_text(path, bounds.TICKED, "candidates")
    for number, line in enumerate(text.split("\n"), start=1):
        reader.line(Location(path, number), line.strip())
    return reader.finish()


class _Reader:
    def __init__(
        self, path: str, queries: Mapping[str, GoldenQuery], problems: Collector, level: float = RELEVANT_GRADE
    ) -> None:
        self._path = path
        self._level = level
        self._queries = queries
        self._problems = problems
        self._near = NearNames(queries)
        self._ticked: dict[str, _Ticked] = {}
        self._first: dict[str, Location] = {}
        self._current: _Ticked | None = None
        self._is_below_a_question = False

    def line(self, location: Location, line: str) -> None:
        if line.startswith("##"):
            self._question(location, line.removeprefix("##").strip())
        elif item := ITEM.fullmatch(line):
            self._item(location, item["tick"].strip().lower(), item["rest"].strip())
        elif line.startswith(ASKED):
            self._asked(location, line)
        elif line and not line.startswith("#"):
            self._problems.problem(location, f"{EXPECTED}, found {shown(line)}")

    def _question(self, location: Location, text: str) -> None:
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
            self._ticked[query_id] = self._current = _Ticked(query=self._queries[query_id], level=self._level)

    def _asked(self, location: Location, line: str) -> None:
        """Refuse the marks below a question that the golden file no longer asks under this id."""
        if self._current is None:
            return
        query = self._current.query
        if line.split() != question_line(query.query).split():
            asks = f"the golden query {shown(query.id)} asks {shown(query.query)}, and this file {shown(line)}"
            advice = "tick a list for the golden file as it is, or give this question the id that it has there"
            self._problems.problem(location, f"{asks}; {advice}")

    def _item(self, location: Location, tick: str, text: str) -> None:
        if tick not in MARKS and not GRADE.fullmatch(tick):
            self._problems.problem(location, f"expected [x], [-], [?], [ ] or a grade as [2], found [{tick}]")
        elif not self._is_below_a_question:
            self._problems.problem(location, "is above the first question; questions begin with `## ID`")
        elif text == NOTHING:
            if self._current and tick == RELEVANT:
                self._current.nothing = location
        elif (doc_id := self._read_id(location, text)) is not None and self._current:
            self._current.mark(doc_id, tick)

    def _read_id(self, location: Location, text: str) -> str | None:
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
            if ticked.nothing and (ticked.any_relevant or labels_of(ticked.query, self._level).relevant):
                message = f"{NOTHING} is ticked, but so is a document of {query_id!r}, or one is relevant already"
                self._problems.problem(ticked.nothing, message)
            elif ticked.nothing and ticked.query.must_rank_at_most is not None:
                message = f"{NOTHING} is ticked, but {query_id!r} has must_rank_at_most, which needs a document"
                self._problems.problem(ticked.nothing, message)
            elif (of_query := ticked.labels()) is not None:
                labels[query_id] = of_query
        if not self._ticked and not self._problems.collected():
            self._problems.problem(self._path, f"has no questions; {EXPECTED}")
        return labels
