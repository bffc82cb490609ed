"""Errors and time limits of calls to GitHub. Does not import requests."""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


class GitHubError(Exception):
    """A call that failed; ``status`` is None if there was no answer.

    ``maybe_done``: GitHub may have carried out the call although no answer confirmed it. ``denied``: the token lacks
    the permission (GitHub answers 404 if even the existence is secret). ``retry_after``: the seconds after which the
    call may succeed; None if it will not. ``try_again``: the wait before the next attempt is over, and the caller has
    to check first what has changed meanwhile.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        maybe_done: bool = False,
        denied: bool = False,
        retry_after: float | None = None,
    ) -> None:
        """Store the attributes with the message, which must not contain the token."""
        super().__init__(message)
        self.status = status
        self.maybe_done = maybe_done
        self.denied = denied
        self.retry_after = retry_after
        self.try_again = False


def within(seconds: float, talk: Callable[[], T]) -> T:
    """Call ``talk`` and return its result; raises :class:`GitHubError` if it takes longer than ``seconds``.

    Runs it in a daemon thread, which is abandoned on a timeout. Socket timeouts are not enough: they apply between two
    bytes, so a slow answer could go on forever, and name resolution has no timeout at all.
    """
    answer: Future[T] = Future()

    def run() -> None:
        try:
            answer.set_result(talk())
        except BaseException as error:  # noqa: BLE001 (it is raised again in the waiting thread)
            answer.set_exception(error)

    Thread(target=run, daemon=True).start()
    try:
        return answer.result(seconds)
    except TimeoutError:
        if answer.done():
            return answer.result()  # talk raised a TimeoutError itself, or finished at the last moment
        raise GitHubError(f"GitHub did not answer within the {seconds:g} seconds of github-timeout") from None
