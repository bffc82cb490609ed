"""Limits on the history that is kept in a branch on GitHub."""

import math
import random

from ragcontract.core.errors import InputError
from ragcontract.history.branch import Branch
from ragcontract.history.commits import reachable_by_api
from ragcontract.history.entry import decode
from tests.bounds.lab import Case, Cases, Lab
from tests.github.standin import Fault
from tests.history.entries import new_entry, runs
from tests.history.jobs_at_once import BRANCH, Job
from tests.needs import require


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


CASES: Cases = {
    "ENTRY": Case(an_entry),
    "ENTRIES_AT_ONCE": Case(lambda lab, number: reading_calls(lab, number) == 3),
    "MONTHS_AT_ONCE": Case(lambda lab, number: reading_calls(lab, number, hours=24 * 31) == 3, small=5),
    "TEXTS_AT_ONCE": Case(texts, small=20_000),
    "DELETED_AT_ONCE": Case(deleted),
    "BRANCH_FIRST_PAUSE": Case(lambda lab, seconds: longest_pauses(lab)[:2] == [seconds, 2 * seconds]),
    "BRANCH_PAUSE": Case(lambda lab, seconds: longest_pauses(lab)[-1] == seconds),
    "REACHABLE": Case(reachable),
}
