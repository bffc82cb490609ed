"""Entries and blobs come in over HTTP once, whole and checked, and the same bytes go out."""

import hashlib
import json
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from itertools import chain
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import Connection, func, select

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.history.copy_and_prune import copy
from ragcontract.history.entry import NewEntry
from ragcontract.history.folder import Folder
from ragcontract.service.accounts import Principal
from ragcontract.service.database import Database
from ragcontract.service.database_store import DatabaseStore
from ragcontract.service.tables import audit, blobs, broken, points, runs
from tests.history.entries import FIRST, RUN, digest, new_entry, results_of
from tests.history.entries import runs as runs_of
from tests.service.served import Served, checked

ADMIN = Principal(actor="user:ana", role="admin")
AWKWARD = ["\0", "<script>alert(1)</script>", "'; DROP TABLE runs; --", "\u202egnp.exe", "\U0001f600" * 2_000, "%_\\"]


def count_of(database: Database, table: Any) -> int:
    with database.read() as connection:
        number: int = connection.execute(select(func.count()).select_from(table)).scalar_one()
    return number


def test_an_entry_and_its_results_come_back_byte_by_byte(served: Served) -> None:
    new = new_entry(results=results_of("d1"))
    spaced = NewEntry(entry=new.entry, content=new.content.replace(b'": ', b'" :  ') + b"\n\n", results=new.results)
    served.add(spaced)
    assert served.get("/projects/docs/months") == {"months": ["2026-11"]}
    assert served.get("/projects/docs/entries", month="2026-11") == {"ids": [new.entry.id], "next": None}
    contents = served.get("/projects/docs/entries/contents", id=new.entry.id)
    assert contents == {"items": [{"id": new.entry.id, "content": spaced.content.decode()}], "rest": []}
    assert served.get("/blobs") == {"items": [digest(new.results)], "next": None}
    assert served.request("GET", f"/blobs/{digest(new.results)}").content == new.results


def test_an_entry_is_new_once(served: Served) -> None:
    new = new_entry()
    assert [served.post(new).status_code for _ in range(3)] == [201, 200, 200]
    assert served.post(new).json()["key"] == new.entry.id


def test_the_audit_log_says_who_recorded_a_run(served: Served) -> None:
    new = new_entry()
    number = served.add(new)
    assert served.add(new) == number
    with served.database.read() as connection:
        rows = connection.execute(select(audit.c.actor, audit.c.action, audit.c.subject, audit.c.detail)).all()
    assert rows == [(f"key:{served.key[:11]}", "run.add", f"run:{number}", f"docs: {new.entry.id}")]


def test_a_blob_is_new_once(served: Served) -> None:
    path = f"/blobs/{digest(b'x')}"
    sent = [served.request("PUT", path, params={"kind": "golden"}, content=b"x").status_code for _ in range(3)]
    assert sent == [201, 200, 200]


def with_content(content: bytes) -> Callable[[Served], Any]:
    return lambda served: served.post(replace(new_entry(), content=content))


def changed(**fields: Any) -> bytes:
    return json.dumps(json.loads(new_entry().content) | fields).encode()


DEEP = b'{"id":' + b"[" * 200 + b"]" * 200 + b"}"
SOURCE = json.loads(new_entry().content)["source"]
CLOCK = "check the clock of the machine"


def at_time(at: datetime, **fields: Any) -> Callable[[Served], Any]:
    return lambda served: served.post(new_entry(at=at, **fields))


