"""What is measured of a day: the values of monitors, and what later days are compared with."""

from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import event, select

from ragcontract.core import bounds
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.phrase import Location
from ragcontract.service.database import DAY, Database
from ragcontract.service.production.golden_coverage import FEWEST, GoldenSet, documents_of
from ragcontract.service.production.measured_day import KNOWN_DAYS, NEW, measure
from ragcontract.service.production.monitors import MONITORS
from ragcontract.service.production.sketches import Sketch, grams_in, union_of
from ragcontract.service.tables import sketches
from tests.service.conftest import HOSTILE
from tests.service.production_traffic import TODAY, Row, asked, new_project, results, store

YESTERDAY = TODAY - DAY
NO_GOLDEN = GoldenSet([])
GOLDEN = (
    "How do I invite a teammate?",
    "How do I remove a teammate?",
    "What does the Team plan cost?",
    "What does the Free plan cost?",
    "Where do I get a copy of an invoice?",
    "Where do I get a copy of a receipt?",
    "How do I export a board?",
    "How do I import a board?",
    "How do I make an API key?",
    "How do I delete an API key?",
)


def golden_set(texts: Sequence[str] = GOLDEN, documents: Sequence[str] = ()) -> GoldenSet:
    return GoldenSet(
        [
            GoldenQuery(id=f"{place}", query=text, relevant_doc_ids=tuple(documents), location=Location(""))
            for place, text in enumerate(texts)
        ]
    )


def values_of(
    database: Database, rows: Sequence[Row], golden: GoldenSet = NO_GOLDEN, **options: Any
) -> dict[str, tuple[int, float]]:
    """Store what was asked yesterday and measure it: the values of monitors, and of how many they are."""
    project = new_project(database)
    store(database, project, rows)
    measured = measure(database, project, YESTERDAY, golden, **options)
    assert measured.values.keys() <= MONITORS.keys()
    return {name: (each.n, each.value) for name, each in measured.values.items()}


def with_fields(number: int, *fields: Row) -> list[Row]:
    """Return so many interactions of yesterday, the first of which have these fields."""
    rows = asked(1, number)
    return [row | of_row for row, of_row in zip(rows, [*fields, *[{}] * (number - len(fields))], strict=True)]


def test_counts_are_of_all_interactions(database: Database) -> None:
    rows = with_fields(
        10,
        {"error": "timeout", "results": None},
        {"error": "timeout", "results": None},
        {"results": "[]", "feedback": -1},
        {"feedback": 1},
        {"feedback": 0},
        {"feedback": -1},
    )
    values = values_of(database, rows)
    assert values["volume"] == (10, 10.0)
    assert values["error_rate"] == (10, 0.2)
    assert values["empty_rate"] == (8, 0.125)
    assert values["negative_rate"] == (4, 0.5)


def test_texts_scores_and_latency_have_medians_and_a_percentile(database: Database) -> None:
    fields = [
        {"query": "x" * (10 + place), "latency_ms": float(place), "results": f'[{{"doc_id":"a","score":{place}}}]'}
        for place in range(100)
    ]
    fields[0] |= {"latency_ms": None, "results": '[{"doc_id":"a","score":7},{"doc_id":"b","score":6.5}]'}
    fields[1] |= {"results": '[{"doc_id":"a"},{"doc_id":"b","score":6}]'}
    values = values_of(database, with_fields(100, *fields))
    assert values["question_length"] == (100, 59.5)
    assert values["latency_p50"] == (99, 50.0)
    assert values["latency_p95"] == (99, 95.0)
    assert values["top_score"] == (99, 50.0)
    assert values["score_gap"] == (1, 0.5)


@pytest.mark.parametrize(("number", "rank"), [(1, 1), (19, 19), (20, 19), (21, 20), (40, 38)])
def test_the_95th_percentile_is_the_smallest_that_95_percent_are_not_above(
    number: int, rank: int, database: Database
) -> None:
    fields = [{"latency_ms": float(place)} for place in range(number, 0, -1)]
    assert values_of(database, with_fields(number, *fields))["latency_p95"] == (number, float(rank))


def test_a_latency_that_nobody_measured_is_passed_over(database: Database) -> None:
    values = values_of(database, with_fields(4, *[{"latency_ms": 1.7e308}] * 3))
    assert (values["latency_p50"], values["latency_p95"]) == ((1, 500.0), (1, 500.0))


