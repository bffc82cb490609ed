"""When calls may start: evenly within a rate, and not while a system wants to be left alone."""

from ragcontract.core import bounds
from ragcontract.net.pacing import RateLimiter


def starts(pace: RateLimiter, calls: int, ready: float = 0.0) -> list[float]:
    """Return when calls start that are all ready at a time."""
    found = []
    for _ in range(calls):
        at = max(ready, pace.next)
        pace.started(at)
        found.append(at)
    return found


def test_without_a_rate_all_calls_start_at_once() -> None:
    assert starts(RateLimiter(), 3, 100.0) == [100, 100, 100]


def test_a_rate_spaces_calls_evenly() -> None:
    assert starts(RateLimiter(2), 4, 100.0) == [100, 100.5, 101, 101.5]


def test_time_in_which_nobody_called_is_not_made_up_for() -> None:
    pace = RateLimiter(2)
    starts(pace, 2, 100.0)
    assert starts(pace, 3, 200.0) == [200, 200.5, 201]


def test_a_little_delay_of_one_call_does_not_slow_down_the_next() -> None:
    pace = RateLimiter(10)
    pace.started(100.0)
    pace.started(100.15)
    assert round(pace.next, 3) == 100.2


def test_a_pause_is_for_everyone_and_has_a_longest() -> None:
    pace = RateLimiter()
    pace.pause(5, 100.0)
    pace.pause(2, 101.0)
    assert pace.next == 105
    pace.pause(1e9, 100.0)
    assert pace.next == 100 + bounds.ASKED_PAUSE
    pace.pause(-3, 5000.0)
    assert pace.next == 5000
