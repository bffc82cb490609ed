"""The metrics of a project's branch over time, scored again under today's contract, with levels and change points.

They take seconds for thousands of runs, so a thread computes them after an entry was added, and the table ``trends``
keeps them. What was computed while something was added is not stored, so it replaces no newer trend.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice, takewhile
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace
from sqlalchemy import Connection, Row, exists, func, or_, select
from sqlalchemy.exc import SQLAlchemyError

from ragcontract.core import bounds
from ragcontract.core.gate import Kind
from ragcontract.core.metric import Direction, Scale
from ragcontract.history.contract_entries import ContractEntries
from ragcontract.history.entry import Entry
from ragcontract.history.page_runs import ContractRuns, runs_on_page
from ragcontract.history.trend_page import Section, section_of, stands
from ragcontract.service.accounts import Principal
from ragcontract.service.blobs import blob
from ragcontract.service.database import BusyError, Database, Milliseconds, index_key, now_ms
from ragcontract.service.database_store import DatabaseStore
from ragcontract.service.known_contract import KnownContract, contract_digest, contract_of
from ragcontract.service.projects_and_runs import OUTDATED, newest_run, project_branch
from ragcontract.service.query_record import encoded_ranks, flaky_queries
from ragcontract.service.tables import points, projects, runs, trends
from ragcontract.statistics.change_points import LEAST_RUNS
from ragcontract.statistics.levels import sigma

log = logging.getLogger(__name__)
LOOK = 5  # s; how often the runs are looked at that other processes have recorded
NO_FIT = "no recorded run has queries and results that fit the contract, so none can be scored again"


class TrendRun(Struct, frozen=True, array_like=True, gc=False):
    """A recorded run."""

    id: int
    key: str
    at: int  # milliseconds since 1970
    commit: str | None
    state: str = ""  # the verdict, and why a pass does not count


class MovedQuery(Struct, frozen=True, kw_only=True):
    """A query that is ranked differently since a change point: the means of the first metric that changed there."""

    id: str
    before: float | None
    after: float | None


class MetricChange(Struct, frozen=True, kw_only=True):
    """A run since which a metric is different."""

    run: int
    key: str
    at: Milliseconds
    commit: str | None
    before: Annotated[float, Meta(description="The mean of the runs since the change point before.")]
    after: Annotated[float, Meta(description="The mean of the runs until the next one.")]
    worse: bool
    p_value: Annotated[float | None, Meta(description="Null if the runs do not vary without a change.")]
    queries: Annotated[list[MovedQuery], Meta(description="Those that changed most, at most 20.")]
    moved: Annotated[int, Meta(description="How many queries are ranked differently since.")] = 0
    stands: Annotated[bool, Meta(description="It is a loss, most of which was not made up for.")] = False


class MetricTrend(Struct, frozen=True, kw_only=True):
    """A metric over time; empty for one that has no trend."""

    label: str | None = None
    better: Direction | None = None
    scale: Scale | None = None
    level: float | None = None
    sigma: float | None = None
    limits: list[tuple[Kind, float, bool]] = []  # those of today: kind, value, and whether it is relative
    values: list[float | None] = []  # of the runs of the trend
    changes: list[MetricChange] = []


class Trend(Struct, frozen=True, kw_only=True):
    """The metrics of a project's branch over time: the body of a row."""

    why_recorded: str = ""  # why the values are as they were recorded; empty if they were computed again
    notes: Sequence[str] = ()  # what was left out
    runs: list[TrendRun]
    metrics: dict[str, MetricTrend]
    flaky: Sequence[str] = ()  # the ids of golden queries


class StoredTrend(Struct, frozen=True, kw_only=True):
    """A row: a trend, its newest run, and the contract that it was computed with."""

    run_id: int
    golden: str | None
    computed_at: int
    body: str

    @property
    def trend(self) -> Trend:
        return msgspec.json.decode(self.body, type=Trend)


def stored_trend(connection: Connection, project_id: int) -> StoredTrend | None:
    """Return the trend of a project; None if it was not computed yet."""
    columns = trends.c.run_id, trends.c.golden, trends.c.computed_at, trends.c.body
    row = connection.execute(select(*columns).where(trends.c.project_id == project_id)).mappings().one_or_none()
    return None if row is None else StoredTrend(**row)


