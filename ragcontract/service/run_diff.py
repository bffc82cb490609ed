"""What changed between two runs of a project, under the contract that it has now."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace
from sqlalchemy import Connection, Row, select, tuple_

from ragcontract.contract.resolve import Contract
from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.numbers import count
from ragcontract.core.rule import RankRule, names_of
from ragcontract.core.run import RanksById, ranks_by_id
from ragcontract.decision.compared_runs import compared_under
from ragcontract.decision.evaluated import Evaluation
from ragcontract.evaluation.plan import plan_for
from ragcontract.evaluation.source import Local, entry_ref
from ragcontract.history.choose_baseline import Chosen, document_of
from ragcontract.history.entry import Entry, OtherVersionError, decode, entry_path
from ragcontract.history.interface import ConflictError
from ragcontract.report.comparison import RunComparison, comparison_of
from ragcontract.rules.ranks import RankRules
from ragcontract.service.blobs import blob
from ragcontract.service.database import index_key
from ragcontract.service.known_contract import KnownContract, project_branch
from ragcontract.service.tables import broken, projects, runs

RunRow = Row[Any]
OF_RUN = (runs.c.id, runs.c.project_id, runs.c.key, runs.c.created_at, runs.c.commit_sha, runs.c.branch, runs.c.verdict)


class OtherRun(Struct, frozen=True, kw_only=True):
    """The run that another one is compared with."""

    id: int
    key: Annotated[str, Meta(description="The id of its entry.")]
    at: Annotated[int, Meta(description="When it was checked: milliseconds since 1970.")]
    commit: str | None
    branch: str | None
    verdict: str | None


class ChangedQuery(Struct, frozen=True, kw_only=True):
    """A query that holds in one of two runs and is broken in the other."""

    id: str
    query: str
    rules: Annotated[list[str], Meta(description="The rules that it breaks.")]
    before: Annotated[RanksById, Meta(description="The ranks of its relevant documents in the other run.")]
    now: Annotated[RanksById, Meta(description="The ranks of its relevant documents in this run.")]


class RunDiff(Struct, frozen=True, kw_only=True):
    """What changed since another run."""

    against: OtherRun
    comparison: Annotated[RunComparison, Meta(description="As of `rag-contract compare`: the other run is the first.")]
    lost: list[ChangedQuery]
    won: list[ChangedQuery]
    more_lost: Annotated[int, Meta(description="How many further queries were lost.")] = 0
    more_won: Annotated[int, Meta(description="How many further queries were won.")] = 0


def run_of(connection: Connection, run_id: int) -> RunRow | None:
    """Return a run; None if there is none."""
    return connection.execute(select(*OF_RUN).where(runs.c.id == run_id)).one_or_none()


def last_pass(connection: Connection, run: RunRow) -> RunRow | None:
    """Return the newest run of the project's branch before a run that passed with results; None if there is none."""
    before = tuple_(runs.c.created_at, runs.c.id) < (run.created_at, run.id)
    of_branch = runs.c.branch.is_not_distinct_from(project_branch(connection, run.project_id))
    passed = of_branch, runs.c.verdict == "pass", runs.c.results.is_not(None)
    newest = select(*OF_RUN).where(runs.c.project_id == run.project_id, before, *passed)
    newest = newest.order_by(runs.c.created_at.desc(), runs.c.id.desc()).limit(bounds.SERVICE_PASSES)
    for row in connection.execute(newest):
        if _entry(connection, row).passed:
            return row
    return None


