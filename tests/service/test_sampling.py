"""Which interactions become candidates: the shares that the project wants, each question once, if it comes twice."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from ragcontract.core import bounds
from ragcontract.service.database import Database
from ragcontract.service.mounted import Flags, Sampling
from ragcontract.service.production.flags import NAMES, flags_of, is_drawn, names_of
from ragcontract.service.tables import candidates, projects
from tests.service.ingesting import Ingesting

NUMBER, ERRORS = 30_000, 25  # different questions, of which every 25th has an error
SHARE, TOLERANCE = 0.2, 0.01


@pytest.fixture
def service(database: Database) -> Iterator[Ingesting]:
    with Ingesting(database) as service:
        fixed = projects.update().values(secret="always the same")
        service.database.write(lambda connection: connection.execute(fixed))
        service.look_again()
        yield service


def question(number: int) -> Mapping[str, Any]:
    error = {"error": "x"} if number % ERRORS == 0 else {}
    return {"id": f"{number}", "query": f"What is {number}?", **error}


def test_a_fifth_and_all_errors_are_candidates_once(service: Ingesting) -> None:
    for turn in range(2):
        for start in range(0, NUMBER, bounds.INTERACTIONS):
            answer = service.stored(*[question(start + each) for each in range(bounds.INTERACTIONS)])
            assert answer["accepted" if turn == 0 else "duplicates"] == bounds.INTERACTIONS
    rows = service.rows(candidates)
    errors = [row for row in rows if row["reason"] == "error"]
    ordinary = [row for row in rows if row["reason"] == "sampled"]
    assert len(errors) == NUMBER // ERRORS
    assert abs(len(ordinary) / (NUMBER - NUMBER // ERRORS) - SHARE) <= TOLERANCE
    assert len({row["query"] for row in rows}) == len(rows) == len(errors) + len(ordinary)
    assert {row["asked"] for row in rows} == {1}
    assert service.tally() == {"received": NUMBER, "sampled": len(rows)}


@pytest.mark.parametrize(
    ("flags", "rate"), [(0, "ok"), (1, "error"), (1 + 4, "error"), (2, "flagged"), (4, "flagged"), (16, "flagged")]
)
def test_each_kind_has_its_rate(flags: int, rate: str) -> None:
    nothing = {"ok": 0.0, "error": 0.0, "flagged": 0.0}
    ids = [f"{number}" for number in range(1_000)]
    assert all(is_drawn("s", each, flags, Sampling(**nothing | {rate: 1.0})) for each in ids)
    assert not any(is_drawn("s", each, flags, Sampling(**nothing)) for each in ids)
    half = [is_drawn("s", each, flags, Sampling(**nothing | {rate: 0.5})) for each in ids]
    assert 400 < sum(half) < 600
    assert half == [is_drawn("s", each, flags, Sampling(**nothing | {rate: 0.5})) for each in ids]
    assert half != [is_drawn("another", each, flags, Sampling(**nothing | {rate: 0.5})) for each in ids]


def test_what_is_at_a_limit_has_no_flag() -> None:
    row = {"error": None, "latency_ms": 4.0, "confidence": 0.2, "feedback": 0}
    for wanted, p95 in ((Flags(latency_ms=4, confidence_lt=0.2), None), (Flags(latency_ms="auto"), 2.0)):
        assert flags_of(row, has_no_results=False, wanted=wanted, p95=p95) == 0
    beyond = row | {"latency_ms": 4.1, "confidence": 0.19}
    wanted = Flags(latency_ms="auto", confidence_lt=0.2)
    assert names_of(flags_of(beyond, has_no_results=False, wanted=wanted, p95=2.0)) == ["slow", "low_confidence"]


def test_flags_have_names() -> None:
    row = {"error": "x", "latency_ms": 5.0, "confidence": 0.1, "feedback": -1}
    wanted = Flags(latency_ms=4, confidence_lt=0.2)
    assert names_of(flags_of(row, has_no_results=True, wanted=wanted, p95=None)) == [*NAMES]
    nothing = {"error": None, "latency_ms": None, "confidence": None, "feedback": None}
    assert flags_of(nothing, has_no_results=False, wanted=wanted, p95=1.0) == 0
