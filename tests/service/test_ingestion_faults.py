"""Interactions while things go wrong: what was acknowledged is there, and the service goes on by itself."""

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import URL, select

from ragcontract.service.database import database_url
from ragcontract.service.migrate import migrate
from ragcontract.service.tables import interactions
from tests.service.conftest import name_of, open_database
from tests.service.ingesting import PATH, Ingesting
from tests.service.postgres import Cluster
from tests.service.running import serving
from tests.service.served import API, checked
from tests.small_disks import room_left, small_disk

KILLS = 2
SENDERS = 4


class Sender:
    """Sends until it is ended, again and again what was not acknowledged; ``acknowledged`` has the ids of the rest."""

    def __init__(self, number: int, key: str, url: Callable[[], str]) -> None:
        self.acknowledged: set[str] = set()
        self.statuses: Counter[int] = Counter()
        self._number, self._key, self._url = number, key, url
        self._ended = threading.Event()
        self.thread = threading.Thread(target=self._send, daemon=True)
        self.thread.start()

    def _send(self) -> None:
        count = 0
        while not self._ended.is_set():
            ids = [f"{self._number}-{count}-{each}" for each in range(20)]
            body = {"interactions": [{"id": name, "query": f"What is {name}?"} for name in ids]}
            headers = {"Authorization": f"Bearer {self._key}"}
            try:
                answer = httpx.post(f"{self._url()}{API}{PATH}", json=body, headers=headers, timeout=20)
            except httpx.HTTPError:
                time.sleep(0.05)
                continue
            self.statuses[answer.status_code] += 1
            if answer.status_code == 200:
                self.acknowledged.update(ids)
                count += 1
            else:
                assert checked(answer) == 503, answer.text
                time.sleep(0.05)

    def end(self) -> None:
        """End it after the request that it is at."""
        self._ended.set()
        self.thread.join()


def prepared(url: URL) -> str:
    """Make a project in a database and return a key that sends."""
    with open_database(url) as database:
        migrate(database)
        return Ingesting(database).ingest


def stored(url: URL) -> list[str]:
    with open_database(url) as database, database.read() as connection:
        return [*connection.execute(select(interactions.c.external_id)).scalars()]


def test_a_service_that_is_killed_loses_nothing_that_it_acknowledged(migrated: URL, tmp_path: Path) -> None:
    key, url = prepared(migrated), ""
    senders = [Sender(number, key, lambda: url) for number in range(SENDERS)]
    for turn in range(KILLS):
        with serving("--db", name_of(migrated), cwd=tmp_path) as service:
            url = service.url
            before = sum(len(sender.acknowledged) for sender in senders)
            while sum(len(sender.acknowledged) for sender in senders) < before + 200 + 50 * turn:
                time.sleep(0.01)
            os.kill(service.process.pid, signal.SIGKILL)
    with serving("--db", name_of(migrated), cwd=tmp_path) as service:
        url = service.url
        until_all_have_sent(senders)
        for sender in senders:
            sender.end()
    acknowledged = {name for sender in senders for name in sender.acknowledged}
    ids = stored(migrated)
    assert len(ids) == len({*ids})
    assert acknowledged <= {*ids}
    assert len(acknowledged) >= KILLS * 200


def until_all_have_sent(senders: list[Sender]) -> None:
    """Wait until each has something new acknowledged."""
    before = [len(sender.acknowledged) for sender in senders]
    end = time.monotonic() + 60
    while any(len(sender.acknowledged) <= number for sender, number in zip(senders, before, strict=True)):
        assert time.monotonic() < end, [sender.statuses for sender in senders]
        time.sleep(0.02)


@pytest.fixture
def disk(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A disk for a database of a kind."""
    folder = tmp_path if kind == "sqlite" else request.getfixturevalue("cluster").folder  # which its user may read
    with small_disk(folder / "disk", size=48 << 20) as mounted:
        if not mounted:
            pytest.skip("no disk can be mounted here")
        yield folder / "disk"


@pytest.fixture
def on_disk(kind: str, disk: Path, request: pytest.FixtureRequest) -> Iterator[URL]:
    """The address of an empty database on that disk."""
    if kind == "sqlite":
        yield database_url(str(disk / "service.db"))
    else:
        with request.getfixturevalue("cluster").database_on(disk) as url:
            yield url


def test_a_full_disk_is_said_and_the_service_goes_on_when_there_is_room(disk: Path, on_disk: URL) -> None:
    with open_database(on_disk) as database:
        migrate(database)
        with Ingesting(database) as service:
            first = service.stored(*batch(0))
            with room_left(disk, 64 << 10):
                answers = [service.send(*batch(number)) for number in range(1, 8)]
                statuses = [answer.status_code for answer in answers]
                assert statuses[-1] == 503
                assert {*statuses} <= {200, 503}
                assert checked(answers[-1]) == 503
                assert answers[-1].headers["retry-after"] == "1"
                assert service.client.get("/healthz").status_code == 200
                assert len(service.rows()) == 50 * (1 + statuses.count(200))  # reading goes on
            again = [service.stored(*batch(number)) for number in range(1, 8)]
            assert first["accepted"] == 50
            assert sum(answer["accepted"] for answer in again) == 50 * statuses.count(503)
            assert len(service.rows()) == 400


def batch(number: int) -> list[Mapping[str, Any]]:
    """Return interactions with answers that cannot be packed."""
    texts = [random.Random(1_000 * number + each).randbytes(2_500).hex() for each in range(50)]
    return [
        {"id": f"{number}-{each}", "query": f"What is {number}-{each}?", "response": text}
        for each, text in enumerate(texts)
    ]


@contextmanager
def away(cluster: Cluster, name: str) -> Iterator[None]:
    """Let a database of Postgres be gone until the block ends."""
    cluster.rename(name, f"{name}_gone")
    try:
        yield
    finally:
        cluster.rename(f"{name}_gone", name)


@pytest.mark.parametrize("kind", ["postgres"])
def test_a_database_that_is_gone_for_a_while_is_said_and_nothing_is_lost(migrated: URL, cluster: Cluster) -> None:
    name = str(migrated.database)
    with open_database(migrated) as database, Ingesting(database) as service:
        senders = [InProcess(service, number) for number in range(3)]
        until_all_have_sent(senders)  # type: ignore[arg-type]
        with away(cluster, name):
            before = [sender.statuses[503] for sender in senders]
            while any(sender.statuses[503] < number + 2 for sender, number in zip(senders, before, strict=True)):
                time.sleep(0.02)
        until_all_have_sent(senders)  # type: ignore[arg-type]
        for sender in senders:
            sender.end()
        assert {status for sender in senders for status in sender.statuses} == {200, 503}
        ids = [row["external_id"] for row in service.rows()]
    acknowledged = {each for sender in senders for each in sender.acknowledged}
    assert len(ids) == len({*ids})
    assert acknowledged <= {*ids}


class InProcess(Sender):
    """Sends to a service of this process."""

    def __init__(self, service: Ingesting, number: int) -> None:
        self._service = service
        super().__init__(number, "", str)

    def _send(self) -> None:
        count = 0
        while not self._ended.is_set():
            ids = [f"{self._number}-{count}-{each}" for each in range(5)]
            answer = self._service.send(*[{"id": name, "query": f"What is {name}?"} for name in ids])
            self.statuses[answer.status_code] += 1
            if answer.status_code == 200:
                self.acknowledged.update(ids)
                count += 1
            else:
                checked(answer)
                time.sleep(0.02)
