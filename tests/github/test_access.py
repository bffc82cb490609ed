"""What a pull request can do to the workspace, and what the action does not let it lead to."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import scenarios
from tests.builders import golden, run, write_jsonl
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
    replaced = runner.workspace / "link.out"
    assert replaced.is_symlink() == (path != "link.out")  # the link itself must not be uploaded as a report
    assert replaced.is_symlink() or "could not be judged" in replaced.read_text() or "symbolic" in replaced.read_text()


@pytest.mark.parametrize("path", [".git/hooks/pre-commit", "sub/.GIT/config", ".git"])
def test_no_output_is_written_into_a_repository(runner: Runner, path: str) -> None:
    assert f"{path}: is in .git" in refused(runner, {"junit": path}).log
    assert not (runner.workspace / path).exists()


def test_the_other_reports_say_which_one_is_a_link(runner: Runner) -> None:
    before = (runner.workspace / "golden.jsonl").read_bytes()
    (runner.workspace / "report.md").symlink_to("golden.jsonl")
    result = refused(runner)
    assert result.outputs["report-md"] == "report.md"
    for name in ("report.md", "report.json", "junit.xml"):
        assert "symbolic link" in (runner.workspace / name).read_text(), name
    assert (runner.workspace / "golden.jsonl").read_bytes() == before


@pytest.mark.parametrize("inputs", [{}, {"golden": "golden.jsonl"}])
def test_no_report_survives_because_an_input_links_to_it(runner: Runner, inputs: dict[str, str]) -> None:
    (runner.workspace / "report.json").write_text('{"verdict": "pass"}')
    (runner.workspace / "golden.jsonl").unlink()
    (runner.workspace / "golden.jsonl").symlink_to("report.json")
    refused(runner, inputs)
    assert '"verdict": "error"' in (runner.workspace / "report.json").read_text()


def test_a_pipe_with_the_name_of_a_report_is_replaced(runner: Runner) -> None:
    os.mkfifo(runner.workspace / "report.json")
    refused(runner)
    assert '"verdict": "error"' in (runner.workspace / "report.json").read_text()


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
    assert "no details are shown" in said


def test_a_file_behind_a_link_is_annotated_at_its_line(runner: Runner) -> None:
    write_jsonl(runner.workspace / "real.jsonl", [golden("q1", weight=-1)])
    (runner.workspace / "golden.jsonl").unlink()
    (runner.workspace / "golden.jsonl").symlink_to("real.jsonl")
    annotation, *_ = refused(runner, {"golden": "golden.jsonl"}).annotations
    assert (annotation.file, annotation.line) == ("golden.jsonl", "1")


def test_no_message_about_another_file_quotes_one_behind_a_link(runner: Runner) -> None:
    write_jsonl(runner.workspace / "real.jsonl", [golden(SECRET)])
    (runner.workspace / "golden.jsonl").unlink()
    (runner.workspace / "golden.jsonl").symlink_to("real.jsonl")
    result = refused(runner, {"golden": "golden.jsonl"})
    assert "current_run.jsonl: is not valid; no details are shown" in result.log
    assert SECRET not in everything_said(runner, result)


def test_no_warning_of_a_check_quotes_a_file_behind_a_link(runner: Runner) -> None:
    write_jsonl(runner.workspace / "real.jsonl", [golden("refunds", "doc1", weigth=SECRET), golden("sso", "doc2")])
    (runner.workspace / "golden.jsonl").unlink()
    (runner.workspace / "golden.jsonl").symlink_to("real.jsonl")
    result = runner.run({"golden": "golden.jsonl"})
    assert result.exit_code == 0
    assert "1 warning not shown, because golden.jsonl is a symbolic link" in everything_said(runner, result)
    assert "weigth" not in everything_said(runner, result)


def test_no_name_of_a_file_is_taken_for_another_one(runner: Runner) -> None:
    """A message whose location is cut off in a long path begins with the name of a regular file."""
    (runner.workspace / "runs").mkdir()
    write_jsonl(runner.workspace / "runs" / "a.jsonl", [run("refunds", "doc1")])
    deep = runner.workspace / "runs" / "a.jsonl:" / "/".join(["x" * 200] * 6)
    deep.mkdir(parents=True)
    (runner.workspace / ".env").write_text(f'{{"query_id": 1.5, "results": "{SECRET}"}}\n')
    (deep / "b.jsonl").symlink_to(runner.workspace / ".env")
    result = refused(runner, {"run": "runs/**/*.jsonl", "report-html": "page.html"})
    assert SECRET not in everything_said(runner, result)


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
