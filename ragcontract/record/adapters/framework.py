"""What is known of an object of a framework without importing the framework: its classes' names, its attributes.

One event loop in a thread of its own, for systems whose functions are asynchronous.

What an exception of a user's code says about the attempt: whether another one may succeed.

What systems that are made with a framework have in common.
"""

import asyncio
import re
import sys
import threading
import time
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from typing import Any

from ragcontract.core import bounds
from ragcontract.core.errors import InputError, RagContractError
from ragcontract.net.pacing import asked_pause
from ragcontract.net.secrets import Secrets
from ragcontract.net.sending import may_succeed_later
from ragcontract.record.adapters.user_code import described, place_of
from ragcontract.record.interface import CallFailed, Surroundings
from ragcontract.record.returned.result_forms import DocumentIds, Retrieved, that_counts
from ragcontract.record.returned.returned_messages import part


def bases(given: object) -> frozenset[str]:
    """Return what an object is an instance of, each as ``package.Class`` with the package at the top.

    Frameworks move classes between modules, but not between packages.
    """
    return frozenset(f"{one.__module__.partition('.')[0]}.{one.__name__}" for one in type(given).__mro__)


def named(given: object) -> str:
    """Return the name of an object's class, with its module."""
    return f"{type(given).__module__}.{type(given).__qualname__}"


def text_at(given: object, *paths: str) -> str | None:
    """Return the first of these attributes, as ``_retriever._embed_model.model_name``, that is a text with content.

    ``unknown`` is what frameworks say if they do not know.
    """
    for path in paths:
        found: Any = given
        for name in path.split("."):
            found = getattr(found, name, None)
        if isinstance(found, str) and found not in {"", "unknown"}:
            return found
    return None


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


# Of the OSErrors, those that are the same tomorrow: the others are about connections.
_ABOUT_FILES = (FileNotFoundError, FileExistsError, PermissionError, IsADirectoryError, NotADirectoryError)
# Clients of HTTP and of models name their exceptions so, and derive few of them from Python's.
_PASSING = re.compile(r"(Timeout|Timedout|Connect|Connection|RateLimit|Unavailable|Overloaded|RemoteProtocol|Network)")
_SUFFIX = re.compile(r"(Error|Exception|Timeout)$")


def failed_attempt(error: BaseException) -> CallFailed:
    """Return the failed attempt for an exception that a user's code raised."""
    status = _status(error)
    detail: dict[str, Any] = {"type": named(error).removeprefix("builtins.")}
    if at := place_of(error):
        detail["at"] = at
    if status is not None:
        detail["status_code"] = status
    again = may_succeed_later(status) if status is not None else _is_passing(error)
    kind = "timeout" if isinstance(error, TimeoutError) and status is None else "exception"
    return CallFailed(kind, described(error), again=again, pause=_pause(error) if again else None, detail=detail)


@contextmanager
def redacting(secrets: Secrets) -> Iterator[None]:
    """Take secrets out of what a system's failures say; what they were raised from may have them, and is forgotten."""
    try:
        yield
    except CallFailed as failed:
        failed.args = (secrets.redacted(str(failed)),)
        failed.detail = secrets.redacted(failed.detail)
        raise
    except InputError as error:
        if not secrets:
            raise
        raise InputError(
            secrets.redacted(error.problems), more=error.more, warnings=secrets.redacted(error.warnings)
        ) from None


def _status(error: BaseException) -> int | None:
    """Return the status of an answer over HTTP that an exception is about."""
    found = [getattr(error, "status_code", None), part(getattr(error, "response", None), "status_code")]
    return next((one for one in found if type(one) is int), None)


def _is_passing(error: BaseException) -> bool:
    if isinstance(error, OSError):
        return not isinstance(error, _ABOUT_FILES)
    names = [cls.__name__ for cls in type(error).__mro__ if cls.__module__ != "builtins"]
    return any(_PASSING.search(name) and _SUFFIX.search(name) for name in names)


def _pause(error: BaseException) -> float | None:
    """Return how many seconds the server asked to be left alone whose answer an exception is about."""
    headers = getattr(getattr(error, "response", None), "headers", None)
    if not isinstance(headers, Mapping):
        return None
    return asked_pause({str(name).lower(): str(value) for name, value in headers.items()}, time.time())


def chosen(found: Sequence[Sequence[Any]], retrieved: Retrieved | None, kind: str) -> Sequence[Any] | None:
    """Return what the retrieval that counts found; None if there was none and nobody said that there is.

    Raises InputError if there were several and nobody said which counts.
    """
    if not found:
        # What retrieves without the framework would look as if it had found nothing.
        return None if retrieved is None else []
    if len(found) > 1 and retrieved is None:
        message = f"retrieved {len(found)} times for one question; say which counts with `retrieved: first`, "
        raise InputError([f"{message}`last` or `concat` under `{kind}` in the target file"])
    return that_counts(found, retrieved)


class FrameworkSystem:
    """An object of a framework. What it prints goes to standard error until the teardown."""

    concurrency = 1  # many are not made for threads, and a latency is only honest for one question at a time

    def __init__(self, given: Any, surroundings: Surroundings, doc_id: str | None = None) -> None:
        """Store what is asked; the command line's ``doc_id`` wins over the target file's."""
        self.given = given
        self.name = named(given)
        self.doc_ids = DocumentIds(surroundings.doc_id or doc_id)
        self._secrets = surroundings.secrets
        self._aside = ExitStack()

    def setup(self) -> None:
        """Send to standard error what is printed: standard output is the command's."""
        self._aside.enter_context(redirect_stdout(sys.stderr))

    def teardown(self) -> None:
        """Give standard output back; the object itself is the user's."""
        self._aside.close()

    @contextmanager
    def failures(self) -> Iterator[None]:
        """Turn what the framework raises into a failed attempt."""
        with redacting(self._secrets):
            try:
                yield
            except (CallFailed, RagContractError):
                raise
            except Exception as error:
                raise failed_attempt(error) from error
