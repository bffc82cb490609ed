"""A history in which somebody wrote what no check writes, and a report that was edited before it is recorded."""

import hashlib
import json
import os
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ragcontract.core import bounds
from ragcontract.history.choose_baseline import LAST_PASS, NoEntryFitsError, choose
from ragcontract.history.commits import Commits
from ragcontract.history.contract_entries import entries_of
from ragcontract.history.folder import Folder
from tests.builders import golden, run, write_jsonl
from tests.history.entries import FIRST, RUN, new_entry, results_of
from tests.history.repository import git, new_repository
from tests.process import Ended, rag_contract

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
ACTS = "\x1b[31m\n::error::x"
LONG = "x" * 200_000
Change = Callable[[dict[str, Any]], object]


@pytest.fixture(autouse=True)
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new_repository(tmp_path, monkeypatch)
    Path(".gitignore").write_text("*\n")
    git("add", "-f", ".gitignore")
    git("commit", "-qm", "first")
    monkeypatch.setenv("RAG_CONTRACT_HISTORY", "history")
    monkeypatch.setattr("ragcontract.cli.commands.check.clock", lambda: NOW)
    monkeypatch.setattr("ragcontract.cli.commands.history.clock", lambda: NOW + timedelta(days=1))
    write_jsonl(Path("golden.jsonl"), [golden("q1", "doc1")])


def recorded(name: str = "docs", document: str = "doc1") -> Path:
    """Record a check of a run that found this document; return the file of its entry."""
    judged(name, document)
    ended = rag_contract("history", "add")
    assert ended.code == 0, ended
    return Path("history") / ended.out.split()[-1]


def judged(name: str = "docs", document: str = "doc1") -> None:
    """Check a run that found this document."""
    write_jsonl(Path("current_run.jsonl"), [run("q1", document)])
    assert rag_contract("check", "--name", name).code in {0, 1}


def edit(path: Path, change: Change) -> None:
    fields = json.loads(path.read_text())
    change(fields)
    path.write_text(json.dumps(fields))


def sets(*keys: str, to: object) -> Change:
    """Return what sets the value that these keys lead to."""

    def change(fields: Any) -> None:
        for key in keys[:-1]:
            fields = fields[key]
        fields[keys[-1]] = to

    return change


def is_plain_and_short(ended: Ended) -> None:
    printed = ended.out + ended.err
    assert "\x1b" not in printed
    assert "\n::" not in printed
    assert len(printed) < 5_000


