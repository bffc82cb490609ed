"""Names, ids and missing values of what other tools measured, in tables of scores and in the results of promptfoo."""

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.convert.builders import Converted, converted, goldens

ID = "the id"


def of_table(folder: Path, *rows: dict[str, Any], golden: Mapping[str, str] | None = None) -> Converted:
    """Convert a table whose columns are scores, but for those of ids and questions."""
    (folder / "r").write_text("".join(json.dumps(row) + "\n" for row in rows))
    argv = ["--results", str(folder / "r"), *([f"--id={ID}"] if any(ID in row for row in rows) else [])]
    names = dict.fromkeys(name for row in rows for name in row if name not in {"id", "question", ID})
    argv += [f"--score={name}" for name in names]
    if golden is not None:
        (folder / "golden").write_text(goldens(**golden))
        argv += ["--golden", str(folder / "golden")]
    return converted("table", "scores", folder, *argv)


def of_promptfoo(folder: Path, *results: dict[str, Any], golden: Mapping[str, str] | None = None) -> Converted:
    """Convert the results of promptfoo, each with its variables and its scores."""
    encoded = ",\n".join(json.dumps({"promptIdx": 0, **result}) for result in results)
    (folder / "r").write_text(f'{{"results": {{"version": 3, "results": [{encoded}]}}}}')
    argv = ["--results", str(folder / "r")]
    if golden is not None:
        (folder / "golden").write_text(goldens(**golden))
        argv += ["--golden", str(folder / "golden")]
    return converted("promptfoo", "scores", folder, *argv)


def result(query_id: str, *components: dict[str, Any], **scores: float | None) -> dict[str, Any]:
    grading = {"componentResults": components} if components else None
    return {"vars": {"query_id": query_id}, "namedScores": scores, "gradingResult": grading}


def name_in(folder: Path, name: str) -> str:
    """Return the name of a metric that a column becomes; none if it is refused."""
    rows, problems, _ = of_table(folder, {ID: "q1", name: 1})
    assert bool(rows) is not any("cannot be the name of a metric" in problem for problem in problems)
    return next(iter(rows[0]["scores"])) if rows else ""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("faithfulness", "faithfulness"),
        ("Exact Match", "exact_match"),
        ("rouge_score(mode=fmeasure)", "rouge_score_mode_fmeasure"),
        ("  Tone [GEval]  ", "tone_geval"),
        ("Fidélité", "fidelite"),
        ("pass@1", "pass_1"),
        ("5 stars", ""),
        ("准确率", ""),
        ("", ""),
    ],
)
def test_names_become_those_of_metrics(name: str, expected: str, tmp_path: Path) -> None:
    assert name_in(tmp_path, name) == expected


@given(st.text(max_size=20))
def test_a_name_of_a_metric_stays_as_it_is(name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        new = name_in(Path(folder), name)
        assert not new or name_in(Path(folder), new) == new
    assert not new or (
        new[0] in "abcdefghijklmnopqrstuvwxyz" and set(new) <= set("abcdefghijklmnopqrstuvwxyz0123456789_")
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *[(value, None) for value in (None, "", " ", "nan", "NaN", "None", "N/A")],
        *[(value, 1.0) for value in (1, 1.0, True, "1", " 1.0 ", "+1e0", "true", "True", "1.")],
        (False, 0.0),
        ("FALSE", 0.0),
        ("-.5", -0.5),
    ],
)
def test_numbers_are_read_as_tables_have_them(value: object, expected: float | None, tmp_path: Path) -> None:
    (_, row), problems, _ = of_table(tmp_path, {"id": "a", "f": 1}, {"id": "b", "f": value})
    assert (row["scores"], problems) == ({"f": expected}, [])


@pytest.mark.parametrize("value", ["inf", "-inf", 10**400])
def test_what_is_infinite_is_refused(value: object, tmp_path: Path) -> None:
    assert of_table(tmp_path, {"id": "a", "f": value}).problems == ["r:1: 'f': is infinite; expected a number"]


@pytest.mark.parametrize("value", ["0,5", "1_000", "high", "1 2", "0x1", "٣", [1], {}])
def test_anything_else_is_no_number(value: object, tmp_path: Path) -> None:
    assert of_table(tmp_path, {"id": "a", "f": value}).problems[0].startswith("r:1: f: expected a number, found ")


def test_two_names_that_become_one_are_refused_once(tmp_path: Path) -> None:
    rows = ({"id": "q1", "Exact Match": 1.0, "exact_match": 0.0}, {"id": "q2", "exact_match": 1.0})
    assert of_table(tmp_path, *rows).problems == [
        "r:1: 'exact_match': becomes 'exact_match', and so does 'Exact Match'; rename one of them"
    ]


def test_a_name_without_a_letter_is_refused(tmp_path: Path) -> None:
    expected = "a letter from a to z and at most 99 more letters or digits"
    assert of_table(tmp_path, {"id": "q1", "5": 1.0}).problems == [
        f"r:1: '5': cannot be the name of a metric, which is {expected}; rename it"
    ]


