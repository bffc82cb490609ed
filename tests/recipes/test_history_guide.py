"""What the guide to the history has to paste, and the workflow that goes with it."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ragcontract.github.settings import HISTORY_BRANCH
from tests.builders import good_workspace, run, write_jsonl
from tests.history.repository import git, next_second, without_ci
from tests.needs import require
from tests.process import Ended
from tests.recipes.test_ci_recipes import as_a_step
from tests.recipes.test_pages import INPUTS, schema_of, snippets
from tests.runner import ROOT

GUIDE = (ROOT / "docs" / "guides" / "history.md").read_text()
TO_THE_COMMIT = (ROOT / "docs" / "guides" / "find-the-commit.md").read_text()
EXAMPLES = ROOT / "examples"
WORKFLOW = yaml.safe_load((EXAMPLES / "history-workflow.yml").read_text())
CHECK, RECORD = WORKFLOW["jobs"]["rag-contract"], WORKFLOW["jobs"]["record"]

# The workflow


def runs_on(job: dict[str, Any], event: str) -> bool:
    """Return whether a job's condition, a disjunction of events, holds for an event."""
    terms = [re.fullmatch(r"github\.event_name == '(\w+)'", term) for term in job["if"].split(" || ")]
    assert all(terms), job["if"]
    return event in {term[1] for term in terms if term}


