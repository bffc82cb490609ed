"""What the service does beside answering requests: jobs that are done again and again, each in a thread of its own."""

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable

from sqlalchemy.exc import SQLAlchemyError

from ragcontract.core.errors import InputError
from ragcontract.service.database import BusyError


class BackgroundJob(ABC):
    """A job in a thread of its own. When it fails, that is counted and logged, and the job is tried again.

    Messages of databases are not logged, because they may have what was stored.
    """

    def __init__(self, name: str, failed: Callable[[], None], *, again: float) -> None:
        """``failed`` counts errors; after one, the job is tried ``again`` in so many seconds."""
        self._name, self._failed, self._again = name, failed, again
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @abstractmethod
    def _do(self) -> float:
        """Do the job; return how many seconds to wait before the next time."""

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """End the thread after the transaction that it is in."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        log = logging.getLogger(type(self).__module__)
        wait = 0.0
        while not self._ended.wait(wait):
            wait = self._again
            try:
                wait = self._do()
            except (BusyError, SQLAlchemyError, InputError) as error:
                self._failed()
                reason = error if isinstance(error, InputError) else type(error).__name__
                log.warning("%s failed, and is tried again in %g s: %s", self._name, self._again, reason)
            except Exception:
                self._failed()
                log.exception("%s failed, and is tried again in %g s", self._name, self._again)
