"""What applications send of production: what is taken, what is refused and why, and what the database has of it."""

import gzip
import json
import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import URL
from sqlalchemy.exc import DBAPIError

from ragcontract.core import bounds
from ragcontract.service.accounts import Principal
from ragcontract.service.database import DAY, Database, now_ms
from ragcontract.service.production import project_settings
from ragcontract.service.production.incoming import prepared
from ragcontract.service.production.project_settings import SettingsOfProjects
from ragcontract.service.production.storing import Batch
from ragcontract.service.projects_and_runs import add_project
from ragcontract.service.tables import candidates, daily, projects, tallies
from ragcontract.service.web import request_limits
from ragcontract.service.web.request_limits import Buckets
from tests.builders import golden
from tests.service.conftest import open_database
from tests.service.ingesting import PATH, Ingesting, mounted
from tests.service.served import Served, checked

MAIL, CARD = "ana@example.com", "4111 1111 1111 1111"


@pytest.fixture
def service(database: Database) -> Iterator[Ingesting]:
    with Ingesting(database) as service:
        yield service


def asked(number: int = 0, **fields: Any) -> dict[str, Any]:
    return {"query": f"How do I do {number}?", **fields}


def ago(milliseconds: int) -> int:
    return now_ms() - milliseconds


def test_what_is_sent_is_stored(service: Ingesting) -> None:
    at = ago(5_000)
    sent = asked(
        id=17,
        asked_at=at,
        source="app",
        response="like this",
        error="it failed",
        results=[{"doc_id": "d1", "score": 0.5}, {"doc_id": 2}],
        latency_ms=12,
        confidence=0.25,
        feedback=-1,
        user="ana",
        tags=["a", "b"],
    )
    assert service.stored(sent) == {"accepted": 1, "duplicates": 0, "rejected": [], "more_rejected": 0}
    (row,) = service.rows()
    assert at < row.pop("received_at") <= now_ms()
    for name in ("id", "query_sha", "project_id"):
        row.pop(name)
    assert len(row.pop("user_sha")) == 64
    assert row == {
        "external_id": "17",
        "asked_at": at,
        "source": "app",
        "query": "How do I do 0?",
        "response": "like this",
        "error": "it failed",
        "results": '[{"doc_id":"d1","score":0.5},{"doc_id":"2"}]',
        "latency_ms": 12.0,
        "confidence": 0.25,
        "feedback": -1,
        "flags": 1 + 16,
        "tags": '["a","b"]',
    }


def test_the_names_of_the_harness_mean_the_same(service: Ingesting) -> None:
    log = {
        "source": "production-api",
        "query": "What is the return policy?",
        "answer": "You can return items within 30 days...",
        "latency_ms": 1200,
        "tags": ["returns", "policy"],
        "status": "success",
        "confidence_score": 0.9,
        "user_feedback": "thumbs_up",
    }
    assert service.send(log, {**log, "query": "x", "status": "failed"}, name="logs").json()["accepted"] == 2
    first, second = service.rows()
    assert (first["response"], first["confidence"], first["feedback"]) == (log["answer"], 0.9, 1)
    assert (first["source"], first["error"], first["flags"]) == ("production-api", None, 0)
    assert (second["error"], second["flags"]) == ("status failed", 1)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        *[(each, None) for each in ("ok", "completed", "200", 200, 302, "", "whatever")],
        *[(each, f"status {each}") for each in ("error", "Failed", "timeout", 500, "404", 400, "9" * 30)],
    ],
)
def test_a_status_is_an_error_if_it_says_so(status: object, error: str | None, service: Ingesting) -> None:
    service.stored(asked(status=status), asked(1, status=status, error="its own"))
    assert [row["error"] for row in service.rows()] == [error, "its own"]


