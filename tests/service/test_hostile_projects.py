"""Projects run code of others: what it leaves in the folder of a run is none of the worker's, and stops no worker."""

import hashlib
import os
import sys
import threading
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from ragcontract.core import bounds
from ragcontract.service.database import Database
from ragcontract.service.workers.project_run import RunLog
from ragcontract.service.workers.worker import can_run
from tests.service.mounting import PATIENCE, Mounted, is_gone, wait_until

HERE = "out = sys.argv[sys.argv.index('--out') + 1]; folder = os.path.dirname(out)"
LAST = "if query != 'q3': return [{'doc_id': query}]"


@pytest.fixture
def kind() -> str:
    """Only SQLite: the databases have no part in this."""
    return "sqlite"


@pytest.fixture(autouse=True)
def _heard_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragcontract.service.workers.worker.RENEWED", 0.1)
    monkeypatch.setattr("ragcontract.service.workers.worker.IDLE", 0.1)
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


def test_a_secret_is_in_no_problem_of_a_forged_report(
    mounted: Mounted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEARCH_TOKEN", "token-of-the-search-8841")
    evil_python(
        mounted,
        tmp_path,
        "report['created_at'] = 'at noon'",
        "report['inputs']['run']['files'][0]['sha256'] = 0",
        "report[os.environ['SEARCH_TOKEN']] = report.pop('verdict')",
        "json.dump(report, open('report.json', 'w'))",
    )
    mounted.write("project.yml", (mounted.home / "project.yml").read_text() + "secrets: [SEARCH_TOKEN]\n")
    row = mounted.made()
    assert row.state == "failed"
    assert "token-of" not in f"{row.problem}{row.log}"


def test_any_name_beside_the_folders_of_runs_stops_no_worker(mounted: Mounted) -> None:
    (mounted.runs / f"run-{'9' * 30}").mkdir(parents=True)
    assert mounted.made().state == "completed"


def test_other_writers_do_not_wait_while_output_is_redacted(mounted: Mounted, monkeypatch: pytest.MonkeyPatch) -> None:
    began, goes_on = threading.Event(), threading.Event()

    def slow(_log: RunLog) -> str:
        began.set()
        goes_on.wait(PATIENCE)
        return "redacted"

    monkeypatch.setattr(RunLog, "text", slow)
    number = mounted.add()
    with mounted.worker():
        assert began.wait(PATIENCE)
        mounted.cancel(number)
        goes_on.set()
        wait_until(lambda: mounted.is_over(number))


def test_a_folder_that_cannot_be_read_stops_no_worker() -> None:
    with TemporaryDirectory() as folder:
        home = Path(folder, "docs")
        home.mkdir()
        (home / "record.yml").touch()
        Path(folder).chmod(0o755)
        home.chmod(0)
        user = os.geteuid()
        if user == 0:  # who may read all
            os.seteuid(65_534)
        try:
            assert not can_run(home)
        finally:
            os.seteuid(user)
            home.chmod(0o700)
        assert can_run(home)


# Its parent has ended, its group is its own, and its environment is empty.
HIDES = """
import os
if os.fork() == 0:
    os.setsid()
    with open(STARTED + ".part", "w") as file:
        file.write(str(os.getpid()))
    os.rename(STARTED + ".part", STARTED)
    os.execve("/bin/sleep", ["sleep", "600"], {})
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, only the group is ended")
def test_a_process_that_hides_is_ended_with_its_run(mounted: Mounted, tmp_path: Path) -> None:
    started = tmp_path / "started"
    hides = HIDES.replace("STARTED", repr(str(started)))
    mounted.target(
        "if query == 'q1':",
        f"    subprocess.run([sys.executable, '-c', {hides!r}])",
        f"    while not os.path.exists({str(started)!r}): time.sleep(0.01)",
        "return [{'doc_id': query}]",
    )
    assert mounted.made().state == "completed"
    assert is_gone(int(started.read_text()))


def test_a_report_is_of_its_own_project(mounted: Mounted, tmp_path: Path) -> None:
    evil_python(
        mounted, tmp_path, "report['source']['contract'] = 'other'", "json.dump(report, open('report.json', 'w'))"
    )
    row = mounted.made()
    assert (row.state, row.problem) == ("failed", "report.json: is of another contract than the project's")
