"""The page for looking in a browser: found, sorted, linked to, read aloud, printed, by mouse and by keys."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from urllib.parse import quote

import pytest

from ragcontract.reports.html import page as html
from ragcontract.reports.html.text import STATUS
from ragcontract.reports.report import Report
from tests.browser import Browser
from tests.needs import require
from tests.records import query, report
from tests.reports.everything import everything
from tests.reports.html.parsed import HOSTILE, hostile, hostile_pair, marked
from tests.reports.html.test_scales import cluttered

IDS = "[...document.querySelectorAll('#rows .id')].map((each) => each.textContent)"
COUNT = "document.getElementById('count').textContent"
READY = "document.getElementById('slopes').hidden || document.querySelector('.slope')"  # once its width is known
FOCUSED = "document.activeElement.textContent"
SORT = "document.querySelector('th[data-sort={}]').getAttribute('aria-sort')"
PLENTY = 10_000


@pytest.fixture(scope="module")
def shared() -> Iterator[Browser]:
    require("chromium")
    browser = Browser()
    yield browser
    browser.close()


@pytest.fixture
def browser(shared: Browser) -> Iterator[Browser]:
    shared.resize(1200, 900)
    shared.media()
    shared.scripts(on=True)
    yield shared
    assert shared.complaints == []
    assert all(url.startswith(("file:", "about:", "data:")) for url in shared.requests)


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


def test_broken_queries_come_first_and_the_rest_follow(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, small())
    assert browser.js(IDS) == ["leaked", "lost", "slipped", "fine", "nobody", "found"]
    assert browser.js(COUNT) == "6 queries, worst first"


@pytest.mark.parametrize(
    ("terms", "ids"),
    [
        ("INVOICES", ["fine"]),
        ("secret", ["leaked"]),
        ("b2", ["slipped"]),
        ("billing slip", ["slipped"]),
        ("unheard", []),
    ],
)
def test_search_looks_at_ids_questions_tags_and_documents(
    browser: Browser, tmp_path: Path, terms: str, ids: list[str]
) -> None:
    show(browser, tmp_path, small())
    focus(browser, "#search")
    browser.type(terms)
    assert browser.js(IDS) == ids
    assert browser.js(COUNT) == f"{len(ids)} of 6 queries, worst first"


def test_lists_filter_by_status_and_tag_and_reset_takes_it_all_back(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, small())
    choose(browser, "#status", "broken")
    assert browser.js(IDS) == ["leaked", "lost"]
    choose(browser, "#tag", "policy")
    assert browser.js(IDS) == ["lost"]
    choose(browser, "#status", "got better")
    assert browser.js(IDS) == []
    focus(browser, "#reset")
    browser.press("Enter")
    assert len(browser.js(IDS)) == 6
    assert browser.js("document.getElementById('tag').value + document.getElementById('status').value") == ""


def test_tolerated_queries_have_their_own_status_and_come_after_the_broken_ones(
    browser: Browser, tmp_path: Path
) -> None:
    made = everything(300)
    show(browser, tmp_path, made)
    choose(browser, "#status", "waived")
    tolerated = [query for query in made.queries if query.status in {"warn", "waived"}]
    assert browser.js(COUNT) == f"{len(tolerated)} of 300 queries, worst first"
    shown = set(browser.js("[...document.querySelectorAll('#rows .status')].map((each) => each.textContent)"))
    assert shown == {STATUS["warn"], STATUS["waived"]}
    assert "severity warn" in browser.js("document.getElementById('rows').textContent")
    show(browser, tmp_path, made)  # what was typed before would still count in the list
    choose(browser, "#status", "passing")
    assert set(browser.js("[...document.querySelectorAll('#rows .status')].map((each) => each.textContent)")) == {
        STATUS["pass"]
    }


def test_a_tag_in_the_table_of_tags_shows_its_queries(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, small())
    browser.js("[...document.querySelectorAll('.tags button')].find((each) => each.textContent === 'policy').click()")
    assert browser.js(IDS) == ["lost", "slipped"]
    assert browser.js(FOCUSED) == "Queries"


def test_columns_sort_up_down_and_back_by_keyboard(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, small())
    focus(browser, "th[data-sort=query] button")
    browser.press("Enter")
    assert (browser.js(IDS), browser.js(SORT.format("query"))) == (
        ["fine", "found", "leaked", "lost", "nobody", "slipped"],
        "ascending",
    )
    browser.press("Space")
    assert (browser.js(IDS)[0], browser.js(SORT.format("query"))) == ("slipped", "descending")
    browser.press("Enter")
    assert (browser.js(IDS)[0], browser.js(SORT.format("query"))) == ("leaked", "none")
    assert browser.js(FOCUSED) == "Query"


@pytest.mark.parametrize("column", ["metric", "change", "before", "now"])
def test_what_has_no_value_is_last_both_ways(browser: Browser, tmp_path: Path, column: str) -> None:
    show(browser, tmp_path, small())
    for _ in range(2):
        browser.js(f"document.querySelector('th[data-sort={column}] button').click()")
        assert browser.js(IDS)[-1] == "nobody"


def test_the_metric_of_the_column_can_be_chosen(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, small())
    choose(browser, "#metric", "Recall")
    assert browser.js("document.querySelector('th[data-sort=metric]').textContent") == "Recall@5"
    assert browser.js("document.querySelector('#rows td[data-label=\"Recall@5\"]').textContent") == "1.000"


def test_a_query_opens_by_keyboard_shows_both_sides_and_can_be_linked_to(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, small())
    focus(browser, "#rows .toggle")
    browser.press("Enter")
    shown = browser.js("document.querySelector('.detail').innerText")
    assert "secret (forbidden)\t–\t2" in shown
    assert "MRR@5\t1.000\t1.000\t0.000" in shown
    assert browser.js("location.hash") == "#q=leaked"
    assert browser.js("document.activeElement.getAttribute('aria-expanded')") == "true"
    browser.press("Enter")
    assert browser.js("document.querySelector('.detail')") is None
    assert browser.js("location.hash") == ""


@pytest.mark.parametrize("query_id", ["lost", HOSTILE])
def test_a_link_opens_and_focuses_its_query(browser: Browser, tmp_path: Path, query_id: str) -> None:
    made = small() if query_id == "lost" else hostile_pair()
    show(browser, tmp_path, made, f"#q={quote(query_id, safe='')}")
    assert browser.js("document.activeElement.matches('.toggle[aria-expanded=true]')")
    assert browser.js("document.activeElement.closest('tr').query.i") == query_id
    assert browser.js("document.querySelectorAll('.detail').length") == 1
    top = browser.js("document.activeElement.getBoundingClientRect().top")
    assert 0 <= top < 900


def test_a_link_followed_later_finds_its_query_whatever_is_filtered(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, small())
    focus(browser, "#search")
    browser.type("invoices")
    browser.js("location.hash = '#q=lost'")
    browser.wait("document.activeElement.textContent === 'lost'")
    assert browser.js("document.getElementById('search').value") == ""


@pytest.mark.parametrize("fragment", ["#q=nowhere", "#q=%E0%A4%A", "#q=", "#other"])
def test_a_link_that_leads_nowhere_does_no_harm(browser: Browser, tmp_path: Path, fragment: str) -> None:
    show(browser, tmp_path, small(), fragment)
    assert len(browser.js(IDS)) == 6
    assert ("not in this report" in browser.js(COUNT)) == (fragment in {"#q=nowhere", "#q="})


def test_the_chart_has_a_line_a_move_and_keys_walk_it(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, small())
    names = browser.js("[...document.querySelectorAll('.slope')].map((each) => each.getAttribute('aria-label')).sort()")
    assert names == [
        "found, from rank 2 to rank 1, better",
        "leaked (forbidden), from missing to rank 2 with a forbidden document, worse",
        "lost, from rank 1 to missing, worse",
        "slipped, from rank 1 to rank 3, worse",
    ]
    assert browser.js("document.querySelectorAll('.slope[tabindex=\"0\"]').length") == 1
    focus(browser, ".slope[tabindex='0']")
    browser.press("ArrowDown", "ArrowDown", "ArrowUp", "Enter")
    assert browser.js(FOCUSED) == "leaked"
    assert browser.js("location.hash") == "#q=leaked"


def test_ten_thousand_queries_are_shown_a_page_at_a_time_and_searched_all(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, large())
    assert browser.js("document.querySelectorAll('#rows tr').length") == 50
    assert browser.js("document.getElementById('page').textContent") == "Page 1 of 200"
    focus(browser, "#next")
    browser.press("Enter", "Enter")
    assert browser.js("document.getElementById('page').textContent") == "Page 3 of 200"
    assert browser.js("document.activeElement.id") == "next"
    focus(browser, "#search")
    browser.type("9999 doc")
    assert browser.js(IDS) == ["question-9999"]
    assert browser.js(COUNT) == "1 of 10,000 queries, worst first"
    browser.js("document.getElementById('reset').click()")
    browser.js("document.querySelector('.slope').dispatchEvent(new MouseEvent('click'))")
    assert browser.js(COUNT) == "100 of 10,000 queries that went from rank 1 to missing, worst first"
    browser.js("location.hash = '#q=question-8888'")
    browser.wait("document.activeElement.textContent === 'question-8888'")


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


def test_a_rise_of_a_metric_that_should_be_low_is_worse(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, cluttered(now=4, before=1))
    choose(browser, "#metric", "Clutter")
    change = "document.querySelector('#rows td[data-label=Change] span')"
    assert browser.js(f"{change}.textContent + {change}.className") == "+30.000worse"
    show(browser, tmp_path, cluttered(now=1, before=4))
    choose(browser, "#metric", "Clutter")
    assert browser.js(f"{change}.textContent + {change}.className") == "-30.000better"


def test_names_in_findings_stand_apart(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, small())
    assert browser.js("document.querySelector('#rows li').innerHTML") == (
        "no <bdi>secret</bdi> in the results: rank 2 (was not there)"
    )


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
    assert browser.js("document.querySelectorAll('#rows tr').length") == 50
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
    for _ in range(22):
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
