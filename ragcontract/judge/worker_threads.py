"""Threads that take one thing after another, until all is done, nothing more may be begun, or somebody asks to stop."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Generic, TypeVar

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.http.stopping import Stop, by_signals
from ragcontract.judge.interface import NoReply
from ragcontract.judge.spending import Spending

TICK = 0.2  # s; how often somebody who asks to stop is heard

Given = TypeVar("Given")
Made = TypeVar("Made")


class _Done(Struct, Generic[Made], frozen=True):
    made: Made


def in_threads(
    items: Sequence[Given], make: Callable[[Given], Made], *, at_once: int, spending: Spending, stop: Stop
) -> Iterator[Made]:
    """Yield what is made of each item, as it comes; raises what ``make`` raises, when all that is under way has ended.

    If somebody asks to stop, nothing more is begun, and what is under way then is waited for a moment only.
    """
    results: SimpleQueue[_Done[Made] | BaseException | None] = SimpleQueue()
    left = iter(items)
    lock = threading.Lock()

    def work() -> None:
        try:
            while spending.over is None:
                with lock:
                    one = next(left, None)
                if one is None:
                    break
                results.put(_Done(make(one)))
        except BaseException as error:  # noqa: BLE001 (raised again by who waits)
            spending.stop(NoReply("error", "something else went wrong", final=True))
            results.put(error)
        finally:
            results.put(None)

    running = min(at_once, len(items))
    for number in range(running):
        threading.Thread(target=work, name=f"judging-{number}", daemon=True).start()
    with by_signals(stop):
        yield from _collected(results, running, spending, stop)


def _collected(
    results: "SimpleQueue[_Done[Made] | BaseException | None]", running: int, spending: Spending, stop: Stop
) -> Iterator[Made]:
    error: BaseException | None = None
    end_by: float | None = None
    while running and (end_by is None or monotonic() < end_by):
        if stop.asked and end_by is None:
            spending.stop(NoReply("stopped", "somebody asked to stop", final=True))
            end_by = monotonic() + bounds.WIND_UP
        with suppress(Empty):
            match results.get(timeout=TICK):
                case None:
                    running -= 1
                case BaseException() as raised:
                    error = error or raised
                case done:
                    yield done.made
    if error is not None:
        raise error
