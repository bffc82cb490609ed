"""A history in a folder of the workspace, in the action: where it may be, whose it is; GitHub is not needed."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import scenarios
from tests.github.standin import Fault, GitHub
from tests.history.action_jobs import Job, is_of_history, messages, notes_of, pull_request, push, report_of
from tests.process import files_in
from tests.runner import SHA, InProcess

HOST = "/home/runner/work/app/app"  # the workspace on the runner
IN_FOLDER = {"history": "past", "name": "docs"}
ENTRY = f"entries/docs/2026-01/20260102T000000Z-{SHA[:12]}-100-1.json"


@pytest.fixture
def runner(tmp_path: Path, github: GitHub) -> InProcess:
    runner = InProcess(tmp_path, github)
    scenarios.passing(runner.workspace)
    return runner


def test_a_check_is_recorded_in_the_folder_and_the_next_one_reads_it(runner: InProcess, github: GitHub) -> None:
    result = push().run(runner, IN_FOLDER)
    folder = runner.workspace / "past"
    assert result.exit_code == 0
    assert result.outputs["history-entry"] == Path(ENTRY).stem
    assert result.log.splitlines()[-1] == f"Recorded: {ENTRY} in past"
    assert {"README.md", ENTRY} < files_in(folder).keys()
    assert not [sent for sent in github.sent if is_of_history(sent)]
    again = push().run(runner, IN_FOLDER, run=101)
    assert report_of(runner)["history"] == {"branch": "main", "entries": 1}
    assert len(list(folder.glob("entries/docs/*/*.json"))) == 2
    assert again.outputs["history-entry"] != result.outputs["history-entry"]


PLACES: dict[str, tuple[dict[str, str], str]] = {
    "a path in the working directory": ({"history": "past", "working-directory": "rag"}, "rag/past"),
    "a path that leads up from it": ({"history": "../past", "working-directory": "rag"}, "past"),
    "a path on the runner": ({"history": f"{HOST}/deep/past"}, "deep/past"),
    "a working directory on the runner": ({"history": "past", "working-directory": f"{HOST}/rag"}, "rag/past"),
    "the workspace itself": ({"history": "."}, ""),
}


@pytest.mark.parametrize(("inputs", "place"), PLACES.values(), ids=PLACES.keys())
def test_the_folder_is_found_as_the_other_paths_are(runner: InProcess, inputs: dict[str, str], place: str) -> None:
    (runner.workspace / "rag").mkdir()
    scenarios.passing(runner.workspace / "rag")
    result = push().run(runner, {"name": "docs"} | inputs)
    assert result.exit_code == 0, result.log
    assert (runner.workspace / place / ENTRY).is_file(), sorted(files_in(runner.workspace))


def test_the_temporary_folder_of_the_runner_may_have_it(runner: InProcess) -> None:
    folder = runner.folder / "runner_temp" / "past"
    assert push().run(runner, IN_FOLDER | {"history": str(folder)}).exit_code == 0
    assert (folder / ENTRY).is_file()


def test_what_is_written_belongs_to_the_owner_of_the_workspace_and_the_rest_to_whom_it_did(runner: InProcess) -> None:
    owner = (1001, 121) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
    os.chown(runner.workspace, *owner)
    own = runner.workspace / "past" / "README.md"
    own.parent.mkdir()
    own.write_text("ours")
    before = own.stat()
    assert push().run(runner, IN_FOLDER | {"history": "past"}).exit_code == 0
    assert (own.stat().st_uid, own.stat().st_gid, own.read_text()) == (before.st_uid, before.st_gid, "ours")
    made = [path for path in (runner.workspace / "past").rglob("*") if path != own]
    assert any(path.suffix == ".jsonl" for path in made)
    assert any(path.suffix == ".json" for path in made)
    for path in made:
        assert (path.stat().st_uid, path.stat().st_gid) == owner, path


def linked(runner: InProcess, path: str, to: Path) -> None:
    (runner.workspace / path).parent.mkdir(parents=True, exist_ok=True)
    (runner.workspace / path).symlink_to(to)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("name", ["README.md", "entries", "results"])
def test_a_link_in_the_folder_gives_nothing_away_that_it_leads_to(runner: InProcess, name: str) -> None:
    os.chown(runner.workspace, 1001, 121)
    away = runner.folder / "home" / "secret"
    if name == "README.md":
        away.write_text("x")
    else:
        away.mkdir()
    linked(runner, f"past/{name}", away)
    result = push().run(runner, IN_FOLDER)
    assert result.exit_code == 0
    assert away.stat().st_uid == 0
    assert name == "README.md" or list(away.iterdir()) == []
    refused = f"past/{name}: is not a folder, and links are not followed; delete it"
    expected = [] if name == "README.md" else [f"This run could not be recorded: {refused}"]
    assert messages(result, "warning") == expected


def is_a_link(runner: InProcess) -> str:
    linked(runner, "past", runner.workspace / "other")
    return "past"


def is_behind_a_link(runner: InProcess) -> str:
    (runner.workspace / "other").mkdir()
    linked(runner, "link", runner.workspace / "other")
    return "link/past"


def is_outside(_runner: InProcess) -> str:
    return "../home/past"


def is_elsewhere(_runner: InProcess) -> str:
    return "/etc/past"


def is_behind_a_link_to_the_outside(runner: InProcess) -> str:
    linked(runner, "past", runner.folder / "home")
    return "past"


def is_in_git(runner: InProcess) -> str:
    (runner.workspace / ".git").mkdir()
    return ".git/past"


def is_a_file(runner: InProcess) -> str:
    (runner.workspace / "past").write_text("x")
    return "past"


def is_a_pipe(runner: InProcess) -> str:
    os.mkfifo(runner.workspace / "past")
    return "past"


LINK = "is a symbolic link, or behind one; the action writes through none, so name another file"
OUTSIDE = "leads out of the workspace; the action reads and writes nothing outside of it"
REFUSED: list[tuple[Callable[[InProcess], str], str]] = [
    (is_a_link, LINK),
    (is_behind_a_link, LINK),
    (is_outside, OUTSIDE),
    (is_elsewhere, OUTSIDE),
    (is_behind_a_link_to_the_outside, OUTSIDE),
    (is_in_git, "is in .git; name a file outside of it"),
    (is_a_file, "is a file; name a folder, or branch"),
    (is_a_pipe, "is not a regular file; name another file"),
]


@pytest.mark.parametrize(("prepare", "why"), REFUSED, ids=[prepare.__name__ for prepare, _ in REFUSED])
@pytest.mark.parametrize("job", [push(), pull_request()])
def test_a_folder_that_must_not_be_written_is_an_input_error(
    runner: InProcess, prepare: Callable[[InProcess], str], why: str, job: Job
) -> None:
    path = prepare(runner)
    before = files_in(runner.folder / "home")
    result = job.run(runner, IN_FOLDER | {"history": path})
    assert (result.exit_code, result.outputs["verdict"]) == (2, "error")
    assert messages(result, "error") == [f"input history: {path}: {why}"]
    assert files_in(runner.folder / "home") == before
    assert not list(runner.workspace.rglob("entries"))


@pytest.mark.parametrize("name", ["github:", "github:octo/app@x", "ftp://me:secret@rag.example.com", "s3://x/y"])
def test_what_names_another_store_is_no_folder(runner: InProcess, name: str) -> None:
    result = push().run(runner, IN_FOLDER | {"history": name})
    assert (result.exit_code, messages(result, "error")) == (
        2,
        ["input history: expected branch, the path of a folder, or https://… of a team service"],
    )
    assert "secret" not in result.log
    assert {path.name for path in runner.workspace.iterdir() if path.is_dir()} == set()


@pytest.mark.parametrize("branch", ["../x", "a b", "x.lock", "-x", "ref:x"])
def test_a_name_that_no_branch_can_have_is_an_input_error(runner: InProcess, branch: str) -> None:
    result = push().run(runner, {"history": "branch", "history-branch": branch})
    assert result.exit_code == 2
    assert messages(result, "error") == [f"input history-branch: {branch!r} is not a valid name for a history branch"]
    assert not [sent for sent in runner.github.sent if is_of_history(sent)]


@pytest.mark.parametrize(
    ("inputs", "problem"),
    [
        ({"history": "branch", "history-branch": "main"}, "input history-branch: main is a branch of the code"),
        ({"history": "rag-contract-history"}, "input history: rag-contract-history is the name of the branch"),
    ],
)
def test_a_branch_in_the_wrong_place_is_an_input_error(runner: InProcess, inputs: dict[str, str], problem: str) -> None:
    result = push().run(runner, inputs)
    assert result.exit_code == 2
    assert [message.partition(";")[0] for message in messages(result, "error")] == [problem]


def test_a_folder_with_a_very_long_name_changes_no_verdict(runner: InProcess) -> None:
    result = push().run(runner, IN_FOLDER | {"history": "x" * 5_000})
    assert (result.exit_code, result.outputs["verdict"]) == (0, "pass")
    assert notes_of(runner)[0].startswith("Trend not shown: ")
    [warning] = messages(result, "warning")
    assert warning.startswith("This run could not be recorded: ")


def test_a_github_that_takes_all_of_the_time_does_not_keep_a_folder_from_being_written(
    runner: InProcess, github: GitHub
) -> None:
    github.add_pull(7, sha=SHA)
    github.faults = [Fault(path="/comments", status=429, message="slow down", headers={"Retry-After": "149"})]
    github.meanwhile = lambda sent: runner.waits.append(200) if "/comments" in sent.path else None
    result = push().run(runner, IN_FOLDER)
    assert "The comment could not be posted" in result.log
    assert (runner.workspace / "past" / ENTRY).is_file()


def test_without_a_token_a_folder_is_read_and_written(runner: InProcess, github: GitHub) -> None:
    for run in (100, 101):
        result = push().run(runner, IN_FOLDER | {"github-token": "", "comment": "never"}, run=run)
        assert (result.exit_code, messages(result, "warning"), notes_of(runner)) == (0, [], [])
    assert report_of(runner)["history"]["entries"] == 1
    assert github.requests == []


def test_the_commits_of_a_baseline_in_a_folder_are_asked_for(runner: InProcess, github: GitHub) -> None:
    first, second = (github.repository.commit("main", {"a": b"%d" % number}) for number in range(2))
    assert push(first).run(runner, IN_FOLDER).exit_code == 0
    inputs = IN_FOLDER | {"baseline": "history:last-pass"}
    assert push(second).run(runner, inputs, run=101).exit_code == 0
    assert report_of(runner)["history"]["baseline"]["commit"] == first
    assert [request for request in github.requests if "/commits?" in request]
    github.faults = [Fault(path="/commits", status=403, message="Resource not accessible by integration")]
    assert push(second).run(runner, inputs, run=102).exit_code == 2
