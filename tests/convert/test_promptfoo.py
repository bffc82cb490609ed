"""What `promptfoo eval -o out.json` writes."""

import json
from pathlib import Path
from typing import Any

import pytest

from ragcontract.files.problems import Problems
from tests.builders import golden, run, write_jsonl
from tests.convert.builders import goldens, lines_of, scores_of
from tests.process import rag_contract


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
    graded = result(namedScores={"Has number": 1 / 3, "group": 1}, gradingResult={"componentResults": components})
    assert scores_of("promptfoo", tmp_path, output(graded)) == (
        [
            {
                "query_id": "q1",
                "scores": {"has_number": pytest.approx(1 / 3), "group": 1.0},
                "checks": {"has_number": {"passed": False, "reason": "Expected 7"}, "group": True},
                "scored_by": "promptfoo 0.121.20",
            }
        ],
        Problems(),
    )


def faithful(*scores: tuple[float, float | None]) -> list[dict[str, Any]]:
    """Return assertions of one metric, each with its score and its weight."""
    return [
        {
            "pass": score >= 0.5,
            "score": score,
            "reason": "",
            "assertion": {"type": "contains", "metric": "Faithful", **({} if weight is None else {"weight": weight})},
        }
        for score, weight in scores
    ]


@pytest.mark.parametrize(
    ("named", "components", "mean"),
    [
        (1, faithful((1, None), (0, None)), 0.5),  # a sum, as promptfoo 0.118 to 0.120 write it
        (0.5, faithful((1, None), (0, None)), 0.5),
        (1.5, faithful((1, None), (0.5, None), (0, None)), 0.5),
        (1, faithful((1, 3), (0, 1)), 0.75),
        (3, faithful((1, 3), (0, 1)), 0.75),
        (0.75, faithful((1, 3), (0, 1)), 0.75),
        (1, faithful((1, 0), (0, 0)), 0.5),
        (0.4, faithful((0.4, 2)), 0.4),
        (0.9, faithful((0.45, 2)), 0.45),
        (0.9, faithful((0.45, None), (0.45, None)), 0.45),
    ],
)
def test_a_sum_over_assertions_becomes_their_mean(
    named: float, components: list[dict[str, Any]], mean: float, tmp_path: Path
) -> None:
    graded = result(namedScores={"Faithful": named}, gradingResult={"componentResults": components})
    rows, problems = scores_of("promptfoo", tmp_path, output(graded))
    assert (rows[0]["scores"], problems) == ({"faithful": mean}, Problems())


def test_a_mean_with_its_weights_is_taken_as_it_is(tmp_path: Path) -> None:
    grading = {"componentResults": faithful((1, 2), (0, 2)), "namedScoreWeights": {"Faithful": 2}}
    graded = result(namedScores={"Faithful": 0.9}, gradingResult=grading)  # of a set of assertions that has a weight
    rows, _ = scores_of("promptfoo", tmp_path, output(graded))
    assert rows[0]["scores"] == {"faithful": 0.9}


@pytest.mark.parametrize("components", [faithful((1, None), (0, None)), [{"pass": True}, *faithful((1, None))]])
def test_a_score_that_its_assertions_do_not_give_is_refused(components: list[dict[str, Any]], tmp_path: Path) -> None:
    components = [{"assertion": {"metric": "Faithful"}, **component} for component in components]
    graded = result(namedScores={"Faithful": 0.9}, gradingResult={"componentResults": components})
    _, problems = scores_of("promptfoo", tmp_path, output(graded))
    (problem,) = lines_of(problems, tmp_path)
    assert problem.startswith(
        "results:1: namedScores.Faithful: is 0.9, neither the mean nor the sum of its 2 assertions"
    )
    assert problem.endswith("; evaluate with a current promptfoo, which writes namedScoreWeights")


@pytest.mark.parametrize(("named", "components"), [(1, faithful((1, None), (0, None))), (0.9, faithful((0.45, 2)))])
def test_a_failed_assertion_fails_the_check_of_its_converted_score(
    named: float, components: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    grading = {"componentResults": components}
    Path("out.json").write_text(json.dumps(output(result(namedScores={"Faithful": named}, gradingResult=grading))))
    assert rag_contract("convert", "--from", "promptfoo", "--results", "out.json", "--scores-out", "s.jsonl").code == 0
    write_jsonl(Path("golden.jsonl"), [golden()])
    write_jsonl(Path("current_run.jsonl"), [run()])
    Path("ragcontract.yml").write_text("metrics: {faithful: {from: scores}}\nminimums: {faithful: 0.9}\n")
    assert rag_contract("check", "--scores", "s.jsonl").code == 1


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
