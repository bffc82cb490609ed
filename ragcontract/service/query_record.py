"""A query in the newest runs of its project's branch: in which it held, its ranks there, and whether it is flaky.

A query *held* in a run that has it and in which it is not broken. It is *flaky* if it switched between the two at least
three times in the newest 200 runs that have it, the last time among the newest 20: a query that broke for good is
broken, and a query that has held for long is mended.

Which runs have the query, and its ranks, is known of the runs that were scored again. In others it counts as held
wherever it is not broken, from the first run on that has it. Of a query that was removed from the golden set, it is
only known where it is broken.
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby, pairwise
from typing import Literal

import msgspec
from msgspec import Raw, Struct
from sqlalchemy import Connection, exists, select

from ragcontract.core import bounds
from ragcontract.core.run import Ranks
from ragcontract.history.page_runs import ContractRuns
from ragcontract.service.database import Rows, index_key
from ragcontract.service.projects_and_runs import NEWEST, project_branch
from ragcontract.service.tables import broken, runs, trends

FLAKY = 3  # switches, from which on a query is flaky
LASTING = 20  # runs that agree; after so many, what was before no longer makes a query flaky

Outcome = Literal["held", "broken", "absent"]


class QueryRun(Struct, frozen=True, kw_only=True, dict=True):
    """A query in a run."""

    id: int
    at: int
    commit: str | None
    verdict: str  # of the run
    outcome: Outcome
    rules: Sequence[str] = ()  # those that are broken, if they are known
    ranks: Ranks | None = None  # of its relevant documents; None if they are not known

    @cached_property
    def rank(self) -> int | None:
        """The best rank of a relevant document."""
        return min((rank for rank in self.ranks or () if rank is not None), default=None)


class QueryRecord(Struct, frozen=True, kw_only=True, dict=True):
    """A query in consecutive runs, the oldest first."""

    runs: Sequence[QueryRun]

    @cached_property
    def asked(self) -> list[QueryRun]:
        """The runs that have it."""
        return [run for run in self.runs if run.outcome != "absent"]

    @cached_property
    def stretches(self) -> list[list[QueryRun]]:
        """The runs that have it, divided wherever it switched between held and broken."""
        return [list(stretch) for _, stretch in groupby(self.asked, lambda run: run.outcome)]

    @property
    def is_flaky(self) -> bool:
        return len(self.stretches) > FLAKY and len(self.stretches[-1]) < LASTING

    @property
    def state(self) -> Literal["flaky", "broken", "held", "absent"]:
        if not self.asked:
            return "absent"
        if self.is_flaky:
            return "flaky"
        return "broken" if self.is_broken else "held"

    @property
    def is_broken(self) -> bool:
        """Whether it is broken in the newest run that has it."""
        return bool(self.asked) and self.asked[-1].outcome == "broken"

    @property
    def broken_runs(self) -> int:
        """In how many runs it is broken."""
        return sum(run.outcome == "broken" for run in self.asked)

    @property
    def breaks(self) -> int:
        """How often it broke."""
        return sum(stretch[0].outcome == "broken" for stretch in self.stretches)

    @property
    def is_cut(self) -> bool:
        """Whether there may be older runs."""
        return len(self.runs) == bounds.PAGE_ROWS


def record_of(connection: Connection, project_id: int, query_id: str, *, is_golden: bool | None) -> QueryRecord:
    """Return a query in the newest runs of its project's branch.

    ``is_golden`` is whether it is in the golden set, and None if there is none.
    """
    rows = _newest_rows(connection, project_id)
    rules = _broken_rules(connection, project_id, query_id, [row["id"] for row in rows])
    ranks = _ranks_of(_stored_ranks(connection, project_id), query_id)
    return _record(rows, rules, ranks, is_golden=is_golden)


def flaky_queries(
    connection: Connection, project_id: int, query_ids: Iterable[str], ranks: bytes | None
) -> Iterator[str]:
    """Yield those of the golden queries of a project that are flaky; ``ranks`` are those of :func:`encoded_ranks`."""
    rows = _newest_rows(connection, project_id)
    numbers = [row["id"] for row in rows]
    broken_in: dict[str, dict[int, list[str]]] = {}
    for row in connection.execute(select(broken.c.query_id, broken.c.run_id).where(broken.c.run_id.in_(numbers))):
        broken_in.setdefault(row.query_id, {})[row.run_id] = []
    switching = {
        query_id: rules
        for query_id in query_ids
        if (rules := broken_in.get(index_key(query_id)))
        and sum(before is not now for before, now in pairwise(number in rules for number in numbers)) >= FLAKY
    }
    stored = _decoded(ranks) if switching else None
    for query_id, rules in switching.items():
        if _record(rows, rules, _ranks_of(stored, query_id), is_golden=True).is_flaky:
            yield query_id


def _newest_rows(connection: Connection, project_id: int) -> Rows:
    """Return the newest runs of a project's branch that have a verdict, the oldest first."""
    branch = project_branch(connection, project_id)
    of_branch = runs.c.project_id == project_id, runs.c.branch.is_not_distinct_from(branch), runs.c.verdict.is_not(None)
    columns = runs.c.id, runs.c.created_at, runs.c.commit_sha, runs.c.verdict
    newest = select(*columns).where(*of_branch).order_by(*NEWEST).limit(bounds.PAGE_ROWS)
    return connection.execute(newest).mappings().all()[::-1]


