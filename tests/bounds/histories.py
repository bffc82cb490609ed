"""Limits on a history: what is read and written of entries and result sets, and what is shown of them."""

import json
import math
import os
import random
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from ragcontract.core.errors import InputError
from ragcontract.history.branch import Branch
from ragcontract.history.commit_state import CommitState, ContractState
from ragcontract.history.commits import reachable_by_api
from ragcontract.history.contract_entries import entries_of
from ragcontract.history.copy_and_prune import Copied, copy
from ragcontract.history.entry import NewEntry, decode, encode
from ragcontract.history.entry_of_report import entry_of_report
from ragcontract.history.folder import Folder
from ragcontract.report.markdown import render
from ragcontract.report.record import Report
from ragcontract.statistics.levels import LEVEL_RUNS
from tests.bounds.lab import Case, Cases, Lab, accepted
from tests.builders import golden, run
from tests.github.relayed import everything
from tests.github.standin import Fault
from tests.history.entries import FIRST, RUN, new_entry, results_of, runs
from tests.history.jobs_at_once import BRANCH, Job
from tests.history.repository import commits, new_repository
from tests.history.trends import contract, ids_of, runs_of, stored
from tests.needs import require
from tests.process import rag_contract
from tests.report.html.parsed import Parsed


def an_entry(_: Lab, size: int) -> bool:
    entry = new_entry()
    try:
        decode(entry.content.ljust(size), entry.path)
    except InputError as error:
        return "is larger than" not in str(error)
    return True


def reading_calls(lab: Lab, number: int, *, size: int = 0, hours: float = 1) -> int:
    """Return with how many calls entries of a branch are read."""
    require("npm")
    entries = runs(number, hours=hours)
    lab.github.repository.commit(BRANCH, {entry.path: entry.content.ljust(size) for entry in entries})
    store = Job(lab.github).branch
    ids = store.ids("docs", store.months("docs"))
    assert len(store.read("docs", ids)) == number
    return len(lab.github.requests)


def texts(lab: Lab, size: int) -> bool:
    """Read two entries of this size together."""
    half = size // 2
    require("npm")
    first, second = runs(2)
    files = {first.path: first.content.ljust(half), second.path: second.content.ljust(size - half)}
    lab.github.repository.commit(BRANCH, files)
    store = Job(lab.github).branch
    store.read("docs", store.ids("docs", ["2026-11"]))
    return len(lab.github.requests) == 3


def deleted(lab: Lab, number: int) -> bool:
    require("npm")
    digests = [f"{index:064x}" for index in range(number)]
    lab.github.repository.commit(BRANCH, {f"results/{name[:2]}/{name}.jsonl": b"" for name in digests})
    Job(lab.github).branch.delete_results(digests)
    return len(lab.github.repository.history(BRANCH)) == 2


class _Longest(random.Random):
    """Always takes the longest pause."""

    def uniform(self, a: float, b: float) -> float:
        return max(a, b)


def longest_pauses(lab: Lab) -> list[float]:
    """Return the longest pauses before a branch is written again that moves nine times."""
    require("npm")
    job = Job(lab.github, seconds=math.inf)
    lab.github.repository.commit(BRANCH)
    lab.github.faults = [Fault(body="createCommitOnBranch", times=9, status=502)]
    Branch(job.client, repository="octo/app", branch=BRANCH, name="github:", chance=_Longest()).add(new_entry())
    return job.waits


def reachable(lab: Lab, number: int) -> bool:
    for index in range(number):
        lab.github.repository.commit("main", {"a": b"%d" % index})
    client = Job(lab.github).client
    return len(reachable_by_api(client, lab.github.repository.branches["main"]).order) == number


def copied(lab: Lab, *entries: NewEntry) -> Copied:
    """Copy a history of these entries to a new folder."""
    source = Folder(str(lab.folder / "source"))
    for entry in entries:
        source.add(entry)
    return copy(source, Folder(str(lab.folder / "target")))


def a_result_set(lab: Lab, size: int) -> bool:
    result = copied(lab, new_entry(results=b"x" * size))
    assert result.entries == 1
    assert result.result_sets + result.faulty == 1
    return result.result_sets == 1


