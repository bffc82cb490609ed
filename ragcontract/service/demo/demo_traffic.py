"""What the docs of the demo are asked in production: 60 days of interactions, as a pure function of the time.

Since day 80, people also ask about something that is new: their questions are longer, none of the golden queries is
near to them, and the docs often have nothing. Before that, nothing changes.
"""

import hashlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from random import Random

import msgspec
from sqlalchemy import Connection

from ragcontract.service.database import DAY
from ragcontract.service.demo.demo_questions import TOPICS, new_question, question
from ragcontract.service.demo.demo_story import NIGHTS, PROJECTS, SATURDAY, Row
from ragcontract.service.mounted import Flags, ProjectFile
from ragcontract.service.production.flags import flags_of, is_drawn
from ragcontract.service.production.incoming import Stored
from ragcontract.service.production.interactions import question_digest
from ragcontract.service.production.project_settings import ProjectSettings
from ragcontract.service.production.storing import Batch, store

PROJECT = PROJECTS[0]
SEED = 38  # with which no monitor raises a false alarm, whatever day of the week it is
FIRST, CHANGED = 30, 80  # the first day, as nights are numbered, and the one since which people ask about what is new
WEEKDAY, WEEKEND = 160, 124  # interactions a day
NEW_SHARE, ERRORS, EMPTIES, NEW_EMPTIES, RATED = 0.34, 0.04, 0.03, 0.35, 0.12
SOURCES = ("website", "website", "app", "slack")
FILE = ProjectFile(flag=Flags(latency_ms=2_400, confidence_lt=0.5))  # what flags its interactions
SLOW, SLOWER = 0.004, 6
FAILURE = "the index did not answer within 5 s"
EARLIEST, LATEST = 7, 21  # hours of a day


def add_traffic(connection: Connection, project: int, now: datetime) -> None:
    """Store the interactions of the demo until a time, with the candidates among them; a job of a database."""
    # Draws the same candidates each time, as no secret of a real project does.
    settings = ProjectSettings(project=project, slug=PROJECT.slug, secret=f"{SEED}", file=FILE, golden=_golden())
    for day in range(FIRST, NIGHTS):
        if items := [_item(row | {"project_id": project}, settings) for row in _rows_of(day, now)]:
            store(connection, [Batch(settings=settings, items=items)], now=items[-1].row["asked_at"])


def _item(row: Row, settings: ProjectSettings) -> Stored:
    flags = flags_of(row, has_no_results=row["results"] == "[]", wanted=FILE.flag, p95=None)
    drawn = is_drawn(settings.secret, row["external_id"], flags, FILE.sampling)
    return Stored(row | {"flags": flags}, row["asked_at"] // DAY * DAY, drawn)


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
    return {
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


def _feedback(topic: str, random: Random) -> int | None:
    if random.random() >= RATED:
        return None
    return -1 if random.random() < (0.15 if topic else 0.6) else 1


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
