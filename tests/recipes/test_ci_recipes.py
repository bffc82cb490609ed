"""The recipes for CI: their own shell, in real repositories, what git ignores, and how their parts fit together."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.builders import good_workspace
from tests.needs import require
from tests.process import Ended, rag_contract, shell
from tests.runner import ROOT

RECIPES = ROOT / "examples" / "recipes"
GITLAB = yaml.safe_load((RECIPES / "gitlab-ci.yml").read_text())["retrieval-contract"]
MONOREPO = yaml.safe_load((RECIPES / "monorepo-workflow.yml").read_text())
MONOREPO_COMMENT = yaml.safe_load((RECIPES / "monorepo-comment-workflow.yml").read_text())
INDEX = yaml.safe_load((RECIPES / "index-workflow.yml").read_text())
JOBS = MONOREPO["jobs"]


def step_of(job: dict[str, Any], what: str) -> dict[str, Any]:
    """Return the only step of a job that uses or runs this."""
    [step] = [step for step in job["steps"] if what in step.get("uses", step.get("run", ""))]
    return step  # type: ignore[no-any-return]


def git(folder: Path, *argv: str) -> str:
    """Run git as somebody who has no settings, and return what it prints."""
    name = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main")
    return subprocess.run(["git", *name, *argv], cwd=folder, check=True, capture_output=True, text=True).stdout


def commit(folder: Path, name: str) -> None:
    """Change a file and commit it."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write("changed\n")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", name)


def as_a_step(script: str, folder: Path, **environ: str) -> Ended:
    """Run a step's script as a runner does."""
    require("bash")
    command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", script]
    done = subprocess.run(
        command, cwd=folder, env={"PATH": os.environ["PATH"], **environ}, capture_output=True, text=True, check=False
    )
    return Ended(done.returncode, done.stdout, done.stderr)


