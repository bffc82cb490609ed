"""What a pull request can do to the workspace, and what the action does not let it lead to."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import scenarios
from tests.github.standin import GitHub
from tests.process import files_in
from tests.runner import InProcess, Result, Runner

REPORTS = {"report-md": "report.md", "report-json": "report.json", "junit": "junit.xml", "report-html": "page.html"}
INPUTS = {
    "golden": "golden.jsonl",
    "run": "current_run.jsonl",
    "baseline": "baseline.json",
    "config": "ragcontract.yml",
}
SECRET = "hunter2-correct-horse"


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[Runner]:
    with GitHub() as github:
        runner = InProcess(tmp_path, github)
        scenarios.passing(runner.workspace)
        yield runner


def refused(runner: Runner, inputs: dict[str, str] | None = None) -> Result:
    result = runner.run(inputs)
    assert result.exit_code == 2, result.log
    assert result.outputs["verdict"] == "error"
    return result


def everything_said(runner: Runner, result: Result) -> str:
    """Return all that a run of the action shows anywhere."""
    reports = [runner.workspace / path for path in REPORTS.values()]
    written = [path.read_text() for path in reports if path.is_file()]
    return "\n".join([result.log, result.summary, *runner.github.bodies(), *written, str(result.outputs)])


@pytest.mark.parametrize("name", [*REPORTS, "comment-body-file"])
@pytest.mark.parametrize("path", ["link.out", "linked/new.out", "linked/sub/../new.out"])
def test_no_output_is_written_through_a_link_of_the_workspace(runner: Runner, name: str, path: str) -> None:
    script = runner.workspace / "scripts" / "trusted.sh"
    (script.parent / "sub").mkdir(parents=True)
    script.write_text("echo trusted")
    (runner.workspace / "link.out").symlink_to("scripts/trusted.sh")
    (runner.workspace / "linked").symlink_to("scripts")
    result = refused(runner, {name: path})
    assert f"{path}: is a symbolic link, or behind one" in result.log
    assert files_in(script.parent) == {"trusted.sh": b"echo trusted"}
    assert (runner.workspace / "link.out").is_symlink()


@pytest.mark.parametrize("path", [".git/hooks/pre-commit", "sub/.GIT/config", ".git"])
def test_no_output_is_written_into_a_repository(runner: Runner, path: str) -> None:
    assert f"{path}: is in .git" in refused(runner, {"junit": path}).log
    assert not (runner.workspace / path).exists()


def test_the_other_reports_say_which_one_is_a_link(runner: Runner) -> None:
    (runner.workspace / "report.md").symlink_to("golden.jsonl")
    before = (runner.workspace / "golden.jsonl").read_bytes()
    result = refused(runner)
    assert "report-md" not in result.outputs
    assert "symbolic link" in (runner.workspace / "junit.xml").read_text()
    assert (runner.workspace / "golden.jsonl").read_bytes() == before


@pytest.mark.parametrize(("name", "path"), INPUTS.items())
def test_a_link_with_a_default_name_is_refused(runner: Runner, name: str, path: str) -> None:
    (runner.workspace / path).unlink(missing_ok=True)
    (runner.workspace / ".env").write_text(f"PASSWORD={SECRET}\n")
    (runner.workspace / path).symlink_to(".env")
    result = refused(runner)
    assert f"{path}: is a symbolic link, or behind one; to follow it, name it with the input {name}" in result.log
    assert SECRET not in everything_said(runner, result)


def test_default_names_in_a_linked_folder_are_refused_too(runner: Runner) -> None:
    (runner.workspace / "real").mkdir()
    scenarios.passing(runner.workspace / "real")
    (runner.workspace / "linked").symlink_to("real")
    result = refused(runner, {"working-directory": "linked"})
    assert "linked/golden.jsonl: is a symbolic link, or behind one" in result.log


@pytest.mark.parametrize(("name", "path"), INPUTS.items())
@pytest.mark.parametrize(
    "secret",
    [
        f"PASSWORD={SECRET}\n" * 60,
        f'{{"{SECRET}": "{SECRET}"}}\n',
        f'{{"id": 3, "query_id": "{SECRET}", "relevant_doc_ids": "{SECRET}", "results": "{SECRET}"}}\n',
        f"{SECRET}: {SECRET}\n",
    ],
)
def test_no_message_quotes_a_file_behind_a_link(runner: Runner, name: str, path: str, secret: str) -> None:
    (runner.workspace / ".env").write_text(secret)
    (runner.workspace / path).unlink(missing_ok=True)
    (runner.workspace / path).symlink_to(".env")
    result = refused(runner, {name: path, "report-html": "page.html"})
    said = everything_said(runner, result)
    assert SECRET not in said
    assert "content is not shown" in said


def test_messages_about_other_files_stay_as_they_are(runner: Runner) -> None:
    (runner.workspace / "golden.jsonl").rename(runner.workspace / "real.jsonl")
    (runner.workspace / "golden.jsonl").symlink_to("real.jsonl")
    (runner.workspace / "ragcontract.yml").write_text("kk: 3\n")
    result = refused(runner, {"golden": "golden.jsonl"})
    assert "ragcontract.yml:1: kk: unknown key" in result.log


def test_a_link_that_the_workflow_names_is_followed(runner: Runner) -> None:
    (runner.workspace / "current_run.jsonl").rename(runner.workspace / "run-7.jsonl")
    (runner.workspace / "latest.jsonl").symlink_to("run-7.jsonl")
    assert runner.run({"run": "latest.jsonl"}).exit_code == 0


@pytest.mark.parametrize("inputs", [{}, {"run": "current_run.jsonl"}, {"run": "*_run.jsonl"}])
def test_no_link_leads_to_the_temporary_folder(runner: Runner, inputs: dict[str, str]) -> None:
    run = runner.workspace / "current_run.jsonl"
    run.rename(runner.folder / "runner_temp" / "run.jsonl")
    run.symlink_to(runner.folder / "runner_temp" / "run.jsonl")
    assert "current_run.jsonl: leads out of the workspace" in refused(runner, inputs).log
    assert runner.run({"run": str(runner.folder / "runner_temp" / "run.jsonl")}).exit_code == 0


@pytest.mark.parametrize("name", INPUTS)
def test_a_pipe_is_no_input(runner: Runner, name: str) -> None:
    os.mkfifo(runner.workspace / "pipe")
    assert "pipe: is not a regular file" in refused(runner, {name: "pipe"}).log


def test_a_pipe_with_a_default_name_is_no_input(runner: Runner) -> None:
    os.mkfifo(runner.workspace / "baseline.json")
    assert "baseline.json: is not a regular file" in refused(runner).log


@pytest.mark.parametrize("name", [*REPORTS, "comment-body-file"])
def test_a_pipe_is_no_output(runner: Runner, name: str) -> None:
    os.mkfifo(runner.workspace / "pipe")
    assert "pipe: is not a regular file" in refused(runner, {name: "pipe"}).log