def a_leftover(lab: Lab, seconds: int) -> bool:
    folder = Folder(str(lab.folder / "history"))
    folder.add(new_entry())
    leftover = lab.folder / "history" / ".rag-contract-0123456789abcdef.tmp"
    leftover.touch()
    now = leftover.stat().st_mtime  # the next entry is younger, and within the minute
    os.utime(leftover, (now - seconds + 60, now - seconds + 60))
    folder.add(new_entry(run=RUN + 1))
    return leftover.exists()


def failing_queries(lab: Lab, number: int) -> bool:
    ids = [f"q{count:04}" for count in range(number)]
    ended = lab.check([golden(name, "doc") for name in ids], [run(name, "x") for name in ids], "", "--name", "docs")
    assert ended.code == 1
    entry = entry_of_report(Path("report.json"), Folder("history"), {}).entry
    return entry.failed == ids


def entries(lab: Lab, number: int) -> bool:
    folder = Folder(str(lab.folder / "history"))
    for entry in runs(number):
        folder.add(entry)
    return len([*entries_of(folder, "docs").newest_first()]) == number


def suggested_from(lab: Lab, number: int) -> bool:
    lab.check()
    for new in runs(number):
        Folder("history").add(new)
    return f" in {number} runs over " in rag_contract("suggest", "--history", "history").out


def described(_: Lab, size: int) -> bool:
    contract = "x" * (size - len(": fail"))
    state = ContractState(contract=contract, state="failure", why="fail")
    return CommitState(commit="", contracts=[state]).description == f"{contract}: fail"


def shown_metrics(lab: Lab, number: int) -> bool:
    names = ["mrr_at_k", "recall_at_k", "precision_at_k", "ndcg_at_k", "map_at_k"][:number]
    lab.check((), (), json.dumps({"minimums": dict.fromkeys(names, 0.1)}), "--name", "docs")
    Folder("history").add(entry_of_report(Path("report.json"), Folder("history"), {}))
    return rag_contract("history", "show", "--history", "history").out.partition("\n")[0].count("@5") == number


def a_window(lab: Lab, runs: int) -> bool:
    ended = lab.check(config=f"history: {{window: {runs}}}\n")
    return accepted(ended, "expected a whole number from 10 to 100")


def searched(lab: Lab, number: int) -> bool:
    """Record five runs of main, and then so many of another branch that there are this many."""
    new_repository(lab.folder, lab.patch)
    [sha] = commits(1, "main")
    lab = Lab(folder=Path.cwd(), github=lab.github, patch=lab.patch)
    folder = Folder(str(lab.folder / "history"))
    for age in range(number):
        new = new_entry(at=FIRST + timedelta(minutes=age), commit=sha[:12], run=RUN + age, results=results_of("doc1"))
        source = replace(new.entry.source, commit=sha, branch="main" if age < LEVEL_RUNS else "other")
        entry = replace(new.entry, source=source)
        folder.add(NewEntry(entry=entry, content=encode(entry), results=new.results))
    history = ("--name", "docs", "--history", "history", "--branch", "main")
    ended = lab.check((), (), "history: {mrr_drop_gt: 1}\n", *history)
    return accepted(ended, "history has 4 runs of 'docs' on main here: no more are among the newest")


def with_trend(number: int) -> dict[str, Any]:
    """Return report.json with a metric in so many runs."""
    made: dict[str, Any] = everything()
    ids = [f"20260701T000000Z-abc123400000-{run}-1" for run in range(number)]
    made["history"]["metrics"] = {"mrr_at_5": {"ids": ids, "values": [run / number for run in range(number)]}}
    return made


def trend_of_a_report(lab: Lab, number: int) -> bool:
    (lab.folder / "report.json").write_text(json.dumps(with_trend(number)))
    return rag_contract("render", "report.json").code != 2


def shown_runs(_: Lab, number: int) -> bool:
    return f"last {number} runs: " in render(msgspec.convert(with_trend(number), Report))


