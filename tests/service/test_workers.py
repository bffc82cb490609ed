"""Workers make the runs of mounted projects: to the end, once, and without anything of them left over."""

import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import URL, Connection, select

from benchmarks.workers import trial
from ragcontract.core import bounds
from ragcontract.service.accounts import Principal
from ragcontract.service.blobs import blob
from ragcontract.service.database import Database
from ragcontract.service.database_store import DatabaseStore
from ragcontract.service.tables import tasks, trends
from ragcontract.service.workers import run_guard, worker_processes
from ragcontract.service.workers.run_queue import beat, claim, time_of
from ragcontract.service.workers.worker import place_of
from ragcontract.service.workers.worker_processes import WorkerProcesses
from tests.forking import plain_environ
from tests.process import COMMAND
from tests.service.conftest import name_of, open_database
from tests.service.mounting import ANSWERS, SLUG, Mounted, is_gone, wait_until
from tests.service.running import serving
from tests.service.served import Served

SQLITE_ONLY = pytest.mark.parametrize("kind", ["sqlite"])  # what the databases have no part in
HOUR = 3_600_000
LEAVES = "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); os.setsid(); time.sleep(600)"


@pytest.fixture(autouse=True)
def _heard_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragcontract.service.workers.worker.RENEWED", 0.1)
    monkeypatch.setattr("ragcontract.service.workers.worker.IDLE", 0.1)
    monkeypatch.setattr(bounds, "RUN_GRACE", 1)


@pytest.fixture
def mounted(database: Database, tmp_path: Path) -> Mounted:
    return Mounted(database, tmp_path)


def blob_of(mounted: Mounted, digest: str) -> bytes:
    with mounted.database.read() as connection:
        data = blob(connection, digest)
    assert data is not None
    return data


def test_runs_are_recorded_and_compared_with_the_last_pass(mounted: Mounted) -> None:
    first, second = mounted.made(), mounted.made()
    assert (first.state, first.verdict, first.problem, first.event) == ("completed", "pass", None, "manual")
    assert (first.branch, first.commit_sha, first.attempt, first.origin) == (None, None, 1, "service")
    assert "so 1 limit on changes is left out" in first.log
    assert "limit on changes" not in second.log
    mounted.target("return [{'doc_id': 'wrong'}] if query == 'q3' else [{'doc_id': query}]")
    third = mounted.made()
    assert (third.state, third.verdict, third.problem) == ("blocked", "fail", None)
    report = json.loads(blob_of(mounted, third.report))
    assert report["source"]["contract"] == SLUG
    assert report["inputs"]["baseline"]["files"][0]["path"] == "baseline.json"
    assert {gate["id"]: gate["status"] for gate in report["gates"]}["fail_on.recall_at_5_drop_gt"] == "fail"
    assert str(mounted.folder.parent) not in json.dumps(report)
    assert not [*mounted.runs.iterdir()]
    assert len(DatabaseStore(mounted.database, Principal(actor="test")).result_sets()) == 2


@SQLITE_ONLY
def test_the_baseline_of_the_project_comes_first(mounted: Mounted) -> None:
    mounted.write("ragcontract.yml", "fail_on: {recall_at_5_drop_gt: 0.01}\n")
    mounted.write("baseline.json", "{}")
    assert "baseline.json" in mounted.made().problem


def linked(path: Path) -> None:
    """Put a link in place of a file."""
    path.symlink_to(path.rename(path.with_name("real")))


