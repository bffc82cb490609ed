"""The service's pages, as what they consist of."""

import re
from datetime import timedelta
from html import unescape
from typing import Any

from litestar.testing import TestClient

from ragcontract.report.json_report import render as report_json
from ragcontract.report.record import Report
from tests.history.entries import FIRST, RUN, new_entry, results_of
from tests.report.html.parsed import Parsed, hostile
from tests.service.askers import ask, by_key
from tests.service.conftest import HOSTILE
from tests.service.served import Served


class Page(Parsed):
    """A page: its markup, its elements, and its text."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self.markup = content.decode()

    @property
    def links(self) -> list[str]:
        return [attributes["href"] or "" for tag, attributes in self.elements if tag == "a"]

    def rows(self, marker: str) -> dict[str, str]:
        """Return the text of each row of a table, by what follows the marker in it."""
        parts = [row.partition(marker)[2] for row in self.markup.split("<tr")]
        return {part.partition('"')[0]: " ".join(text_of(part).split()) for part in parts if part}


def text_of(markup: str) -> str:
    return unescape(re.sub("<[^>]*>", " ", markup))


class Pages:
    """Requests for pages, as a browser sends them, with the key of a machine."""

    def __init__(self, client: TestClient[Any], key: str) -> None:
        self.client, self.key = client, key

    def get(self, path: str, status: int = 200, key: str | None = None) -> Page:
        answer = ask(self.client, "GET", path, by_key(key or self.key) | {"Accept": "text/html"})
        assert answer.status_code == status, answer.text
        assert answer.headers["content-type"].startswith("text/html")
        return Page(answer.content)


def assert_harmless(page: Page) -> None:
    """Nothing that somebody sent became an element or an attribute that does something."""
    assert {tag for tag, _ in page.elements}.isdisjoint({"img", "iframe", "object", "embed", "base", "style"})
    for tag, attributes in page.elements:
        assert not any(name.startswith("on") or name == "style" for name in attributes), tag
        assert not (attributes.get("href") or "").lower().startswith("javascript:")
        assert tag != "script" or attributes.get("id") == "data" or (attributes["src"] or "").startswith("/static/")
    assert all(not text.strip() or attributes.get("id") == "data" for _, attributes, text in page.raw)
    assert not set(page.markup) & {"\u202e", "\u2028", "\x1b"}


def hostile_runs(served: Served) -> Report:
    """Send two runs in which all texts try to get out of the page; return the report of the second one."""
    report = hostile()
    of_runs: list[dict[str, Any]] = [{"verdict": "pass"}, {"failed": [HOSTILE, "'\">&\u2028"]}]
    for number, fields in enumerate(of_runs):
        source = {"commit": f"{'3f9c1a2b4d5e':0<40}", "branch": HOSTILE, "event": HOSTILE, "run_id": RUN + number}
        new = new_entry(
            report.contract,
            at=FIRST + timedelta(hours=number),
            run=RUN + number,
            results=results_of(HOSTILE),
            summary=HOSTILE,
            source=source | {"run_url": "javascript:alert(1)"},
            **({"verdict": report.verdict} | fields),
        )
        content = b"".join(report_json(report, report.queries, "all"))
        params = {"report": served.send_blob(content, "report")} if number else {}
        served.add(new, default_branch=True, **params)
    return report
