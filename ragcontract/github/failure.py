"""How a conversation with GitHub fails, and how long it may take. Needs no requests, unlike the conversation."""

import time
from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

from msgspec import Struct

T = TypeVar("T")


class GitHubError(Exception):
    """A call that did not work; ``status`` is None where no answer came.

    ``maybe_done`` says that GitHub may have carried the call out although no answer said so, ``denied`` that the token
    has no permission for this (GitHub answers 404 where even the existence is a secret), ``try_again`` that the wait
    for the next try is over, and things may have changed meanwhile.
    """

    def __init__(
        self, message: str, *, status: int | None = None, maybe_done: bool = False, denied: bool = False
    ) -> None:
        """Keep the facts beside the message, which never holds the token."""
        super().__init__(message)
        self.status = status
        self.maybe_done = maybe_done
        self.denied = denied
        self.try_again = False


class Timing(Struct, frozen=True, kw_only=True):
    """Clocks in seconds, and the means to wait: handed in, so that tests wait for nothing."""

    monotonic: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep


def within(seconds: float, talk: Callable[[], T]) -> T:
    """Return what ``talk`` returns; raises :class:`GitHubError` where it takes longer.

    Socket timeouts count from one byte to the next, so an answer that drips could go on for ever, and looking up a name
    knows no timeout at all: nothing short of a thread that is left behind ends that.
    """
    answer: Future[T] = Future()

    def run() -> None:
        try:
            answer.set_result(talk())
        except BaseException as error:  # noqa: BLE001 (it is raised where it is waited for)
            answer.set_exception(error)

    Thread(target=run, daemon=True).start()
    try:
        return answer.result(seconds)
    except TimeoutError:
        if answer.done():
            return answer.result()  # its own error, or what came in the last moment
        raise GitHubError(f"GitHub did not answer within the {seconds:g} seconds of github-timeout") from None
