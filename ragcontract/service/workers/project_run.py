"""Makes a run of a mounted project: its own ``record`` and ``check`` as processes, and what they made of it.

Each run has a folder of its own. A second attempt goes on there: it has the same contract, also if the mounted one has
changed since, and asks no question that the journal of the first one has.
"""

import os
import re
import subprocess
import sys
import threading
import uuid
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import chdir, suppress
from pathlib import Path
from shutil import rmtree

from ragcontract.contract.defaults import BASELINE, CONFIG, GOLDEN, RUN
from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.numbers import mebibytes
from ragcontract.core.safe_text import shorten
from ragcontract.history.choose_baseline import LAST_PASS, document_of
from ragcontract.history.entry import NewEntry, folder_of
from ragcontract.history.entry_of_report import entry_of_report
from ragcontract.history.folder import Folder
from ragcontract.net.secrets import Redaction
from ragcontract.report.json_report import read
from ragcontract.report.record import Report
from ragcontract.service.accounts import Principal
from ragcontract.service.database import Database, seconds
from ragcontract.service.database_store import DatabaseStore
from ragcontract.service.mounted import RECORD, MountedProject, content_of
from ragcontract.service.project_environment import project_environ, secrets_of
from ragcontract.service.redaction import redactor
from ragcontract.service.run_diff import last_pass, recorded_entry
from ragcontract.service.workers import run_guard
from ragcontract.service.workers.run_queue import Claim

REPORT, HISTORY = "report.json", "history"
# With their limits. The last one shows that all are there.
COPIED = ((BASELINE, bounds.BLOB), (CONFIG, bounds.CONFIG), (GOLDEN, bounds.SERVICE_CONTRACT))
CHECKED = {RUN, *dict(COPIED)}  # what a report may name
LOOK = 0.2  # s; how often a worker looks at a process and at whether to stop it
PART = 1 << 16  # bytes that are read of a pipe at once
SLACK = 1 << 12  # bytes of output that are kept so that no secret is cut off before it is redacted
CANNOT_STOP = 10  # s; further ones, after which a guard itself is killed
PROBLEM = re.compile(r"(?m)^error: (.*)$")
HAS_VERDICT = (0, 1)  # exit codes of check


class RunFailedError(Exception):
    """A run has no verdict. The message says why, for the page of the run."""


class StoppedError(Exception):
    """The worker was asked to stop the run."""


class RunLog:
    """The last lines of what the processes of a run print; threads may read it meanwhile.

    They are without secrets, and without what the project wants ``redacted``. The attempts ``before`` have printed the
    first ones.
    """

    def __init__(self, secrets: Sequence[str], redacted: tuple[str, ...], folder: Path, before: str = "") -> None:
        self._before = f"{before.rstrip()}\n" if before else ""
        self._redaction, self._redactor, self._folder = Redaction(*secrets), redactor(redacted), f"{folder}{os.sep}"
        self._parts: deque[bytes] = deque()
        self._size = 0
        self._changing = threading.Lock()

    def add(self, part: bytes) -> None:
        """Add output; what was printed long before is forgotten."""
        with self._changing:
            self._parts.append(part)
            self._size += len(part)
            while self._size - len(self._parts[0]) > bounds.RUN_LOG + SLACK:
                self._size -= len(self._parts.popleft())

    def redacted(self, text: str) -> str:
        """Return a text without what readers may not see."""
        return self._redactor.text(self._redaction.text(text)).replace(self._folder, "")

    def text(self) -> str:
        """Return the last lines. The run's folder is not named: it is of no use to readers."""
        text = self._before + self._printed()
        kept = text.encode()[-bounds.RUN_LOG :].decode(errors="ignore")
        return kept if len(kept) == len(text) else kept.partition("\n")[2] or kept

    def _printed(self) -> str:
        with self._changing:
            data = b"".join(self._parts)
        return self.redacted(data.decode(errors="replace"))

    def problems(self) -> str:
        """Return what a command that failed printed about it: its problems, else its last lines."""
        text = self._printed()
        problems = PROBLEM.findall(text)[: bounds.PROBLEMS]
        return "\n".join(problems or text.splitlines()[-bounds.RUN_LAST_LINES :])


