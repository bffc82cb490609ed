"""What Prometheus asks for: the requests of this process and its errors, and what the database has now.

Each application counts for itself. No label has anything that a client chose.
"""

from collections.abc import Callable
from typing import get_args

from litestar import Response, get
from litestar.di import NamedDependency
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.process_collector import ProcessCollector
from sqlalchemy import Connection, case, func, select

from ragcontract.service.accounts import Principal
from ragcontract.service.alerts import is_waiting
from ragcontract.service.database import Database, now_ms
from ragcontract.service.projects_and_runs import State, seen_runs
from ragcontract.service.tables import alerts, runs
from ragcontract.service.web.authentication import READ
from ragcontract.service.web.parameters import Asker, Db

STATES: tuple[State, ...] = get_args(State)
UNKNOWN = "unknown"  # in place of a path that leads nowhere, and of a method that no route has
TASKS = ("trends", "retention", "workers", "schedule", "alerts", "interactions")
OUTCOMES = ("accepted", "duplicate", "rejected")
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
        self._interactions = Counter(
            "rag_contract_interactions",
            "Interactions that were sent, by what became of them.",
            ["outcome"],
            registry=self._registry,
        )
        for outcome in OUTCOMES:
            self._interactions.labels(outcome)
        for task in TASKS:
            self._errors.labels(task)  # 0 is there before the first error, so that an alert sees it rise

    def answered(self, method: str, route: str | None, status: int, seconds: float) -> None:
        """Count a request. It has a route only if its method and its path are those of one."""
        labels = (method, route) if route else (UNKNOWN, UNKNOWN)
        self._requests.labels(*labels, f"{status}").observe(seconds)

    def ingested(self, **numbers: int) -> None:
        """Count interactions by their outcomes, which are ``OUTCOMES``."""
        for outcome, number in numbers.items():
            self._interactions.labels(outcome).inc(number)

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
        _count_alerts(connection, principal, now)
        return generate_latest(self._registry) + generate_latest(now)


def _count_alerts(connection: Connection, principal: Principal, registry: CollectorRegistry) -> None:
    waits, is_delivered = is_waiting(now_ms()), alerts.c.delivered_at.is_not(None)
    state = case((is_delivered, "delivered"), (waits, "waiting"), else_="given_up").label("state")
    of_state = Gauge("rag_contract_alerts", "Alerts that are stored, by state.", ["state"], registry=registry)
    seen = select(state).where(seen_runs(principal, alerts.c.project_id)).subquery()
    numbers: dict[str, int] = dict(connection.execute(select(seen.c.state, func.count()).group_by(seen.c.state)).all())
    for each in ("waiting", "delivered", "given_up"):
        of_state.labels(each).set(numbers.get(each, 0))


Counts = NamedDependency[Monitoring]


@get("/metrics", access=READ, sync_to_thread=True)
def metrics(database: Db, monitoring: Counts, principal: Asker) -> Response[bytes]:
    """Return what Prometheus collects: requests, errors, the writer's queue, runs by state, the database's size."""
    with database.read() as connection:
        content = monitoring.text(database, connection, principal)
    return Response(content, media_type=CONTENT_TYPE_LATEST)
