"""The pages in Chromium, driven by Playwright: each answers its question to somebody who has only a keyboard.

The demo is served, wide and narrow, in light and dark rooms, on paper, and without JavaScript. No page says anything on
the console or asks another host for anything.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from ragcontract.history.entry import NewEntry
from ragcontract.service.accounts import add_machine_key
from ragcontract.service.database import Database, database_url, now_ms
from ragcontract.service.demo.demo_database import fill
from ragcontract.service.demo.demo_database import mount as mount_demo
from ragcontract.service.migrate import migrate
from ragcontract.service.web.pages.page_frame import address
from ragcontract.service.workers.run_queue import claim, end, renew
from tests.history.repository import without_ci
from tests.needs import program, require
from tests.service.askers import author, new_session, new_user
from tests.service.conftest import HOSTILE
from tests.service.running import running
from tests.service.served import Served
from tests.service.test_schedule import mount

WIDTHS = (1200, 400)
HEIGHT = 900
MOST_TABS = 150  # until a link is reached
PATIENCE = 120_000  # ms; on a loaded machine, a page may come late
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


# The texts whose colour is too near to that of their ground, by the formula of WCAG 2.
UNREADABLE = """() => {
  const rgb = color => (color.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(each => each / 255)
    .map(each => each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4)
    .reduce((sum, each, place) => sum + each * [0.2126, 0.7152, 0.0722][place], 0);
  const ground = element => {
    for (let each = element; each; each = each.parentElement) {
      const color = rgb(getComputedStyle(each).backgroundColor);
      if (color.length === 3 || color[3] > 0) return color;
    }
    return [255, 255, 255];
  };
  const bad = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const element = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || element.closest("script, svg") || !element.checkVisibility()) continue;
    const [one, other] = [light(rgb(getComputedStyle(element).color)), light(ground(element))].sort((a, b) => b - a);
    if ((one + 0.05) / (other + 0.05) < 4.5) bad.push(walk.currentNode.data.trim());
  }
  return bad;
}"""


class Journey(NamedTuple):
    """The links that lead to a page from the first one, and what answers its question on its first screen."""

    links: tuple[str, ...]
    answer: str


BROKEN = "support-agent: 3 of 17 queries broken.*"
JOURNEYS = {
    "is anything broken now": Journey((), r"1 of 4 projects is broken:\s+Support agent"),
    "when did quality move, and which commit moved it": Journey(("Docs answers",), r"Worse since [0-9a-f]{7} \("),
    "which run was it": Journey(("Support agent", "Runs"), "3 of 17 queries broken"),
    "why did it fail": Journey((BROKEN,), "Contract support-agent broken"),
    "what changed since the last pass": Journey((BROKEN,), "3 queries newly broken since run"),
    "what changed since another run": Journey((BROKEN, "Compare the two runs"), "3 queries newly broken since run"),
    "what must be found": Journey(("Product search", "Queries"), "18 queries"),
    "is this query flaky or newly broken": Journey(("Shop chatbot", "Queries", "gift_wrapping"), "Flaky: broken in"),
    "do alerts arrive": Journey(("Settings", "Alerts"), "Alerts are sent nowhere"),
    "what does it return now": Journey(
        ("Docs answers", "Playground", "Ask the golden query"), "as golden query invite"
    ),
    "who may do what": Journey(("Settings",), "Your role is admin"),
}


class Demo(NamedTuple):
    """The demo as it is served, and the session of an administrator."""

    url: str
    cookie: str


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    with pytest.MonkeyPatch.context() as patch:
        without_ci(patch)
        database = Database(database_url(str(tmp_path_factory.mktemp("demo") / "service.db")))
        migrate(database)
        fill(database, datetime.now(UTC))
        key = database.write(lambda connection: new_user(connection, "ana"))
        cookie = database.write(lambda connection: new_session(connection, key))
        projects = mount_demo(tmp_path_factory.mktemp("demo") / "projects", datetime.now(UTC))
        with running(database, projects) as service:
            yield Demo(service.url, cookie)
        database.close()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    require("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program("chromium"), args=QUIET)
        yield browser
        browser.close()


@contextmanager
def opened(chromium: Browser, demo: Demo, **options: Any) -> Iterator[Page]:
    """Open the first page for somebody who is logged in; fail if a page complains, or asks another host."""
    context: BrowserContext = chromium.new_context(**options)
    context.add_cookies([{"name": "session", "value": demo.cookie, "url": demo.url, "httpOnly": True}])
    context.set_default_timeout(PATIENCE)
    page, complaints, hosts = context.new_page(), list[str](), set[str]()
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(dialog.message))
    page.on("request", lambda request: hosts.add(urlsplit(request.url).netloc))
    page.goto(demo.url)
    yield page
    context.close()
    assert complaints == []
    assert hosts <= {urlsplit(demo.url).netloc, ""}  # data: has none


def follow(page: Page, link: str) -> None:
    """Press Tab until the link is reached, then Enter."""
    for _ in range(MOST_TABS):
        page.keyboard.press("Tab")
        focused = page.locator(":focus")
        if focused.count() and re.fullmatch(link, focused.inner_text().strip(), re.DOTALL):
            break
    else:
        raise AssertionError(f"no link {link!r} was reached from {page.url}")
    with page.expect_navigation():
        page.keyboard.press("Enter")


def is_on_first_screen(page: Page, answer: str) -> bool:
    texts = page.locator("main :is(h1, p, li, td)").filter(has_text=re.compile(answer))
    boxes = [each.bounding_box() for each in texts.all()]
    return any(box and 0 <= box["y"] < HEIGHT for box in boxes)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("question", JOURNEYS)
def test_a_page_answers_its_question_in_three_actions_of_a_keyboard(
    question: str, width: int, chromium: Browser, demo: Demo
) -> None:
    links, answer = JOURNEYS[question]
    assert len(links) <= 3
    with opened(chromium, demo, viewport={"width": width, "height": HEIGHT}) as page:
        for link in links:
            follow(page, link)
        assert is_on_first_screen(page, answer), page.inner_text("main")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("question", JOURNEYS)
def test_a_page_is_whole_without_scripts_in_the_dark_and_on_paper(question: str, chromium: Browser, demo: Demo) -> None:
    links, answer = JOURNEYS[question]
    looks: list[dict[str, Any]] = [{"java_script_enabled": False}, {"color_scheme": "dark"}, {"color_scheme": "light"}]
    grounds = []
    for look in looks:
        with opened(chromium, demo, viewport={"width": 1200, "height": HEIGHT}, **look) as page:
            for link in links:
                named = re.compile(f"^{link}$")
                page.get_by_role("link", name=named).or_(page.get_by_role("button", name=named)).first.click()
            assert is_on_first_screen(page, answer)
            assert page.evaluate(UNREADABLE) == []
            grounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
            page.emulate_media(media="print")
            assert is_on_first_screen(page, answer)
            assert not page.locator("nav.top").is_visible()
    assert grounds[0] == grounds[2] != grounds[1]


def refresh_soon(page: Page) -> None:
    """Let the live part of a page ask for news sooner than after its 8 seconds."""
    page.evaluate("""() => {
        const live = document.querySelector("[data-live]");
        live.setAttribute("hx-trigger", "every 50ms");
        htmx.process(live);
    }""")


@contextmanager
def desk_of_an_editor(chromium: Browser, database: Database, folder: Path, **options: Any) -> Iterator[Page]:
    """Open the page of a mounted project that can be run, for an editor."""
    mount(folder / "projects", text="name: Docs\n")
    key = database.write(lambda connection: new_user(connection, "ana", "editor"))
    cookie = database.write(lambda connection: new_session(connection, key))
    with (
        running(database, projects=folder / "projects") as service,
        opened(chromium, Demo(service.url, cookie), **options) as page,
    ):
        page.goto(f"{service.url}/p/docs")
        yield page


@pytest.mark.parametrize("look", [{}, {"java_script_enabled": False}], ids=["with-scripts", "without-scripts"])
@pytest.mark.parametrize("width", WIDTHS)
def test_a_run_is_started_seen_in_the_queue_and_cancelled_in_three_actions_of_a_keyboard(
    width: int, look: dict[str, Any], chromium: Browser, database: Database, tmp_path: Path
) -> None:
    viewport = {"width": width, "height": HEIGHT}
    with desk_of_an_editor(chromium, database, tmp_path, viewport=viewport, **look) as page:
        follow(page, "Runs")
        follow(page, "Start a run")
        assert is_on_first_screen(page, "Run 1 of Docs: queued")
        assert is_on_first_screen(page, "The next one to run")
        follow(page, "Cancel the run")
        assert is_on_first_screen(page, "Run 1 of Docs: cancelled")
        assert is_on_first_screen(page, "Cancelled by ana")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_of_a_run_follows_it_until_it_ends(
    scheme: Literal["light", "dark"], chromium: Browser, database: Database, tmp_path: Path
) -> None:
    with desk_of_an_editor(chromium, database, tmp_path, color_scheme=scheme) as page:
        page.get_by_role("link", name="Runs", exact=True).click()
        page.get_by_label("Note, if you like").fill(HOSTILE)
        page.get_by_role("button", name="Start a run").click()
        page.get_by_role("heading", name="Run 1 of Docs: queued").wait_for()
        page.get_by_role("button", name="Cancel the run").focus()
        held = database.write(lambda connection: claim(connection, "w", now_ms()))
        assert held
        database.write(lambda connection: renew(connection, held, f"line\n{HOSTILE}\n", now_ms()))
        refresh_soon(page)
        page.get_by_role("heading", name="Run 1 of Docs: running").wait_for()
        assert "line" in page.inner_text("#last-lines")
        assert page.evaluate("document.activeElement.id") == "cancel"  # whose focus stays
        assert page.evaluate(UNREADABLE) == []
        database.write(lambda connection: end(connection, held, "failed", problem="why", log="line\n", now=now_ms()))
        refresh_soon(page)
        page.get_by_role("heading", name="Run 1 of Docs: no verdict").wait_for()
        assert page.locator("[data-live]").count() == 0
        assert page.evaluate(UNREADABLE) == []


def test_hostile_texts_stay_texts(chromium: Browser, database: Database, checked_run: tuple[NewEntry, bytes]) -> None:
    key = database.write(lambda connection: new_user(connection, "ana"))
    cookie = database.write(lambda connection: new_session(connection, key))
    database.write(lambda connection: add_machine_key(connection, "<script>alert(1)</script>", ["read"], author()))
    new, report = checked_run
    with Served(database) as served:
        number = served.add(new, report=served.send_blob(report, "report"))
    paths = ["", "p/docs", "p/docs/runs", "p/docs/queries", f"runs/{number}", f"runs/{number}/compare/{number}"]
    paths += [
        address("p", "docs", "query", id=HOSTILE)[1:],
        "settings",
        "settings/users",
        "settings/keys",
        "settings/alerts",
    ]
    paths += ["p/docs/playground"]
    with running(database) as service, opened(chromium, Demo(service.url, cookie)) as page:
        shown = ""
        for path in paths:
            answer = page.goto(f"{service.url}/{path}")
            assert answer
            assert answer.status == 200, path
            shown += page.inner_text("main")
            assert page.evaluate("[...document.scripts].every(each => each.src || each.type === 'application/json')")
        assert "<script>alert(1)</script>" in shown
