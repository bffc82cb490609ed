"""A campaign: workers run cases for some time; failures are confirmed, made small and stored in the corpus."""

import hashlib
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from multiprocessing.connection import wait
from pathlib import Path

from msgspec import Struct

from tests.fuzz.case import CORPUS, Case, stored
from tests.fuzz.isolation import Isolated, endless, replay
from tests.fuzz.limits import Limits
from tests.fuzz.minimise import minimised
from tests.fuzz.targets.target import Target
from tests.fuzz.worker import Failure, Tally

TICK = 1.0  # seconds between two looks at the clock
PROGRESS = 300.0  # seconds between two lines on how far it is
TRIES = 150  # to make a failing case smaller
TRIES_IF_SLOW = 12  # each takes as long as the limit on an execution
MOST_FAILURES = 50
Say = Callable[[str], None]


class Plan(Struct, frozen=True, kw_only=True):
    """How long to run, on what, and where failures go. It ends after ``seconds`` or after so many ``executions``."""

    seconds: float
    executions: int | None = None
    jobs: int = 1
    seed: str = "0"
    targets: Mapping[str, Target]
    corpus: Path = CORPUS
    limits: Limits = Limits()
    tries: int = TRIES


class Summary(Struct, kw_only=True):
    """What a campaign has done; ``failures`` are by their reason, with the folder of each case."""

    ended: Counter[str]
    shapes: int
    seconds: float
    failures: dict[str, Path]

    @property
    def executions(self) -> int:
        """How many cases were run."""
        return sum(self.ended.values())

    def lines(self) -> list[str]:
        """Return the summary for a person."""
        rate = self.executions / max(self.seconds, 0.001)
        lines = [f"{self.executions:,} executions in {self.seconds:,.0f} seconds ({rate:,.0f} a second)"]
        for target in sorted({key.split()[0] for key in self.ended}):
            outcomes = {key.split()[1]: count for key, count in sorted(self.ended.items()) if key.split()[0] == target}
            total = sum(outcomes.values())
            shown = ", ".join(
                f"{'' if code == 'failure' else 'exit '}{code}: {count:,}" for code, count in outcomes.items()
            )
            lines.append(f"  {target:14}{total:>10,}   {shown}")
        lines.append(f"{self.shapes:,} shapes of printed lines, {len(self.failures)} distinct failures")
        for reason, path in self.failures.items():
            lines += [f"  {reason}", f"    {path}"]
        return lines


class Campaign:
    """Runs the workers of one plan."""

    def __init__(self, plan: Plan, say: Say) -> None:
        """Read the corpus, from which cases are bred."""
        self._plan = plan
        self._say = say
        self._parents = [case for case in stored(plan.corpus).values() if case.target in plan.targets]
        self._started = 0
        self._found: dict[str, Failure] = {}  # by target and reason, in the order found
        self._summary = Summary(ended=Counter(), shapes=0, seconds=0.0, failures={})

    def run(self) -> Summary:
        """Run until the time or the number of executions is reached, or Ctrl-C is pressed."""
        start = said = time.monotonic()
        workers = [self._worker() for _ in range(self._plan.jobs)]
        try:
            while not self._is_over(start):
                wait([one for worker in workers for one in (worker.process.sentinel, worker.connection)], timeout=TICK)
                workers = [self._look(worker) for worker in workers]
                if time.monotonic() - said > PROGRESS:
                    said = time.monotonic()
                    self._say(f"{said - start:,.0f} seconds: {self._summary.executions:,} executions")
        except KeyboardInterrupt:
            self._say("interrupted")
        finally:
            for worker in workers:
                self._hear(worker)
                worker.close()
            self._summary.seconds = time.monotonic() - start
        for key, failure in self._found.items():
            self._confirm(key, failure)
        return self._summary

    def _is_over(self, start: float) -> bool:
        plan, summary = self._plan, self._summary
        return (
            time.monotonic() - start >= plan.seconds
            or (plan.executions is not None and summary.executions >= plan.executions)
            or len(self._found) >= MOST_FAILURES
        )

    def _worker(self) -> Isolated:
        self._started += 1
        return endless(f"{self._plan.seed}/{self._started}", self._plan.targets, self._parents, self._plan.limits)

    def _look(self, worker: Isolated) -> Isolated:
        """Take what a worker has sent; replace it by a new one if it has ended."""
        alive = worker.process.is_alive()
        self._hear(worker)
        if alive:
            return worker
        found = worker.cause()
        worker.close()
        if found:
            self._summary.ended[f"{found.case.target} failure"] += 1
            self._failed(found)
        return self._worker()

    def _hear(self, worker: Isolated) -> None:
        for message in worker.messages():
            if isinstance(message, Tally):
                self._summary.ended.update(message.ended)
                self._summary.shapes += message.shapes
            else:
                self._failed(message)

    def _failed(self, failure: Failure) -> None:
        key = f"{failure.case.target}: {failure.reason}"
        if key not in self._found:
            self._found[key] = failure
            self._say(f"FAILURE {key}")

    def _confirm(self, key: str, failure: Failure) -> None:
        """Run a failing case again on its own, and store it as small as it becomes."""
        case, reason = failure.case, failure.reason
        again = replay(case, self._plan.limits, self._plan.targets)
        if isinstance(again, Failure):
            reason = again.reason
            slow = reason.startswith(("hangs", "memory", "ended by"))
            case = self._small(case, reason, min(self._plan.tries, TRIES_IF_SLOW) if slow else self._plan.tries)
        elif reason.startswith("hangs"):
            self._say(f"{key}: not seen again, so it was near the limit")
            return
        else:
            key = f"{key} (only after other cases)"
        folder = self._plan.corpus / case.target / name_of(reason, case)
        case.save(folder)
        self._summary.failures[key] = folder
        self._say(f"\n{key}\n{failure.details.rstrip()}")

    def _small(self, case: Case, reason: str, tries: int) -> Case:
        def fails(smaller: Case) -> bool:
            found = replay(smaller, self._plan.limits, self._plan.targets)
            return isinstance(found, Failure) and found.reason == reason

        return minimised(case, fails, tries)


def name_of(reason: str, case: Case) -> str:
    """Return a name for a case: the first words of what is wrong, and a digest of the files."""
    words = re.findall(r"[a-z0-9]+", reason.lower().replace("/", " "))
    digest = hashlib.sha256(case.packed()).hexdigest()[:8]
    return "-".join([*words[:8], digest])
