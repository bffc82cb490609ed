"""The registry of report files, and every report that there is an example of in every format."""

import json
import re
from pathlib import Path

import msgspec
import pytest

from ragcontract.core.safe_text import visible
from ragcontract.report import terminal
from ragcontract.report.headline import headline
from ragcontract.report.metric_table import table_rows
from ragcontract.report.record import Report
from tests.records import query, rendered, report
from tests.report.everything import everything
from tests.report.html.parsed import Parsed

CASES = Path(__file__).parent.parent / "cases"
# As check made them: test_cases.py sees to that.
REPORTS = {path.parent.parent.name: path for path in sorted(CASES.glob("*/expected/report.json"))}


def test_every_report_file_is_made_of_bytes_by_its_own_renderer() -> None:
    made = report([query("q", "A", query="Größe?")], {"q": ["x"]})
    files = rendered(made)
    assert list(files) == ["report-md", "report-json", "junit", "report-html", "report-v2"]
    assert files["report-md"].decode().startswith("### ❌ 1 of 1 query broken")
    assert json.loads(files["report-json"])["queries"][0]["query"] == "Größe?"
    assert files["junit"].startswith(b"<?xml")
    assert files["report-html"].startswith(b"<!doctype html>")
    assert json.loads(files["report-v2"])["schema_version"] == 2


def in_every_format(made: Report) -> None:
    files = {name: content.decode() for name, content in rendered(made).items()}
    page, rows = files["report-html"], table_rows(made)
    assert " ".join(visible(headline(made)).split()) in Parsed(files["report-html"].encode()).text
    metrics = page.partition('id="queries-title"')[0]  # tiers have cards, too
    assert metrics.count('<li class="card ') == len(rows)
    for row in rows:
        assert re.search(f"{re.escape(row.label)}[ ,]", files["report-md"])
        assert row.current in page
    assert terminal.check_text(made)
    assert terminal.diff_text(made) or made.inputs.baseline is None
    assert terminal.score_text(made)


def test_there_are_cases_to_render() -> None:
    assert len(REPORTS) > 10


@pytest.mark.parametrize("case", REPORTS)
def test_the_report_of_every_case_is_rendered_in_every_format(case: str) -> None:
    in_every_format(msgspec.json.decode(REPORTS[case].read_bytes(), type=Report))


@pytest.mark.parametrize("size", [12, 300])
def test_a_report_with_everything_in_it_is_rendered_in_every_format(size: int) -> None:
    in_every_format(everything(size))
