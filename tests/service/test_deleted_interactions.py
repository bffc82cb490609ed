"""Deleting interactions: what an administrator deletes leaves nothing, and what is too old goes by itself."""

from collections.abc import Iterator
from typing import Any

import pytest

from ragcontract.core import bounds
from ragcontract.service.audit import Author
from ragcontract.service.database import DAY, Database, now_ms
from ragcontract.service.production.deletion import delete_expired
from ragcontract.service.production.interactions import Interaction, add_interaction
from ragcontract.service.redaction import redactor
from ragcontract.service.retention import Retention
from ragcontract.service.tables import audit, candidates, daily, interactions, metadata, projects, tallies
from ragcontract.service.trends import Trends
from tests.service.ingesting import Ingesting
from tests.service.served import checked
from tests.service.test_ingestion import ago, asked

ANA = "Ana Ødegård"
SECRET = "unmistakable-words-of-hers"


@pytest.fixture
def service(database: Database) -> Iterator[Ingesting]:
    with Ingesting(database) as service:
        yield service


def everything(database: Database) -> bytes:
    """Return all that the database has: every table, and of SQLite the bytes of its files."""
    with database.read() as connection:
        rows = [connection.execute(table.select()).all() for table in metadata.sorted_tables]
    text = repr(rows).encode()
    if database.file is not None:
        for name in ("", "-wal"):
            text += database.file.with_name(f"{database.file.name}{name}").read_bytes()
    return text


def log(service: Ingesting) -> list[tuple[str, str, str]]:
    return [
        (row["action"], row["subject"], row["detail"])
        for row in service.rows(audit)
        if row["action"].startswith("interaction.")
    ]


def test_deleting_a_user_leaves_nothing(service: Ingesting) -> None:
    texts: Any = {"error": SECRET, "response": SECRET * 400, "tags": [SECRET], "results": [{"doc_id": SECRET}]}
    hers = texts | {"user": ANA}
    for number in range(30):  # so that some of hers are on pages of their own, and some share them with others
        service.stored(asked(query=f"{SECRET} {number}?", **hers), asked(number, user="bob", error="x"))
    service.stored(asked(query="Who else asks this?", **hers), asked(query="who else asks THIS", user="bob", error="x"))
    assert SECRET.encode() in everything(service.database)
    assert len(service.questions()) == 61
    assert service.delete(user=ANA).json() == {"deleted": 31}
    left = everything(service.database)
    for trace in (SECRET, ANA, "Ødeg", service.app.ingestion.settings.of("docs").user_digest(ANA)):  # type: ignore[union-attr]
        assert trace.encode() not in left
    assert len(service.rows()) == 31
    (shared,) = [row for row in service.rows(candidates) if "else" in row["query"]]
    assert shared["query"] == "who else asks THIS"
    assert shared["interaction_id"] == service.rows()[-1]["id"]
    assert len(service.questions()) == 31
    assert log(service) == [("interaction.delete", "project:docs", "31 interactions of a user")]
    assert service.delete(user=ANA).json() == {"deleted": 0}


def test_a_candidate_that_was_accepted_goes_with_its_only_user(service: Ingesting) -> None:
    service.stored(asked(user=ANA, error="x"), asked(1, user="bob", error="x"))
    accepted = {"state": "accepted", "row": f'{{"query": "{SECRET}"}}'}
    service.database.write(lambda connection: connection.execute(candidates.update().values(accepted)))
    service.delete(user=ANA)
    assert service.questions() == ["How do I do 1?"]


def test_one_is_deleted_by_its_id(service: Ingesting) -> None:
    long = "x" * 1_000
    service.stored(asked(id="a", error="x"), asked(1, id=long, error="x"), asked(2, id="c"))
    for name in ("a", long):
        assert service.delete(id=name).json() == {"deleted": 1}
    assert service.delete(id="none").json() == {"deleted": 0}
    assert [row["external_id"] for row in service.rows()] == ["c"]
    assert {*service.questions()} <= {"How do I do 2?"}  # by chance, it is drawn
    assert log(service)[0] == ("interaction.delete", "project:docs", "1 interaction by its id")


