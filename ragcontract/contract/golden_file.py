"""Reads the golden queries from ``golden.jsonl``.

A row may name its relevant documents in two fields, ``relevant_doc_ids`` and ``relevance``, which must then agree at
the relevance level.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

from msgspec import Struct

from ragcontract.contract.golden_row import (
    ANSWER_FIELDS,
    ENOUGH,
    NO_FIELDS,
    OPTIONS,
    RULE_FIELDS,
    AnswerFields,
    GoldenRow,
    golden_record,
    present,
)
from ragcontract.core import bounds
from ragcontract.core.golden import PLACEHOLDER, RELEVANT_GRADE, GoldenQuery, graded_from
from ragcontract.core.ids import as_id, unique_ids
from ragcontract.core.invisible import is_visible
from ragcontract.core.lines import Line
from ragcontract.core.nearest import NearNames
from ragcontract.core.numbers import more
from ragcontract.core.phrase import Location
from ragcontract.core.rule import RowRule, Rule
from ragcontract.core.run import SourceFile
from ragcontract.core.safe_text import shorten
from ragcontract.files.opening import Progress, no_progress
from ragcontract.files.paths import existing_files
from ragcontract.files.problems import Batch, Collector, FileRead, MoreProblems, Problem, Problems, Warned
from ragcontract.files.rows import read_rows
from ragcontract.files.schema import Mismatch
from ragcontract.registry import Registry

_starts_plainly = re.compile("[A-Za-z0-9]").match
# Only contracts about answers need these.
FIELDS_OF: Line[Callable[[GoldenRow], AnswerFields]] = Line(home="ragcontract.contract.answer_fields:fields_of")
WARNINGS: Line[Callable[[Iterable[GoldenQuery]], Iterator[str]]] = Line(
    home="ragcontract.contract.answer_review:warnings"
)
OF_ANSWERS = "what the answer must be, as in answer_must_include"
RULES = NearNames(RULE_FIELDS)
OWN_FIELD = "a field of your own must be in allow_fields of the configuration"
UNLABELLED = "nothing is labelled yet: run rag-contract label"
FILL_IN = "run `rag-contract label`, or write the ids of the documents that answer the question, or [] if nothing does"


class Golden(Struct, frozen=True, kw_only=True):
    """The golden set."""

    queries: dict[str, GoldenQuery]  # by id, in the order of the files
    files: tuple[SourceFile, ...] = ()
    metadata: Location | None = None  # the location of the first row with metadata, which is not retained
    # The fields about the answer that any row has, with the location of the first.
    answer_fields: dict[str, Location] = {}
    rule_types: frozenset[type[Rule]] = frozenset()  # the classes of all rules about rows
    all_documents: bool = True  # whether every row wants or forbids documents
    problems: Problems = Problems()


# One comparison a row: a golden file may have a million.
_about_answers = attrgetter(*ANSWER_FIELDS, *OPTIONS)
NOTHING = (None,) * (len(ANSWER_FIELDS) + len(OPTIONS))


def read_golden(
    paths: Sequence[str],
    registry: Registry,
    progress: Progress = no_progress,
    *,
    level: float | None = RELEVANT_GRADE,
    allow_fields: Collection[str] | None = (),
) -> Golden:
    """Read golden files (or globs) as one set; ids must be unique across all files.

    Documents graded at least ``level`` are relevant. If the level is None, it is not known, and a row whose
    ``relevant_doc_ids`` agree with its grades at any level is accepted.

    A field that is not read causes a warning unless it is among ``allow_fields``. If it looks like a misspelled rule,
    it is a problem. If ``allow_fields`` is None, they are not known, and only misspelled fields cause warnings.
    """
    builder = _Builder(level=level, strict=allow_fields is not None)
    files, problems = existing_files(paths)
    for problem in problems:
        builder.problems.add(problem)
    for event in read_rows(files, golden_record(registry), progress=progress):
        match event:
            case Batch():
                for index, row in enumerate(event.rows):
                    builder.row(row, event.location(index))
            case FileRead(file=file):
                builder.files.append(file)
            case Warned(field=field, meant=meant):
                if field not in (allow_fields or ()) and (meant or allow_fields is not None):
                    builder.unread(event)
            case Problem() | MoreProblems():
                builder.problems.add(event)
    return builder.finish()


def _why_missing(unread: Warned) -> str:
    if unread.meant == "relevant_doc_ids":
        return f"is missing; is {unread.field!r} a misspelling of it?"
    return f"is missing, and {unread.field!r} is not read; {unread.advice}"


class _Builder:
    def __init__(self, *, level: float | None, strict: bool) -> None:
        self._level, self._strict = level, strict
        self.problems = Collector()
        self.files: list[SourceFile] = []
        self._queries: dict[str, GoldenQuery] = {}
        self._tags: set[str] = set()
        self._shared: dict[Any, Any] = {}  # equal tags and rules are stored once
        self._metadata: Location | None = None
        self._misspelled: Warned | None = None  # the likeliest reason why a row expects nothing
        self._explained = False
        self._rows_with: dict[str, int] = {}  # the number of rows with each field that is not read
        self._warnings: list[Warned] = []  # about these fields
        self._further: Location | None = None  # the first row with a field that is not even counted
        self._answer_fields: dict[str, Location] = {}
        self._rule_types: set[type[Rule]] = set()
        self._need_results = True
        self._below_level: list[GoldenQuery] = []

    def unread(self, warned: Warned) -> None:
        """Count a field that is not read; it is reported once."""
        if warned.field in self._rows_with:
            self._rows_with[warned.field] += 1
            return
        if len(self._rows_with) < bounds.UNREAD_FIELDS:
            self._rows_with[warned.field] = 1
        else:
            self._further = self._further or warned.location
        if warned.meant in ENOUGH:
            self._misspelling(warned)
        else:
            self._warned(warned)

    def _misspelling(self, warned: Warned) -> None:
        """Note a misspelled field for a row that expects nothing; a field of documents is the likeliest reason."""
        first, self._misspelled = self._misspelled, warned
        if first and first.meant == "relevant_doc_ids":
            first, self._misspelled = warned, first
        if first:
            self._warned(first)

    def _warned(self, warned: Warned) -> None:
        """Note the warning about a field; a misspelled or misplaced rule is a problem, because it is switched off."""
        if self._strict and warned.meant in RULE_FIELDS and RULES.misspelled(warned.field):
            field = shorten(warned.field, bounds.NAME)
            self.problems.problem(warned.location.at(field), f"unknown field; {warned.advice} ({OWN_FIELD})")
        elif warned.field in self._rows_with:
            self._warnings.append(warned)

    def row(self, row: GoldenRow, location: Location) -> None:
        if row.metadata and self._metadata is None:
            self._metadata = location
        named = present(row) if _about_answers(row) != NOTHING else []
        relevant = _relevant(row, named, self._level)
        if isinstance(relevant, Mismatch):
            if self._misspelled and row.relevance is None:
                self._explained = True
                relevant = Mismatch(relevant.path, _why_missing(self._misspelled))
            self.problems.mismatch(location, relevant)
            return
        if row.must_rank_at_most is not None and not relevant:
            self.problems.problem(location.at("must_rank_at_most"), "needs at least one relevant document to rank")
        if row.must_include_any and not relevant:
            message = "needs at least one relevant document to include; name them, or leave it out"
            self.problems.problem(location.at("must_include_any"), message)
        fields = FIELDS_OF.load()(row) if named else NO_FIELDS
        for mismatch in fields.mismatches:
            self.problems.mismatch(location, mismatch)
        for name in named:
            self._answer_fields.setdefault(name, location)
        query = self._query(row, location, relevant, fields)
        if not relevant and row.relevance and row.relevant_doc_ids is None and any(row.relevance.values()):
            self._below_level.append(query)
        if query.id in self._queries:
            first = self._queries[query.id].location
            self.problems.problem(location.at("id"), f"duplicate id {query.id!r}, first defined at {first}")
        else:
            self._queries[query.id] = query

    def _query(
        self, row: GoldenRow, location: Location, relevant: tuple[str, ...], fields: AnswerFields
    ) -> GoldenQuery:
        tags = tuple(dict.fromkeys(row.tags)) if row.tags else ()
        if tags and tags not in self._shared:
            tags = self._noted(tags, location)
        rules = fields.rules
        if rules:
            self._rule_types.update([type(rule.inner if isinstance(rule, RowRule) else rule) for rule in rules])
        if forbidden := unique_ids(row.forbidden_doc_ids):
            self._refuse_unseen(forbidden, location.at("forbidden_doc_ids"))
        if row.tier:
            self._refuse_unseen((row.tier,), location.at("tier"))
        names_documents = row.relevant_doc_ids is not None or row.relevance is not None
        query = GoldenQuery(
            id=as_id(row.id),
            query=row.query,
            relevant_doc_ids=relevant,
            location=location,
            must_rank_at_most=row.must_rank_at_most,
            must_include_any=row.must_include_any,
            forbidden_doc_ids=forbidden,
            weight=1.0 if row.weight is None else row.weight,
            tags=self._shared.setdefault(tags, tags),
            relevance=row.relevance,
            severity=row.severity or "error",
            rules=self._shared.setdefault(rules, rules) if rules else (),
            answer=fields.answer,
            names_documents=names_documents,
        )
        self._need_results = self._need_results and query.needs_results
        return query

    def _noted(self, tags: tuple[str, ...], location: Location) -> tuple[str, ...]:
        """Return the tags; none once there are too many different tags, because each has means of all metrics."""
        self._refuse_unseen(tags, location.at("tags"))
        before = len(self._tags)
        self._tags.update(tags)
        if len(self._tags) <= bounds.TAGS:
            return tags
        if before <= bounds.TAGS:
            message = f"more than {bounds.TAGS:,} different tags up to here; tag queries by what they have in common"
            self.problems.problem(location.at("tags"), message)
        return ()

    def _refuse_unseen(self, names: Sequence[str], location: Location) -> None:
        """Refuse names without a visible character, because no limit and no run has them."""
        if all(map(_starts_plainly, names)):  # nearly always; what follows costs an import
            return
        for name in names:
            if not is_visible(name):
                message = f"{shorten(name, bounds.NAME)!a} has nothing but blanks and invisible characters"
                self.problems.problem(location, f"{message}; write a name, or leave it out")

    def finish(self) -> Golden:
        if self._misspelled and not self._explained:
            self._warned(self._misspelled)
        for warning in self._warnings:
            self.problems.add(warning.in_rows(self._rows_with[warning.field]))
        if self._further:
            message = f"more than {bounds.UNREAD_FIELDS} different fields are not read; the others are not named"
            self.problems.warning(f"{self._further}: {message}")
        for message in contract_warnings(self._queries.values()):
            self.problems.warning(message)
        if self._answer_fields:
            for message in WARNINGS.load()(self._queries.values()):
                self.problems.warning(message)
        if self._level is not None and self._below_level:
            below = below_level(self._below_level, self._level)
            if any(query.answerable for query in self._queries.values()):
                self.problems.warning(f"{below[0]}: {below[1]}")
            else:
                self.problems.problem(*below)
        return Golden(
            queries=self._queries,
            files=tuple(self.files),
            metadata=self._metadata,
            answer_fields=self._answer_fields,
            rule_types=frozenset(self._rule_types),
            all_documents=self._need_results,
            problems=self.problems.collected(),
        )


def refuse_unlabelled(golden: Golden, within: Mapping[str, GoldenQuery] | None = None) -> None:
    """Raise InputError if no query has a label, and any needs one; of those ``within`` a scope, if it has any.

    It is raised alone, because whatever else is wrong can wait until documents are labelled.
    """
    has_label = any(query.names_documents and not query.is_unlabelled for query in golden.queries.values())
    if golden.problems or has_label:
        return
    waiting = (query for query in (within or golden.queries).values() if query.is_unlabelled)
    if query := next(waiting, None):
        problems = Collector()
        problems.problem(query.location.path, UNLABELLED)
        problems.collected().raise_if_any()


def contract_warnings(queries: Iterable[GoldenQuery]) -> Iterator[str]:
    """Yield a warning if placeholders are left, because such queries always fail."""
    if unnamed := [query for query in queries if PLACEHOLDER in query.relevant_doc_ids]:
        others = f" (and {len(unnamed) - 1} more such rows)" if len(unnamed) > 1 else ""
        field = "relevant_doc_ids" if unnamed[0].relevance is None else "relevance"
        yield f"{unnamed[0].location}: {field} still holds the placeholder {PLACEHOLDER!r}{others}; {FILL_IN}"


def _relevant(row: GoldenRow, named: Sequence[str], level: float | None) -> tuple[str, ...] | Mismatch:
    """Return the ids of the relevant documents, or the mismatch if the row is invalid."""
    if row.relevance is None:
        if row.relevant_doc_ids is None and not set(named).issubset(OPTIONS):
            return ()
        if row.relevant_doc_ids is None:
            message = f"is missing; give the documents to be found, [] if nothing answers it, or {OF_ANSWERS}"
            return Mismatch(("relevant_doc_ids",), message)
        return unique_ids(row.relevant_doc_ids)
    if row.relevant_doc_ids is None:
        return graded_from(RELEVANT_GRADE if level is None else level, row.relevance)

    listed = unique_ids(row.relevant_doc_ids)
    wrong = disagreement(listed, row.relevance, level)
    return Mismatch(("relevance",), wrong) if wrong else listed


def disagreement(listed: Collection[str], relevance: Mapping[str, float], level: float | None) -> str | None:
    """Return how the ``listed`` relevant documents disagree with the grades, and what to do; None if they agree.

    Without a ``level``, they agree if they do so at any level.
    """
    agreed = _level_of(listed, relevance)
    if level is None and agreed is not None:
        return None
    graded = graded_from(RELEVANT_GRADE if level is None else level, relevance)
    unequal = sorted(set(listed) ^ set(graded))
    if not unequal:
        return None
    of_grade = f"of grade {level or RELEVANT_GRADE:g} or more only in relevance"
    side = "only in relevant_doc_ids" if unequal[0] in listed else of_grade
    if agreed is None:
        advice = "leave relevant_doc_ids out, or name the same documents in both"
    else:
        advice = f"with `relevance_level: {agreed:g}` in the config, they agree"
    return f"disagrees with relevant_doc_ids: {unequal[0]!r} is {side}; {advice}"


def _level_of(listed: Collection[str], relevance: Mapping[str, float]) -> float | None:
    """Return the relevance level at which exactly the listed documents are relevant; None if there is none."""
    lowest = min((relevance.get(doc_id, 0) for doc_id in listed), default=0)
    apart = set(listed)
    highest = max((grade for doc_id, grade in relevance.items() if doc_id not in apart), default=0)
    return lowest if lowest > highest else None


def below_level(below: Sequence[GoldenQuery], level: float) -> tuple[Location, str]:
    """Return a location and a message about queries whose graded documents are all below the level."""
    query, highest = below[0], max((below[0].relevance or {}).values())
    others = more(len(below), 1, "such row", " (and {})")
    why = f"{query.id!r} has graded documents, but none of grade {level:g} or more, the relevance_level{others}"
    out = "ranking metrics leave it out, as if nothing answered it"
    advice = f"if one does, set `relevance_level: {highest:g}` or less in the config"
    return query.location.at("relevance"), f"{why}; {out}; {advice}"
