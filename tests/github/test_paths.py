"""Paths: the container's names for the workspace, and nothing read or written outside of it."""

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from ragcontract.github.context import Context
from ragcontract.github.files import (
    for_next_step,
    in_container,
    in_repository,
    outside,
    owned_like_workspace,
    wrong_folder,
)
from ragcontract.report.record import ErrorReport
from tests import scenarios
from tests.github.standin import GitHub
from tests.process import files_in
from tests.runner import InProcess, Result, Runner

HOST = "/home/runner/work/app/app"


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[Runner]:
    with GitHub() as github:
        runner = InProcess(tmp_path, github)
        scenarios.passing(runner.workspace)
        yield runner


def context(workspace: Path, temporary: Path | None = None) -> Context:
    start = Context.from_environ({"RUNNER_WORKSPACE": "/home/runner/work/app", "GITHUB_REPOSITORY": "octo/app"})
    return msgspec.structs.replace(start, workspace=workspace, temporary=temporary)


@pytest.mark.parametrize(
    ("path", "mapped"),
    [
        (HOST, "/github/workspace"),
        (f"{HOST}/run.jsonl", "/github/workspace/run.jsonl"),
        (f"{HOST}/a*/../b.jsonl", "/github/workspace/a*/../b.jsonl"),
        (f"{HOST}2/run.jsonl", f"{HOST}2/run.jsonl"),
        ("/home/runner/work/app/other/x", "/home/runner/work/app/other/x"),
        ("run.jsonl", "run.jsonl"),
        ("", ""),
    ],
)
def test_a_path_of_the_machine_becomes_the_containers(path: str, mapped: str) -> None:
    assert in_container(path, context(Path("/github/workspace"))) == mapped


def test_where_the_machines_workspace_is_not_known_paths_are_taken_as_they_are() -> None:
    unknown = msgspec.structs.replace(context(Path("/github/workspace")), host_workspace="")
    assert in_container(f"{HOST}/x", unknown) == f"{HOST}/x"
    assert in_container("/x", unknown) == "/x"


def test_links_are_followed_to_find_what_is_outside(tmp_path: Path) -> None:
    workspace, temporary = tmp_path / "workspace", tmp_path / "temporary"
    for folder in (workspace, temporary, tmp_path / "workspace2"):
        folder.mkdir()
    (workspace / "out").symlink_to(tmp_path)
    (workspace / "in").symlink_to(workspace)
    (workspace / "loop").symlink_to(workspace / "loop")
    inside = [workspace, workspace / "a/b", workspace / "in/x", temporary / "x", workspace / "out/workspace/x"]
    away = [tmp_path, workspace / "..", workspace / "out/x", tmp_path / "workspace2/x", Path("/etc/hostname")]
    problems = outside([str(path) for path in [*inside, *away, workspace / "loop"]], context(workspace, temporary))
    assert [problem.partition(": ")[0] for problem in problems] == [str(path) for path in away]