def test_what_was_asked_before_a_time_is_deleted(service: Ingesting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "DELETED_INTERACTIONS", 3)
    noon = now_ms() - 5 * DAY
    service.stored(*[asked(number, asked_at=noon + number - 8) for number in range(10)])
    assert service.delete(before=f"{noon}").json() == {"deleted": 8}
    assert [row["asked_at"] - noon for row in service.rows()] == [0, 1]
    assert service.delete(before="2099-01-01T00:00:00Z").json() == {"deleted": 2}
    assert [detail for _, _, detail in log(service)][1] == "2 interactions asked before 2099-01-01 00:00"


@pytest.mark.parametrize("kind", ["sqlite"])
def test_the_time_before_which_is_deleted_may_be_any(service: Ingesting) -> None:
    service.stored(asked())
    assert service.delete(before="0001-01-01T00:00:00+23:59").json() == {"deleted": 0}
    assert service.delete(before="9" * 20).json() == {"deleted": 1}
    assert service.delete(before="9999-12-31T23:59:59-23:59").json() == {"deleted": 0}
    assert log(service)[1][2] == "1 interaction asked before 9999-12-31 23:59"


@pytest.mark.parametrize("kind", ["sqlite"])
@pytest.mark.parametrize("params", [{}, {"id": "a", "user": "b"}, {"before": "yesterday"}, {"before": "2026-01-01"}])
def test_what_is_to_be_deleted_must_be_clear(params: dict[str, str], service: Ingesting) -> None:
    service.stored(asked(id="a", user="b"))
    assert checked(service.delete(**params)) == 422
    assert len(service.rows()) == 1


def expire(service: Ingesting, after: int = 0) -> None:
    author = Author(actor="retention", at=now_ms() + after)
    delete_expired(service.database, author, lambda: False)


def test_what_is_older_than_the_project_keeps_goes(service: Ingesting) -> None:
    def job(connection: Any) -> None:
        question = Interaction(query="In the playground?")
        add_interaction(
            connection, service.project, question, source="playground", redactor=redactor(), now=ago(70 * DAY)
        )

    service.database.write(job)
    service.stored(*[asked(number, asked_at=ago(5 * DAY), error="x") for number in range(4)], asked(4, error="x"))
    for number, state in ((0, "accepted"), (1, "rejected"), (2, "new")):
        changed = candidates.update().where(candidates.c.query == f"How do I do {number}?").values(state=state)
        service.database.write(lambda connection, changed=changed: connection.execute(changed))  # type: ignore[misc]
    expire(service)
    assert len(service.rows()) == 5
    service.database.write(lambda connection: connection.execute(projects.update().values(keep_days=4)))
    expire(service)
    assert [row["query"] for row in service.rows()] == ["How do I do 4?"]
    kept = {row["query"]: row["interaction_id"] for row in service.rows(candidates)}
    assert kept == {"How do I do 0?": None, "How do I do 4?": service.rows()[0]["id"]}
    assert log(service) == [
        ("interaction.expire", "project:docs", "1 interaction of more than 60 days ago"),
        ("interaction.expire", "project:docs", "4 interactions of more than 4 days ago"),
    ]


def test_days_are_kept_for_a_year(service: Ingesting) -> None:
    now = now_ms()
    today, project = now - now % DAY, service.project

    def job(connection: Any) -> None:
        for age in (0, 59, 61, 399, 401):
            of_day = {"project_id": project, "day": today - age * DAY}
            connection.execute(tallies.insert().values(**of_day, name="received", number=1))
            connection.execute(daily.insert().values(**of_day, monitor="volume", n=1, value=1.0))

    service.database.write(job)
    Retention(service.database, 0, Trends(service.database)).delete(now)
    ages = {
        table.name: [(today - row["day"]) // DAY for row in service.rows(table)][::-1] for table in (tallies, daily)
    }
    assert ages == {"tallies": [0, 59, 61, 399], "daily": [0, 59, 61, 399]}


def test_retention_deletes_interactions_too(service: Ingesting) -> None:
    service.stored(asked())
    Retention(service.database, 0, Trends(service.database)).delete(now_ms() + 61 * DAY)
    assert not service.rows(interactions)