# A monorepo


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Return a repository with two contracts, in which main went on after a branch had been made."""
    root = tmp_path / "clone"
    root.mkdir()
    git(root, "init", "--quiet")
    for name in ("docs/golden.jsonl", "support/golden.jsonl", "shared/chunks.py", "README.md"):
        commit(root, name)
    git(root, "checkout", "--quiet", "-b", "change")
    git(root, "checkout", "--quiet", "main")
    commit(root, "support/golden.jsonl")
    return root


def affected(clone: Path, event: str, *changed: str) -> str:
    """Return the contracts that the workflow finds for a pull request that changes these files."""
    git(clone, "checkout", "--quiet", "change")
    for name in changed:
        commit(clone, name)
    git(clone, "checkout", "--quiet", "main")  # the merge that GitHub makes of a pull request, in a shallow clone
    git(clone, "merge", "--quiet", "--no-ff", "--no-edit", "change")
    shallow = clone.with_name("shallow")
    git(clone.parent, "clone", "--quiet", "--depth", "2", f"file://{clone}", str(shallow))
    [step] = [step for step in JOBS["affected"]["steps"] if "run" in step]
    assert JOBS["affected"]["steps"][0]["with"]["fetch-depth"] == 2
    output = clone.with_name("output")
    ended = as_a_step(step["run"], shallow, EVENT=event, GITHUB_OUTPUT=str(output))
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == output.read_text()
    return output.read_text()


@pytest.mark.parametrize(
    ("event", "changed", "expected"),
    [
        ("pull_request", ["docs/corpus/a.md"], '["docs"]'),
        ("pull_request", ["support/ragcontract.yml"], '["support"]'),
        ("pull_request", ["shared/chunks.py"], '["docs","support"]'),
        ("pull_request", [".github/workflows/retrieval.yml"], '["docs","support"]'),
        ("pull_request", ["README.md", "docs-of-others/a.md"], "[]"),
        ("merge_group", ["README.md"], '["docs","support"]'),
        ("schedule", ["README.md"], '["docs","support"]'),
    ],
)
def test_a_change_is_judged_by_the_contracts_whose_files_it_touches(
    event: str, changed: list[str], expected: str, clone: Path
) -> None:
    assert affected(clone, event, *changed) == f"contracts={expected}\n"


def test_what_git_cannot_compare_counts_as_a_change(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    commit(tmp_path, "README.md")
    [step] = [step for step in JOBS["affected"]["steps"] if "run" in step]
    ended = as_a_step(step["run"], tmp_path, EVENT="pull_request", GITHUB_OUTPUT=str(tmp_path / "output"))
    assert (ended.code, ended.out) == (0, 'contracts=["docs","support"]\n')


@pytest.mark.parametrize(
    ("of_affected", "of_contracts", "code"),
    [
        ("success", "success", 0),
        ("success", "skipped", 0),
        ("success", "failure", 1),
        ("success", "cancelled", 1),
        ("failure", "skipped", 1),
        ("cancelled", "skipped", 1),
        ("skipped", "skipped", 1),
    ],
)
def test_the_required_check_always_reports_and_passes_only_where_nothing_broke(
    of_affected: str, of_contracts: str, code: int, tmp_path: Path
) -> None:
    job = JOBS["contracts"]
    assert job["if"] == "always()"
    assert job["needs"] == ["affected", "contract"], "the order of the results"
    [step] = job["steps"]
    assert as_a_step(step["run"], tmp_path, RESULTS=f"{of_affected} {of_contracts}").code == code


def test_the_monorepo_runs_on_every_pull_request_in_the_merge_queue_and_nightly() -> None:
    triggers = MONOREPO[True]  # YAML 1.1 reads `on` so
    assert set(triggers) == {"pull_request", "merge_group", "schedule"}
    assert triggers["pull_request"] is None, "with `paths`, a required check would wait forever"


def test_contracts_of_a_monorepo_neither_stop_each_other_nor_share_a_comment() -> None:
    assert MONOREPO["concurrency"]["group"] == "${{ github.workflow }}-${{ github.ref }}"
    assert JOBS["contract"]["strategy"]["fail-fast"] is False
    assert JOBS["contract"]["defaults"]["run"]["working-directory"] == "${{ matrix.contract }}"
    inputs = step_of(JOBS["contract"], "org/rag-contract@")["with"]
    assert inputs == {"working-directory": "${{ matrix.contract }}", "name": "${{ matrix.contract }}"}
    assert set(inputs) <= set(yaml.safe_load((ROOT / "action.yml").read_text())["inputs"])


def test_the_second_workflow_of_a_monorepo_posts_what_each_contract_of_the_first_one_uploads() -> None:
    assert MONOREPO_COMMENT[True]["workflow_run"]["workflows"] == [MONOREPO["name"]]
    job = MONOREPO_COMMENT["jobs"]["comment"]
    listed = re.search(r"for contract in (.*); do", step_of(JOBS["affected"], "git diff")["run"])
    assert listed
    assert job["strategy"]["matrix"]["contract"] == listed[1].split()
    upload, download = step_of(JOBS["contract"], "upload-artifact"), step_of(job, "download-artifact")
    assert upload["with"] == {
        "name": download["with"]["name"],
        "path": "${{ matrix.contract }}/report.json",  # of one file, an artifact has no folders
    }
    assert "${{ matrix.contract }}" in upload["with"]["name"]
    posted, checked = (step_of(one, "org/rag-contract@")["with"] for one in (job, JOBS["contract"]))
    assert posted == {
        "mode": "post-comment",
        "report-json": f"{download['with']['path']}/report.json",
        "name": checked["name"],
    }
    runs = [step.get("run", "") for step in JOBS["contract"]["steps"]]
    assert runs.index(next(run for run in runs if "rm -f report.json" in run)) == 1, "before anything can fail"


# An index that is cached


def test_the_cached_index_is_of_these_documents_and_settings_only() -> None:
    job = INDEX["jobs"]["contract"]
    restore, save = step_of(job, "cache/restore"), step_of(job, "cache/save")
    assert "restore-keys" not in restore["with"]
    assert restore["with"]["path"] == save["with"]["path"] == "index"
    hashed = re.findall(r"'(.*?)'", restore["with"]["key"])
    assert hashed == ["corpus/**", "embedding.json", "index.py", "requirements.txt"]
    assert save["with"]["key"] == "${{ steps.index.outputs.cache-primary-key }}"
    build = step_of(job, "python index.py")
    assert restore["id"] == "index"
    assert build["if"] == save["if"] == "steps.index.outputs.cache-hit != 'true'"
    check = step_of(job, "org/rag-contract@")
    order = [job["steps"].index(step) for step in (restore, build, save, check)]
    assert order == sorted(order), "the index is kept before a check can fail the job"
    assert INDEX[True]["push"] == {"branches": ["main"]}, "pull requests read what the base branch keeps"


def test_the_key_for_embeddings_is_in_the_steps_that_embed_and_in_no_other() -> None:
    job = INDEX["jobs"]["contract"]
    keyed = [step.get("run") for step in job["steps"] if "secrets." in str(step)]
    assert keyed == ["python index.py", "rag-contract record search.py:retrieve"]
    assert "env" not in job
    assert "env" not in INDEX
    assert job["environment"] == "embeddings"
    assert "pull_request_target" not in INDEX[True]


# GitLab

SEARCH = """
import json