REFUSED: dict[str, tuple[int, str, Callable[[Served], Any]]] = {
    "no JSON": (400, "the body is not JSON", with_content(b"{")),
    "nothing": (400, "the body is not JSON", with_content(b"")),
    "a list": (422, "entries/docs: is not an entry", with_content(b"[]")),
    "nested too deeply": (422, "entries/docs: is not an entry", with_content(DEEP)),
    "half a character": (400, "the body is not JSON", with_content(changed().replace(b'"main"', b'"\\ud800"'))),
    "not UTF-8": (422, "is not UTF-8", with_content(changed().replace(b"{", b'{"further": "\xff",', 1))),
    "a field of another type": (422, "verdict", with_content(changed(verdict="maybe"))),
    "a path for an id": (422, "entries/docs: ", with_content(changed(id="../../etc/passwd"))),
    "a run beyond all numbers": (
        422,
        "source.run_id: is too large",
        with_content(changed(source=SOURCE | {"run_id": 2**63})),
    ),
    "a time of the future": (
        422,
        f"minutes in the future; {CLOCK}",
        at_time(datetime(9999, 12, 31, tzinfo=UTC)),
    ),
    "a time before 1970": (422, f"is before 1970; {CLOCK}", at_time(datetime(1969, 12, 31, 23, 59, tzinfo=UTC))),
    "another time than that of the id": (
        422,
        "created_at: is not the time in the id",
        at_time(FIRST, created_at=(FIRST + timedelta(seconds=2)).isoformat()),
    ),
    "the hour of another time zone": (
        422,
        "created_at: is not the time in the id",
        at_time(FIRST, created_at=FIRST.isoformat().replace("+00:00", "+01:00")),
    ),
    "an id that has no time": (
        422,
        "id: does not begin with a time",
        with_content(new_entry().content.replace(b"20261121T", b"20261199T")),
    ),
    "a version of the future": (422, "another version", with_content(changed(schema_version=2))),
    "another contract": (422, "belongs to another file", with_content(changed(contract="help"))),
    "results that were not sent": (422, "results: the blob", lambda served: served.post(new_entry(results=b"never"))),
    "a report that was not sent": (422, "report: the blob", lambda served: served.post(new_entry(), report="a" * 64)),
    "a golden that was not sent": (422, "golden: the blob", lambda served: served.post(new_entry(), golden="a" * 64)),
    "a report without a digest": (422, "report", lambda served: served.post(new_entry(), report="../x")),
    "a report that is none": (
        422,
        "report",
        lambda served: served.post(new_entry(), report=served.send_blob(b"{", "report")),
    ),
    "too large": (413, "", with_content(b" " * (bounds.ENTRY + 1))),
    "another media type": (
        415,
        "application/json",
        lambda served: served.request("POST", "/projects/docs/entries", content=new_entry().content),
    ),
    "a project that cannot be": (404, "no such project", lambda served: served.post(new_entry(), slug="DOCS")),
    "a blob of another digest": (
        422,
        "says another one",
        lambda served: served.request("PUT", f"/blobs/{'a' * 64}", params={"kind": "golden"}, content=b"x"),
    ),
    "a blob of no kind": (
        422,
        "kind",
        lambda served: served.request("PUT", f"/blobs/{digest(b'x')}", params={"kind": "'"}, content=b"x"),
    ),
    "a blob that is too large": (
        413,
        "",
        lambda served: served.request(
            "PUT", f"/blobs/{'a' * 64}", params={"kind": "golden"}, content=b"x" * (bounds.BLOB + 1)
        ),
    ),
}


def test_a_clock_may_be_some_minutes_ahead(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "SERVICE_CLOCK_AHEAD", 300)
    now = datetime.now(UTC)
    assert served.post(new_entry(at=now + timedelta(minutes=4))).status_code == 201
    answer = served.post(new_entry(at=now + timedelta(days=1), run=RUN + 1))
    assert (checked(answer), "more than 5 minutes in the future" in answer.text) == (422, True)
    with pytest.raises(InputError, match="more than 5 minutes in the future"):
        DatabaseStore(served.database, ADMIN).add(new_entry(at=now + timedelta(days=1)))


def test_the_time_of_an_id_has_no_parts_of_a_second_and_is_utc(served: Served) -> None:
    at = FIRST.replace(microsecond=999_999)
    berlin = at.astimezone(timezone(timedelta(hours=1))).isoformat()
    assert served.post(new_entry(at=at)).status_code == 201
    assert served.post(new_entry(at=at, run=RUN + 1, created_at=berlin)).status_code == 201


