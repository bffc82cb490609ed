"""A contract with a baseline, to replace and to change, and what every output says of it."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.builders import Row, as_jsonl, good_workspace, run
from tests.process import Ended, rag_contract
from tests.report.page import Page


def with_baseline(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go to a contract that holds, with a baseline made of its run; returns its folder."""
    workspace = folder / "contract"
    workspace.mkdir()
    monkeypatch.chdir(good_workspace(workspace))
    Path("baseline.json").unlink()
    assert rag_contract("baseline").code == 0
    return workspace


def returned(*rows: Row) -> None:
    """Let the retriever return something else."""
    Path("current_run.jsonl").write_text(as_jsonl(*rows))


def stored() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path("baseline.json").read_bytes())
    return found


def made_on() -> str:
    """Return the date of the baseline."""
    return str(stored()["created_at"][:10])


def accept(reason: str = "the new chunking") -> Ended:
    """Replace the baseline with a run that is worse: q1's document is second."""
    returned(run("q1", "x", "doc1"), run("q2", "doc2"))
    ended = rag_contract("baseline", "--update", "--accept-regressions", reason)
    assert ended.code == 0, ended
    return ended


def made(days_ago: int) -> None:
    """Let the baseline be so many days old."""
    found = stored()
    at = (datetime.now(UTC) - timedelta(days=days_ago)).isoformat(timespec="seconds")
    found["created_at"] = at
    Path("baseline.json").write_text(json.dumps(found))


def notes(report: str) -> list[str]:
    """Return the list under the verdict of a Markdown report."""
    return [item for item in Page(report).items if item.startswith(("The baseline was", "Contract changed"))]


def check() -> Ended:
    ended = rag_contract("check", "--report-html", "report.html")
    assert ended.code in {0, 1}, ended
    return ended


def notes_everywhere() -> list[str]:
    """Check, see that every output has the same notes, and return them."""
    out = check().out
    found = notes(Path("report.md").read_text())
    said = [line for line in out.splitlines() if line.startswith(("The baseline was", "Contract changed"))]
    assert said == [note.replace("\u200b", "") for note in found]
    assert out.splitlines()[-1].startswith(("PASS", "FAIL"))
    page = Page(Path("report.html").read_text().partition("</header>")[2].partition("<main>")[0]).text
    for note in said:
        assert " ".join(note.split()) in " ".join(page.split())
    suites = ET.parse("junit.xml").findall("testsuite")
    history = [one.get("value") for suite in suites for one in suite.iter("property") if one.get("name") == "history"]
    assert history == (["; ".join(said)] * 2 if said else [])
    return said
