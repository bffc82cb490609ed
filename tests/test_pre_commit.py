"""The hooks for pre-commit: what they run, on which files, and what comes of it."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from scripts import docs
from tests.builders import golden, write_baseline, write_jsonl
from tests.process import Ended, rag_contract
from tests.runner import ROOT

HOOKS: dict[str, dict[str, Any]] = {
    hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
}
PAGE = (ROOT / "docs" / "guides" / "pre-commit.md").read_text()
KEYS = {"id", "name", "description", "entry", "language", "files", "pass_filenames"}  # of pre-commit, in any version


@pytest.fixture(autouse=True)
def contract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a contract as it is committed: without a run."""
    monkeypatch.chdir(tmp_path)
    write_jsonl(tmp_path / "golden.jsonl", [golden("q1"), golden("q2")])
    write_baseline(tmp_path / "baseline.json")
    (tmp_path / "ragcontract.yml").write_text("fail_on: {mrr_drop_gt: 0.1}\n")
    return tmp_path


def commit(hook: str, *args: str) -> Ended:
    """Run a hook as pre-commit does."""
    program, *entry = shlex.split(HOOKS[hook]["entry"])
    assert program == "rag-contract"
    return rag_contract(*entry, *args)


@pytest.mark.parametrize("hook", HOOKS)
def test_a_good_contract_can_be_committed_without_a_run(hook: str) -> None:
    assert commit(hook).code == 0


def test_a_contract_that_cannot_be_judged_is_not_committed(contract: Path) -> None:
    write_jsonl(contract / "golden.jsonl", [golden("q1", weight=-1)])
    (contract / "ragcontract.yml").write_text("minimum: {recall_at_k: 0.9}\n")
    (contract / "baseline.json").write_text("{")
    ended = commit("rag-contract-validate")
    assert ended.code == 2
    assert [line.split(":")[1].strip() for line in ended.err.splitlines()] == [
        "ragcontract.yml",
        "golden.jsonl",
        "baseline.json",
    ]


def test_a_contract_with_a_likely_mistake_is_not_committed(contract: Path) -> None:
    write_jsonl(contract / "golden.jsonl", [golden("q1"), golden("q2", query="What about q1?")])
    assert commit("rag-contract-validate").code == 0
    ended = commit("rag-contract-lint")
    assert ended.code == 1
    assert "q1" in ended.out


@pytest.mark.parametrize("hook", HOOKS)
def test_a_run_that_lies_about_is_not_read(hook: str, contract: Path) -> None:
    (contract / "current_run.jsonl").write_text("{")
    assert commit(hook).code == 0
    ended = commit(hook, "--run", "current_run.jsonl")
    assert ended.code == 2
    assert "--run names what --without-run leaves out" in ended.err


def test_validate_without_a_run_says_what_the_other_files_contain() -> None:
    ended = rag_contract("validate", "--without-run")
    assert ended.out == "valid: 2 golden queries (2 with relevant documents), no run, a baseline of 1 query, a config\n"


def test_a_contract_that_has_no_baseline_yet_can_be_committed(contract: Path) -> None:
    (contract / "baseline.json").unlink()
    (contract / "ragcontract.yml").write_text("fail_on:\n  mrr_drop_gt: 0.1\n  recall_drop_gt: 0.1\n")
    ended = commit("rag-contract-validate")
    assert (ended.code, ended.err) == (0, "")
    assert rag_contract("validate", "--without-run").out.endswith(
        "note: fail_on.mrr_drop_gt and fail_on.recall_drop_gt need a baseline: store one with `rag-contract baseline` "
        "before `check`\n"
    )


def test_a_query_that_can_never_pass_is_a_warning_without_a_run_too(contract: Path) -> None:
    write_jsonl(contract / "golden.jsonl", [golden("q1", "doc1", forbidden_doc_ids=["doc1"])])
    assert "so it can never pass" in commit("rag-contract-validate").err


def test_the_hooks_run_for_the_files_of_a_contract_and_for_no_others() -> None:
    asked = ["golden.jsonl", "contracts/billing/golden.jsonl", "ragcontract.yml", "ragcontract.yaml", "baseline.json"]
    others = ["golden.json", "my_golden.jsonl", "README.md", "current_run.jsonl", "ragcontract.yml.orig"]
    of_validate, of_lint = (HOOKS[hook]["files"] for hook in ("rag-contract-validate", "rag-contract-lint"))
    assert [name for name in [*asked, *others] if re.search(of_validate, name)] == asked
    assert [name for name in [*asked, *others] if re.search(of_lint, name)] == asked[:-1]


def test_the_hooks_are_declared_as_pre_commit_wants_it() -> None:
    assert list(HOOKS) == ["rag-contract-validate", "rag-contract-lint"]
    for hook in HOOKS.values():
        assert set(hook) == KEYS
        assert hook["language"] == "python"
        assert hook["pass_filenames"] is False  # the commands take options, and read all files of a contract at once


def test_the_page_shows_what_the_hooks_run() -> None:
    for hook in HOOKS.values():
        assert f"| `{hook['id']}` | `{hook['entry']}` |" in PAGE
    hooks = yaml.safe_load(docs.block(PAGE, "pre-commit config"))["repos"][0]["hooks"]
    assert [hook["id"] for hook in hooks] == list(HOOKS)


def test_the_hook_with_a_folder_on_the_page_works(contract: Path) -> None:
    (hook,) = yaml.safe_load(docs.block(PAGE, "pre-commit folder"))["repos"][0]["hooks"]
    folder = contract / "contracts" / "billing"
    folder.mkdir(parents=True)
    for name in ("golden.jsonl", "ragcontract.yml", "baseline.json"):
        (contract / name).rename(folder / name)
    assert commit(hook["id"]).code == 2
    assert commit(hook["id"], *hook["args"]).code == 0
    assert re.search(hook["files"], "contracts/billing/golden.jsonl")
