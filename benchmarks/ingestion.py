"""How much production traffic the team service stores: `python -m benchmarks.service --writes [--db URL]`.

Clients send interactions over keep-alive connections as fast as they are answered: in batches of 100, then one by one.
Then the database is filled with a million interactions, and while 1,000 a second come in, the pages and routes that
show them are asked for. Prints how many were stored a second, and the times of the answers in milliseconds. Clients and
service share the machine.
"""

import json
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from http import HTTPStatus
from multiprocessing import get_context
from pathlib import Path
from statistics import quantiles
from typing import Any, NamedTuple

from ragcontract.service.accounts import create_key
from ragcontract.service.database import DAY, Database, now_ms
from ragcontract.service.production.incoming import prepared
from ragcontract.service.production.project_settings import SettingsOfProjects
from ragcontract.service.production.storing import Batch, store
from ragcontract.service.projects_and_runs import add_project

SLUG = "production"
PATH = f"/api/v1/projects/{SLUG}/interactions"
STORED = 1_000_000  # interactions, before the pages are asked for
COMING = 1_000  # interactions a second, meanwhile
AT_ONCE = 1_000  # interactions; a transaction that fills
DAYS = 55
# What shows interactions; a line for each address that is to be measured.
ADDRESSES: Mapping[str, str] = {
    "page of all projects": "/",
    "page of the project": f"/p/{SLUG}",
    "page of settings": "/settings",
    "page of production": f"/p/{SLUG}/production",
    "page of production, flagged": f"/p/{SLUG}/production?flag=flagged",
    "page of production, errors": f"/p/{SLUG}/production?flag=error",
    "page of production, errors of a source": f"/p/{SLUG}/production?flag=error&source=production",
    "page of candidates": f"/p/{SLUG}/candidates",
    "candidates": f"/api/v1/projects/{SLUG}/candidates",
    "candidates.jsonl": f"/api/v1/projects/{SLUG}/candidates.jsonl",
    "interactions": f"/api/v1/projects/{SLUG}/interactions",
    "interactions, slow": f"/api/v1/projects/{SLUG}/interactions?flag=slow",
    "monitors": f"/api/v1/projects/{SLUG}/monitors",
}
TOPICS = ("refund", "invoice", "teammate", "workspace", "password", "webhook", "export", "plan", "role", "limit")
TEXT = (
    "the answer is described in our terms and depends on when you have asked for it so please open settings and choose "
    "what you want to change then confirm with your password and wait for a mail from us within 5 minutes or 2 days"
)
WORDS = TEXT.split(" ")


class Answered(NamedTuple):
    """An answer: when it was there, and how long that took, in seconds."""

    at: float
    seconds: float
    status: int


def interaction(number: int, chance: random.Random, asked_at: int | None = None) -> dict[str, Any]:
    """Return an interaction as applications have them: an answer of 80 words, 5 results, some errors."""
    topic = chance.choice(TOPICS)
    made: dict[str, Any] = {
        "id": f"{number:x}-{chance.getrandbits(64):016x}",
        "query": f"How do I change the {topic} of customer {number} when {' '.join(chance.choices(WORDS, k=2))}?",
        "response": " ".join(chance.choices(WORDS, k=80)),
        "results": [{"doc_id": f"{topic}-{chance.randrange(200)}", "score": chance.random()} for _ in range(5)],
        "latency_ms": round(chance.lognormvariate(6, 0.5), 1),
        "confidence": round(chance.random(), 3),
        "user": f"user-{chance.randrange(5_000)}",
        "tags": [topic],
    }
    if chance.random() < 0.04:  # noqa: PLR2004
        made["error"] = "TimeoutError: the index did not answer"
    if asked_at is not None:
        made["asked_at"] = asked_at
    return made


class Connection:
    """A connection to the service that is kept."""

    def __init__(self, address: tuple[str, int], key: str) -> None:
        self._address, self._key = address, key
        self._socket = socket.create_connection(address, timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._unread = b""

    def post(self, body: bytes, path: str = PATH, encoding: str = "") -> tuple[int, bytes]:
        """Send a body and return the status and the body of the answer."""
        further = f"Content-Encoding: {encoding}\r\n" if encoding else ""
        head = (
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self._key}\r\n"
            f"Content-Type: application/json\r\n{further}Content-Length: {len(body)}\r\n\r\n"
        )
        self._socket.sendall(head.encode() + body)
        return self._answer()

    def _answer(self) -> tuple[int, bytes]:
        while b"\r\n\r\n" not in self._unread:
            self._unread += self._received()
        head, _, rest = self._unread.partition(b"\r\n\r\n")
        lines = head.lower().split(b"\r\n")
        length = next(int(line.partition(b":")[2]) for line in lines if line.startswith(b"content-length:"))
        while len(rest) < length:
            rest += self._received()
        self._unread = rest[length:]
        return int(head.split(b" ", 2)[1]), rest[:length]

    def _received(self) -> bytes:
        data = self._socket.recv(1 << 16)
        if not data:
            raise ConnectionError("the service has closed the connection")
        return data

    def close(self) -> None:
        """Close it."""
        self._socket.close()


