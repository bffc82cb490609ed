"""What Prometheus asks for: the requests of this process and its errors, and what the database has now.

Each application counts for itself. No label has anything that a client chose.
"""

from collections.abc import Callable
from typing import get_args

from litestar import Response, get
from litestar.di import NamedDependency
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.process_collector import ProcessCollector
from sqlalchemy import Connection, func, select

from ragcontract.service.accounts import Principal
from ragcontract.service.database import Database
from ragcontract.service.projects_and_runs import State, seen_runs
from ragcontract.service.tables import runs
from ragcontract.service.web.authentication import READ
from ragcontract.service.web.parameters import Asker, Db

STATES: tuple[State, ...] = get_args(State)
UNKNOWN = "unknown"  # in place of a path that leads nowhere, and of a method that no route has
TASKS = ("trends", "retention", "workers")
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1, 2.5, 5, 10)


class Monitoring:
    """The counts of an application since it has started."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._requests = Histogram(
            "rag_contract_request_seconds",
            "How long requests took, by route and status.",
            ["method", "route", "status"],
            buckets=SECONDS,
            registry=self._registry,
        )
        self._errors = Counter(
            "rag_contract_task_errors", "Errors of what runs in the background.", ["task"], registry=self._registry
        )
        for task in TASKS:
            self._errors.labels(task)  # 0 is there before the first error, so that an alert sees it rise

    def answered(self, method: str, route: str | None, status: int, seconds: float) -> None:
        """Count a request. It has a route only if its method and its path are those of one."""
        labels = (method, route) if route else (UNKNOWN, UNKNOWN)
        self._requests.labels(*labels, f"{status}").observe(seconds)

    def errors_of(self, task: str) -> Callable[[], None]:
        """Return what counts an error of a background task."""
        return self._errors.labels(task).inc

    def text(self, database: Database, connection: Connection, principal: Principal) -> bytes:
        """Return all counts as Prometheus reads them; runs are those of the projects that the principal sees."""
        now = CollectorRegistry()
        waiting = Gauge("rag_contract_writes_waiting", "Writes that wait for the database.", registry=now)
        waiting.set(database.waiting)
        size = Gauge("rag_contract_database_bytes", "The size of the database.", registry=now)
        size.set(database.size(connection))
        of_state = Gauge("rag_contract_runs", "Runs that are stored, by state.", ["state"], registry=now)
        counted = select(runs.c.state, func.count()).where(seen_runs(principal)).group_by(runs.c.state)
        numbers: dict[str, int] = dict(connection.execute(counted).all())
        for state in STATES:
            of_state.labels(state).set(numbers.get(state, 0))
        lost = Gauge("rag_contract_leases_lost", "Attempts of stored runs whose worker was lost.", registry=now)
        again = select(func.coalesce(func.sum(runs.c.attempt - 1), 0)).where(seen_runs(principal), runs.c.attempt > 1)
        lost.set(connection.execute(again).scalar_one())
        return generate_latest(self._registry) + generate_latest(now)


Counts = NamedDependency[Monitoring]


@get("/metrics", access=READ, sync_to_thread=True)
def metrics(database: Db, monitoring: Counts, principal: Asker) -> Response[bytes]:
    """Return what Prometheus collects: requests, errors, the writer's queue, runs by state, the database's size."""
    with database.read() as connection:
        content = monitoring.text(database, connection, principal)
    return Response(content, media_type=CONTENT_TYPE_LATEST)
