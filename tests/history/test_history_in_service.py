"""The commands of a history and the action, with a team service as the store."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import select

from ragcontract.core import bounds
from ragcontract.history.copy_and_prune import Copied, copy
from ragcontract.history.folder import Folder
from ragcontract.history.interface import Store
from ragcontract.service.blobs import blob
from ragcontract.service.database import Database
from ragcontract.service.tables import projects, runs
from tests import scenarios
from tests.builders import golden, run, write_jsonl
from tests.github.standin import TOKEN, GitHub
from tests.history.action_jobs import messages, notes_of, pull_request, push, recorded, report_of
from tests.history.entries import FIRST, RUN, new_entry
from tests.history.entries import runs as runs_of
from tests.history.jobs_at_once import Job
from tests.history.repository import git, new_repository
from tests.history.test_levels_in_action import LEVEL, QUERIES, scene
from tests.needs import require
from tests.net.service import Reply, Service, refused
from tests.process import rag_contract
from tests.runner import ROOT, SHA, AsProcess, InProcess
from tests.service.running import Running, running

JOBS = 20


@pytest.fixture
def service(database: Database) -> Iterator[Running]:
    with running(database) as service:
        yield service


# Commands


@pytest.fixture
def folder(tmp_path: Path, service: Running, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a contract that holds, whose commands use the service."""
    new_repository(tmp_path, monkeypatch)
    for name, value in service.environ.items():
        monkeypatch.setenv(name, value)
    git("commit", "-q", "--allow-empty", "-m", "first")
    contract()
    return Path.cwd()


def contract(second: str = "doc2", config: str = "minimums: {mrr_at_k: 0.4}\n") -> None:
    write_jsonl(Path("golden.jsonl"), [golden("q1", "doc1"), golden("q2", "doc2")])
    write_jsonl(Path("current_run.jsonl"), [run("q1", "doc1"), run("q2", second)])
    Path("ragcontract.yml").write_text(config)


def added(*options: str) -> str:
    """Check and record; return what `history add` prints."""
    assert rag_contract("check", "--name", "docs").code in {0, 1}
    ended = rag_contract("history", "add", *options)
    assert ended.code == 0, ended.err
    return ended.out + ended.err


def stored(database: Database, column: str) -> bytes | None:
    """Return the blob that the only run names."""
    with database.read() as connection:
        sha256 = connection.execute(select(runs.c[column])).scalar_one()
        return blob(connection, sha256) if sha256 else None


def test_a_check_is_recorded_with_its_report_and_its_contract(folder: Path, database: Database) -> None:
    assert added().startswith("recorded entries/docs/")
    assert rag_contract("history", "add").out.startswith("already recorded: entries/docs/")
    assert stored(database, "report") == (folder / "report.json").read_bytes()
    of_day = {"golden": [Path("golden.jsonl").read_text()], "config": Path("ragcontract.yml").read_text()}
    assert json.loads(stored(database, "golden") or b"") == of_day
    with database.read() as connection:
        assert connection.execute(select(projects.c.slug, projects.c.branch)).all() == [("docs", "main")]


def test_a_private_check_is_recorded_without_them(folder: Path, database: Database) -> None:  # noqa: ARG001
    assert added("--no-answers").startswith("recorded ")
    assert (stored(database, "report"), stored(database, "golden")) == (None, None)
    assert b"golden question" not in (stored(database, "results") or b"")


