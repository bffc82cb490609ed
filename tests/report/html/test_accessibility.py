"""The page for everyone in a browser: any text, any screen, read aloud, printed, by keys, without scripts."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from ragcontract.report.record import Report
from tests.browser import Browser
from tests.records import query, report
from tests.report.everything import everything
from tests.report.html.browsing import IDS, large, show, small
from tests.report.html.parsed import HOSTILE, hostile, marked


def test_hostile_text_stays_text(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, hostile())
    browser.js("document.querySelectorAll('.toggle').forEach((each) => each.click())")
    assert browser.js("document.querySelectorAll('img, iframe, object, embed, [onerror]').length") == 0
    assert browser.js("document.querySelectorAll('script').length") == 2
    assert "</script><img src=x onerror=alert(1)>`|\"'&amp; {{data}} \\x1b[31m\\u202eabc" in browser.js(IDS)[0]


def test_no_text_of_a_report_becomes_an_element(browser: Browser, tmp_path: Path) -> None:
    counted = "document.querySelectorAll('*').length"
    show(browser, tmp_path, everything())
    count = browser.js(counted)
    show(browser, tmp_path, marked(everything(), lambda name: f"{HOSTILE} {name}"))
    assert browser.js(counted) == count


@pytest.mark.parametrize("width", [1200, 400, 320])
@pytest.mark.parametrize("make", [small, hostile])
def test_nothing_sticks_out_of_the_screen(
    browser: Browser, tmp_path: Path, width: int, make: Callable[[], Report]
) -> None:
    long_id = report([query("long" + "x" * 5000, "d" * 5000)], {"long" + "x" * 5000: ["z"]})
    browser.resize(width, 900)
    for made in (make(), long_id):
        show(browser, tmp_path, made)
        browser.js("document.querySelectorAll('.toggle').forEach((each) => each.click())")
        assert browser.js("document.documentElement.scrollWidth") <= width


def test_dark_and_light_follow_the_room(browser: Browser, tmp_path: Path) -> None:
    seen = {}
    for scheme in ("light", "dark"):
        browser.media(scheme=scheme)
        show(browser, tmp_path, small())
        seen[scheme] = browser.js("getComputedStyle(document.body).backgroundColor")
    assert seen == {"light": "rgb(247, 247, 245)", "dark": "rgb(20, 23, 26)"}


def test_on_paper_there_are_no_controls_and_every_fold_is_open(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, large())
    assert browser.paper().startswith(b"%PDF")
    browser.media("print", scheme="dark")
    browser.js("dispatchEvent(new Event('beforeprint'))")
    assert browser.js("getComputedStyle(document.querySelector('form')).display") == "none"
    assert browser.js("getComputedStyle(document.getElementById('pager')).display") == "none"
    assert browser.js("document.querySelectorAll('details:not([open])').length") == 0
    assert browser.js("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.js("document.getElementById('rows').innerText").endswith("… and 9,500 more queries")
    browser.js("dispatchEvent(new Event('afterprint'))")
    assert browser.js("document.querySelectorAll('#rows tr').length") == 20
    assert browser.js("document.querySelectorAll('details[open]').length") == 0


@pytest.mark.parametrize("width", [1200, 400])
def test_a_screen_reader_learns_what_is_what(browser: Browser, tmp_path: Path, width: int) -> None:
    browser.resize(width, 900)
    show(browser, tmp_path, small())
    found = browser.accessible()
    assert {
        ("heading", "Retrieval contract broken"),
        ("table", "Queries"),
        ("columnheader", "Query"),
        ("searchbox", "Search"),
        ("combobox", "Status"),
        ("combobox", "Tag"),
        ("combobox", "Metric"),
        ("button", "leaked"),
        ("region", "Metrics by tag"),
        ("search", "Queries"),
    } <= set(found)
    assert all(name for role, name in found if role in {"button", "link", "combobox", "searchbox", "heading", "region"})
    assert sum(role == "row" for role, _ in found) >= 7
    assert browser.js("document.querySelectorAll('main, h1').length") == 2


def test_the_tab_key_goes_down_the_page(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, small())
    tops, seen = [], set()
    for _ in range(26):
        browser.press("Tab")
        tops.append(browser.js("document.activeElement.getBoundingClientRect().top + scrollY"))
        seen.add(browser.js("document.activeElement.id || document.activeElement.getAttribute('class')"))
        assert browser.js(
            "getComputedStyle(document.activeElement).outlineStyle !== 'none' || "
            "document.activeElement.matches('.slope')"
        )
    assert {"search", "status", "tag", "metric", "reset", "plain toggle", "skip"} <= seen
    assert all(later >= earlier - 60 for earlier, later in pairwise(tops[1:]))


def test_without_scripts_the_page_can_still_be_read(browser: Browser, tmp_path: Path) -> None:
    browser.scripts(on=False)
    show(browser, tmp_path, small())
    assert browser.js(IDS) == ["leaked", "lost"]
    assert browser.js("document.getElementById('controls').hidden")