def diff(connection: Connection, contract: KnownContract, run: RunRow, other: RunRow, now: datetime) -> RunDiff:
    """Return what changed in a run since another one of its project.

    Queries that only one of them has, or had with another question, are left out with a warning. Raises ConflictError
    without a contract, or if either run has no results that can be used.
    """
    if contract.today is None:
        raise ConflictError([contract.problem])
    full, _ = contract.today
    sources = [Local(_chosen(connection, each)) for each in (other, run)]
    measured = full.without_limits().without_diagnostics()
    plan = plan_for(measured, repeats=False, keep_ids=False)
    sides = [source.evaluate(plan) for source in sources]
    absent = {query_id for side in sides for query_id in (*side.rows.missing, *side.rows.changed)}
    if absent:
        measured = _without(measured, absent)
        plan = plan_for(measured, repeats=False, keep_ids=False)
        sides = [source.evaluate(plan) for source in sources]
    try:
        compared = compared_under(measured, plan, sides)
    except InputError as error:
        raise ConflictError(error.problems) from error
    left_out = [f"{count(len(absent), 'query')} left out: not in both runs with today's question"] if absent else []
    was, is_now = (
        _broken(connection, row, full, evaluation)
        for row, evaluation in zip((other, run), compared.evaluations, strict=True)
    )
    lost = [query_id for query_id in is_now if query_id not in was]
    won = [query_id for query_id in was if query_id not in is_now]
    most = bounds.SERVICE_DIFF_QUERIES
    return RunDiff(
        against=_shown(other),
        comparison=comparison_of(
            compared.evaluations,
            [entry_ref(other.key), entry_ref(run.key)],
            warnings=[*left_out, *compared.warnings],
            now=now,
        ),
        lost=[_changed(compared.evaluations, query_id, is_now[query_id]) for query_id in lost[:most]],
        won=[_changed(compared.evaluations, query_id, was[query_id]) for query_id in won[:most]],
        more_lost=max(0, len(lost) - most),
        more_won=max(0, len(won) - most),
    )


def _shown(run: RunRow) -> OtherRun:
    return OtherRun(
        id=run.id,
        key=run.key,
        at=run.created_at,
        commit=run.commit_sha,
        branch=run.branch,
        verdict=run.verdict,
    )


def _entry(connection: Connection, run: RunRow) -> Entry:
    """Return the entry of a run; raises ConflictError if it has none, or one that cannot be read."""
    query = select(projects.c.slug, runs.c.entry).join(runs).where(runs.c.id == run.id)
    row = connection.execute(query).one()
    if row.entry is None:
        raise ConflictError([f"run {run.id}: nothing was recorded"])
    try:
        return decode(row.entry.encode(), entry_path(row.slug, run.key))
    except OtherVersionError as error:
        raise ConflictError([f"run {run.id}: was recorded by a newer rag-contract"]) from error


class _Blobs:
    """The result sets in the database, as :class:`~ragcontract.history.interface.ResultSets`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def results(self, sha256: str) -> bytes | None:
        return blob(self._connection, sha256)


def _chosen(connection: Connection, run: RunRow) -> Chosen:
    entry = _entry(connection, run)
    try:
        document = document_of(_Blobs(connection), entry)
    except InputError as error:
        raise ConflictError(error.problems) from error
    return Chosen(entry=entry, named=entry.id, document=document)


def _without(contract: Contract, query_ids: "set[str]") -> Contract:
    """Return a contract without some queries; raises ConflictError if none are left."""
    queries = {query_id: query for query_id, query in contract.queries.items() if query_id not in query_ids}
    if not queries:
        raise ConflictError(["the runs have no query in common that the contract has"])
    return replace(contract, golden=replace(contract.golden, queries=queries))


def _broken(connection: Connection, run: RunRow, contract: Contract, evaluation: Evaluation) -> Mapping[str, list[str]]:
    """Return the queries that a run breaks, with their rules, in the order of the golden queries.

    Rules about ranks are those of today. What other rules read is not stored, so they are as they were recorded.
    """
    ranked = {name for rule in contract.rules if issubclass(rule, RankRule) for name in names_of(rule)}
    recorded = select(broken.c.query_id, broken.c.rules).where(broken.c.run_id == run.id)
    of_rows = {
        row.query_id: [rule for rule in msgspec.json.decode(row.rules, type=list[str]) if rule not in ranked]
        for row in connection.execute(recorded)
    }
    rules, side = RankRules(contract.rules, contract.settings), evaluation.run
    rules_of: dict[str, list[str]] = {}
    for query_id, query in evaluation.contract.queries.items():
        known = query_id not in side.rows.without_results
        violations = rules.violations(query, side.scores[query_id]) if known else ()
        names = [*(violation.rule for violation in violations), *of_rows.get(index_key(query_id), ())]
        if names:
            rules_of[query_id] = [*dict.fromkeys(names)]
    return rules_of


def _changed(evaluations: Sequence[Evaluation], query_id: str, rules: list[str]) -> ChangedQuery:
    query = evaluations[0].contract.queries[query_id]
    before, now = (
        ranks_by_id(query.relevant_doc_ids, evaluation.run.scores[query_id].ranks) for evaluation in evaluations
    )
    return ChangedQuery(id=query_id, query=query.query, rules=rules, before=before, now=now)
