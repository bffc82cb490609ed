"""Starting and cancelling runs through the API, on both databases: who may, what is refused, and what it leaves."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, func, select, update

from ragcontract.core import bounds
from ragcontract.service.database import Database, now_ms
from ragcontract.service.tables import audit, runs
from ragcontract.service.workers.run_queue import claim
from tests.service.askers import by_key, new_project, new_user
from tests.service.conftest import HOSTILE
from tests.service.served import Served, checked
from tests.service.test_schedule import mount

CODE: dict[str, Any] = {
    "module": "os",
    "class": "subprocess.Popen",
    "command": ["touch", "/tmp/started"],
    "path": "../other",
    "url": "http://127.0.0.1:1/",
    "python": "/bin/sh",
    "adapter_module": "os",
    "record": {"command": "touch started"},
    "event": "schedule",
    "slug": "other",
}


@pytest.fixture
def served(database: Database, tmp_path: Path) -> Iterator[Served]:
    """The service with two mounted projects, one of which cannot be run, and one that is not mounted."""
    folder = mount(tmp_path / "projects", text="name: Docs\n")
    mount(folder, "only-checks", "name: x\n", record=False)
    database.write(lambda connection: new_project(connection, "of-ci"))
    with Served(database, projects=folder) as served:
        served.key = served.new_key("read", "run")
        yield served


def start(served: Served, project: str = "docs", **body: Any) -> Any:
    return served.request("POST", f"/projects/{project}/runs", json=body)


def actions(database: Database) -> list[tuple[str, ...]]:
    with database.read() as connection:
        columns = audit.c.actor, audit.c.action, audit.c.subject, audit.c.detail
        rows = select(*columns).where(audit.c.action.startswith("run.")).order_by(audit.c.id)
        return [tuple(row) for row in connection.execute(rows)]


def number_of_runs(database: Database) -> int:
    with database.read() as connection:
        return int(connection.execute(select(func.count()).select_from(runs)).scalar_one())


def test_a_run_is_started_and_says_who_and_why(served: Served) -> None:
    key = served.database.write(lambda connection: new_user(connection, "ana", "editor"))
    answer = served.request("POST", "/projects/docs/runs", key=key, json={"note": f" {HOSTILE}\0 "})
    assert (answer.status_code, answer.json()["state"]) == (202, "queued")
    number = answer.json()["id"]
    assert answer.headers["location"] == f"/api/v1/runs/{number}"
    run = served.client.get(answer.headers["location"], headers=by_key(served.key)).json()
    wanted = {"state": "queued", "origin": "service", "event": "manual", "attempt": 0, "created_by": "user:ana"}
    wanted |= {"note": f"{HOSTILE}\ufffd", "problem": None, "log": None, "started_at": None, "verdict": None}
    assert {name: run[name] for name in wanted} == wanted
    assert actions(served.database) == [
        ("user:ana", "run.start", f"run:{number}", f"docs: {HOSTILE}\ufffd"),
    ]


def test_a_note_may_be_left_out(served: Served) -> None:
    bodies: list[dict[str, Any]] = [{}, {"note": None}, {"note": " "}]
    for body in bodies:
        number = start(served, **body).json()["id"]
        assert served.get(f"/runs/{number}")["note"] is None
    assert [detail for *_, detail in actions(served.database)] == ["docs"] * 3


def test_what_cannot_be_run_says_what_to_do(served: Served) -> None:
    reasons = {
        "only-checks": "the mounted project has no record.yml, which says how its system is asked; put one into",
        "of-ci": "the project is not mounted; put a folder of-ci with project.yml, record.yml and its contract into",
    }
    for slug, reason in reasons.items():
        answer = start(served, slug)
        assert checked(answer) == 409
        assert answer.json()["detail"].startswith(reason)
    assert checked(start(served, "none")) == 404
    with Served(served.database) as without:
        without.key = served.key
        assert checked(answer := start(without)) == 409
        assert "start it with --projects" in answer.json()["detail"]
    assert number_of_runs(served.database) == 0


def test_what_is_mounted_counts_as_it_is_now(served: Served, tmp_path: Path) -> None:
    docs = tmp_path / "projects/docs"
    (docs / "project.yml").write_text("timeout: 0\n")
    answer = start(served)
    assert checked(answer) == 409
    assert answer.json()["detail"].startswith("the mounted project cannot be read: docs/project.yml:1: timeout: ")
    (docs / "project.yml").write_text("name: Docs\n")
    assert checked(start(served)) == 202
    (docs / "record.yml").unlink()
    (docs / "record.yml").symlink_to(tmp_path / "projects/docs/project.yml")
    assert checked(start(served)) == 409


def test_too_many_that_wait_are_refused(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "RUNS_QUEUED", 2)
    assert [checked(start(served)) for _ in range(3)] == [202, 202, 429]
    assert int(start(served).headers["retry-after"]) > 0
    assert (number_of_runs(served.database), len(actions(served.database))) == (2, 2)
    assert checked(served.request("POST", "/runs/1/cancel")) == 202
    assert checked(start(served)) == 202


@pytest.mark.parametrize("name", CODE)
def test_nothing_in_a_request_is_code(name: str, served: Served, tmp_path: Path) -> None:
    answer = start(served, **{name: CODE[name]})
    assert checked(answer) == 422
    assert number_of_runs(served.database) == 0
    answer = served.client.post("/p/docs/runs", data={name: "x"}, headers=by_key(served.key))
    assert answer.status_code == 422
    assert number_of_runs(served.database) == 0
    for slug in ("..", "%2e%2e", "docs%2f..%2fother", "/etc"):
        assert checked(served.request("POST", f"/projects/{slug}/runs", json={})) in {404, 405}
    note = f"{CODE[name]}"
    number = start(served, note=note).json()["id"]
    run = served.get(f"/runs/{number}")
    assert (run["note"], run["event"], run["project"], run["branch"]) == (note, "manual", "docs", None)
    held = served.database.write(lambda connection: claim(connection, "w", now_ms()))
    with served.database.read() as connection:
        row = connection.execute(select(runs).where(runs.c.id == number)).mappings().one()
    assert held is not None
    assert note not in str(held)
    assert [column for column, value in row.items() if value == note] == ["note"]
    assert sorted(path.name for path in tmp_path.rglob("*") if "started" in path.name) == []


def test_a_body_that_is_none_is_refused(served: Served) -> None:
    for content, status in ((b"", 422), (b"[]", 422), (b"{", 400), (b'{"note": 1}', 422)):
        answer = served.request(
            "POST", "/projects/docs/runs", content=content, headers={"Content-Type": "application/json"}
        )
        assert checked(answer) == status, content
    assert number_of_runs(served.database) == 0


def test_a_run_that_waits_is_cancelled_at_once_and_only_once(served: Served) -> None:
    number = start(served).json()["id"]
    answer = served.request("POST", f"/runs/{number}/cancel")
    assert (answer.status_code, answer.json()) == (202, {"id": number, "state": "cancelled"})
    assert served.get(f"/runs/{number}")["state"] == "cancelled"
    again = served.request("POST", f"/runs/{number}/cancel")
    assert (checked(again), again.json()["detail"]) == (409, "the run is over already")
    assert checked(served.request("POST", "/runs/999/cancel")) == 404
    assert [row[1:] for row in actions(served.database)] == [
        ("run.start", f"run:{number}", "docs"),
        ("run.cancel", f"run:{number}", "docs"),
    ]


def test_a_run_at_work_is_asked_to_end(served: Served) -> None:
    number = start(served).json()["id"]
    served.database.write(lambda connection: claim(connection, "w", now_ms()))
    for _ in range(2):  # who asks again is not told that it is over
        assert served.request("POST", f"/runs/{number}/cancel").json() == {"id": number, "state": "running"}
    with served.database.read() as connection:
        assert connection.execute(select(runs.c.cancel)).scalar_one() is not None


def test_a_run_says_what_it_printed(served: Served) -> None:
    number = start(served).json()["id"]

    def job(connection: Connection) -> None:
        values = {"state": "failed", "attempt": 3, "problem": "the worker died 3 times", "log": f"line\n{HOSTILE}"}
        connection.execute(update(runs).values(values))

    served.database.write(job)
    run = served.get(f"/runs/{number}")
    wanted = {"attempt": 3, "problem": "the worker died 3 times", "log": f"line\n{HOSTILE}"}
    assert {name: run[name] for name in wanted} == wanted


def test_a_key_of_another_project_can_neither_start_nor_cancel(served: Served) -> None:
    number = start(served).json()["id"]
    key = served.new_key("run", project="of-ci")
    assert checked(served.request("POST", "/projects/docs/runs", key=key, json={})) == 404
    assert checked(served.request("POST", f"/runs/{number}/cancel", key=key)) == 404
    assert served.get(f"/runs/{number}")["state"] == "queued"
