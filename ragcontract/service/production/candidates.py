"""Questions that may become golden queries: which wait for a decision, what was decided, and by whom.

Those that wait are listed by how often they were asked, the others by when they were decided. A question that is golden
by now needs no decision, and its row is not downloaded again.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, RowMapping, ScalarSelect, and_, func, select, tuple_
from sqlalchemy.exc import IntegrityError

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.history.interface import ConflictError
from ragcontract.service.audit import Author, record
from ragcontract.service.database import DAY, Rows, index_key, storable
from ragcontract.service.tables import candidates, interactions, projects, tallies

CandidateState: TypeAlias = Literal["new", "accepted", "rejected"]
OF_INTERACTION = (
    interactions.c.source,
    interactions.c.asked_at,
    interactions.c.response,
    interactions.c.error,
    interactions.c.results,
    interactions.c.latency_ms,
    interactions.c.confidence,
    interactions.c.feedback,
    interactions.c.flags,
)
TAKEN = "id: another accepted candidate has it; choose another one"
COUNTED_DAYS = 30


class Decided(Struct, frozen=True, kw_only=True):
    """What is decided about a candidate; a row is the golden row of an accepted one, with its id."""

    state: CandidateState
    row: str | None = None
    golden_id: str | None = None


def candidates_before(
    connection: Connection,
    project: int,
    state: CandidateState,
    before: tuple[int, int] | None,
    limit: int,
    *,
    words: str = "",
) -> Rows:
    """Return one candidate more than ``limit``, with its interaction: the most asked, or the newest decided first.

    With ``words``, their questions have them, as they stand there; SQLite knows upper and lower case of ASCII only.
    """
    first = candidates.c.asked if state == "new" else candidates.c.decided_at
    wanted = [candidates.c.project_id == project, candidates.c.state == state]
    if state != "new":
        wanted.append(candidates.c.decided_at.is_not(None))  # which the index wants
    if words:
        wanted.append(candidates.c.query.icontains(storable(words), autoescape=True))
    if before is not None:
        wanted.append(tuple_(first, candidates.c.id) < before)
    query = select(candidates, *OF_INTERACTION).outerjoin(interactions).where(and_(*wanted))
    query = query.order_by(first.desc(), candidates.c.id.desc()).limit(limit + 1)
    return connection.execute(query).mappings().all()


def position_of_candidate(row: RowMapping) -> tuple[int, int]:
    """Return where a candidate is in the list of its state."""
    return (row["asked"] if row["state"] == "new" else row["decided_at"]), row["id"]


def candidate_numbered(connection: Connection, number: int) -> RowMapping | None:
    """Return a candidate with its interaction, and the slug of its project; None if there is none."""
    joined = candidates.join(projects).outerjoin(interactions, interactions.c.id == candidates.c.interaction_id)
    query = select(candidates, *OF_INTERACTION, projects.c.slug).select_from(joined)
    return connection.execute(query.where(candidates.c.id == number)).mappings().one_or_none()


def number_in_state(project: int, state: CandidateState) -> "ScalarSelect[int]":
    """Return how many candidates are in a state, for a statement; no more than a page says are counted."""
    some = select(candidates.c.id).where(candidates.c.project_id == project, candidates.c.state == state)
    return select(func.count()).select_from(some.limit(bounds.CANDIDATES_WAITING + 1).subquery()).scalar_subquery()


def accepted_rows(connection: Connection, project: int) -> Iterator[RowMapping]:
    """Yield the accepted candidates, in the order in which they were accepted."""
    accepted = candidates.c.project_id == project, candidates.c.state == "accepted"
    columns = candidates.c.id, candidates.c.query_sha, candidates.c.row
    query = select(*columns).where(*accepted, candidates.c.decided_at.is_not(None))
    query = query.order_by(candidates.c.decided_at, candidates.c.id)
    yield from connection.execute(query).mappings()


def accepted_ids(connection: Connection, project: int, wanted: Sequence[str]) -> frozenset[str]:
    """Return which of some ids accepted candidates have."""
    keys = {index_key(golden_id): golden_id for golden_id in wanted}
    query = select(candidates.c.golden_id).where(
        candidates.c.project_id == project, candidates.c.golden_id.in_([*keys])
    )
    return frozenset(keys[key] for key in connection.execute(query).scalars())


def counted_lately(connection: Connection, project: int, now: int) -> Mapping[str, int]:
    """Return what was counted of the interactions of the last days, today included."""
    since = now - now % DAY - (COUNTED_DAYS - 1) * DAY
    of_days = tallies.c.project_id == project, tallies.c.day >= since
    query = select(tallies.c.name, func.sum(tallies.c.number)).where(*of_days).group_by(tallies.c.name)
    return {name: int(number) for name, number in connection.execute(query)}


def decide(connection: Connection, candidate: RowMapping, decided: Decided, author: Author) -> None:
    """Store a decision, or take it back; a job of :meth:`Database.write`.

    Raises :class:`ConflictError`, with who was first, if it is decided already; or if there is nothing to take back.
    Raises InputError if another accepted candidate has the id.
    """
    takes_back = decided.state == "new"
    is_open = candidates.c.state != "new" if takes_back else candidates.c.state == "new"
    values = {
        "state": decided.state,
        "golden_id": None if decided.golden_id is None else index_key(decided.golden_id),
        "decided_by": None if takes_back else index_key(author.actor),
        "decided_at": None if takes_back else author.at,
    }
    if not takes_back:  # a row that is taken back fills the form in
        values["row"] = decided.row
    change = candidates.update().where(candidates.c.id == candidate["id"], is_open).values(values)
    try:
        with connection.begin_nested():
            changed = connection.execute(change).rowcount
    except IntegrityError as error:
        raise InputError([TAKEN]) from error
    if not changed:
        raise decided_already(connection, candidate["id"])
    word = {"new": "reopen", "accepted": "accept", "rejected": "reject"}[decided.state]
    about = f"candidate {candidate['id']}" + (f" as {decided.golden_id}" if decided.golden_id else "")
    record(connection, author, f"candidate.{word}", f"project:{candidate['slug']}", about)


def decided_already(connection: Connection, number: int) -> ConflictError:
    """Return the error that says how a candidate is decided, and its golden row."""
    row = candidate_numbered(connection, number)
    if row is None or row["state"] == "new":
        return ConflictError(["it waits for a decision"])
    when = datetime.fromtimestamp(row["decided_at"] / 1000, UTC).strftime("%Y-%m-%d %H:%M")
    problems = [f"it was {row['state']} by {row['decided_by']} at {when} UTC already"]
    if row["state"] == "accepted":
        problems.append(f"row: {row['row']}")
    return ConflictError(problems)


def results_of(row: RowMapping) -> Sequence[Mapping[str, Any]]:
    """Return the results of an interaction, best first; none if it has none."""
    try:
        results = msgspec.json.decode(row["results"] or "[]", type=list[dict[str, Any]] | None)
    except msgspec.MsgspecError:
        return []
    return [result for result in results or () if result.get("doc_id") is not None]
