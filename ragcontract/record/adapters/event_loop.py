"""One event loop in a thread of its own, for systems whose functions are asynchronous."""

import asyncio
import threading
from collections.abc import Awaitable
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any

from ragcontract.core import bounds


class EventLoop:
    """Runs what other threads hand over; all of it shares one loop, as clients of databases and models expect."""

    def __init__(self) -> None:
        """Start the loop with the first thing that is run."""
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def result(self, awaited: Awaitable[Any], seconds: float | None = None) -> Any:
        """Wait for something and return its result; it is cancelled after ``seconds``, which raises TimeoutError."""

        async def limited() -> Any:
            async with asyncio.timeout(seconds):
                return await awaited

        future = asyncio.run_coroutine_threadsafe(limited(), self._running())
        try:
            return future.result(None if seconds is None else seconds + bounds.LOOP_CANCELLING)
        except CancelledError as error:  # the loop was closed meanwhile
            raise TimeoutError from error
        except TimeoutError:
            future.cancel()
            raise

    def close(self) -> None:
        """Cancel what still runs, and stop the loop; nothing can be run afterwards."""
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is None or self._thread is None:
            return
        loop.call_soon_threadsafe(_stop, loop)
        self._thread.join(bounds.LOOP_CLOSING)

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_run, args=(self._loop,), name="event loop", daemon=True)
                self._thread.start()
            return self._loop


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        ended = False
        while not ended:  # code that ends the program leaves the loop, which others wait for
            with suppress(SystemExit, KeyboardInterrupt):
                loop.run_forever()
                ended = True
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        with suppress(Exception):  # what user code raises when it is cancelled
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()


def _stop(loop: asyncio.AbstractEventLoop) -> None:
    loop.stop()
