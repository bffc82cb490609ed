"""The tables that ragas makes of an evaluation."""

import json
from pathlib import Path
from typing import Any

import pytest

from ragcontract.files.problems import Problems
from tests.convert.builders import goldens, lines_of, scores_of

TABLE: list[dict[str, Any]] = [
    {
        "id": "q1",
        "user_input": "What?",
        "retrieved_contexts": ["a"],
        "response": "42",
        "query_length": 3,
        "rouge_score(mode=fmeasure)": 1,
        "faithfulness": 0.5,
    },
    {
        "id": 2,
        "user_input": "Who?",
        "retrieved_contexts": [],
        "response": None,
        "query_length": 4,
        "rouge_score(mode=fmeasure)": 0.25,
        "faithfulness": 0,
    },
]
SCORES = [
    {"query_id": "q1", "scores": {"rouge_score_mode_fmeasure": 1.0, "faithfulness": 0.5}},
    {"query_id": "2", "scores": {"rouge_score_mode_fmeasure": 0.25, "faithfulness": 0.0}},
]
CSV = """,id,user_input,retrieved_contexts,response,rouge_score(mode=fmeasure),faithfulness
0,q1,What?,"['a', 'b']",42,1,0.5
1,2,Who?,[],,0.25,0.0
"""
FORMS = {
    "lines": "".join(json.dumps(row) + "\n" for row in TABLE),
    "a list": json.dumps(TABLE),
    "csv": CSV,
    "csv that was read and written again": CSV.replace(",id", "Unnamed: 0,id", 1),
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_numbers_are_scores_but_for_the_fields_of_a_sample(text: str, tmp_path: Path) -> None:
    assert scores_of("ragas", tmp_path, text) == (SCORES, Problems())


@pytest.mark.parametrize("value", ["null", '"nan"'])
def test_a_value_that_ragas_could_not_compute_is_null_and_reported(value: str, tmp_path: Path) -> None:
    text = (
        f'{{"id": "q1", "user_input": "What?", "recall": 1}}\n{{"id": "q2", "user_input": "Who?", "recall": {value}}}'
    )
    rows, problems = scores_of("ragas", tmp_path, text)
    assert [row["scores"] for row in rows] == [{"recall": 1.0}, {"recall": None}]
    (warning,) = problems.warnings
    assert warning.endswith("results:2: not measured, and written as null: recall of 1 query ('q2')")


def test_an_empty_cell_is_null(tmp_path: Path) -> None:
    rows, problems = scores_of("ragas", tmp_path, "id,user_input,recall\nq1,What?,\nq2,Who?,1\n")
    assert [row["scores"] for row in rows] == [{"recall": None}, {"recall": 1.0}]
    assert len(problems.warnings) == 1


def test_a_column_with_anything_else_than_numbers_is_left_out_with_a_warning(tmp_path: Path) -> None:
    table = [{"id": "q1", "tone": 1, "exact": True}, {"id": "q2", "tone": "polite", "exact": False}]
    rows, problems = scores_of("ragas", tmp_path, table)
    assert [row["scores"] for row in rows] == [{"exact": 1.0}, {"exact": 0.0}]
    assert [one.replace(f"{tmp_path}/", "") for one in problems.warnings] == [
        "results:1: not only numbers, and left out: 'tone'"
    ]


def test_questions_find_the_ids_of_the_golden_queries(tmp_path: Path) -> None:
    table = [{"user_input": "what", "f": 1}, {"id": "b", "user_input": "Something else", "f": 0}]
    rows, problems = scores_of("ragas", tmp_path, table, goldens(a="What?", b="Who?"))
    assert ([row["query_id"] for row in rows], problems) == (["a", "b"], Problems())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"f": 1}', "results:1: user_input: is missing; expected the question, or an `id`"),
        ('{"id": [1], "f": 1}', "results:1: id: expected text or a whole number, found [1]"),
        ('{"id": true, "f": 1}', "results:1: id: expected text or a whole number, found true"),
        (
            '{"user_input": [{"content": "Hi"}], "f": 1}',
            "results:1: user_input: is a conversation; give each row an `id`, that of its golden query",
        ),
        (
            '{"user_input": {"0": "What?"}, "f": {"0": 1}}',
            (
                "results:1: user_input: has the values of all samples; write the file with "
                '`result.to_pandas().to_json(FILE, orient="records", lines=True)`'
            ),
        ),
        (
            '{"user_input": "What?", "mood": "x"}',
            (
                "results: has no column with numbers; found only texts in 'mood'; write the file with "
                '`result.to_pandas().to_json(FILE, orient="records", lines=True)`'
            ),
        ),
    ],
)
def test_what_is_no_table_of_ragas_is_reported(text: str, problem: str, tmp_path: Path) -> None:
    _, problems = scores_of("ragas", tmp_path, text)
    assert lines_of(problems, tmp_path) == [problem]
