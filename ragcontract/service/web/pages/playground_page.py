"""The page on which people ask the system of a project, and see what its contract thinks of the answer."""

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated

import msgspec
from litestar import get, post
from litestar.params import QueryParameter, URLEncodedBody
from litestar.response import Template
from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.golden import GoldenQuery
from ragcontract.files.json_text import NestingError, check_nesting
from ragcontract.service.accounts import Principal
from ragcontract.service.database import Database
from ragcontract.service.known_contract import contract_of, golden_of
from ragcontract.service.production.interactions import Made, add_candidate, interaction_numbered
from ragcontract.service.production.project_settings import golden_digests
from ragcontract.service.redaction import redactor
from ragcontract.service.web.authentication import EDIT
from ragcontract.service.web.pages.page_frame import require_project_row, shown_page
from ragcontract.service.web.parameters import Asker, By, Db, Mounts, Slug, require_mounted
from ragcontract.service.web.playground_routes import (
    ChatMessage,
    PlaygroundQuestion,
    Targets,
    answered,
)
from ragcontract.service.web.problem_details import ProblemError

MADE: Mapping[Made, str] = {
    "made": "is a candidate now",
    "known": "is a candidate already",
    "golden": "is a golden query already, so it is no candidate",
    "full": "is no candidate, because too many wait for a decision",
}
REDACTED = {
    "email": "e-mail addresses",
    "phone": "phone numbers",
    "card": "card numbers",
    "iban": "IBANs",
    "key": "keys",
}
LABELS = {"query": "Question", "golden_id": "Golden query", "messages": "Earlier messages"}


class QuestionForm(Struct, frozen=True, kw_only=True):
    """A question, or the id of a golden query; ``messages`` are what was said before, as JSON."""

    query: str = ""
    golden_id: str = ""
    messages: str = ""

    def question(self) -> PlaygroundQuestion:
        """Return the question; raises InputError if the form was changed by hand."""
        try:
            check_nesting(self.messages.encode())
            earlier = msgspec.json.decode(self.messages or "[]", type=list[ChatMessage])
            fields = {"query": self.query or None, "golden_id": self.golden_id or None, "messages": earlier}
            return msgspec.convert(
                {name: value for name, value in fields.items() if value}, PlaygroundQuestion, from_attributes=True
            )
        except (NestingError, msgspec.MsgspecError, ValueError) as error:
            raise InputError([f"the form cannot be read: {error}"]) from error


class CandidateForm(Struct, frozen=True, kw_only=True):
    """The stored question that is to become a candidate."""

    number: int


class _View(Struct, kw_only=True):
    """What the page needs beside the answer."""

    principal: Principal
    database: Database
    mounts: Path | None
    slug: str

    def page(self, status: int = 200, **view: object) -> Template:
        """Return the page; answers 404 if the asker may not see the project."""
        with self.database.read() as connection:
            row = require_project_row(connection, self.principal, self.slug)
            golden = golden_of(contract_of(connection, row["number"], self.mounts))
        problem, names = None, tuple[str, ...]()
        try:
            names = require_mounted(self.mounts, self.slug).file.redact
        except ProblemError as error:
            problem = str(error)
        form = view.get("form") or QuestionForm()
        nothing = {"form": form, "answer": None, "error": None, "made": None}
        listed = _listed(golden, form.golden_id if isinstance(form, QuestionForm) else "")
        made = shown_page(
            "playground.html",
            self.principal,
            project=row,
            unable=problem,
            redacted=[words for name, words in REDACTED.items() if name in names],
            golden=listed,
            more_golden=len(golden) - len(listed),
            **{**nothing, **view},
        )
        made.status_code = status
        return made


def _listed(golden: Mapping[str, GoldenQuery], chosen: str) -> Sequence[GoldenQuery]:
    """Return the first golden queries, and the chosen one."""
    first = [*islice(golden.values(), bounds.PLAYGROUND_GOLDEN)]
    if chosen in golden and golden[chosen] not in first:
        first.append(golden[chosen])
    return first


@get("/p/{slug:str}/playground", access=EDIT, page=True, include_in_schema=False, sync_to_thread=True)
def playground_page(
    *,
    principal: Asker,
    database: Db,
    mounts: Mounts,
    slug: Slug,
    golden_id: Annotated[str, QueryParameter(max_length=bounds.ID)] = "",
) -> Template:
    """Show the golden queries and a form to ask something."""
    view = _View(principal=principal, database=database, mounts=mounts, slug=slug)
    return view.page(form=QuestionForm(golden_id=golden_id))


@post("/p/{slug:str}/playground", access=EDIT, page=True, include_in_schema=False, status_code=200, sync_to_thread=True)
def ask_here(
    *,
    data: URLEncodedBody[QuestionForm],
    principal: Asker,
    database: Db,
    mounts: Mounts,
    targets: Targets,
    slug: Slug,
) -> Template:
    """Ask the system and show what it returned."""
    view = _View(principal=principal, database=database, mounts=mounts, slug=slug)
    try:
        answer = answered(data.question(), slug, principal=principal, database=database, mounts=mounts, targets=targets)
    except InputError as error:
        field, colon, rest = error.problems[0].partition(": ")
        return view.page(422, form=data, error=f"{LABELS.get(field, field)}{colon}{rest}")
    except ProblemError as error:
        if error.status == 404:  # noqa: PLR2004
            raise
        return view.page(error.status, form=data, error=str(error))
    return view.page(form=data, answer=answer)


@post(
    "/p/{slug:str}/playground/candidate",
    access=EDIT,
    page=True,
    include_in_schema=False,
    status_code=200,
    sync_to_thread=True,
)
def make_candidate_here(
    *,
    data: URLEncodedBody[CandidateForm],
    principal: Asker,
    author: By,
    database: Db,
    mounts: Mounts,
    slug: Slug,
) -> Template:
    """Make a question that was asked a candidate."""
    view = _View(principal=principal, database=database, mounts=mounts, slug=slug)
    with database.read() as connection:
        project = require_project_row(connection, principal, slug)["number"]
        asked = interaction_numbered(connection, project, data.number)
        golden = golden_of(contract_of(connection, project, mounts))
    if asked is None:
        raise ProblemError(404, "there is no such question")
    redact = redactor(require_mounted(mounts, slug).file.redact)
    digests = golden_digests(golden.values(), redact)
    made = database.write(lambda connection: add_candidate(connection, project, asked, digests, author))
    return view.page(made=(asked["query"], MADE[made]))


ROUTES = (playground_page, ask_here, make_candidate_here)