def test_a_day_without_interactions_has_only_their_number(database: Database) -> None:
    assert values_of(database, asked(2)) == {"volume": (0, 0.0)}


def test_what_is_not_known_has_no_value(database: Database) -> None:
    bare = {"results": None, "latency_ms": None, "feedback": None}
    values = values_of(database, with_fields(3, *[bare] * 3))
    assert values.keys() == {"volume", "error_rate", "question_length"}


def test_the_playground_and_other_days_and_projects_are_left_out(database: Database) -> None:
    other = new_project(database, "other")
    store(database, other, asked(1, 7))
    rows = [*asked(1, 5), *asked(1, 3, question="Play {}", source="playground"), *asked(0, 2), *asked(2, 2)]
    rows.append(asked(1, 1, question="Last {}")[0] | {"asked_at": TODAY - 1})
    assert values_of(database, rows)["volume"] == (6, 6.0)


def test_a_draw_of_a_day_is_always_the_same(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MONITOR_DRAWN", 20)
    rows = [row | {"query": "x" * (place + 1)} for place, row in enumerate(asked(1, 400))]
    first = values_of(database, rows)
    assert first["volume"] == (400, 400.0)
    assert first["error_rate"] == (400, 0.0)
    assert first["question_length"][0] == 20
    assert 100 < first["question_length"][1] < 300  # from all over the day
    again = measure(database, new_project(database), YESTERDAY, NO_GOLDEN)
    assert {name: (each.n, each.value) for name, each in again.values.items()} == first


def test_a_day_of_any_size_is_read_in_small_portions(database: Database) -> None:
    project, turns = new_project(database), []
    store(database, project, asked(1, 200))
    statements: list[str] = []
    event.listen(database.engine, "before_cursor_execute", lambda _c, _cursor, text, *_: statements.append(text))
    measure(database, project, YESTERDAY, NO_GOLDEN, lambda: turns.append(1), portion=10)
    assert sum("interactions.query_sha" in text for text in statements) == 20
    assert len(turns) >= 200


def days_before(database: Database, project: int, days: Sequence[int], question: str, doc_id: str) -> None:
    """Store days with what they are compared with."""
    for day in days:
        store(database, project, asked(day, 3, question=question, results=results(doc_id)))
        of_day = measure(database, project, TODAY - day * DAY, NO_GOLDEN)
        rows = [
            {"project_id": project, "day": TODAY - day * DAY, "kind": kind, "body": body}
            for kind, body in of_day.sketches.items()
        ]
        database.write(lambda connection, rows=rows: connection.execute(sketches.insert(), rows))  # type: ignore[misc]


@pytest.mark.parametrize(
    ("days", "is_new"),
    [(range(2, 2 + KNOWN_DAYS), False), (range(2, 1 + KNOWN_DAYS), None), (range(NEW + 2, NEW + 20), None)],
    ids=["known", "too few days", "long ago"],
)
def test_what_was_asked_and_found_in_28_days_is_not_new(
    days: Sequence[int], is_new: bool | None, database: Database
) -> None:
    project = new_project(database)
    days_before(database, project, days, "Where is my parcel?", "d1")
    store(database, project, asked(1, 4, question="Where is my parcel?", results=results("d1")))
    values = measure(database, project, YESTERDAY, NO_GOLDEN).values
    for name in ("unseen_grams", "unknown_documents"):
        assert (name in values) == (is_new is not None)
        if name in values:
            assert (values[name].n, values[name].value) == (4, 0.0)


def test_new_words_and_documents_are_told_by_their_shares(database: Database) -> None:
    project = new_project(database)
    days_before(database, project, range(2, 12), "Where is my parcel?", "d1")
    of_day = [
        *asked(1, 2, question="Where is my parcel?", results=results("d1", "d2", "d3", "d4")),
        *asked(1, 2, question="Quux zwölf!", results=results("golden")),
    ]
    store(database, project, of_day)
    values = measure(database, project, YESTERDAY, golden_set(documents=["golden", "d4"])).values
    assert values["unseen_grams"].value == 0.5
    assert values["unknown_documents"].value == 0.25  # half of two, none of two


def test_day_28_before_is_known_and_day_29_is_not(database: Database) -> None:
    project = new_project(database)
    days_before(database, project, range(2, 12), "Where is my parcel?", "d1")
    days_before(database, project, [NEW + 1], "Quux zwölf!", "d28")
    days_before(database, project, [NEW + 2], "Vext jörmun!", "d29")
    store(database, project, asked(1, 1, question="Quux zwölf!", results=results("d28")))
    store(database, project, asked(1, 1, question="Vext jörmun!", results=results("d29")))
    values = measure(database, project, YESTERDAY, NO_GOLDEN).values
    assert values["unseen_grams"].value == values["unknown_documents"].value == 0.5


def test_a_gap_may_be_negative_and_all_documents_of_golden_queries_are_known(database: Database) -> None:
    rows = asked(1, 1, results='[{"doc_id":"d1","score":0.5},{"doc_id":"d2","score":0.75}]')
    assert values_of(database, rows)["score_gap"] == (1, -0.25)
    query = GoldenQuery(
        id="1",
        query="?",
        relevant_doc_ids=("a",),
        forbidden_doc_ids=("b",),
        relevance={"c": 1},
        location=Location(""),
    )
    assert {*documents_of(query)} == {"a", "b", "c"}


def test_a_question_is_covered_if_it_is_as_near_as_golden_queries_are_to_each_other(database: Database) -> None:
    golden = golden_set()
    near, far = "How can I invite a teammate?", "Does the robot vacuum the stairs?"
    rows = [*asked(1, 3, question=near), *asked(1, 1, question=far)]
    assert values_of(database, rows, golden)["golden_coverage"] == (4, 0.75)
    assert 0 < golden.least < 1


def test_one_in_ten_golden_queries_may_be_farther_from_the_others() -> None:
    texts = [f"How do I export a board of kind {letter}?" for letter in "abcdefghijklmnopqrs"]
    strict, outlier = golden_set(texts), golden_set([*texts, "Zyx wvut!"])
    assert outlier.least == pytest.approx(strict.least, abs=0.1)
    assert outlier.least > 0.5
    assert golden_set([*texts, "Zyx wvut!", "Qponm lkj!", "Ihgf edcb!"]).least < 0.1


def test_of_few_golden_queries_nothing_is_told(database: Database) -> None:
    assert "golden_coverage" not in values_of(database, asked(1), golden_set(GOLDEN[: FEWEST - 1]))


def test_golden_queries_that_are_alike_or_empty_are_no_error(database: Database) -> None:
    golden = golden_set([*["Same?"] * 10, "", "!"])
    assert values_of(database, asked(1, 2, question="Same!"), golden)["golden_coverage"] == (2, 1.0)


@pytest.mark.parametrize(
    "stored",
    [
        "not JSON",
        "{}",
        '[{"doc_id": 7, "score": "high"}]',
        '[{"doc_id": null, "score": null}]',
        "[[]]",
        '[{"score": 1e308}, {"score": -1e308}]',
    ],
)
def test_results_that_nobody_expects_are_no_error(stored: str, database: Database) -> None:
    values = values_of(database, asked(1, 2, results=stored))
    assert values["empty_rate"] == (2, 0.0)
    assert all(abs(value) < float("inf") for _, value in values.values())


@pytest.mark.parametrize("text", [HOSTILE, "\u0130" * 3_000, "?", " ", "a", "\U0001f600" * 20_000])
def test_hostile_questions_are_measured(text: str, database: Database) -> None:
    values = values_of(database, asked(1, 2, question=text.replace("{", "")), golden_set([*GOLDEN, HOSTILE]))
    assert values["question_length"] == (2, float(len(text)))


def test_a_sketch_is_small_and_forgets_nothing() -> None:
    sketch = Sketch()
    hashes = [gram for number in range(2_000) for gram in grams_in(f"Where is order {number * 7919}, please?")]
    sketch.add(hashes)
    packed = sketch.packed()
    assert len(packed) < 40_000
    known = union_of([packed, Sketch().packed()])
    assert known.share_unknown(hashes) == 0
    assert known.share_unknown(grams_in("Quux zwölf!")) > 0.9


def test_the_same_question_in_other_cases_has_the_same_grams() -> None:
    assert grams_in("Where  IS it?") == grams_in("where is it")
    assert grams_in("!?") == []


def test_sketches_are_those_of_the_day(database: Database) -> None:
    project = new_project(database)
    store(database, project, asked(1, 1))
    of_day = measure(database, project, YESTERDAY, NO_GOLDEN).sketches
    assert of_day.keys() == {"grams", "documents"}
    with database.read() as connection:
        assert connection.execute(select(sketches)).all() == []  # it only reads