def test_what_is_too_large_for_the_service_is_left_out_with_a_warning(
    folder: Path,  # noqa: ARG001
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert rag_contract("check", "--name", "docs").code == 0
    smaller = SimpleNamespace(BLOB=Path("golden.jsonl").stat().st_size - 1, REPORT=bounds.REPORT)
    monkeypatch.setattr("ragcontract.history.service_files.bounds", smaller)  # which the service keeps as they are
    ended = rag_contract("history", "add")
    assert ended.code == 0, ended.err
    without = "the service gets the entry without it"
    assert f"the contract of this run: golden.jsonl: is larger than 0 MiB; {without}" in ended.err
    assert (stored(database, "report") is None, stored(database, "golden")) == (False, None)


def test_contracts_without_a_name_share_a_project_which_is_said(folder: Path, service: Running) -> None:  # noqa: ARG001
    assert rag_contract("check").code == 0
    ended = rag_contract("history", "add")
    assert (ended.code, ended.out.startswith("recorded entries/_default/")) == (0, True), ended.err
    assert "the contract has no name; in the service, all such contracts share one project" in ended.err


def test_the_gate_of_one_of_several_repositories_names_its_contracts(folder: Path, service: Running) -> None:  # noqa: ARG001
    added()
    git("commit", "--allow-empty", "--quiet", "-m", "of the other repository")
    assert rag_contract("check", "--name", "other").code == 0
    assert rag_contract("history", "add").code == 0
    ended = rag_contract("history", "gate", "HEAD")
    assert (ended.code, "name those of this repository with --contract" in ended.err) == (2, True), ended
    assert rag_contract("history", "gate", "HEAD", "--contract", "other") == (0, "other: pass\n", "")


def test_what_is_recorded_is_shown_and_compared_with(folder: Path) -> None:  # noqa: ARG001
    commit = git("rev-parse", "HEAD")
    added()
    (entry,) = json.loads(rag_contract("history", "show", "--format", "json").out)["entries"]
    assert entry["source"]["commit"] == commit
    assert rag_contract("history", "page").code == 0
    assert commit[:7] in Path("history.html").read_text()
    assert rag_contract("history", "gate", "HEAD")[:2] == (0, "docs: pass\n")
    contract("x", "fail_on: {mrr_drop_gt: 0.1}\n")
    ended = rag_contract("check", "--name", "docs", "--baseline", "history:last-pass")
    assert ended.code == 1, ended.err
    assert json.loads(Path("report.json").read_text())["history"]["baseline"]["id"] == entry["id"]
    assert "1 worse, 0 better, 1 the same" in rag_contract("diff", "--baseline", "history:last-pass").out


def test_result_sets_cannot_be_pruned(folder: Path, service: Running) -> None:  # noqa: ARG001
    ended = rag_contract("history", "prune")
    kept = "the service keeps result sets as long as their runs"
    assert (ended.code, ended.err) == (2, f"error: {service.url}: {kept}\n")


WRITERS = """
import os, sys
import ragcontract.cli.commands.history, ragcontract.history.service_store  # once, not in each job
from ragcontract.cli.main import main

url, jobs = sys.argv[1], int(sys.argv[2])
children = []
for number in range(jobs):
    child = os.fork()
    if child == 0:
        os.environ["GITHUB_RUN_ID"] = str(1_000 + number)
        code = 70
        try:
            code = main(["history", "add", "--history", url])
        finally:
            os._exit(code)
    children.append(child)
sys.exit(any([os.waitpid(child, 0)[1] for child in children]))
"""


def test_twenty_jobs_that_record_at_once_twice_make_twenty_entries(folder: Path, service: Running) -> None:
    assert rag_contract("check", "--name", "docs").code == 0
    ci = {"GITHUB_ACTIONS": "true", "GITHUB_SHA": SHA, "GITHUB_REF_NAME": "main", "PYTHONPATH": str(ROOT)}
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", WRITERS, service.url, str(JOBS)],
            cwd=folder,
            env=dict(os.environ) | ci,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        store = service.store()
        assert store.contracts() == ["docs"]
        ids = store.ids("docs", store.months("docs"))
        assert sorted(entry_id.run_id for entry_id in ids) == [1_000 + number for number in range(JOBS)]
        assert len(store.read("docs", ids)) == JOBS
        assert len(store.result_sets()) == 1


# Copies


def whole(store: Store) -> dict[str, bytes | None]:
    """Return all entries and result sets of a store."""
    entries = {
        f"{contract}/{name}": content
        for contract in store.contracts()
        for name, content in store.read(contract, store.ids(contract, store.months(contract))).items()
    }
    return entries | {sha256: store.results(sha256) for sha256 in store.result_sets()}


def copied(**counts: int) -> Copied:
    nothing = dict.fromkeys(("entries", "result_sets", "present", "other_versions", "faulty"), 0)
    return Copied(**(nothing | counts), warnings=())


def test_a_copy_from_a_branch_to_the_service_and_to_a_folder_has_the_same_bytes(
    service: Running, github: GitHub, tmp_path: Path
) -> None:
    require("npm")
    branch, end = Job(github).branch, Folder(str(tmp_path / "end"))
    for entry in (
        *runs_of(12),
        *runs_of(3, ""),
        new_entry("help", run=RUN + 50),
        new_entry("Läuft das?", run=RUN + 51),
    ):
        branch.add(entry)
    assert copy(Job(github).branch, service.store()) == copied(entries=17, result_sets=12)
    assert copy(service.store(), end) == copied(entries=17, result_sets=12)
    assert whole(end) == whole(service.store()) == whole(Job(github).branch)
    assert copy(Job(github).branch, service.store()) == copied(present=17)
    assert copy(end, service.store()) == copied(present=17)


def test_entries_whose_results_were_pruned_are_copied_without(service: Running, tmp_path: Path) -> None:
    source = Folder(str(tmp_path / "source"))
    entries = runs_of(3)
    for entry in entries:
        source.add(entry)
    gone = entries[0].entry.results
    assert gone is not None
    source.delete_results([gone.sha256])
    assert copy(source, service.store()) == copied(entries=3, result_sets=2)
    assert whole(service.store()) == whole(source)


def test_an_entry_that_the_service_refuses_keeps_no_other_from_being_copied(service: Running, tmp_path: Path) -> None:
    source = Folder(str(tmp_path / "source"))
    first, second = new_entry(), new_entry(run=RUN + 1)
    source.add(first)
    source.add(second)
    service.store().add(new_entry(at=FIRST + timedelta(seconds=9)))
    result = copy(source, service.store())
    assert (result.entries, result.faulty, len(result.warnings)) == (1, 1, 1)
    assert "this run has already recorded another check" in result.warnings[0]


# The action


class Runner(InProcess):
    """Jobs with the key of the service."""

    key = ""

    def _environ(self, *arguments: Any) -> dict[str, str]:
        return super()._environ(*arguments) | {"RAG_CONTRACT_TOKEN": self.key}


@pytest.fixture
def runner(tmp_path: Path, github: GitHub) -> Runner:
    require("npm")
    runner = Runner(tmp_path / "runner", github)
    scenarios.passing(runner.workspace)
    return runner


def inputs(url: str, **more: str) -> dict[str, str]:
    return {"history": url, "name": "docs"} | more


def test_a_job_records_in_the_service_and_the_next_ones_compare_with_it(
    runner: Runner,
    service: Running,
    database: Database,
    github: GitHub,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runner.key = service.key
    first = github.repository.commit("main", {"app.py": b"1"})
    result = recorded(runner, first, inputs=inputs(service.url), run=1)
    entry = result.outputs["history-entry"]
    assert result.log.splitlines()[-1] == f"Recorded: entries/docs/2026-01/{entry}.json in {service.url}"
    assert stored(database, "report") == (runner.workspace / "report.json").read_bytes()
    assert json.loads(stored(database, "golden") or b"")["golden"] == [(runner.workspace / "golden.jsonl").read_text()]
    scenarios.failing(runner.workspace)
    github.repository.branches["topic"] = first
    merged = github.repository.merge(first, github.repository.commit("topic", {"app.py": b"2"}))
    github.add_pull(7, sha="b" * 40)
    (runner.workspace / "ragcontract.yml").write_text("fail_on: {mrr_drop_gt: 0.1}\n")
    result = pull_request(merged).run(runner, inputs(service.url, baseline="history:last-pass"), run=2)
    assert (result.exit_code, result.outputs["verdict"]) == (1, "fail"), result.log
    assert report_of(runner)["history"]["baseline"]["id"] == entry
    assert len(service.store().ids("docs", ["2026-01"])) == 1
    assert not [sent for sent in github.sent if service.key in json.dumps([sent.path, sent.body, [*sent.headers]])]
    assert service.key not in result.log
    for name, value in service.environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    monkeypatch.setenv("GITHUB_REPOSITORY", "octo/app")
    monkeypatch.setenv("GITHUB_API_URL", github.url)
    github.sent.clear()
    assert rag_contract("history", "gate", first, "--contract", "docs", "--status")[:2] == (0, "docs: pass\n")
    assert [(sent.path, sent.body["state"]) for sent in github.sent] == [
        (f"/repos/octo/app/statuses/{first}", "success")
    ]


def test_a_limit_on_a_level_is_judged_by_the_runs_in_the_service(
    runner: Runner, service: Running, github: GitHub
) -> None:
    runner.key = service.key
    for number in range(10):
        sha = github.repository.commit("main", {"app.py": b"%d" % number})
        recorded(runner, sha, scenario=partial(scene, right=QUERIES), inputs=inputs(service.url), run=number + 1)
    merged = github.repository.merge(sha, github.repository.commit("topic", {"app.py": b"worse"}))
    github.add_pull(7, sha="b" * 40)
    for right, exit_code in ((QUERIES, 0), (QUERIES - 2, 1)):
        scene(runner.workspace, right, LEVEL)
        assert pull_request(merged).run(runner, inputs(service.url), run=900).exit_code == exit_code
        (gate,) = report_of(runner)["gates"]
        assert (gate["id"], gate["level"]["runs"]) == ("history.mrr_drop_gt", 10)


def test_a_private_job_sends_neither_report_nor_contract(
    runner: Runner,
    service: Running,
    database: Database,
) -> None:
    runner.key = service.key
    recorded(runner, inputs=inputs(service.url, **{"no-answers": "true"}))
    assert (stored(database, "report"), stored(database, "golden")) == (None, None)


NO_KEY = (
    "the step has no RAG_CONTRACT_TOKEN: set it under `env`, from a secret; a pull request from a fork has no secrets"
)


def test_the_pull_request_of_a_fork_has_no_key_and_gets_its_verdict(runner: Runner) -> None:
    with Service() as service:
        result = pull_request(head="stranger/app").run(runner, inputs(service.url))
        assert (result.exit_code, notes_of(runner)) == (0, [f"Trend not shown: history: {NO_KEY}"])
        result = pull_request().run(runner, inputs(service.url, baseline="history:last-pass"))
        assert (result.exit_code, messages(result, "error")) == (2, [f"history: {NO_KEY}"])
    assert service.requests == []


def test_a_push_without_a_key_is_not_recorded(runner: Runner) -> None:
    result = push().run(runner, inputs("https://rag.example.com"))
    assert (result.exit_code, messages(result, "warning")) == (
        0,
        [f"This run could not be recorded: history: {NO_KEY}"],
    )


KEY = f"rc_1a2b3c4d_{'Zq9' * 14}x"
ON_MAIN = {"GITHUB_REF": "refs/heads/main", "GITHUB_REF_NAME": "main"}
FAILURES = {
    "refuses": Reply(status=403, content={"title": "x", "status": 403, "detail": "no"}),
    "is down": Reply(status=503, content=b""),
    "is another site": Reply(content=b"<html>"),
    "hangs": Reply(kind="hang"),
    "drips": Reply(kind="drip body"),
}


@pytest.mark.parametrize("reply", FAILURES.values(), ids=FAILURES.keys())
def test_a_service_that_fails_changes_no_verdict(runner: Runner, reply: Reply) -> None:
    runner.key = KEY
    with Service(reply) as service:
        result = push().run(runner, inputs(service.url, **{"github-timeout": "3", "comment": "never"}))
    assert (result.exit_code, result.outputs["verdict"], result.outputs.get("history-entry")) == (0, "pass", None)
    (note,), (warning,) = notes_of(runner), messages(result, "warning")
    assert note.startswith(("Trend not shown: http://127.0.0.1:", "Trend not shown: history: the team service did not"))
    assert warning.startswith("This run could not be recorded: ")
    assert "Zq9Zq9" not in result.log
    assert {request.headers["authorization"] for request in service.requests} == {f"Bearer {KEY}"}


def test_the_process_of_the_check_has_the_key_and_no_token_is_sent_with_it(tmp_path: Path, github: GitHub) -> None:
    runner = AsProcess(tmp_path / "runner", github)
    scenarios.passing(runner.workspace)
    with Service(Reply(status=403, content={"status": 403})) as service:
        push().run(runner, inputs(service.url), environ={"RAG_CONTRACT_TOKEN": f" {KEY}\n"} | ON_MAIN)
    assert {request.headers["authorization"] for request in service.requests} == {f"Bearer {KEY}"}
    assert not [request for request in service.requests if TOKEN.encode() in request.body]


def test_where_nothing_listens_a_needed_history_is_an_error(runner: Runner) -> None:
    runner.key = KEY
    url = refused()
    result = pull_request().run(runner, inputs(url, baseline="history:last-pass"))
    assert result.exit_code == 2
    assert messages(result, "error")[0].startswith(f"{url}: the connection was refused, or there is no such host")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (
            "https://me:secret@rag.example.com",
            "has a user name or a password in it; give the key in RAG_CONTRACT_TOKEN",
        ),
        ("http://rag.example.com", "would get the key without encryption; use https://"),
        ("https://rag.example.com?secret", "paths are added to the address; leave out what begins with ? or #"),
    ],
)
def test_an_address_that_no_service_may_have_is_an_input_error(runner: Runner, name: str, why: str) -> None:
    runner.key = KEY
    result = push().run(runner, inputs(name))
    host = name.partition("://")[0] + "://rag.example.com"
    assert (result.exit_code, messages(result, "error")) == (2, [f"input history: {host}: {why}"])
    assert "secret" not in result.log.replace("from a secret", "")


def test_an_address_without_its_scheme_is_not_taken_for_a_folder(runner: Runner) -> None:
    runner.key = KEY
    result = push().run(runner, inputs("rag.example.com"))
    expected = "begin the address of a team service with https://, or the path of a folder with ./"
    assert (result.exit_code, messages(result, "error")) == (2, [f"input history: rag.example.com: {expected}"])
    assert not (runner.workspace / "rag.example.com").exists()
