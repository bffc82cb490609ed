"""What was answered, and the matrix of modes, in a browser: side by side, hostile or not, on every screen."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from ragcontract.core.finding import Message, Said, ToolCall
from ragcontract.report.html import page
from ragcontract.report.record import Report
from tests.browser import Browser
from tests.records import query, report
from tests.report.everything import everything
from tests.report.html.browsing import show
from tests.report.html.parsed import HOSTILE
from tests.report.test_tiers_and_modes import made as with_modes

TABLE = "document.querySelector('.detail .said')"


def saying(said: Said, before: Said | None = None) -> Report:
    made = report([query("q", "A")], {"q": ["x"]}, {"q": ["A"]})
    return replace(made, queries=[replace(made.queries[0], said=said, baseline_said=before)])


def opened(browser: Browser, folder: Path, made: Report) -> str:
    show(browser, folder, made, "#q=q")
    return str(browser.js(f"{TABLE}.innerText"))


def test_an_open_broken_query_shows_what_was_said_on_both_sides(browser: Browser, tmp_path: Path) -> None:
    calls = (ToolCall(name="find", arguments='{"id": 7}'), ToolCall(name="send"))
    now = Said(response="No.\nSorry.", tool_calls=calls, more_tool_calls=2, contexts=("Seen.",))
    text = opened(browser, tmp_path, saying(now, Said(response="Yes.", tool_calls=(), contexts=("Seen.", "More."))))
    assert [line for line in text.replace("\t", "\n").split("\n") if line] == [
        *("What was answered", "Before", "Now"),
        *("Answer", "Yes.", "No.", "Sorry."),
        *("Tool calls", "none", 'find {"id": 7}', "send", "… 2 more"),
        *("Contexts", "Seen.", "More.", "Seen."),
    ]


def test_a_conversation_is_shown_message_by_message(browser: Browser, tmp_path: Path) -> None:
    said = Said(messages=(Message(role="user", text="When?"), Message(role="assistant")), more_messages=1)
    text = opened(browser, tmp_path, saying(said))
    assert [line for line in text.replace("\t", "\n").split("\n") if line] == [
        *("What was answered", "Now"),
        *("Messages", "user: When?", "assistant: (empty)", "… 1 more"),
    ]


def test_without_a_text_of_the_baseline_there_is_one_side(browser: Browser, tmp_path: Path) -> None:
    text = opened(browser, tmp_path, saying(Said(error="TimeoutError")))
    assert [line for line in text.replace("\t", "\n").split("\n") if line] == [
        *("What was answered", "Now"),
        *("Error", "TimeoutError"),
    ]


def test_an_open_query_names_each_broken_rule_once_and_only_metrics_that_it_has(
    browser: Browser, tmp_path: Path
) -> None:
    made = report([query("q", "A")], {"q": ["x"]})
    shown = made.queries[0]
    metrics = dict.fromkeys(shown.metrics) | {"mrr_at_5": 0.0}
    made = replace(made, queries=[replace(shown, violations=shown.violations * 2, metrics=metrics)])
    show(browser, tmp_path, made, "#q=q")
    assert (
        browser.js("document.querySelector('.facts p').innerText.split('breaks ')[1].split(' ')[0]") == "must_include"
    )
    assert (
        browser.js("document.querySelector('.facts table:last-child tbody').innerText.trim().split('\\t')[0]")
        == "MRR@5"
    )
    assert browser.js("document.querySelectorAll('.facts table:last-child tbody tr').length") == 1


def test_what_broke_stands_out_and_names_its_document_once(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, report([query("q", "A", "B")], {"q": ["B"]}))
    assert browser.js("document.querySelector('.queries li.broken').innerText") == "A: missing"
    assert browser.js("document.querySelector('.queries td ul').innerText") == "A: missing\nB 1"


def test_a_query_without_texts_has_no_table_of_them(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, report([query("q", "A")], {"q": ["x"]}), "#q=q")
    assert browser.js("Boolean(document.querySelector('.detail'))")
    assert browser.js(TABLE) is None


def test_without_javascript_the_texts_are_folded_below_the_broken_rules(browser: Browser, tmp_path: Path) -> None:
    browser.scripts(on=False)
    made = saying(Said(response=f"No.\nSorry. {HOSTILE}"), Said(response="Yes."))
    (tmp_path / "report.html").write_bytes(page.render(made))
    browser.open(tmp_path / "report.html")
    browser.js("document.querySelector('details.texts').open = true")
    text = str(browser.js("document.querySelector('details.texts').innerText"))
    browser.scripts(on=True)
    assert "Answer, before\nYes.\nAnswer, now\nNo.\nSorry. " in text
    assert "<img" in text


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [900, 400])
def test_hostile_texts_stay_text_and_everything_fits_the_screen(
    browser: Browser, tmp_path: Path, width: int, scheme: str
) -> None:
    long = "w" * 600
    calls = (ToolCall(name=HOSTILE, arguments=long),)
    said = Said(response=f"{HOSTILE}\n{long}", error=HOSTILE, mode=HOSTILE, tool_calls=calls, contexts=(HOSTILE, long))
    browser.resize(width, 900)
    browser.media(scheme=scheme)
    text = opened(browser, tmp_path, saying(said, said))
    assert text.count("<img") == 2 * 5
    assert r"\x1b[31m" in text
    assert browser.js("document.querySelectorAll('img').length") == 0
    assert browser.js("document.documentElement.scrollWidth") <= width
    assert browser.complaints == []


@pytest.mark.parametrize("width", [900, 400])
def test_the_matrix_and_the_tiers_fit_the_screen(browser: Browser, tmp_path: Path, width: int) -> None:
    browser.resize(width, 900)
    show(browser, tmp_path, with_modes())
    heat = "document.querySelector('.heat')"
    assert browser.js(f"{heat}.scrollWidth <= {heat}.parentNode.clientWidth")
    show(browser, tmp_path, everything(mark=lambda text: text + "w" * 90))
    assert browser.js("document.documentElement.scrollWidth") <= width


def test_a_shade_is_stronger_where_more_rows_are(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, with_modes())
    cells = "[...document.querySelectorAll('.heat td.right')]"
    shades = browser.js(f"{cells}.map((cell) => getComputedStyle(cell).backgroundColor)")
    assert len(shades) == 3
    assert shades[0] == shades[1] != shades[2]
    assert "rgba(0, 0, 0, 0)" not in shades