class ProjectRun:
    """A run of a project, in its folder. ``stopped`` says whether the worker was asked to stop it."""

    def __init__(
        self,
        project: MountedProject,
        claim: Claim,
        folder: Path,
        environ: Mapping[str, str],
        stopped: Callable[[], bool],
    ) -> None:
        self.folder = folder
        self._project, self._claim, self._stopped = project, claim, stopped
        secrets = secrets_of(project.file, environ)
        self.log = RunLog([*secrets.values()], project.file.redact, folder, claim.log or "")
        self._environ = project_environ(project.file, environ) | {"PYTHONUNBUFFERED": "1", "NO_COLOR": "1"}
        self._until = seconds() + project.file.timeout

    @property
    def name(self) -> str:
        """The name of the contract: the project's if its entries are in the project's folder by it, else the slug."""
        named, slug = self._project.file.name, self._project.slug
        return named if named and folder_of(named) == slug else slug

    def prepare(self, database: Database) -> None:
        """Copy the contract into the run's folder, unless an earlier attempt has; raises :class:`RunFailedError`."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if (self.folder / GOLDEN).exists():
            return
        try:
            has_record = content_of(self._project.folder, RECORD, bounds.CONFIG) is not None
            contents = {name: content_of(self._project.folder, name, limit) for name, limit in COPIED}
        except InputError as error:
            raise RunFailedError(error.problems[0]) from error
        if not has_record:
            raise RunFailedError(f"{RECORD}: no such file; it says how the system is asked")
        if contents[GOLDEN] is None:
            raise RunFailedError(f"{GOLDEN}: no such file; it has the questions")
        if contents[BASELINE] is None:
            contents[BASELINE] = _last_pass(database, self._claim.project_id)
        (self.folder / HISTORY).mkdir(exist_ok=True)
        for name, content in contents.items():
            if content is not None:
                part = self.folder / f".{name}"
                part.write_bytes(content)
                part.replace(self.folder / name)

    def record(self) -> None:
        """Ask the system all questions, unless an earlier attempt has; raises :class:`RunFailedError`."""
        if (self.folder / RUN).exists():
            return
        files = ["--golden", f"{self.folder / GOLDEN}", "--out", f"{self.folder / RUN}"]
        if (self.folder / CONFIG).exists():
            files += ["--config", f"{self.folder / CONFIG}"]
        secrets = [part for name in self._project.file.secrets for part in ("--secret", name)]
        code = self._rag_contract("record", RECORD, *files, *secrets, folder=self._project.folder)
        if code != 0:
            raise RunFailedError(self._failure("record", code))

    def check(self) -> NewEntry:
        """Check what was recorded, and return its entry; raises :class:`RunFailedError` if there is no verdict."""
        files = ["--golden", GOLDEN, "--run", RUN]
        if (self.folder / CONFIG).exists():
            files += ["--config", CONFIG]
        # Limits on changes are left out while no run has passed, as for the last pass of an empty history.
        has_baseline = (self.folder / BASELINE).exists()
        none_yet = ["--history", HISTORY, "--baseline", f"history:{LAST_PASS}"]
        files += ["--baseline", BASELINE] if has_baseline else none_yet
        more = ["--name", self.name, "--report-json", REPORT, "--report-json-detail", "all"]
        code = self._rag_contract("check", *files, *more, folder=self.folder)
        if code not in HAS_VERDICT:
            raise RunFailedError(self._failure("check", code))
        return self._made()

    def delete(self) -> None:
        """Delete the folder of the run, which is over."""
        rmtree(self.folder, ignore_errors=True)
        lock_of(self.folder).unlink(missing_ok=True)

    def _made(self) -> NewEntry:
        environ = {"CI_PIPELINE_SOURCE": self._claim.event}
        with chdir(self.folder):
            try:
                keep_checked()
                if isinstance(report := read(Path(REPORT)), Report):
                    _refuse_others(report)
                    if report.contract != self.name:
                        raise RunFailedError(f"{REPORT}: is of another contract than the project's")
                return entry_of_report(
                    Path(REPORT), Folder(HISTORY), environ, branch=self._claim.branch, for_service=True
                )
            except (InputError, OSError) as error:
                raise RunFailedError(self.log.redacted(str(error))) from error

    def _rag_contract(self, *arguments: str, folder: Path) -> int:
        """Run a command of the project's rag-contract; return its exit code.

        Raises :class:`StoppedError` if the worker was asked to stop, :class:`RunFailedError` if it takes too long.
        """
        python = self._project.file.python or sys.executable
        mark = str(uuid.uuid5(uuid.NAMESPACE_URL, self.folder.as_uri()))
        guard = [sys.executable, "-I", run_guard.__file__, f"{lock_of(self.folder)}", mark, f"{bounds.RUN_GRACE}"]
        process = subprocess.Popen(  # noqa: S603 (no shell; what the operator mounted)
            [*guard, python, "-m", "ragcontract", *arguments],
            cwd=folder,
            env=self._environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # a signal for the worker's group is for the worker
        )
        reading = threading.Thread(target=self._read, args=(process,), name="output", daemon=True)
        reading.start()
        try:
            while process.poll() is None:
                if self._stopped():
                    raise StoppedError
                if seconds() > self._until:
                    raise RunFailedError(self._took_too_long())
                with suppress(subprocess.TimeoutExpired):
                    process.wait(LOOK)
            return process.returncode
        finally:
            _end(process, reading)

    def _read(self, process: "subprocess.Popen[bytes]") -> None:
        if process.stdout is not None:
            with process.stdout as stream:
                while part := os.read(stream.fileno(), PART):
                    self.log.add(part)

    def _took_too_long(self) -> str:
        problem = f"it took longer than {self._project.file.timeout:,} s, the timeout in project.yml, and was ended"
        return f"{problem}; its last lines: {last}" if (last := self.log.problems()) else problem

    def _failure(self, command: str, code: int) -> str:
        if code > run_guard.KILLED:
            ended = f"{command} was ended by the signal {code - run_guard.KILLED}, as when memory runs out"
        else:
            ended = f"{command} ended with the exit code {code}"
        return self.log.problems() or f"{ended} and printed nothing"


def lock_of(folder: Path) -> Path:
    """Return the file that is locked while a process of a run is at work."""
    return folder.with_name(f"{folder.name}.lock")


def keep_checked() -> None:
    """Delete what is not of a check from the current folder, in which a project's code may have put anything.

    So git, which runs programs that a repository names, finds none. Raises :class:`RunFailedError` if a file of the
    check is none that can be read.
    """
    limits = dict(COPIED) | {RUN: bounds.RUN_RECORDED, REPORT: bounds.REPORT}
    with os.scandir() as items:
        for item in items:
            if item.name in limits:
                _refuse_unreadable(item, limits[item.name])
            elif item.is_dir(follow_symlinks=False):
                rmtree(item.name)
            else:
                Path(item.name).unlink()


def _refuse_unreadable(item: "os.DirEntry[str]", most: int) -> None:
    if not item.is_file(follow_symlinks=False):
        raise RunFailedError(f"{item.name}: is a link, or no regular file, which is not read")
    if item.stat(follow_symlinks=False).st_size > most:
        raise RunFailedError(f"{item.name}: is larger than {mebibytes(most)}")


def _refuse_others(report: Report) -> None:
    """Raise :class:`RunFailedError` if a report names files that are none of its run."""
    inputs = report.inputs
    parts = inputs.golden, inputs.run, inputs.baseline, inputs.config, inputs.scores, inputs.judgments
    named = {file.path for part in parts if part for file in part.files}
    if inputs.judgments is not None:
        named.add(inputs.judgments.calibration or "")
    if others := named - CHECKED:
        raise RunFailedError(f"{REPORT}: names {shorten(min(others), bounds.NAME)!r}, which is no file of the run")


def _end(process: "subprocess.Popen[bytes]", reading: threading.Thread) -> None:
    """Have a guard end its program, and wait for it."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(bounds.RUN_GRACE + CANNOT_STOP)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    reading.join(CANNOT_STOP)


def _last_pass(database: Database, project_id: int) -> bytes | None:
    """Return the newest run of the project's branch that passed, as a baseline; None if there is none."""
    with database.read() as connection:
        entry = recorded_entry(last_pass(connection, project_id))
    if entry is None:
        return None
    try:
        return document_of(DatabaseStore(database, Principal(actor="worker", project_id=project_id)), entry)
    except InputError as error:
        raise RunFailedError(f"the baseline: {error.problems[0]}") from error
