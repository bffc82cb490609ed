"""Names, ids and missing values of what other tools measured."""

import math
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcontract.convert.measured import GoldenIds, Measured, ScoreRows, as_number, metric_name
from ragcontract.files.problems import Collector, Problems
from ragcontract.runs.scores_files import Check, ScoresRow

GOLDEN = {"a": "What?", "b": "Who?", "c": "who", "1": "When?"}


def measured(
    query_id: str | int | None = "q1", question: str | None = None, line: int = 1, **scores: float | None
) -> Measured:
    return Measured(location=f"r:{line}", id=query_id, question=question, scores=scores or {"f": 1.0})


def collected(*rows: Measured, golden: Mapping[str, str] | None = None) -> tuple[list[ScoresRow], Problems]:
    problems = Collector()
    found = ScoreRows(None if golden is None else GoldenIds(golden), problems)
    for row in rows:
        found.add(row)
    return found.collection(["r"], "has no scores").scores or [], problems.collected()


def problems_with(*rows: Measured, golden: Mapping[str, str] | None = None) -> list[str]:
    return list(collected(*rows, golden=golden)[1].problems)


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
def test_names_become_those_of_metrics(name: str, expected: str) -> None:
    assert metric_name(name) == expected


@given(st.text(max_size=20))
def test_a_name_of_a_metric_stays_as_it_is(name: str) -> None:
    new = metric_name(name)
    assert metric_name(new) == new
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
        ("inf", math.inf),
        (10**400, math.inf),
    ],
)
def test_numbers_are_read_as_tables_have_them(value: object, expected: float | None) -> None:
    assert as_number(value) == expected


@pytest.mark.parametrize("value", ["0,5", "1_000", "high", "1 2", "0x1", "٣", [1], {}])
def test_anything_else_is_no_number(value: object) -> None:
    with pytest.raises(ValueError, match="expected a number, found"):
        as_number(value)


def test_two_names_that_become_one_are_refused_once() -> None:
    rows = [
        Measured(location="r:1", id="q1", scores={"Exact Match": 1.0, "exact_match": 0.0}),
        measured("q2", exact_match=1.0),
    ]
    assert problems_with(*rows) == [
        "r:1: 'exact_match': becomes 'exact_match', and so does 'Exact Match'; rename one of them"
    ]


def test_a_name_without_a_letter_is_refused() -> None:
    expected = "a letter from a to z and at most 99 more letters or digits"
    (problem,) = problems_with(Measured(location="r:1", id="q1", scores={"5": 1.0}))
    assert problem == f"r:1: '5': cannot be the name of a metric, which is {expected}; rename it"


def test_a_score_and_a_check_may_have_one_name() -> None:
    checks = {"F 1": Check(passed=False, reason="x" * 2_000), "g": Check(passed=True)}
    row = Measured(location="r:1", id="q", scores={"F 1": 0.0}, checks=checks, reasons={"F 1": "\ud800"})
    (found,), problems = collected(row)
    assert problems == Problems()
    assert (found.scores, found.reasons) == ({"f_1": 0.0}, {"f_1": "\\ud800"})
    assert found.checks == {"f_1": Check(passed=False, reason="x" * 999 + "…"), "g": True}


def test_nan_is_null_and_infinity_is_refused() -> None:
    (row,), problems = collected(measured(f=math.nan, g=1.0))
    assert row.scores == {"f": None, "g": 1.0}
    assert list(problems.warnings) == ["r:1: not measured, and written as null: f of 1 query ('q1')"]
    assert problems_with(measured(f=-math.inf)) == ["r:1: 'f': is infinite; expected a number"]


def test_a_row_without_any_score_gets_null_for_every_name() -> None:
    rows, problems = collected(
        measured("q1", f=1.0), Measured(location="r:2", id="q2", scores={}), measured("q3", g=1.0)
    )
    assert [row.scores for row in rows] == [{"f": 1.0}, {"f": None, "g": None}, {"g": 1.0}]
    assert list(problems.warnings) == [
        "r:2: not measured, and written as null: f of 1 query ('q2'), g of 1 query ('q2')"
    ]


def test_no_score_at_all_is_a_problem() -> None:
    assert problems_with(Measured(location="r:2", id="q2", scores={})) == ["r: has no scores"]
    assert problems_with() == ["r: has no scores"]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (measured("a"), "a"),
        (measured(1), "1"),
        (measured("a", "WHAT"), "a"),
        (measured("b", "Who?"), "b"),
        (measured("a", "a prompt with more than the question"), "a"),
        (measured("test_x", "What?"), "a"),
        (measured(None, "what"), "a"),
    ],
)
def test_golden_queries_are_found_by_their_ids_and_questions(row: Measured, expected: str) -> None:
    rows, problems = collected(row, golden=GOLDEN)
    assert ([one.query_id for one in rows], problems) == ([expected], Problems())


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (measured("a", "Who?"), 'r:1: id: is "a", but the question is that of the golden query "b"'),
        (
            measured(None, "Who?"),
            "r:1: question: the question is that of 2 golden queries ('b', 'c'); give each row the id of its query",
        ),
        (
            measured("x"),
            'r:1: id: no golden query has "x" as its id or as its question; correct it or leave it out',
        ),
        (
            measured(None, "Where?"),
            'r:1: question: no golden query has "Where?" as its id or as its question; correct it or leave it out',
        ),
        (measured(None, None), "r:1: id: is missing; expected a golden query's id"),
    ],
)
def test_a_row_whose_golden_query_is_not_certain_is_refused(row: Measured, problem: str) -> None:
    assert problems_with(row, golden=GOLDEN) == [problem]


def test_without_a_golden_file_the_question_is_the_id_and_a_warning_says_so() -> None:
    rows, problems = collected(measured(None, "What?"), measured(7, "Who?"))
    assert [row.query_id for row in rows] == ["What?", "7"]
    assert list(problems.warnings) == [
        "r:1: 1 query ('What?') without an id: the question is the id; give --golden, to find the ids by the questions"
    ]


def test_an_id_or_a_question_that_is_too_long_for_an_id_is_refused() -> None:
    expected = "expected text of 1 to 2,000 characters, found "
    (problem,) = problems_with(measured("x" * 2_001))
    assert problem.startswith(f"r:1: id: {expected}")
    (problem,) = problems_with(measured(None, "x" * 2_001))
    assert problem.startswith(f"r:1: question: {expected}")
    assert problem.endswith("; give --golden, to find the id of this question")


def test_an_id_comes_again_for_the_same_question_only() -> None:
    rows, problems = collected(measured("a", "What?"), measured("a", "what", line=2))
    assert (len(rows), problems) == (2, Problems())
    assert problems_with(measured("a", "What?"), measured("a", "Who?", line=2)) == [
        'r:2: id: "a" has another question at r:1; give each query an id of its own'
    ]
