"""Runs the action as actions/runner does: its environment, its mounts, its rules and limits for reading files back.

:class:`InProcess` calls the action in this process, :class:`InContainer` runs the built image; the scenarios are the
same for both.
"""

import functools
import io
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import requests
import yaml

from ragcontract import action
from ragcontract.github.delivery import World
from ragcontract.net.pacing import Timing
from tests.github.standin import TOKEN, GitHub

ROOT = Path(__file__).parent.parent
TEMPLATES = ROOT / "ragcontract" / "templates"  # the files that `init` writes
IMAGE = "rag-contract:test"
Event = Mapping[str, Any]

SHA = "5ca1ab1e" * 5
PULL_REQUEST: Event = {"action": "synchronize", "number": 7, "pull_request": {"number": 7}}
CONTEXT = {"${{ github.token }}": TOKEN, "${{ strategy.job-index }}": "0"}  # what expressions are where no matrix is
FOLDERS = ("workspace", "home", "workflow", "file_commands", "runner_temp")
MAX_SUMMARY = 1 << 20  # bytes; the runner drops a larger one
MAX_ANNOTATIONS = 10  # of each level


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What a step leaves behind."""

    exit_code: int
    log: str
    outputs: dict[str, str]
    summary: str
    annotations: list["Annotation"]


class Annotation(msgspec.Struct, frozen=True, kw_only=True):
    """What a workflow command shows at the job or at a line."""

    level: str
    message: str
    title: str = ""
    file: str = ""
    line: str = ""


class Runner:
    """A job with a workspace, for one repository of the stand-in."""

    root = ""  # where the folders below stand for the action
    action = ROOT / "action.yml"  # whose inputs are declared

    def __init__(self, folder: Path, github: GitHub) -> None:
        self.folder = folder
        self.github = github
        self.workspace = folder / "workspace"
        for name in FOLDERS:
            (folder / name).mkdir(parents=True)

    def run(
        self,
        inputs: Mapping[str, str] | None = None,
        *,
        event: Event | None = PULL_REQUEST,
        name: str = "pull_request",
        run: int = 100,
        attempt: int = 1,
        environ: Mapping[str, str] | None = None,
    ) -> Result:
        """Run one step, ``uses: ./`` with these inputs, for this event, in the workflow's ``run``."""
        if event is not None:
            (self.folder / "workflow" / "event.json").write_text(json.dumps(event))
        commands = self.folder / "file_commands"
        for file in (commands / "set_output", commands / "step_summary"):
            if not file.is_dir():  # a scenario's way to make it unwritable, even for root
                file.write_text("")
        exit_code, log = self._execute(self._environ(inputs or {}, name, run, attempt) | dict(environ or {}))
        return Result(
            exit_code=exit_code,
            log=log,
            outputs=read_outputs(commands / "set_output"),
            summary=read_summary(commands / "step_summary"),
            annotations=parse_annotations(log),
        )

    def _environ(self, inputs: Mapping[str, str], event_name: str, run: int, attempt: int) -> dict[str, str]:
        home = self.root or str(self.folder)
        return {
            "CI": "true",
            "HOME": f"{home}/home",
            "GITHUB_ACTIONS": "true",
            "GITHUB_API_URL": self.github.url,
            "GITHUB_EVENT_NAME": event_name,
            "GITHUB_EVENT_PATH": f"{home}/workflow/event.json",
            "GITHUB_GRAPHQL_URL": self.github.graphql_url,
            "GITHUB_OUTPUT": f"{home}/file_commands/set_output",
            "GITHUB_REPOSITORY": "octo/app",
            "GITHUB_RUN_ATTEMPT": str(attempt),
            "GITHUB_RUN_ID": str(run),
            "GITHUB_RUN_NUMBER": str(run - 90),
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_SHA": SHA,
            "GITHUB_STEP_SUMMARY": f"{home}/file_commands/step_summary",
            "GITHUB_WORKSPACE": f"{home}/workspace",
            "RUNNER_TEMP": f"{home}/runner_temp",
            "RUNNER_WORKSPACE": "/home/runner/work/app",
            **declared_inputs(inputs, self.action),
        }

    def _execute(self, environ: dict[str, str]) -> tuple[int, str]:
        raise NotImplementedError


class InProcess(Runner):
    """The action's code, called with an environment instead of in one. Waiting takes no time; ``waits`` has it."""

    def __init__(self, folder: Path, github: GitHub) -> None:
        super().__init__(folder, github)
        self.now = datetime(2026, 1, 2, tzinfo=UTC)
        self.clock: Callable[[], datetime] = lambda: self.now
        self.waits: list[float] = []
        started = time.monotonic()
        self.timing = Timing(
            monotonic=lambda: time.monotonic() + sum(self.waits),
            now=lambda: self.now.timestamp() + time.monotonic() - started + sum(self.waits),
            sleep=self.waits.append,
        )

    def _execute(self, environ: dict[str, str]) -> tuple[int, str]:
        log = io.StringIO()
        before = Path.cwd()
        os.chdir(self.workspace)
        try:
            code = action.main(
                environ, World(stdout=log, clock=self.clock, session=requests.Session, timing=self.timing)
            )
        finally:
            os.chdir(before)
        return code, log.getvalue()


