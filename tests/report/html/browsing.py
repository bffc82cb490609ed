"""Reports to look at in a browser, and what a person does with their pages."""

from pathlib import Path

from ragcontract.report.html import page as html
from ragcontract.report.record import Report
from tests.browser import Browser
from tests.records import query, report

IDS = "[...document.querySelectorAll('#rows .id')].map((each) => each.textContent)"
COUNT = "document.getElementById('count').textContent"
READY = "document.getElementById('slopes').hidden || document.querySelector('.slope')"  # once its width is known
FOCUSED = "document.activeElement.textContent"
SORT = "document.querySelector('th[data-sort={}]').getAttribute('aria-sort')"
PLENTY = 10_000


def small() -> Report:
    return report(
        [
            query("fine", "A", query="How are invoices paid?", tags=("billing",)),
            query("slipped", "B", "B2", must_rank_at_most=9, tags=("billing", "policy")),
            query("lost", "C", tags=("policy",)),
            query("found", "D"),
            query("leaked", "E", forbidden_doc_ids=("secret",)),
            query("nobody"),
        ],
        {
            "fine": ["A"],
            "slipped": ["B2", "x", "B"],
            "lost": ["x"],
            "found": ["D"],
            "leaked": ["E", "secret"],
            "nobody": [],
        },
        {"fine": ["A"], "slipped": ["B", "B2"], "lost": ["C"], "found": ["x", "D"], "leaked": ["E"], "nobody": []},
    )


def large() -> Report:
    ids = [f"question-{number}" for number in range(PLENTY)]
    queries = [query(name, f"{name} doc", tags=(f"tag {len(name)}",)) for name in ids]
    now = {name: ["x"] if name.endswith("99") else [f"{name} doc"] for name in ids}
    return report(queries, now, {name: [f"{name} doc"] for name in ids})


def show(browser: Browser, folder: Path, made: Report, fragment: str = "") -> Path:
    file = folder / "report.html"
    file.write_bytes(html.render(made))
    browser.open(file, fragment)
    browser.wait(READY)
    return file


def focus(browser: Browser, selector: str) -> None:
    browser.js(f"document.querySelector({selector!r}).focus()")


def choose(browser: Browser, select: str, text: str) -> None:
    """Choose in a list by typing, as people do."""
    focus(browser, select)
    browser.type(text)
