"""Scores files: what is read of them, what is refused, and how they are joined with the rows of a run."""

import pickle
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from ragcontract.core.metric import Invalid, Metric, Scale
from ragcontract.core.run import RunRow
from ragcontract.runs.scores_files import GivenScores, Wanted, read_scores
from tests.builders import write_jsonl

METRICS = {
    "faithfulness": Metric(key="faithfulness", label="faithfulness"),
    "toxicity": Metric(key="toxicity", label="toxicity", better="lower", scale=Scale(0, 10)),
}


def read(folder: Path, *rows: Any, **wanted: Any) -> GivenScores:
    """Read a scores file with these rows, for the queries q1 to q9."""
    write_jsonl(folder / "s.jsonl", rows)
    return read_files(folder, "s.jsonl", **wanted)


def read_files(folder: Path, *names: str, **wanted: Any) -> GivenScores:
    golden = [f"q{number}" for number in range(1, 10)]
    return read_scores([str(folder / name) for name in names], Wanted(golden=golden, metrics=METRICS, **wanted))


def scored(query_id: str | int, **fields: Any) -> dict[str, Any]:
    return {"query_id": query_id, **fields}


def joined(given: GivenScores, query_id: str = "q1", **own: Any) -> RunRow | list[Invalid]:
    return given.table.merged(query_id, RunRow(query_id=query_id, results=[], **own))


def scores_of(given: GivenScores, query_id: str = "q1", **own: Any) -> Any:
    row = joined(given, query_id, **own)
    assert isinstance(row, RunRow), row
    return row.scores


def problems(given: GivenScores, folder: Path) -> list[str]:
    return [problem.replace(f"{folder}/", "") for problem in given.problems.problems]


def test_scores_are_joined_with_those_of_the_run(tmp_path: Path) -> None:
    given = read(tmp_path, scored("q1", scores={"faithfulness": 1, "own": 3}), scored("q2"))
    assert scores_of(given, scores={"toxicity": 2, "faithfulness": None}) == {"toxicity": 2, "faithfulness": 1}
    assert scores_of(given, "q2") is None
    assert given.undeclared == ("own",)
    assert [file.path for file in given.files] == [str(tmp_path / "s.jsonl")]


def test_files_are_read_together_and_a_query_may_have_a_row_for_each_score(tmp_path: Path) -> None:
    write_jsonl(
        tmp_path / "a.jsonl", [scored("q1", scores={"faithfulness": 0.5}), scored("q1", scores={"toxicity": 4})]
    )
    write_jsonl(tmp_path / "b.jsonl", [scored("q2", scores={"faithfulness": 0.7})])
    given = read_files(tmp_path, "*.jsonl")
    assert scores_of(given) == {"faithfulness": 0.5, "toxicity": 4}
    assert scores_of(given, "q2") == {"faithfulness": 0.7}


def test_a_null_in_one_file_leaves_no_score_of_another(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "a.jsonl", [scored("q1", scores={"faithfulness": None, "toxicity": 4})])
    write_jsonl(tmp_path / "b.jsonl", [scored("q1", scores={"faithfulness": 0.5})])
    for names in (("a.jsonl", "b.jsonl"), ("b.jsonl", "a.jsonl")):
        given = read_files(tmp_path, *names)
        assert not given.problems
        assert scores_of(given) == {"toxicity": 4}


def test_a_number_outside_the_scale_is_refused_with_its_line(tmp_path: Path) -> None:
    given = read(tmp_path, scored("q2"), scored("q1", scores={"faithfulness": 1.4, "toxicity": 9}))
    assert problems(given, tmp_path) == [
        (
            "s.jsonl:2: scores.faithfulness: expected a number from 0 to 1, found 1.4; say its scale under metrics in "
            "ragcontract.yml"
        )
    ]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999", "true", '"0.5"'])
