"""Projects run code of others: what it leaves in the folder of a run is none of the worker's, and stops no worker."""

import hashlib
import sys
from pathlib import Path

import pytest

from ragcontract.core import bounds
from ragcontract.service.database import Database
from tests.service.mounting import Mounted

HERE = "out = sys.argv[sys.argv.index('--out') + 1]; folder = os.path.dirname(out)"
LAST = "if query != 'q3': return [{'doc_id': query}]"
pytestmark = pytest.mark.parametrize("kind", ["sqlite"])  # what the databases have no part in


@pytest.fixture(autouse=True)
def _heard_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragcontract.service.worker.RENEWED", 0.1)
    monkeypatch.setattr("ragcontract.service.worker.IDLE", 0.1)
    monkeypatch.setattr(bounds, "RUN_GRACE", 1)


@pytest.fixture
def mounted(database: Database, tmp_path: Path) -> Mounted:
    return Mounted(database, tmp_path)


def test_a_repository_in_the_folder_of_a_run_starts_nothing(
    mounted: Mounted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAG_CONTRACT_ALERT_WEBHOOK", "https://hooks.example/only-the-service-knows-it")
    stolen = tmp_path / "stolen"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\nenv >> {stolen}\n")
    program.chmod(0o755)
    mounted.target(
        HERE,
        LAST,
        "def git(*args): subprocess.run(['git', '-C', folder, *args], check=True)",
        "git('init', '-q')",
        "git('-c', 'user.name=a', '-c', 'user.email=a@b', 'commit', '-q', '--allow-empty', '-m', 'x')",
        f"git('config', 'core.fsmonitor', {str(program)!r})",
        "return [{'doc_id': query}]",
    )
    row = mounted.made()
    assert (row.state, row.problem) == ("completed", None), row.log
    assert row.commit_sha is None
    assert "only-the-service-knows-it" not in (stolen.read_text() if stolen.exists() else "")


def evil_python(mounted: Mounted, tmp_path: Path, *lines: str) -> None:
    """Give the project a Python of its own, which does more after its check: lines that have the report."""
    more = tmp_path / "more.py"
    begin = ("import json, os", "report = json.load(open('report.json'))")
    more.write_text("\n".join([*begin, *lines, ""]))
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\n{sys.executable} "$@"\ncode=$?\n'
        f"if [ $3 = check ]; then {sys.executable} {more} || exit 9; fi\nexit $code\n"
    )
    python.chmod(0o755)
    mounted.write("project.yml", f"python: {python}\ntimeout: 100\n")


def replaced(name: str, by: str) -> tuple[str, ...]:
    return f"os.replace({name!r}, '../kept')", by


SECRET = "what only others may read"
DIGEST = hashlib.sha256(SECRET.encode()).hexdigest()
HOSTILE = {
    "a link in place of the run": (replaced("current_run.jsonl", "os.symlink('../kept', 'current_run.jsonl')"), "link"),
    "a pipe in place of the run": (replaced("current_run.jsonl", "os.mkfifo('current_run.jsonl')"), "no regular file"),
    "a pipe in place of the report": (replaced("report.json", "os.mkfifo('report.json')"), "no regular file"),
    "a folder in place of the contract": (replaced("ragcontract.yml", "os.mkdir('ragcontract.yml')"), "no regular"),
    "an endless run": (("os.truncate('current_run.jsonl', 1 << 40)",), "current_run.jsonl: is larger than"),
    "an endless contract": (("os.truncate('golden.jsonl', 1 << 40)",), "golden.jsonl: is larger than"),
}
NAMES_OTHERS = "run", "golden", "config"


@pytest.mark.parametrize(("lines", "problem"), HOSTILE.values(), ids=HOSTILE.keys())
def test_what_cannot_be_read_ends_a_run(lines: tuple[str, ...], problem: str, mounted: Mounted, tmp_path: Path) -> None:
    evil_python(mounted, tmp_path, *lines)
    row = mounted.made()
    assert (row.state, row.entry) == ("failed", None)
    assert problem in row.problem


@pytest.mark.parametrize("part", NAMES_OTHERS)
def test_a_report_names_no_files_of_others(part: str, mounted: Mounted, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text(SECRET)
    file = {"path": str(other), "sha256": DIGEST}
    evil_python(
        mounted,
        tmp_path,
        f"part = report['inputs'][{part!r}]",
        f"report['inputs'][{part!r}] = {{**part, 'files': [{file!r}]}}",
        "json.dump(report, open('report.json', 'w'))",
    )
    row = mounted.made()
    assert (row.state, row.entry) == ("failed", None)
    assert "which is no file of the run" in row.problem
    assert SECRET not in row.problem


def test_nothing_but_the_files_of_a_check_is_left(mounted: Mounted, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    evil_python(mounted, tmp_path, f"os.symlink({str(outside)!r}, 'link')", "os.makedirs('a/b')", "os.mkfifo('a/pipe')")
    row = mounted.made()
    assert (row.state, row.problem) == ("completed", None)
    assert (outside / "kept").read_text() == "kept"
