"""The pages of production and of candidates in Chromium: what changed, and decisions, with a keyboard alone."""

import json
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright
from sqlalchemy import select

from ragcontract.service.database import DAY, Database, database_url, now_ms
from ragcontract.service.migrate import migrate
from ragcontract.service.tables import accepted_levels, candidates
from tests.needs import program, require
from tests.service.askers import new_session, new_user
from tests.service.conftest import HOSTILE
from tests.service.production_rows import add_candidate_row, add_days, add_interaction_row, add_project_row
from tests.service.running import running
from tests.service.targets import project
from tests.service.test_pages_in_browser import (
    HEIGHT,
    MOST_TABS,
    QUIET,
    UNREADABLE,
    WIDTHS,
    Demo,
    Journey,
    follow,
    is_on_first_screen,
    opened,
)

BAD = f"{HOSTILE}\x1b[31m\u2028'\"><b onclick=alert(1)>"
JOURNEYS = {
    "does production still look like what we test": Journey(
        ("Docs", "Production"), r"Not as before:\s+Questions are longer since \d+ [A-Z][a-z]{2}: median 61 characters"
    ),
    "which real questions belong into the contract": Journey(("Docs", "Candidates"), r"How do I invite a teammate\?"),
    "how is traffic sent": Journey(("empty", "Production"), "Nothing was sent yet"),
    "where do candidates come from": Journey(("empty", "Candidates"), "No question waits"),
}
LOOKS: list[dict[str, Any]] = [{"java_script_enabled": False}, {"color_scheme": "dark"}, {"color_scheme": "light"}]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    require("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program("chromium"), args=QUIET)
        yield browser
        browser.close()


def production(folder: Path) -> Database:
    """Return a project with candidates, interactions and an alarm; another one without any."""
    database = Database(database_url(str(folder / "service.db")))
    migrate(database)
    add_project_row(database, "docs")
    add_project_row(database, "empty")
    results = [{"doc_id": "guide/invite.md", "score": 0.9}, {"doc_id": BAD, "score": 0.5}]
    told: dict[str, Any] = {"response": f"{BAD} {'and more ' * 60}", "results": results}
    add_candidate_row(database, "How do I invite a teammate?", asked=7, reason="slow", flags=4, **told)
    add_candidate_row(database, BAD, reason=BAD, source=BAD, error=BAD, tags=[BAD], flags=31, **told)
    for number in range(40):
        add_interaction_row(database, f"Question {number}?", asked_at=now_ms() - number * 60_000, tags=[BAD], **told)
    lengths = [45.0] * 40 + [61.0] * 3
    add_days(database, "question_length", lengths, last=now_ms() - DAY, z={0: 8.0, 1: 8.0, 2: 8.0}, alarms={2: 1})
    add_days(database, "error_rate", [0.02, 0.03] * 20, last=now_ms() - DAY)
    return database


@contextmanager
def desk_of(database: Database, folder: Path) -> Iterator[Demo]:
    """Run a service and log an editor in."""
    key = database.write(lambda connection: new_user(connection, "ana", "editor"))
    cookie = database.write(lambda connection: new_session(connection, key))
    with running(database, project(folder / "projects", file="name: Docs\n")) as service:
        yield Demo(service.url, cookie)


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """A service for all tests that only read."""
    folder = tmp_path_factory.mktemp("unchanged")
    with closing(production(folder)) as database, desk_of(database, folder) as desk:
        yield desk


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(production(tmp_path)) as database:
        yield database


@pytest.fixture
def desk(database: Database, tmp_path: Path) -> Iterator[Demo]:
    with desk_of(database, tmp_path) as desk:
        yield desk


def focus(page: Page, selector: str) -> None:
    """Press Tab until an element has the focus."""
    for _ in range(MOST_TABS):
        page.keyboard.press("Tab")
        if page.locator(f"{selector}:focus").count():
            return
    raise AssertionError(f"no {selector} was reached")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("question", JOURNEYS)
def test_a_page_answers_its_question_in_three_actions_of_a_keyboard(
    question: str, width: int, chromium: Browser, unchanged: Demo
) -> None:
    links, answer = JOURNEYS[question]
    with opened(chromium, unchanged, viewport={"width": width, "height": HEIGHT}) as page:
        for link in links:
            follow(page, link)
        assert is_on_first_screen(page, answer) or page.locator("main h2").first.is_visible(), page.inner_text("main")
        assert re.search(answer, page.inner_text("main"))
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("path", ["/p/docs/production", "/p/docs/candidates", "/p/docs/candidates?state=accepted"])
def test_a_page_is_whole_without_scripts_in_the_dark_and_on_paper(
    path: str, chromium: Browser, unchanged: Demo
) -> None:
    for look in LOOKS:
        with opened(chromium, unchanged, viewport={"width": 1200, "height": HEIGHT}, **look) as page:
            page.goto(f"{unchanged.url}{path}")
            page.locator("details").evaluate_all("each => each.forEach(details => details.open = true)")
            assert page.evaluate(UNREADABLE) == []
            assert "<script>alert(1)</script>" in page.inner_text("main") or path.endswith("accepted")
            page.emulate_media(media="print")
            assert not page.locator("nav.top").is_visible()
            assert page.locator("main h1").is_visible()
            assert not page.locator("main form").first.is_visible()


@pytest.mark.parametrize("scripts", [True, False], ids=["with-scripts", "without-scripts"])
@pytest.mark.parametrize("width", WIDTHS)
def test_a_candidate_is_accepted_and_taken_back_with_a_keyboard(
    width: int, scripts: bool, chromium: Browser, desk: Demo, database: Database
) -> None:
    viewport = {"width": width, "height": HEIGHT}
    with opened(chromium, desk, viewport=viewport, java_script_enabled=scripts) as page:
        page.goto(f"{desk.url}/p/docs/candidates")
        focus(page, "input[value='guide/invite.md']")
        page.keyboard.press("Space")
        follow(page, "Accept")
        expect(page.get_by_role("status")).to_contain_text("Accepted: “How do I invite a teammate?”")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        with page.expect_download() as download:
            page.get_by_role("link", name="Download 1 accepted row").click()
        (line,) = Path(download.value.path()).read_text().splitlines()
        assert json.loads(line) == {
            "id": "how_do_i_invite_a_teammate",
            "query": "How do I invite a teammate?",
            "relevant_doc_ids": ["guide/invite.md"],
        }
        follow(page, "Take it back")
        expect(page.get_by_role("status")).to_contain_text("It waits again")
        assert page.locator("input[value='guide/invite.md']").first.is_checked()
        follow(page, "Reject")
        expect(page.get_by_role("status")).to_contain_text("Rejected")
    with database.read() as connection:
        assert connection.execute(select(candidates.c.state).where(candidates.c.id == 1)).scalar() == "rejected"


def test_an_id_with_any_characters_is_sent_as_it_is(chromium: Browser, desk: Demo, database: Database) -> None:
    with opened(chromium, desk) as page:
        page.goto(f"{desk.url}/p/docs/candidates")
        card = page.locator("#candidate-2")
        card.get_by_role("checkbox").nth(1).check()
        card.get_by_text("Other documents, id, tags").click()
        card.get_by_label("Id", exact=True).fill(HOSTILE)
        card.get_by_label("Tags, with commas between them").fill("<b>, two")
        card.get_by_role("button", name="Accept").click()
        expect(page.get_by_role("status")).to_contain_text("Accepted")
    with database.read() as connection:
        row = json.loads(connection.execute(select(candidates.c.row).where(candidates.c.id == 2)).scalar_one())
    assert row == {"id": HOSTILE, "query": BAD, "relevant_doc_ids": [BAD], "tags": ["<b>", "two"]}


@pytest.mark.parametrize("width", WIDTHS)
def test_the_new_level_is_accepted_with_a_keyboard(
    width: int, chromium: Browser, desk: Demo, database: Database
) -> None:
    with opened(chromium, desk, viewport={"width": width, "height": HEIGHT}) as page:
        page.goto(f"{desk.url}/p/docs/production")
        follow(page, "This is the new level")
        assert "Not as before" not in page.inner_text("main")
        assert "ana accepted the level" in page.inner_text("main")
    with database.read() as connection:
        assert connection.execute(select(accepted_levels.c.monitor)).scalars().all() == ["question_length"]


def test_interactions_are_filtered_and_paged_with_a_keyboard(chromium: Browser, unchanged: Demo) -> None:
    with opened(chromium, unchanged, viewport={"width": 400, "height": HEIGHT}) as page:
        page.goto(f"{unchanged.url}/p/docs/production")
        focus(page, "select[name=flag]")
        page.keyboard.type("slow")
        follow(page, "Show")
        assert page.url.endswith("flag=slow&source=&day=#interactions")
        assert page.locator(".interaction").count() == 2
        page.goto(f"{unchanged.url}/p/docs/production")
        follow(page, "Older")
        assert "Question 30?" in page.inner_text("#interactions")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
