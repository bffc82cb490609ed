"""What all pages of the service have in common: navigation, problems, the files they load, and live refresh."""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select, update

from ragcontract.core import bounds
from ragcontract.service.database import Database, now_ms
from ragcontract.service.tables import projects, sessions
from ragcontract.service.web.pages.page_frame import SERVICE
from tests.browser import Browser
from tests.service.askers import ask, by_key, by_session, client_of, new_project, new_session, new_user
from tests.service.conftest import HOSTILE
from tests.service.running import running

HTMX = "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717"  # htmx.org 2.0.11 of npm: dist/htmx.min.js


def test_htmx_is_what_its_authors_released() -> None:
    assert hashlib.sha256((SERVICE / "static" / "htmx.min.js").read_bytes()).hexdigest() == HTMX


def test_no_template_has_what_the_policy_of_pages_forbids() -> None:
    templates = [path.read_text() for path in (Path(SERVICE) / "templates").iterdir()]
    assert templates
    for text in templates:
        assert "|safe" not in text.replace(" ", "")
        assert not re.search(r"\s(style|on\w+|hx-on[\w:-]*)=", text)
        assert not re.search(r"<script(?![^>]* (?:src=|type=\"application/json\"))|<style", text)


@pytest.mark.parametrize(
    ("path", "status", "title", "advice"),
    [
        ("/nowhere", 404, "Not Found", "The address may be mistyped"),
        ("/p/nowhere", 404, "Not Found", "The address may be mistyped"),
        ("/settings/users", 403, "Forbidden", "ask an administrator for another role"),
    ],
)
def test_a_problem_is_a_page_for_a_browser_and_json_for_a_program(
    path: str, status: int, title: str, advice: str, database: Database
) -> None:
    key = database.write(lambda connection: new_user(connection, "ana", "viewer"))
    cookie = database.write(lambda connection: new_session(connection, key))
    with client_of(database) as client:
        page = ask(client, "GET", path, by_session(cookie, Accept="text/html,application/xhtml+xml,*/*;q=0.8"))
        assert page.status_code == status
        assert page.headers["content-type"].startswith("text/html")
        assert f"<h1>{title}</h1>" in page.text
        assert advice in page.text
        assert "Log out" in page.text
        answer = ask(client, "GET", path, by_key(key))
        assert (answer.status_code, answer.json()["status"]) == (status, status)
        assert answer.headers["content-type"] == "application/problem+json"
        api = ask(client, "GET", "/api/v1/runs/999", by_session(cookie, Accept="text/html"))
        assert api.headers["content-type"] == "application/problem+json"


def test_whoever_sends_too_much_is_told_on_a_page_to_wait(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "REQUESTS_A_SECOND", 1)
    headers = {"Accept": "text/html"}
    with client_of(database) as client:
        pages = [ask(client, "GET", "/login", headers) for _ in range(10)]
    assert pages[0].status_code == 200
    assert pages[-1].status_code == 429
    assert "<h1>Too Many Requests</h1>" in pages[-1].text
    assert "load the page again" in pages[-1].text
    assert pages[-1].headers["retry-after"]


@pytest.mark.parametrize(
    ("path", "current"),
    [
        ("/", ["/"]),
        ("/p/docs", ["/p/docs"]),
        ("/p/docs/runs", ["/p/docs/runs"]),
        ("/p/docs/queries", ["/p/docs/queries"]),
        ("/settings", ["/settings", "/settings"]),
        ("/settings/users", ["/settings", "/settings/users"]),
        ("/settings/keys", ["/settings", "/settings/keys"]),
        ("/settings/audit", ["/settings", "/settings/audit"]),
        ("/nowhere", []),
    ],
)
def test_the_navigation_marks_where_the_reader_is(path: str, current: list[str], database: Database) -> None:
    key = database.write(lambda connection: new_user(connection, "root"))
    database.write(lambda connection: new_project(connection, "docs"))
    with client_of(database) as client:
        page = ask(client, "GET", path, {**by_key(key), "Accept": "text/html"}).text
    assert re.findall(r'href="([^"]*)" aria-current="page"', page) == current


def test_an_open_page_does_not_keep_its_session_alive(database: Database) -> None:
    key = database.write(lambda connection: new_user(connection, "ana"))
    start = now_ms() - (bounds.USE_NOTED + 1) * 1000
    cookie = database.write(lambda connection: new_session(connection, key, start))

    def seen_at() -> int:
        with database.read() as connection:
            return int(connection.execute(select(sessions.c.seen_at)).scalar_one())

    with client_of(database) as client:
        for _ in range(3):
            assert ask(client, "GET", "/", by_session(cookie, **{"HX-Request": "true"})).status_code == 200
        assert seen_at() == start
        assert ask(client, "GET", "/", by_session(cookie)).status_code == 200
        assert seen_at() > start


@pytest.fixture
def browser(browser_of_module: Browser) -> Iterator[Browser]:
    yield browser_of_module
    browser_of_module.resize(1200, 900)
    browser_of_module.media()
    browser_of_module.scripts(on=True)
    browser_of_module.send("Page.navigate", url="about:blank")
    browser_of_module.send("Network.clearBrowserCookies")


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_is_wider_than_a_phone(scheme: str, database: Database, browser: Browser) -> None:
    name = (HOSTILE + "W\u0301\u202e" * 200)[:200]
    key = database.write(lambda connection: new_user(connection, "w" * bounds.ACCOUNT_NAME))
    cookie = database.write(lambda connection: new_session(connection, key))
    database.write(lambda connection: new_project(connection, "docs"))
    database.write(lambda connection: connection.execute(update(projects).values(name=name)))
    browser.resize(400, 900)
    browser.media(scheme=scheme)
    with running(database) as server:
        browser.send("Network.setCookie", name="session", value=cookie, url=server.url)
        browser.complaints.clear()
        browser.requests.clear()
        for path in ("/", "/p/docs", "/settings", "/settings/users", "/settings/keys", "/settings/audit"):
            browser.send("Page.navigate", url=f"{server.url}{path}")
            browser.wait(f"location.pathname === '{path}' && document.readyState === 'complete'")
            assert browser.js("document.documentElement.scrollWidth") <= 400, path
            assert browser.js("document.querySelectorAll('h1').length") == 1
        assert browser.complaints == []
        assert [url for url in browser.requests if not url.startswith((server.url, "data:"))] == []


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_an_administrator_adds_a_user_by_keyboard_without_javascript(database: Database, browser: Browser) -> None:
    key = database.write(lambda connection: new_user(connection, "root"))
    cookie = database.write(lambda connection: new_session(connection, key))
    with running(database) as server:
        browser.send("Network.setCookie", name="session", value=cookie, url=server.url)
        browser.scripts(on=False)
        browser.send("Page.navigate", url=f"{server.url}/settings/users")
        browser.wait("location.pathname === '/settings/users' && document.readyState === 'complete'")
        for _ in range(30):
            browser.press("Tab")
            if browser.js("document.activeElement.name === 'name'"):
                break
        browser.type("ana")
        browser.press("Enter")
        browser.wait("document.getElementById('link')")
        assert "/login?link=rc_" in browser.js("document.getElementById('link').textContent")