ROWS = {row["query_id"]: row["results"] for row in map(json.loads, open("found.jsonl"))}


def retrieve(query, query_id):
    return ROWS[query_id]
"""


def gitlab(folder: Path, exported: str) -> Ended:
    """Run the job's commands in a project whose retriever finds what is in this run; pip's arguments are printed."""
    require("bash")
    (folder / exported).rename(folder / "found.jsonl")
    (folder / "search.py").write_text(SEARCH)
    functions = f'pip() {{ echo "pip $*"; }}\npython() {{ "{sys.executable}" "$@"; }}\nset -e\n'
    return shell(functions + "\n".join(GITLAB["script"]), cwd=folder)


@pytest.mark.parametrize(("is_good", "code"), [(True, 0), (False, 1)])
def test_gitlabs_job_fails_with_the_contract_and_its_artifacts_are_there(
    is_good: bool, code: int, tmp_path: Path
) -> None:
    good_workspace(tmp_path)
    if not is_good:
        run = tmp_path / "current_run.jsonl"
        run.write_text(run.read_text().replace('"doc1"', '"other"'))
    for old in tmp_path.glob("report.*"):
        old.unlink()
    (tmp_path / "junit.xml").unlink()
    ended = gitlab(tmp_path, "current_run.jsonl")
    assert ended.code == code, ended.err
    assert ended.out.splitlines()[0] == "pip install -r requirements.txt"
    for name in [*GITLAB["artifacts"]["paths"], GITLAB["artifacts"]["reports"]["junit"]]:
        assert (tmp_path / name).stat().st_size, name
    assert GITLAB["artifacts"]["when"] == "always"


# .gitignore


def status(folder: Path) -> dict[str, list[str]]:
    """Return the files that git would commit, and those that it ignores."""
    lines = git(folder, "status", "--porcelain", "--ignored", "--untracked-files=all").splitlines()
    return {mark: sorted(line[3:] for line in lines if line.startswith(mark)) for mark in ("??", "!!")}


@pytest.mark.parametrize("folder", ["", "rag/"])
def test_git_ignores_what_is_written_and_sees_what_is_reviewed(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tmp_path, "init", "--quiet")
    home = tmp_path / folder
    home.mkdir(exist_ok=True)
    good_workspace(home)
    shutil.copy(RECIPES / "gitignore", home / ".gitignore")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "report.md").touch()
    monkeypatch.chdir(home)
    assert rag_contract("check", "--report-html", "report.html").code == 0
    found = status(tmp_path)
    written = ("current_run.jsonl", "junit.xml", "report.html", "report.json", "report.md")
    assert found["!!"] == [f"{folder}{name}" for name in written]
    contract = (".gitignore", "baseline.json", "golden.jsonl", "ragcontract.yml")
    assert found["??"] == sorted(["docs/report.md", *(f"{folder}{name}" for name in contract)])