def test_a_score_and_a_check_may_have_one_name(tmp_path: Path) -> None:
    failed = {"pass": False, "score": 0.0, "reason": "x" * 2_000, "assertion": {"metric": "F 1"}}
    held = {"pass": True, "score": 1.0, "reason": "", "assertion": {"metric": "g"}}
    (row,), *said = of_promptfoo(tmp_path, result("q", failed, held, **{"F 1": 0.0}))
    assert said == [[], []]
    assert row["scores"] == {"f_1": 0.0}
    assert row["checks"] == {"f_1": {"passed": False, "reason": "x" * 999 + "…"}, "g": True}


def test_a_missing_number_is_null_with_a_warning(tmp_path: Path) -> None:
    (row,), _, warnings = of_table(tmp_path, {"id": "q1", "f": float("nan"), "g": 1.0} | {"f": "nan"})
    assert row["scores"] == {"f": None, "g": 1.0}
    assert warnings == ["r:1: not measured, and written as null: f of 1 query ('q1')"]


def test_a_row_without_any_score_gets_null_for_every_name(tmp_path: Path) -> None:
    rows, _, warnings = of_promptfoo(tmp_path, result("q1", f=1.0), result("q2"), result("q3", g=1.0))
    assert [row["scores"] for row in rows] == [{"f": 1.0}, {"f": None, "g": None}, {"g": 1.0}]
    assert warnings == ["r:2: not measured, and written as null: f of 1 query ('q2'), g of 1 query ('q2')"]


def test_no_score_at_all_is_a_problem(tmp_path: Path) -> None:
    (problem,) = of_promptfoo(tmp_path, result("q2")).problems
    assert problem.startswith("r: has no scores; ")
    assert of_promptfoo(tmp_path).problems == [problem]


GOLDEN = {"a": "What?", "b": "Who?", "c": "who", "1": "When?"}


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"id": "a"}, "a"),
        ({"id": 1}, "1"),
        ({"id": "a", "question": "WHAT"}, "a"),
        ({"id": "b", "question": "Who?"}, "b"),
        ({"id": "a", "question": "a prompt with more than the question"}, "a"),
        ({"id": "test_x", "question": "What?"}, "a"),
        ({"question": "what"}, "a"),
    ],
)
def test_golden_queries_are_found_by_their_ids_and_questions(
    row: dict[str, Any], expected: str, tmp_path: Path
) -> None:
    rows, *said = of_table(tmp_path, row | {"f": 1}, golden=GOLDEN)
    assert ([found["query_id"] for found in rows], said) == ([expected], [[], []])


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"id": "a", "question": "Who?"}, 'r:1: id: is "a", but the question is that of the golden query "b"'),
        (
            {"question": "Who?"},
            "r:1: question: the question is that of 2 golden queries ('b', 'c'); give each row the id of its query",
        ),
        (
            {"id": "x"},
            'r:1: id: no golden query has "x" as its id or as its question; correct it or leave it out',
        ),
        (
            {"question": "Where?"},
            'r:1: question: no golden query has "Where?" as its id or as its question; correct it or leave it out',
        ),
    ],
)
def test_a_row_whose_golden_query_is_not_certain_is_refused(row: dict[str, Any], problem: str, tmp_path: Path) -> None:
    assert of_table(tmp_path, row | {"f": 1}, golden=GOLDEN).problems == [problem]


def test_a_result_without_an_id_and_a_question_is_refused(tmp_path: Path) -> None:
    (problem,) = of_promptfoo(tmp_path, result("q1", f=1) | {"vars": {}}, golden=GOLDEN).problems
    assert problem == "r:1: vars.query_id: is missing; expected a golden query's id"


def test_without_a_golden_file_the_question_is_the_id_and_a_warning_says_so(tmp_path: Path) -> None:
    results = [result("", f=1) | {"vars": {"question": "What?"}}, result("", f=1) | {"vars": {"query_id": 7}}]
    rows, _, warnings = of_promptfoo(tmp_path, *results)
    assert [row["query_id"] for row in rows] == ["What?", "7"]
    assert warnings == [
        "r:1: 1 query ('What?') without an id: the question is the id; give --golden, to find the ids by the questions"
    ]


def test_an_id_or_a_question_that_is_too_long_for_an_id_is_refused(tmp_path: Path) -> None:
    expected = "expected text of 1 to 2,000 characters, found "
    (problem,) = of_table(tmp_path, {"id": "x" * 2_001, "f": 1}).problems
    assert problem.startswith(f"r:1: id: {expected}")
    (problem,) = of_table(tmp_path, {"question": "x" * 2_001, "f": 1}).problems
    assert problem.startswith(f"r:1: question: {expected}")
    assert problem.endswith("; give --golden, to find the id of this question")


def test_an_id_comes_again_for_the_same_question_only(tmp_path: Path) -> None:
    asked = {"id": "a", "question": "What?", "f": 1}
    rows, *said = of_table(tmp_path, asked, asked | {"question": "what"})
    assert (len(rows), said) == (2, [[], []])
    assert of_table(tmp_path, asked, asked | {"question": "Who?"}).problems == [
        'r:2: id: "a" has another question at r:1; give each query an id of its own'
    ]