def _record(
    rows: Rows,
    rules: Mapping[int, Sequence[str]],
    ranks: Mapping[int, Ranks | None],
    *,
    is_golden: bool | None,
) -> QueryRecord:
    is_there = is_golden is not False and not ranks
    known = []
    for row in rows:
        outcome: Outcome = "held"
        if row["id"] in rules:
            outcome = "broken"
        elif ranks.get(row["id"], ()) is None or (row["id"] not in ranks and not is_there):
            outcome = "absent"
        is_there = is_golden is not False and (is_there or outcome != "absent")
        known.append(
            QueryRun(
                id=row["id"],
                at=row["created_at"],
                commit=row["commit_sha"],
                verdict=row["verdict"],
                outcome=outcome,
                rules=rules.get(row["id"], ()),
                ranks=ranks.get(row["id"]),
            )
        )
    return QueryRecord(runs=known)


def was_ever_broken(connection: Connection, project_id: int, query_id: str) -> bool:
    """Return whether a query is broken in any run of a project."""
    of_query = broken.c.project_id == project_id, broken.c.query_id == index_key(query_id)
    return bool(connection.execute(select(exists().where(*of_query))).scalar())


class _Tolerated(Struct, frozen=True, kw_only=True):
    """The part of an entry that says which broken queries do not fail by themselves."""

    tolerated: list[str] = []


def is_tolerated_in(connection: Connection, number: int, query_id: str) -> bool:
    """Return whether a query that is broken in a run does not fail by itself: it is known, waived and such."""
    entry = connection.execute(select(runs.c.entry).where(runs.c.id == number)).scalar_one()
    return query_id in msgspec.json.decode(entry, type=_Tolerated).tolerated


def _broken_rules(
    connection: Connection, project_id: int, query_id: str, numbers: Sequence[int]
) -> Mapping[int, list[str]]:
    """Return the broken rules of a query, by the runs in which it is broken."""
    of_query = broken.c.project_id == project_id, broken.c.query_id == index_key(query_id)
    rows = connection.execute(select(broken.c.run_id, broken.c.rules).where(*of_query, broken.c.run_id.in_(numbers)))
    return {row.run_id: msgspec.json.decode(row.rules, type=list[str]) for row in rows}


class _Stored(Struct, frozen=True, kw_only=True):
    """The ranks of all queries in the newest runs of a trend, of which only those of one query are decoded."""

    runs: list[int]
    of: dict[str, Raw]  # for each of the runs, the ranks; null where the run lacks the query, or asked something else


def encoded_ranks(of: ContractRuns, numbers: Mapping[str, int]) -> bytes | None:
    """Return the ranks of all queries as the table of trends keeps them; ``numbers`` are the ids of runs by key.

    None if no run was scored again.
    """
    if not of.questions:
        return None
    newest = [(numbers[run.id], run.queries) for run in of.runs if run.queries and run.id in numbers]
    newest = newest[-bounds.PAGE_ROWS :]
    ranks = {
        query_id: [queries.ranks[place] if queries.has[place] else None for _, queries in newest]
        for place, query_id in enumerate(of.questions)
    }
    return zlib.compress(msgspec.json.encode({"runs": [number for number, _ in newest], "of": ranks}))


def _stored_ranks(connection: Connection, project_id: int) -> _Stored | None:
    return _decoded(connection.execute(select(trends.c.ranks).where(trends.c.project_id == project_id)).scalar())


def _decoded(ranks: bytes | None) -> _Stored | None:
    return None if ranks is None else msgspec.json.decode(zlib.decompress(ranks), type=_Stored)


def _ranks_of(stored: _Stored | None, query_id: str) -> Mapping[int, Ranks | None]:
    """Return the ranks of a query by run; None where it is known that the run lacks it."""
    if stored is None or query_id not in stored.of:
        return {}
    ranks = msgspec.json.decode(stored.of[query_id], type=list[Ranks | None])
    return dict(zip(stored.runs, ranks, strict=True))