COMMANDS = (
    ("check", "--name", "docs", "--branch", "main"),
    ("check", "--name", "docs", "--branch", "main", "--baseline", "history:last-pass"),
    ("history", "show"),
    ("suggest", "--history", "history"),
    ("history", "show", "last"),
    ("history", "show", "--query", "q1"),
    ("history", "gate", "{commit}", "--contract", "docs"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize(
    "change",
    [
        sets("summary", to=ACTS + LONG),
        sets("source", "run_url", to=ACTS + LONG),
        sets("source", "branch", to=ACTS + LONG),
        sets("verdict", to=ACTS + LONG),
        sets("created_at", to=ACTS + LONG),
        sets("head", "created_at", to=ACTS),
        sets("failed", to=[ACTS] * 5_000),
        lambda fields: fields.update(results=None, no_results=ACTS + LONG),
        lambda fields: [metric.update(label=ACTS + LONG[:9_000]) for metric in fields["metrics"].values()],
        sets("gates", to=[{"metric": "mrr_at_5", "id": ACTS + LONG, "kind": "drop", "limit": -1, "status": "fail"}]),
        sets("gates", to=[{"metric": "mrr_at_5", "id": "x", "kind": ACTS, "limit": ACTS, "status": "fail"}]),
    ],
)
def test_no_text_of_an_entry_acts_or_fills_the_screen(command: tuple[str, ...], change: Change) -> None:
    edit(recorded(), change)
    ended = rag_contract(*(part.format(commit=git("rev-parse", "HEAD")) for part in command))
    assert ended.code in {0, 1, 2}
    is_plain_and_short(ended)


@pytest.mark.parametrize(
    "time", ["", "x", ACTS, "2026-11-21", "2026-02-30T00:00:00+00:00", "0001-01-01T00:00:00+14:00", LONG]
)
def test_an_entry_without_a_time_is_skipped_with_a_warning(time: str) -> None:
    good = recorded()
    bad = good.with_name(good.name.replace("-1.json", "-2.json"))
    bad.write_text(good.read_text().replace(good.stem, bad.stem))
    edit(bad, sets("created_at", to=time))
    ended = rag_contract("history", "show", bad.stem)
    assert ended.code == 2
    assert "created_at: is not a time with a time zone" in ended.err
    is_plain_and_short(ended)


@pytest.mark.parametrize("month", ["9999-12", "2026-12"])
@pytest.mark.parametrize("is_empty", [True, False])
def test_a_later_month_without_entries_hides_no_contract_from_the_gate(month: str, *, is_empty: bool) -> None:
    Path("ragcontract.yml").write_text("minimums: {mrr_at_k: 0.5}\n")
    recorded("web")
    folder = recorded("docs", "other").parent.with_name(month)
    folder.mkdir()
    if not is_empty:
        (folder / "x.json").write_text("{}")
    ended = rag_contract("history", "gate", git("rev-parse", "HEAD"))
    assert (ended.code, ended.out) == (1, "docs: fail\nweb: pass\n")


@pytest.mark.parametrize(
    "command",
    [
        ("history", "show", "--query", "\udcff"),
        ("history", "show", "--branch", "\udcff", "--format", "json"),
        ("history", "show", "--contract", "\udcff", "--format", "json"),
        ("history", "gate", "abcdefa", "--contract", "\udcff", "--format", "json"),
        ("check", "--name", "\udcff", "--branch", "\udcff"),
        ("history", "add", "--branch", "\udcff"),
    ],
    ids=ascii,
)
def test_a_name_that_is_not_utf_8_is_no_bug(command: tuple[str, ...]) -> None:
    recorded()
    assert rag_contract(*command).code in {0, 2}


def test_a_contract_whose_name_is_not_utf_8_is_the_one_that_was_recorded() -> None:
    recorded("\udcff")
    assert rag_contract("history", "gate", git("rev-parse", "HEAD"), "--contract", "\udcff").code == 0


@pytest.mark.parametrize("rows", [b"1\n" * 9, b"{}\n", b'{"query":"x","id":"q1"}\n', b"]\n"])
def test_a_result_set_that_has_no_rows_of_queries_is_no_baseline(rows: bytes) -> None:
    entry = recorded()
    digest = hashlib.sha256(rows).hexdigest()
    path = Path("history/results", digest[:2], f"{digest}.jsonl")
    path.parent.mkdir(parents=True)
    path.write_bytes(rows)
    edit(entry, sets("results", "sha256", to=digest))
    ended = rag_contract("check", "--name", "docs", "--branch", "main", "--baseline", "history:last-pass")
    assert ended.code == 2
    assert "its result set is not one of rag-contract; delete it from the store" in ended.err


def test_of_many_large_entries_only_what_is_needed_is_held() -> None:
    commit = f"{'3f9c1a2b4d5e':0<40}"
    commits = Commits(order=(commit,), parents={commit: ()})

    def peak(number: int) -> int:
        """Return the memory that it takes to look through so many entries, none of which fits."""
        store = Folder(f"many-{number}")
        for count in range(number):
            new = new_entry(at=FIRST + timedelta(minutes=count), run=RUN + count, results=results_of("d1"))
            fields = json.loads(new.content) | {"verdict": "fail"}
            fields["head"]["tags"] = {f"tag{tag}": {"mrr_at_5": 0.5} for tag in range(500)}
            path = Path(store.name) / new.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(fields))
        tracemalloc.start()
        with pytest.raises(NoEntryFitsError):
            choose(entries_of(store, "docs"), LAST_PASS, "main", commits, None)
        assert rag_contract("history", "show", "--history", store.name, "--query", "q1", "--last", "5").code == 0
        highest = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return highest

    batch = bounds.ENTRIES_AT_ONCE
    assert peak(5 * batch) < 1.5 * peak(2 * batch)


@pytest.mark.parametrize("time", ["x", "2026-11-21", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_report_without_a_time_is_not_recorded(time: str) -> None:
    judged()
    edit(Path("report.json"), sets("created_at", to=time))
    ended = rag_contract("history", "add")
    assert ended.code == 2
    assert ended.err.startswith("error: report.json: created_at: is not a time with a time zone")


@pytest.mark.parametrize("digest", ["", "0" * 64])
@pytest.mark.parametrize("path", ["pipe", "/dev/zero", "/dev/stdin", "secret", ".", "\0", "none"])
@pytest.mark.parametrize("part", ["golden", "run", "config"])
def test_a_report_that_names_other_files_tells_nothing_of_them_and_waits_for_nothing(
    part: str, path: str, digest: str
) -> None:
    Path("ragcontract.yml").write_text("k: 3\n")
    judged()
    os.mkfifo("pipe")
    Path("secret").write_text("PASSWORD=abc\n")
    edit(Path("report.json"), sets("inputs", part, "files", to=[{"path": path, "sha256": digest}]))
    ended = rag_contract("history", "add")
    assert ended.code == 2
    assert ended.err.startswith("error: report.json: ")
    assert "PASSWORD" not in ended.err
    assert not Path("history").exists()
