"""Limits on what applications send of production, and on how long it is kept."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, select

from ragcontract.core.errors import InputError
from ragcontract.interaction_client import InteractionClient
from ragcontract.service.accounts import Principal
from ragcontract.service.audit import Author
from ragcontract.service.database import DAY, BusyError, Database
from ragcontract.service.production import project_settings
from ragcontract.service.production.deletion import delete_expired, delete_interactions
from ragcontract.service.production.incoming import prepared
from ragcontract.service.production.interaction_writer import InteractionWriter
from ragcontract.service.production.project_settings import ProjectSettings, SettingsOfProjects
from ragcontract.service.production.storing import Batch
from ragcontract.service.projects_and_runs import add_project
from ragcontract.service.tables import daily, interactions, tallies
from ragcontract.service.web import request_limits
from ragcontract.service.web.request_limits import Buckets
from tests.bounds.lab import Case, Cases, Lab, all_of, packed
from tests.bounds.service_playground import filled
from tests.net.service import Reply, Service
from tests.service.ingesting import PATH, SLUG
from tests.service.served import Served

NOW = 20_000 * DAY
ITEM = {"query": "x"}
STORED = Reply(content={"rejected": []})


@contextmanager
def project(lab: Lab) -> Iterator[Database]:
    """Make a database with a project."""
    database = filled(lab)
    database.write(lambda connection: add_project(connection, SLUG, SLUG, 0))
    yield database
    database.close()


def status(lab: Lab, body: bytes, **headers: str) -> int:
    """Send a body to a service and return the status."""
    with project(lab) as database, Served(database) as served:
        headers |= {"Content-Type": "application/json"}
        answer = served.request("POST", PATH, key=served.new_key("ingest"), content=body, headers=headers)
        return int(answer.status_code)


def body_of(number: int, **fields: Any) -> bytes:
    return json.dumps({"interactions": [ITEM | fields] * number}).encode()


def many(lab: Lab, number: int) -> bool:
    return status(lab, body_of(number)) == 200


def unpacked(lab: Lab, size: int) -> bool:
    answer = status(lab, packed(body_of(1).ljust(size)), **{"Content-Encoding": "gzip"})
    assert answer in {200, 413}
    return answer == 200


def times_larger(lab: Lab, times: int) -> bool:
    size = 300
    answer = status(lab, packed(body_of(1).ljust(times * size), size), **{"Content-Encoding": "gzip"})
    assert answer in {200, 413}
    return answer == 200


def settings() -> ProjectSettings:
    return ProjectSettings(project=1, slug=SLUG, secret="x")


def is_taken(**fields: Any) -> bool:
    """Return whether an interaction with these fields is not rejected."""
    try:
        return bool(prepared(body_of(1, **fields), settings(), NOW).stored)
    except InputError:
        return False


def stored_error(_: Lab, size: int) -> bool:
    (item,) = prepared(body_of(1, error="x" * size), settings(), NOW).stored
    return bool(item.row["error"] == "x" * size)


UNREAD: Any = None  # an item of a batch whose items are only counted


class Counting:
    """Stands in for a database: counts transactions, and stores nothing."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def write(self, job: Any) -> Any:
        batches = job.keywords["batches"]
        self.sizes.append(sum(len(batch.items) for batch in batches))
        return [None] * len(batches)


def a_transaction(_: Lab, number: int) -> bool:
    database, half = Counting(), number // 2
    writer = InteractionWriter(database)  # type: ignore[arg-type]
    for size in (half, number - half):
        writer.submit(Batch(settings=settings(), items=[UNREAD] * size))
    writer.start()
    writer.close()
    assert sum(database.sizes) == number
    return database.sizes == [number]


def waiting(_: Lab, number: int) -> bool:
    writer = InteractionWriter(Counting())  # type: ignore[arg-type]
    try:
        for _each in range(number):
            writer.submit(Batch(settings=settings(), items=[]))
    except BusyError:
        return False
    return True


def a_key(lab: Lab, seconds: int) -> bool:
    lab.patch.setattr(request_limits, "seconds", lambda: 0)
    bucket = Buckets().take("x", 1, 1)
    bucket.belongs_to(Principal(actor="key:x", scopes=frozenset({"ingest"})))
    lab.patch.setattr(request_limits, "seconds", lambda: seconds)
    return bucket.principal() is not None


