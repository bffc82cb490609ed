"""Logging in with a real browser, without JavaScript of ours; and what another site can make the browser do."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from sqlalchemy import select

from ragcontract.service.database import Database, now_ms
from ragcontract.service.logging_in import first_admin
from ragcontract.service.tables import audit, sessions, tokens
from tests.browser import Browser
from tests.service.askers import new_user
from tests.service.running import running


@pytest.fixture
def kind() -> str:
    """One kind of database: the browser does not see which."""
    return "sqlite"


@pytest.fixture
def browser(browser_of_module: Browser) -> Iterator[Browser]:
    """Return a browser that knows no cookie."""
    browser_of_module.resize(1200, 900)
    browser_of_module.media()
    browser_of_module.send("Network.clearBrowserCookies")
    yield browser_of_module
    browser_of_module.send("Page.navigate", url="about:blank")


def go(browser: Browser, url: str) -> None:
    browser.send("Page.navigate", url="about:blank")
    browser.complaints.clear()
    browser.send("Page.navigate", url=url)
    browser.wait("location.protocol !== 'about:' && document.readyState === 'complete'")


def text(browser: Browser) -> str:
    return str(browser.js("document.body.innerText"))


@contextmanager
def page_of_another_site(html: str) -> Iterator[int]:
    """Serve a page at any path; return the port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(html.encode())

        def log_message(self, *_: object) -> None:
            pass

    # With threads: a browser opens connections before it needs them.
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.block_on_close = False
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def served(database: Database) -> Iterator[str]:
    """Serve what a database has; return an address at which browsers keep the cookie apart from 127.0.0.1."""
    with running(database) as service:
        yield service.url.replace("127.0.0.1", "localhost")


def log_in(browser: Browser, address: str, key: str) -> None:
    go(browser, f"{address}/")
    browser.wait("document.activeElement?.id === 'key'")  # the page leads to the login, and the cursor is there
    browser.type(key)
    browser.press("Enter")
    browser.wait("document.body && document.body.innerText.includes('Log out')")


def fits(browser: Browser) -> bool:
    return bool(browser.js("document.documentElement?.scrollWidth <= innerWidth"))


@pytest.mark.parametrize("width", [400, 1200])
def test_a_person_logs_in_with_a_link_and_later_with_the_key(width: int, database: Database, browser: Browser) -> None:
    link = database.write(lambda connection: first_admin(connection, now_ms()))
    browser.resize(width, 900)
    with served(database) as address:
        go(browser, f"{address}/login?link={link}")
        assert fits(browser)
        browser.press("Tab", "Enter")
        browser.wait("document.getElementById('key')?.tagName === 'CODE'")
        assert fits(browser)
        key = browser.js("document.getElementById('key').textContent")
        browser.press("Tab", "Enter")
        browser.wait("document.body && document.body.innerText.includes('Log out admin')")
        browser.press("Tab", "Tab", "Tab", "Tab", "Enter")  # after the skip link, the first page and the settings
        browser.wait("document.activeElement?.id === 'key'")
        assert browser.complaints == []
        browser.type("rc_wrong")
        browser.press("Enter")
        browser.wait("document.querySelector('[role=alert]')")
        assert "not a valid key" in text(browser)
        assert ("alert", "") in browser.accessible()
        assert [each for each in browser.accessible() if each[0] == "textbox"] == [("textbox", "Your key")]
        assert fits(browser)
        log_in(browser, address, key)
        assert browser.complaints == []
        assert browser.js("document.cookie") == ""
        assert browser.js("getComputedStyle(document.querySelector('button')).borderRadius") == "6px"


FORM = '<form method="post" enctype="text/plain" action="{}{}"><input name="x" value="1"></form>'


@pytest.mark.parametrize(
    ("host", "answers"),
    [
        ("localhost", ["Forbidden"]),  # another port is another origin of the same site: the cookie is sent
        ("127.0.0.1", ["Unauthorized", "Log in"]),  # another site: the browser keeps the cookie to itself
    ],
)
@pytest.mark.parametrize("path", ["/api/v1/users/ana/link", "/logout"])
def test_a_form_of_another_origin_changes_nothing(
    path: str, host: str, answers: Sequence[str], database: Database, browser: Browser
) -> None:
    key = database.write(lambda connection: new_user(connection, "ana"))
    with served(database) as address, page_of_another_site(FORM.format(address, path)) as port:
        log_in(browser, address, key)
        with database.read() as connection:
            before = [connection.execute(select(table)).all() for table in (audit, tokens.c.id, sessions.c.sha256)]
        go(browser, f"http://{host}:{port}/")
        browser.js("document.forms[0].submit()")
        browser.wait(f"location.port !== '{port}' && document.readyState === 'complete'")
        assert any(answer in text(browser) for answer in answers)
        with database.read() as connection:
            after = [connection.execute(select(table)).all() for table in (audit, tokens.c.id, sessions.c.sha256)]
        assert after == before
        go(browser, f"{address}/")
        assert "Log out ana" in text(browser)


def test_another_site_logs_nobody_in_and_reads_nothing(database: Database, browser: Browser) -> None:
    key = database.write(lambda connection: new_user(connection, "mallory"))
    form = f'<form method="post" action="{{}}/login"><input name="key" value="{key}"></form>'
    with served(database) as address, page_of_another_site(form.format(address)) as port:
        go(browser, f"http://localhost:{port}/")
        browser.js("document.forms[0].submit()")
        browser.wait(f"location.port !== '{port}' && document.readyState === 'complete'")
        assert "Forbidden" in text(browser)
        go(browser, f"{address}/")
        assert "Your key" in text(browser)
        log_in(browser, address, key)
        go(browser, f"http://localhost:{port}/")
        reading = f"fetch('{address}/api/v1/users', {{credentials: 'include'}}).then(_ => 'read', _ => 'refused')"
        assert browser.js(reading) == "refused"
        framed = browser.js(
            f"new Promise(done => {{ const frame = document.createElement('iframe'); frame.src = '{address}/';"
            "frame.onload = () => done(frame.contentDocument === null ? 'refused' : 'open');"
            "document.body.append(frame); })"
        )
        assert framed == "refused"
        assert any("frame-ancestors" in complaint for complaint in browser.complaints)
