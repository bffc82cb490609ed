"""The test runs that deepeval saves."""

from pathlib import Path
from typing import Any

import pytest

from ragcontract.files.problems import Problems
from tests.convert.builders import goldens, lines_of, scores_of


def case(name: str | None = "q1", asked: str | None = "What?", *metrics: dict[str, Any]) -> dict[str, Any]:
    found = [{"name": "Exact Match", "threshold": 1.0, "success": True, "score": 1.0, "flaky": False}]
    return {"name": name, "input": asked, "success": True, "metricsData": list(metrics) or found, "order": 0}


def test_metrics_are_scores_with_their_reasons_and_judges(tmp_path: Path) -> None:
    metrics = (
        {"name": "Answer Relevancy", "score": 0.5, "reason": "Half of it.", "evaluationModel": "m-1"},
        {"name": "Tone [GEval]", "score": 1, "evaluationModel": "m-2"},
    )
    run = {"testCases": [case("q1", "What?", *metrics)], "conversationalTestCases": [], "metricsScores": []}
    assert scores_of("deepeval", tmp_path, run) == (
        [
            {
                "query_id": "q1",
                "scores": {"answer_relevancy": 0.5, "tone_geval": 1.0},
                "reasons": {"answer_relevancy": "Half of it."},
                "scored_by": "deepeval (m-1, m-2)",
            }
        ],
        Problems(),
    )


@pytest.mark.parametrize("metric", ['{"name": "M", "score": 0.0, "error": "no key"}', '{"name": "M", "score": NaN}'])
def test_a_metric_with_an_error_or_without_a_number_is_null(metric: str, tmp_path: Path) -> None:
    text = f'{{"testCases": [{{"name": "NaN", "input": "NaN?", "metricsData": [{metric}]}}]}}'
    rows, problems = scores_of("deepeval", tmp_path, text)
    assert [(row["query_id"], row["scores"]) for row in rows] == [("NaN", {"m": None})]
    assert len(problems.warnings) == 1


def test_a_case_without_metrics_was_not_measured_by_any(tmp_path: Path) -> None:
    run = {"testCases": [case("q1"), case("q2", "Who?") | {"metricsData": None}]}
    rows, _ = scores_of("deepeval", tmp_path, run)
    assert [row["scores"] for row in rows] == [{"exact_match": 1.0}, {"exact_match": None}]


def test_a_name_that_deepeval_gave_is_no_id(tmp_path: Path) -> None:
    run = {"testCases": [case("test_case_0", "What?"), case("test_case_a", "Who?")]}
    rows, problems = scores_of("deepeval", tmp_path, run)
    assert [row["query_id"] for row in rows] == ["What?", "test_case_a"]
    assert "1 query ('What?') without an id: the question is the id; give --golden" in problems.warnings[0]
    rows, problems = scores_of("deepeval", tmp_path, run, goldens(a="What?", b="who"))
    assert ([row["query_id"] for row in rows], problems) == (["a", "b"], Problems())


def test_conversations_need_names(tmp_path: Path) -> None:
    metrics = [{"name": "M", "score": 1}]
    conversations = [{"name": name, "metricsData": metrics} for name in ("talk", "conversational_test_case_1")]
    rows, problems = scores_of("deepeval", tmp_path, {"testCases": [], "conversationalTestCases": conversations})
    assert [row["query_id"] for row in rows] == ["talk"]
    assert lines_of(problems, tmp_path) == [
        (
            "results:1: name: is not given by you, and there is no input to use instead; "
            "name each test case as its golden query"
        )
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"results": []}', "results:1: testCases: is missing; found instead: 'results'"),
        ('{"testCases": {}}', "results:1: testCases: expected a list of test cases, found {}"),
        (
            '{"testCases":\n[{"name": "a",\n"metricsData": [{"name": "M",\n"score": "high"}]}]}',
            'results:4: metricsData[0].score: expected a number, found "high" (text)',
        ),
        (
            '{"testCases": [{"name": "a", "metricsData": [{"name": "M"}, {"name": "M"}]}]}',
            "results:1: metricsData: has several metrics 'M'; give each a name of its own",
        ),
        (
            '{"testCases": []}',
            (
                "results: has no scores; expected testCases with metricsData, as deepeval saves them in "
                "DEEPEVAL_RESULTS_FOLDER"
            ),
        ),
    ],
)
def test_what_is_no_test_run_is_reported(text: str, problem: str, tmp_path: Path) -> None:
    _, problems = scores_of("deepeval", tmp_path, text)
    assert lines_of(problems, tmp_path) == [problem]
