"""Which file is the configuration: two are refused, and one whose name is only like the default is named."""

import os
from pathlib import Path

import pytest

from tests import scenarios
from tests.builders import golden, run, write_jsonl
from tests.github.standin import GitHub
from tests.process import rag_contract
from tests.runner import InProcess

STRICT = "minimums: {precision_at_k: 1}\n"  # the run breaks it
SECOND = (
    "error: ragcontract.yaml: is a second configuration beside ragcontract.yml; remove one, or name the one to read"
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_jsonl(tmp_path / "golden.jsonl", [golden("q1")])
    write_jsonl(tmp_path / "current_run.jsonl", [run("q1")])
    return tmp_path


NEAR = [
    "rag-contract.yml",
    "rag_contract.yaml",
    "ragcontract.YML",
    "RagContract.Yaml",
    ".ragcontract.yml",
    "ragcontract.yml.txt",
    "ragcontact.yml",
    "ragcontracts.yaml",
    "ragcontract.json",
    "rag_contract.json",
    "ragcontract.toml",
    ".github/ragcontract.yml",
    ".github/ragcontract.yaml",
]


@pytest.mark.parametrize("name", NEAR)
def test_a_file_whose_name_is_only_like_the_default_is_named(name: str) -> None:
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_text(STRICT)
    ended = rag_contract("check")
    advice = "move it to the folder that is checked" if name.startswith(".github/") else "rename it to ragcontract.yml"
    message = f"{name}: looks like a configuration and is not read; {advice}, or name the one"
    assert (ended.code, f"warning: {message}" in ended.err) == (0, True)
    assert message in Path("report.json").read_text()
    assert rag_contract("lint", "--without-run", "--strict").code == 1
    Path("ragcontract.yml").write_text("k: 5\n")
    assert (
        f"{name}: looks like a configuration and is not read, because ragcontract.yml is" in rag_contract("check").err
    )
    assert rag_contract("check", "--config", name).code == 1


@pytest.mark.parametrize(
    "name",
    [
        "ragcontract (1).yml",
        "ragcontract(2).yaml",
        "ragcontract copy.yml",
        "ragcontract - Copy (1).yml",
        "ragcontract.yml.bak",
        "ragcontract.yaml.orig",
        "ragcontract.yml~",
    ],
)
def test_a_copy_is_named_only_where_there_is_no_configuration(name: str) -> None:
    Path(name).write_text(STRICT)
    ended = rag_contract("check")
    message = f"{name}: looks like a configuration and is not read; rename it to ragcontract.yml"
    assert (ended.code, f"warning: {message}" in ended.err) == (0, True), ended
    Path("ragcontract.yml").write_text("k: 5\n")
    ended = rag_contract("check")
    assert (ended.code, ended.err) == (0, "")


@pytest.mark.parametrize(
    "name", ["ragcontract-eu.yml", "ragcontract2.yml", "ragcontract.yml~", "ragcontract.yml.bak", "compose.yml", ".yml"]
)
def test_other_files_are_no_concern(name: str) -> None:
    Path(name).write_text(STRICT)
    Path("ragcontract.yml").write_text("k: 5\n")
    ended = rag_contract("check")
    assert (ended.code, ended.err) == (0, "")


@pytest.mark.parametrize(
    "command",
    [
        "check",
        "lint",
        "validate",
        "validate --without-run",
        "baseline",
        "score",
        "suggest",
        "unjudged",
        "label",
        "waive q1 --until 2099-12-31 --reason r --owner o",
        "claims --judge-url http://localhost:1 --model m",
        "judge --judge-url http://localhost:1 --model m",
    ],
)
def test_two_configurations_are_refused_by_each_command(command: str) -> None:
    Path("ragcontract.yml").write_text("k: 5\n")
    Path("ragcontract.yaml").write_text(STRICT)
    ended = rag_contract(*command.split())
    assert (ended.code, SECOND in ended.err) == (2, True)


def test_of_two_configurations_the_one_that_is_named_is_read() -> None:
    Path("ragcontract.yml").write_text("k: 5\n")
    Path("ragcontract.yaml").write_text(STRICT)
    for name, code in (("ragcontract.yml", 0), ("ragcontract.yaml", 1)):
        ended = rag_contract("check", "--config", name)
        assert (ended.code, ended.err) == (code, "")


def test_two_configurations_are_reported_with_everything_else_that_is_wrong() -> None:
    Path("ragcontract.yml").write_text("k: 0\n")
    Path("ragcontract.yaml").write_text(STRICT)
    write_jsonl(Path("golden.jsonl"), [golden("q1", weight=-1)])
    ended = rag_contract("check")
    assert (ended.code, [line.split(": ")[1] for line in ended.err.splitlines()]) == (
        2,
        ["ragcontract.yml:1", "ragcontract.yaml", "golden.jsonl:1"],
    )


def test_two_names_of_one_file_are_one_configuration() -> None:
    Path("ragcontract.yml").write_text("k: 5\n")
    Path("ragcontract.yaml").symlink_to("ragcontract.yml")
    os.link("ragcontract.yml", "ragcontract.YML")  # as where case makes no difference
    ended = rag_contract("check")
    assert (ended.code, ended.err) == (0, "")


def test_a_link_that_leads_nowhere_is_a_second_configuration() -> None:
    Path("ragcontract.yml").write_text("k: 5\n")
    Path("ragcontract.yaml").symlink_to("gone.yml")
    assert (rag_contract("check").code, SECOND in rag_contract("check").err) == (2, True)


def test_a_name_cannot_act_on_a_terminal() -> None:
    Path("rag\n\x1b[31m\u202econtract.yml").write_text(STRICT)
    ended = rag_contract("check")
    assert (ended.code, "looks like" in ended.err) == (0, False)  # the code of the colour is more than a typing error
    Path("rag\n\u202econtract.yml").write_text(STRICT)
    ended = rag_contract("check")
    assert "warning: rag\\n\\u202econtract.yml: looks like a configuration" in ended.err


def test_the_action_refuses_two_and_names_one_that_is_not_read(tmp_path: Path, github: GitHub) -> None:
    runner = InProcess(tmp_path, github)
    scenarios.passing(runner.workspace)
    (runner.workspace / "rag-contract.yml").write_text(STRICT)
    result = runner.run()
    assert result.exit_code == 0
    assert "rag-contract.yml: looks like a configuration and is not read" in result.log
    (runner.workspace / "ragcontract.yml").write_text("k: 5\n")
    (runner.workspace / "ragcontract.yaml").write_text(STRICT)
    result = runner.run()
    assert (result.exit_code, result.outputs["verdict"]) == (2, "error")
    assert "ragcontract.yaml: is a second configuration beside ragcontract.yml" in result.log


BESIDE = "docs/ragcontract.yml: looks like a configuration and is not read"


@pytest.fixture
def docs(folder: Path) -> Path:
    """Move the contract into a folder of its own, with a configuration that its run breaks."""
    docs = folder / "docs"
    docs.mkdir()
    for name in ("golden.jsonl", "current_run.jsonl"):
        Path(name).rename(docs / name)
    (docs / "ragcontract.yml").write_text(STRICT)
    return docs


@pytest.mark.parametrize("named", ["docs/golden.jsonl", "./docs/golden.jsonl", "*/golden.jsonl", "docs/*.jsonl"])
def test_a_configuration_beside_a_golden_file_that_is_named_is_named(named: str, docs: Path) -> None:
    (docs / "current_run.jsonl").rename("run.jsonl")
    options = ("--golden", named, "--run", "run.jsonl")
    ended = rag_contract("check", *options)
    assert (ended.code, ended.err.count(BESIDE)) == (0, 1)
    assert BESIDE in Path("report.json").read_text()
    assert rag_contract("lint", *options, "--strict").code == 1
    assert rag_contract("check", *options, "--config", "docs/ragcontract.yml").code == 1
    Path("ragcontract.yml").write_text("k: 5\n")
    assert f"{BESIDE}, because ragcontract.yml is" in rag_contract("check", *options).err


def test_one_that_links_to_the_configuration_is_read_already(docs: Path) -> None:
    (docs / "ragcontract.yml").unlink()
    Path("ragcontract.yml").write_text("k: 5\n")
    (docs / "ragcontract.yml").symlink_to("../ragcontract.yml")
    ended = rag_contract("check", "--golden", "docs/golden.jsonl", "--run", "docs/current_run.jsonl")
    assert (ended.code, ended.err) == (0, "")


def test_the_action_names_a_configuration_beside_a_golden_file(tmp_path: Path, github: GitHub) -> None:
    runner = InProcess(tmp_path, github)
    scenarios.passing(runner.workspace)
    (runner.workspace / "docs").mkdir()
    for name in ("golden.jsonl", "current_run.jsonl"):
        (runner.workspace / name).rename(runner.workspace / "docs" / name)
    (runner.workspace / "docs" / "ragcontract.yml").write_text(STRICT)
    result = runner.run({"golden": "docs/golden.jsonl", "run": "docs/current_run.jsonl"})
    assert result.exit_code == 0
    assert BESIDE in result.log
    assert "looks like a configuration and is not read" in github.bodies()[0]


@pytest.mark.parametrize(("folder", "up"), [("docs", ".."), ("docs/en", "../.."), ("docs/en/", "..")])
def test_the_action_names_a_configuration_above_its_working_directory(
    folder: str, up: str, tmp_path: Path, github: GitHub
) -> None:
    runner = InProcess(tmp_path, github)
    scenarios.passing(runner.workspace)
    inside = runner.workspace / folder
    inside.mkdir(parents=True)
    for name in ("golden.jsonl", "current_run.jsonl"):
        (runner.workspace / name).rename(inside / name)
    (inside / up / "ragcontract.yml").write_text(STRICT)
    inputs = {"working-directory": folder}
    result = runner.run(inputs)
    message = f"{folder.rstrip('/')}/{up}/ragcontract.yml: looks like a configuration and is not read; move it to"
    assert (result.exit_code, message in result.log) == (0, True), result.log
    assert "looks like a configuration and is not read" in github.bodies()[0]
    assert runner.run({**inputs, "config": f"{up}/ragcontract.yml"}).exit_code == 1
    (inside / "ragcontract.yml").write_text("k: 5\n")
    assert "looks like a configuration" not in runner.run(inputs).log


@pytest.mark.parametrize("up", ["..", "../.."])
@pytest.mark.parametrize("command", ["check", "lint"])
def test_a_configuration_above_the_folder_in_the_same_repository_is_named(
    command: str, up: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = folder / "services" / "rag"
    inside.mkdir(parents=True)
    for name in ("golden.jsonl", "current_run.jsonl"):
        (folder / name).rename(inside / name)
    (inside / up / "ragcontract.yml").write_text(STRICT)
    monkeypatch.chdir(inside)
    message = f"{up}/ragcontract.yml: looks like a configuration and is not read; move it to the folder that is checked"
    ended = rag_contract(command)
    assert message not in ended.out + ended.err, "there is no repository"
    (folder / ".git").mkdir()
    ended = rag_contract(command)
    assert (ended.code, message in ended.out + ended.err) == (0, True)
    if command == "lint":
        assert rag_contract("lint", "--strict").code == 1
    write_jsonl(inside / up / "golden.jsonl", [golden("q1")])
    ended = rag_contract(command)
    assert "is not read" not in ended.out + ended.err, "it is that of another contract"
    (inside / up / "golden.jsonl").unlink()
    (inside / "ragcontract.yml").write_text("k: 5\n")
    ended = rag_contract(command)
    assert "is not read" not in ended.out + ended.err
