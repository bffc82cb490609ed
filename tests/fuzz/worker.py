"""A worker: a process that makes cases, runs them one after the other, and reports to the campaign."""

import gc
import os
import random
import time
import traceback
from multiprocessing.connection import Connection
from pathlib import Path

from msgspec import Struct

from tests.fuzz.case import Case
from tests.fuzz.expectations import Broken, crash_in
from tests.fuzz.limits import Limits, MemoryHog, limited, prepare
from tests.fuzz.sandbox import Ended, Sandbox
from tests.fuzz.shapes import Shape, shapes
from tests.fuzz.targets.registry import bred, made
from tests.fuzz.targets.target import Target

REPORT_SECONDS = 1.0
MOST_PARENTS = 1_000  # of each target and exit code
LARGE_PARENT = 50_000  # bytes
BRED = 0.5  # of the cases are mutations of one that printed something new


class Failure(Struct, frozen=True, kw_only=True):
    """A case that does not satisfy the contract, what is wrong, and details for a person."""

    case: Case
    reason: str
    details: str = ""


class Tally(Struct, kw_only=True):
    """What a worker has done since its last report: executions by target and exit code, and how many shapes are new."""

    ended: dict[str, int]
    shapes: int = 0

    def count(self, target: str, outcome: str) -> None:
        """Count one execution."""
        key = f"{target} {outcome}"
        self.ended[key] = self.ended.get(key, 0) + 1


class Job(Struct, frozen=True, kw_only=True):
    """What a worker is to do. ``journal`` and ``stack`` are files that tell what it did when it was ended."""

    seed: str
    targets: dict[str, Target]
    parents: list[Case]
    limits: Limits
    journal: Path
    stack: Path
    sandbox: Sandbox


def execute(case: Case, target: Target, sandbox: Sandbox, limits: Limits) -> Ended:
    """Run a case within the limits; raises :class:`Broken` or :class:`MemoryHog` if it breaks the contract."""
    sandbox.fill(case.files)
    with limited(limits, case.size):
        ended = target.run(sandbox, case.files)
    target.expect(sandbox, case.files, ended)
    return ended


def judged(case: Case, target: Target, sandbox: Sandbox, limits: Limits) -> Ended | Failure:
    """Run a case and return how it ended, or the failure."""
    try:
        return execute(case, target, sandbox, limits)
    except Broken as broken:
        return Failure(case=case, reason=str(broken), details=traceback.format_exc())
    except MemoryHog as hog:
        return Failure(case=case, reason=f"memory {hog}")
    except BaseException:  # noqa: BLE001 (what the guard lets through, or a bug of the target)
        details = traceback.format_exc()
        return Failure(case=case, reason=f"uncaught: {crash_in(details)}", details=details)


def start(job: Job) -> None:
    """Prepare this process, in which nothing but the worker runs."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1):  # what is printed at a descriptor is not for the campaign's terminal
        os.dup2(null, descriptor)
    prepare(job.limits, job.stack.open("wb", buffering=0))
    gc.freeze()  # the loaded modules stay: collecting garbage need not look at them again and again


def work(job: Job, connection: Connection) -> None:
    """Run cases until the campaign ends this process; ends by itself after a failure on memory, which is not freed."""
    start(job)
    chance = random.Random(job.seed)
    names, shares = list(job.targets), [target.share for target in job.targets.values()]
    parents = Parents(chance, job.parents)
    seen: set[Shape] = set()
    tally, reported = Tally(ended={}), time.monotonic()
    with job.sandbox as sandbox:
        while True:
            name = chance.choices(names, shares)[0]
            case = next_case(chance, name, job.targets[name], parents.some(name))
            job.journal.write_bytes(case.packed())
            result = judged(case, job.targets[name], sandbox, job.limits)
            if isinstance(result, Failure):
                tally.count(name, "failure")
                connection.send(result)
            else:
                tally.count(name, str(result.code))
                if fresh := shapes(name, result) - seen:
                    seen |= fresh
                    tally.shapes += len(fresh)
                    parents.add(case, result.code)
            if isinstance(result, Failure) or time.monotonic() - reported > REPORT_SECONDS:
                connection.send(tally)
                tally, reported = Tally(ended={}), time.monotonic()
            if isinstance(result, Failure) and result.reason.startswith("memory"):
                return


def next_case(chance: random.Random, name: str, target: Target, parents: list[Case]) -> Case:
    """Return a case that is bred from the parents, or made anew."""
    while True:
        try:
            return bred(chance, parents) if parents and chance.random() < BRED else made(chance, name, target)
        except RecursionError:  # nested too deeply for the fuzzer's own encoder
            continue


class Parents:
    """The cases that printed something new, by target and exit code: most are refused, and all codes count the same."""

    def __init__(self, chance: random.Random, cases: list[Case]) -> None:
        """Start with the cases of the corpus."""
        self._chance = chance
        self._cases: dict[str, dict[int, list[Case]]] = {}
        for case in cases:
            self.add(case, -1)

    def some(self, target: str) -> list[Case]:
        """Return the parents of one exit code."""
        by_code = self._cases.get(target)
        return self._chance.choice(list(by_code.values())) if by_code else []

    def add(self, case: Case, code: int) -> None:
        """Add a case, in place of any if there are many; large ones take too long to be changed often."""
        cases = self._cases.setdefault(case.target, {}).setdefault(code, [])
        if case.size > LARGE_PARENT:
            return
        if len(cases) < MOST_PARENTS:
            cases.append(case)
        else:
            cases[self._chance.randrange(MOST_PARENTS)] = case


def once(job: Job, case: Case, connection: Connection) -> None:
    """Run one case in this process and send how it ended, or the failure."""
    start(job)
    with job.sandbox as sandbox:
        connection.send(judged(case, job.targets[case.target], sandbox, job.limits))
