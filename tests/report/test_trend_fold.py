"""The trend in report.html: charts of the newest recorded runs, made from report.json alone."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.history.trends import commit_of, ids_of, runs_of
from tests.process import rag_contract
from tests.records import query, rendered, report
from tests.report.html.parsed import HOSTILE, Parsed

ENTRIES = runs_of(20, losses={12: ids_of()[:3]})
IDS = [new.entry.id for new in ENTRIES]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def change_point(place: int = 12, **fields: Any) -> dict[str, Any]:
    entry = ENTRIES[place].entry
    point = {"id": entry.id, "commit": entry.source.commit, "at": entry.created_at}
    return {**point, "before": 1.0, "after": 0.904, "p_value": None, **fields}


def trend(**fields: Any) -> dict[str, Any]:
    values = [new.entry.metrics["mrr_at_5"].value for new in ENTRIES]
    return {"values": values, "ids": IDS, "now": 0.9, "level": 1.0, "change_points": [change_point()], **fields}


def page_of(metrics: dict[str, Any] | None, **fields: Any) -> Parsed:
    """Return report.html of a check with these metrics in its history; it has none without them."""
    made = json.loads(
        rendered(report([query("q1", "A")], {"q1": ["x", "A"]}, None, {"minimums": {"mrr_at_k": 0.4}}))["report-json"]
    )
    if metrics is not None:
        made["history"] = {"branch": "main", "entries": 20, "failed": IDS[12:], "metrics": metrics, **fields}
    Path("report.json").write_text(json.dumps(made))
    ended = rag_contract("render", "report.json", "--format", "html", "--out", "report.html")
    assert (ended.code, ended.err) == (0, "")
    return Parsed(Path("report.html").read_bytes())


def test_the_chart_ends_with_this_run() -> None:
    page = page_of({"mrr_at_5": trend()})
    assert "Trend: the last 20 recorded runs of main, and this run" in page.text
    label = next(attrs["aria-label"] for tag, attrs in page.elements if attrs.get("role") == "img")
    assert label == (
        "MRR@5 in 21 runs, 2026-11-21 to 2026-07-01; first 1.000, last 0.900, lowest 0.900, highest 1.000; "
        f"it changed at {commit_of(12)[:7]}"
    )
    tags = [tag for tag, attrs in page.elements if (attrs.get("class") or "").startswith("point")]
    assert tags == ["circle"] * 12 + ["rect"] * 8 + ["circle"]
    assert "2026-07-01 12:00 0.900 pass, this run" in page.text
    assert "minimum 0.40 (not in the chart) best level 1.000 21 values as a table" in page.text
    assert "Without a change, 1.2% of histories of 100 runs ever show a change point" in page.text


def test_without_change_points_nothing_is_said_about_them() -> None:
    page = page_of({"mrr_at_5": trend(change_points=[])})
    assert "Without a change" not in page.text


def test_a_report_without_metrics_of_the_history_is_as_before() -> None:
    plain = page_of(None).elements
    assert page_of({}).elements == plain
    assert page_of({"unknown": trend()}).elements == plain
    assert page_of({"mrr_at_5": trend(values=[None] * 20, now=None)}).elements == plain


@pytest.mark.parametrize(
    "fields",
    [
        {"values": [1e9, -1e9] * 10},
        {"values": []},
        {"ids": []},
        {"ids": [HOSTILE] * 20},
        {"level": 1e9},
        {"change_points": [change_point(id=HOSTILE), change_point(commit=HOSTILE), change_point(3, commit=None)]},
        {"now": -1e9},
    ],
)
def test_whatever_report_json_says_is_text(fields: dict[str, Any]) -> None:
    page = page_of({"mrr_at_5": trend(**fields)}, branch=HOSTILE)
    assert {tag for tag, _ in page.elements}.isdisjoint({"img", "iframe", "object"})
    assert not any(name.startswith("on") for _, attrs in page.elements for name in attrs)
    assert not re.search(r"nan|inf|e\+", " ".join(attrs.get("d") or "" for _, attrs in page.elements))
    assert Path("report.html").read_text(encoding="utf-8").count("<script") == 2