def test_a_workspace_that_is_itself_a_link_is_the_workspace(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert outside([str(tmp_path / "real/x"), str(tmp_path / "link/x")], context(tmp_path / "link")) == []


@pytest.mark.parametrize("folder", ["missing", "file", "n" * 5000])
def test_a_working_directory_must_be_a_folder(tmp_path: Path, folder: str) -> None:
    (tmp_path / "file").touch()
    problem = wrong_folder(str(tmp_path / folder), context(tmp_path))
    assert problem is not None
    assert problem.endswith("is not a folder in the workspace")
    assert wrong_folder(str(tmp_path), context(tmp_path)) is None


def test_the_next_step_gets_paths_relative_to_the_workspace(tmp_path: Path) -> None:
    here = context(tmp_path)
    assert for_next_step(str(tmp_path / "a/../b.md"), here) == "b.md"
    assert for_next_step("/other/b.md", here) == "/other/b.md"


def test_an_annotation_gets_paths_relative_to_the_nearest_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = tmp_path / "workspace"
    here = context(workspace)
    for folder in ("head/rag/deep", "module/rag", "plain"):
        (workspace / folder).mkdir(parents=True)
    (workspace / "head/.git").mkdir()
    (workspace / "module/.git").write_text("gitdir: ../.git/modules/module")  # a submodule's
    monkeypatch.chdir(workspace / "head/rag")
    assert in_repository("deep/golden.jsonl:17", here) == "rag/deep/golden.jsonl:17"
    assert in_repository("../../module/rag/x.yml:2", here) == "rag/x.yml:2"
    assert in_repository("../../module/x.yml", here) == "x.yml"
    assert in_repository(str(workspace / "plain/x.yml:2"), here) == "plain/x.yml:2"
    (workspace / ".git").mkdir()
    assert in_repository(str(workspace / "plain/x.yml:2"), here) == "plain/x.yml:2"
    assert in_repository("golden.jsonl:17", here) == "rag/golden.jsonl:17"
    (workspace / "head/rag/.git").mkdir()
    assert in_repository("golden.jsonl:17", here) == "golden.jsonl:17"


def test_no_repository_outside_of_the_workspace_is_looked_for(tmp_path: Path) -> None:
    workspace, away, temporary = tmp_path / "workspace", tmp_path / "away", tmp_path / "temporary"
    for folder in (tmp_path / ".git", away / ".git", temporary / ".git", workspace):
        folder.mkdir(parents=True)
    (workspace / "link").symlink_to(away)
    here = context(workspace, temporary)
    assert in_repository(str(workspace / "x:1"), here) == "x:1"
    assert in_repository(str(workspace / "link/x:1"), here) == "link/x:1"
    for location in (away / "x:1", temporary / "x:1"):
        assert in_repository(str(location), here) == str(location)


def test_what_is_written_belongs_to_the_owner_of_the_workspace(runner: Runner) -> None:
    root = os.geteuid() == 0
    owner = (1001, 121) if root else (os.geteuid(), os.getegid())
    os.chown(runner.workspace, *owner)
    assert runner.run({"junit": "new/j.xml", "comment-body-file": "body/deep/comment.md"}).exit_code == 0
    for name in ("report.md", "report.json", "new", "new/j.xml", "body", "body/deep", "body/deep/comment.md"):
        found = (runner.workspace / name).stat()
        assert (found.st_uid, found.st_gid) == owner, name


def test_what_a_failed_write_leaves_behind_belongs_to_the_owner_of_the_workspace(runner: Runner) -> None:
    owner = (1001, 121) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
    workspace = runner.workspace
    os.chown(workspace, *owner)
    (workspace / "old").mkdir()
    before = (workspace / "old").stat()
    outputs = [str(workspace / "old/never/written"), str(workspace / "new/deep/report.md")]

    def fail() -> None:
        (workspace / "new/deep").mkdir(parents=True)
        (workspace / "new/deep/report.md").touch()
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="disk"), owned_like_workspace(outputs, context(workspace)):
        fail()
    for name in ("new", "new/deep", "new/deep/report.md"):
        found = (workspace / name).stat()
        assert (found.st_uid, found.st_gid) == owner, name
    assert (workspace / "old").stat().st_uid == before.st_uid


def test_a_workspace_that_is_gone_owns_nothing(runner: Runner) -> None:
    with owned_like_workspace([str(runner.folder / "x")], context(runner.folder / "gone")):
        (runner.folder / "x").touch()


def test_paths_of_the_machine_are_found_also_in_later_lines(runner: Runner) -> None:
    (runner.workspace / "sub").mkdir()
    rows = (runner.workspace / "current_run.jsonl").read_text().splitlines(keepends=True)
    for number, row in enumerate(rows):
        (runner.workspace / "sub" / f"{number}.jsonl").write_text(row)
    result = runner.run(
        {
            "golden": f"{HOST}/golden.jsonl",
            "run": f"sub/0.jsonl\n{HOST}/sub/[1-9].jsonl",
            "report-md": f"{HOST}/out/report.md",
            "comment-body-file": f"{HOST}/out/body.md",
        }
    )
    assert result.exit_code == 0
    assert result.outputs["report-md"] == "out/report.md"
    assert (runner.workspace / "out/body.md").exists()
    assert runner.run({"working-directory": HOST}).exit_code == 0


def test_the_runners_temporary_folder_may_be_used(runner: Runner) -> None:
    temporary = runner.folder / "runner_temp"
    (runner.workspace / "current_run.jsonl").rename(temporary / "run.jsonl")
    result = runner.run({"run": str(temporary / "run.jsonl"), "comment-body-file": str(temporary / "body.md")})
    assert result.exit_code == 0
    assert (temporary / "body.md").read_text().startswith("### ✅")


def refused(runner: Runner, inputs: dict[str, str]) -> Result:
    """Run it and see that it was refused, reported everywhere, and that nothing else in or beside it changed."""
    before = {name: data for name, data in files_in(runner.folder).items() if name.startswith(("workspace", "home"))}
    result = runner.run(inputs)
    after = {name: data for name, data in files_in(runner.folder).items() if name.startswith(("workspace", "home"))}
    assert result.exit_code == 2
    for name, path in REPORTS.items():
        written = after.pop(f"workspace/{path}", b"")
        if {name, "working-directory"} & inputs.keys():
            assert f"workspace/{path}" not in after
        else:
            assert "leads out of the workspace" in shown_in(written)
    for path in [path for name, path in inputs.items() if name in OUTPUTS and f"workspace/{path}" in before]:
        assert "leads out of the workspace" in shown_in(after.pop(f"workspace/{path}"))  # in place of the link itself
        assert before.pop(f"workspace/{path}")
        assert not (runner.workspace / path).is_symlink()
    assert after == before
    assert "leads out of the workspace" in result.log
    assert "leads out of the workspace" in result.summary
    assert "leads out of the workspace" in runner.github.bodies()[0]
    return result


