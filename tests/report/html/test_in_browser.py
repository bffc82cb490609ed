"""The HTML report in a browser: searched, sorted, linked to, by mouse and by keys."""

from pathlib import Path
from urllib.parse import quote

import pytest

from ragcontract.report.html.elements import STATUS
from tests.browser import Browser
from tests.report.everything import everything
from tests.report.html.browsing import COUNT, FOCUSED, IDS, SORT, choose, focus, large, show, small
from tests.report.html.parsed import HOSTILE, hostile_pair
from tests.report.html.test_scales import cluttered


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


@pytest.mark.parametrize("column", ["metric", "change", "now"])
def test_what_has_no_value_is_last_both_ways(browser: Browser, tmp_path: Path, column: str) -> None:
    show(browser, tmp_path, small())
    for _ in range(2):
        browser.js(f"document.querySelector('th[data-sort={column}] button').click()")
        assert browser.js(IDS)[-1] == "nobody"


def test_the_metric_of_the_column_can_be_chosen(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, small())
    choose(browser, "#metric", "Recall")
    assert browser.js("document.querySelector('th[data-sort=metric]').textContent") == "Recall@5"
    assert browser.js("document.querySelector('#rows td[data-label=\"Recall@5\"]').textContent") == "1.00"


def test_a_query_opens_by_keyboard_shows_both_sides_and_can_be_linked_to(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, small())
    focus(browser, "#rows .toggle")
    browser.press("Enter")
    shown = browser.js("document.querySelector('.detail').innerText")
    assert "secret (forbidden)\tmissing\t2" in shown
    assert "MRR@5\t1.00\t1.00\t0.00" in shown
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
    assert browser.js("document.querySelectorAll('#rows tr').length") == 20
    assert browser.js("document.getElementById('page').textContent") == "Page 1 of 500"
    focus(browser, "#next")
    browser.press("Enter", "Enter")
    assert browser.js("document.getElementById('page').textContent") == "Page 3 of 500"
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


def test_a_rise_of_a_metric_that_should_be_low_is_worse(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, cluttered(now=4, before=1))
    choose(browser, "#metric", "Clutter")
    change = "document.querySelector('#rows td[data-label=Change] span')"
    assert browser.js(f"{change}.textContent + {change}.className") == "+30.00worse"
    show(browser, tmp_path, cluttered(now=1, before=4))
    choose(browser, "#metric", "Clutter")
    assert browser.js(f"{change}.textContent + {change}.className") == "-30.00better"


@pytest.mark.parametrize("scripts", [True, False])
def test_ranks_stand_beside_the_names_of_their_documents(browser: Browser, tmp_path: Path, *, scripts: bool) -> None:
    browser.scripts(on=scripts)
    show(browser, tmp_path, small())
    column = '#rows td[data-label="Broken rules and ranks"] ul'
    ranks = f"[...document.querySelectorAll('{column}')].slice(0, 2).map((each) => each.innerText)"
    assert browser.js(ranks) == ["secret is forbidden: now rank 2\nE 1", "C: was rank 1, now missing"]


@pytest.mark.parametrize("width", [1200, 400])
def test_broken_queries_come_right_after_the_metrics(browser: Browser, tmp_path: Path, width: int) -> None:
    browser.resize(width, 900)
    show(browser, tmp_path, everything())
    heads = browser.js("[...document.querySelectorAll('main > section > h2')].map((each) => each.textContent)")
    modes = "Modes: 7 of 24 rows as expected"
    assert heads == ["Metrics", "Queries", "Ranks before and now", "Tiers", modes, "Tags", "Details"]


def test_names_in_findings_stand_apart(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, small())
    assert browser.js("document.querySelector('#rows li').innerHTML") == (
        "<code>secret</code> is forbidden: now rank 2"
    )
