"""Jobs that record at the same time in a branch on the stand-in for GitHub.

They share a clock that takes no time: a job runs until it waits, and the clock then moves on to the next time for which
one waits. So what happens depends on no machine's speed. Each call takes as long as GitHub takes, half of it before the
call is carried out.
"""

import heapq
import random
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from threading import Event, Thread
from typing import Any

import requests
from msgspec import Struct

from ragcontract.github.context import Token
from ragcontract.github.http import Client, Http
from ragcontract.history.branch import Branch
from ragcontract.history.entry import NewEntry
from ragcontract.net.pacing import Timing
from tests.github.standin import TOKEN, GitHub

BRANCH = "rag-contract-history"
SLOWEST_CALL, FASTEST_CALL = 0.6, 0.15  # s
NOW = 1_800_000_000.0


class Turns:
    """A clock for threads of which one runs at a time."""

    def __init__(self) -> None:
        self.now = 0.0
        self._waiting: list[tuple[float, int, Event]] = []
        self._numbers = count()

    def sleep(self, seconds: float) -> None:
        turn = self._enter(seconds)
        self._next()
        turn.wait()

    def run(self, jobs: Sequence[Callable[[], None]]) -> None:
        """Run jobs until all of them have ended; raises what one of them raised."""
        raised: list[BaseException] = []

        def run(job: Callable[[], None], turn: Event) -> None:
            turn.wait()
            try:
                job()
            except BaseException as error:  # noqa: BLE001 (it is raised again below)
                raised.append(error)
            finally:
                self._next()

        threads = [Thread(target=run, args=(job, self._enter(0)), daemon=True) for job in jobs]
        for thread in threads:
            thread.start()
        self._next()
        for thread in threads:
            thread.join()
        if raised:
            raise raised[0]

    def _enter(self, seconds: float) -> Event:
        turn = Event()
        heapq.heappush(self._waiting, (self.now + seconds, next(self._numbers), turn))
        return turn

    def _next(self) -> None:
        if self._waiting:
            self.now, _, turn = heapq.heappop(self._waiting)
            turn.set()


class _Slow(requests.Session):
    """Takes as long for a call as GitHub does."""

    def __init__(self, sleep: Callable[[float], None], chance: random.Random) -> None:
        super().__init__()
        self._sleep = sleep
        self._chance = chance

    def request(self, *arguments: Any, **options: Any) -> requests.Response:
        seconds = self._chance.uniform(FASTEST_CALL, SLOWEST_CALL)
        self._sleep(seconds / 2)
        try:
            return super().request(*arguments, **options)
        finally:
            self._sleep(seconds / 2)


def client_of(github: GitHub, session: requests.Session, timing: Timing, seconds: float) -> Client:
    """Return a client with this much time for GitHub."""
    http = Http(session, Token(TOKEN), seconds=seconds, timing=timing)
    return Client(http, api_url=github.url, graphql_url=github.graphql_url, repository="octo/app")


def branch_of(client: Client, seed: int = 0) -> Branch:
    """Return the store as a job has it."""
    return Branch(client, repository="octo/app", branch=BRANCH, name="github:", chance=random.Random(seed))


class Job:
    """A job that records or reads alone. Its waits take no time but count."""

    def __init__(self, github: GitHub, *, seconds: float = 150) -> None:
        self.waits: list[float] = []
        timing = Timing(monotonic=lambda: sum(self.waits), now=lambda: NOW + sum(self.waits), sleep=self.waits.append)
        self.client = client_of(github, requests.Session(), timing, seconds)
        self.branch = branch_of(self.client)


class Recorded(Struct, frozen=True, kw_only=True):
    """What became of entries that were recorded at the same time."""

    added: list[str]  # what each job was told
    seconds: list[float]  # how long each job took
    calls: int


def recorded_at_once(github: GitHub, entries: Sequence[NewEntry], *, seconds: float = 150) -> Recorded:
    """Let a job record each of the entries."""
    clock = Turns()
    added: list[str] = []
    took: list[float] = []

    def job(number: int, entry: NewEntry) -> None:
        timing = Timing(monotonic=lambda: clock.now, now=lambda: NOW + clock.now, sleep=clock.sleep)
        session = _Slow(clock.sleep, random.Random(1_000 + number))
        store = branch_of(client_of(github, session, timing, seconds), seed=number)
        added.append(store.add(entry))
        took.append(clock.now)

    before = len(github.sent)
    clock.run([partial(job, number, entry) for number, entry in enumerate(entries)])
    return Recorded(added=added, seconds=took, calls=len(github.sent) - before)