def later(lab: Lab, seconds: int, changed: Callable[[SettingsOfProjects], bool]) -> bool:
    """Return whether something is as it was, so many seconds after it was looked up."""
    with project(lab) as database:
        lab.patch.setattr(project_settings, "seconds", lambda: 0)
        known = SettingsOfProjects(database, None)
        assert known.of(SLUG)
        row = {"project_id": 1, "day": 0, "monitor": "latency_p95", "n": 1, "value": 1.0, "alarm": 0}
        database.write(lambda connection: connection.execute(daily.insert().values(row)))
        lab.patch.setattr(project_settings, "seconds", lambda: seconds)
        return not changed(known)


def known_settings(lab: Lab, seconds: int) -> bool:
    return later(lab, seconds, lambda known: known.fresh(SLUG) is None)


def known_latencies(lab: Lab, seconds: int) -> bool:
    return later(lab, seconds, lambda known: bool(known.of(SLUG).p95))  # type: ignore[union-attr]


def deleted_at_once(lab: Lab, number: int) -> bool:
    """Return whether so many interactions are deleted in one transaction, before that of the audit log."""
    with project(lab) as database:
        known = SettingsOfProjects(database, None).of(SLUG)
        assert known
        writer = InteractionWriter(database)
        items = prepared(body_of(number), known, NOW).stored
        writer.start()
        writer.submit(Batch(settings=known, items=items)).result()
        writer.close()
        sizes: list[int] = []
        write = database.write

        def counting(job: Callable[[Connection], Any]) -> Any:
            sizes.append(1)
            return write(job)

        database.write = counting  # type: ignore[method-assign]
        author = Author(actor="x", at=NOW)
        assert delete_interactions(database, SLUG, 1, "of a test", author, before=NOW + 1) == number
        return len(sizes) == 2


def kept_days(lab: Lab, days: int, table: Any, **values: Any) -> bool:
    with project(lab) as database:
        row = {"project_id": 1, "day": NOW - days * DAY, **values}
        database.write(lambda connection: connection.execute(table.insert().values(row)))
        delete_expired(database, Author(actor="x", at=NOW), lambda: False)
        with database.read() as connection:
            assert not connection.execute(select(interactions)).all()
            return bool(connection.execute(select(table)).all())


def measured(lab: Lab, days: int) -> bool:
    return kept_days(lab, days, tallies, name="received", number=1)


def client_waiting(_: Lab, number: int) -> bool:
    with Service(Reply(kind="hang")) as service:
        client = InteractionClient(service.url, SLUG, "rc_key")
        client.send("at work")
        while not service.requests:
            time.sleep(0.01)
        for each in range(number):
            client.send(f"{each}")
        return not client.dropped


def client_batch(_: Lab, number: int) -> bool:
    """Return whether so many that wait are sent at once."""
    with Service(Reply(status=503, headers={"Retry-After": "1"}), STORED) as service:
        client = InteractionClient(service.url, SLUG, "rc_key")
        client.send("at work")
        while not service.requests:
            time.sleep(0.01)
        for each in range(number):
            client.send(f"{each}")
        client.flush(30)
        return len(service.requests) == 3


CASES: Cases = {
    "INTERACTIONS": Case(many),
    "INTERACTIONS_UNPACKED": Case(unpacked, small=1_000),
    "UNPACKED_TIMES": Case(times_larger, small=10),
    "INTERACTION_QUERY": Case(lambda _, size: is_taken(query="x" * size)),
    "INTERACTION_RESPONSE": Case(
        lambda _, size: all_of(is_taken(response="x" * size), is_taken(error="x" * size), is_taken(answer="x" * size))
    ),
    "INTERACTION_ERROR": Case(stored_error),
    "INTERACTION_RESULTS": Case(lambda _, number: is_taken(results=[{"doc_id": "x"}] * number)),
    "INTERACTION_TAGS": Case(lambda _, number: is_taken(tags=["x"] * number)),
    "INTERACTION_NAME": Case(lambda _, size: all_of(is_taken(tags=["x" * size]), is_taken(source="x" * size))),
    "INTERACTION_USER": Case(lambda _, size: is_taken(user="x" * size)),
    "INTERACTION_AHEAD": Case(lambda _, seconds: is_taken(asked_at=NOW + seconds * 1_000)),
    "INTERACTIONS_A_TRANSACTION": Case(a_transaction),
    "INGESTED_WAITING": Case(waiting),
    "KEY_SECONDS": Case(a_key),
    "SETTINGS_SECONDS": Case(known_settings),
    "GOLDEN_SECONDS": Case(known_latencies),
    "DELETED_INTERACTIONS": Case(deleted_at_once, small=3),
    "MEASURED_DAYS": Case(measured),
    "CLIENT_WAITING": Case(client_waiting, small=3),
    "CLIENT_BATCH": Case(client_batch),
}
