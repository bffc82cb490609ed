"""Recording a system: the run appears whole at the end, or not at all, and nothing is asked twice."""

import json
from pathlib import Path
from typing import Any

import pytest

from ragcontract import CallFailed, Context, InputError, OutputError, Response, check
from ragcontract.net.pool import Stop
from ragcontract.record.events import End, QuestionDone, Retry, Start
from ragcontract.record.recording import Recording
from tests.builders import golden
from tests.process import files_in
from tests.record.workplace import Toy, Workplace, always, finds


def failing(*ids: str, kind: str = "read_timeout", **how: Any) -> Toy:
    """Return a system that does not answer some questions."""

    def answer(_query: str, context: Context) -> Response:
        if context.query_id in ids:
            raise CallFailed(kind, f"{context.query_id} took too long", **how)
        return finds()

    return Toy(answer)


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def problems(recording: Recording) -> list[str]:
    assert isinstance(recording.error, InputError), recording.error
    return recording.error.problems


def test_the_run_has_a_row_for_every_golden_query_in_their_order(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    toy = Toy(lambda query, _: finds(query.split()[-1], "other"))
    recording = place.record(toy)
    assert recording.error is None
    assert recording.rows == str(place.out)
    rows = rows_of(place.out)
    assert [row["query_id"] for row in rows] == ["q1", "q2", "q3"]
    assert rows[1]["results"] == [{"doc_id": "q2?"}, {"doc_id": "other"}]
    assert all(row["latency_ms"] >= 0 for row in rows)
    assert toy.calls == ["setup", "teardown"]
    assert not place.journal.exists()


def test_rows_are_in_order_whichever_answer_comes_first(tmp_path: Path) -> None:
    place = Workplace(tmp_path, 20)
    assert place.record(Toy(concurrency=8)).error is None
    assert [row["query_id"] for row in rows_of(place.out)] == [f"q{number + 1}" for number in range(20)]


def test_a_system_is_told_what_belongs_to_the_question(tmp_path: Path) -> None:
    place = Workplace(tmp_path, [golden("q1", metadata={"lang": "de"})])
    toy = Toy()
    place.record(toy, manner={"top": 7, "timeout": 5})
    ((query, context),) = toy.asked
    assert query == "What about q1?"
    assert (context.query_id, context.top, context.metadata) == ("q1", 7, {"lang": "de"})
    assert (context.seconds, context.attempt, context.repeat, context.messages) == (5, 1, 1, ())
    assert context.traceparent.startswith("00-")
    assert len(context.traceparent) == 55


def test_a_question_that_fails_leaves_no_run_and_the_others_in_the_journal(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    place.out.write_text("the run of yesterday\n")
    recording = place.record(failing("q2"))
    summary, example = problems(recording)
    journalled = f"the others are in {place.journal}, and the same command asks only for these"
    assert summary == f"1 of 3 questions failed, so no run is written; {journalled}"
    assert example == "read_timeout: 1, such as query 'q2': q2 took too long"
    assert [failed.query_id for failed in recording.failures] == ["q2"]
    assert place.out.read_text() == "the run of yesterday\n"

    again = Toy()
    assert place.record(again).error is None
    assert again.ids == ["q2"]
    assert len(rows_of(place.out)) == 3
    assert not place.journal.exists()


def test_all_kinds_of_failures_have_an_example(tmp_path: Path) -> None:
    def answer(_query: str, context: Context) -> Response:
        raise CallFailed("http_error" if context.query_id == "q1" else "not_json", "said something else")

    summary, *kinds = problems(Workplace(tmp_path).record(answer))
    assert summary.startswith("3 of 3 questions")
    assert kinds == [
        "http_error: 1, such as query 'q1': said something else",
        "not_json: 2, such as query 'q2': said something else",
    ]


def test_failures_may_be_left_out(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    recording = place.record(failing("q2"), on_failure="leave-out")
    assert recording.error is None
    assert [row["query_id"] for row in rows_of(place.out)] == ["q1", "q3"]
    (warning,) = recording.warnings
    assert warning.startswith("1 question failed and is left out (read_timeout: 1)")


def test_a_run_in_which_everything_is_left_out_is_not_written(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    assert "3 of 3 questions" in problems(place.record(failing("q1", "q2", "q3"), on_failure="leave-out"))[0]
    assert not place.out.exists()


HALF = Response(
    results=[{"doc_id": "doc1"}], response=None, error="HTTP 503", error_detail={"kind": "http_error"}, context_chars=9
)


@pytest.mark.parametrize("raised", [False, True])
def test_where_only_the_answer_failed_retrieval_may_be_kept(tmp_path: Path, raised: bool) -> None:
    def answer(_query: str, _context: Context) -> Response:
        if raised:
            raise CallFailed("http_error", "HTTP 503", again=True, partial=HALF)
        return HALF

    place = Workplace(tmp_path, 1)
    quick = {"retries": 0}
    stopped = problems(place.record(answer, manner=quick))
    assert stopped[1] == "http_error: 1, such as query 'q1': HTTP 503"
    assert "1 of 1 question failed" in problems(place.record(answer, manner=quick, on_failure="leave-out"))[0]
    kept = place.record(answer, manner=quick, on_failure="keep-retrieval")
    assert kept.error is None
    assert kept.warnings[0].startswith("1 question retrieved but did not answer: the run has `error` in place of")
    (row,) = rows_of(place.out)
    assert row["results"] == [{"doc_id": "doc1"}]
    assert row["response"] is None
    assert row["error"] == "HTTP 503"


def test_rows_whose_answer_failed_are_asked_again_where_they_are_not_wanted(tmp_path: Path) -> None:
    place = Workplace(tmp_path, 2)

    def interrupted(_query: str, context: Context) -> Response:
        if context.query_id == "q2":
            place.stop.ask()
            raise CallFailed("busy", "again", again=True)
        return Response(results=[{"doc_id": "doc1"}], error="HTTP 503")

    assert isinstance(place.record(interrupted, on_failure="keep-retrieval").error, KeyboardInterrupt)
    place.stop = Stop()
    kept = Toy()
    assert place.record(kept, on_failure="stop").error is None
    assert kept.ids == ["q1", "q2"]
    assert ["error" in row for row in rows_of(place.out)] == [False, False]


def test_an_answer_that_a_run_cannot_have_is_a_failure(tmp_path: Path) -> None:
    def answer(_query: str, context: Context) -> Response:
        return Response(results=[{"doc_id": "doc1", "score": float("nan")}]) if context.query_id == "q2" else finds()

    _, example = problems(Workplace(tmp_path).record(answer))
    assert example.startswith("invalid: 1, such as query 'q2': ")
    assert "results[0].score: expected a number" in example


def test_neither_results_nor_an_answer_is_a_failure(tmp_path: Path) -> None:
    _, example = problems(Workplace(tmp_path, 1).record(lambda *_: Response()))
    assert "results: expected a list" in example


def test_whatever_users_code_raises_is_a_failure_of_one_question(tmp_path: Path) -> None:
    def answer(_query: str, context: Context) -> Response:
        if context.query_id == "q2":
            raise SystemExit("bye")
        return finds()

    _, example = problems(Workplace(tmp_path).record(answer))
    assert example == "exception: 1, such as query 'q2': SystemExit: bye"


def test_what_no_other_attempt_would_mend_ends_the_recording(tmp_path: Path) -> None:
    def answer(_query: str, context: Context) -> Response:
        if context.query_id == "q2":
            raise InputError(["the index has 3 dimensions, the model 2"])
        return finds()

    place, toy = Workplace(tmp_path, 9), Toy(answer)
    assert problems(place.record(toy)) == ["the index has 3 dimensions, the model 2"]
    assert toy.ids == ["q1", "q2"]
    assert toy.calls == ["setup", "teardown"]
    again = Toy()
    place.record(again)
    assert again.ids == [f"q{number}" for number in range(2, 10)]


def test_a_system_that_cannot_be_set_up_leaves_only_the_journal_for_which_an_old_run_is_refused(tmp_path: Path) -> None:
    class Broken(Toy):
        def setup(self) -> None:
            raise InputError(["chroma_db: there is no such folder"])

    place, toy = Workplace(tmp_path), Broken()
    before = files_in(tmp_path)
    assert problems(place.record(toy)) == ["chroma_db: there is no such folder"]
    assert toy.calls == ["teardown"]
    assert files_in(tmp_path).keys() - before.keys() == {place.journal.name}


def test_a_failing_system_is_not_asked_everything(tmp_path: Path) -> None:
    place, toy = Workplace(tmp_path, 50), failing(*(f"q{number + 1}" for number in range(50)))
    (problem,) = problems(place.record(toy))
    assert problem.startswith("the last 20 questions failed, so no others are asked; the last one: read_timeout: ")
    assert len(toy.asked) == 20


def test_attempts_that_may_succeed_later_are_made_again(tmp_path: Path) -> None:
    def answer(_query: str, context: Context) -> Response:
        if context.attempt < 3:
            raise CallFailed("http_error", "HTTP 503", again=True)
        return finds()

    place, toy = Workplace(tmp_path, 1), Toy(answer)
    recording = place.record(toy)
    assert recording.error is None
    assert [context.attempt for _, context in toy.asked] == [1, 2, 3]
    assert len({context.traceparent for _, context in toy.asked}) == 3
    assert [retry.attempt for retry in place.of_kind(Retry)] == [1, 2]
    assert place.of_kind(QuestionDone)[0].attempts == 3
    assert recording.details["retried"] == 2
    assert recording.details["answered_after_retries"] == 1


def test_no_retries_means_none(tmp_path: Path) -> None:
    toy = failing("q1", again=True)
    problems(Workplace(tmp_path, 1).record(toy, manner={"retries": 0}))
    assert len(toy.asked) == 1


def test_everything_is_asked_several_times_round_by_round(tmp_path: Path) -> None:
    place, toy = Workplace(tmp_path, 2), Toy()
    place.record(toy, repeats=2)
    assert [(context.query_id, context.repeat) for _, context in toy.asked] == [
        ("q1", 1),
        ("q2", 1),
        ("q1", 2),
        ("q2", 2),
    ]
    assert [row["query_id"] for row in rows_of(place.out)] == ["q1", "q1", "q2", "q2"]
    assert check(golden=tmp_path / "golden.jsonl", run=place.out, repeats=True).verdict == "pass"


def test_a_warm_up_does_not_count(tmp_path: Path) -> None:
    def answer(_query: str, context: Context) -> Response:
        if context.repeat == 0:
            raise CallFailed("cold", "is still loading")
        return finds()

    place, toy = Workplace(tmp_path), Toy(answer)
    assert place.record(toy, warmup=2).error is None
    assert [(context.query_id, context.repeat) for _, context in toy.asked[:3]] == [("q1", 0), ("q2", 0), ("q1", 1)]
    assert len(place.of_kind(QuestionDone)) == 3


def test_versions_that_the_user_sets_win_over_those_of_the_system(tmp_path: Path) -> None:
    place = Workplace(tmp_path, 2)
    toy = Toy(
        lambda _, context: Response(results=[], llm_model="m2" if context.query_id == "q2" else None),
        versions={"index_version": "7", "embedding_model": "e1", "llm_model": "m1", "flavour": "x"},
    )
    recording = place.record(toy, versions={"embedding_model": "e2"})
    first, second = rows_of(place.out)
    assert (first["index_version"], first["embedding_model"], first["llm_model"]) == ("7", "e2", "m1")
    assert second["llm_model"] == "m2"
    assert "'flavour' is left out" in recording.warnings[0]


def test_what_was_answered_is_not_lost_with_what_the_system_knows_of_itself(tmp_path: Path) -> None:
    class Forgetful(Toy):
        def versions(self) -> dict[str, str]:
            raise ValueError("no index")

        def teardown(self) -> None:
            raise InputError(["teardown() failed"])

    place = Workplace(tmp_path)
    recording = place.record(Forgetful())
    assert recording.error is None
    assert recording.warnings == (
        "the versions of the system are not known: ValueError: no index",
        "the teardown failed: InputError: teardown() failed",
    )
    assert len(rows_of(place.out)) == 3


def test_a_run_in_memory_is_one_to_check(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    recording = place.record(Toy(versions={"index_version": "7"}), out=None, versions={"chunking_version": "c"})
    assert not isinstance(recording.rows, str | None)
    assert recording.rows["q1"]["chunking_version"] == "c"
    assert check(golden=tmp_path / "golden.jsonl", run=recording.rows).verdict == "pass"
    assert sorted(files_in(tmp_path)) == ["golden.jsonl"]


def test_who_watches_sees_the_beginning_every_question_and_the_end(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    place.record(failing("q2"))
    assert place.events[0] == Start(target="toy", total=3, kept=0)
    cases = [(case.query_id, case.ok) for case in place.of_kind(QuestionDone)]
    assert cases == [("q1", True), ("q2", False), ("q3", True)]
    assert place.events[-1] == End(done=3, failed=1, retried=0, written=False, failures={"read_timeout": 1})
    place.events.clear()
    place.record(Toy())
    assert place.events[0] == Start(target="toy", total=3, kept=2)
    assert place.events[-1] == End(done=3, failed=0, retried=0, written=True, failures={})


def test_details_have_what_the_system_says_of_itself(tmp_path: Path) -> None:
    details = Workplace(tmp_path).record(always).details
    assert details["target"] == "toy"
    assert details["llm"] == {"model": "toy"}
    assert details["wanted"] == details["done"] == 3


def test_rows_without_results_are_warned_about_where_the_contract_names_documents(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    place.write([golden("q1", "doc1"), {"id": "q2", "query": "Hi", "answer_must_include": ["30 days"]}])
    recording = place.record(lambda *_: Response(response="30 days"))
    (warning,) = recording.warnings
    assert warning.startswith("1 row without `results`, although golden queries name documents; `check` refuses")
    with pytest.raises(InputError, match="results: is missing"):
        check(golden=tmp_path / "golden.jsonl", run=place.out)


def test_a_part_says_that_it_is_one_and_is_refused_as_incomplete(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    recording = place.record(always, limit=2)
    assert recording.warnings == (
        "the run has only 2 of 3 golden queries; `check` refuses it as incomplete, unless --tag names the same part",
    )
    with pytest.raises(InputError, match="q3"):
        check(golden=tmp_path / "golden.jsonl", run=place.out)


@pytest.mark.parametrize(
    ("out", "problem"),
    [("golden.jsonl", "is an input"), ("folder/", "is a folder"), ("/dev/null", "is not a file of its own")],
)
def test_a_run_that_could_not_be_written_is_refused_before_anything_is_asked(
    tmp_path: Path, out: str, problem: str
) -> None:
    toy = Toy()
    with pytest.raises(OutputError, match=problem):
        Workplace(tmp_path).record(toy, out=out if out.startswith("/") else f"{tmp_path}/{out}")
    assert not toy.calls


def test_parquet_cannot_have_answers_which_the_first_one_shows(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    place, toy = Workplace(tmp_path), Toy(lambda *_: Response(results=[], response="30 days"))
    out = str(tmp_path / "run.parquet")
    assert "response is not written to Parquet" in problems(place.record(toy, out=out))[0]
    assert len(toy.asked) == 1
    assert place.record(always, out=out, versions={"index_version": "7"}).error is None