@pytest.mark.parametrize(
    ("feedback", "stored"),
    [
        (1, 1),
        (0, 0),
        (-1, -1),
        (True, 1),
        (False, -1),
        ("thumbs_down", -1),
        (" Positive ", 1),
        ("neutral", 0),
        ("+1", 1),
    ],
)
@pytest.mark.parametrize("name", ["feedback", "user_feedback"])
def test_feedback_is_a_number_or_a_word(name: str, feedback: object, stored: int, service: Ingesting) -> None:
    service.stored(asked() | {name: feedback})
    assert service.rows()[0]["feedback"] == stored


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no question": ({"query": None}, "query: expected text of 1 to 20,000 characters"),
    "an empty question": ({"query": ""}, "query: expected text of 1 to 20,000 characters"),
    "a blank question": ({"query": " \n"}, "query: is blank"),
    "a question that is too long": ({"query": "x" * 20_001}, "query: expected text of 1 to 20,000 characters"),
    "a response that is too long": (
        {"response": "x" * 100_001},
        "response: expected text of at most 100,000 characters",
    ),
    "too many results": ({"results": [{"doc_id": "d"}] * 101}, "results: expected a list of at most 100 results"),
    "too many tags": ({"tags": ["t"] * 21}, "tags: expected a list of at most 20 tags"),
    "a field that is not known": ({"respnse": "x"}, "respnse: unknown key; did you mean 'response'?"),
    "a field of a result that is not known": (
        {"results": [{"doc_id": "d", "text": "x"}]},
        "results[0].text: unknown key",
    ),
    "a score that is text": ({"results": [{"doc_id": "d", "score": "x"}]}, "results[0].score: expected a number"),
    "a confidence above 1": ({"confidence": 80}, "confidence: expected a number from 0 to 1"),
    "a latency below 0": ({"latency_ms": -1}, "latency_ms: expected"),
    "feedback that is another word": ({"feedback": "meh"}, "feedback: expected -1, 0 or 1"),
    "feedback that is another number": ({"feedback": 5}, "feedback: expected -1, 0 or 1"),
    "a field by both names": ({"response": "x", "answer": "x"}, "answer: is the same as response; send one"),
    "feedback by both names": ({"feedback": 1, "user_feedback": 1}, "user_feedback: is the same as feedback"),
    "the source of the playground": ({"source": "playground"}, "source: playground is what the service itself"),
    "a time that is ahead": ({"asked_at": now_ms() + DAY}, "asked_at: is more than 5 minutes ahead"),
    "a time in seconds": ({"asked_at": now_ms() // 1_000}, "asked_at: is older than the 60 days"),
    "a time without a zone": (
        {"asked_at": "2026-11-29T17:40:00"},
        "asked_at: expected milliseconds since 1970, or ISO",
    ),
    "a time that is none": ({"asked_at": "yesterday"}, "asked_at: expected milliseconds since 1970, or ISO"),
}


@pytest.mark.parametrize("kind", ["sqlite"])
@pytest.mark.parametrize("name", REFUSED)
def test_an_interaction_is_rejected_by_itself(name: str, service: Ingesting) -> None:
    fields, problem = REFUSED[name]
    answer = service.stored(asked(), asked(1) | fields, asked(2))
    (rejected,) = answer["rejected"]
    assert rejected["index"] == 1
    assert rejected["problem"].startswith(problem)
    assert (answer["accepted"], len(service.rows())) == (2, 2)
    alone = service.send(asked(1) | fields)
    assert checked(alone) == 422
    assert alone.json()["problems"][0].startswith(f"interactions[0].{problem}")


@pytest.mark.parametrize("kind", ["sqlite"])
@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b'{"interactions": [{"query": "\xff"}]}', 422),
        (b"[" * 100_000, 422),
        (b'{"interactions": [{"query": "x", "latency_ms": NaN}]}', 400),
        (b"[]", 422),
        (b"{}", 422),
        (b'{"interactions": []}', 422),
        (b'{"interactions": [1]}', 422),
        (b'{"interactions": {}}', 422),
        (b'{"interactions": [{"query": "x"}], "logs": [{"query": "x"}]}', 422),
        (b'{"interactions": [{"query": "x"}], "more": 1}', 422),
        (b'{"interactions": [' + b",".join([b'{"query": "x"}'] * 1_001) + b"]}", 422),
    ],
)
def test_a_body_that_has_no_interactions_is_refused(body: bytes, status: int, service: Ingesting) -> None:
    assert checked(service.send_bytes(body)) == status
    assert not service.rows()


def test_a_character_that_no_text_can_have_harms_no_other_interaction(service: Ingesting) -> None:
    body = rb'{"interactions": [{"query": "a"}, {"query": "c\ud83d"}, {"query": "b\u0000"}]}'
    assert service.send_bytes(body).json()["accepted"] == 3
    assert [row["query"] for row in service.rows()] == ["a", r"c\ud83d", "b\ufffd"]


