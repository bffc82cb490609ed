"""What `promptfoo eval -o out.json` writes."""

from pathlib import Path
from typing import Any

import pytest

from ragcontract.files.problems import Problems
from tests.convert.builders import goldens, lines_of, scores_of


def result(variables: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = {
        "vars": {"query_id": "q1"} if variables is None else variables,
        "namedScores": {"Has number": 1},
        "promptIdx": 0,
        "testCase": {"vars": variables, "assert": [], "metadata": {}},
        "gradingResult": None,
        "success": True,
    }
    return found | fields


def component(passed: bool, reason: str, **fields: Any) -> dict[str, Any]:
    return {"pass": passed, "score": int(passed), "reason": reason} | fields


def output(*results: dict[str, Any], version: Any = 3) -> dict[str, Any]:
    inner = {"version": version, "prompts": [{"provider": "echo"}], "results": list(results), "stats": {}}
    return {"evalId": "eval-1", "results": inner, "metadata": {"promptfooVersion": "0.121.20"}}


def test_metrics_of_assertions_are_scores_and_checks(tmp_path: Path) -> None:
    components = [
        component(True, "Assertion passed", assertion={"type": "contains", "metric": "Has number"}),
        component(False, "Expected 7", assertion={"type": "contains", "metric": "Has number"}),
        component(False, "Expected 8", assertion={"type": "contains", "metric": "Has number"}),
        component(False, "Not named", assertion={"type": "contains"}),
        component(True, "Half", metadata={"assertionSet": {"type": "assert-set", "metric": "group"}}),
    ]
    graded = result(namedScores={"Has number": 0.5, "group": 1}, gradingResult={"componentResults": components})
    assert scores_of("promptfoo", tmp_path, output(graded)) == (
        [
            {
                "query_id": "q1",
                "scores": {"has_number": 0.5, "group": 1.0},
                "checks": {"has_number": {"passed": False, "reason": "Expected 7"}, "group": True},
                "scored_by": "promptfoo 0.121.20",
            }
        ],
        Problems(),
    )


def test_a_result_that_is_an_error_was_not_measured(tmp_path: Path) -> None:
    broken = result({"query_id": 2}, namedScores={}, error="quota")
    rows, problems = scores_of("promptfoo", tmp_path, output(result(), broken, result()))
    assert [(row["query_id"], row["scores"]) for row in rows] == [
        ("q1", {"has_number": 1.0}),
        ("2", {"has_number": None}),
        ("q1", {"has_number": 1.0}),
    ]
    assert len(problems.warnings) == 1


@pytest.mark.parametrize(
    ("fields", "query_id"),
    [
        ({"variables": {"query_id": "v"}, "testCase": {"metadata": {"query_id": "m"}, "description": "d"}}, "v"),
        ({"variables": {}, "testCase": {"metadata": {"query_id": "m"}, "description": "d"}}, "m"),
        ({"variables": {}, "testCase": {"metadata": {}, "description": "d"}}, "d"),
        ({"variables": {"question": "What?"}}, "What?"),
    ],
)
def test_the_id_is_a_variable_or_metadata_or_the_description(
    fields: dict[str, Any], query_id: str, tmp_path: Path
) -> None:
    rows, _ = scores_of("promptfoo", tmp_path, output(result(**fields)))
    assert [row["query_id"] for row in rows] == [query_id]


def test_a_question_among_the_variables_finds_the_golden_query(tmp_path: Path) -> None:
    described = result({"context": "What?", "Question": "Who?"}, testCase={"description": "the second"})
    rows, problems = scores_of("promptfoo", tmp_path, output(described), goldens(a="What?", b="Who?"))
    assert ([row["query_id"] for row in rows], problems) == (["b"], Problems())


@pytest.mark.parametrize(
    ("results", "problem"),
    [
        (
            output(version=4),
            (
                "results: results.version: expected 3, found 4; write it with a current promptfoo: "
                "`promptfoo eval -o out.json`"
            ),
        ),
        (
            output() | {"results": {"table": {}}},
            (
                "results: results.version: expected 3, found null; write it with a current promptfoo: "
                "`promptfoo eval -o out.json`"
            ),
        ),
        (
            output(result(), result(promptIdx=1)),
            (
                "results:1: the file has results of several prompts or providers, whose scores would be mixed; "
                "evaluate one, with --filter-prompts and --filter-providers"
            ),
        ),
        (output(result({})), "results:1: vars.query_id: is missing; expected a golden query's id"),
        (
            output(result(namedScores={})),
            "results: has no scores; give the assertions a `metric`, under which promptfoo reports them",
        ),
        (
            output(result(namedScores={"a": "1"})),
            'results:1: namedScores.a: expected a number, found "1" (text); leave the quotes out',
        ),
    ],
)
def test_what_cannot_be_read_is_reported(results: dict[str, Any], problem: str, tmp_path: Path) -> None:
    _, problems = scores_of("promptfoo", tmp_path, results)
    assert lines_of(problems, tmp_path) == [problem]
