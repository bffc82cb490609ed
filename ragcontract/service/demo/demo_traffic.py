"""What the docs of the demo are asked in production: 60 days of interactions, as a pure function of the time.

Since day 80, people also ask about something that is new: their questions are longer, none of the golden queries is
near to them, and the docs often have nothing. Before that, nothing changes.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from random import Random
from typing import Any

import msgspec
from sqlalchemy import Connection, select

from ragcontract.service.database import DAY
from ragcontract.service.demo.demo_questions import TOPICS, new_question, question
from ragcontract.service.demo.demo_story import NIGHTS, PROJECTS, SATURDAY, Row
from ragcontract.service.production.interactions import question_digest
from ragcontract.service.tables import candidates, interactions, tallies

PROJECT = PROJECTS[0]
SEED = 38  # with which no monitor raises a false alarm, whatever day of the week it is
FIRST, CHANGED = 30, 80  # the first day, as nights are numbered, and the one since which people ask about what is new
WEEKDAY, WEEKEND = 160, 124  # interactions a day
NEW_SHARE, ERRORS, EMPTIES, NEW_EMPTIES, RATED = 0.34, 0.04, 0.03, 0.35, 0.12
SOURCES = ("website", "website", "app", "slack")
ERROR, EMPTY, TOO_SLOW, LOW_CONFIDENCE, NEGATIVE = 1, 2, 4, 8, 16  # flags
REASONS = {
    ERROR: "error",
    EMPTY: "empty",
    TOO_SLOW: "slow",
    LOW_CONFIDENCE: "low_confidence",
    NEGATIVE: "negative_feedback",
}
SLOW_MS, UNSURE, SAMPLED = 2_400, 0.5, 0.2
SLOW, SLOWER = 0.004, 6
FAILURE = "the index did not answer within 5 s"
AT_ONCE = 2_000  # rows of an INSERT
EARLIEST, LATEST = 7, 21  # hours of a day


def add_traffic(connection: Connection, project: int, now: datetime) -> None:
    """Store the interactions of the demo until a time, and the candidates among them; a job of a database."""
    rows = [row for day in range(FIRST, NIGHTS) for row in _rows_of(day, now)]
    if not connection.execute(select(interactions.c.id).where(interactions.c.project_id == project).limit(1)).first():
        for start in range(0, len(rows), AT_ONCE):
            some = [row | {"project_id": project} for row in rows[start : start + AT_ONCE]]
            connection.execute(interactions.insert(), some)
        _add_tallies(connection, project, rows)
        _add_candidates(connection, project, rows)


def _rows_of(day: int, now: datetime) -> Iterator[Row]:
    """Yield the interactions of a day, the oldest first."""
    begins = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=NIGHTS - 1 - day)
    random = Random(f"{SEED} traffic {day}")  # noqa: S311 (not for secrets)
    number = round((WEEKEND if begins.weekday() >= SATURDAY else WEEKDAY) * random.uniform(0.94, 1.06))
    start, end = round(begins.timestamp() * 1_000), round(now.timestamp() * 1_000)
    asked = _asked(day, number, random)
    hours = sorted(random.triangular(EARLIEST, LATEST, 14) for _ in asked)
    for place, ((topic, ends), hour) in enumerate(zip(asked, hours, strict=True)):
        at = start + round(hour * DAY / 24)
        if at <= end:
            yield interaction(f"demo-{day}-{place}", topic, ends, random) | {"asked_at": at, "received_at": at}


def _asked(day: int, number: int, random: Random) -> list[tuple[str, str]]:
    """Return the topics of a day, empty for what is new, and how each answer ends; in almost the same shares each day.

    By chance alone, a monitor would raise a false alarm now and then.
    """
    new = round(number * NEW_SHARE) if day >= CHANGED else 0
    topics = random.sample([*TOPICS], len(TOPICS))
    asked = [(topic, "") for topic in (*[""] * new, *(topics[place % len(topics)] for place in range(number - new)))]
    for share, ends, part in (
        (NEW_EMPTIES, "empty", range(new)),
        (EMPTIES, "empty", range(new, number)),
        (ERRORS, "error", range(number)),
    ):
        for place in random.sample(part, round(share * len(part) + random.uniform(-0.7, 0.7)) if part else 0):
            asked[place] = asked[place][0], ends
    random.shuffle(asked)
    return asked


def interaction(name: str, topic: str, ends: str, random: Random) -> Row:
    """Return what was asked and answered."""
    row = _good_rows()[topic or random.choice([*TOPICS])]
    query = question(topic, random) if topic else new_question(random)
    failed = ends == "error"
    drop = 0.0 if topic else random.uniform(0.2, 0.3)
    results: list[Row] | None = [
        result | {"score": round(result["score"] - drop - random.uniform(0, 0.09), 3)} for result in row["results"]
    ]
    if failed:
        results = None
    elif ends == "empty":
        results = []
    slower = SLOWER if random.random() < SLOW else 1
    latency = round(row["latency_ms"] * slower * random.lognormvariate(0, 0.35), 1)
    made = {
        "external_id": name,
        "source": random.choice(SOURCES),
        "query": query,
        "query_sha": question_digest(query),
        "response": None if failed else row["response"] if topic else "I could not find this in our documentation.",
        "error": FAILURE if failed else None,
        "results": None if results is None else msgspec.json.encode(results).decode(),
        "latency_ms": latency,
        "confidence": None if failed else round(min(0.99, max(0.05, random.gauss(0.82 - 1.3 * drop, 0.1))), 2),
        "feedback": _feedback(topic, random),
        "user_sha": hashlib.sha256(f"demo user {random.randrange(400)}".encode()).hexdigest(),
        "tags": None,
    }
    return made | {"flags": _flags(made)}


def _feedback(topic: str, random: Random) -> int | None:
    if random.random() >= RATED:
        return None
    return -1 if random.random() < (0.15 if topic else 0.6) else 1


def _flags(row: Mapping[str, Any]) -> int:
    flags = {
        ERROR: row["error"] is not None,
        EMPTY: row["results"] == "[]",
        TOO_SLOW: row["latency_ms"] > SLOW_MS,
        LOW_CONFIDENCE: row["confidence"] is not None and row["confidence"] < UNSURE,
        NEGATIVE: row["feedback"] == -1,
    }
    return sum(bit for bit, is_so in flags.items() if is_so)


@cache
def _good_rows() -> Mapping[str, Row]:
    lines = (PROJECT.folder / "run.jsonl").read_bytes().splitlines()
    return {row["query_id"]: row for row in map(msgspec.json.decode, lines)}


def golden_questions() -> Mapping[str, str]:
    """Return the questions of the golden queries by their ids, which are the topics."""
    lines = (PROJECT.folder / "golden.jsonl").read_bytes().splitlines()
    return {row["id"]: row["query"] for row in map(msgspec.json.decode, lines)}


@cache
def _golden() -> frozenset[str]:
    return frozenset(map(question_digest, golden_questions().values()))


def _is_drawn(row: Row) -> bool:
    draw: float = Random(f"{SEED} {row['external_id']}").random()  # noqa: S311 (not for secrets)
    return row["flags"] > 0 or draw < SAMPLED


def _add_tallies(connection: Connection, project: int, rows: Sequence[Row]) -> None:
    counts: Counter[tuple[int, str]] = Counter()
    for row in rows:
        day, is_drawn = row["asked_at"] // DAY * DAY, _is_drawn(row)
        counts[day, "received"] += 1
        counts[day, "sampled"] += is_drawn
        counts[day, "golden"] += is_drawn and row["query_sha"] in _golden()
    values = [
        {"project_id": project, "day": day, "name": name, "number": number} for (day, name), number in counts.items()
    ]
    if values:
        connection.execute(tallies.insert(), values)


def _add_candidates(connection: Connection, project: int, rows: Sequence[Row]) -> None:
    """Store each question that was drawn as a candidate, unless it is golden."""
    drawn = [row for row in rows if _is_drawn(row) and row["query_sha"] not in _golden()]
    asked = Counter(row["query_sha"] for row in drawn)
    columns = interactions.c.external_id, interactions.c.id
    stored = connection.execute(select(*columns).where(interactions.c.project_id == project))
    ids = {row.external_id: row.id for row in stored}
    firsts = {row["query_sha"]: row for row in reversed(drawn)}.values()  # the first time that each was asked
    if firsts:
        connection.execute(candidates.insert(), [_candidate(row, project, ids, asked) for row in firsts])


def _candidate(row: Row, project: int, ids: Mapping[str, int], asked: Mapping[str, int]) -> Row:
    return {
        "project_id": project,
        "query_sha": row["query_sha"],
        "query": row["query"],
        "interaction_id": ids[row["external_id"]],
        "reason": next((name for bit, name in REASONS.items() if row["flags"] & bit), "sampled"),
        "state": "new",
        "created_at": row["asked_at"],
        "asked": asked[row["query_sha"]],
    }
