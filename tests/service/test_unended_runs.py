"""The pages of runs that the service makes: how they are started, what is shown until they end, and after that."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update

from ragcontract.core import bounds
from ragcontract.service.database import DAY, Database, now_ms
from ragcontract.service.tables import projects, runs, tasks
from ragcontract.service.web.pages import run_list
from ragcontract.service.workers.run_queue import LEASE, ask_to_cancel, beat, claim, enqueue
from ragcontract.service.workers.schedule import next_time, task_of
from tests.service.askers import FROM_OWN_PAGE, by_session, new_project, new_session, new_user
from tests.service.conftest import HOSTILE
from tests.service.served import Served
from tests.service.test_schedule import mount
from tests.service.visiting import Page, Pages, assert_harmless, text_of

SECOND, MINUTE = 1_000, 60_000


class Desk:
    """A service with mounted projects, and somebody before its pages."""

    def __init__(self, served: Served, role: str, folder: Path) -> None:
        self.served, self.folder, self.database = served, folder, served.database
        self.key = self.database.write(lambda connection: new_user(connection, role, role))
        cookie = self.database.write(lambda connection: new_session(connection, self.key))
        self.headers = by_session(cookie) | {"Accept": "text/html"}
        self.pages = Pages(served.client, self.key)

    def main(self, path: str, status: int = 200) -> str:
        """Return the text of a page, without its navigation."""
        return words(self.pages.get(path, status).markup)

    def post(self, path: str, headers: Mapping[str, str] | None = None, **fields: str) -> Any:
        self.served.client.cookies.clear()
        headers = self.as_cookie() if headers is None else headers
        return self.served.client.post(path, data=fields, headers=headers, follow_redirects=False)

    def as_cookie(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}", "Accept": "text/html"}

    def add(self, *, note: str | None = None, by: str = "user:ana", project: str = "docs", ago: int = 0) -> int:
        """Add a run to the queue, some time ago."""

        def job(connection: Any) -> int:
            number = connection.execute(select(projects.c.id).where(projects.c.slug == project)).scalar_one()
            event = "schedule" if by == "schedule" else "manual"
            return enqueue(connection, number, event=event, created_by=by, note=note, now=now_ms() - ago)

        return self.database.write(job)

    def set(self, number: int, **values: Any) -> None:
        changed = update(runs).where(runs.c.id == number).values(values)
        self.database.write(lambda connection: connection.execute(changed))

    def running(self, number: int, *, silent: int = 0, **values: Any) -> None:
        """Let a run be at work, whose worker was heard some time ago."""
        now = now_ms()
        self.set(number, state="running", attempt=1, started_at=now, lease_owner="w", lease_until=now + LEASE - silent)
        self.set(number, **values) if values else None


def words(markup: str) -> str:
    main = markup.partition("<main")[2].partition(">")[2]
    return re.sub(" (?=[,.:;])", "", " ".join(text_of(re.sub("<noscript>.*</noscript>", "", main)).split()))


def forms(page: Page) -> list[str | None]:
    return [attributes.get("action") for tag, attributes in page.elements if tag == "form"]


@pytest.fixture
def served(database: Database, tmp_path: Path) -> Iterator[Served]:
    folder = mount(tmp_path / "projects", text="name: Docs\n")
    mount(folder, "only-checks", "name: x\n", record=False)
    database.write(lambda connection: new_project(connection, "of-ci"))
    with Served(database, projects=folder) as served:
        yield served


@pytest.fixture
def desk(served: Served, tmp_path: Path) -> Desk:
    return Desk(served, "editor", tmp_path / "projects")


@pytest.fixture
def viewer(served: Served, tmp_path: Path) -> Desk:
    return Desk(served, "viewer", tmp_path / "projects")


def test_an_editor_starts_a_run_with_a_form(desk: Desk) -> None:
    assert "/p/docs/runs" in forms(desk.pages.get("/p/docs/runs"))
    answer = desk.post("/p/docs/runs", note="new index")
    assert answer.status_code == 303
    page = desk.main(answer.headers["location"])
    assert page.startswith("Run 1 of Docs: queued Run 1 ")
    assert "started by editor" in page
    assert "Note: new index" in page
    assert desk.served.get("/runs/1")["note"] == "new index"


def test_another_site_cannot_start_or_cancel_a_run(desk: Desk) -> None:
    number = desk.add()
    for site in ({"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {}):
        headers = {name: text for name, text in desk.headers.items() if name not in FROM_OWN_PAGE} | site
        for path in ("/p/docs/runs", f"/runs/{number}/cancel"):
            assert desk.post(path, headers).status_code == 403
    assert [run["state"] for run in desk.served.get("/projects/docs/runs")["items"]] == ["queued"]
    assert desk.post(f"/runs/{number}/cancel", desk.headers).headers["location"] == f"/runs/{number}"
    assert desk.served.get(f"/runs/{number}")["state"] == "cancelled"


def test_where_no_run_can_be_started_a_sentence_says_why(desk: Desk, viewer: Desk) -> None:
    sentences = {
        "only-checks": "No run can be started here: the mounted project has no record.yml, which says how",
        "of-ci": "No run can be started here: the project is not mounted; put a folder of-ci with project.yml",
    }
    for slug, sentence in sentences.items():
        path = f"/p/{slug}/runs"
        assert sentence in desk.main(path)
        assert path not in forms(desk.pages.get(path))
        assert "No run can be started" not in viewer.main(path)
        assert desk.post(path, note="x").status_code == 409
    assert "/p/docs/runs" not in forms(viewer.pages.get("/p/docs/runs"))
    assert viewer.post("/p/docs/runs", note="x").status_code == 403


def test_a_refusal_is_a_sentence_at_the_form_which_keeps_the_note(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "RUNS_QUEUED", 0)
    answer = desk.post("/p/docs/runs", note=HOSTILE)
    assert answer.status_code == 429
    page = Page(answer.content)
    assert "0 runs of the project wait already." in page.text
    assert ("input", HOSTILE.replace("\u202e", "\\u202e")) in [
        (tag, attributes.get("value")) for tag, attributes in page.elements if attributes.get("name") == "note"
    ]
    assert_harmless(page)


def test_a_run_that_waits_says_its_place_among_all(desk: Desk) -> None:
    numbers = [desk.add(ago=60 * SECOND), desk.add(ago=50 * SECOND, project="of-ci"), desk.add(ago=5 * MINUTE)]
    desk.database.write(lambda connection: beat(connection, "w", now_ms()))
    answers = [desk.main(f"/runs/{number}") for number in numbers]
    assert "Number 2 in the queue." in answers[0]
    assert "Number 3 in the queue." in answers[1]
    assert "The next one to run. It has waited for 5 min." in answers[2]
    assert "No worker" not in answers[2]
    desk.database.write(lambda connection: claim(connection, "w", now_ms()))
    assert "The next one to run." in desk.main(f"/runs/{numbers[0]}")


def test_a_run_that_no_worker_will_take_says_so(desk: Desk) -> None:
    number = desk.add()
    assert "No worker is there to run it." in desk.main(f"/runs/{number}")
    desk.database.write(lambda connection: beat(connection, "w", now_ms() - 2 * LEASE))
    assert "No worker is there to run it." in desk.main(f"/runs/{number}")


def test_a_run_at_work_shows_its_last_lines_and_is_live(desk: Desk) -> None:
    number = desk.add(note=HOSTILE)
    log = "".join(f"line {place}\n" for place in range(100)) + f"{HOSTILE}\x1b[0m\r\n"
    desk.running(number, started_at=now_ms() - 5 * MINUTE, log=log, attempt=2)
    page = desk.pages.get(f"/runs/{number}")
    assert "Running for 5 min, since " in words(page.markup)
    assert "attempt 2 of 3, as the worker before it died." in words(page.markup)
    assert "line 99\n<script>alert(1)</script> ' \\u202e \U0001f600\\x1b[0m" in page.source
    assert "line 80\n" not in page.source
    live = [attributes for _, attributes in page.elements if "data-live" in attributes]
    assert [(each["hx-get"], each["hx-trigger"]) for each in live] == [(f"/runs/{number}", "every 8s")]
    assert "worker was last heard" not in page.text
    assert_harmless(page)


@pytest.mark.parametrize(
    ("silent", "sentence"),
    [
        (29, None),
        (35, "Its worker was last heard 3[5-9] s ago. After 60 s, another one goes on with the run."),
        (65, "Its worker is gone: it was last heard 6[5-9] s ago. The next free worker goes on with the run."),
    ],
)
def test_a_worker_that_is_silent_is_noticed_within_a_minute(silent: int, sentence: str | None, desk: Desk) -> None:
    number = desk.add()
    desk.running(number, silent=silent * SECOND - (0 if sentence else 20 * SECOND))
    page = desk.main(f"/runs/{number}")
    if sentence is None:
        assert "Its worker" not in page
    else:
        assert re.search(sentence, page), page


def test_an_editor_cancels_a_run_and_its_page_says_who_did(desk: Desk, viewer: Desk) -> None:
    waiting, working = desk.add(), desk.add()
    desk.running(working, started_at=now_ms() - 5 * MINUTE)
    for number in (waiting, working):
        path = f"/runs/{number}/cancel"
        assert path in forms(desk.pages.get(f"/runs/{number}"))
        assert path not in forms(viewer.pages.get(f"/runs/{number}"))
        assert viewer.post(path).status_code == 403
        answer = desk.post(path)
        assert (answer.status_code, answer.headers["location"]) == (303, f"/runs/{number}")
        assert path not in forms(desk.pages.get(f"/runs/{number}"))
    assert re.search("Cancelled by editor at [-0-9: ]+ UTC, before it began.", viewer.main(f"/runs/{waiting}"))
    assert "It is being cancelled, as editor asked." in viewer.main(f"/runs/{working}")
    desk.set(working, state="cancelled", finished_at=now_ms(), log="as far as it came\n")
    page = viewer.main(f"/runs/{working}")
    assert re.search("Cancelled by editor at [-0-9: ]+ UTC, 5 min after it began.", page)
    assert "Its last lines as far as it came" in page
    assert desk.post(f"/runs/{working}/cancel").headers["location"] == f"/runs/{working}"  # it is over


def test_a_run_that_failed_shows_why_first_and_all_that_it_printed_folded(desk: Desk) -> None:
    number = desk.add(by="schedule")
    log = "".join(f"line {place}\n" for place in range(100))
    values = {"attempt": 2, "started_at": now_ms(), "finished_at": now_ms(), "problem": f"first\n{HOSTILE}"}
    desk.set(number, state="failed", log=log, **values)
    page = desk.pages.get(f"/runs/{number}")
    order = ["no verdict", "scheduled run", "2 attempts", "first", "script>alert(1)", "Its last lines", "line 80"]
    places = [words(page.markup).index(each) for each in order]
    assert places == sorted(places)
    folded = page.markup.partition("All that it printed")[2]
    assert "line 0\n" in folded
    assert "line 0\n" not in page.markup.partition("<details")[0]
    assert_harmless(page)
    desk.set(number, log="short\n")
    assert "All that it printed" not in desk.main(f"/runs/{number}")


def test_a_page_that_was_open_is_loaded_again_when_the_run_ends(desk: Desk) -> None:
    number = desk.add()
    headers = desk.as_cookie() | {"HX-Request": "true"}
    path = f"/runs/{number}"
    assert "hx-refresh" not in desk.served.client.get(path, headers=headers).headers
    desk.database.write(lambda connection: ask_to_cancel(connection, number, now_ms()))
    assert desk.served.client.get(path, headers=headers).headers["hx-refresh"] == "true"
    assert "hx-refresh" not in desk.served.client.get(path, headers=desk.as_cookie()).headers


def test_runs_that_wait_or_work_are_on_top_of_the_list(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_list, "NEXT_RUNS", 2)
    queued = [desk.add(note=f"note {place}", ago=(10 - place) * MINUTE) for place in range(4)]
    over, working = desk.add(note="too late"), desk.add(by="schedule", ago=20 * MINUTE)
    desk.running(working)
    desk.set(over, state="cancelled")
    page = desk.pages.get("/p/docs/runs")
    rows = {int(number): text for number, text in page.rows('id="run-').items()}
    assert [*rows] == [working, *queued[:2], over]
    assert "▶ running" in rows[working]
    assert "the schedule" in rows[working]
    assert "… queued note 0" in rows[queued[0]]
    assert "2 more runs wait" in page.text
    assert "cancelled too late" in rows[over]
    (more,) = [link for link in page.links if "state=queued" in link]
    assert [*desk.pages.get(more).rows('id="run-')] == [f"{number}" for number in queued[::-1]]


def test_the_page_of_a_project_says_when_the_next_run_is_and_how_the_last_one_went(desk: Desk) -> None:
    assert "Next scheduled run" not in desk.main("/p/docs")
    next_at = next_time("03:00", now_ms())
    row = {"name": task_of("docs"), "next_at": next_at}
    desk.database.write(lambda connection: connection.execute(tasks.insert().values(row)))
    mount(desk.folder)
    assert re.search("Next scheduled run: [A-Z][a-z]{2} [0-9-]{10} 03:00 UTC ", f"{desk.main('/p/docs')} ")
    number = desk.add(by="schedule", ago=DAY)
    desk.add(by="user:ana")
    desk.set(number, state="failed")
    page = desk.pages.get("/p/docs")
    assert re.search("; the last one: no verdict at [A-Z][a-z]{2} [0-9-]{10} [0-9:]{5} UTC", words(page.markup))
    assert f"/runs/{number}" in page.links
    desk.database.write(lambda connection: connection.execute(tasks.update().values(last_error=HOSTILE)))
    page = desk.pages.get("/p/docs")
    assert "The scheduled run was not started, which is tried again: <script>" in words(page.markup)
    assert_harmless(page)


def test_a_broken_project_file_is_a_problem_on_the_page_of_its_project(desk: Desk) -> None:
    (desk.folder / "docs/project.yml").write_text(f'"{HOSTILE.replace(chr(0x202E), "")}": 1\nschedule: 3am\n')
    page = desk.pages.get("/p/docs")
    assert "The mounted project cannot be run as it is: docs/project.yml:1: " in words(page.markup)
    assert "schedule: expected a time of day" in page.text
    assert f"{desk.folder}" not in page.markup
    assert_harmless(page)
    mount(desk.folder, record=False)
    assert "project.yml has a schedule, but record.yml is missing" in desk.main("/p/docs")
    mount(desk.folder)
    assert "cannot be run as it is" not in desk.main("/p/docs")


def test_hostile_names_stay_texts(desk: Desk) -> None:
    numbers = [desk.add(note=HOSTILE, by=f"user:{HOSTILE}") for _ in range(2)]
    desk.running(numbers[0], log=HOSTILE)
    for path in ("/", "/p/docs", "/p/docs/runs", *(f"/runs/{number}" for number in numbers)):
        assert_harmless(desk.pages.get(path))
    assert "queued-" not in desk.main("/")
