"""`init` in a folder of a repository: the workflow is where GitHub looks for it, and works in the folder."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ragcontract.cli.commands.init import WORKFLOW, for_folder, workflow_file
from tests.process import Ended, files_in, rag_contract
from tests.runner import ROOT, TEMPLATES


def git(folder: Path, *argv: str) -> None:
    """Run git as somebody who has no settings."""
    name = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    subprocess.run(["git", *name, *argv], cwd=folder, check=True, capture_output=True)


def repository(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    git(folder, "init", "--quiet")
    return folder


def init_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Ended:
    folder.mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(folder)
    ended = rag_contract("init")
    assert ended.code == 0, ended.err
    return ended


def workflows(root: Path) -> list[str]:
    return sorted(path.name for path in (root / ".github/workflows").iterdir())


def test_in_a_subfolder_the_workflow_goes_to_the_repositorys_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = repository(tmp_path / "repo")
    ended = init_in(root / "services" / "search", monkeypatch)
    written = {name for name in files_in(root) if not name.startswith(".git/")}
    assert written == {WORKFLOW, "services/search/golden.jsonl", "services/search/ragcontract.yml"}
    assert f"wrote ../../{WORKFLOW}\n" in ended.out
    assert f"In ../../{WORKFLOW}, put the commands" in ended.out


def test_all_steps_of_that_workflow_work_in_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = repository(tmp_path / "repo")
    init_in(root / "services" / "search", monkeypatch)
    job = load(root / WORKFLOW)["jobs"]["rag-contract"]
    assert job["defaults"] == {"run": {"working-directory": "services/search"}}
    _, _, python, _, _, check, upload = job["steps"]
    assert python["with"]["cache-dependency-path"] == "services/search/requirements.txt"
    assert list(python["with"])[-2:] == ["cache", "cache-dependency-path"]  # "the last two lines" of its comment
    assert "# It stops if the file of the last line does not exist" in (root / WORKFLOW).read_text()
    assert check["with"]["working-directory"] == "services/search"
    assert upload["with"]["path"].split() == [
        f"services/search/{name}" for name in ("report.md", "report.json", "junit.xml")
    ]
    for step in job["steps"]:
        assert "working-directory" not in step, "each `run` step has the job's"


def test_two_contracts_share_no_file_check_concurrency_group_or_comment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = repository(tmp_path / "repo")
    for folder in ("docs", "services/search"):
        init_in(root / folder, monkeypatch)
    assert workflows(root) == ["rag-contract-services-search.yml", "rag-contract.yml"]
    both = [load(root / ".github/workflows" / name) for name in workflows(root)]
    assert all("${{ github.workflow }}" in one["concurrency"]["group"] for one in both)
    names = [(one["name"], one["jobs"]["rag-contract"]["name"], comment_of(one)) for one in both]
    assert names == [
        ("rag-contract services/search", "Check the retrieval contract services/search", "services/search"),
        ("rag-contract docs", "Check the retrieval contract docs", "docs"),
    ]


def load(path: Path) -> dict[Any, Any]:
    loaded: dict[Any, Any] = yaml.safe_load(path.read_text())
    return loaded


def comment_of(workflow: dict[Any, Any]) -> str:
    return str(workflow["jobs"]["rag-contract"]["steps"][-2]["with"]["name"])


def test_a_folder_keeps_the_workflow_that_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = repository(tmp_path / "repo")
    for folder in ("a", "b"):
        init_in(root / folder, monkeypatch)
        (root / folder / "golden.jsonl").unlink()
        for path in (root / ".github/workflows").iterdir():
            path.write_text(path.read_text().replace(f"directory: {folder}\n", f"directory: {folder} # ours\n"))
        before = files_in(root / ".github")
        assert "kept ../.github/workflows/rag-contract" in init_in(root / folder, monkeypatch).out
        assert files_in(root / ".github") == before
    (root / WORKFLOW).unlink()
    (root / "b" / "golden.jsonl").unlink()
    assert "kept ../.github/workflows/rag-contract-b.yml\n" in init_in(root / "b", monkeypatch).out


def test_folders_that_read_the_same_get_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = repository(tmp_path / "repo")
    for folder in ("first", "a/b", "a-b", "a b", "数据"):
        init_in(root / folder, monkeypatch)
    numbered = ["rag-contract-a-b-2.yml", "rag-contract-a-b-3.yml", "rag-contract-a-b.yml"]
    assert workflows(root) == [*numbered, "rag-contract-folder.yml", "rag-contract.yml"]
    (root / "a b" / "golden.jsonl").unlink()
    assert "kept ../.github/workflows/rag-contract-a-b-3.yml\n" in init_in(root / "a b", monkeypatch).out


@pytest.mark.parametrize("at", ["root", "no repository"])
def test_at_the_root_and_outside_of_a_repository_nothing_names_a_folder(
    at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = repository(tmp_path / "repo") if at == "root" else tmp_path
    init_in(folder, monkeypatch)
    assert (folder / WORKFLOW).read_text() == (TEMPLATES / "workflow.yml").read_text()


def test_a_worktree_and_a_submodule_are_repositories_of_their_own(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo")
    git(root, "commit", "--quiet", "--allow-empty", "--message", "first")
    git(root, "worktree", "add", "--quiet", str(tmp_path / "tree"))
    git(root, "-c", "protocol.file.allow=always", "submodule", "add", "--quiet", str(tmp_path / "tree"), "module")
    for other in (tmp_path / "tree", root / "module"):
        (other / "rag").mkdir()
        assert (other / ".git").is_file()
        assert workflow_file(other / "rag").path == f"../{WORKFLOW}"


def test_a_folder_behind_a_link_is_the_one_that_it_leads_to(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo")
    (root / "rag").mkdir()
    (tmp_path / "link").symlink_to(root / "rag")
    found = workflow_file(tmp_path / "link")
    assert (found.folder, found.path) == ("rag", f"../{WORKFLOW}")


def test_a_folder_named_git_that_is_no_repository_is_none(tmp_path: Path) -> None:
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    (tmp_path / "repo" / "rag").mkdir()
    assert workflow_file(tmp_path / "repo" / "rag").path == WORKFLOW


NAMES = [
    "rag",
    "services/search",
    "my docs",
    "a: b",
    "a #b",
    "true",
    "2024",
    "- x",
    "ü",
    "${{ github.token }}",
    "'\"",
    "%",
]


@pytest.mark.parametrize("folder", NAMES)
def test_a_workflow_names_its_folder_whatever_it_is_called(folder: str) -> None:
    text = for_folder((TEMPLATES / "workflow.yml").read_text(), folder)
    assert "${{ github.token" not in text, "an expression in the name of a folder"
    job = yaml.safe_load(text)["jobs"]["rag-contract"]
    named = folder.replace("${{", "${{ '${{' }}")
    assert job["defaults"]["run"]["working-directory"] == named
    assert job["steps"][-2]["with"]["working-directory"] == named
    assert job["steps"][-1]["with"]["path"].splitlines()[0] == f"{named}/report.md"


def test_a_workflow_with_any_folder_is_one_that_github_and_zizmor_accept(tmp_path: Path) -> None:
    files = [tmp_path / f"{number}.yml" for number, _ in enumerate(NAMES)]
    for file, folder in zip(files, NAMES, strict=True):
        file.write_text(for_folder((TEMPLATES / "workflow.yml").read_text(), folder))
    zizmor = (str(Path(sys.executable).parent / "zizmor"), "--pedantic", "--offline", "--quiet", "--config")
    schema = (sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows")
    for command in ((*zizmor, str(ROOT / "examples" / "zizmor.yml")), schema):
        done = subprocess.run([*command, *map(str, files)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_folder_that_no_workflow_can_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = repository(tmp_path / "repo")
    (root / "a\nb").mkdir()
    monkeypatch.chdir(root / "a\nb")
    ended = rag_contract("init")
    said = "a workflow cannot name this folder: it has characters that cannot be printed; rename the folder"
    assert ended == (2, "", f"error: a\\nb: {said}\n")
    assert list((root / "a\nb").iterdir()) == []


def test_a_template_without_a_line_that_has_to_change_is_reported() -> None:
    with pytest.raises(ValueError, match="the template has not exactly one"):
        for_folder("name: other\n", "rag")


def test_the_config_that_is_there_is_named_in_a_subfolder_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = repository(tmp_path / "repo")
    (root / "rag").mkdir()
    (root / "rag" / "ragcontract.yaml").write_text("k: 5\n")
    init_in(root / "rag", monkeypatch)
    check = load(root / WORKFLOW)["jobs"]["rag-contract"]["steps"][-2]["with"]
    assert check["config"] == "ragcontract.yaml"