@lru_cache(bounds.REPORT_PAGES)
def decoded_trend(stored: StoredTrend) -> Trend:
    """Return the trend of a row, which takes long for many runs."""
    return stored.trend


def known_flaky(connection: Connection, project_id: int) -> Sequence[str]:
    """Return the golden queries of a project that were flaky when its trend was computed."""
    stored = stored_trend(connection, project_id)
    return () if stored is None else decoded_trend(stored).flaky


class _Results(DatabaseStore):
    """Counts the bytes of result sets. It needs no check of who may see them: the project's own entries name them."""

    bytes_read = 0

    def results(self, sha256: str) -> bytes | None:
        with self._database.read() as connection:
            data = blob(connection, sha256)
        self.bytes_read += len(data or b"")
        return data


class _Newest(ContractEntries):
    """The newest entries of a branch: as many as can be scored again in seconds, and held in memory."""

    store: _Results
    queries = 1  # of the contract

    def of_branch(self, branch: str | None) -> Iterator[Entry]:
        number = min(bounds.SERVICE_TREND_RUNS, bounds.SERVICE_TREND_QUERIES // self.queries)
        newest = islice(super().of_branch(branch), max(number, LEAST_RUNS))
        return takewhile(lambda _: self.store.bytes_read <= bounds.SERVICE_TREND_BYTES, newest)


def compute(database: Database, project_id: int, folder: Path | None) -> bool:
    """Compute the trend of a project and store it; return False if it has no run, or something was added meanwhile."""
    with database.read() as connection:
        basis = _basis(connection, project_id)
        if basis.newest is None:
            return False
        branch = project_branch(connection, project_id)
        slug, name = connection.execute(
            select(projects.c.slug, projects.c.name).where(projects.c.id == project_id)
        ).one()
        contract = contract_of(connection, project_id, folder)
    entries = _Newest(_Results(database, Principal(actor="trends", project_id=project_id)), slug, name)
    entries.queries = len(contract.today[0].queries) if contract.today else 1
    section = section_of(runs_on_page(entries, branch, contract.today))
    with database.read() as connection:
        ids = select(runs.c.key, runs.c.id, runs.c.created_at).where(runs.c.project_id == project_id)
        rows = {row.key: (row.id, row.created_at) for row in connection.execute(ids)}
        trend = _trend(section, contract, rows)
        ranks = encoded_ranks(section.of, {run.key: run.id for run in trend.runs})
        trend = replace(trend, flaky=[*flaky_queries(connection, project_id, section.of.questions, ranks)])
    row = {
        "run_id": basis.newest,
        "golden": contract.digest,
        "computed_at": now_ms(),
        "body": msgspec.json.encode(trend).decode(),
        "ranks": ranks,
    }
    return database.write(lambda connection: _store(connection, project_id, basis, row))


class _Basis(NamedTuple):
    """What a trend is computed from: the newest run of the branch, and how many there are."""

    newest: int | None
    runs: int
    result_sets: int


def _basis(connection: Connection, project_id: int) -> _Basis:
    newest, branch = newest_run(connection, project_id), project_branch(connection, project_id)
    of_branch = runs.c.project_id == project_id, runs.c.branch.is_not_distinct_from(branch)
    counts = connection.execute(select(func.count(), func.count(runs.c.results)).where(*of_branch)).one()
    return _Basis(newest.id if newest else None, *counts)


def _store(connection: Connection, project_id: int, basis: _Basis, row: Mapping[str, object]) -> bool:
    # The lock makes two processes that write a trend wait for each other; SQLite has one writer anyway.
    locked = select(projects.c.id).where(projects.c.id == project_id).with_for_update(key_share=True)
    if connection.execute(locked).one_or_none() is None:
        return False
    if _basis(connection, project_id) != basis:
        return False
    connection.execute(trends.delete().where(trends.c.project_id == project_id))
    connection.execute(trends.insert().values(project_id=project_id, **row))
    return True


def _trend(section: Section, contract: KnownContract, rows: Mapping[str, tuple[int, int]]) -> Trend:
    of = section.of
    shown = {
        run.id: TrendRun(rows[run.id][0], run.id, rows[run.id][1], run.commit, run.state)
        for run in of.runs
        if run.id in rows
    }
    why = contract.problem if contract.today is None else "" if of.questions else NO_FIT
    return Trend(
        why_recorded=why,
        notes=of.notes,
        runs=[*shown.values()],
        metrics={key: _metric(section, key, shown) for key in of.series},
    )


def _metric(section: Section, key: str, shown: Mapping[str, TrendRun]) -> MetricTrend:
    of: ContractRuns = section.of
    series = of.series[key]
    changes = [*_changes(section, key, shown)]
    values = {run.id: value for run, value in series.known}
    order = {run.id: place for place, (run, _) in enumerate(series.known)}
    places = sorted(order[change.key] for change in changes)
    return MetricTrend(
        label=series.metric.label,
        better=series.metric.better,
        scale=series.metric.scale,
        level=of.level(key),
        sigma=sigma([value for _, value in series.known], places),
        limits=[limit[1:] for limit in of.limits if limit[0] == key],
        values=[values.get(run_id) for run_id in shown],
        changes=changes,
    )


def _changes(section: Section, key: str, shown: Mapping[str, TrendRun]) -> Iterator[MetricChange]:
    oldest_first = reversed(section.changes)
    steps = [(change, step) for change in oldest_first for step in change.steps if step.metric.key == key]
    for change, step in steps:
        if change.run.id in shown:
            run = shown[change.run.id]
            yield MetricChange(
                run=run.id,
                key=run.key,
                at=run.at,
                commit=run.commit,
                before=step.point.before,
                after=step.point.after,
                worse=step.worse,
                p_value=step.point.p_value,
                queries=[
                    MovedQuery(id=query, before=before, after=after)
                    for query, before, after in change.queries[: bounds.PAGE_QUERIES]
                ],
                moved=len(change.queries),
                stands=stands(step, steps[-1][1].point.after),
            )


class Trends:
    """The thread that computes trends, and the projects that wait for it, each once."""

    def __init__(
        self, database: Database, folder: Path | None = None, failed: Callable[[], None] = lambda: None
    ) -> None:
        """Take the database, the folder of the mounted projects if there are any, and what counts errors."""
        self._database, self.folder, self._failed = database, folder, failed
        self._waiting: deque[int] = deque()
        self._changed = threading.Condition()
        self._ended = False
        self._looked, self._tried_with = False, dict[int, _Basis]()
        self._thread = threading.Thread(target=self._run, name="trends", daemon=True)

    def start(self) -> None:
        """Start the thread. It begins with the projects whose trends are missing or old."""
        self._thread.start()

    def close(self) -> None:
        """End the thread after the trend that it computes."""
        with self._changed:
            self._ended = True
            self._changed.notify()
        self._thread.join()

    def note(self, project_id: int) -> None:
        """Ask for the trend of a project to be computed, as after a run was added to it."""
        with self._changed:
            if project_id not in self._waiting:
                self._waiting.append(project_id)
                self._changed.notify()

    def is_current(self, connection: Connection, project_id: int, stored: StoredTrend | None) -> bool:
        """Return whether a trend is of all runs of a project, if it has any, and of its contract as it is now."""
        newest = newest_run(connection, project_id)
        if newest is None or stored is None:
            return newest is None
        if stored.computed_at == OUTDATED:
            return False
        return (stored.run_id, stored.golden) == (newest.id, contract_digest(connection, project_id, self.folder))

    def _run(self) -> None:
        self._tried(None)
        while not self._ended:
            project_id = self._next()
            if not self._ended:
                self._tried(project_id)

    def _next(self) -> int | None:
        """Wait for a project; None after a while, because workers record runs in other processes."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended or self._waiting, LOOK)
            return self._waiting.popleft() if self._waiting else None

    def _outdated(self, connection: Connection) -> list[int]:
        """Return the projects that may lack a trend, without those whose runs are those of the last try.

        The first time, these are all: contracts may have changed.
        """
        if not self._looked:
            self._looked = True
            return [*connection.execute(select(projects.c.id)).scalars()]
        missing = or_(trends.c.project_id.is_(None), trends.c.computed_at == OUTDATED)
        joined = select(projects.c.id).outerjoin(trends, trends.c.project_id == projects.c.id).where(missing)
        known = self._tried_with
        return [each for each in connection.execute(joined).scalars() if known.get(each) != _basis(connection, each)]

    def _tried(self, project_id: int | None) -> None:
        """Compute the trend of a project, or look for old ones if it is None; try again later without a database."""
        try:
            with self._database.read() as connection:
                wanted = self._outdated(connection) if project_id is None else [project_id]
                old = [each for each in wanted if not self.is_current(connection, each, stored_trend(connection, each))]
                self._tried_with |= {each: _basis(connection, each) for each in old}
            if project_id is None:
                for each in old:
                    self.note(each)
            elif old:
                compute(self._database, project_id, self.folder)
        except (BusyError, SQLAlchemyError) as error:
            self._failed()
            log.warning("a trend was not computed, which is tried again: %s", type(error).__name__)
            if project_id is not None:
                self.note(project_id)
            with self._changed:
                self._changed.wait_for(lambda: self._ended, bounds.SERVICE_DATABASE_WAIT)
        except Exception:
            self._failed()
            log.exception("the trend of project %s could not be computed", project_id)


ALL = ""  # the tag of means over all queries


def recorded_points(
    connection: Connection, project_id: int, metric: str, tag: str, since: int
) -> "Sequence[Row[int, str, int, str | None, float | None, str | None]]":
    """Return the means in the runs of the project's branch since a time, the oldest first."""
    columns = runs.c.id, runs.c.key, points.c.at, runs.c.commit_sha, points.c.value, points.c.status
    wanted = (
        points.c.project_id == project_id,
        points.c.metric == index_key(metric),
        points.c.tag == index_key(tag),
        points.c.at >= since,
        runs.c.branch.is_not_distinct_from(project_branch(connection, project_id)),
    )
    query = select(*columns).join(runs, runs.c.id == points.c.run_id).where(*wanted)
    return connection.execute(query.order_by(points.c.at, points.c.run_id)).all()


class RecordedMeans(Struct, frozen=True, kw_only=True):
    """The means of some runs over all queries, as they were recorded."""

    metrics: Sequence[str]  # those with limits first
    of: Mapping[int, Mapping[str, float | None]]  # by run and metric


def recorded_means(connection: Connection, numbers: Sequence[int]) -> RecordedMeans:
    """Return the means of runs as they were recorded, of the first metrics."""
    columns = points.c.run_id, points.c.metric, points.c.value, points.c.status
    rows = connection.execute(select(*columns).where(points.c.run_id.in_(numbers), points.c.tag == ALL)).all()
    limited = {row.metric for row in rows if row.status != "none"}
    metrics = sorted({row.metric for row in rows}, key=lambda metric: (metric not in limited, metric))
    means: dict[int, dict[str, float | None]] = {number: {} for number in numbers}
    for row in rows:
        means[row.run_id][row.metric] = row.value
    return RecordedMeans(metrics=metrics[: bounds.PAGE_CHARTS], of=means)


def is_recorded(connection: Connection, project_id: int, metric: str, tag: str = ALL) -> bool:
    """Return whether any run of a project, of any branch and time, has a metric."""
    of_metric = points.c.project_id == project_id, points.c.metric == index_key(metric)
    return bool(connection.execute(select(exists().where(*of_metric, points.c.tag == index_key(tag)))).scalar())


def newest_names(connection: Connection, project_id: int) -> tuple[list[str], list[str]]:
    """Return the metrics and the tags of the newest run of the project's branch, sorted."""
    run = newest_run(connection, project_id)
    named = select(points.c.metric, points.c.tag).where(points.c.run_id == (run.id if run else None))
    rows = connection.execute(named).all()
    return sorted({row.metric for row in rows}), sorted({row.tag for row in rows} - {ALL})
