"""The page of candidates, on which people decide which real questions belong into the contract."""

import re
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any

import msgspec
from litestar import get, post
from litestar.params import FromQuery, QueryParameter, URLEncodedBody
from litestar.response import Redirect, Template
from msgspec import Struct
from sqlalchemy import Connection, RowMapping, select

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.history.interface import ConflictError
from ragcontract.service.accounts import Principal
from ragcontract.service.database import Database, now_ms
from ragcontract.service.production.candidate_rows import GoldenQuestions
from ragcontract.service.production.candidates import (
    COUNTED_DAYS,
    CandidateState,
    candidate_numbered,
    candidates_before,
    counted_lately,
    number_in_state,
    position_of_candidate,
    results_of,
)
from ragcontract.service.production.flags import names_of
from ragcontract.service.web.authentication import EDIT, READ
from ragcontract.service.web.candidate_routes import (
    Decision,
    decided_candidate,
    free_id,
    golden_of_project,
    require_candidate,
    rows_to_download,
)
from ragcontract.service.web.login import SEE_OTHER
from ragcontract.service.web.pages.page_frame import address, require_project_row, shown_page
from ragcontract.service.web.pages.settings_page import sentences
from ragcontract.service.web.parameters import Asker, By, Db, Mounts, Slug, Whole, cursor_of, position_of

TABS: Mapping[CandidateState, str] = {"new": "Waiting", "accepted": "Accepted", "rejected": "Rejected"}
FLAG_WORDS = {
    "error": "error",
    "empty": "no results",
    "slow": "slow",
    "low_confidence": "low confidence",
    "negative_feedback": "negative feedback",
}
REASONS = {**FLAG_WORDS, "sampled": "sampled", "playground": "asked in the playground"}
LABELS = {
    "row": "The row",
    "id": "Id",
    "row.id": "Id",
    "row.query": "Question",
    "row.relevant_doc_ids": "Relevant documents",
    "row.tags": "Tags",
    "row.expected_mode": "How it must be answered",
}
MODES = {
    "trustworthy": "answer it",
    "disputed": "say that the documents contradict each other",
    "abstain": "say that it does not know",
}
BOTH = "Relevant documents: some are named, and “nothing answers it” is ticked; choose one of both"
NEITHER = "Tick the relevant documents, or “nothing answers it”"
_PLACE = re.compile(r"\[\d+\]$")


class Place(Struct, frozen=True, kw_only=True):
    """Which candidates are listed, and from where on."""

    state: CandidateState
    words: str  # that their questions have
    cursor: str | None


class DecisionForm(Struct, frozen=True, kw_only=True):
    """A decision. A box that is ticked alone comes as text, several come as a list."""

    number: int
    decision: Decision
    relevant: list[str] | str = []
    further: str = ""
    nothing: str = ""
    mode: str = ""
    id: str = ""
    tags: str = ""
    cursor: str = ""
    q: str = ""

    @property
    def ticked(self) -> list[str]:
        """The results that are relevant."""
        chosen = self.relevant if isinstance(self.relevant, list) else [self.relevant]
        return [text.replace("\r\n", "\n") for text in chosen]

    @property
    def documents(self) -> list[str]:
        """All relevant documents."""
        named = [line.strip() for line in self.further.splitlines()]
        return [*dict.fromkeys([*self.ticked, *(line for line in named if line)])]

    def row(self) -> dict[str, Any]:
        """Return the golden row that is meant; raises InputError if it is not clear."""
        if self.decision != "accept":
            return {}
        documents, row = self.documents, dict[str, Any]()
        if documents and self.nothing:
            raise InputError([BOTH])
        if documents or self.nothing:
            row["relevant_doc_ids"] = documents
        if self.mode:
            row["expected_mode"] = self.mode
        if not row:
            raise InputError([NEITHER])
        if tags := [tag.strip() for tag in self.tags.split(",") if tag.strip()]:
            row["tags"] = [*dict.fromkeys(tags)]
        return row | ({"id": self.id.strip()} if self.id.strip() else {})


class ShownCandidate(Struct, frozen=True, kw_only=True):
    """A candidate as the page shows it, and what its form says."""

    of: RowMapping
    reasons: Sequence[str]
    results: Sequence[Mapping[str, Any]]
    golden_id: str | None
    row: str | None  # of an accepted one
    form: DecisionForm
    problems: Sequence[str] = ()


class ListedCandidates(Struct, frozen=True, kw_only=True):
    """A page of candidates, and where the next one begins."""

    shown: list[ShownCandidate]
    older: str | None


class Problems(Struct, frozen=True, kw_only=True):
    """What is wrong with a form."""

    form: DecisionForm
    problems: Sequence[str]
    status: int


@get("/p/{slug:str}/candidates", access=READ, page=True, include_in_schema=False, sync_to_thread=True)
def candidates_page(
    *,
    principal: Asker,
    database: Db,
    mounts: Mounts,
    slug: Slug,
    candidate_state: Annotated[CandidateState, QueryParameter(name="state")] = "new",
    q: FromQuery[str] = "",
    cursor: FromQuery[str | None] = None,
    decided: FromQuery[int | None] = None,
) -> Template:
    """Show the candidates that wait, or those that were accepted or rejected."""
    place = Place(state=candidate_state, words=q.strip(), cursor=cursor)
    return _page(database, principal, mounts, slug, place, decided=decided)


