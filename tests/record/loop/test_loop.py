"""How a system is asked: several questions at a time, within limits of time and rate, until somebody asks to stop."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from ragcontract import CallFailed, Context, InputError, Response
from ragcontract.core import bounds
from ragcontract.net.pool import GRACE
from ragcontract.record.events import QuestionDone, RecordingProgress, Retry
from tests.record.test_recording import problems
from tests.record.workplace import Toy, Workplace, finds

LONG = 60  # s; a test that waits for it hangs
Answer = Callable[[str, Context], Response]


@contextmanager
def hanging(*ids: str, otherwise: Answer = lambda *_: finds()) -> Iterator[Answer]:
    """Return an answer that does not come for some questions, until the block ends."""
    over = threading.Event()

    def answer(query: str, context: Context) -> Response:
        if context.query_id in ids:
            over.wait(LONG)
        return otherwise(query, context)

    try:
        yield answer
    finally:
        over.set()


def test_as_many_questions_are_under_way_as_are_allowed(tmp_path: Path) -> None:
    together = threading.Barrier(4)

    def answer(_query: str, _context: Context) -> Response:
        together.wait(LONG)  # nobody comes through before four are there
        return finds()

    assert Workplace(tmp_path, 8).record(Toy(answer, concurrency=4)).error is None


def test_no_more_questions_are_under_way_than_are_allowed(tmp_path: Path) -> None:
    inside, most = [0], [0]
    lock = threading.Lock()

    def answer(_query: str, context: Context) -> Response:
        with lock:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
        threading.Event().wait(0.002)
        with lock:
            inside[0] -= 1
        if context.attempt == 1 and context.query_id in {"q3", "q4"}:
            raise CallFailed("busy", "is busy", again=True)
        return finds()

    assert Workplace(tmp_path, 30).record(Toy(answer, concurrency=3)).error is None
    assert most[0] <= 3


def test_a_question_that_waits_for_another_attempt_keeps_its_place(tmp_path: Path) -> None:
    def answer(_query: str, context: Context) -> Response:
        if context.attempt == 1:
            raise CallFailed("busy", "is busy", again=True)
        return finds()

    toy = Toy(answer)
    assert Workplace(tmp_path, 2).record(toy).error is None
    assert toy.ids == ["q1", "q1", "q2", "q2"]


def test_a_call_that_takes_too_long_is_given_up_and_the_others_go_on(tmp_path: Path) -> None:
    place = Workplace(tmp_path, 5)
    with hanging("q2") as answer:
        recording = place.record(Toy(answer, concurrency=2), manner={"timeout": 0.5})
    assert problems(recording)[1] == "timeout: 1, such as query 'q2': no answer within 0.5 s; --timeout allows more"
    assert len(place.of_kind(QuestionDone)) == 5
    (slow,) = [case for case in place.of_kind(QuestionDone) if not case.ok]
    assert slow.ms == 500


def test_an_answer_that_comes_a_little_too_late_is_none(tmp_path: Path) -> None:
    def answer(_query: str, context: Context) -> Response:
        threading.Event().wait(context.seconds + GRACE / 5)
        return finds()

    assert problems(Workplace(tmp_path, 1).record(answer, manner={"timeout": 0.05}))[1].startswith("timeout: 1")


def test_recording_stops_when_as_many_calls_hang_as_there_may_be(tmp_path: Path) -> None:
    with hanging("q1", "q2") as answer:
        toy = Toy(answer, concurrency=2)
        recording = Workplace(tmp_path, 9).record(toy, manner={"timeout": 0.1})
    (problem,) = problems(recording)
    assert problem.startswith("2 calls still running after more than 0.1 s cannot be stopped; raise --timeout")
    assert sorted(toy.ids) == ["q1", "q2"]
    assert toy.calls == ["setup", "teardown"]


def test_a_call_that_was_given_up_and_then_ended_is_in_nobodys_way(tmp_path: Path) -> None:
    def answer(_query: str, context: Context) -> Response:
        if context.query_id == "q1":
            threading.Event().wait(0.5 + GRACE + 0.1)
        return finds()

    place, toy = Workplace(tmp_path, 3), Toy(answer)
    assert problems(place.record(toy, manner={"timeout": 0.5}))[0].startswith("1 of 3 questions")
    assert toy.ids == ["q1", "q2", "q3"]


def test_a_pause_that_a_server_asks_for_is_for_everyone(tmp_path: Path) -> None:
    times: list[float] = []

    def answer(_query: str, context: Context) -> Response:
        times.append(monotonic())
        if context.query_id == "q1" and context.attempt == 1:
            raise CallFailed("http_error", "HTTP 429", again=True, pause=0.7)
        return finds()

    place = Workplace(tmp_path, 4)
    assert place.record(answer).error is None
    (retry,) = place.of_kind(Retry)
    assert retry.pause == pytest.approx(0.7, abs=0.05)
    assert times[1] - times[0] >= 0.7  # at least: a machine may be slower, but nobody may be faster


def test_calls_keep_to_a_rate(tmp_path: Path) -> None:
    began = monotonic()
    assert Workplace(tmp_path, 5).record(Toy(concurrency=5), manner={"rate": "20/s"}).error is None
    assert monotonic() - began >= 4 / 20  # at least, on any machine


def test_what_is_under_way_is_kept_when_somebody_asks_to_stop(tmp_path: Path) -> None:
    place = Workplace(tmp_path, 9)

    def answer(_query: str, context: Context) -> Response:
        if context.query_id == "q2":
            place.stop.ask()
        return finds()

    toy = Toy(answer)
    assert isinstance(place.record(toy).error, KeyboardInterrupt)
    assert toy.ids == ["q1", "q2"]
    assert toy.calls == ["setup", "teardown"]
    assert not place.out.exists()
    assert place.journal.read_text().count('"row":') == 2


def test_a_failed_attempt_is_not_made_again_once_somebody_asked_to_stop(tmp_path: Path) -> None:
    place = Workplace(tmp_path, 2)

    def answer(_query: str, context: Context) -> Response:
        if context.query_id == "q2":
            place.stop.ask()
            raise CallFailed("busy", "is busy", again=True)
        return finds()

    toy = Toy(answer)
    assert isinstance(place.record(toy).error, KeyboardInterrupt)
    assert toy.ids == ["q1", "q2"]
    assert [case.query_id for case in place.of_kind(QuestionDone)] == ["q1"]


def test_what_hangs_when_somebody_asks_to_stop_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "WIND_UP", 0.05)
    place = Workplace(tmp_path, 3)

    def answer(query: str, context: Context) -> Response:
        if context.query_id == "q2":
            place.stop.ask()
        return inner(query, context)

    with hanging("q2") as inner:
        assert isinstance(place.record(answer).error, KeyboardInterrupt)
    assert [case.query_id for case in place.of_kind(QuestionDone)] == ["q1"]


def test_what_was_under_way_when_a_recording_had_to_end_is_kept(tmp_path: Path) -> None:
    begun = threading.Event()

    def answer(_query: str, context: Context) -> Response:
        if context.query_id == "q1":
            begun.wait(LONG)
            raise InputError(["the index is gone"])
        begun.set()
        threading.Event().wait(0.05)
        return finds()

    place = Workplace(tmp_path, 2)
    assert problems(place.record(Toy(answer, concurrency=2))) == ["the index is gone"]
    assert [case.query_id for case in place.of_kind(QuestionDone)] == ["q2"]
    assert place.journal.exists()


def test_how_far_it_is_is_said_at_most_five_times_a_second(tmp_path: Path) -> None:
    place = Workplace(tmp_path, 200)
    began = monotonic()
    assert place.record(lambda *_: finds()).error is None
    shown = place.of_kind(RecordingProgress)
    assert len(shown) <= 5 * (monotonic() - began) + 1


def test_who_watches_hears_of_progress_while_nothing_ends(tmp_path: Path) -> None:
    place = Workplace(tmp_path, 2)

    def answer(_query: str, context: Context) -> Response:
        if context.query_id == "q2":
            threading.Event().wait(1.3)
        return finds()

    place.record(answer)
    progress = next(one for one in place.of_kind(RecordingProgress) if one.done == 1)
    assert (progress.total, progress.failed, progress.retried) == (2, 0, 0)
    assert progress.rate > 0
    assert progress.p95_ms is not None
    assert progress.seconds_left is not None


def test_everything_that_watches_is_called_from_one_thread(tmp_path: Path) -> None:
    place = Workplace(tmp_path, 40)
    threads: set[int] = set()

    class Watched(list):  # type: ignore[type-arg]
        def append(self, _event: object) -> None:
            threads.add(threading.get_ident())

    place.events = Watched()
    place.record(Toy(concurrency=8))
    assert threads == {threading.get_ident()}


@pytest.mark.parametrize(("own", "latency"), [(7, 7.0), (0, 0.0), (1.5, 1.5)])
def test_a_system_that_waited_for_something_else_says_how_long_it_took_itself(
    own: float, latency: float, tmp_path: Path
) -> None:
    workplace = Workplace(tmp_path, 1)
    recording = workplace.record(lambda *_: Response(results=[], latency_ms=own), out=None)
    assert isinstance(recording.rows, dict)
    assert recording.rows["q1"]["latency_ms"] == latency


@pytest.mark.parametrize("own", [-1, float("nan"), float("inf"), "7"])
def test_a_latency_that_is_none_fails_the_question(own: Any, tmp_path: Path) -> None:
    recording = Workplace(tmp_path, 1).record(lambda *_: Response(results=[], latency_ms=own))
    assert "latency_ms: expected milliseconds" in problems(recording)[1]