class Load(NamedTuple):
    """How interactions are sent: from so many connections, in requests of a size, at a rate, or as fast as it goes."""

    seconds: float
    size: int
    connections: int
    rate: float = 0  # requests a second, of all connections together; 0 for as fast as they are answered
    seed: int = 1


def sent(address: tuple[str, int], key: str, load: Load, results: Any) -> None:
    """Send for some seconds, in a process of its own."""
    begin, answers = time.time(), list[Answered]()

    def work(number: int) -> None:
        chance, count = random.Random(load.seed * 1_000 + number), 0
        with closing(Connection(address, key)) as connection:
            while time.time() < begin + load.seconds:
                items = [interaction(chance.getrandbits(40), chance) for _ in range(load.size)]
                body = json.dumps({"interactions": items}).encode()
                start = time.time()
                if load.rate:
                    start = begin + (number + count * load.connections) / load.rate  # when it is due
                    time.sleep(max(0.0, start - time.time()))
                status, _ = connection.post(body)
                answers.append(Answered(time.time(), time.time() - start, status))
                count += 1

    threads = [threading.Thread(target=work, args=[number]) for number in range(load.connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    results.put([tuple(each) for each in answers])


@contextmanager
def sending(address: tuple[str, int], key: str, load: Load) -> Iterator[list[Answered]]:
    """Send from another process during the block and until all is sent; the list has the answers after it."""
    results = get_context("spawn").Queue()
    process = get_context("spawn").Process(target=sent, args=[address, key, load, results], daemon=True)
    process.start()
    answers: list[Answered] = []
    yield answers
    answers += [Answered(*each) for each in results.get()]
    process.join()


def row_of(name: str, size: int, answers: Sequence[Answered]) -> list[str]:
    """Return a row of the table."""
    took = max(each.at for each in answers) - min(each.at - each.seconds for each in answers)
    statuses = Counter(each.status for each in answers)
    times = [each.seconds * 1_000 for each in answers if each.status == HTTPStatus.OK]
    percentiles = quantiles(times, n=100)
    others = ", ".join(f"{number} × {status}" for status, number in sorted(statuses.items()) if status != HTTPStatus.OK)
    stored = f"{size * statuses[HTTPStatus.OK] / took:,.0f}"
    return [name, stored, f"{percentiles[49]:,.0f}", f"{percentiles[98]:,.0f}", f"{max(times):,.0f}", others or "none"]


def written(address: tuple[str, int], key: str, seconds: float) -> Iterator[list[str]]:
    """Yield a row of the table for batches and one for single interactions."""
    for name, size, connections in (("batches of 100", 100, 4), ("single ones", 1, 32)):
        with sending(address, key, Load(seconds, size, connections)) as answers:
            pass
        yield row_of(name, size, answers)


def key_of(database: Database) -> str:
    """Make the project, and return a key that may send interactions and read."""

    def job(connection: Any) -> str:
        add_project(connection, SLUG, SLUG, now_ms())
        return create_key(connection, name="benchmark", now=0, scopes=["read", "ingest"]).text

    return database.write(job)


def fill(database: Database, number: int) -> None:
    """Store interactions of the last weeks."""
    settings = SettingsOfProjects(database, None).of(SLUG)
    if settings is None:
        raise LookupError(SLUG)
    now, chance = now_ms(), random.Random(7)
    for start in range(0, number, AT_ONCE):
        count = min(AT_ONCE, number - start)
        times = [now - DAYS * DAY + (start + each) * DAYS * DAY // number for each in range(count)]
        items = [interaction(start + each, chance, at) for each, at in enumerate(times)]
        ready = prepared(json.dumps({"interactions": items}).encode(), settings, now)
        batch = Batch(settings=settings, items=ready.stored)
        database.write(lambda connection, batch=batch: store(connection, [batch], now))  # type: ignore[misc]


def resident(pid: int) -> float:
    """Return how much memory a process has, in MB."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024 / 1e6


Measured = Callable[[Mapping[str, str]], Iterator[list[str]]]


def shown(address: tuple[str, int], key: str, pid: int, seconds: float, measured: Measured) -> Iterator[list[str]]:
    """Yield rows of the pages while interactions come in, then how these were stored, and the memory of the process."""
    memory = [resident(pid)]
    load = Load(seconds * len(ADDRESSES) + 10, 100, 4, rate=COMING / 100, seed=2)
    with sending(address, key, load) as answers:
        for row in measured(ADDRESSES):
            memory.append(resident(pid))
            yield row
    name, rate, p50, p99, longest, others = row_of("meanwhile", 100, answers)
    yield [f"{name}, stored a second: {rate}; refused: {others}", "", p50, p99, longest]
    yield [
        f"memory of the process in MB: {memory[0]:,.0f}, then {min(memory[1:]):,.0f} to {max(memory[1:]):,.0f}",
        *[""] * 4,
    ]
