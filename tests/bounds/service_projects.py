"""Limits on the projects of the team service: what an operator mounts, and what is computed of recorded runs."""

import itertools
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, select

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.history.entry import NewEntry
from ragcontract.service import retention
from ragcontract.service.blobs import Sent, put_blob
from ragcontract.service.database import DAY, Database, now_ms
from ragcontract.service.mounted import mounted_projects
from ragcontract.service.projects_and_runs import verdicts_before
from ragcontract.service.retention import Retention
from ragcontract.service.tables import audit, blobs, metadata, runs
from ragcontract.service.trends import Trends, compute, stored_trend
from tests.bounds.lab import Case, Cases, Lab
from tests.bounds.service import a_database
from tests.builders import as_jsonl, golden
from tests.history.trends import results_at, run_at
from tests.service.served import Served

CONFIG = "minimums: {mrr_at_k: 0.1}\n"


def mounted(lab: Lab, text: str, number: int = 1) -> bool:
    """Mount projects with this project.yml."""
    for count in range(number):
        (lab.folder / f"projects/p{count}").mkdir(parents=True, exist_ok=True)
        (lab.folder / f"projects/p{count}/project.yml").write_text(text)
    try:
        return len(mounted_projects(lab.folder / "projects")) == number
    except InputError:
        return False


def names_of(number: int) -> list[str]:
    return [f"q{count}" for count in range(number)]


def contract_of(names: Iterable[str]) -> list[str]:
    """Return a golden file for each query."""
    return [as_jsonl(golden(name, f"{name}.md")) for name in names]


def runs_of(ranks: Sequence[int], names: Sequence[str] = ("q0",), **fields: Any) -> list[NewEntry]:
    """Return a run for each rank, which the relevant documents of all queries have in it."""
    return [run_at(count, results_at(dict.fromkeys(names, rank)), **fields) for count, rank in enumerate(ranks)]


class Recorded:
    """A service to which runs were sent, with a contract."""

    def __init__(self, lab: Lab, texts: Sequence[str], entries: Iterable[NewEntry], size: int = 0) -> None:
        """The contract is filled up to ``size`` bytes."""
        self.database = a_database(lab)
        self.database.write(metadata.create_all)
        self._served = Served(self.database)
        blob = json.dumps({"golden": texts, "config": CONFIG}).encode().ljust(size)
        digest = self._served.send_blob(blob, "golden")
        self.runs = [self._served.add(new, golden=digest, default_branch=True) for new in entries]

    def diff(self) -> Any:
        """Return what changed in the last run since the last pass."""
        return self._served.request("GET", f"/runs/{self.runs[-1]}/diff")

    def get(self, path: str) -> str:
        """Return a page."""
        headers = {"Authorization": f"Bearer {self._served.key}", "Accept": "text/html"}
        return str(self._served.client.get(path, headers=headers).text)

    def scored_again(self) -> int:
        """Return how many runs the trend has."""
        assert compute(self.database, 1, None)
        with self.database.read() as connection:
            stored = stored_trend(connection, 1)
        assert stored is not None
        assert not stored.trend.why_recorded
        return len(stored.trend.runs)


def a_contract(lab: Lab, size: int) -> bool:
    return bool(Recorded(lab, contract_of(["q0"]), runs_of([1, 1]), size).diff().status_code == 200)


def golden_files(lab: Lab, number: int) -> bool:
    names = names_of(number)
    return bool(Recorded(lab, contract_of(names), runs_of([1, 1], names)).diff().status_code == 200)


def runs_scored_again(lab: Lab, number: int) -> bool:
    return Recorded(lab, contract_of(["q0"]), runs_of([1] * number)).scored_again() == number


def bytes_of_results(lab: Lab, size: int) -> bool:
    """Whether the run before is scored again after the result set of the newest one was read, which has this size."""
    before, newest = runs_of([1, 2])
    assert newest.results is not None
    padded = run_at(1, newest.results.ljust(size, b"\n"))
    return Recorded(lab, contract_of(["q0"]), [before, padded]).scored_again() == 2


def lost_queries(lab: Lab, number: int) -> bool:
    names = names_of(number)
    answer = Recorded(lab, contract_of(names), runs_of([1, 9], names)).diff().json()
    assert len(answer["lost"]) + answer["more_lost"] == number
    return bool(answer["more_lost"] == 0)


def runs_before(lab: Lab, number: int) -> bool:
    """Find the run before on the branch, before this many runs of which all but the oldest are of another branch."""
    first, *others, last = runs_of([1] * (number + 1))
    elsewhere = [run_at(place, new.results, source={"branch": "topic"}) for place, new in enumerate(others, 1)]
    recorded = Recorded(lab, contract_of(["q0"]), [first, *elsewhere, last])
    with recorded.database.read() as connection:
        return verdicts_before(connection, [recorded.runs[-1]]) == {recorded.runs[-1]: "pass"}


def queries_on_a_page(lab: Lab, number: int) -> bool:
    names = names_of(number)
    passed, failed = run_at(0, results_at({"q0": 1})), run_at(1, None, failed=names)
    recorded = Recorded(lab, contract_of(["q0"]), [passed, failed])
    page = recorded.get(f"/runs/{recorded.runs[-1]}")
    assert f"<b>{number} queries newly broken</b>" in page
    return page.count(">q") == number


