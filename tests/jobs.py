"""Runs the jobs of a workflow as actions/runner does: their shell as it is written, the actions they use as functions.

It knows as much of the syntax as our workflows need, and fails where it meets more.
"""

import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.runner import Runner, read_outputs

KEYS = {"name", "id", "if", "env", "run", "uses", "with", "continue-on-error"}
TAIL = 60  # lines of a failed step's log

Context = Mapping[str, str]
"""What expressions are: `github.ref_name`, `needs.check.outputs.version`."""


class Unknown(Exception):  # noqa: N818 (named for what happened)
    """A workflow has something that is not known here."""


class Done(NamedTuple):
    """How a step ended."""

    exit_code: int
    log: str
    outputs: dict[str, str]


OK = Done(0, "", {})


class Ended(NamedTuple):
    """How a job ended: its outputs, and the first step that failed, with its exit code and the end of its log."""

    failed: str
    outputs: dict[str, str]


Action = Callable[[str, dict[str, str]], Done]
"""An action, which is called with its version, the part after the @, and its inputs."""


def value(expression: str, context: Context) -> str:
    """Return what an expression is: the first of its alternatives that is not empty."""
    names = expression.split(" || ")
    if unknown := [name for name in names if name not in context]:
        raise Unknown(f"${{{{ {expression} }}}}: nobody said what {unknown[0]} is")
    return next((context[name] for name in names if context[name]), "")


def filled(text: object, context: Context) -> str:
    """Return a text with its expressions filled in."""
    written = str(text).lower() if isinstance(text, bool) else str(text)
    return re.sub(r"\$\{\{ *(.+?) *\}\}", lambda match: value(match[1], context), written)


def holds(condition: str, context: Context) -> bool:
    """Say whether a step's condition holds, which compares one value with a text."""
    match = re.fullmatch(r"(\S+) (==|!=) '(.*)'", condition)
    if not match:
        raise Unknown(f"if: {condition}")
    return (value(match[1], context) == match[3]) == (match[2] == "==")


def run(
    job: Mapping[str, Any],
    runner: Runner,
    *,
    context: Context,
    environ: Mapping[str, str],
    actions: Mapping[str, Action],
) -> Ended:
    """Run the steps of a job in the workspace of a runner, up to the first that fails, and those that always run."""
    known, failed = dict(context), ""
    for step in job["steps"]:
        name = step.get("name") or step.get("uses") or step["run"]
        if unknown := set(step) - KEYS:
            raise Unknown(f"step {name!r} has {unknown}")
        condition = step.get("if", "")
        if condition != "always()" and (failed or (condition and not holds(condition, known))):
            continue
        try:
            done = _act(step, known, actions) if "uses" in step else _shell(step, runner, known, environ)
        except Unknown as error:
            raise Unknown(f"step {name!r}: {error}") from None
        if "id" in step:
            known |= {f"steps.{step['id']}.outputs.{key}": text for key, text in done.outputs.items()}
            known[f"steps.{step['id']}.outcome"] = "failure" if done.exit_code else "success"
        if done.exit_code and not step.get("continue-on-error") and not failed:
            failed = "\n".join([f"step {name!r} exits {done.exit_code}", *done.log.splitlines()[-TAIL:]])
    return Ended(failed, {} if failed else {key: filled(text, known) for key, text in job.get("outputs", {}).items()})


def _act(step: Mapping[str, Any], context: Context, actions: Mapping[str, Action]) -> Done:
    name, _, version = step["uses"].partition("@")
    if name not in actions:
        raise Unknown(f"uses: {step['uses']}")
    return actions[name](version, {key: filled(text, context) for key, text in step.get("with", {}).items()})


def _shell(step: Mapping[str, Any], runner: Runner, context: Context, environ: Mapping[str, str]) -> Done:
    output = runner.folder / "file_commands" / "set_output"
    output.write_text("")
    files = {"GITHUB_OUTPUT": str(output), "RUNNER_TEMP": str(runner.folder / "runner_temp")}
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]],
        cwd=runner.workspace,
        env={**environ, **files, **{key: filled(text, context) for key, text in step.get("env", {}).items()}},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return Done(done.returncode, done.stdout, read_outputs(output))


def nothing(_version: str, _inputs: dict[str, str]) -> Done:
    """Stand in for an action whose work is done already."""
    return OK


def artifacts(runner: Runner, kept: Path) -> dict[str, Action]:
    """Return the actions that hand files from one job to another; ``kept`` has a folder for each name."""

    def upload(_: str, inputs: dict[str, str]) -> Done:
        (kept / inputs["name"]).mkdir(parents=True)
        for path in map(runner.workspace.joinpath, inputs["path"].split()):
            if not path.exists():
                return Done(1, f"there is no {path.name}", {})
            if path.is_dir():
                shutil.copytree(path, kept / inputs["name"], dirs_exist_ok=True)
            else:
                shutil.copy(path, kept / inputs["name"])
        return OK

    def download(_: str, inputs: dict[str, str]) -> Done:
        shutil.copytree(kept / inputs["name"], runner.workspace / inputs["path"])
        return OK

    return {"actions/upload-artifact": upload, "actions/download-artifact": download}
