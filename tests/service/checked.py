"""A check whose report and entry are sent to the service, with texts that try to get out of wherever they are shown."""

from pathlib import Path

import pytest

from ragcontract.history.entry import NewEntry, decode
from ragcontract.history.folder import Folder
from tests.builders import golden, run, write_jsonl
from tests.history.repository import without_ci
from tests.process import rag_contract

HOSTILE = "<script>alert(1)</script> ' \u202e \U0001f600"


@pytest.fixture
def checked_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[NewEntry, bytes]:
    """The entry and the report of a check that two of three queries fail."""
    without_ci(monkeypatch)
    monkeypatch.chdir(tmp_path)
    names = [HOSTILE, "q1", "q2"]
    write_jsonl(Path("golden.jsonl"), [golden(name, name, query=HOSTILE, tags=["t1"]) for name in names])
    write_jsonl(Path("current_run.jsonl"), [run(name, "wrong" if name != "q2" else "q2") for name in names])
    Path("ragcontract.yml").write_text("minimums:\n  recall_at_k: 0.9\n")
    assert rag_contract("check", "--name", "docs", "--report-json-detail", "all").code == 1
    assert rag_contract("history", "add", "--history", "history").code == 0
    (path,) = Path("history/entries").rglob("*.json")
    entry = decode(path.read_bytes(), path.relative_to("history").as_posix())
    assert entry.results is not None
    results = Folder("history").results(entry.results.sha256)
    return NewEntry(entry=entry, content=path.read_bytes(), results=results), Path("report.json").read_bytes()
