"""How many calls there are at a time."""

from contextlib import ExitStack

from ragcontract.net.pacing import PATIENCE, Throttle


class Now:
    """A clock that is set."""

    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


def has_room(throttle: Throttle) -> bool:
    class Full(Exception):  # noqa: N818
        pass

    def wait(_: float) -> None:
        raise Full

    try:
        with throttle.turn(wait):
            return True
    except Full:
        return False


def test_there_is_room_for_so_many() -> None:
    throttle = Throttle(2, Now())
    with throttle.turn(lambda _: None):
        assert has_room(throttle)
        with throttle.turn(lambda _: None):
            assert not has_room(throttle)
    assert has_room(throttle)


def test_those_that_were_under_way_together_halve_it_once() -> None:
    now = Now()
    throttle = Throttle(8, now)
    started = now.time
    now.time += 1
    throttle.too_many(started)
    throttle.too_many(started)
    assert throttle.limit == 4
    now.time += 1
    throttle.too_many(now.time)
    assert throttle.limit == 2


def test_one_call_at_a_time_is_left() -> None:
    now = Now()
    throttle = Throttle(3, now)
    for _ in range(5):
        now.time += 1
        throttle.too_many(now.time)
        now.time += 1
    assert throttle.limit == 1


def test_it_grows_again_slowly_up_to_what_was_allowed() -> None:
    throttle = Throttle(2, Now())
    throttle.too_many(100.0)
    for _ in range(PATIENCE - 1):
        throttle.succeeded()
    assert throttle.limit == 1
    for _ in range(50):
        throttle.succeeded()
    assert throttle.limit == 2


def test_nobody_starts_during_a_pause() -> None:
    now = Now()
    throttle = Throttle(2, now)
    throttle.pause(5)
    assert not has_room(throttle)
    now.time += 5
    with ExitStack() as stack:
        stack.enter_context(throttle.turn(lambda _: None))
        assert has_room(throttle)
