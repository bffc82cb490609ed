"""Both reports on a screen of 400 pixels: what decides is on it, and what is broken comes soon."""

from pathlib import Path

import pytest

from ragcontract.report import markdown
from ragcontract.report.record import Report
from tests.browser import Browser
from tests.records import query, report
from tests.report.html.browsing import show
from tests.report.page import Page

PHONE = 400
# What GitHub's stylesheet says about the width of tables; the rest is colours.
STYLE = """
body { box-sizing: border-box; max-width: 400px; margin: 0; padding: 24px; font: 16px/1.5 sans-serif }
table { display: block; width: max-content; max-width: 100%; overflow: auto; border-collapse: collapse }
th, td { padding: 6px 13px; border: 1px solid }
code { padding: .2em .4em; font: 85% monospace; white-space: break-spaces }
"""
LIMITS = {
    "fail_on": {"mrr_drop_gt": 0.084, "precision_drop_gt": "10%"},
    "minimums": {"precision_at_k": 0.9, "hitrate_at_k": 0.9},
}


def broken() -> Report:
    """Return a report on limits and rules that are broken, with names of a usual length."""
    queries = [
        query("breach-notice", "incident_notification", query="How soon will you notify us after a security breach?"),
        query("deleted-files", "data_retention", forbidden_doc_ids=("data_retention_2021",)),
    ]
    now = {"breach-notice": ["x"], "deleted-files": ["data_retention_2021"]}
    before = {"breach-notice": ["incident_notification"], "deleted-files": ["data_retention"]}
    return report(queries, now, before, LIMITS)


def page_of(made: Report, folder: Path) -> Path:
    """Write report.md as GitHub shows it and return the path."""
    file = folder / "report.html"
    body = Page(markdown.render(made)).html
    file.write_text(f"<!doctype html><meta charset=utf-8><style>{STYLE}</style><body>{body}", encoding="utf-8")
    return file


def test_no_column_of_what_decides_is_cut_off_in_report_md(browser: Browser, tmp_path: Path) -> None:
    browser.resize(PHONE, 900)
    browser.open(page_of(broken(), tmp_path))
    widths = browser.js(
        "[...document.querySelectorAll('body > table')].map((each) => [each.scrollWidth, each.clientWidth])"
    )
    assert len(widths) == 1
    assert all(needed <= there for needed, there in widths), widths


def test_the_status_stands_beside_the_metric() -> None:
    head, *rows = Page(markdown.render(broken())).tables[0]
    assert head[:2] == ["Metric", "Status"]
    assert [row[:2] for row in rows] == [[name, "❌ fail"] for name in ("MRR@5", "Precision@5", "HitRate@5")]


@pytest.mark.parametrize("width", [1200, PHONE])
def test_in_report_html_the_first_broken_query_comes_within_two_screens(
    browser: Browser, tmp_path: Path, width: int
) -> None:
    browser.resize(width, 900)
    show(browser, tmp_path, broken())
    assert browser.js("document.querySelector('#rows tr').getBoundingClientRect().top") < 2 * 900


def test_bars_of_all_metrics_are_equally_wide(browser: Browser, tmp_path: Path) -> None:
    for width in (1200, PHONE):
        browser.resize(width, 900)
        show(browser, tmp_path, broken())
        assert (
            browser.js(
                "new Set([...document.querySelectorAll('.card .track')].slice(0, 3).map("
                "(each) => each.getBoundingClientRect().width)).size"
            )
            == 1
        )


@pytest.mark.parametrize("width", [900, 1200])
def test_the_name_of_a_tag_is_whole_beside_a_long_status(browser: Browser, tmp_path: Path, width: int) -> None:
    limits = {"fail_on": {"mode": "significant"}, "tags": {"billing": {"fail_on": {"mrr_drop_gt": 0.05}}}}
    made = report([query("q", "A", tags=("billing",))], {"q": ["x"]}, {"q": ["A"]}, limits)
    assert made.gates[0].status == "too_few"
    browser.resize(width, 900)
    show(browser, tmp_path, made)
    height, line = "document.querySelector('.card .of').getBoundingClientRect().height", 30
    assert browser.js(height) < line