class AsProcess(Runner):
    """The action as a process of its own, after ``setup``: statements that take something away from it."""

    def __init__(self, folder: Path, github: GitHub, setup: str = "") -> None:
        super().__init__(folder, github)
        self.setup = setup

    def _execute(self, environ: dict[str, str]) -> tuple[int, str]:
        # All modules are loaded first: what is taken away is the user's, not ours.
        program = (
            "import os, sys, requests, ragcontract.github.http, ragcontract.github.relay, ragcontract.report.junit\n"
            "import codecs, concurrent.futures, encodings.idna, yaml\ncodecs.lookup('us-ascii')\n"
            "from ragcontract.action import from_runner\nfrom ragcontract.guard import guarded\n"
            f"{self.setup}\nsys.exit(guarded(from_runner, sys.stderr))"
        )
        done = subprocess.run(
            [
                sys.executable,
                "-B",
                "-c",
                program,
            ],  # no bytecode: on a full disk it would be half a file, for all to load
            cwd=self.workspace,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout


class InContainer(Runner):
    """The image, with the mounts and the working folder that the runner gives a container action."""

    root = "/github"
    image = IMAGE
    options: tuple[str, ...] = ("--rm",)

    def _execute(self, environ: dict[str, str]) -> tuple[int, str]:
        mounts = [flag for name in FOLDERS for flag in ("--volume", f"{self.folder / name}:/github/{name}")]
        variables = [flag for name in environ for flag in ("--env", name)]
        command = ["docker", "run", *self.options, "--network", "host", "--workdir", "/github/workspace"]
        done = subprocess.run(
            [*command, *mounts, *variables, self.image],
            env={**os.environ, **environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout


def declared_inputs(given: Mapping[str, str], action: Path = Runner.action) -> dict[str, str]:
    """Return the ``INPUT_`` variables: every input of action.yml with its default, expressions filled in."""
    defaults = _defaults(action)
    unknown = set(given) - set(defaults)
    assert not unknown, f"action.yml declares no input {unknown}"
    values = defaults | dict(given)
    return {f"INPUT_{name.upper()}": CONTEXT.get(value, value) for name, value in values.items()}


@functools.cache
def _defaults(action: Path) -> dict[str, str]:
    declared = yaml.safe_load(action.read_text())["inputs"]
    return {name: str(spec.get("default", "")) for name, spec in declared.items()}


def read_outputs(file: Path) -> dict[str, str]:
    """Read the step's outputs; none where a scenario has made a folder of the file, or taken it away."""
    return parse_file_command(file.read_text(encoding="utf-8")) if file.is_file() else {}


def parse_file_command(text: str) -> dict[str, str]:
    """Read an outputs file by the runner's rules: ``name=value``, or ``name<<end`` up to a line that is ``end``."""
    found: dict[str, str] = {}
    lines = iter(text.splitlines())
    for line in lines:
        if "<<" in line and "=" not in line.split("<<")[0]:
            name, end = line.split("<<", 1)
            value = []
            for row in lines:
                if row == end:
                    break
                value.append(row)
            else:
                raise ValueError(f"no line ends {name}")
            found[name] = "\n".join(value)
        elif line:
            name, _, only = line.partition("=")
            found[name] = only
    return found


def read_summary(file: Path) -> str:
    """Read the step's summary; a folder instead is a scenario's, and the runner takes none over 1 MiB."""
    if file.is_dir():
        return ""
    data = file.read_bytes()
    assert len(data) <= MAX_SUMMARY, "the runner drops a summary over 1 MiB"
    return data.decode()


def parse_annotations(log: str) -> list[Annotation]:
    """Read the workflow commands in a log by the runner's rules; any but an annotation's fails."""
    found = []
    for line in log.splitlines():
        assert "##[" not in line, f"an old command in the log: {line}"
        if not line.lstrip().startswith("::"):
            continue
        match = re.fullmatch(r"::(notice|warning|error)(?: ([^:]*))?::(.*)", line)
        assert match, f"a command in the log: {line}"
        pairs = (pair.split("=", 1) for pair in (match[2] or "").split(",") if pair)
        values = {name: _unescape(value) for name, value in pairs}
        found.append(Annotation(level=match[1], message=_unescape(match[3]), **values))
    for level in ("notice", "warning", "error"):
        assert sum(one.level == level for one in found) <= MAX_ANNOTATIONS, f"the runner drops {level}s past ten"
    assert all(len(one.message) <= 4096 for one in found)
    return found


def _unescape(value: str) -> str:
    for written, meant in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        value = value.replace(written, meant)
    return value
