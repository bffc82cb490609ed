"""The questions of golden files: what is asked, without what must hold for the answers."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from ragcontract.contract.golden_row import Question as QuestionText
from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.ids import Id, Tag, as_id
from ragcontract.core.nearest import nearest
from ragcontract.core.safe_text import shorten
from ragcontract.files.paths import existing_files
from ragcontract.files.problems import Collector, located
from ragcontract.files.rows import read_rows


class _TurnRow(Struct, frozen=True, kw_only=True):
    query: QuestionText


class _AskedRow(Struct, frozen=True, kw_only=True):
    """The fields of a golden row that are asked; the others are read by `check`, which may run on another machine."""

    id: Id
    query: QuestionText
    tags: list[Tag] | None = None
    turns: Annotated[list[_TurnRow], Meta(min_length=1, max_length=bounds.TURNS)] | None = None
    metadata: dict[str, Any] | None = None
    relevant_doc_ids: Any = None
    relevance: Any = None
    forbidden_doc_ids: Any = None


class Question(Struct, frozen=True, kw_only=True, gc=False):
    """A golden query to ask; ``turns`` is what the user says in each turn of a conversation.

    ``packed`` is the metadata of its row as JSON: there may be a hundred thousand. ``names_documents`` says whether the
    contract wants or forbids some.
    """

    id: str
    query: str
    turns: tuple[str, ...] = ()
    packed: bytes = b"{}"
    names_documents: bool = False

    @property
    def said(self) -> tuple[str, ...]:
        """What the user says, in one turn or several."""
        return self.turns or (self.query,)

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The metadata of the golden row."""
        found: dict[str, Any] = msgspec.json.decode(self.packed)
        return found

    @property
    def digest(self) -> str:
        """A digest of all that the system is given, to recognise an answer to an older version of the question."""
        whole = msgspec.json.encode([self.query, self.turns, self.packed.decode()])
        return hashlib.sha256(whole).hexdigest()[:16]


class Selection(Struct, frozen=True, kw_only=True):
    """Which questions are asked: those with any of some tags, those with some ids, the first few; by default, all."""

    tags: Sequence[str] = ()
    ids: Sequence[str] = ()
    limit: int | None = None


class Questions(Struct, frozen=True, kw_only=True):
    """The questions to ask, in the order of the files, of which there are ``of`` in all."""

    chosen: Sequence[Question]
    of: int

    @property
    def are_a_part(self) -> bool:
        """Whether there are other questions in the files."""
        return len(self.chosen) < self.of


def read_questions(paths: Sequence[str], selection: Selection) -> Questions:
    """Read the questions of golden files or globs; raises InputError with all that is wrong with them."""
    found, missing = existing_files(paths)
    problems = Collector()
    for problem in missing:
        problems.add(problem)
    chosen: list[Question] = []
    first: dict[str, str] = {}
    tags: set[str] = set()
    for location, row in located(read_rows(found, _AskedRow, spell_check=0), problems):
        known_as = as_id(row.id)
        if known_as in first:
            message = f"duplicate id {known_as!r}, first defined at {first[known_as]}"
            problems.problem(f"{location}: id", message)
            continue
        first[known_as] = location
        if len(tags) < bounds.TAGS:
            tags.update(row.tags or ())
        if _is_chosen(row, known_as, selection) and (selection.limit is None or len(chosen) < selection.limit):
            chosen.append(_question(row, known_as))
    problems.found().raise_if_any()
    if unknown := [*_unknown("--tag", selection.tags, tags), *_unknown("--query", selection.ids, first)]:
        raise InputError(unknown)
    if not chosen:
        raise InputError(["there is nothing to ask: no golden query has one of the tags and one of the ids"])
    return Questions(chosen=chosen, of=len(first))


def _is_chosen(row: _AskedRow, known_as: str, selection: Selection) -> bool:
    if selection.ids and known_as not in selection.ids:
        return False
    return not selection.tags or not set(selection.tags).isdisjoint(row.tags or ())


def _question(row: _AskedRow, known_as: str) -> Question:
    return Question(
        id=known_as,
        query=row.query,
        turns=tuple([turn.query for turn in row.turns or ()]),
        packed=msgspec.json.encode(row.metadata or {}),
        names_documents=bool(row.relevant_doc_ids or row.relevance or row.forbidden_doc_ids),
    )


def _unknown(option: str, given: Sequence[str], known: Mapping[str, str] | set[str]) -> Iterator[str]:
    for name in given:
        if name not in known:
            near = nearest(name, known)
            what = "has this tag" if option == "--tag" else "has this id"
            suggested = f"; did you mean {shorten(near, bounds.NAME)!r}?" if near else ""
            yield f"{option} {shorten(name, bounds.NAME)!r}: no golden query {what}{suggested}"
