"""How fast the team service answers: `python -m benchmarks.service [--writes] [--db URL] [--seconds N]`.

Fills a database with 10,000 runs of 25 queries and 200 of 1,000, as `history add` records them, starts `rag-contract
serve` on it, and asks for every page, and for every other GET, 20 times a second. Prints the median, the 95th
percentile and the longest of the times from when a request was due until its answer was there, in milliseconds.
Clients and service share the machine. `--writes` measures production traffic instead: see benchmarks/ingestion.py.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import islice
from pathlib import Path
from statistics import quantiles
from typing import Any, NamedTuple

import httpx
import msgspec
from msgspec.structs import replace
from sqlalchemy import Connection

from benchmarks import ingestion, tables
from ragcontract.history.entry import Entry, decode, encode, folder_of, new_id
from ragcontract.history.folder import Folder
from ragcontract.service.accounts import Principal, create_key
from ragcontract.service.blobs import Sent, put_blob
from ragcontract.service.database import Database, now_ms
from ragcontract.service.database_store import Recording, record, recording_of, with_rules
from ragcontract.service.migrate import migrate, opened

SIZES = {"small": (25, 10_000), "large": (1_000, 200)}  # the queries of a project, and its runs
API = "/api/v1"
RATE = 20  # requests a second
LAST = datetime(2026, 11, 21, 20, 30, tzinfo=UTC)
BRANCHES = ("main", "main", "topic", "release")
TAGS = ("billing", "search", "api")
REPORTS = 10  # every tenth run is sent with its report
RAG_CONTRACT = (sys.executable, "-m", "ragcontract")
HEAD = ("GET", "kB", "p50 ms", "p95 ms", "max ms")  # of the rows of interactions, "p95 ms" is the 99th percentile
AT_ONCE = 100  # runs; a transaction
FILLER = Principal(actor="benchmark", role="admin")


class Checked(NamedTuple):
    """A check, of which runs are made that differ in what they retrieved."""

    entry: Entry
    results: bytes
    report: bytes
    golden: bytes  # the contract of that day


def checked(name: str, queries: int, folder: Path) -> Checked:
    """Check a run of so many queries, of which one in twenty is broken, and record it."""
    golden, run = [], []
    for number in range(queries):
        doc_id = f"guide-{number}"
        tag = TAGS[number % len(TAGS)]
        text = f"how can a customer change the address of order {number} before it is sent?"
        golden.append({"id": f"q{number}", "query": text, "relevant_doc_ids": [doc_id], "tags": [tag]})
        others = [f"other-{number}-{place}" for place in range(9)]
        found = others if number % 20 == 0 else [doc_id, *others]
        run.append({"query_id": f"q{number}", "results": [{"doc_id": each} for each in found]})
    folder.mkdir()
    for file, rows in (("golden.jsonl", golden), ("current_run.jsonl", run)):
        (folder / file).write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "ragcontract.yml").write_text("minimums:\n  mrr_at_k: 0.7\n")
    for command in (["check", "--name", name], ["history", "add", "--history", "history"]):
        subprocess.run(
            [sys.executable, "-m", "ragcontract", *command], cwd=folder, stdout=subprocess.DEVNULL, check=False
        )
    (path,) = (folder / "history" / "entries").rglob("*.json")
    entry = decode(path.read_bytes(), path.relative_to(folder / "history").as_posix())
    results = Folder(str(folder / "history")).results(entry.results.sha256 if entry.results else "")
    texts = {"golden": [(folder / "golden.jsonl").read_text()], "config": (folder / "ragcontract.yml").read_text()}
    return Checked(entry, results or b"", (folder / "report.json").read_bytes(), msgspec.json.encode(texts))


class Filled(NamedTuple):
    """A run that is to be recorded, with its blobs."""

    recording: Recording
    blobs: list[Sent]


def runs_of(check: Checked, number: int) -> Iterator[Filled]:
    """Yield so many runs, the oldest first, two hours apart, each with results of its own."""
    report, golden = Sent.of("report", check.report), Sent.of("golden", check.golden)
    for count in range(number):
        at = LAST - timedelta(hours=2 * (number - count))
        commit = sha256(b"%d" % count).hexdigest()[:40]
        results = Sent.of("results", check.results.replace(b"other-0-0", b"other-0-%d" % (1_000_000 + count)))
        source = replace(
            check.entry.source,
            commit=commit,
            branch=BRANCHES[count % len(BRANCHES)],
            event="push",
            run_id=1_000_000 + count,
            dirty=False,
        )
        entry = replace(
            check.entry,
            id=new_id(at, commit, f"{1_000_000 + count}", 1),
            created_at=at.isoformat(),
            source=source,
            results=check.entry.results and replace(check.entry.results, sha256=results.sha256),
        )
        recording = recording_of(folder_of(entry.contract), encode(entry))
        if count % REPORTS == REPORTS - 1:
            recording = with_rules(replace(recording, report=report.sha256, golden=golden.sha256), check.report)
            yield Filled(replace(recording, default_branch=source.branch == "main"), [results, report, golden])
        else:
            yield Filled(recording, [results])


def fill(database: Database, folder: Path) -> str:
    """Record all runs, and return a key that may read them."""
    for name, (queries, number) in SIZES.items():
        left = runs_of(checked(name, queries, folder / name), number)
        while batch := [*islice(left, AT_ONCE)]:
            database.write(lambda connection, batch=batch: add(connection, batch))  # type: ignore[misc]
    return database.write(lambda connection: create_key(connection, name="benchmark", now=0, scopes=["read"]).text)


def add(connection: Connection, batch: list[Filled]) -> None:
    """Record some runs in a transaction."""
    for filled in batch:
        for sent in filled.blobs:
            put_blob(connection, sent, sender=FILLER.actor, now=0)
        record(connection, filled.recording, FILLER, now_ms())


@contextmanager
def started(db: str) -> Iterator[tuple[str, int]]:
    """Start the service at a free port, and give its address and the id of its process."""
    command = [*RAG_CONTRACT, "serve", "--db", db, "--port", "0", "--keep-runs", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            lines = process.stdout or ()
            yield next(line.split()[-1].rstrip("/") for line in lines if "answers at" in line), process.pid
        finally:
            process.terminate()


@contextmanager
def served(db: str) -> Iterator[str]:
    """Start the service at a free port, and give its address."""
    with started(db) as (address, _):
        yield address


def addresses(get: Callable[..., Any]) -> Mapping[str, str]:
    """Return what is asked for, by what it is: the pages, and what programs ask for."""
    pages, asked = {"page of all projects": "/", "page of settings": "/settings"}, {"projects": "/projects"}
    for name, (queries, number) in SIZES.items():
        of, project = f"{number:,} of {queries:,}", f"/projects/{name}"
        page = get(f"{project}/runs?limit=100")
        run = next(each for each in page["items"] if get(f"/runs/{each['id']}")["blobs"]["report"])
        results = get(f"/runs/{run['id']}")["blobs"]["results"]
        months = get(f"{project}/months")["months"]
        ids = get(f"{project}/entries?{'&'.join(f'month={month}' for month in months[:6])}")["ids"][:100]
        old = page
        for _ in range(20):
            old = get(f"{project}/runs?limit=100&cursor={old['next']}") if old["next"] else old
        asked |= {
            f"project, {of}": project,
            f"runs, {of}": f"{project}/runs",
            f"runs, 100 of them, {of}": f"{project}/runs?limit=100",
            f"runs that are older, {of}": f"{project}/runs?cursor={page['next']}",
            f"blocked runs of a branch, {of}": f"{project}/runs?state=blocked&branch=release",
            f"runs of a branch that has none, {of}": f"{project}/runs?branch=none",
            f"runs in a state that none has, {of}": f"{project}/runs?state=queued",
            f"runs at a commit, {of}": f"{project}/runs?commit={run['commit'][:7]}",
            f"run, {of}": f"/runs/{run['id']}",
            f"report.json, {of}": f"/runs/{run['id']}/report.json",
            f"report.html, {of}": f"/runs/{run['id']}/report.html",
            f"baseline.json, {of}": f"/runs/{run['id']}/baseline.json",
            f"gate, {of}": f"{project}/gate?commit={old['items'][0]['commit']}",
            f"metrics of 30 days, {of}": f"{project}/metrics?days=30",
            f"metrics of 90 days, {of}": f"{project}/metrics?days=90",
            f"diff, {of}": f"/runs/{run['id']}/diff?against={old['items'][0]['id']}",
            f"months, {of}": f"{project}/months",
            f"ids of 14 months, {of}": f"{project}/entries?{'&'.join(f'month={month}' for month in months[:14])}",
            f"100 entries, {of}": f"{project}/entries/contents?{'&'.join(f'id={key}' for key in ids)}",
            f"result set, {of}": f"/blobs/{results}",
        }
        pages |= {
            f"page of the project, {of}": f"/p/{name}",
            f"page of the project, all days, {of}": f"/p/{name}?days=all",
            f"page of runs, {of}": f"/p/{name}/runs",
            f"page of golden queries, {of}": f"/p/{name}/queries",
            f"page of a query, {of}": f"/p/{name}/query?id=q0",
            f"page of a run, {of}": f"/runs/{run['id']}",
            f"page of a comparison, {of}": f"/runs/{run['id']}/compare/{old['items'][0]['id']}",
        }
    asked["digests of all result sets"] = "/blobs"
    return pages | {name: f"{API}{path}" for name, path in asked.items()}


def times_of(send: Callable[[], Any], seconds: float) -> list[float]:
    """Send requests at the rate, also while others wait for their answers; return how late each answer was, in ms."""
    begin = time.perf_counter() + 0.1

    def late(number: int) -> float:
        due = begin + number / RATE
        time.sleep(max(0, due - time.perf_counter()))
        send()
        return (time.perf_counter() - due) * 1000

    with ThreadPoolExecutor(RATE) as pool:
        return [*pool.map(late, range(round(RATE * seconds)))]


def measured(address: str, key: str, seconds: float, paths: Mapping[str, str] | None = None) -> Iterator[list[str]]:
    """Yield a row of the table for each address; by default, of all pages and routes of runs."""
    with httpx.Client(base_url=address, headers={"Authorization": f"Bearer {key}"}, timeout=30) as client:

        def answer(path: str) -> bytes:
            return client.get(path).raise_for_status().content

        asked = addresses(lambda path: msgspec.json.decode(answer(f"{API}{path}"))) if paths is None else paths
        for name, path in asked.items():
            size = len(answer(path))
            times = times_of(lambda path=path: answer(path), seconds)  # type: ignore[misc]
            p50, p95 = (quantiles(times, n=20)[place] for place in (9, 18))
            yield [name, f"{size / 1000:,.1f}", *(f"{each:,.0f}" for each in (p50, p95, max(times)))]


def measure_writes(db: str, seconds: float, stored: int) -> None:
    """Print how much is stored a second, and then how fast pages are with a million interactions."""
    with opened(db, create=True) as database:
        migrate(database)
        key = ingestion.key_of(database)
    with started(db) as (address, _):
        port = int(address.rpartition(":")[2])
        head = ["interactions", "stored a second", "p50 ms", "p99 ms", "max ms", "not stored"]
        print(tables.rows(head, ingestion.written(("127.0.0.1", port), key, seconds), 1), flush=True)
    with opened(db) as database:
        ingestion.fill(database, stored)
    with started(db) as (address, pid):
        port = int(address.rpartition(":")[2])
        rows = ingestion.shown(
            ("127.0.0.1", port), key, pid, seconds, lambda paths: measured(address, key, seconds, paths)
        )
        print(tables.rows(HEAD, rows, 1))


def main() -> None:
    """Fill a database, unless it is filled, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--db", help="an empty database [an SQLite file in a temporary folder]")
    parser.add_argument("--writes", action="store_true", help="measure production traffic")
    parser.add_argument("--stored", type=int, default=ingestion.STORED, help="interactions, with --writes [1,000,000]")
    parser.add_argument("--seconds", type=float, default=10, help="how long each address is asked [10]")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        db = options.db or f"{folder}/service.db"
        if options.writes:
            measure_writes(db, options.seconds, options.stored)
            return
        start = time.perf_counter()
        with opened(db, create=True) as database:
            migrate(database)
            key = fill(database, Path(folder))
        print(f"filled in {time.perf_counter() - start:.0f} s", file=sys.stderr)
        with served(db) as address:
            print(tables.rows(HEAD, measured(address.rstrip("/"), key, options.seconds), 1))


if __name__ == "__main__":
    main()
