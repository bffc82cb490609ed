"""Read the questions of golden files: what is asked, without what must hold for the answers."""

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from ragcontract.contract.golden_row import Question as QuestionText
from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.golden import PLACEHOLDER
from ragcontract.core.ids import Id, Tag, as_id
from ragcontract.core.nearest import nearest
from ragcontract.core.phrase import Location
from ragcontract.core.safe_text import shorten
from ragcontract.files.paths import existing_files
from ragcontract.files.problems import Collector, located
from ragcontract.files.rows import read_rows


class _TurnRow(Struct, frozen=True, kw_only=True):
    query: QuestionText


class _AskedRow(Struct, frozen=True, kw_only=True):
    """The fields of a golden row that asking needs; `check` reads the others, maybe on another machine."""

    id: Id
    query: QuestionText
    tags: list[Tag] | None = None
    turns: Annotated[list[_TurnRow], Meta(min_length=1, max_length=bounds.TURNS)] | None = None
    metadata: dict[str, Any] | None = None
    relevant_doc_ids: Any = None
    relevance: Any = None
    forbidden_doc_ids: Any = None


class Question(Struct, frozen=True, kw_only=True, gc=False):
    """A golden query to ask."""

    id: str
    query: str
    turns: tuple[str, ...] = ()  # the user's message in each turn of a conversation
    packed: bytes = b"{}"  # the metadata of the row as JSON, to save memory: there may be a hundred thousand questions
    names_documents: bool = False  # whether the golden row wants or forbids documents

    @property
    def user_messages(self) -> tuple[str, ...]:
        return self.turns or (self.query,)

    @property
    def metadata(self) -> Mapping[str, Any]:
        metadata: dict[str, Any] = msgspec.json.decode(self.packed)
        return metadata

    @property
    def digest(self) -> str:
        """A digest of all that the system is given, by which an answer to an older version of the question is known."""
        whole = msgspec.json.encode([self.query, self.turns, self.packed.decode()])
        return hashlib.sha256(whole).hexdigest()[:16]


class Selection(Struct, frozen=True, kw_only=True):
    """Which questions are asked; by default, all."""

    tags: Sequence[str] = ()  # a question must have one of them
    ids: Sequence[str] = ()
    limit: int | None = None  # how many are asked, from the first


class Questions(Struct, frozen=True, kw_only=True):
    """The questions to ask."""

    chosen: Sequence[Question]  # in the order of the files
    of: int  # how many the files have in all
    doc_ids: frozenset[str] = frozenset()  # the relevant documents of those that are chosen

    @property
    def are_a_part(self) -> bool:
        """Whether the files have other questions, too."""
        return len(self.chosen) < self.of


def read_questions(paths: Sequence[str], selection: Selection) -> Questions:
    """Read the questions of golden files or globs; raises InputError with everything that is wrong with them."""
    files, missing = existing_files(paths)
    problems = Collector()
    for problem in missing:
        problems.add(problem)
    chosen: list[Question] = []
    doc_ids: set[str] = set()
    first: dict[str, Location] = {}
    tags: set[str] = set()
    for location, row in located(read_rows(files, _AskedRow, spell_check=0), problems):
        known_as = as_id(row.id)
        if known_as in first:
            message = f"duplicate id {known_as!r}, first defined at {first[known_as]}"
            problems.problem(location.at("id"), message)
            continue
        first[known_as] = location
        if len(tags) < bounds.TAGS:
            tags.update(row.tags or ())
        if _is_chosen(row, known_as, selection) and (selection.limit is None or len(chosen) < selection.limit):
            chosen.append(_question(row, known_as))
            doc_ids.update(_documents(row.relevant_doc_ids))
            doc_ids.update(_documents(row.relevance))
    problems.collected().raise_if_any()
    if unknown := [*_unknown("--tag", selection.tags, tags), *_unknown("--query", selection.ids, first)]:
        raise InputError(unknown)
    if not chosen:
        raise InputError(["there is nothing to ask: no golden query has one of the tags and one of the ids"])
    return Questions(chosen=chosen, of=len(first), doc_ids=frozenset(doc_ids - {PLACEHOLDER}))


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


def _documents(value: Any) -> Iterator[str]:
    """Yield the ids in a list or in the keys of an object; `check` says what else is wrong."""
    if isinstance(value, list | dict):
        yield from (as_id(doc_id) for doc_id in value if isinstance(doc_id, str | int))


def _unknown(option: str, names: Sequence[str], known: Collection[str]) -> Iterator[str]:
    for name in names:
        if name not in known:
            near = nearest(name, known)
            what = "has this tag" if option == "--tag" else "has this id"
            suggested = f"; did you mean {shorten(near, bounds.NAME)!r}?" if near else ""
            yield f"{option} {shorten(name, bounds.NAME)!r}: no golden query {what}{suggested}"
