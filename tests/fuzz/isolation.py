"""Runs workers as processes of their own, and says what ended one that could not say it itself."""

import multiprocessing
import os
import signal
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from tests.fuzz.case import Case
from tests.fuzz.limits import Limits
from tests.fuzz.sandbox import Ended, Sandbox
from tests.fuzz.targets.registry import TARGETS
from tests.fuzz.targets.target import Target
from tests.fuzz.worker import Failure, Job, once, work

FORK = multiprocessing.get_context("fork")  # all modules are loaded once, in the campaign's process


class Isolated:
    """A process of a worker with its sandbox and its journal."""

    def __init__(
        self,
        run: Callable[..., None],
        *arguments: Any,
        seed: str = "",
        targets: Mapping[str, Target] = TARGETS,
        parents: list[Case] | None = None,
        limits: Limits,
    ) -> None:
        """Start the process."""
        self.sandbox = Sandbox()
        self._folder = Path(tempfile.mkdtemp(prefix="journal-", dir=self.sandbox.home.parent))
        self.job = Job(
            seed=seed,
            targets=dict(targets),
            parents=parents or [],
            limits=limits,
            journal=self._folder / "case",
            stack=self._folder / "stack",
            sandbox=self.sandbox,
        )
        self.connection, theirs = FORK.Pipe(duplex=False)
        self.process: BaseProcess = FORK.Process(target=_run, args=(run, self.job, *arguments, theirs), daemon=True)
        self.process.start()
        theirs.close()

    def messages(self) -> list[Any]:
        """Return what the worker has sent since the last call."""
        found = []
        with suppress(EOFError):
            while self.connection.poll():
                found.append(self.connection.recv())
        return found

    def last(self) -> Any:
        """Return the last message before the worker ends; None if there was none."""
        message = None
        with suppress(EOFError):
            while True:
                message = self.connection.recv()
        return message

    def cause(self, case: Case | None = None) -> Failure | None:
        """Return the failure that ended the process; None if it ended by itself. ``case`` is by default the journal's.

        Raises RuntimeError if the worker itself has a bug, whose traceback was printed.
        """
        self.process.join()
        code = self.process.exitcode
        if code == 0:
            return None
        if code is None or code > 0:
            raise RuntimeError(f"the fuzzer has a bug: a worker of seed {self.job.seed} ended with {code}")
        stack = self.job.stack.read_text(errors="replace") if self.job.stack.exists() else ""
        case = case or Case.unpacked(self.job.journal.read_bytes())
        return Failure(case=case, reason=_reason(-code, stack, self.job.limits), details=stack)

    def close(self) -> None:
        """End the process and remove what it leaves."""
        if self.process.is_alive():
            self.process.kill()
        self.process.join()
        self.connection.close()
        self.sandbox.remove()
        for path in self._folder.iterdir():
            path.unlink()
        self._folder.rmdir()


def _run(run: Callable[..., None], job: Job, *arguments: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the campaign, which ends its workers
    run(job, *arguments)
    os._exit(0)  # threads that wait for something, as one for GitHub, do not keep the process


def _reason(number: int, stack: str, limits: Limits) -> str:
    where = _innermost(stack)
    if number == signal.SIGPROF:
        return f"hangs: over {limits.seconds:g} seconds{where}"
    if number == signal.SIGALRM:
        return f"hangs: waits over {limits.waiting:g} seconds{where}"
    return f"ended by {signal.Signals(number).name}"


def _innermost(stack: str) -> str:
    """Return the first function of the program in a traceback of faulthandler, which starts at the innermost frame."""
    for line in stack.splitlines():
        _, found, rest = line.partition("/ragcontract/")
        if found and "tests" not in rest:
            path, _, function = rest.partition('"')
            return f" in {path} ({function.rpartition(' in ')[2]})"
    return ""


def replay(case: Case, limits: Limits, targets: Mapping[str, Target] = TARGETS) -> Ended | Failure:
    """Run one case in a process of its own."""
    worker = Isolated(once, case, targets=targets, limits=limits)
    try:
        sent = worker.last()  # before it is waited for: what it sends may be more than a pipe holds
        return worker.cause(case) or sent or Failure(case=case, reason="ended without a word")
    finally:
        worker.close()


def endless(seed: str, targets: Mapping[str, Target], parents: list[Case], limits: Limits) -> Isolated:
    """Start a worker that runs cases until it is closed."""
    return Isolated(work, seed=seed, targets=targets, parents=parents, limits=limits)
