"""Logs of Inspect as JSON."""

from pathlib import Path
from typing import Any

import pytest

from ragcontract.files.problems import Problems
from tests.convert.builders import goldens, lines_of, scores_of


def sample(sample_id: str | int = "q1", epoch: int = 1, **values: Any) -> dict[str, Any]:
    scores = {name: {"value": value, "history": []} for name, value in (values or {"match": "C"}).items()}
    return {"id": sample_id, "epoch": epoch, "input": f"{sample_id}?", "target": "x", "scores": scores}


def log(*samples: dict[str, Any], **fields: Any) -> dict[str, Any]:
    about = {"model": "mockllm/model", "packages": {"inspect_ai": "0.3.285"}}
    return {"version": 2, "status": "success", "eval": about, "samples": list(samples)} | fields


def test_values_are_the_numbers_that_inspect_takes_them_for(tmp_path: Path) -> None:
    values: dict[str, Any] = {
        "a": "C",
        "b": "I",
        "c": "P",
        "d": "N",
        "e": True,
        "f": "no",
        "g": 0.25,
        "h": "3",
        "i": {"x": 1, "y": "P"},
    }
    expected = {"a": 1, "b": 0, "c": 0.5, "d": 0, "e": 1, "f": 0, "g": 0.25, "h": 3, "i_x": 1, "i_y": 0.5}
    assert scores_of("inspect", tmp_path, log(sample(**values))) == (
        [{"query_id": "q1", "scores": expected, "scored_by": "inspect_ai 0.3.285"}],
        Problems(),
    )


def test_epochs_are_rows_of_one_query_and_explanations_are_reasons(tmp_path: Path) -> None:
    first, second = sample(match="C", pair={"a": 1}), sample(epoch=2, match="I")
    first["scores"]["match"]["explanation"] = "It is there."
    first["scores"]["pair"]["reason"] = "Both."
    rows, problems = scores_of("inspect", tmp_path, log(first, second))
    assert [(row["query_id"], row["scores"]["match"]) for row in rows] == [("q1", 1.0), ("q1", 0.0)]
    assert [row.get("reasons") for row in rows] == [{"match": "It is there.", "pair_a": "Both."}, None]
    assert problems == Problems()


def test_samples_that_failed_or_were_not_scored_are_null(tmp_path: Path) -> None:
    samples = [sample("q1", match=1), sample("q2", match=float("nan")), sample("q3") | {"scores": None, "error": {}}]
    rows, problems = scores_of("inspect", tmp_path, log(*samples, status="error"))
    assert [row["scores"] for row in rows] == [{"match": 1.0}, {"match": None}, {"match": None}]
    assert [warning.replace(f"{tmp_path}/", "") for warning in problems.warnings] == [
        'results: the evaluation ended as "error"; samples may be missing',
        "results:1: not measured, and written as null: match of 2 queries ('q2', 'q3')",
    ]


def test_samples_that_inspect_numbered_are_found_by_their_input(tmp_path: Path) -> None:
    rows, problems = scores_of("inspect", tmp_path, log(sample(1), sample(2)), goldens(a="2?", b="1?"))
    assert ([row["query_id"] for row in rows], problems) == (["b", "a"], Problems())


def test_numbers_that_are_the_ids_of_other_queries_are_refused(tmp_path: Path) -> None:
    golden = goldens(**{"1": "2?", "2": "1?"})
    _, problems = scores_of("inspect", tmp_path, log(sample(1)), golden)
    assert lines_of(problems, tmp_path) == ['results:1: id: is "1", but the question is that of the golden query "2"']


@pytest.mark.parametrize(
    ("results", "problem"),
    [
        (
            log(version=1),
            (
                "results: version: expected 2, found 1; write it with a current Inspect: "
                "`inspect log convert FILE --to json --output-dir FOLDER`"
            ),
        ),
        (
            log(samples=None),
            "results: samples: is missing; was the log written with its header only, or without samples (log_samples)?",
        ),
        (
            log(),
            "results: has no scores; was the evaluation run with --no-score? `inspect score FILE` adds them",
        ),
        (
            log(sample(match="maybe")),
            'results:1: scores.match.value: expected a number, found "maybe"; or C, I, P, N',
        ),
        (log(sample(match=[1])), "results:1: scores.match.value: expected a number, found [1]; or C, I, P, N"),
        (
            b"PK\x03\x04",
            (
                "results: is a ZIP archive; write the log as JSON: "
                "`inspect log convert FILE --to json --output-dir FOLDER`"
            ),
        ),
    ],
)
def test_what_cannot_be_read_is_reported(results: Any, problem: str, tmp_path: Path) -> None:
    _, problems = scores_of("inspect", tmp_path, results)
    assert lines_of(problems, tmp_path) == [problem]