def shown_in(report: bytes) -> str:
    """Return the text of a report without what Markdown needs."""
    return report.decode().replace("&#8203;", "").replace("\\", "")


REPORTS = {"report-md": "report.md", "report-json": "report.json", "junit": "junit.xml"}
INPUTS = ["golden", "run", "baseline", "config"]
OUTPUTS = ["report-md", "report-json", "junit", "report-html", "comment-body-file"]
OUTSIDE = ["../home/x.jsonl", "/etc/hostname", "/etc/nowhere", "sub/../../home/x.jsonl", "out/x.jsonl", "link"]


@pytest.fixture
def leaky(runner: Runner) -> Runner:
    """A workspace with links that lead out of it, to files that could be read."""
    (runner.workspace / "sub").mkdir()
    home = runner.folder / "home"
    (home / "x.jsonl").write_text((runner.workspace / "golden.jsonl").read_text())
    scenarios.passing(home)
    (runner.workspace / "out").symlink_to(home)
    (runner.workspace / "link").symlink_to("/etc/hostname")
    return runner


@pytest.mark.parametrize("path", OUTSIDE)
@pytest.mark.parametrize("name", INPUTS + OUTPUTS)
def test_nothing_outside_of_the_workspace_is_read_or_written(leaky: Runner, name: str, path: str) -> None:
    result = refused(leaky, {name: path})
    hostname = Path("/etc/hostname").read_text().strip()
    assert f"{path}: leads out" in result.log
    assert not hostname or hostname not in result.log
    assert "did you mean" not in result.log


@pytest.mark.parametrize("path", ["..", "/etc", "out", "sub/../../home", "/"])
def test_no_working_directory_leads_out_of_the_workspace(leaky: Runner, path: str) -> None:
    result = refused(leaky, {"working-directory": path})
    assert "input working-directory: " in result.log


@pytest.mark.parametrize("pattern", ["../home/*.jsonl", "out/*.jsonl", "o*/x.jsonl", "out/**/x.jsonl", "/etc/*"])
def test_no_pattern_leads_out_of_the_workspace(leaky: Runner, pattern: str) -> None:
    refused(leaky, {"golden": pattern})


def test_a_pattern_for_all_folders_goes_through_no_link(leaky: Runner) -> None:
    result = leaky.run({"golden": "**/x.jsonl"})
    assert result.exit_code == 2
    assert "**/x.jsonl: no file matches this pattern" in result.log


@pytest.mark.parametrize("name", ["baseline.json", "ragcontract.yml"])
def test_a_file_that_is_found_by_its_default_name_may_not_lead_out_either(runner: Runner, name: str) -> None:
    (runner.workspace / name).symlink_to("/etc/hostname")
    refused(runner, {})


def test_a_report_that_is_a_link_is_not_written_through(runner: Runner) -> None:
    secret = runner.folder / "home" / "profile"
    secret.write_text("mine")
    (runner.workspace / "link.md").symlink_to(secret)
    refused(runner, {"report-md": "link.md"})
    assert secret.read_text() == "mine"


@pytest.mark.parametrize("name", ["golden.jsonl", "current_run.jsonl", "report.json", "./junit.xml"])
def test_the_body_file_overwrites_no_input_and_no_report(runner: Runner, name: str) -> None:
    before = files_in(runner.workspace)
    result = runner.run({"comment-body-file": name})
    assert result.exit_code == 2
    assert f"{Path(name)}: is an" in result.log
    after = files_in(runner.workspace)
    report = msgspec.json.decode(after.pop("report.json"), type=ErrorReport)
    assert b"is an" in after.pop("report.md")
    assert b"is an" in after.pop("junit.xml")
    assert [problem.partition(": ")[0] for problem in report.problems] == [str(Path(name))]
    assert after == before


def test_the_body_file_is_relative_to_the_working_directory(runner: Runner) -> None:
    (runner.workspace / "sub").mkdir()
    scenarios.passing(runner.workspace / "sub")
    assert runner.run({"working-directory": "sub", "comment-body-file": "body.md"}).exit_code == 0
    assert (runner.workspace / "sub/body.md").exists()


def test_a_working_directory_with_a_name_too_long_is_reported(runner: Runner) -> None:
    assert runner.run({"working-directory": "n" * 5000}).exit_code == 2


def test_a_link_that_leads_to_itself_is_reported(runner: Runner) -> None:
    for name in (*INPUTS, *OUTPUTS, "working-directory"):
        (runner.workspace / "loop").unlink(missing_ok=True)
        (runner.workspace / "loop").symlink_to("loop")
        assert runner.run({name: "loop"}).exit_code == 2, name