def passes(lab: Lab, number: int) -> bool:
    """Find the oldest of this many passes; the others do not count."""
    first, *others, last = runs_of([1] * (number + 1))
    dirty = [run_at(count, new.results, source={"dirty": True}) for count, new in enumerate(others, 1)]
    return bool(Recorded(lab, contract_of(["q0"]), [first, *dirty, last]).diff().status_code == 200)


def kept(lab: Lab, number: int) -> bool:
    """Return whether so many runs stay, which none is the baseline of."""
    recorded = Recorded(lab, contract_of(["q0"]), [*runs_of([9] * number, verdict="fail")])
    retention_of(recorded.database).delete(now_ms())
    with recorded.database.read() as connection:
        return len(connection.execute(select(runs)).all()) == number


def retention_of(database: Database) -> Retention:
    return Retention(database, bounds.KEEP_RUNS, Trends(database))


def unnamed(lab: Lab, age: int) -> bool:
    """Return whether a blob that no run has stays at this age, in seconds."""
    database, sent = a_database(lab), Sent.of("results", b"x")
    database.write(metadata.create_all)
    database.write(lambda connection: put_blob(connection, sent, sender="key:ci", now=0))
    retention_of(database).delete(age * 1_000)
    with database.read() as connection:
        return connection.execute(select(blobs.c.kind)).first() is not None


def in_a_transaction(lab: Lab, fill: Callable[[Connection], object]) -> bool:
    """Return whether what is old goes in one transaction."""
    database, transactions = a_database(lab), itertools.count()
    database.write(metadata.create_all)
    database.write(fill)
    write = database.write
    lab.patch.setattr(database, "write", lambda job: (next(transactions), write(job))[1])
    retention_of(database).delete(2 * bounds.AUDIT_DAYS * DAY)
    return next(transactions) == 1


def rows_in_a_transaction(lab: Lab, number: int) -> bool:
    row = {"at": 1, "actor": "a", "action": "b", "subject": "c"}
    return in_a_transaction(lab, lambda connection: connection.execute(audit.insert(), [row] * number))


def time_of_a_transaction(lab: Lab, milliseconds: int) -> bool:
    """Delete two blobs, the second when just less than this time has passed."""
    clock = itertools.count()
    lab.patch.setattr(retention, "seconds", lambda: next(clock) * (milliseconds - 0.5) / 1_000)

    def fill(connection: Connection) -> None:
        for data in (b"x", b"y"):
            put_blob(connection, Sent.of("results", data), sender="key:ci", now=0)

    return in_a_transaction(lab, fill)


def note_of_a_run(lab: Lab, size: int) -> bool:
    """Start a run with a note of this size."""
    (lab.folder / "projects/docs").mkdir(parents=True)
    for name in ("project.yml", "record.yml"):
        (lab.folder / "projects/docs" / name).write_text("name: x\n")
    database = a_database(lab)
    database.write(metadata.create_all)
    served = Served(database, projects=lab.folder / "projects")
    answer = served.request("POST", "/projects/docs/runs", key=served.new_key("run"), json={"note": "x" * size})
    assert answer.status_code in {202, 422}, answer.text
    return bool(answer.status_code == 202)


CASES: Cases = {
    "RUN_NOTE": Case(note_of_a_run),
    "KEEP_RUNS": Case(kept, small=3),
    "SERVICE_RUNS": Case(lambda lab, number: mounted(lab, f"keep_runs: {number}\n")),
    "UNNAMED_SECONDS": Case(unnamed),
    "RETENTION_MS": Case(time_of_a_transaction),
    "RETENTION_ROWS": Case(rows_in_a_transaction, small=3),
    "MOUNTED_PROJECTS": Case(lambda lab, number: mounted(lab, "name: x\n", number), small=3),
    "PROJECT_NAME": Case(lambda lab, size: mounted(lab, f"name: {'x' * size}\n")),
    "PROJECT_TIMEOUT": Case(lambda lab, seconds: mounted(lab, f"timeout: {seconds}\n")),
    "PROJECT_PATTERNS": Case(lambda lab, number: mounted(lab, f"redact: {['x'] * number}\n")),
    "SERVICE_DAYS": Case(lambda lab, days: mounted(lab, f"keep_days: {days}\n")),
    "SERVICE_CONTRACT": Case(a_contract, small=1_000),
    "SERVICE_GOLDEN_FILES": Case(golden_files),
    "SERVICE_TREND_RUNS": Case(runs_scored_again, small=15),
    "SERVICE_TREND_QUERIES": Case(runs_scored_again, small=15),
    "SERVICE_TREND_BYTES": Case(bytes_of_results, small=1_000),
    "SERVICE_DIFF_QUERIES": Case(lost_queries, small=3),
    "SERVICE_PASSES": Case(passes, small=3),
    "SERVICE_RUNS_BEFORE": Case(runs_before, small=3),
    "SERVICE_QUERIES": Case(queries_on_a_page, small=3),
}
