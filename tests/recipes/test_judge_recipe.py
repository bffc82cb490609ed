"""The workflow that records, judges and checks: its own steps, with a stand-in for the model and for GitHub."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.builders import write_jsonl
from tests.github.standin import GitHub
from tests.judge_server import JudgeServer
from tests.judgment_files import CONTEXT, FALSE, TRUE, judged_workspace
from tests.needs import require
from tests.process import Ended, spawn
from tests.runner import ROOT, InProcess, Result

WORKFLOW = yaml.safe_load((ROOT / "examples" / "recipes" / "judge-workflow.yml").read_text())
JOBS: dict[str, Any] = WORKFLOW["jobs"]
LIMIT = "minimums: {context_recall: 0.7}\n"


def steps(job: str, what: str) -> list[dict[str, Any]]:
    return [step for step in JOBS[job]["steps"] if what in step.get("uses", step.get("run", ""))]


@pytest.fixture(name="server")
def one_server() -> Iterator[JudgeServer]:
    with JudgeServer() as server:
        yield server


@pytest.fixture
def runner(tmp_path: Path, github: GitHub) -> InProcess:
    made = InProcess(tmp_path / "job", github)
    (made.workspace / "base").mkdir()
    judged_workspace(made.workspace, LIMIT, [TRUE], [TRUE])
    return made


def environ_of(runner: InProcess, server: JudgeServer) -> dict[str, str]:
    state = str(runner.folder / "state")
    return {"RAG_CONTRACT_JUDGE_URL": server.openai, "RAG_CONTRACT_JUDGE_KEY": "", "XDG_STATE_HOME": state}


def judge(runner: InProcess, server: JudgeServer) -> Ended:
    """Run the steps of the job with the key but for the installation."""
    require("bash")
    environ = environ_of(runner, server)
    for step in JOBS["judge"]["steps"]:
        if "pip install" in step.get("run", "pip install"):
            continue
        command, _, argv = step["run"].partition("rag-contract ")
        if argv:
            ended = spawn(*argv.split(), cwd=runner.workspace, environ=environ)
        else:
            ended = spawn("-e", "-c", command, cwd=runner.workspace, environ=environ, command=("bash",))
            assert ended.code == 0, ended
    return ended


def calibrate(runner: InProcess, server: JudgeServer) -> None:
    """Leave a calibration of the workflow's judge on the base branch."""
    about = [(at, text) for at in range(30) for text in (TRUE, FALSE)]
    task = {"task": "attribution", "question": "?"}
    labels = [{**task, "contexts": [f"{CONTEXT} {at}"], "text": text, "label": text == TRUE} for at, text in about]
    write_jsonl(runner.workspace / "labels.jsonl", labels)
    argv = ("judge", "calibrate", "--once", "--model", "gpt-4o-mini", "--out", "base/judge-calibration.json")
    ended = spawn(*argv, cwd=runner.workspace, environ=environ_of(runner, server))
    assert ended.code == 0, ended


def check(runner: InProcess, judged: str) -> Result:
    """Run the action with the inputs of the workflow, after a job ``judge`` with this result."""
    (step,) = steps("check", "org/rag-contract")
    found = re.fullmatch(
        r"\$\{\{ needs\.judge\.result == 'skipped' && '(.*)' \|\| '(.*)' \}\}", step["with"]["judgments"]
    )
    assert found
    runner.now = datetime.now(UTC)
    return runner.run({**step["with"], "judgments": found[1] if judged == "skipped" else found[2]})


def test_a_trusted_pull_request_is_judged_on_what_it_retrieves_now(
    runner: InProcess, server: JudgeServer, github: GitHub
) -> None:
    calibrate(runner, server)
    assert judge(runner, server).code == 0
    result = check(runner, "success")
    assert result.exit_code == 0, result.log
    judged_workspace(runner.workspace, LIMIT, [TRUE], [FALSE])
    (runner.workspace / "judged" / "judgments.jsonl").unlink()
    (runner.workspace / "judged").rmdir()
    assert judge(runner, server).code == 0
    result = check(runner, "success")
    assert result.exit_code == 1
    assert "Context recall (judged) is 0.50" in result.log
    assert "edits stored judgments" not in github.bodies()[-1]


def test_a_fork_takes_judgments_from_the_base_branch_and_new_texts_are_never_a_pass(
    runner: InProcess, server: JudgeServer
) -> None:
    calibrate(runner, server)
    assert judge(runner, server).code == 0
    (runner.workspace / "judged" / "judgments.jsonl").rename(runner.workspace / "base" / "judgments.jsonl")
    asked = len(server.came)
    assert check(runner, "skipped").exit_code == 0
    judged_workspace(runner.workspace, LIMIT, [TRUE], [TRUE], contexts=[CONTEXT, "New."])
    (runner.workspace / "judgments.jsonl").write_text("a forged line, which nothing reads\n")
    result = check(runner, "skipped")
    assert result.exit_code == 2
    assert "retrieved texts have changed since, or k has" in result.log
    assert "; run `rag-contract judge` again" in result.log
    assert len(server.came) == asked


def test_what_the_base_branch_has_judgments_on_is_not_asked_again(runner: InProcess, server: JudgeServer) -> None:
    assert judge(runner, server).code == 0
    folder = runner.workspace
    (folder / "judged" / "judgments.jsonl").rename(folder / "base" / "judgments.jsonl")
    (folder / "judged").rmdir()
    asked = len(server.came)
    assert judge(runner, server).code == 0
    assert len(server.came) == asked


def test_judgments_that_the_pull_request_committed_are_never_uploaded(runner: InProcess, server: JudgeServer) -> None:
    (runner.workspace / "judged").mkdir()
    (runner.workspace / "judged" / "judgments.jsonl").write_text("a forged line, which nothing reads\n")
    assert judge(runner, server).code == 0
    assert "forged" not in (runner.workspace / "judged" / "judgments.jsonl").read_text()
    checkout, emptying, *_ = JOBS["judge"]["steps"]  # a step that fails in between would leave them to be uploaded
    assert ("actions/checkout" in checkout["uses"], "rm -rf judged" in emptying["run"]) == (True, True)


def test_the_key_is_where_no_code_of_a_pull_request_runs() -> None:
    keyed = [name for name, job in JOBS.items() if "secrets." in json.dumps(job)]
    assert keyed == ["judge"]
    scripts = [step["run"] for step in JOBS["judge"]["steps"] if "run" in step]
    assert not any("requirements" in script or "record" in script for script in scripts)
    assert "head.repo.full_name == github.repository" in JOBS["judge"]["if"]
    assert "pull_request_target" not in WORKFLOW[True]  # YAML reads the key `on` as true
    assert all(step["with"]["persist-credentials"] is False for job in JOBS for step in steps(job, "actions/checkout"))