def page(entries: Sequence[NewEntry], lab: Lab, *options: str) -> Parsed:
    """Return history.html of these entries, without golden files."""
    stored(lab.folder, entries)
    ended = rag_contract("history", "page", "--history", "history", *options)
    assert ended.code == 0, ended
    return Parsed(Path("history.html").read_bytes())


def points(lab: Lab, number: int) -> bool:
    drawn = [tag for tag, _ in page(runs_of(number, losses={}), lab).elements].count("circle")
    assert drawn <= number
    return drawn == number


def charts(lab: Lab, number: int) -> bool:
    new = runs_of(1, losses={})[0]
    metrics = {f"m{count}": replace(new.entry.metrics["mrr_at_5"], label=f"M{count}") for count in range(number)}
    entry = replace(new.entry, metrics=metrics)
    elements = page([NewEntry(entry=entry, content=encode(entry))], lab).elements
    return sum(attrs.get("role") == "img" for _, attrs in elements) == number


def contracts(lab: Lab, number: int) -> bool:
    entries = [new for count in range(number) for new in runs_of(1, losses={}, contract=f"c{count:02}")]
    return f"History of {number} contracts" in page(entries, lab).text


def searched_on_page(lab: Lab, number: int) -> bool:
    return "are searched in the means of several runs" not in page(runs_of(number, losses={}), lab).text


def listed_runs(lab: Lab, number: int) -> bool:
    return f"The last {number} runs" in page(runs_of(number, losses={}), lab).text


def failed_queries(lab: Lab, number: int) -> bool:
    text = page(runs_of(2, losses={1: ids_of(number)}, queries=number), lab).text
    return text.partition("Last failed at")[2].count("1 of 2") == number


def moved_queries(lab: Lab, number: int) -> bool:
    contract(lab.folder, queries=number)
    text = page(runs_of(12, losses={6: ids_of(number)}, queries=number), lab).text
    return "more quer" not in text.partition("other ranks")[2]


def in_a_badge(lab: Lab, size: int) -> bool:
    lab.check((), (), "", "--name", "x" * size)
    assert rag_contract("history", "add", "--history", "history", "--branch", "main").code == 0
    (badge,) = Path("history", "badges").glob("*.json")
    return bool(json.loads(badge.read_text())["label"] == "x" * size)


CASES: Cases = {
    "PAGE_POINTS": Case(points, small=20),
    "PAGE_CHARTS": Case(charts),
    "PAGE_CONTRACTS": Case(contracts, small=4),
    "PAGE_SEARCHED": Case(searched_on_page, small=20),
    "PAGE_ROWS": Case(listed_runs, small=20),
    "PAGE_FAILED": Case(failed_queries),
    "PAGE_QUERIES": Case(moved_queries),
    "ENTRY": Case(an_entry),
    "ENTRIES_AT_ONCE": Case(lambda lab, number: reading_calls(lab, number) == 3),
    "MONTHS_AT_ONCE": Case(lambda lab, number: reading_calls(lab, number, hours=24 * 31) == 3, small=5),
    "TEXTS_AT_ONCE": Case(texts, small=20_000),
    "DELETED_AT_ONCE": Case(deleted),
    "BRANCH_FIRST_PAUSE": Case(lambda lab, seconds: longest_pauses(lab)[:2] == [seconds, 2 * seconds]),
    "BRANCH_PAUSE": Case(lambda lab, seconds: longest_pauses(lab)[-1] == seconds),
    "REACHABLE": Case(reachable),
    "SUGGESTED_RUNS": Case(suggested_from, small=20),
    "RESULT_SET": Case(a_result_set),
    "UNFINISHED": Case(a_leftover, past=lambda seconds: seconds + 120),
    "ENTRY_FAILED": Case(failing_queries, small=20),
    "ENTRIES": Case(entries, small=20),
    "BADGE_NAME": Case(in_a_badge),
    "STATUS_DESCRIPTION": Case(described),
    "TREND_METRICS": Case(shown_metrics),
    "WINDOW": Case(a_window),
    "WINDOW_LEAST": Case(a_window, past=lambda least: least - 1),
    "WINDOW_AMONG": Case(searched, small=20),
    "TREND_RUNS": Case(trend_of_a_report),
    "TREND_SHOWN": Case(shown_runs),
}
