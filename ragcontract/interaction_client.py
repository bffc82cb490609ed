"""Sends interactions to the team service from an application, which it neither slows down nor breaks."""

import atexit
import os
import time
import uuid
from queue import Full, Queue
from threading import Thread
from typing import Any

import requests

from ragcontract.core import bounds

AGAIN, AWAY, TOO_LARGE = frozenset({408, 429, 502, 503, 504}), (requests.ConnectionError, requests.Timeout), 413


class InteractionClient:
    """Sends interactions from a thread, again until they are stored; ``dropped`` counts those that were given up."""

    def __init__(self, url: str, project: str, key: str, *, seconds: float = 5) -> None:
        """``seconds`` limits a request, and the wait for what is unsent at the end of the program."""
        self.dropped, self._seconds, self._key = 0, seconds, key
        self._url = f"{url.rstrip('/')}/api/v1/projects/{project}/interactions"
        self._begin()
        atexit.register(self.flush, seconds)

    def _begin(self) -> None:
        self._process, self._session = os.getpid(), requests.Session()
        self._session.headers["Authorization"], self._session.max_redirects = f"Bearer {self._key}", 0
        self._queue: Queue[dict[str, Any]] = Queue(bounds.CLIENT_WAITING)
        Thread(target=self._run, daemon=True).start()

    def send(self, query: str, **fields: Any) -> None:
        """Put an interaction, with the fields of the API, into a queue; it is dropped if the queue is full."""
        if self._process != os.getpid():  # a fork has no threads
            self._begin()
        common = {"id": uuid.uuid4().hex, "asked_at": time.time_ns() // 1_000_000, "query": query}
        try:
            self._queue.put_nowait(common | fields)
        except Full:
            self.dropped += 1

    def flush(self, seconds: float) -> None:
        """Wait until all is sent or given up."""
        end = time.monotonic() + seconds
        while self._queue.unfinished_tasks and time.monotonic() < end:
            time.sleep(0.01)

    def _run(self) -> None:
        while batch := [self._queue.get()]:
            while len(batch) < bounds.CLIENT_BATCH and not self._queue.empty():
                batch.append(self._queue.get())
            try:
                self._post(batch)
            except Exception:  # noqa: BLE001 (values that are no JSON, a wrong address: the next ones may be right)
                self.dropped += len(batch)
            for _ in batch:
                self._queue.task_done()

    def _post(self, batch: list[dict[str, Any]]) -> None:
        status, pause = 503, 1.0
        while status in AGAIN:
            try:
                answer = self._session.post(self._url, json={"interactions": batch}, timeout=self._seconds)
                status, after = answer.status_code, answer.headers.get("Retry-After", "")
                pause = float(after) if after.isdecimal() else pause
            except (*AWAY, requests.exceptions.InvalidJSONError, TypeError) as error:
                status = 503 if isinstance(error, AWAY) else TOO_LARGE  # or of values that are no JSON
            time.sleep(pause if status in AGAIN else 0)
        if status == TOO_LARGE and len(batch) > 1:
            for half in (batch[::2], batch[1::2]):
                self._post(half)
        else:
            told: dict[str, Any] = answer.json() if status != TOO_LARGE and answer.ok else {"rejected": batch}
            self.dropped += len(told["rejected"]) + told.get("more_rejected", 0)
