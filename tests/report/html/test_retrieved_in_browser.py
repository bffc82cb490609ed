"""What was retrieved in the expanded row of a broken query, and the page that compares runs, in a browser."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from ragcontract.report.record import Report, RetrievedReport
from tests.browser import Browser
from tests.builders import golden, run, write_jsonl
from tests.process import rag_contract
from tests.records import query, report
from tests.report.html.browsing import show, small
from tests.report.html.parsed import HOSTILE

TABLE = "document.querySelector('.detail .results')"


def opened(browser: Browser, folder: Path, made: Report, query_id: str) -> str:
    show(browser, folder, made, f"#q={query_id}")
    return str(browser.js(f"{TABLE}.innerText"))


def test_an_open_broken_query_shows_what_was_retrieved_on_both_sides(browser: Browser, tmp_path: Path) -> None:
    assert opened(browser, tmp_path, small(), "leaked") == (
        "What was retrieved: top 5\n\tBefore\tNow\n1\tE ✓ relevant\tE ✓ relevant\n2\t\tsecret ✕ forbidden"
    )
    browser.js("document.querySelector('.toggle[aria-expanded=true]').click()")
    assert browser.js(TABLE) is None


def test_a_query_that_is_not_broken_shows_no_results(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, small(), "#q=fine")
    assert browser.js("Boolean(document.querySelector('.detail'))")
    assert browser.js(TABLE) is None


def test_without_a_baseline_there_is_one_side_and_nothing_is_said_to_be_nothing(
    browser: Browser, tmp_path: Path
) -> None:
    made = report([query("q", "A")], {"q": []})
    assert opened(browser, tmp_path, made, "q") == "What was retrieved: top 5\n\tNow\n\tnothing"


def test_of_several_rows_it_says_which_one_is_shown(browser: Browser, tmp_path: Path) -> None:
    made = report([query("q", "A")], {"q": ["x"]})
    made = replace(made, queries=[replace(made.queries[0], repeated=True)])
    assert "Of several rows, the first that breaks a rule is shown" in opened(browser, tmp_path, made, "q")


@pytest.mark.parametrize("width", [900, 400])
def test_chunks_scores_and_hostile_ids_stay_text_and_fit_the_screen(
    browser: Browser, tmp_path: Path, width: int
) -> None:
    made = report([query("q", "A")], {"q": ["x"]}, {"q": ["A"]})
    hostile = RetrievedReport(doc_id=HOSTILE, chunk_id="c" * 500 + HOSTILE, score=0.123456)
    made = replace(made, queries=[replace(made.queries[0], retrieved=[hostile])])
    browser.resize(width, 900)
    text = opened(browser, tmp_path, made, "q")
    assert "c" * 119 + "… · 0.1235" in text
    assert "<img" in text
    assert browser.js("document.querySelectorAll('img').length") == 0
    assert browser.js("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [900, 400])
def test_the_comparison_fits_the_screen_and_loads_nothing(
    browser: Browser, tmp_path: Path, width: int, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = ["q" + "x" * 400, HOSTILE]
    write_jsonl(Path("golden.jsonl"), [golden(name, "A", query=name) for name in names])
    write_jsonl(Path("a-run-with-a-rather-long-name-and-more-of-it.jsonl"), [run(name, "A") for name in names])
    write_jsonl(Path("b.jsonl"), [run(name, "x") for name in names])
    paths = ("a-run-with-a-rather-long-name-and-more-of-it.jsonl", "b.jsonl", "b.jsonl")
    assert rag_contract("compare", *paths, "--format", "html", "--out", "page.html").code == 0
    browser.resize(width, 900)
    browser.media(scheme=scheme)
    browser.open(tmp_path / "page.html")
    assert browser.js("document.documentElement.scrollWidth") <= width
    assert browser.js("document.querySelectorAll('.compared .card').length") == 6
    assert browser.js("document.querySelectorAll('.disagreements tbody tr').length") == 2
    assert browser.js("document.querySelectorAll('img, script').length") == 0
