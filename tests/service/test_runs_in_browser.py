"""The pages of runs in a real browser: what scripts do with them, and that nothing that was sent does anything."""

from collections.abc import Iterator

import pytest

from ragcontract.service.database import Database, now_ms
from ragcontract.service.web.authentication import LOCAL_COOKIE
from tests.browser import Browser
from tests.history.entries import RUN, new_entry
from tests.service.askers import new_session, new_user
from tests.service.running import running
from tests.service.served import Served
from tests.service.visiting import hostile_runs

PAGES = "/p/{slug}/runs", "/runs/1", "/runs/2", "/runs/2/compare/1"
IDS = "[...document.querySelectorAll('#rows .id')].map((each) => each.textContent)"


@pytest.fixture
def kind() -> str:
    """One kind of database: the browser does not see which."""
    return "sqlite"


@pytest.fixture
def browser(browser_of_module: Browser) -> Iterator[Browser]:
    browser_of_module.resize(1200, 900)
    browser_of_module.media()
    yield browser_of_module
    browser_of_module.send("Page.navigate", url="about:blank")


@pytest.fixture
def address(database: Database, browser: Browser) -> Iterator[str]:
    """Where the service answers; the browser is logged in."""
    key = database.write(lambda connection: new_user(connection, "ana"))
    cookie = database.write(lambda connection: new_session(connection, key, now_ms()))
    with running(database) as server:
        browser.send("Network.setCookie", name=LOCAL_COOKIE, value=cookie, url=server.url, httpOnly=True)
        yield server.url


def go(browser: Browser, url: str) -> None:
    browser.send("Page.navigate", url="about:blank")
    browser.complaints.clear()
    browser.requests.clear()
    browser.send("Page.navigate", url=url)
    browser.wait("location.protocol !== 'about:' && document.readyState === 'complete'")


@pytest.mark.parametrize("width", [400, 1200])
@pytest.mark.parametrize("path", PAGES)
def test_no_page_of_runs_does_what_a_text_wants(
    path: str, width: int, served: Served, browser: Browser, address: str
) -> None:
    hostile_runs(served)
    slug = served.get("/projects")["items"][0]["slug"]
    browser.resize(width, 900)
    go(browser, f"{address}{path.format(slug=slug)}")
    assert browser.complaints == []
    assert {url for url in browser.requests if not url.startswith((address, "data:"))} == set()
    assert browser.js("document.querySelectorAll('main h1').length") == 1
    assert browser.js("document.documentElement.scrollWidth <= innerWidth")


def test_the_queries_of_a_run_are_searched_as_in_its_report(served: Served, browser: Browser, address: str) -> None:
    report = hostile_runs(served)
    go(browser, f"{address}/runs/2")
    browser.wait("document.querySelector('#rows .toggle')")
    assert len(browser.js(IDS)) > 1
    name = report.queries[-1].id.rpartition(" ")[2]
    browser.js("document.getElementById('search').focus()")
    browser.type(name)
    browser.wait(f"{IDS}.length === 1")
    assert name in browser.js(IDS)[0]
    assert browser.complaints == []


def test_the_list_shows_a_new_run_by_itself_and_keeps_the_focus(served: Served, browser: Browser, address: str) -> None:
    served.add(new_entry())
    go(browser, f"{address}/p/docs/runs")
    browser.js("document.getElementById('run-1').focus()")
    served.add(new_entry(run=RUN + 1))
    browser.js("""{
        const list = document.getElementById("runs");
        list.setAttribute("hx-trigger", "every 50ms"); // sooner than after its 8 seconds
        htmx.process(list);
    }""")
    browser.wait("document.getElementById('run-2')")
    browser.wait("document.activeElement.id === 'run-1'")
    assert browser.js("document.getElementById('runs').getAttribute('hx-trigger')") == "every 8s"
    assert browser.complaints == []
