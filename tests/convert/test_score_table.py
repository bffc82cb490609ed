"""Tables of scores that any tool or person wrote."""

import gzip
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.convert.builders import converted, goldens

CSV = "Query ID;Judge score;note\nq1;0.5;fine\n7; 1 ;\nq2;;none\n"
ROWS: list[dict[str, Any]] = [
    {"Query ID": "q1", "Judge score": 0.5},
    {"Query ID": 7, "Judge score": True},
    {"Query ID": "q2"},
]
FORMS = {
    "csv": CSV,
    "csv of Excel": "\ufeffsep=;\r\n" + CSV.replace("\n", "\r\n"),
    "lines": "\n".join(map(json.dumps, ROWS)),
    "a list over lines": "\n" + json.dumps(ROWS, indent=1),
}


def read(
    folder: Path, text: str | bytes, *scores: str, id_column: str | None = None, golden: str = ""
) -> tuple[list[tuple[str, dict[str, float | None]]], list[str], list[str]]:
    """Return the scores by query, the problems and the warnings."""
    (folder / "results").write_bytes(text.encode() if isinstance(text, str) else text)
    (folder / "golden").write_text(golden)
    argv = ["--results", str(folder / "results"), *(f"--score={name}" for name in scores)]
    argv += ["--golden", str(folder / "golden")] if golden else []
    argv += [f"--id={id_column}"] if id_column else []
    rows, problems, warnings = converted("table", "scores", folder, *argv)
    return [(row["query_id"], row["scores"]) for row in rows], problems, warnings


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_the_named_columns_are_scores(text: str, tmp_path: Path) -> None:
    expected = [("q1", {"judge_score": 0.5}), ("7", {"judge_score": 1.0}), ("q2", {"judge_score": None})]
    for data in (text.encode(), gzip.compress(text.encode())):
        rows, problems, warnings = read(tmp_path, data, "Judge score")
        assert (rows, problems) == (expected, [])
        assert "judge_score of 1 query ('q2')" in warnings[0]


def test_a_pipe_is_read_from_its_first_line_on(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    with ThreadPoolExecutor() as pool:
        pool.submit((tmp_path / "pipe.csv").write_text, "id,f\na,1\n")
        found = converted("table", "scores", tmp_path, "--results", str(tmp_path / "pipe.csv"), "--score", "f")
    assert found == ([{"query_id": "a", "scores": {"f": 1.0}}], [], [])


def test_the_column_of_the_ids_is_named_or_recognized_or_that_of_the_questions(tmp_path: Path) -> None:
    text = "id,key,question,f\n1,a,Who?,1\n"
    assert read(tmp_path, text, "f")[0] == [("1", {"f": 1.0})]
    assert read(tmp_path, text, "f", id_column="key")[0] == [("a", {"f": 1.0})]
    assert read(tmp_path, "question,f\nWho?,1\n", "f", golden=goldens(x="Who?")) == ([("x", {"f": 1.0})], [], [])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("id,faithfulness\na,1\nb,1\n", 'results:2: no column "f" for the scores; there are "id", "faithfulness"'),
        ("id,f\na,high\n", 'results:2: f: expected a number, found "high"'),
        ("name,f\na,1\n", 'results:2: no column for the ids is recognized; name it with --id; there are "name", "f"'),
        ("id,f\n,1\n", 'results:2: id: expected text of 1 to 2,000 characters, found ""'),
        ("id,f,f\na,1,2\n", 'results:1: has several columns "f"; give each a name of its own'),
        (
            "id,f\na,1,2\n",
            "results:2: has 3 cells, but the header has 2; put cells with a separator in them in quotation marks",
        ),
        ("id,f\n", "results: has no rows"),
        ("\n", "results: is empty; expected one JSON object a line"),
        ("[]", "results: is an empty list; expected JSON objects in it"),
        ('[{"id": 1.5, "f": 1}]', "results:1: id: expected an id, found 1.5"),
        ("[1]", "results:1: expected an object, found 1"),
        ('[{"id": "a",\n', "results:1: is cut off in the middle; was the export stopped before it had finished?"),
        (
            '{"id": "a", "f": 1}\n{"id"',
            "results:2: is cut off in the middle; was the export stopped before it had finished?",
        ),
        (
            '{\n"id": "a"}',
            (
                "results:1: is one JSON document over several lines; expected one object a line, "
                "as `jq -c . FILE` writes it"
            ),
        ),
        ('{"id": "a", "f": ' + "[" * 101, "results:1: is nested too deeply: more than 100 levels"),
    ],
)
def test_what_is_no_such_table_is_reported(text: str, problem: str, tmp_path: Path) -> None:
    assert read(tmp_path, text, "f")[1] == [problem]


def test_a_named_column_that_is_not_there_is_reported_with_the_one_that_was_probably_meant(tmp_path: Path) -> None:
    text = "identifier,faithfulness\na,1\n"
    assert read(tmp_path, text, "faithfullness", id_column="identifier")[1] == [
        "results:2: no column \"faithfullness\" for the scores; did you mean 'faithfulness'?"
    ]
    assert read(tmp_path, text, "faithfulness", id_column="identifer")[1] == [
        "results:2: no column \"identifer\" for the ids; did you mean 'identifier'?"
    ]


def test_problems_by_the_thousand_are_counted(tmp_path: Path) -> None:
    _, problems, _ = read(tmp_path, "{}\n" + "{,\n" * 3_000, "f")
    assert len(problems) <= 51
