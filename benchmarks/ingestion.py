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
from contextlib import closing
from multiprocessing import get_context
from statistics import quantiles
from typing import Any, NamedTuple

from ragcontract.service.accounts import create_key
from ragcontract.service.database import Database, now_ms
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


def sent(
    address: tuple[str, int],
    key: str,
    seconds: float,
    connections: int,
    size: int,
    seed: int,
    rate: float,
    results: Any,
) -> None:
    """Send for some seconds, in a process of its own: as fast as answers come, or ``rate`` requests a second."""
    end, answers, threads = time.time() + seconds, list[Answered](), []
    begin = time.time()

    def work(number: int) -> None:
        chance = random.Random(seed * 1_000 + number)
        with closing(Connection(address, key)) as connection:
            count = 0
            while time.time() < end:
                items = [interaction(chance.getrandbits(40), chance) for _ in range(size)]
                body = json.dumps({"interactions": items}).encode()
                if rate:
                    time.sleep(max(0.0, begin + count * connections / rate - time.time()))
                start = time.time()
                status, _ = connection.post(body)
                now = time.time()
                answers.append(Answered(now, now - start, status))
                count += 1

    for number in range(connections):
        threads.append(threading.Thread(target=work, args=[number], daemon=True))
        threads[-1].start()
    for thread in threads:
        thread.join()
    results.put([tuple(each) for each in answers])


def answers_of(
    address: tuple[str, int], key: str, seconds: float, **options: Any
) -> "Iterator[Callable[[], list[Answered]]]":
    """Start a process that sends; calling what is returned waits for it."""
    context = get_context("spawn")
    results = context.Queue()
    values = {"connections": 1, "size": 1, "seed": 1, "rate": 0.0, **options}
    process = context.Process(target=sent, args=[address, key, seconds, *values.values(), results], daemon=True)
    process.start()

    def wait() -> list[Answered]:
        answers = [Answered(*each) for each in results.get()]
        process.join()
        return answers

    yield wait
    wait()


def percentile(values: Sequence[float], percent: int) -> float:
    """Return a percentile."""
    return quantiles(values, n=100)[percent - 1]


def written(address: tuple[str, int], key: str, seconds: float) -> Iterator[list[str]]:
    """Yield a row of the table for batches and one for single interactions."""
    for name, size, connections in (("batches of 100", 100, 4), ("single ones", 1, 16)):
        begin = time.time()
        (wait,) = [next(answers_of(address, key, seconds, size=size, connections=connections))]
        answers = wait()
        took = max(each.at for each in answers) - min(each.at - each.seconds for each in answers)
        assert begin < answers[0].at
        statuses = Counter(each.status for each in answers)
        times = [each.seconds * 1_000 for each in answers if each.status == 200]  # noqa: PLR2004
        rates = f"{size * statuses[200] / took:,.0f}"
        refused = ", ".join(f"{number} × {status}" for status, number in sorted(statuses.items()) if status != 200)  # noqa: PLR2004
        yield [name, rates, *(f"{percentile(times, each):,.0f}" for each in (50, 99)), f"{max(times):,.0f}", refused]


def key_of(database: Database) -> str:
    """Make the project, and return a key that may send interactions and read."""

    def job(connection: Any) -> str:
        add_project(connection, SLUG, SLUG, now_ms())
        return create_key(connection, name="benchmark", now=0, scopes=["read", "ingest"]).text

    return database.write(job)
