"""What the pages on the action and with recipes have to paste: whole workflows, inputs that exist, a shell's line."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ragcontract.github.delivery import ADVICE
from tests.needs import require
from tests.runner import ROOT

GUIDE = (ROOT / "docs" / "guides" / "github-action.md").read_text()
RECIPES = (ROOT / "docs" / "guides" / "recipes.md").read_text()
REFERENCE = (ROOT / "docs" / "reference" / "action.md").read_text()
INPUTS = yaml.safe_load((ROOT / "action.yml").read_text())["inputs"]


def snippets(page: str, language: str = "yaml") -> list[str]:
    """Return the blocks of a page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def steps_in(value: Any) -> list[dict[str, Any]]:
    """Return all steps of a snippet: a workflow, jobs of one, or the steps alone."""
    if isinstance(value, dict):
        return [value] if {"uses", "run"} & value.keys() else [step for one in value.values() for step in steps_in(one)]
    return [step for one in value for step in steps_in(one)] if isinstance(value, list) else []


def read(snippet: str) -> Any:
    """Read a snippet; of one whose lines between two parts are left out, the parts are read one after the other."""
    parts = re.split(r"^# \.\.\..*\n", snippet, flags=re.MULTILINE)
    return [yaml.safe_load(part) for part in parts]


def schema_of(kind: str, *paths: Path) -> "subprocess.CompletedProcess[str]":
    """Check files against a schema that check-jsonschema brings."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", kind, *map(str, paths)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_whole_workflows_are_ones_for_github(tmp_path: Path) -> None:
    whole = [text for text in snippets(GUIDE) if text.startswith("name: ")]
    jobs = [text for text in snippets(GUIDE) if text.startswith("jobs:")]
    assert (len(whole), len(jobs)) == (2, 1)
    first = whole[0]
    files = [*whole, *(first.partition("jobs:\n")[0] + job for job in jobs)]
    paths = [tmp_path / f"{number}.yml" for number in range(len(files))]
    for path, text in zip(paths, files, strict=True):
        path.write_text(text)
    checked = schema_of("vendor.github-workflows", *paths)
    assert checked.returncode == 0, checked.stdout


def test_the_job_for_gitlab_is_one(tmp_path: Path) -> None:
    [text] = [text for text in snippets(RECIPES) if text.startswith("check:")]
    (tmp_path / "gitlab.yml").write_text("record:\n  script: [make run]\n" + text)
    checked = schema_of("vendor.gitlab-ci", tmp_path / "gitlab.yml")
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize("page", [GUIDE, RECIPES, REFERENCE], ids=["guide", "recipes", "reference"])
def test_every_step_of_the_action_has_inputs_that_exist(page: str) -> None:
    steps = [step for text in snippets(page) for step in steps_in(read(text))]
    assert {key for step in steps if "org/rag-contract" in step.get("uses", "") for key in step.get("with", {})} <= {
        *INPUTS
    }


def test_every_snippet_that_records_installs_before() -> None:
    jobs = [text for page in (GUIDE, RECIPES) for text in snippets(page) if "pip" in text or "uses: " in text]
    recording = [text for text in jobs if "rag-contract record " in text]
    assert len(recording) == 6
    for text in recording:
        before = text.partition("rag-contract record ")[0]
        assert re.search(r"pip\"? install .*git\+https://github\.com/org/rag-contract", before), text


def test_every_recipe_is_on_a_page() -> None:
    names = [path.name for path in (ROOT / "examples" / "recipes").iterdir() if path.is_file()]
    shown = {name for name in names for page in (GUIDE, RECIPES) if f"examples/recipes/{name}" in page}
    assert shown == {*names}


def test_the_message_on_a_token_that_may_not_write_names_a_page_that_helps() -> None:
    [page] = re.findall(r"docs/\S+\.md", ADVICE)
    text = (ROOT / page).read_text()
    assert "## Pull requests from forks" in text
    assert "workflow-comment.yml" in text


@pytest.fixture
def with_command(tmp_path: Path) -> dict[str, str]:
    """Return an environment in which `rag-contract` is this repository's."""
    (tmp_path / "rag-contract").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ragcontract "$@"\n')
    (tmp_path / "rag-contract").chmod(0o755)
    return {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}


def line_for(shell: str) -> str:
    """Return the line with which a shell completes the command."""
    [line] = [text for text in snippets(RECIPES, "sh") if f"{shell}_source" in text]
    return line


def bash(script: str, environ: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    """Run a script in the folder of this repository, which has no contract."""
    command = ["bash", "--norc", "-c", script]
    return subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)


def test_the_line_for_bash_completes_commands_and_options_and_says_nothing_else(with_command: dict[str, str]) -> None:
    require("bash")
    script = f"""{line_for("bash")}
complete() {{
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    _rag_contract_completion rag-contract
    echo "${{COMPREPLY[@]}}"
}}
complete rag-contract sugg
complete rag-contract check --report-h
"""
    done = bash(script, with_command)
    assert (done.stdout.split(), done.stderr) == (["suggest", "--report-html"], "")


@pytest.mark.parametrize(("shell", "defines"), [("zsh", "compdef "), ("fish", "complete --no-files ")])
def test_the_lines_for_other_shells_get_what_defines_the_completion(
    shell: str, defines: str, with_command: dict[str, str]
) -> None:
    require("bash")
    line = line_for(shell).replace("eval ", "echo ").replace("| source", "")
    done = bash(line, with_command)
    assert (done.returncode, done.stderr) == (0, "")
    assert defines in done.stdout
