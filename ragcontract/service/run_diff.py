"""What changed between two runs of a project, under the contract that it has now."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace
from sqlalchemy import Connection, RowMapping, Select, select, true, tuple_

from ragcontract.contract.resolve import Contract
from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.numbers import count
from ragcontract.core.rule import names_of
from ragcontract.core.run import RanksById, ranks_by_id
from ragcontract.decision.evaluated import Evaluation
from ragcontract.evaluation.plan import plan_for
from ragcontract.evaluation.source import Local, entry_ref
from ragcontract.history.choose_baseline import Chosen, document_of
from ragcontract.history.entry import Entry
from ragcontract.history.interface import ConflictError
from ragcontract.report.comparison import RunComparison, compared_under, comparison_of
from ragcontract.rules.ranks import ForbiddenDocs, MustInclude, MustRankAtMost, RankRules
from ragcontract.service.blobs import blob
from ragcontract.service.database import index_key
from ragcontract.service.known_contract import KnownContract
from ragcontract.service.projects_and_runs import DETAILS, LISTED, NEWEST, broken_rules, project_branch
from ragcontract.service.tables import projects, runs

OF_RANKS = frozenset(name for rule in (ForbiddenDocs, MustInclude, MustRankAtMost) for name in names_of(rule))


class ChangedQuery(Struct, frozen=True, kw_only=True):
    """A query that holds in one of two runs and is broken in the other."""

    id: str
    query: str
    rules: Annotated[list[str], Meta(description="The rules that it breaks; empty if they were not recorded.")]
    before: Annotated[RanksById, Meta(description="The ranks of its relevant documents in the other run.")]
    now: Annotated[RanksById, Meta(description="The ranks of its relevant documents in this run.")]


class RecordedSide(Struct, frozen=True, kw_only=True):
    """What is stored of a run: the only result set in a :class:`~ragcontract.history.interface.ResultSets`."""

    entry: Entry
    data: bytes | None  # the result set
    rules: Mapping[str, Sequence[str]]  # that were recorded as broken, by what stands for a query in an index

    def results(self, sha256: str) -> bytes | None:  # noqa: ARG002 (the seam's)
        return self.data

    @property
    def chosen(self) -> Chosen:
        """The run as a baseline; raises InputError without a result set."""
        return Chosen(entry=self.entry, named=self.entry.id, document=document_of(self, self.entry))


class RunDiff(Struct, frozen=True, kw_only=True):
    """What changed in a run since another one."""

    comparison: RunComparison
    lost: Sequence[ChangedQuery]
    won: Sequence[ChangedQuery]


def last_pass(connection: Connection, project: int, run: RowMapping | None = None) -> RowMapping | None:
    """Return the newest run of the project's branch that passed with results, before a run if that is not None.

    None if there is none.
    """
    of_branch = runs.c.branch.is_not_distinct_from(project_branch(connection, project))
    passed = of_branch, runs.c.verdict == "pass", runs.c.results.is_not(None)
    newest = _before(project, run).where(*passed).limit(bounds.SERVICE_PASSES)
    return next((row for row in connection.execute(newest).mappings() if entry_of(row).passed), None)


def run_before(connection: Connection, project: int, run: RowMapping) -> RowMapping | None:
    """Return the run before a run on its own branch; None if none of those just before it is of the branch."""
    near = _before(project, run).limit(bounds.SERVICE_RUNS_BEFORE).subquery()
    wanted = near.c.branch.is_not_distinct_from(run["branch"]), near.c.results.is_not(None)
    newest = select(near).where(*wanted).order_by(near.c.created_at.desc(), near.c.id.desc()).limit(1)
    return connection.execute(newest).mappings().one_or_none()


def _before(project: int, run: RowMapping | None) -> "Select[Any]":
    """Return a query for the runs of a project, the newest first: all, or those before a run."""
    before = tuple_(runs.c.created_at, runs.c.id) < (run["created_at"], run["id"]) if run else true()
    return select(*LISTED, *DETAILS).join(projects).where(runs.c.project_id == project, before).order_by(*NEWEST)


def recorded_entry(row: RowMapping | None) -> Entry | None:
    """Return the entry of a run; None if it was not recorded."""
    return None if row is None or row["entry"] is None else entry_of(row)


def entry_of(row: RowMapping) -> Entry:
    """Return the entry of a run; raises ConflictError if it was not recorded."""
    if row["entry"] is None:
        raise ConflictError([f"run {row['id']} has no results"])
    return msgspec.json.decode(row["entry"], type=Entry)


def side_of(connection: Connection, row: RowMapping) -> RecordedSide:
    """Return what is stored of a run; raises ConflictError if it was not recorded."""
    results = blob(connection, row["results"]) if row["results"] else None
    return RecordedSide(entry=entry_of(row), data=results, rules=broken_rules(connection, row["id"]))


def diff(contract: KnownContract, sides: Sequence[RecordedSide], now: datetime) -> RunDiff:
    """Return what changed between two runs, the one before and the one now.

    Queries that only one of them has, or had with another question, are left out with a warning. Raises ConflictError
    without a contract, or if either run has no results that can be used.
    """
    if contract.today is None:
        raise ConflictError([contract.problem])
    full, _ = contract.today
    try:
        evaluations, comparison = _compared(full, [side.chosen for side in sides], now)
    except InputError as error:
        raise ConflictError(error.problems) from error
    was, is_now = (_broken(full, evaluation, side.rules) for evaluation, side in zip(evaluations, sides, strict=True))
    return RunDiff(
        comparison=replace(comparison, warnings=[*comparison.warnings, *_without_rules(was, is_now)]),
        lost=[_changed(evaluations, query_id, is_now[query_id]) for query_id in is_now if query_id not in was],
        won=[_changed(evaluations, query_id, was[query_id]) for query_id in was if query_id not in is_now],
    )


def _compared(
    contract: Contract, chosen: Sequence[Chosen], now: datetime
) -> tuple[Sequence[Evaluation], RunComparison]:
    """Score both runs over the queries that they share; raises InputError if that is impossible."""
    contract, warnings = contract.without_limits().without_diagnostics(), list[str]()
    plan = plan_for(contract)
    sides = [Local(run).evaluate(plan) for run in chosen]
    if absent := {query_id for side in sides for query_id in (*side.rows.missing, *side.rows.changed)}:
        warnings.append(f"{count(len(absent), 'query')} left out, which not both runs have with today's question")
        contract = _without(contract, absent)
        plan = plan_for(contract)
        sides = [Local(run).evaluate(plan) for run in chosen]
    compared = compared_under(contract, plan, sides)
    names = [entry_ref(run.entry.id) for run in chosen]
    made = comparison_of(compared.evaluations, names, warnings=[*warnings, *compared.warnings], now=now)
    return compared.evaluations, made


def _without(contract: Contract, query_ids: set[str]) -> Contract:
    """Return a contract without some queries; raises InputError if none are left."""
    queries = {query_id: query for query_id, query in contract.queries.items() if query_id not in query_ids}
    if not queries:
        raise InputError(["the runs have no query in common that the contract has"])
    return replace(contract, golden=replace(contract.golden, queries=queries))


def _broken(contract: Contract, evaluation: Evaluation, recorded: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return the queries that a run breaks, with their rules, in the order of the golden queries.

    Rules about ranks are those of today. What other rules read is not stored, so they are as they were recorded. A run
    that was sent without its report has no names of rules: its broken queries are broken.
    """
    of_rows = {key: [rule for rule in rules if rule not in OF_RANKS] for key, rules in recorded.items()}
    rules, side = RankRules(contract.rules, contract.settings), evaluation.run
    rules_of: dict[str, list[str]] = {}
    for query_id, query in evaluation.contract.queries.items():
        known = query_id not in side.rows.without_results
        violations = rules.violations(query, side.scores[query_id]) if known else ()
        key = index_key(query_id)
        names = [*(violation.rule for violation in violations), *of_rows.get(key, ())]
        if names or (key in recorded and not recorded[key]):
            rules_of[query_id] = [*dict.fromkeys(names)]
    return rules_of


def _without_rules(*broken: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield a warning if queries of the runs are broken only because they were recorded so."""
    if number := len({query_id for rules_of in broken for query_id, rules in rules_of.items() if not rules}):
        recorded = f"{count(number, 'query')} {'was' if number == 1 else 'were'} recorded as broken without the rules"
        yield f"{recorded}, so {'it counts' if number == 1 else 'they count'} as broken, whatever today's rules are"


def _changed(evaluations: Sequence[Evaluation], query_id: str, rules: list[str]) -> ChangedQuery:
    query = evaluations[0].contract.queries[query_id]
    before, now = (
        ranks_by_id(query.relevant_doc_ids, evaluation.run.scores[query_id].ranks) for evaluation in evaluations
    )
    return ChangedQuery(id=query_id, query=query.query, rules=rules, before=before, now=now)
