"""Measures a day: the values of all monitors, and what later days are compared with.

The number of interactions, errors, empty results and feedback count all of them; the database does that. All else is
measured of a draw, which is read in small portions, so that a day of a million interactions takes no more memory than a
day of a thousand. Between portions, others have a turn. What was asked in the playground is left out.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean, median
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, Row, case, func, select

from ragcontract.core import bounds
from ragcontract.service.database import DAY, Database
from ragcontract.service.production.golden_coverage import GoldenSet
from ragcontract.service.production.interactions import PLAYGROUND
from ragcontract.service.production.sketches import DOCUMENTS, GRAMS, KINDS, Sketch, document_hash, grams_in, union_of
from ragcontract.service.tables import interactions, sketches

NEW = 28  # days after which what was not asked or found is new again
KNOWN_DAYS = 7  # of them that must be known, so that a week is, before anything is new
PORTION = 50  # interactions
# Draws by a multiple of the id, which spreads ids that follow each other over all numbers below the prime.
_PRIME, _FACTOR = 2_147_483_647, 1_103_515_245
Turn = Callable[[], None]


class Value(Struct, frozen=True, kw_only=True):
    """The value of a monitor, and how many interactions it was measured of."""

    n: int
    value: float


class MeasuredDay(Struct, frozen=True, kw_only=True):
    """What was measured of a day; a monitor without what it measures has no value."""

    values: Mapping[str, Value]
    sketches: Mapping[str, bytes]


def measure(
    database: Database, project: int, day: int, golden: GoldenSet, turn: Turn = lambda: None, *, portion: int = PORTION
) -> MeasuredDay:
    """Measure a day of a project that is over. Only reads; ``turn`` is called after each piece of work."""
    of_day = _of_day(project, day)
    with database.read() as connection:
        values = {**_counted(connection, of_day)}
        number = values["volume"].n
        drawn = _drawn(connection, of_day, number) if number else []
        known, days = _known(connection, project, day)
    draw = _Draw(golden, known)
    for start in range(0, len(drawn), portion):
        turn()
        with database.read() as connection:
            rows = _rows(connection, drawn[start : start + portion])
        for row in rows:
            draw.add(row)
            turn()
    values |= draw.values(days)
    return MeasuredDay(values=values, sketches={kind: sketch.packed() for kind, sketch in draw.sketches.items()})


def of_production(project: int) -> "ColumnElement[bool]":
    """Return the condition that an interaction of a project counts."""
    return (interactions.c.project_id == project) & (interactions.c.source != PLAYGROUND)


def _of_day(project: int, day: int) -> "ColumnElement[bool]":
    return of_production(project) & (interactions.c.asked_at >= day) & (interactions.c.asked_at < day + DAY)


def _counted(connection: Connection, of_day: "ColumnElement[bool]") -> dict[str, Value]:
    """Return what is counted of all interactions."""
    columns = interactions.c
    counts = (
        func.count(),
        func.count(columns.error),
        func.count(columns.results),
        func.count(case((columns.results == "[]", 1))),
        func.count(columns.feedback),
        func.count(case((columns.feedback < 0, 1))),
    )
    ((number, errors, listed, empty, rated, negative),) = connection.execute(select(*counts).where(of_day))
    values = {"volume": Value(n=number, value=float(number))}
    for name, part, of in (
        ("error_rate", errors, number),
        ("empty_rate", empty, listed),
        ("negative_rate", negative, rated),
    ):
        if of:
            values[name] = Value(n=of, value=part / of)
    return values


def _drawn(connection: Connection, of_day: "ColumnElement[bool]", number: int) -> Sequence[int]:
    """Return the ids of the interactions that are drawn, always the same ones."""
    ids = select(interactions.c.id).where(of_day)
    if number > bounds.MONITOR_DRAWN:
        ids = ids.order_by(interactions.c.id % _PRIME * _FACTOR % _PRIME, interactions.c.id)
    else:
        ids = ids.order_by(interactions.c.id)
    return connection.execute(ids.limit(bounds.MONITOR_DRAWN)).scalars().all()


def _known(connection: Connection, project: int, day: int) -> tuple[dict[str, Sketch], dict[str, int]]:
    """Return the unions of the sketches of the days before, by their kinds, and of how many days they are."""
    before = sketches.c.project_id == project, sketches.c.day >= day - NEW * DAY, sketches.c.day < day
    known, days = {}, {}
    for kind in KINDS:
        bodies = connection.execute(select(sketches.c.body).where(*before, sketches.c.kind == kind)).scalars().all()
        known[kind], days[kind] = union_of(bodies), len(bodies)
    return known, days


def _rows(connection: Connection, ids: Sequence[int]) -> "Sequence[Any]":
    columns = interactions.c.query, interactions.c.query_sha, interactions.c.results, interactions.c.latency_ms
    return connection.execute(select(*columns).where(interactions.c.id.in_(ids))).all()


class _Result(Struct):
    """What is read of a result; all else in it is passed over."""

    doc_id: str | int | None = None
    score: float | str | None = None


class _Draw:
    """What is measured of the interactions that are drawn."""

    def __init__(self, golden: GoldenSet, known: Mapping[str, Sketch]) -> None:
        self._golden, self._known = golden, known
        known[DOCUMENTS].add(golden.documents)
        self.sketches: dict[str, Sketch] = {}
        self._lengths: list[int] = []
        self._covered: list[bool] = []
        self._unseen: list[float] = []
        self._unknown: list[float] = []
        self._tops: list[float] = []
        self._gaps: list[float] = []
        self._latencies: list[float] = []

    def add(self, row: "Row[Any]") -> None:
        """Measure an interaction."""
        self._lengths.append(len(row.query))
        if self._golden.is_enough:
            self._covered.append(self._golden.covers(row.query, row.query_sha))
        self._add_hashes(GRAMS, grams_in(row.query), self._unseen)
        results = _results_of(row.results)
        documents = [document_hash(f"{result.doc_id}") for result in results if result.doc_id is not None]
        self._add_hashes(DOCUMENTS, documents, self._unknown)
        top, second = [*(_score(result) for result in results[:2]), None, None][:2]
        if top is not None:
            self._tops.append(top)
            if second is not None:
                self._gaps.append(top - second)
        if row.latency_ms is not None and row.latency_ms <= bounds.MILLISECONDS:  # else nobody measured it
            self._latencies.append(row.latency_ms)

    def _add_hashes(self, kind: str, hashes: Sequence[int], shares: list[float]) -> None:
        if hashes:
            shares.append(self._known[kind].share_unknown(hashes))
            self.sketches.setdefault(kind, Sketch()).add(hashes)

    def values(self, days: Mapping[str, int]) -> dict[str, Value]:
        """Return the values of the monitors that have one; ``days`` of sketches are known."""
        return dict(self._values(days))

    def _values(self, days: Mapping[str, int]) -> Iterator[tuple[str, Value]]:
        for name, values, middle in (
            ("question_length", self._lengths, median),
            ("unseen_grams", self._unseen if days[GRAMS] >= KNOWN_DAYS else [], fmean),
            ("top_score", self._tops, median),
            ("score_gap", self._gaps, median),
            ("latency_p50", self._latencies, median),
            ("latency_p95", self._latencies, _p95),
            ("unknown_documents", self._unknown if days[DOCUMENTS] >= KNOWN_DAYS else [], fmean),
            ("golden_coverage", self._covered, fmean),
        ):
            if values:
                yield name, Value(n=len(values), value=float(middle(values)))


def _results_of(text: str | None) -> Sequence[_Result]:
    """Return the results of an interaction; none if they are no list of results."""
    try:
        return [] if text is None else msgspec.json.decode(text, type=list[_Result])
    except msgspec.MsgspecError:
        return []


def _score(result: _Result) -> float | None:
    """Return the score of a result; None if it is no number that anybody would compare."""
    score = result.score
    return score if isinstance(score, float) and abs(score) <= bounds.SCORE else None


def _p95(values: Sequence[float]) -> float:
    """Return the smallest value that 95 % are not above."""
    return sorted(values)[-(-95 * len(values) // 100) - 1]