@pytest.mark.parametrize("kind", ["sqlite"])
def test_halves_of_characters_are_found_in_any_escapes(service: Ingesting) -> None:
    texts = [r"\ud83d\ude00 \ud83d", r"\\\ud83d\n\"", r"\\ud83d", r"\ude00\ud83d", r"\ud83d\uD83D\uDE00\u00e4"]
    body = ",".join(f'{{"query": "{text}"}}' for text in texts)
    assert service.send_bytes(b"\xef\xbb\xbf" + f'{{"interactions": [{body}]}}'.encode()).json()["accepted"] == 5
    found = ["\U0001f600 \\ud83d", '\\\\ud83d\n"', "\\ud83d", "\\ude00\\ud83d", "\\ud83d\U0001f600\u00e4"]
    assert [row["query"] for row in service.rows()] == found


@pytest.mark.parametrize("kind", ["sqlite"])
def test_not_all_is_said_of_a_large_interaction(service: Ingesting) -> None:
    answer = service.stored(asked(), asked(1, response=[[]] * 100_000, query=1))
    assert [each["problem"] for each in answer["rejected"]] == ["query: expected `str`, got `int`"]


@pytest.mark.parametrize("kind", ["sqlite"])
def test_few_large_bodies_are_read_at_once(service: Ingesting, monkeypatch: pytest.MonkeyPatch) -> None:
    at_work, most = set[int](), list[int]()

    def slow(data: bytes, *others: Any) -> Any:
        at_work.add(threading.get_ident())
        most.append(len(at_work))
        time.sleep(0.05)
        at_work.discard(threading.get_ident())
        return prepared(data, *others)

    monkeypatch.setattr("ragcontract.service.web.interaction_routes.prepared", slow)
    with ThreadPoolExecutor(6) as pool:
        answers = [*pool.map(lambda number: service.stored(asked(number, response="x" * 20_000)), range(6))]
    assert sum(each["accepted"] for each in answers) == 6
    assert max(most) == bounds.SERVICE_COMPUTING


@pytest.mark.parametrize("kind", ["sqlite"])
@pytest.mark.parametrize(
    ("field", "problem"),
    [
        ('"latency_ms": 1e999', "latency_ms: number out of range"),
        (f'"id": {"9" * 5_000}', "id: integer value out of range"),
    ],
)
def test_a_number_that_is_too_large_harms_no_other_interaction(field: str, problem: str, service: Ingesting) -> None:
    body = f'{{"interactions": [{{"query": "a"}}, {{"query": "b", {field}}}, {{"query": "c"}}]}}'
    answer = service.send_bytes(body.encode())
    assert answer.status_code == 200, answer.text
    assert answer.json()["rejected"] == [{"index": 1, "problem": problem}]
    assert [row["query"] for row in service.rows()] == ["a", "c"]


@pytest.mark.parametrize("kind", ["sqlite"])
def test_of_many_that_are_rejected_the_first_are_listed(service: Ingesting) -> None:
    answer = service.stored(asked(), *[asked(response=1)] * 70)
    assert (answer["accepted"], len(answer["rejected"]), answer["more_rejected"]) == (1, 50, 20)
    assert [each["index"] for each in answer["rejected"]] == [*range(1, 51)]


@pytest.mark.parametrize("kind", ["sqlite"])
def test_a_time_may_be_written_with_a_zone(service: Ingesting) -> None:
    time = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)
    shifted = time.astimezone().isoformat()
    at = int(time.timestamp() * 1_000)
    service.stored(
        asked(asked_at=time.isoformat().replace("+00:00", "Z")),
        asked(1, asked_at=shifted),
        asked(2, asked_at=at + 0.75),  # as time.time() * 1000 is
    )
    assert [row["asked_at"] for row in service.rows()] == [at] * 3


