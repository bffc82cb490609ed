"""The matrix of modes and the tiers, in every report for people."""

import re

from msgspec.structs import replace

from ragcontract.report import markdown, terminal
from ragcontract.report.html import page
from ragcontract.report.parts import ModesReport, TierReport
from ragcontract.report.record import Report
from ragcontract.statistics.quantities import measures
from tests.records import query, report
from tests.report.page import Page

MODES = ("trustworthy", "disputed", "abstain")
COUNTS: dict[tuple[str, str | None], int] = {
    ("trustworthy", "trustworthy"): 8,
    ("trustworthy", "abstain"): 2,
    ("disputed", "disputed"): 1,
    ("abstain", "abstain"): 3,
    ("abstain", "trustworthy"): 1,
}


def matrix_of(counts: dict[tuple[str, str | None], int]) -> dict[str, dict[str, int]]:
    return {wanted: {found: counts.get((wanted, found), 0) for found in MODES} for wanted in MODES}


def made(before: dict[tuple[str, str | None], int] | None = None) -> Report:
    modes = ModesReport(
        matrix=matrix_of(COUNTS),
        baseline_matrix=None if before is None else matrix_of(before),
        accuracy=0.8,
        per_mode=measures(COUNTS, MODES),
        false_answer_rate=0.25,
        over_refusal_rate=0.18,
        missing=0,
    )
    tiers = [
        TierReport(name="sanity", rate=0.9499, passed=57, queries=60, status="fail", minimum=0.95, gates=["core"]),
        TierReport(
            name="core", rate=0.5, passed=5, queries=10, status="skipped", skipped="tier 'sanity' missed its minimum"
        ),
        TierReport(name="extra", rate=None, passed=0, queries=0, status="none"),
    ]
    return replace(report([query("q", "A")], {"q": ["A"]}), modes=modes, tiers=tiers)


def test_a_contract_without_modes_and_tiers_has_no_tables_of_them() -> None:
    plain = report([query("q", "A")], {"q": ["A"]})
    assert "Modes" not in markdown.render(plain) + terminal.check_text(plain)
    assert "modes-title" not in page.render(plain).decode()
    assert "tiers-title" not in page.render(plain).decode()


def test_markdown_has_the_matrix_with_recall_and_precision() -> None:
    text = markdown.render(made())
    assert "<summary>Modes: 12 of 15 rows as expected</summary>" in text
    (table,) = [one for one in Page(text).tables if one[0][0].startswith("Expected")]
    assert table == [
        ["Expected ↓ found →", *MODES, "Recall"],
        ["trustworthy", "8", "0", "2", "0.80"],
        ["disputed", "0", "1", "0", "1.00"],
        ["abstain", "1", "0", "3", "0.75"],
        ["Precision", "0.89", "1.00", "0.60", ""],
    ]
    assert "<b>8</b>" in text
    assert "<b>2</b>" not in text


def test_with_a_run_as_the_baseline_the_changes_are_in_brackets() -> None:
    text = markdown.render(made({**COUNTS, ("trustworthy", "abstain"): 0, ("trustworthy", "trustworthy"): 10}))
    assert "| trustworthy | <b>8</b> (-2) | 0 | 2 (+2) | 0.80 |" in text
    assert "In brackets the change since the baseline." in text


def test_markdown_has_the_tiers_with_what_they_gate() -> None:
    text = markdown.render(made())
    assert "<summary>3 tiers: 1 broken, 1 skipped</summary>" in text
    (table,) = [one for one in Page(text).tables if one[0][0] == "Tier"]
    assert table[1:] == [
        ["sanity", "❌ fail", "0.95 (57 of 60)", "0.95", "gates core"],
        ["core", "⏭️ skipped", "0.50 (5 of 10)", "", "tier 'sanity' missed its minimum"],
        ["extra", "no limit", "- (0 of 0)", "", ""],
    ]


def test_the_terminal_has_both() -> None:
    text = terminal.without_colours(terminal.check_text(made()))
    assert "  sanity  FAIL     0.95 (57 of 60)  minimum 0.95\n" in text
    assert re.search(r"\n  trustworthy +8 +0 +2 +0\.80\n", text)
    assert re.search(r"\n  precision +0\.89 +1\.00 +0\.60\n", text)


def test_the_page_says_without_colours_what_is_right_and_what_is_wrong() -> None:
    text = page.render(made({**COUNTS, ("trustworthy", "abstain"): 0})).decode()
    cells = re.findall(
        r'<td class="((?:right|wrong)[^"]*)">\s*<b>(\d+)</b>\s*<span aria-hidden="true">(.)</span>', text
    )
    assert cells == [
        ("right heat5", "8", "✓"),
        ("wrong heat2", "2", "✕"),
        ("right heat5", "1", "✓"),
        ("wrong heat2", "1", "✕"),
        ("right heat4", "3", "✓"),
    ]
    assert "<small>was 0</small>" in text
    assert "<small>20%</small>" in text
    assert 'href="#modes-title"' in text
    assert 'href="#tiers-title"' in text


def test_a_matrix_that_somebody_else_wrote_may_lack_anything() -> None:
    odd = replace(made(), modes=replace(made().modes, matrix={"x": {}, "y": {"z": 3}}, per_mode={}, baseline_matrix={}))  # type: ignore[type-var]
    assert "Modes: 0 of 3 rows as expected" in markdown.render(odd)
    assert page.render(odd)
    assert terminal.check_text(odd)