def test_an_entry_with_a_wrong_time_that_is_stored_stays(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    new = new_entry(at=datetime.now(UTC) + timedelta(days=1))
    served.add(new)
    monkeypatch.setattr(bounds, "SERVICE_CLOCK_AHEAD", 300)
    assert served.post(new).status_code == 200
    assert served.get("/projects/docs/entries/contents", id=new.entry.id)["items"]


@pytest.mark.parametrize(("status", "why", "send"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_leaves_nothing_behind(
    served: Served, status: int, why: str, send: Callable[[Served], Any]
) -> None:
    answer = send(served)
    assert checked(answer) == status, answer.text
    assert why in answer.text
    assert served.get("/projects")["items"] == []
    assert count_of(served.database, runs) == 0


def test_an_entry_never_changes(served: Served) -> None:
    new = new_entry()
    served.add(new)
    answer = served.post(replace(new, content=new.content + b"\n"))
    assert checked(answer) == 409
    assert "already exists with different content" in answer.json()["detail"]


def test_two_checks_of_a_run_need_two_names(served: Served) -> None:
    served.add(new_entry())
    answer = served.post(new_entry(at=FIRST + timedelta(seconds=9)))
    assert checked(answer) == 409
    assert "give each contract of a run its own name" in answer.json()["detail"]


def test_who_has_not_sent_a_blob_cannot_get_it_by_naming_it(served: Served) -> None:
    secret = new_entry("secret", results=results_of("d1"))
    served.add(secret)
    served.add(new_entry("help"))
    outsider = served.new_key("read", "record", project="help")
    path = f"/blobs/{digest(secret.results)}"
    assert served.status(path, key=outsider) == 404
    named = new_entry("help", run=RUN + 1, results=secret.results)
    assert checked(served.post(named, key=outsider)) == 422
    assert served.status(path, key=outsider) == 404
    assert served.get("/blobs", key=outsider)["items"] == []
    served.add(named, key=outsider)  # sends all of it
    assert served.request("GET", path, key=outsider).content == secret.results
    again = new_entry("help", run=RUN + 2, results=secret.results)
    assert checked(served.post(again)) == 201  # a run of the project has it


def test_a_key_of_one_project_sees_and_makes_no_other(served: Served) -> None:
    hidden = served.add(new_entry("secret", results=results_of("d1")))
    served.add(new_entry("help"))
    key = served.new_key("read", "record", project="help")
    assert [each["slug"] for each in served.get("/projects", key=key)["items"]] == ["help"]
    of_project = ["", "/months", "/entries?month=2026-11", "/entries/contents?id=x", "/runs", "/gate?commit=3f9c1a2b"]
    for path in of_project:
        assert served.status(f"/projects/secret{path}", key=key) == 404
        assert served.status(f"/projects/help{path}", key=key) == 200
    for path in ("", "/report.json", "/report.html", "/baseline.json"):
        assert served.status(f"/runs/{hidden}{path}", key=key) == 404
    for name in ("secret", "new"):
        assert checked(served.post(new_entry(name, run=RUN + 1), key=key)) == 404
    assert len(served.get("/projects")["items"]) == 2


def at_once(send: Callable[[int], Any]) -> list[int]:
    with ThreadPoolExecutor(20) as pool:
        return sorted(checked(answer) for answer in pool.map(send, range(20)))


def test_twenty_clients_at_once_add_twenty_entries_twice(served: Served) -> None:
    entries = runs_of(20)
    for new in entries:
        assert new.results is not None
        served.send_blob(new.results)
    assert at_once(lambda number: served.post(entries[number])) == [201] * 20
    assert at_once(lambda number: served.post(entries[number])) == [200] * 20
    assert count_of(served.database, runs) == 20


def test_twenty_clients_at_once_add_one_entry_once(served: Served) -> None:
    served.add(new_entry(run=RUN + 1))
    new = new_entry(metrics={"mrr": {"label": "MRR", "value": 0.5, "status": "pass"}}, failed=["q1"])
    assert at_once(lambda _: served.post(new)) == [200] * 19 + [201]
    assert [count_of(served.database, table) for table in (runs, points, broken)] == [2, 1, 1]


@pytest.mark.parametrize("project", ["a new project", "a project"])
def test_of_twenty_checks_of_one_run_at_once_one_is_recorded(served: Served, project: str) -> None:
    before = 0 if project == "a new project" else 1
    if before:
        served.add(new_entry(run=RUN + 1))
    entries = [new_entry(at=FIRST + timedelta(seconds=number)) for number in range(20)]
    assert at_once(lambda number: served.post(entries[number])) == [201] + [409] * 19
    assert count_of(served.database, runs) == 1 + before


def test_twenty_clients_at_once_send_one_blob(served: Served) -> None:
    path = f"/blobs/{digest(b'x')}"
    send = lambda _: served.request("PUT", path, params={"kind": "golden"}, content=b"x")  # noqa: E731
    assert at_once(send) == [200] * 19 + [201]


def test_a_history_that_was_copied_here_and_back_is_the_same(served: Served, tmp_path: Any) -> None:
    for name in ("docs", "", "Läuft das?"):
        for new in runs_of(3, name):
            Folder(str(tmp_path / "before")).add(new)
    store = DatabaseStore(served.database, ADMIN)
    copy(Folder(str(tmp_path / "before")), store)
    copy(store, Folder(str(tmp_path / "after")))
    before, after = (
        {file.relative_to(folder): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
        for folder in (tmp_path / "before", tmp_path / "after")
    )
    assert before == after


def test_an_entry_whose_results_were_deleted_can_be_copied_and_gets_them_later(served: Served) -> None:
    new = new_entry(results=results_of("d1"))
    number = served.post(new, without_results="true").json()["id"]
    assert served.status(f"/runs/{number}/baseline.json") == 404
    assert served.add(new) == number
    assert served.status(f"/runs/{number}/baseline.json") == 200


def test_awkward_texts_are_stored_and_given_back(served: Served) -> None:
    new = new_entry(
        AWKWARD[1],
        summary="".join(AWKWARD),
        failed=AWKWARD,
        metrics={text: {"label": text, "value": 0.5, "status": "pass"} for text in AWKWARD},
        source={"commit": f"{'3f9c1a2b4d5e':0<40}", "branch": "\0 '--", "event": "\u202e", "run_id": RUN},
    )
    number = served.add(new)
    (project,) = served.get("/projects")["items"]
    assert project["name"] == AWKWARD[1]
    items = served.get(f"/projects/{project['slug']}/entries/contents", id=new.entry.id)["items"]
    assert items[0]["content"].encode() == new.content
    run = served.get(f"/runs/{number}")
    assert [query["id"] for query in run["broken"]] == AWKWARD
    assert [*run["metrics"]] == AWKWARD
    assert served.get(f"/projects/{project['slug']}/runs", branch="\0 '--")["items"][0]["id"] == number


def test_as_many_entries_are_sent_as_fit_and_the_rest_is_named(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = runs_of(3)
    for new in entries:
        served.add(new)
    ids = [new.entry.id for new in entries]
    monkeypatch.setattr(bounds, "ENTRIES_ANSWER", len(entries[0].content) + len(entries[1].content))
    answer = served.get("/projects/docs/entries/contents", id=[*ids, "gone", "20261121T203000Z-000000000000-1-1"])
    assert [each["id"] for each in answer["items"]] == ids[:2]
    assert answer["rest"] == ids[2:]


def test_ids_and_digests_come_in_parts(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = runs_of(5, hours=1)
    for new in entries:
        served.add(new)
    monkeypatch.setattr(bounds, "ENTRIES", 2)
    monkeypatch.setattr(bounds, "PAGE_DIGESTS", 2)
    for path, params, key, expected in (
        ("/projects/docs/entries", {"month": "2026-11"}, "ids", [new.entry.id for new in reversed(entries)]),
        ("/blobs", {}, "items", sorted(digest(new.results) for new in entries)),
    ):
        parts: list[list[str]] = []
        cursor: dict[str, str] = {}
        while True:
            answer = served.get(path, **params, **cursor)
            parts.append(answer[key])
            if answer["next"] is None:
                break
            cursor = {"cursor": answer["next"]}
        assert [len(part) for part in parts] == [2, 2, 1]
        assert [*chain(*parts)] == expected


def damaged(content: bytes) -> dict[str, bytes]:
    body = zlib.compress(content)
    return {
        "cut off": body[: len(body) // 2],
        "other content": zlib.compress(content[:-1] + b"X"),
        "longer content": zlib.compress(content + b"X"),
        "not compressed": content,
        "nothing": b"",
        "a bomb": zlib.compress(b"\0" * (bounds.BLOB + 1)),
    }


RESULTS = results_of("d1")


def damage(connection: Connection, body: bytes) -> None:
    """Change all blobs, as only who stops the triggers or a faulty disk can."""
    is_sqlite = connection.dialect.name == "sqlite"
    stop = "DROP TRIGGER blobs_update" if is_sqlite else "ALTER TABLE blobs DISABLE TRIGGER USER"
    connection.exec_driver_sql(stop)
    connection.execute(blobs.update().values(body=body))


@pytest.mark.parametrize("body", damaged(RESULTS).values(), ids=damaged(RESULTS))
def test_a_blob_that_was_damaged_is_a_fault_and_no_data(
    served: Served, body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    new = new_entry(results=RESULTS)
    served.add(new)
    served.database.write(lambda connection: damage(connection, body))
    answer = served.request("GET", f"/blobs/{digest(RESULTS)}")
    assert checked(answer) == 500
    assert "d1" not in answer.text
    assert f"blob {hashlib.sha256(RESULTS).hexdigest()} is damaged" in caplog.text