def test_what_is_no_number_is_refused_with_its_line(number: str, tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_text(f'{{"query_id": "q1", "scores": {{"faithfulness": {number}}}}}\n')
    (problem,) = problems(read_files(tmp_path, "s.jsonl"), tmp_path)
    assert problem.startswith("s.jsonl:1: ")


def test_a_name_that_the_run_has_too_is_refused_with_both_locations(tmp_path: Path) -> None:
    given = read(tmp_path, scored("q1", scores={"faithfulness": 0.5}, checks={"polite": True}), checks=True)
    assert joined(given, scores={"faithfulness": 0.5}, checks={"polite": True}) == [
        Invalid("scores.faithfulness", f"{tmp_path}/s.jsonl:1 has it, too; leave one of them out"),
        Invalid("checks.polite", f"{tmp_path}/s.jsonl:1 has it, too; leave one of them out"),
    ]


def test_a_name_that_another_file_has_is_refused_with_both_locations_also_with_repeats(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "a.jsonl", [scored("q1", scores={"faithfulness": 0.5})])
    write_jsonl(tmp_path / "b.jsonl", [scored("q1", scores={"faithfulness": 0.5})])
    for repeats in (False, True):
        (problem,) = problems(read_files(tmp_path, "a.jsonl", "b.jsonl", repeats=repeats), tmp_path)
        assert problem == (
            "b.jsonl:1: scores.faithfulness: query 'q1' has it at a.jsonl:1 already; leave one of them out"
        )


def test_several_rows_of_a_query_are_averaged_with_repeats_only(tmp_path: Path) -> None:
    rows = [scored("q1", scores={"faithfulness": number}) for number in (0.1, 0.2, 0.6)]
    refused = problems(read(tmp_path, *rows), tmp_path)
    assert refused[0] == (
        "s.jsonl:2: scores.faithfulness: query 'q1' has it at s.jsonl:1 already (several rows per query are averaged "
        "with --repeats)"
    )
    assert scores_of(read(tmp_path, *rows, repeats=True)) == {"faithfulness": pytest.approx(0.3)}


def test_of_two_rows_in_a_file_neither_may_be_null_without_repeats_either(tmp_path: Path) -> None:
    rows = [scored("q1", scores={"faithfulness": number}) for number in (None, 0.9)]
    assert not scores_of(read(tmp_path, *rows))
    assert not scores_of(read(tmp_path, *reversed(rows)))


@pytest.mark.parametrize("first", [0, 1, 2])
def test_a_repetition_that_was_not_measured_leaves_no_mean_of_the_others(first: int, tmp_path: Path) -> None:
    numbers = [None, 0.2, 0.6]
    rows = [scored("q1", scores={"faithfulness": number}) for number in [*numbers[first:], *numbers[:first]]]
    given = read(tmp_path, *rows, scored("q2", scores={"faithfulness": 0.5}), repeats=True)
    assert not given.problems
    assert not scores_of(given)
    assert scores_of(given, "q2") == {"faithfulness": 0.5}


def test_of_repeated_checks_each_must_pass(tmp_path: Path) -> None:
    rows = [scored("q1", checks={"polite": passed}, reasons={"polite": "rude"}) for passed in (True, False, True)]
    row = joined(read(tmp_path, *rows, repeats=True, checks=True))
    assert isinstance(row, RunRow)
    assert row.checks == {"polite": {"passed": False, "reason": "rude"}}


@pytest.mark.parametrize(
    "others",
    [[{}], [{"faithfulness": 0.9}], [{"toxicity": 1}], [{"toxicity": 1}, {"faithfulness": 0.9, "toxicity": 1}]],
)
@pytest.mark.parametrize("turned", [False, True])
def test_a_name_that_one_of_several_rows_lacks_was_not_measured(
    *, others: list[dict[str, float]], turned: bool, tmp_path: Path
) -> None:
    numbers = [{"faithfulness": 0.9, "toxicity": 0}, *others]
    rows = [scored("q1", scores=one) for one in (numbers[::-1] if turned else numbers)]
    given = read(tmp_path, *rows, scored("q2", scores={"toxicity": 2}), repeats=True)
    everywhere = set(numbers[0]).intersection(*numbers)
    assert set(scores_of(given)) == everywhere
    assert scores_of(given, "q2") == {"toxicity": 2}


def test_a_check_that_one_of_several_rows_lacks_was_not_made(tmp_path: Path) -> None:
    rows = [scored("q1", checks={"polite": True, "brief": True}), scored("q1", checks={"brief": True, "kind": False})]
    row = joined(read(tmp_path, *rows, repeats=True, checks=True))
    assert isinstance(row, RunRow)
    assert row.checks == {"brief": True}


def test_each_file_has_rows_of_its_own(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "a.jsonl", [scored("q1", scores={"faithfulness": number}) for number in (0.2, 0.4)])
    write_jsonl(tmp_path / "b.jsonl", [scored("q1", scores={"toxicity": 3})])
    given = read_files(tmp_path, "a.jsonl", "b.jsonl", repeats=True)
    assert scores_of(given) == {"faithfulness": pytest.approx(0.3), "toxicity": 3}


def test_a_score_that_was_not_measured_each_time_is_not_taken_from_the_run(tmp_path: Path) -> None:
    given = read(tmp_path, *(scored("q1", scores={"faithfulness": number}) for number in (0.1, None)), repeats=True)
    assert joined(given, scores={"faithfulness": 0.9}) == [
        Invalid("scores.faithfulness", f"{tmp_path}/s.jsonl:1 has it, too; leave one of them out")
    ]


def test_checks_are_only_read_where_a_rule_needs_them(tmp_path: Path) -> None:
    row = joined(read(tmp_path, scored("q1", checks={"polite": True})))
    assert isinstance(row, RunRow)
    assert row.checks is None


def test_ids_may_be_numbers_and_rows_without_a_golden_query_are_counted(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "s.jsonl", [scored(7, scores={"toxicity": 3}), scored("x"), scored("y"), scored("x")])
    given = read_scores([str(tmp_path / "s.jsonl")], Wanted(golden=["7"], not_judged=["y"], metrics=METRICS))
    assert scores_of(given, "7") == {"toxicity": 3}
    assert (given.unknown, given.unknown_rows) == (("x",), 2)


def test_the_reasons_of_the_worst_scores_are_held_worst_first(tmp_path: Path) -> None:
    rows = [
        scored(
            f"q{number}", scores={"faithfulness": number / 10, "toxicity": number}, reasons=dict.fromkeys(METRICS, "w")
        )
        for number in (3, 1, 2)
    ]
    reasons = read(tmp_path, *rows).reasons
    assert [(one.query_id, one.value) for one in reasons["faithfulness"]] == [("q1", 0.1), ("q2", 0.2), ("q3", 0.3)]
    assert [one.query_id for one in reasons["toxicity"]] == ["q3", "q2", "q1"]


def test_a_file_without_scores_and_checks_is_refused(tmp_path: Path) -> None:
    (problem,) = problems(read(tmp_path, {"query_id": "q1", "results": []}), tmp_path)
    assert problem.startswith('s.jsonl: has no scores and no checks; expected rows as {"query_id": "q1", "scores"')


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    (problem,) = problems(read_files(tmp_path, "none.jsonl"), tmp_path)
    assert problem.startswith("none.jsonl: ")


def test_what_computed_them_is_listed_once(tmp_path: Path) -> None:
    rows = [scored(f"q{number}", scores={"toxicity": 1}, scored_by=by) for number, by in ((1, "b"), (2, "a"), (3, "b"))]
    assert read(tmp_path, *rows).scored_by == ("b", "a")


def test_what_was_read_can_be_sent_to_workers(tmp_path: Path) -> None:
    given = read(tmp_path, scored("q1", scores={"faithfulness": 0.5}))
    assert scores_of(pickle.loads(pickle.dumps(given))) == {"faithfulness": 0.5}


def test_memory_is_for_the_wanted_numbers_not_for_what_the_file_has(tmp_path: Path) -> None:
    queries = 2_000
    rows = [
        scored(
            f"q{number}", scores={"faithfulness": 0.5, **{f"other{n}": 1 for n in range(20)}}, reasons={"x": "y" * 500}
        )
        for number in range(queries)
    ]
    path = write_jsonl(tmp_path / "s.jsonl", rows)
    golden = [f"q{number}" for number in range(queries)]
    tracemalloc.start()
    given = read_scores([str(path)], Wanted(golden=golden, metrics=METRICS))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert scores_of(given, "q7") == {"faithfulness": 0.5}
    assert held < queries * (2 * 16 + 150)  # two metrics, and the index of the queries; the file has 900 bytes for each
