"""Signals stop a recording: the first one lets what is under way end, the second one does not."""

import os
import signal
import threading

import pytest

from ragcontract.net.pool import Stop, by_signals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_asks_and_the_second_one_interrupts(number: signal.Signals) -> None:
    stop, woken = Stop(), threading.Event()
    stop.on_asking(woken.set)
    before = signal.getsignal(number)
    with by_signals(stop):
        os.kill(os.getpid(), number)
        assert woken.wait(10)
        assert stop.asked
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
    assert signal.getsignal(number) is before


def test_a_signal_that_is_ignored_still_is() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with by_signals(Stop()):
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_in_another_thread_nothing_changes() -> None:
    before, inside = signal.getsignal(signal.SIGINT), []

    def work() -> None:
        with by_signals(Stop()):
            inside.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert inside == [before]