@pytest.mark.parametrize(
    ("event", "job"),
    [("pull_request", CHECK), ("merge_group", CHECK), ("push", RECORD), ("schedule", RECORD)],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_event_runs_one_job(event: str, job: dict[str, Any]) -> None:
    assert [runs_on(each, event) for each in (CHECK, RECORD)] == [job is CHECK, job is RECORD]


def test_only_the_job_that_no_pull_request_runs_may_write_contents() -> None:
    assert CHECK["permissions"] == {"contents": "read", "pull-requests": "write"}
    assert RECORD["permissions"] == {"contents": "write"}
    assert WORKFLOW[True].keys() == {"pull_request", "push", "schedule"}  # YAML reads the key `on` as true
    checkouts = [step for job in (CHECK, RECORD) for step in job["steps"] if "checkout" in step.get("uses", "")]
    assert [step["with"] for step in checkouts] == [{"persist-credentials": False}] * 2


def test_no_run_of_main_waits_for_another_or_is_cancelled_by_it() -> None:
    """A group has one run that waits; another one that comes cancels it, whatever cancel-in-progress says."""
    group = WORKFLOW["concurrency"]["group"]
    assert group.endswith("${{ github.event.pull_request.number || github.run_id }}")


def with_inputs(job: dict[str, Any]) -> dict[str, str]:
    """Return the inputs of a job's check."""
    [step] = [step for step in job["steps"] if step.get("uses", "").startswith("org/rag-contract@")]
    assert set(step["with"]) <= set(INPUTS)
    return dict(step["with"])


def test_both_jobs_judge_the_same_contract_as_the_first_workflow() -> None:
    first = yaml.safe_load((EXAMPLES / "workflow.yml").read_text())["jobs"]["rag-contract"]
    with_history = with_inputs(first) | {"history": "branch"}
    assert with_inputs(CHECK) == with_history
    assert with_inputs(RECORD) == with_history | {"comment": "never"}
    for job in (CHECK, RECORD):
        scripts = {line.partition("#")[0].strip() for step in job["steps"] for line in lines_of(step)}
        assert scripts == {line.partition("#")[0].strip() for step in first["steps"] for line in lines_of(step)}
    assert CHECK["steps"][-1] == first["steps"][-1], "what the second workflow reads"


def lines_of(step: dict[str, Any]) -> list[str]:
    return str(step.get("run", "")).splitlines()


# The guide


def test_the_guide_names_the_branch_that_the_action_makes() -> None:
    assert f"creates the branch `{HISTORY_BRANCH}`" in GUIDE
    assert INPUTS["history-branch"]["default"] == HISTORY_BRANCH


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return an environment with a history, in a repository with a contract, where `rag-contract` is this one."""
    require("bash")
    without_ci(monkeypatch)
    command = tmp_path / "bin" / "rag-contract"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ragcontract "$@"\n')
    command.chmod(0o755)
    folder = tmp_path / "app"
    folder.mkdir()
    monkeypatch.chdir(good_workspace(folder))
    Path(".gitignore").write_text("current_run.jsonl\nreport.*\njunit.xml\n")
    git("init", "-q", "-b", "main")
    commit("first")
    monkeypatch.setenv("PATH", f"{command.parent}:/usr/bin:/bin")
    return {"PYTHONPATH": str(ROOT), "RAG_CONTRACT_HISTORY": str(tmp_path / "history")}


def commit(message: str) -> str:
    git("add", "--all")
    git("commit", "-q", "--allow-empty", "-m", message)
    return git("rev-parse", "HEAD")


def block(start: str, language: str = "sh", guide: str = GUIDE) -> str:
    """Return the only block of a guide that has this text."""
    [text] = [text for text in snippets(guide, language) if start in text]
    return text


def shell(script: str, environ: dict[str, str]) -> Ended:
    return as_a_step(script, Path.cwd(), **environ)


def recorded(environ: dict[str, str], second: str = "doc2") -> str:
    """Commit, check and record a run, and return its commit."""
    next_second()
    sha = commit("another")
    write_jsonl(Path("current_run.jsonl"), [run("q1", "doc1"), run("q2", second)])
    lines = block("rag-contract history add").replace("/srv/rag-history", environ["RAG_CONTRACT_HISTORY"])
    ended = shell(lines.replace("--name docs\n", "--name docs --baseline history:last-pass || true\n"), environ)
    assert re.search(f"^recorded entries/docs/.*-{sha[:12]}-", ended.out, re.MULTILINE)
    return sha


def test_what_the_guide_says_of_a_query_is_what_is_printed(environ: dict[str, str]) -> None:
    broke = recorded(environ, second="doc9")
    held = recorded(environ)
    printed = shell(block("show --query", guide=TO_THE_COMMIT).replace("idle-timeout", "q2"), environ)
    shown = block("idle-timeout holds", "text", TO_THE_COMMIT)
    rows = [re.split(r"  +", line.strip()) for line in printed.out.splitlines()]
    assert [row[1:] for row in rows[:3]] == [
        ["commit", "status", "ranks"],
        [held[:7], "pass", "doc2 1"],
        [broke[:7], "broken", "doc2 missing"],
    ]
    assert rows[0] == re.split(r"  +", shown.splitlines()[0])
    sentence = r"{} holds since {} \([\d-]+\); it was last broken at {} \([\d-]+\)\."
    assert re.fullmatch(sentence.format("q2", held[:7], broke[:7]), printed.out.splitlines()[-1])
    assert re.fullmatch(sentence.format("idle-timeout", "8361ca8", "cef4350"), shown.splitlines()[-1])


def test_what_the_guide_quotes_of_a_report_is_what_a_report_says(environ: dict[str, str]) -> None:
    held = recorded(environ)
    broke = recorded(environ, second="doc9")
    recorded(environ, second="doc9")
    [compared] = re.findall(r"^> (.*)$", GUIDE, re.MULTILINE)
    trend, since = re.findall(r"^> (.*)$", TO_THE_COMMIT, re.MULTILINE)
    assert compared == (
        "Compared with `main@abc1234`, 2 days old; 3 newer commits of `main` were not recorded or did not pass"
    )
    assert since == "`phi-allowed` (broken since `95ad799` on `main`)"
    report = Path("report.md").read_text()
    line = r"MRR@5 on `main`, last \d+ runs: [▁-█]+ \d\.\d+ → \d\.\d+; this run \d\.\d+"
    assert re.fullmatch(line + r", the lowest since [\d-]+", trend)
    after = "recorded today; 1 newer commit of `main` was not recorded or did not pass"
    assert f"Compared with `main@{held[:7]}`, {after}" in report
    assert f"`q2` (broken since `{broke[:7]}` on `main`)" in report


def test_the_job_for_gitlab_records_main_and_no_merge_request(environ: dict[str, str], tmp_path: Path) -> None:
    text = block("after_script", "yaml")
    (tmp_path / "gitlab.yml").write_text(text)
    checked = schema_of("vendor.gitlab-ci", tmp_path / "gitlab.yml")
    assert checked.returncode == 0, checked.stdout
    [after] = yaml.safe_load(text)["contract"]["after_script"]
    assert shell("rag-contract check --quiet", environ).code == 0
    merge_request = environ | {"CI_DEFAULT_BRANCH": "main", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main"}
    assert shell(after, merge_request) == (0, "", "")
    main = shell(after, merge_request | {"CI_COMMIT_BRANCH": "main"})
    assert main.out.startswith("recorded entries/_default/")


def test_the_two_commands_of_git_leave_the_branch_with_one_commit_and_the_same_files(
    environ: dict[str, str], tmp_path: Path
) -> None:
    recorded(environ)
    origin, history = tmp_path / "origin.git", Path(environ["RAG_CONTRACT_HISTORY"])
    git("init", "-q", "--bare", str(origin))
    git("remote", "add", "origin", str(origin))
    git("-C", str(history), "init", "-q", "-b", HISTORY_BRANCH)
    for number in range(3):
        (history / f"{number}").touch()
        git("-C", str(history), "add", "--all")
        git("-C", str(history), "commit", "-q", "-m", f"{number}")
    git("-C", str(history), "push", "-q", str(origin), HISTORY_BRANCH)
    tree = git("-C", str(history), "rev-parse", "HEAD^{tree}")
    who = {f"GIT_{role}_{what}": "x@example.com" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    fetch, push = block("commit-tree").split("\n", 1)
    assert shell(f"{fetch}\n{push}", environ | who).code == 0
    assert git("-C", str(origin), "rev-list", "--count", HISTORY_BRANCH) == "1"
    assert git("-C", str(origin), "rev-parse", f"{HISTORY_BRANCH}^{{tree}}") == tree
    git("-C", str(history), "fetch", "-q", str(origin), HISTORY_BRANCH)
    git("-C", str(history), "reset", "-q", "--hard", "FETCH_HEAD")
    git("-C", str(history), "commit", "-q", "--allow-empty", "-m", "recorded meanwhile")
    assert shell(fetch, environ).code == 0
    git("-C", str(history), "push", "-q", str(origin), HISTORY_BRANCH)
    assert "stale info" in shell(push, environ | who).err


MESSAGES = [
    "record the base branch first",
    "did not pass",
    "its result set was deleted",
    "This run could not be recorded: ",
    "this run has already recorded another check of this contract",
]


@pytest.mark.parametrize("message", MESSAGES)
def test_the_messages_that_troubleshooting_explains_are_those_of_the_program(message: str) -> None:
    page = (ROOT / "docs" / "guides" / "troubleshooting.md").read_text()
    assert message in page.partition("## The history has no baseline")[2]
    assert any(message in path.read_text() for path in (ROOT / "ragcontract" / "history").glob("*.py"))


def test_the_steps_before_a_release_are_a_job_for_github(tmp_path: Path) -> None:
    job = block("history gate", "yaml")
    (tmp_path / "release.yml").write_text(f"on: push\njobs:\n  release:\n    runs-on: ubuntu-latest\n{job}")
    checked = schema_of("vendor.github-workflows", tmp_path / "release.yml")
    assert checked.returncode == 0, checked.stdout


def test_the_workflow_is_one_that_github_and_zizmor_accept_with_the_history_as_baseline(tmp_path: Path) -> None:
    text = (EXAMPLES / "history-workflow.yml").read_text()
    assert text.count("baseline: rag/baseline.json") == 2
    (tmp_path / "workflow.yml").write_text(text.replace("baseline: rag/baseline.json", "baseline: history:last-pass"))
    zizmor = [str(Path(sys.executable).parent / "zizmor"), "--pedantic", "--offline", "--quiet"]
    config = ["--config", str(EXAMPLES / "zizmor.yml")]
    done = subprocess.run([*zizmor, *config, str(tmp_path / "workflow.yml")], capture_output=True, check=False)
    assert done.returncode == 0, done.stdout
    checked = schema_of("vendor.github-workflows", tmp_path / "workflow.yml")
    assert checked.returncode == 0, checked.stdout
