"""The registry of report files."""

import json

from ragcontract.reports.formats import FORMATS, ON_REQUEST
from tests.records import query, report


def test_every_report_file_is_made_of_bytes_by_its_own_renderer() -> None:
    made = report([query("q", "A", query="Größe?")], {"q": ["x"]})
    files = {name: render(made) for name, render in FORMATS.items()}
    assert list(files) == ["report-md", "report-json", "junit"]
    assert files["report-md"].decode().startswith("### ❌ Retrieval contract broken")
    assert json.loads(files["report-json"])["queries"][0]["query"] == "Größe?"
    assert files["junit"].startswith(b"<?xml")


def test_the_page_is_made_on_request_only() -> None:
    assert list(ON_REQUEST) == ["report-html"]
    assert ON_REQUEST["report-html"](report([query("q", "A")], {"q": ["A"]})).startswith(b"<!doctype html>")
