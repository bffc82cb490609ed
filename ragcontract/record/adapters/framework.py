"""What systems that are made with a framework have in common.

Objects are recognised by the names of their classes and attributes, so that no framework is imported for it.
Asynchronous functions run in one event loop, which has a thread of its own. An exception of user code becomes a failed
attempt that says whether another one may succeed.
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
from ragcontract.record.interface import CallFailed, Surroundings, System
from ragcontract.record.returned.result_forms import DocumentIds, Retrieved, that_counts
from ragcontract.record.returned.returned_messages import part


class FrameworkSystem(System):
    """A system that asks an object of a framework. What it prints goes to standard error until the teardown."""

    def __init__(self, target: Any, surroundings: Surroundings, doc_id: str | None = None) -> None:
        """Store the object; the command line's ``doc_id`` wins over this one, from the target file."""
        self.target = target
        self.name = named(target)
        self.doc_ids = DocumentIds(surroundings.doc_id or doc_id)
        self._secrets = surroundings.secrets
        self._aside = ExitStack()

    def setup(self) -> None:
        """Redirect what is printed to standard error: standard output is for the command."""
        self._aside.enter_context(redirect_stdout(sys.stderr))

    def teardown(self) -> None:
        """Restore standard output; the object itself is the user's."""
        self._aside.close()

    @contextmanager
    def failures(self) -> Iterator[None]:
        """Turn exceptions of the framework into failed attempts."""
        with redacting(self._secrets):
            try:
                yield
            except (CallFailed, RagContractError):
                raise
            except Exception as error:
                raise failed_attempt(error) from error


def chosen(retrievals: Sequence[Sequence[Any]], retrieved: Retrieved | None, kind: str) -> Sequence[Any] | None:
    """Return what the retrieval that counts found; None if there was no retrieval and ``retrieved`` expects none.

    Raises InputError if there were several and ``retrieved`` does not say which counts.
    """
    if not retrievals:
        # An application that retrieves without the framework must not look as if it had found nothing.
        return None if retrieved is None else []
    if len(retrievals) > 1 and retrieved is None:
        message = f"retrieved {len(retrievals)} times for one question; say which counts with `retrieved: first`, "
        raise InputError([f"{message}`last` or `concat` under `{kind}` in the target file"])
    return that_counts(retrievals, retrieved)


def bases(obj: object) -> frozenset[str]:
    """Return the classes of an object, each as ``package.Class`` with the topmost package.

    Frameworks move classes between modules, but not between packages.
    """
    return frozenset(f"{cls.__module__.partition('.')[0]}.{cls.__name__}" for cls in type(obj).__mro__)


def named(obj: object) -> str:
    """Return the name of an object's class, with its module."""
    return f"{type(obj).__module__}.{type(obj).__qualname__}"


def text_at(obj: object, *paths: str) -> str | None:
    """Return the first of these attributes that is a text, and neither empty nor ``unknown``.

    A path is such as ``_retriever._embed_model.model_name``. Frameworks say ``unknown`` if they do not know.
    """
    for path in paths:
        value: Any = obj
        for name in path.split("."):
            value = getattr(value, name, None)
        if isinstance(value, str) and value not in {"", "unknown"}:
            return value
    return None


class EventLoop:
    """Runs what other threads hand over in one loop, as clients of databases and models expect."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def result(self, awaited: Awaitable[Any], seconds: float | None = None) -> Any:
        """Return the result of an awaitable; after ``seconds`` it is cancelled, which raises TimeoutError."""

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
        """Cancel what still runs and stop the loop."""
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
        while not ended:  # code that ends the program stops the loop, but others still wait for it
            with suppress(SystemExit, KeyboardInterrupt):
                loop.run_forever()
                ended = True
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        with suppress(Exception):  # users' code may raise anything when it is cancelled
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()


def _stop(loop: asyncio.AbstractEventLoop) -> None:
    loop.stop()


@contextmanager
def redacting(secrets: Secrets) -> Iterator[None]:
    """Take secrets out of a system's failures, and drop the causes of InputErrors, which may have some, too."""
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


# The OSErrors that another attempt would raise again; the others are about connections.
_ABOUT_FILES = (FileNotFoundError, FileExistsError, PermissionError, IsADirectoryError, NotADirectoryError)
# Clients of HTTP and of models have such names for their exceptions, and derive few of them from Python's.
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


def _status(error: BaseException) -> int | None:
    """Return the HTTP status that an exception is about; None if there is none."""
    codes = [getattr(error, "status_code", None), part(getattr(error, "response", None), "status_code")]
    return next((code for code in codes if type(code) is int), None)


def _is_passing(error: BaseException) -> bool:
    if isinstance(error, OSError):
        return not isinstance(error, _ABOUT_FILES)
    names = [cls.__name__ for cls in type(error).__mro__ if cls.__module__ != "builtins"]
    return any(_PASSING.search(name) and _SUFFIX.search(name) for name in names)


def _pause(error: BaseException) -> float | None:
    """Return for how many seconds the server asked to be left alone; None if the exception does not say."""
    headers = getattr(getattr(error, "response", None), "headers", None)
    if not isinstance(headers, Mapping):
        return None
    return asked_pause({str(name).lower(): str(value) for name, value in headers.items()}, time.time())
