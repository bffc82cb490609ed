"""The thread that stores what production asks: many requests in a transaction, because each commit waits for the disk.

Who sends a request gets the answer when the transaction is committed.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial

from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from ragcontract.core import bounds
from ragcontract.service.database import BusyError, Database, now_ms
from ragcontract.service.production.storing import Batch, Counts, store

log = logging.getLogger(__name__)


class InteractionWriter:
    """Stores batches in the order in which they come."""

    def __init__(
        self, database: Database, failed: Callable[[], None] = lambda: None, clock: Callable[[], int] = now_ms
    ) -> None:
        """``failed`` counts transactions that were not committed."""
        self._database, self._failed, self._clock = database, failed, clock
        self._queue: deque[tuple[Batch, Future[Counts]]] = deque()
        self._changed = threading.Condition()
        self._is_ended = False
        self._thread = threading.Thread(target=self._run, name="interactions", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """End the thread after it has stored what waits."""
        with self._changed:
            self._is_ended = True
            self._changed.notify()
        self._thread.join()

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return len(self._queue)

    def check_room(self) -> None:
        """Raise BusyError if as many requests wait as may."""
        if len(self._queue) >= bounds.INGESTED_WAITING:
            raise BusyError("too many requests with interactions wait")

    def submit(self, batch: Batch) -> "Future[Counts]":
        """Store a batch; its result is there when it is committed. Raises BusyError if too many wait."""
        result: Future[Counts] = Future()
        with self._changed:
            self.check_room()
            self._queue.append((batch, result))
            self._changed.notify()
        return result

    def _run(self) -> None:
        while taken := self._taken():
            if waited_for := [each for each in taken if each[1].set_running_or_notify_cancel()]:
                self._write(waited_for)

    def _taken(self) -> "Sequence[tuple[Batch, Future[Counts]]]":
        """Wait for requests and take some of them; none when the thread is to end."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._is_ended)
            taken: list[tuple[Batch, Future[Counts]]] = []
            room = bounds.INTERACTIONS_A_TRANSACTION
            while self._queue and (not taken or len(self._queue[0][0].items) <= room):
                taken.append(self._queue.popleft())
                room -= len(taken[-1][0].items)
            return taken

    def _write(self, taken: "Sequence[tuple[Batch, Future[Counts]]]") -> None:
        """Store requests together; if the database refuses what is in them, each by itself."""
        job = partial(store, batches=[batch for batch, _ in taken], now=self._clock())
        try:
            counts = self._database.write(job)
        except Exception as error:  # noqa: BLE001 (who has sent it gets it)
            self._failed()
            if len(taken) > 1 and not _is_away(error):
                for each in taken:
                    self._write([each])
                return
            log.warning("interactions of %d requests were not stored: %s", len(taken), type(error).__name__)
            for _, result in taken:
                result.set_exception(error)
            return
        for (_, result), each_count in zip(taken, counts, strict=True):
            result.set_result(each_count)


def _is_away(error: Exception) -> bool:
    """Return whether the database does not answer or has no room, so that the next try would not succeed either."""
    return isinstance(error, BusyError | OperationalError | InterfaceError | PoolTimeoutError)