WRONG: dict[str, tuple[Callable[[Mounted], Any], str]] = {
    "no golden queries": (lambda of: (of.home / "golden.jsonl").unlink(), "golden.jsonl: no such file"),
    "golden queries are a link": (lambda of: linked(of.home / "golden.jsonl"), "golden.jsonl: is a link"),
    "project.yml is wrong": (lambda of: of.write("project.yml", "timeout: never\n"), "timeout: "),
    "record.yml is wrong": (lambda of: of.write("record.yml", "pythn: {}\n"), "record.yml:1: pythn: unknown key"),
    "the golden queries are wrong": (lambda of: of.write("golden.jsonl", "{}\n"), "golden.jsonl:1: "),
    "there is no such Python": (
        lambda of: of.write("project.yml", "python: /no/python\n"),
        "/no/python: cannot be started (No such file or directory)",
    ),
    "a secret is not set": (
        lambda of: of.write("project.yml", "secrets: [NOT_SET_AT_ALL]\n"),
        "NOT_SET_AT_ALL: there is no environment variable of this name",
    ),
    "the target cannot be imported": (lambda of: of.write("app.py", "import nowhere\n"), "nowhere"),
    "the target raises": (lambda of: of.target("raise ValueError('no index')"), "no index"),
    "the target returns nonsense": (lambda of: of.target("return [object()]"), "a value of type object"),
    "the target ends the process": (
        lambda of: of.target("os.kill(os.getpid(), signal.SIGKILL)"),
        "record was ended by the signal 9",
    ),
    "the target leaves": (lambda of: of.target("os._exit(7)"), "record ended with the exit code 7"),
    "the contract cannot be judged": (
        lambda of: of.write("ragcontract.yml", "history: {recall_at_5_drop_gt: 0.1}\n"),
        "history.recall_at_5_drop_gt cannot be judged",
    ),
}


@SQLITE_ONLY
@pytest.mark.parametrize(("make", "problem"), WRONG.values(), ids=WRONG.keys())
def test_a_run_without_a_verdict_says_why(make: Callable[[Mounted], Any], problem: str, mounted: Mounted) -> None:
    make(mounted)
    row = mounted.made()
    assert (row.state, row.entry, row.attempt) == ("failed", None, 1)
    assert problem in row.problem
    assert str(mounted.runs) not in row.problem + row.log
    assert not [*mounted.runs.iterdir()]


@SQLITE_ONLY
def test_a_flood_of_output_keeps_the_last_of_it(mounted: Mounted) -> None:
    mounted.target("sys.stderr.write(('x' * 99 + '\\n') * 10**6)", ANSWERS)
    row = mounted.made()
    assert row.state == "completed", row.problem
    assert len(row.log.encode()) <= bounds.RUN_LOG
    assert "xxx" in row.log
    assert row.log.endswith("limit hold\n") or "PASS" in row.log[-200:]


@SQLITE_ONLY
def test_what_takes_too_long_is_ended(mounted: Mounted) -> None:
    mounted.write("project.yml", "timeout: 1\n")
    mounted.target("time.sleep(600)")
    row = mounted.made()
    assert row.state == "failed"
    assert "it took longer than 1 s, the timeout in project.yml" in row.problem


def hanging(mounted: Mounted, folder: Path) -> Callable[[], list[int]]:
    """Let the target hang with children that leave its group; return what returns their ids."""
    pids = folder / "pids"
    mounted.target(
        f"children = [subprocess.Popen([sys.executable, '-c', {LEAVES!r}]) for _ in range(3)]",
        f"for pid in [os.getpid(), *(each.pid for each in children)]: print(pid, file=open({str(pids)!r}, 'a'))",
        "while True: time.sleep(1)",
    )
    return lambda: [int(pid) for pid in pids.read_text().split()] if pids.exists() else []


@SQLITE_ONLY
def test_a_target_that_hangs_is_killed_with_its_children(mounted: Mounted, tmp_path: Path) -> None:
    pids = hanging(mounted, tmp_path)
    number = mounted.add()
    with mounted.worker():
        wait_until(lambda: len(pids()) == 4)
        assert mounted.cancel(number)
        wait_until(lambda: mounted.is_over(number))
    assert mounted.row(number).state == "cancelled"
    assert [pid for pid in pids() if not is_gone(pid)] == []
    assert not [*mounted.runs.iterdir()]


