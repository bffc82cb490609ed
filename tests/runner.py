"""Runs the action as GitHub's runner does: its environment, its files, its rules for reading them back.

:class:`InProcess` calls the action in this process, :class:`InContainer` runs the built image; the scenarios are the
same for both.
"""

import io
import json
import os
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import requests
import yaml

from ragcontract import action
from tests.github.standin import TOKEN, GitHub

ROOT = Path(__file__).parent.parent
IMAGE = "rag-contract:test"
Event = Mapping[str, Any]

PULL_REQUEST: Event = {"action": "synchronize", "number": 7, "pull_request": {"number": 7}}


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What a step leaves behind."""

    exit_code: int
    log: str
    outputs: dict[str, str]
    summary: str


class Runner:
    """A job with a workspace, for one repository of the stand-in."""

    root = ""  # where the folders below stand for the action

    def __init__(self, folder: Path, github: GitHub) -> None:
        self.folder = folder
        self.github = github
        self.workspace = folder / "workspace"
        for name in ("workspace", "home", "workflow", "file_commands", "runner_temp"):
            (folder / name).mkdir(parents=True)

    def run(
        self, inputs: Mapping[str, str] | None = None, *, event: Event | None = PULL_REQUEST, name: str = "pull_request"
    ) -> Result:
        """Run one step, ``uses: ./`` with these inputs, for this event."""
        if event is not None:
            (self.folder / "workflow" / "event.json").write_text(json.dumps(event))
        commands = self.folder / "file_commands"
        for file in (commands / "set_output", commands / "step_summary"):
            if not file.is_dir():  # a scenario's way to make it unwritable, even for root
                file.write_text("")
        exit_code, log = self._execute(self._environ(inputs or {}, name))
        return Result(
            exit_code=exit_code,
            log=log,
            outputs=parse_file_command((commands / "set_output").read_text(encoding="utf-8")),
            summary="" if (commands / "step_summary").is_dir() else (commands / "step_summary").read_text("utf-8"),
        )

    def _environ(self, inputs: Mapping[str, str], event_name: str) -> dict[str, str]:
        home = self.root or str(self.folder)
        return {
            "CI": "true",
            "HOME": f"{home}/home",
            "GITHUB_ACTIONS": "true",
            "GITHUB_API_URL": self.github.url,
            "GITHUB_EVENT_NAME": event_name,
            "GITHUB_EVENT_PATH": f"{home}/workflow/event.json",
            "GITHUB_GRAPHQL_URL": f"{self.github.url}/graphql",
            "GITHUB_OUTPUT": f"{home}/file_commands/set_output",
            "GITHUB_REPOSITORY": "octo/app",
            "GITHUB_STEP_SUMMARY": f"{home}/file_commands/step_summary",
            "GITHUB_WORKSPACE": f"{home}/workspace",
            "RUNNER_TEMP": f"{home}/runner_temp",
            **declared_inputs(inputs),
        }

    def _execute(self, environ: dict[str, str]) -> tuple[int, str]:
        raise NotImplementedError


class InProcess(Runner):
    """The action's code, called with an environment instead of in one."""

    def _execute(self, environ: dict[str, str]) -> tuple[int, str]:
        log = io.StringIO()
        before = Path.cwd()
        os.chdir(self.workspace)
        try:
            code = action.main(
                environ, clock=lambda: datetime(2026, 1, 2, tzinfo=UTC), session=requests.Session, stdout=log
            )
        finally:
            os.chdir(before)
        return code, log.getvalue()


class InContainer(Runner):
    """The image, with the mounts and the working folder that the runner gives a container action."""

    root = "/github"

    def _execute(self, environ: dict[str, str]) -> tuple[int, str]:
        mounts = [
            flag
            for name in ("workspace", "home", "workflow", "file_commands", "runner_temp")
            for flag in ("--volume", f"{self.folder / name}:/github/{name}")
        ]
        variables = [flag for name in environ for flag in ("--env", name)]
        command = ["docker", "run", "--rm", "--network", "host", "--workdir", "/github/workspace", *mounts, *variables]
        done = subprocess.run(
            [*command, IMAGE],
            env={**os.environ, **environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout


def declared_inputs(given: Mapping[str, str]) -> dict[str, str]:
    """Return the ``INPUT_`` variables: every input of action.yml with its default, expressions filled in."""
    declared = yaml.safe_load((ROOT / "action.yml").read_text())["inputs"]
    unknown = set(given) - set(declared)
    assert not unknown, f"action.yml declares no input {unknown}"
    values = {name: str(spec.get("default", "")) for name, spec in declared.items()} | dict(given)
    return {f"INPUT_{name.upper()}": value.replace("${{ github.token }}", TOKEN) for name, value in values.items()}


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