@post("/p/{slug:str}/candidates", access=EDIT, page=True, include_in_schema=False, sync_to_thread=True)
def decide_here(
    *, principal: Asker, author: By, database: Db, mounts: Mounts, slug: Slug, data: URLEncodedBody[DecisionForm]
) -> Redirect | Template:
    """Decide on a candidate, and show the others."""
    try:
        row = data.row()
        before = decided_candidate(
            database, mounts, data.number, data.decision, row, principal=principal, author=author, slug=slug
        )
    except InputError as error:
        conflict = isinstance(error, ConflictError)
        status = HTTPStatus.CONFLICT if conflict else HTTPStatus.UNPROCESSABLE_ENTITY
        wrong = Problems(form=data, problems=[*_sentences(error)], status=status)
        place = Place(state="new", words=data.q, cursor=data.cursor or None)
        return _page(database, principal, mounts, slug, place, wrong=wrong)
    to = address("p", slug, "candidates", q=data.q, cursor=data.cursor, decided=before.id)
    return Redirect(to, status_code=SEE_OTHER)


def _sentences(error: InputError) -> Iterator[str]:
    """Yield what is wrong in the words of the form; the row of who was first is on the page of accepted ones."""
    problems = error.problems[:1] if isinstance(error, ConflictError) else error.problems
    for problem in problems:
        field, colon, rest = problem.partition(": ")
        (text,) = sentences(InputError([f"{_PLACE.sub('', field)}{colon}{rest}"]), LABELS)
        yield f"{text[:1].upper()}{text[1:]}"


def _page(
    database: Database,
    principal: Principal,
    mounts: Path | None,
    slug: str,
    place: Place,
    *,
    decided: int | None = None,
    wrong: Problems | None = None,
) -> Template:
    with database.read() as connection:
        project = require_project_row(connection, principal, slug)
        golden = golden_of_project(connection, project["number"], mounts, slug)
        view = _counts(connection, project["number"], golden)
        view["last"] = _decided(connection, project["number"], decided)
        try:
            listed = _listed(connection, project["number"], golden, place, wrong)
        except InputError:  # of the cursor
            listed = None
        if listed is not None and wrong is not None:  # what was typed comes first
            row = require_candidate(connection, principal, wrong.form.number, slug)
            listed.shown.insert(0, _shown(connection, row, golden, place, wrong))
    page = shown_page(
        "candidates.html",
        principal,
        project=project,
        tabs=TABS,
        state=place.state,
        searched=place.words,
        listed=listed,
        modes=[mode for mode in MODES if mode in golden.modes],
        mode_words=MODES,
        flag_words=FLAG_WORDS,
        days=COUNTED_DAYS,
        is_first=place.cursor is None,
        may_decide=EDIT.admits(principal),
        **view,
    )
    status = HTTPStatus.OK if listed is not None else HTTPStatus.UNPROCESSABLE_ENTITY
    page.status_code = wrong.status if wrong else status
    return page


def _counts(connection: Connection, project: int, golden: GoldenQuestions) -> dict[str, Any]:
    """Return how many candidates wait, and what was counted of those that do not."""
    states = select(number_in_state(project, "new"), number_in_state(project, "accepted"))
    ((waiting, accepted),) = connection.execute(states).all()
    return {
        "waiting": waiting,
        "accepted": accepted,
        "to_download": sum(1 for _ in rows_to_download(connection, project, golden)),
        "counted": counted_lately(connection, project, now_ms()),
    }


def _listed(
    connection: Connection,
    project: int,
    golden: GoldenQuestions,
    place: Place,
    wrong: Problems | None,
) -> ListedCandidates:
    """Return a page of candidates, but for the one whose form is wrong; raises InputError if the cursor is damaged."""
    before = position_of(place.cursor, tuple[Whole, Whole])
    rows = candidates_before(connection, project, place.state, before, bounds.CANDIDATES_PAGE, words=place.words)
    listed = rows[: bounds.CANDIDATES_PAGE]
    others = [row for row in listed if wrong is None or row["id"] != wrong.form.number]
    return ListedCandidates(
        shown=[_shown(connection, row, golden, place, None) for row in others],
        older=cursor_of(position_of_candidate(listed[-1])) if len(rows) > len(listed) else None,
    )


def _shown(
    connection: Connection, row: RowMapping, golden: GoldenQuestions, place: Place, wrong: Problems | None
) -> ShownCandidate:
    reasons = [reason.strip() for reason in row["reason"].split(",")] + names_of(row["flags"] or 0)
    return ShownCandidate(
        of=row,
        reasons=[*dict.fromkeys(REASONS.get(reason, reason) for reason in reasons)],
        results=results_of(row),
        golden_id=golden.golden_id(row),
        row=row["row"] if row["state"] == "accepted" else None,
        form=wrong.form if wrong else _form(connection, row, golden, place),
        problems=wrong.problems if wrong else (),
    )


def _form(connection: Connection, row: RowMapping, golden: GoldenQuestions, place: Place) -> DecisionForm:
    """Return what the form begins with: an id, or all that an accepted one had before that was taken back."""
    before: dict[str, Any] = msgspec.json.decode(row["row"]) if row["row"] else {}
    documents = [str(each) for each in before.get("relevant_doc_ids") or ()]
    of_results = {str(result["doc_id"]) for result in results_of(row)}
    return DecisionForm(
        number=row["id"],
        decision="accept",
        relevant=[each for each in documents if each in of_results],
        further="\n".join(each for each in documents if each not in of_results),
        nothing="yes" if before.get("relevant_doc_ids") == [] else "",
        mode=str(before.get("expected_mode") or ""),
        id=str(before["id"]) if before else free_id(connection, row, golden),
        tags=", ".join(map(str, before.get("tags") or ())),
        cursor=place.cursor or "",
        q=place.words,
    )


def _decided(connection: Connection, project: int, number: int | None) -> RowMapping | None:
    """Return the candidate that was decided last, of this project."""
    row = None if number is None or number > 2**63 - 1 else candidate_numbered(connection, number)
    return row if row is not None and row["project_id"] == project else None


ROUTES = (candidates_page, decide_here)