@SQLITE_ONLY
def test_the_processes_of_a_killed_worker_end_and_another_one_goes_on(mounted: Mounted, tmp_path: Path) -> None:
    """The first worker is killed at the second question; the first question is in the journal."""
    pid = tmp_path / "pid"
    slow = f"if query == 'q2' and not os.path.exists({str(tmp_path / 'go')!r}): time.sleep(600)"
    mounted.target(f"print(os.getpid(), file=open({str(pid)!r}, 'w'))", "print('asked', query)", slow, ANSWERS)
    number = mounted.add()
    db = str(mounted.database.file)
    argv = ["service", "work", "--db", db, "--projects", str(mounted.folder), "--runs-dir", str(mounted.runs)]
    process = subprocess.Popen([*COMMAND, *argv], env=plain_environ(), stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: "asked q2" in (mounted.row(number).log or ""))
    finally:
        process.kill()
        process.wait()
    wait_until(lambda: is_gone(int(pid.read_text())))
    (tmp_path / "go").touch()
    with mounted.worker(lambda connection: time_of(connection) + 2 * HOUR):
        wait_until(lambda: mounted.is_over(number))
    row = mounted.row(number)
    assert (row.state, row.attempt) == ("completed", 2), row.problem
    assert mounted.questions() == ["q1", "q2", "q2", "q3"]
    assert re.findall("asked q[123]", row.log) == ["asked q1", "asked q2", "asked q2", "asked q3"]


