"""A recording in numbers."""

from ragcontract.record.events import Counts, End, Failure, QuestionDone, RecordingProgress, Retry
from tests.record.workplace import finds

BUSY = Failure(kind="busy", message="is busy")


def done(ms: float = 1, failure: Failure | None = None, attempts: int = 1) -> QuestionDone:
    response = None if failure else finds()
    return QuestionDone(query_id="q1", repeat=1, attempts=attempts, ms=ms, response=response, failure=failure)


def test_progress_counts_what_was_asked_now_and_what_was_done_before() -> None:
    tally = Counts(total=30, kept=10, now=100)
    for number in range(10):
        tally.count(done(ms=number))
    tally.count(Retry(query_id="q1", repeat=1, attempt=1, pause=0.5, failure=BUSY))
    assert tally.progress(105) == RecordingProgress(
        done=20, total=30, retried=1, failed=0, rate=2, p95_ms=9, seconds_left=5
    )


def test_before_the_first_answer_nothing_is_known_of_the_time_left() -> None:
    progress = Counts(total=3, kept=0, now=100).progress(100)
    assert (progress.rate, progress.p95_ms, progress.seconds_left) == (0, None, None)


def test_failures_are_counted_by_kind_and_in_a_row() -> None:
    tally = Counts(total=4, kept=0, now=0)
    for event in (done(failure=BUSY), done(), done(failure=BUSY), done(failure=Failure(kind="gone", message=""))):
        tally.count(event)
    assert tally.in_a_row == 2
    assert tally.end(written=False) == End(done=4, failed=3, retried=0, written=False, failures={"busy": 2, "gone": 1})
    assert list(tally.examples) == ["busy", "gone"]


def test_attempts_of_a_warm_up_do_not_count() -> None:
    tally = Counts(total=4, kept=0, now=0)
    tally.count(Retry(query_id="q1", repeat=0, attempt=1, pause=0.5, failure=BUSY))
    assert tally.retried == 0
