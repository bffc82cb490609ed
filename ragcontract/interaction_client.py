"""Sends interactions to the team service from an application, which it neither slows down nor breaks."""

import atexit
import logging
import os
import time
from contextlib import suppress
from queue import Full, Queue
from threading import Thread

import requests

from ragcontract.core import bounds

AGAIN, OK, TOO_LARGE, log = frozenset({408, 429, 502, 503, 504}), 200, 413, logging.getLogger(__name__)


class InteractionClient:
    """Sends interactions from a thread, again until they are stored.

    ``dropped`` counts those that were given up, and the log says why.
    """

    def __init__(self, url: str, project: str, key: str, *, seconds: float = 5) -> None:
        """``seconds`` limits a request, and the wait for what is unsent at the end of the program."""
        self.dropped, self._why, self._seconds, self._key = 0, "", seconds, key
        self._url = f"{url.rstrip('/')}/api/v1/projects/{project}/interactions"
        self._begin()
        atexit.register(self.flush, seconds)

    def _begin(self) -> None:
        self._process, self._queue = os.getpid(), Queue[dict[str, object]](bounds.CLIENT_WAITING)
        self._session, self._session.headers["Authorization"] = requests.Session(), f"Bearer {self._key}"
        Thread(target=self._run, daemon=True).start()

    def send(self, query: str, **fields: object) -> None:
        """Put an interaction, with the fields of the API, into a queue; it is dropped if the queue is full."""
        if self._process != os.getpid():  # a fork has no threads
            self._begin()
        common = {"id": os.urandom(16).hex(), "asked_at": time.time_ns() // 1_000_000, "query": query}
        try:
            self._queue.put_nowait(common | fields)
        except Full:
            self._drop(1, "too many wait for the service")

    def _drop(self, number: int, why: str) -> None:
        if number and why != self._why:  # once for the same reason in a row, and without the key
            log.warning("interactions are dropped: %.500s", why.replace(self._key.strip() or " ", "…"))
        self.dropped, self._why = self.dropped + number, why

    def flush(self, seconds: float) -> None:
        """Wait until all is sent or given up."""
        end = time.monotonic() + seconds
        while self._queue.unfinished_tasks and time.monotonic() < end:
            time.sleep(0.01)

    def _run(self) -> None:
        while batch := [self._queue.get()]:
            batch += [self._queue.get() for _ in range(min(self._queue.qsize(), bounds.CLIENT_BATCH - 1))]
            self._post(batch)
            for _ in batch:
                self._queue.task_done()

    def _post(self, batch: list[dict[str, object]]) -> None:
        status, why, lost, pause, body = 503, "", len(batch), 1.0, {"interactions": batch}
        try:
            while status in AGAIN:
                with suppress(requests.ConnectionError, requests.Timeout):
                    answer = self._session.post(self._url, json=body, timeout=self._seconds, allow_redirects=False)
                    status, why, after = answer.status_code, answer.text, answer.headers.get("Retry-After", "")
                    pause = min(float(after), 60) if after.isdecimal() else pause
                time.sleep(pause if status in AGAIN else 0)
            stored = answer.json() if status == OK else {}
            lost = len(stored.get("rejected", batch)) + stored.get("more_rejected", 0)
        except Exception as error:  # noqa: BLE001 (a value that is no JSON, a wrong address: the next may be right)
            status, why = TOO_LARGE, f"{type(error).__name__}: {error}"
        if status == TOO_LARGE and len(batch) > 1:  # each half by itself
            self._post(batch[::2])
            self._post(batch[1::2])
        else:
            self._drop(lost, f"{status} {why}")