@SQLITE_ONLY
def test_the_processes_of_a_worker_that_hangs_end_before_another_one_goes_on(mounted: Mounted, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    slow = f"if query == 'q2' and not os.path.exists({str(tmp_path / 'go')!r}): time.sleep(600)"
    mounted.target(f"print(os.getpid(), file=open({str(pid)!r}, 'w'))", slow, ANSWERS)
    number = mounted.add()
    argv = ["--db", str(mounted.database.file), "--projects", str(mounted.folder), "--runs-dir", str(mounted.runs)]
    process = subprocess.Popen([*COMMAND, "service", "work", *argv], env=plain_environ(), stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: "q2" in mounted.questions())
        first = int(pid.read_text())
        process.send_signal(signal.SIGSTOP)
        (tmp_path / "go").touch()
        with mounted.worker(lambda connection: time_of(connection) + 2 * HOUR):
            wait_until(lambda: mounted.is_over(number))
        assert is_gone(first)
    finally:
        process.kill()
        process.wait()
    row = mounted.row(number)
    assert (row.state, row.attempt) == ("completed", 2), row.problem
    assert mounted.questions() == ["q1", "q2", "q2", "q3"]


@SQLITE_ONLY
def test_a_worker_that_has_lost_its_run_ends_it_and_stores_nothing(mounted: Mounted, tmp_path: Path) -> None:
    pids = hanging(mounted, tmp_path)
    number = mounted.add()
    with mounted.worker():
        wait_until(lambda: len(pids()) == 4)
        mounted.database.write(lambda connection: claim(connection, "another", time_of(connection) + 2 * HOUR))
        wait_until(lambda: all(map(is_gone, pids())))
    row = mounted.row(number)
    assert (row.state, row.lease_owner, row.attempt) == ("running", "another", 2)
    assert [each.name for each in mounted.runs.iterdir() if each.is_dir()] == [f"run-{number}"]


@SQLITE_ONLY
def test_a_worker_whose_database_hangs_ends_its_run(
    mounted: Mounted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids, goes_on = hanging(mounted, tmp_path), threading.Event()
    number = mounted.add()
    with mounted.worker():
        wait_until(lambda: len(pids()) == 4)
        monkeypatch.setattr("ragcontract.service.workers.worker.renew", lambda *_: goes_on.wait() and "ours")
        monkeypatch.setattr(bounds, "LEASE_SECONDS", 1)
        try:
            wait_until(lambda: all(map(is_gone, pids())))
        finally:
            goes_on.set()
    assert mounted.row(number).entry is None


@SQLITE_ONLY
def test_a_worker_waits_for_projects_that_are_away(mounted: Mounted, caplog: pytest.LogCaptureFixture) -> None:
    away = mounted.folder.with_name("away")
    mounted.folder.rename(away)
    number = mounted.add()
    with mounted.worker():
        wait_until(lambda: "no run can be claimed now: FileNotFoundError" in caplog.text)
        away.rename(mounted.folder)
        wait_until(lambda: mounted.is_over(number))
    assert mounted.row(number).state == "completed", mounted.row(number).problem


def test_a_worker_that_is_asked_to_stop_gives_its_run_back(mounted: Mounted, tmp_path: Path) -> None:
    mounted.target(f"while query == 'q2' and not os.path.exists({str(tmp_path / 'go')!r}): time.sleep(0.05)", ANSWERS)
    number = mounted.add()
    with mounted.worker() as ended:
        wait_until(lambda: "q2" in mounted.questions())
        ended.set()
    row = mounted.row(number)
    assert (row.state, row.attempt, row.lease_owner) == ("queued", 0, None)
    with mounted.database.read() as connection:
        assert connection.execute(select(tasks)).all() == []
    (tmp_path / "go").touch()
    mounted.write("golden.jsonl", "changed meanwhile")
    with mounted.worker():
        wait_until(lambda: mounted.is_over(number))
    assert mounted.row(number).state == "completed", mounted.row(number).problem
    assert mounted.questions().count("q1") == 1


@SQLITE_ONLY
def test_secrets_are_in_nothing_that_is_kept(mounted: Mounted, monkeypatch: pytest.MonkeyPatch) -> None:
    secret, password = "s3cret-of-the-project", "of-the-database"
    monkeypatch.setenv("SEARCH_TOKEN", secret)
    monkeypatch.setenv("PGPASSWORD", password)
    mounted.write("project.yml", "secrets: [SEARCH_TOKEN]\n")
    mounted.target("print(dict(os.environ), file=sys.stderr, flush=True)", ANSWERS)
    row = mounted.made()
    assert row.state == "completed", row.problem
    kept = [str(value) for value in row] + [
        blob_of(mounted, row.report).decode(),
        blob_of(mounted, row.golden).decode(),
    ]
    assert "SEARCH_TOKEN" in row.log
    assert [text for text in kept if secret in text or password in text] == []
    mounted.target("raise ValueError(os.environ['SEARCH_TOKEN'])")
    row = mounted.made()
    assert row.state == "failed"
    assert secret not in row.problem + row.log


def test_a_clock_that_is_set_back_loses_no_run(mounted: Mounted) -> None:
    """The first run's worker is lost just before the clock is set back an hour, and its lease would last an hour."""
    lost, waiting = mounted.add(), mounted.add()
    mounted.database.write(lambda connection: claim(connection, "lost", time_of(connection)))
    started = time.monotonic()

    def clock(connection: Connection) -> int:
        fast = round((time.monotonic() - started) * 60_000)  # a minute each second
        return time_of(connection) - HOUR + fast

    with mounted.worker(clock):
        wait_until(lambda: mounted.is_over(lost) and mounted.is_over(waiting))
    assert [mounted.row(number).state for number in (lost, waiting)] == ["completed"] * 2
    assert mounted.row(lost).attempt == 2


def test_folders_of_runs_that_are_over_are_deleted(mounted: Mounted) -> None:
    number = mounted.made().id
    for name in (f"run-{number}", "run-999", "run-x", "other"):
        (mounted.runs / name).mkdir()
    (mounted.runs / "run-999.lock").touch()
    with mounted.worker():
        wait_until(lambda: len([*mounted.runs.iterdir()]) == 2)
    assert sorted(each.name for each in mounted.runs.iterdir()) == ["other", "run-x"]


def test_killed_workers_lose_no_run_and_make_none_twice(migrated: URL, tmp_path: Path) -> None:
    """`python -m benchmarks.workers` does it with 200 runs, 4 workers and 15 kills."""
    with open_database(migrated) as database:
        seen = trial(database, name_of(migrated), tmp_path, number=6, workers=2, kills=2, seed=7)
    assert (seen.wrong(), seen.kills, seen.runs) == ([], 2, 6)


@SQLITE_ONLY
def test_the_service_is_ready_while_a_worker_is_heard(mounted: Mounted) -> None:
    settings = {"workers": 1}
    with Served(mounted.database, projects=mounted.folder) as served:
        assert served.client.get("/readyz").status_code == 200  # it starts no workers
    with Served(mounted.database, projects=mounted.folder, **settings) as served:
        answer = served.client.get("/readyz")
        assert (answer.status_code, answer.json()["problems"]) == (503, ["no worker has started yet"])
        mounted.database.write(lambda connection: beat(connection, "w1", time_of(connection)))
        assert served.client.get("/readyz").status_code == 200
        mounted.database.write(lambda connection: beat(connection, "w1", time_of(connection) - 61_000))
        (problem,) = served.client.get("/readyz").json()["problems"]
        assert problem.startswith("no worker was heard of for 6")
        (mounted.home / "record.yml").unlink()
    with Served(mounted.database, projects=mounted.folder, **settings) as served:
        assert served.client.get("/readyz").status_code == 200


@SQLITE_ONLY
def test_prometheus_counts_lost_leases(mounted: Mounted) -> None:
    def lose(connection: Connection) -> None:
        for count in range(3):
            claim(connection, f"w{count}", time_of(connection) + count * HOUR)

    with Served(mounted.database) as served:
        for lost in (0, 2):
            headers = {"Authorization": f"Bearer {served.key}"}
            assert f"rag_contract_leases_lost {lost}.0" in served.client.get("/metrics", headers=headers).text
            mounted.add()
            mounted.database.write(lose)


@SQLITE_ONLY
def test_serve_makes_runs_and_computes_their_trend(mounted: Mounted, tmp_path: Path) -> None:
    db = str(mounted.database.file)
    with serving("--db", db, "--projects", str(mounted.folder), cwd=tmp_path) as process:
        wait_until(lambda: process.client.get("/readyz").status_code == 200)
        for _ in range(2):
            number = mounted.add()
            wait_until(lambda: mounted.is_over(number))  # noqa: B023 (it is called at once)
            assert mounted.row(number).state == "completed", mounted.row(number).problem
            wait_until(lambda: trend_of(mounted) == number)  # noqa: B023
        workers = children_of(process.process.pid)
        assert workers
        code, _, err = process.ended()
    assert code == 0, err
    assert [pid for pid in workers if not is_gone(pid)] == []
    assert (tmp_path / "service.db.runs").is_dir()


def trend_of(mounted: Mounted) -> int | None:
    with mounted.database.read() as connection:
        newest: int | None = connection.execute(select(trends.c.run_id).where(trends.c.computed_at > 0)).scalar()
    return newest


def children_of(pid: int) -> list[int]:
    threads = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for thread in threads for child in (thread / "children").read_text().split()]


@SQLITE_ONLY
def test_a_worker_that_cannot_be_started_is_tried_again(mounted: Mounted, monkeypatch: pytest.MonkeyPatch) -> None:
    """As while the machine has no memory left."""
    monkeypatch.setattr(worker_processes, "LEAST_LIFE", 0)
    start, failures = WorkerProcesses._started, list[None]()

    def fails_once(of: WorkerProcesses) -> Any:
        if not failures:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return start(of)

    monkeypatch.setattr(WorkerProcesses, "_started", fails_once)
    place = place_of(str(mounted.database.file), mounted.folder, mounted.runs)
    workers = WorkerProcesses(mounted.database, place, 1, lambda: failures.append(None))
    workers.start()
    try:
        wait_until(lambda: workers.pids)
    finally:
        workers.close()


@SQLITE_ONLY
def test_workers_end_with_a_service_that_is_killed(mounted: Mounted, tmp_path: Path) -> None:
    with serving("--db", str(mounted.database.file), "--projects", str(mounted.folder), cwd=tmp_path) as process:
        wait_until(lambda: process.client.get("/readyz").status_code == 200)
        workers = children_of(process.process.pid)
        process.process.send_signal(signal.SIGKILL)
        wait_until(lambda: all(map(is_gone, workers)))
    assert workers


def test_the_guard_returns_how_its_program_ended(tmp_path: Path) -> None:
    for program, code in (("import sys; sys.exit(3)", 3), ("import os; os.kill(os.getpid(), 15)", 143)):
        argv = [
            sys.executable,
            "-I",
            run_guard.__file__,
            str(tmp_path / "lock"),
            "mark",
            "1",
            sys.executable,
            "-c",
            program,
        ]
        with subprocess.Popen(argv, stdin=subprocess.PIPE) as guard:
            wait_until(lambda: guard.poll() is not None)
        assert guard.returncode == code