@pytest.mark.parametrize("kind", ["sqlite"])
def test_a_packed_body_is_unpacked(service: Ingesting, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = gzip.compress(json.dumps({"interactions": [asked()]}).encode())
    as_gzip = {"Content-Encoding": "gzip"}
    assert service.send_bytes(packed, **as_gzip).json()["accepted"] == 1
    for wrong in (packed[:-3], packed + b"x", b"plain", b""):
        assert checked(service.send_bytes(wrong, **as_gzip)) == 400
    assert checked(service.send_bytes(packed, **{"Content-Encoding": "br"})) == 415
    assert checked(service.send_bytes(packed, **{"Content-Type": "text/plain"})) == 415
    assert checked(service.send_bytes(gzip.compress(bytes(11 << 20)), **as_gzip)) == 413
    assert checked(service.send_bytes(gzip.compress(bytes(9 << 20)), **as_gzip)) == 413  # 1,000 times smaller
    monkeypatch.setattr(bounds, "SERVICE_BODIES", 20_000)  # what is unpacked takes memory, too
    large = gzip.compress(json.dumps({"interactions": [asked(number) for number in range(900)]}).encode())
    assert len(large) < 20_000
    assert checked(service.send_bytes(large, **as_gzip)) == 503
    assert len(service.rows()) == 1


def test_what_is_stored_already_is_a_duplicate(service: Ingesting) -> None:
    at = ago(1_000)
    assert service.stored(asked(id="a"), asked(id="a"), asked(1, id="b"))["duplicates"] == 1
    assert service.stored(asked(5, id="a"), asked(2, id="c"))["duplicates"] == 1
    assert service.stored(asked(3, asked_at=at))["accepted"] == 1
    again = service.stored(asked(3, asked_at=at), asked(3, asked_at=at - 1), asked(4, asked_at=at))
    assert (again["accepted"], again["duplicates"]) == (2, 1)
    # Without an id or a time, two people may have asked the same.
    assert service.stored(asked(9), asked(9))["accepted"] == 2
    assert service.tally()["received"] == len(service.rows()) == 8


def test_a_long_id_is_one_id(service: Ingesting) -> None:
    name = "x" * 2_000
    service.stored(asked(id=name), asked(id=f"{name[:-1]}y"))
    assert service.stored(asked(id=name))["duplicates"] == 1
    assert len(service.rows()) == 2


def test_the_same_interactions_at_once_are_stored_once(service: Ingesting) -> None:
    items = [asked(number, id=f"{number}", feedback=-1) for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        answers = [*pool.map(lambda turn: service.stored(*items[turn:], *items[:turn]), range(8))]
    assert sum(answer["accepted"] for answer in answers) == 40
    assert sum(answer["duplicates"] for answer in answers) == 7 * 40
    assert len(service.rows()) == len(service.questions()) == service.tally()["sampled"] == 40


@pytest.mark.parametrize("kind", ["postgres"])
def test_two_services_on_one_postgres_store_once(migrated: URL) -> None:
    items = [asked(number, id=f"{number}", error="x") for number in range(30)]
    with (
        open_database(migrated) as database,
        open_database(migrated) as of_other,
        Ingesting(database) as service,
        Served(of_other) as other,
        ThreadPoolExecutor(6) as pool,
    ):

        def send(turn: int) -> Any:
            body = {"interactions": [*items[turn:], *items[:turn]]}
            answer = (service, other)[turn % 2].request("POST", PATH, key=service.ingest, json=body)
            assert answer.status_code == 200, answer.text
            return answer.json()

        answers = [*pool.map(send, range(12))]
        assert sum(answer["accepted"] for answer in answers) == 30
        assert len(service.questions()) == 30
        assert service.tally() == {"received": 30, "sampled": 30}


def test_personal_data_and_users_are_not_stored(service: Ingesting, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    sent = asked(
        query=f"My card {CARD} was refused, write to {MAIL}",
        response=f"I wrote to {MAIL}",
        error=f"{'x' * 990} {MAIL}",
        results=[{"doc_id": f"mail:{MAIL}"}],
        source=f"app of {MAIL}",
        tags=[MAIL],
        user=MAIL,
    )
    service.stored(sent)
    service.send(asked(response=MAIL, results=MAIL))
    (row,) = service.rows()
    assert row["query"] == "My card [card] was refused, write to [email]"
    assert (row["response"], row["tags"], row["source"]) == ("I wrote to [email]", '["[email]"]', "app of [email]")
    assert row["error"] == f"{'x' * 990} [email]"
    assert service.questions() == [row["query"]]
    everything = f"{service.rows()} {service.rows(candidates)}"
    for secret in (MAIL, CARD, "ana@"):
        assert secret not in everything
        assert secret not in caplog.text
    assert "was refused" not in caplog.text


def test_nobody_can_tell_that_users_of_two_projects_are_the_same(service: Ingesting) -> None:
    service.stored(asked(user="ana"), asked(1, user="ana"), asked(2, user="bob"))
    digests = [row["user_sha"] for row in service.rows()]
    assert digests[0] == digests[1] != digests[2]
    service.database.write(lambda connection: connection.execute(projects.update().values(secret="another")))
    service.look_again()
    service.stored(asked(3, user="ana"))
    assert service.rows()[3]["user_sha"] != digests[0]


def test_a_project_says_what_is_flagged_redacted_and_kept(database: Database, tmp_path: Path) -> None:
    flag = "flag: {latency_ms: 100, confidence_lt: 0.5}"
    folder = mounted(tmp_path, f"redact: []\n{flag}\nkeep_days: 3\nsampling: {{ok: 0, flagged: 0}}\n")
    with Ingesting(database, projects=folder) as service:
        old = asked(8, asked_at=ago(4 * DAY))
        slow, unsure = asked(1, latency_ms=101, confidence=0.5), asked(2, latency_ms=100, confidence=0.49)
        assert service.stored(asked(query=MAIL), slow, unsure, asked(3, results=[]), old)["rejected"][0]["index"] == 4
        assert [(row["query"], row["flags"]) for row in service.rows()][:1] == [(MAIL, 0)]
        assert [row["flags"] for row in service.rows()] == [0, 4, 8, 2]
        assert service.rows(projects)[0]["keep_days"] == 3
        assert not service.questions()
        mounted(tmp_path, "sampling: {ok: 0, error: 0, flagged: 1}\n")
        service.look_again()
        service.stored(asked(4, results=[]), asked(5, error="x"), asked(6), asked(query=MAIL))
        assert service.questions() == ["How do I do 4?"]
        assert service.rows()[-1]["query"] == "[email]"


def test_a_project_file_that_is_broken_changes_nothing(database: Database, tmp_path: Path) -> None:
    folder = mounted(tmp_path, "sampling: {ok: 0, error: 0}\n")
    with Ingesting(database, projects=folder) as service:
        service.stored(asked())
        mounted(tmp_path, "sampling: 5\n")
        service.app.ingestion.settings._known["docs"].read.at = 0  # a second later
        service.stored(asked(7, error="x"))
        assert not service.questions()
        service.look_again()  # what it says about redaction is not known after a new start
        refused = service.send(asked(8))
        assert (checked(refused), refused.headers["retry-after"]) == (503, "1")


def test_slow_is_what_takes_twice_as_long_as_the_day_before(service: Ingesting) -> None:
    now = now_ms()
    today = now - now % DAY
    row = {"project_id": service.project, "monitor": "latency_p95", "n": 100, "z": None, "alarm": 0}
    values = [{**row, "day": today - DAY, "value": 500.0}, {**row, "day": today - 3 * DAY, "value": 10.0}]
    service.database.write(lambda connection: connection.execute(daily.insert(), values))
    service.look_again()
    times = [(now, 1_000), (now, 1_001), (today - 2 * DAY, 21), (today - 3 * DAY, 9_999), (today - DAY, 9_999)]
    service.stored(*[asked(number, asked_at=at, latency_ms=ms) for number, (at, ms) in enumerate(times)])
    assert [each["flags"] for each in service.rows()] == [0, 4, 4, 0, 0]


def test_a_question_is_a_candidate_once(database: Database, tmp_path: Path) -> None:
    with Ingesting(database, projects=mounted(tmp_path, "sampling: {ok: 0}\n")) as service:
        service.stored(asked(error="x"), asked(1, feedback=-1, results=[]), asked(query="HOW do i do 0", error="z"))
        service.stored(asked(error="x"), asked(query="how do I do 0 ?", error="y"), asked(2))
        first, second = service.rows(candidates)
        assert (first["query"], first["reason"], first["asked"]) == ("How do I do 0?", "error", 4)
        assert (second["query"], second["reason"]) == ("How do I do 1?", "empty, negative_feedback")
        assert first["interaction_id"] == service.rows()[0]["id"]
        assert first["state"] == "new"
        assert service.tally() == {"received": 6, "sampled": 5}


def test_a_candidate_shows_the_first_answer_that_has_results(service: Ingesting) -> None:
    """People choose the relevant documents among them. What was decided already stays as it is."""
    some, others = [{"doc_id": "a"}], [{"doc_id": "b"}]
    service.stored(asked(id="1", error="x"), asked(1, id="2", results=[]), asked(2, id="3", error="x"))
    reject = candidates.update().where(candidates.c.query == "How do I do 2?").values(state="rejected")
    service.database.write(lambda connection: connection.execute(reject))
    service.stored(asked(id="4", query="how do I do 0", error="x", results=some))
    service.stored(asked(id="5", error="x", results=others), asked(id="6", error="x"), asked(2, id="7", results=some))
    service.stored(asked(1, id="8", error="x"), asked(1, id="9", error="x", results=some))
    name_of = {row["id"]: row["external_id"] for row in service.rows()}
    shown = [(row["query"], name_of[row["interaction_id"]], row["reason"]) for row in service.rows(candidates)]
    assert shown == [
        ("how do I do 0", "4", "error"),
        ("How do I do 1?", "9", "empty"),
        ("How do I do 2?", "3", "error"),
    ]


def test_golden_questions_are_only_counted(database: Database, tmp_path: Path) -> None:
    folder = mounted(tmp_path, "name: Docs\n", [golden("q1", "d1", query=f"Where is {MAIL}?")])
    with Ingesting(database, projects=folder) as service:
        service.stored(asked(query=f"where is {MAIL}", error="x"), asked(error="x"))
        assert service.questions() == ["How do I do 0?"]
        assert service.tally() == {"received": 2, "sampled": 2, "golden": 1}


def test_a_full_queue_takes_no_further_questions(service: Ingesting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "CANDIDATES_WAITING", 3)
    service.stored(*[asked(number, error="x") for number in range(2)])
    service.stored(*[asked(number, error="x") for number in range(6)])
    assert service.questions() == [f"How do I do {number}?" for number in range(3)]
    assert [row["asked"] for row in service.rows(candidates)] == [2, 2, 1]
    assert service.tally() == {"received": 8, "sampled": 8, "not_queued": 3}
    service.stored(*[asked(9, id=f"{number}", error="x") for number in range(2)])
    assert service.tally() == {"received": 10, "sampled": 10, "not_queued": 5}


def test_what_is_counted_belongs_to_the_day_on_which_it_was_asked(service: Ingesting) -> None:
    now = now_ms()
    today = now - now % DAY
    service.stored(asked(asked_at=now))
    assert service.rows(projects)[0]["unmeasured_from"] is None
    service.stored(asked(1, asked_at=today - 1), asked(2, asked_at=today - 3 * DAY), asked(3, asked_at=today - 2 * DAY))
    assert service.rows(projects)[0]["unmeasured_from"] == today - 3 * DAY
    service.stored(asked(4, asked_at=today - 1))
    assert service.rows(projects)[0]["unmeasured_from"] == today - 3 * DAY
    received = {row["day"]: row["number"] for row in service.rows(tallies) if row["name"] == "received"}
    assert received == {today: 1, today - DAY: 2, today - 2 * DAY: 1, today - 3 * DAY: 1}


def test_a_key_sends_only_to_its_project(service: Ingesting) -> None:
    service.database.write(lambda connection: add_project(connection, "other", "Other", 0))
    key = service.new_key("ingest", project="other")
    for path in (PATH, "/projects/none/interactions", "/projects/%00/interactions"):
        assert checked(service.request("POST", path, key=key, json={"interactions": [asked()]})) == 404
    answer = service.request("POST", "/projects/other/interactions", key=key, json={"interactions": [asked()]})
    assert answer.json()["accepted"] == 1


def test_one_request_looks_up_what_the_others_know(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key, and what its project wants, are looked up again once a moment, however many requests come then."""
    clock = [0.0]
    for module in (request_limits, project_settings):
        monkeypatch.setattr(module, "seconds", lambda: clock[0])
    bucket = Buckets().take("key", 1_000, 1_000)
    bucket.belongs_to(Principal(actor="key:key", scopes=frozenset({"ingest"})))
    clock[0] = bounds.KEY_SECONDS + 0.1
    assert [bucket.principal() is None for _ in range(3)] == [True, False, False]
    clock[0] += bounds.KEY_SECONDS  # nobody could look it up
    assert bucket.principal() is None

    database.write(lambda connection: add_project(connection, "docs", "Docs", 0))
    settings = SettingsOfProjects(database, None)
    settings.of("docs")
    read, meanwhile = database.read, []

    def reading() -> Any:
        meanwhile.append(settings.fresh("docs"))
        return read()

    monkeypatch.setattr(database, "read", reading)
    for _ in range(2):
        clock[0] += bounds.SETTINGS_SECONDS + 0.1
        assert settings.fresh("docs") is None
        assert settings.of("docs") is not None
    assert None not in meanwhile
    clock[0] += 2 * bounds.SETTINGS_SECONDS + 0.1
    settings.of("docs")
    assert [each is None for each in meanwhile] == [False, False, True]


def filled(service: Ingesting, pool: ThreadPoolExecutor, number: int) -> list[Future[Any]]:
    """Send requests while the database is held until so many wait, and return what will be answered."""
    sent: list[Future[Any]] = []
    while service.app.ingestion.writer.waiting < number:
        sent.append(pool.submit(service.send, asked(id=f"sent {len(sent)}")))
        time.sleep(0.02)
    return sent


def test_with_as_many_waiting_as_may_the_next_one_is_told_to_come_again(
    service: Ingesting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "INGESTED_WAITING", 3)
    service.stored(asked())  # that the key was used is noted, which must not wait
    with ThreadPoolExecutor(40) as pool:
        with service.held():
            sent = filled(service, pool, 3)
            refused = service.send(asked(9))
            assert (checked(refused), refused.headers["retry-after"]) == (503, "1")
            assert checked(service.send_bytes(b"{")) == 503  # whatever its body is
            ready = service.client.get("/readyz").json()
            assert "3 requests with interactions wait, as many as may" in ready["problems"]
        answers = Counter(each.result().status_code for each in sent)
    assert answers[200] >= 4
    assert len(service.rows()) == answers[200] + 1


def test_what_is_wrong_with_one_request_does_not_harm_others(service: Ingesting) -> None:
    """The database refuses what one request has; it comes in one transaction with others."""
    writer = service.app.ingestion.writer
    service.stored(asked(id="5"))
    settings = service.app.ingestion.settings.of("docs")
    assert settings is not None
    body = json.dumps({"interactions": [asked(id="bad")]}).encode()
    (item,) = prepared(body, settings, now_ms()).stored
    item.row["query"] = None
    with ThreadPoolExecutor(40) as pool:
        with service.held():
            sent = filled(service, pool, 3)
            refused = writer.submit(Batch(settings=settings, items=[item]))
        assert {each.result().status_code for each in sent} == {200}
    with pytest.raises(DBAPIError):
        refused.result()
    assert {row["external_id"] for row in service.rows()} == {"5", *(f"sent {number}" for number in range(len(sent)))}


@pytest.mark.parametrize("kind", ["sqlite"])
def test_the_description_says_what_is_sent(service: Ingesting) -> None:
    description = service.get("/openapi.json")
    body = description["paths"]["/api/v1/projects/{slug}/interactions"]["post"]["requestBody"]["content"]
    schemas = description["components"]["schemas"]
    fields = schemas[body["application/json"]["schema"]["$ref"].rpartition("/")[2]]["properties"]
    item = schemas[fields["interactions"]["items"]["$ref"].rpartition("/")[2]]
    assert item["required"] == ["query"]
    assert item["properties"]["query"]["maxLength"] == bounds.INTERACTION_QUERY


def test_interactions_are_counted_by_their_outcome(service: Ingesting) -> None:
    service.stored(asked(id="a"), asked(id="a"), asked(response=1))
    service.send(asked(response=1))
    text = service.client.get("/metrics", headers={"Authorization": f"Bearer {service.key}"}).text
    for outcome, number in (("accepted", 1), ("duplicate", 1), ("rejected", 1)):
        assert f'rag_contract_interactions_total{{outcome="{outcome}"}} {number}.0' in text
