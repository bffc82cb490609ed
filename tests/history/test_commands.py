"""The commands that look at a history: show, gate, copy and prune, and runs that are entries."""

import json
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragcontract.history.folder import Folder
from tests.builders import baseline, golden, run, write_jsonl
from tests.github.standin import TOKEN, Fault, GitHub
from tests.history.entries import FIRST, RUN, new_entry
from tests.history.repository import git, new_repository
from tests.process import rag_contract

HISTORY = "../history"
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new_repository(tmp_path, monkeypatch)
    write_jsonl(Path("golden.jsonl"), [golden("q1", "doc1"), golden("q2", "doc2")])
    Path(".gitignore").write_text("current_run.jsonl\nreport.*\njunit.xml\n")
    times = (NOW + timedelta(minutes=number) for number in range(10_000))
    monkeypatch.setattr("ragcontract.cli.commands.check.clock", lambda: next(times))
    monkeypatch.setattr("ragcontract.cli.commands.history.clock", lambda: NOW + timedelta(days=1))


def commit(*documents: str, name: str = "docs", passes: bool = True) -> str:
    """Commit something, record a check of a run that found these documents, and return the commit."""
    count = int(git("rev-list", "--all", "--count") or 0)
    Path("file").write_text(str(count))
    git("add", "-A")
    git("commit", "-qm", f"commit {count}")
    check(*documents, name=name, passes=passes)
    return git("rev-parse", "HEAD")


def check(*documents: str, name: str = "docs", passes: bool = True) -> str:
    """Record a check of the commit that is checked out; return the id of its entry."""
    write_jsonl(Path("current_run.jsonl"), [run(f"q{number}", doc) for number, doc in enumerate(documents, 1)])
    ended = rag_contract("check", "--name", name)
    assert ended.code == (0 if passes else 1)
    ended = rag_contract("history", "add", "--history", HISTORY)
    assert ended.code == 0, ended
    return Path(ended.out.split()[-1]).stem


def shown(*argv: str) -> Any:
    """Return what show prints as JSON."""
    ended = rag_contract("history", "show", "--history", HISTORY, "--format", "json", *argv)
    assert ended.code == 0, ended
    return json.loads(ended.out)


def lines(*argv: str) -> list[str]:
    """Return what a command prints, without times."""
    ended = rag_contract("history", *argv, "--history", HISTORY)
    assert (ended.code, ended.err) == (0, ""), ended
    return [line.replace("2026-11-21", "today") for line in ended.out.splitlines()]


def test_show_lists_the_runs_newest_first() -> None:
    Path("ragcontract.yml").write_text("minimums: {mrr_at_k: 0.5}\n")
    first, second = commit("doc1", "doc2"), commit("doc1", "x", passes=False)
    listed = lines("show")
    assert [line.split()[0] for line in listed[:1]] == ["when"]
    assert [line.split()[2:] for line in listed[1:3]] == [
        [second[:7], "fail", "0.500", "1"],
        [first[:7], "pass", "1.000", "0"],
    ]
    assert listed[-1] == "MRR@5  █▁  1.000 → 0.500"


def test_show_lists_as_many_runs_as_wanted() -> None:
    shas = [commit("doc1", "doc2") for _ in range(3)]
    assert [entry["source"]["commit"] for entry in shown("--last", "2")["entries"]] == [shas[2], shas[1]]


def test_show_has_the_metric_that_is_wanted() -> None:
    commit("doc1", "doc2")
    assert "nDCG@5" in lines("show", "--metric", "ndcg_at_5")[0]
    ended = rag_contract("history", "show", "--history", HISTORY, "--metric", "ndcg_at_6")
    assert ended.code == 2
    assert "--metric ndcg_at_6: no run has this metric; did you mean 'ndcg_at_5'?" in ended.err


def test_show_has_the_runs_of_one_branch() -> None:
    of_main = commit("doc1", "doc2")
    git("checkout", "-q", "-b", "topic")
    of_topic = commit("doc1", "doc2")
    assert [entry["source"]["commit"] for entry in shown("--branch", "topic")["entries"]] == [of_topic]
    assert [entry["source"]["commit"] for entry in shown("--branch", "main")["entries"]] == [of_main]
    ended = rag_contract("history", "show", "--history", HISTORY)
    assert ended.code == 2
    assert "has entries from several branches (main, topic); name one with --branch" in ended.err


def test_show_asks_which_contract_is_meant() -> None:
    commit("doc1", "doc2")
    check("doc1", "doc2", name="Büro")
    ended = rag_contract("history", "show", "--history", HISTORY)
    assert ended.code == 2
    assert "has several contracts (bro-" in ended.err
    assert [entry["contract"] for entry in shown("--contract", "Büro")["entries"]] == ["Büro"]


@pytest.mark.parametrize("name", ["last", "{commit}", "{short}", "{id}", "history:last"])
def test_show_one_run(name: str) -> None:
    commit("doc1", "doc2")
    sha = commit("doc1", "x", passes=False)
    entry = shown("--last", "1")["entries"][0]["id"]
    ref = name.format(commit=sha, short=sha[:7], id=entry)
    assert shown(ref)["id"] == entry
    text = lines("show", ref)
    assert text[0].startswith(entry)
    assert f"commit {sha}, branch main" in text
    assert "verdict: fail" in text
    assert "failed: q2" in text


def test_show_names_the_commit_at_which_a_query_broke() -> None:
    commit("doc1", "doc2")
    held = commit("x,", "doc2", passes=False)
    broke = commit("doc1", "x", passes=False)
    commit("doc1", "x", passes=False)
    text = lines("show", "--query", "q2")
    assert [line.split()[3:] for line in text[1:5]] == [
        ["broken", "doc2", "missing"],
        ["broken", "doc2", "missing"],
        ["pass", "doc2", "1"],
        ["pass", "doc2", "1"],
    ]
    assert text[-1] == f"q2 is broken since {broke[:7]} (today); it last held at {held[:7]} (today)."
    query = shown("--query", "q2")["query"]
    assert (query["broken"], query["since"]["commit"], query["before"]["commit"]) == (True, broke, held)


def test_show_names_the_commit_at_which_a_query_was_fixed() -> None:
    broken = commit("doc1", "x", passes=False)
    fixed = commit("doc1", "doc2")
    assert lines("show", "--query", "q2")[-1] == (
        f"q2 holds since {fixed[:7]} (today); it was last broken at {broken[:7]} (today)."
    )


def test_show_says_when_no_run_was_different() -> None:
    sha = commit("doc1", "x", passes=False)
    assert lines("show", "--query", "q1")[-1] == (
        f"q1 holds in all runs that were read, since {sha[:7]} (today) or earlier."
    )
    assert lines("show", "--query", "q2")[-1] == (
        f"q2 is broken in all runs that were read, since {sha[:7]} (today) or earlier."
    )


def test_a_query_that_is_younger_than_a_run_is_absent_in_it() -> None:
    commit("doc1", "doc2")
    write_jsonl(Path("golden.jsonl"), [golden("q1", "doc1"), golden("q2", "doc2"), golden("q3", "doc3")])
    commit("doc1", "doc2", "doc3")
    assert [each["status"] for each in shown("--query", "q3")["query"]["runs"]] == ["pass", "absent"]


def test_a_query_that_no_run_has_is_an_error() -> None:
    commit("doc1", "doc2")
    ended = rag_contract("history", "show", "--history", HISTORY, "--query", "q9")
    assert (ended.code, ended.err) == (2, "error: --query q9: none of the last 1 run has this query\n")


def test_a_run_can_be_written_as_a_baseline() -> None:
    commit("doc1", "doc2")
    assert rag_contract("history", "show", "last", "--history", HISTORY, "--baseline-out", "b.json").code == 0
    check("doc1", "x", passes=False)
    assert rag_contract("check", "--baseline", "b.json").code == 1
    assert json.loads(Path("report.json").read_text())["broken"]["new"] == 1
    ended = rag_contract("history", "show", "--history", HISTORY, "--baseline-out", "b.json")
    assert "--baseline-out needs REF" in ended.err


def test_diff_score_and_compare_take_entries() -> None:
    commit("doc1", "doc2")
    write_jsonl(Path("current_run.jsonl"), [run("q1", "doc1"), run("q2", "x")])
    ended = rag_contract("diff", "--history", HISTORY, "--baseline", "history:last-pass")
    assert "doc2: 1 -> missing" in ended.out
    ended = rag_contract("score", "--history", HISTORY, "--run", "history:last", "--format", "json")
    assert json.loads(ended.out)["metrics"]["mrr_at_5"] == 1
    ended = rag_contract("compare", "--history", HISTORY, "history:last-pass", "current_run.jsonl", "--format", "json")
    assert ended.code == 0, ended
    assert [each["metrics"]["mrr_at_5"]["mean"] for each in json.loads(ended.out)["runs"]] == [1, 0.5]


@pytest.mark.parametrize(
    "argv",
    [
        ("check", "--baseline", "history:last"),
        ("diff", "--baseline", "history:last"),
        ("score", "--run", "history:last"),
        ("compare", "history:last", "current_run.jsonl"),
    ],
)
def test_an_entry_without_a_history_is_an_error(argv: tuple[str, ...]) -> None:
    write_jsonl(Path("current_run.jsonl"), [run("q1", "doc1"), run("q2", "doc2")])
    ended = rag_contract(*argv)
    error = "error: history:last: is an entry of a history; name the history with --history or RAG_CONTRACT_HISTORY\n"
    assert (ended.code, ended.err) == (2, error)


def test_a_baseline_beside_an_entry_is_an_error() -> None:
    ended = rag_contract(
        "check", "--history", HISTORY, "--baseline", "history:last", "--baseline", "b.json", "--name", "docs"
    )
    assert ended.code == 2
    assert "baseline: history:last is a baseline by itself; name no other beside it" in ended.err


def gate(*argv: str) -> tuple[int, str]:
    ended = rag_contract("history", "gate", *argv, "--history", HISTORY)
    return ended.code, ended.out or ended.err


def test_a_commit_that_passed_passes_the_gate() -> None:
    failed, passed = commit("doc1", "x", passes=False), commit("doc1", "doc2")
    assert gate(passed) == (0, "docs: pass\n")
    assert gate(passed[:7]) == (0, "docs: pass\n")
    assert gate(failed) == (1, "docs: fail\n")


def test_every_contract_must_have_passed() -> None:
    sha = commit("doc1", "doc2")
    check("doc1", "x", name="support", passes=False)
    assert gate(sha) == (1, "docs: pass\nsupport: fail\n")
    assert gate(sha, "--contract", "docs") == (0, "docs: pass\n")


def test_a_contract_without_an_entry_at_the_commit_cannot_be_judged() -> None:
    commit("doc1", "doc2")
    newest = check("doc1", "doc2", name="support")
    sha = commit("doc1", "doc2")
    assert gate(sha) == (2, f"docs: pass\nsupport: no entry at {sha[:7]}; the newest is {newest}\n")
    assert gate(sha, "--contract", "docs", "--contract", "other")[1].endswith(f"other: no entry at {sha[:7]}\n")


def test_the_newest_run_at_the_commit_counts() -> None:
    sha = commit("doc1", "doc2")
    check("doc1", "x", passes=False)
    assert gate(sha) == (1, "docs: fail\n")


def test_what_a_label_accepted_did_not_pass() -> None:
    sha = commit("doc1", "x", passes=False)
    Path("report.json").touch()
    assert rag_contract("history", "add", "--history", "../accepted", "--accepted").code == 0
    ended = rag_contract("history", "gate", sha, "--history", "../accepted")
    assert (ended.code, ended.out) == (1, "docs: fail, accepted by a label\n")


def test_a_run_from_a_dirty_working_tree_does_not_count() -> None:
    sha = commit("doc1", "doc2")
    Path("file").write_text("changed")
    check("doc1", "x", passes=False)
    assert gate(sha) == (0, "docs: pass\n")


def test_only_runs_from_a_dirty_working_tree_are_not_a_pass() -> None:
    commit("doc1", "doc2")
    git("commit", "-q", "--allow-empty", "-m", "next")
    Path("file").write_text("changed")
    sha, entry = git("rev-parse", "HEAD"), check("doc1", "doc2")
    assert gate(sha) == (2, f"docs: all runs at {sha[:7]} are from a dirty working tree, such as {entry}\n")


def test_a_name_of_git_is_a_commit() -> None:
    commit("doc1", "doc2")
    git("tag", "v1")
    assert gate("HEAD") == gate("main") == gate("v1") == (0, "docs: pass\n")


@pytest.mark.parametrize("name", ["topic", "abcdef", "ABCDEF1", "--x"])
def test_what_is_not_a_commit_is_an_error(name: str) -> None:
    commit("doc1", "doc2")
    ended = rag_contract("history", "gate", "--history", HISTORY, "--", name)
    assert ended.code == 2
    assert f"{name}: is not a commit; give at least 7 of its hexadecimal digits" in ended.err


def test_contracts_of_long_ago_need_not_have_passed() -> None:
    sha = commit("doc1", "doc2")
    old = check("doc1", "doc2", name="old")
    day = NOW - timedelta(days=100)
    entry = next(Path(HISTORY).glob("entries/old/*/*.json"))
    new_id = f"{day:%Y%m%dT%H%M%SZ}{old[16:]}"
    moved = entry.parents[1] / f"{day:%Y-%m}" / f"{new_id}.json"
    moved.parent.mkdir()
    moved.write_text(entry.read_text().replace(old, new_id))
    entry.unlink()
    assert gate(sha) == (0, "docs: pass\n")
    assert gate(sha, "--contract", "old") == (0, "old: pass\n")


def test_an_empty_history_is_an_error() -> None:
    assert gate("a" * 40) == (2, f"error: {HISTORY}: there is no such folder\n")
    Path(HISTORY).mkdir()
    nothing = "no contract has an entry from the last 90 days; name one with --contract"
    assert gate("a" * 40) == (2, f"error: {HISTORY}: {nothing}\n")


@pytest.mark.parametrize("argv", [("show",), ("prune",), ("copy", HISTORY, "other")])
def test_a_folder_that_does_not_exist_is_an_error(argv: tuple[str, ...]) -> None:
    options = () if argv[0] == "copy" else ("--history", HISTORY)
    assert rag_contract("history", *argv, *options) == (2, "", f"error: {HISTORY}: there is no such folder\n")


def test_an_existing_file_is_not_overwritten() -> None:
    commit("doc1", "doc2")
    before = Path("golden.jsonl").read_bytes()
    ended = rag_contract("history", "show", "last", "--history", HISTORY, "--baseline-out", "golden.jsonl")
    assert (ended.code, ended.err) == (2, "error: golden.jsonl: exists already; delete it, or name another file\n")
    assert Path("golden.jsonl").read_bytes() == before


def test_a_contract_without_a_name_is_named_as_lists_show_it() -> None:
    sha = commit("doc1", "doc2", name="")
    check("doc1", "x", name="docs", passes=False)
    assert "has several contracts (_default, docs)" in rag_contract("history", "show", "--history", HISTORY).err
    assert [entry["contract"] for entry in shown("--contract", "_default")["entries"]] == [""]
    assert gate(sha) == (1, "the contract without a name: pass\ndocs: fail\n")
    assert gate(sha, "--contract", "_default")[0] == 0


def test_the_run_of_another_commit_is_not_recorded() -> None:
    first = commit("doc1", "doc2")
    git("commit", "-q", "--allow-empty", "-m", "next")
    rows = [run("q1", "doc1", retriever_version=first[:12]), run("q2", "doc2", retriever_version=first[:12])]
    write_jsonl(Path("current_run.jsonl"), rows)
    assert rag_contract("check", "--name", "docs").code == 0
    ended = rag_contract("history", "add", "--history", HISTORY)
    why = f"its run is of the commit {first[:7]}, not of {git('rev-parse', 'HEAD')[:7]}; record the run and check again"
    assert (ended.code, ended.err) == (2, f"error: report.json: {why}\n")


def test_an_entry_that_cannot_be_read_is_not_a_pass() -> None:
    sha = commit("doc1", "doc2")
    entry = next(Path(HISTORY).glob("entries/docs/*/*.json"))
    text = entry.read_text()
    entry.write_text(text.replace('"schema_version": 1', '"schema_version": 7'))
    assert gate(sha)[0] == 2
    entry.write_text(text[:-9])
    assert gate(sha)[0] == 2


STATES = {0: "success", 1: "failure", 2: "error"}


@pytest.mark.parametrize("code", STATES)
def test_the_status_of_the_commit_is_set_once(code: int, github: GitHub, monkeypatch: pytest.MonkeyPatch) -> None:
    first = commit("doc1", "doc2")
    sha = first if code == 0 else commit("doc1", "x", passes=False)
    sha = "a" * 40 if code == 2 else sha
    on_github(github, monkeypatch)
    assert gate(sha, "--status")[0] == code
    posts = [sent for sent in github.sent if sent.method == "POST"]
    assert [sent.path for sent in posts] == [f"/repos/octo/app/statuses/{sha}"]
    body = posts[0].body
    assert (body["state"], body["context"]) == (STATES[code], "rag-contract/release")
    assert body["description"].startswith("docs: ")
    assert len(body["description"]) <= 140


def test_a_status_that_cannot_be_set_is_a_warning(github: GitHub, monkeypatch: pytest.MonkeyPatch) -> None:
    sha = commit("doc1", "doc2")
    on_github(github, monkeypatch)
    github.faults = [Fault(path="statuses", status=403, message="Resource not accessible by integration")]
    ended = rag_contract("history", "gate", sha, "--history", HISTORY, "--status")
    assert ended.code == 0
    assert ended.err == (
        f"warning: --status: the status of {sha} could not be set: GitHub answered 403: Resource not accessible by "
        "integration; it needs `permissions: statuses: write`\n"
    )


def on_github(github: GitHub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the environment name the stand-in as GitHub."""
    monkeypatch.setenv("GITHUB_API_URL", github.url)
    monkeypatch.setenv("GITHUB_GRAPHQL_URL", github.graphql_url)
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    monkeypatch.setenv("GITHUB_REPOSITORY", "octo/app")


def test_a_history_is_copied_to_a_branch_and_used_from_there(github: GitHub, monkeypatch: pytest.MonkeyPatch) -> None:
    sha = commit("doc1", "doc2")
    commit("doc1", "x", passes=False)
    on_github(github, monkeypatch)
    ended = rag_contract("history", "copy", HISTORY, "github:")
    assert (ended.code, ended.out) == (0, "copied 2 entries and 2 result sets; 0 were there already\n")
    ended = rag_contract("history", "copy", HISTORY, "github:")
    assert ended.out == "copied 0 entries and 0 result sets; 2 were there already\n"
    ended = rag_contract("history", "gate", sha, "--history", "github:octo/app@rag-contract-history")
    assert (ended.code, ended.out) == (0, "docs: pass\n")
    ended = rag_contract(
        "check", "--name", "docs", "--history", "github:", "--baseline", "history:last-pass", "--quiet"
    )
    assert f"Compared with main@{sha[:7]}" in ended.out


def test_old_result_sets_are_pruned() -> None:
    for document in ("doc2", "x", "y"):
        commit("doc1", document, passes=document == "doc2")
    ended = rag_contract("history", "prune", "--history", HISTORY, "--keep-results", "1")
    assert (ended.code, ended.out) == (0, f"deleted 2 result sets from {HISTORY}\n")
    assert len(shown()["entries"]) == 3


def test_a_branch_needs_a_token() -> None:
    git("remote", "add", "origin", "git@github.com:org/app.git")
    ended = rag_contract("history", "show", "--history", "github:")
    assert ended == (2, "", "error: history: GitHub needs a token that may read org/app; set GITHUB_TOKEN\n")


def test_an_error_names_the_repository_that_has_the_branch(github: GitHub, monkeypatch: pytest.MonkeyPatch) -> None:
    on_github(github, monkeypatch)
    ended = rag_contract("history", "show", "--history", "github:")
    error = "error: github:octo/app: has no entries yet; `rag-contract history add` records a check\n"
    assert ended == (2, "", error)


def test_help_names_all_commands() -> None:
    ended = rag_contract("history", "--help")
    assert ended.code == 0
    assert [line.split()[0] for line in ended.out.partition("Commands:\n")[2].splitlines()] == [
        "add",
        "copy",
        "gate",
        "page",
        "prune",
        "show",
    ]


def test_without_a_token_a_check_that_needs_no_entry_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    write_jsonl(Path("current_run.jsonl"), [run("q1", "doc1"), run("q2", "doc2")])
    monkeypatch.setenv("GITHUB_REPOSITORY", "octo/app")
    ended = rag_contract("check", "--history", "github:", "--quiet")
    assert ended.code == 0
    note = "Trend not shown: history: GitHub needs a token that may read octo/app; set GITHUB_TOKEN"
    assert note in ended.out
    assert json.loads(Path("report.json").read_text())["history"]["notes"] == [note]
    assert rag_contract("check", "--history", "github:", "--baseline", "history:last").code == 2


def test_a_query_that_was_broken_from_the_start_never_held() -> None:
    commit("doc1", "doc2")
    write_jsonl(Path("golden.jsonl"), [golden("q1", "doc1"), golden("q2", "doc2"), golden("q3", "doc3")])
    first = commit("doc1", "doc2", "x", passes=False)
    commit("doc1", "doc2", "x", passes=False)
    assert lines("show", "--query", "q3")[-1] == f"q3 is broken since {first[:7]} (today), the first run that has it."


def test_an_entry_that_does_not_list_all_broken_queries_says_nothing_of_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    commit("doc1", "doc2")
    broke = commit("doc1", "x", passes=False)
    with monkeypatch.context() as smaller:
        smaller.setattr("ragcontract.core.bounds.ENTRY_FAILED", 1)
        commit("x", "x", passes=False)
    commit("doc1", "x", passes=False)
    text = lines("show", "--query", "q2")
    assert [line.split()[3] for line in text[1:5]] == ["broken", "unknown", "broken", "pass"]
    assert f"q2 is broken since {broke[:7]}" in text[-1]


def test_show_last_asks_for_the_branch_as_the_list_does() -> None:
    commit("doc1", "doc2")
    git("checkout", "-q", "-b", "topic")
    commit("doc1", "doc2")
    assert "has entries from several branches" in rag_contract("history", "show", "last", "--history", HISTORY).err
    assert shown("last", "--branch", "main")["source"]["branch"] == "main"


def test_show_takes_a_run_or_a_query() -> None:
    commit("doc1", "doc2")
    ended = rag_contract("history", "show", "last", "--history", HISTORY, "--query", "q1")
    assert (ended.code, "give one of them" in ended.err) == (2, True)


@pytest.mark.parametrize(
    "argv",
    [
        ("diff", "--baseline", "history:last-pass"),
        ("score", "--run", "history:last-pass"),
        ("compare", "history:last-pass", "current_run.jsonl"),
    ],
)
def test_what_could_not_be_read_and_what_is_not_there_is_said_everywhere(argv: tuple[str, ...]) -> None:
    commit("doc1", "x", passes=False)
    ended = rag_contract(*argv, "--history", HISTORY)
    assert ended.code == 2
    assert "no run of 'docs' with a result set has passed yet" in ended.err
    commit("doc1", "doc2")
    entry = next(Path(HISTORY).glob("entries/docs/*/*.json"))
    entry.write_text(entry.read_text().replace('"schema_version": 1', '"schema_version": 2'))
    commit("doc1", "doc2")
    ended = rag_contract(*argv, "--history", HISTORY)
    assert ended.code == 0, ended
    assert "warning: history: skipped 1 entry written by a newer rag-contract" in ended.err


def test_a_check_that_passed_cannot_have_been_accepted() -> None:
    commit("doc1", "doc2")
    ended = rag_contract("history", "add", "--history", HISTORY, "--accepted")
    error = "error: report.json: passed, so there is nothing that could have been accepted\n"
    assert (ended.code, ended.err) == (2, error)


def test_reports_that_git_tracks_do_not_make_a_working_tree_dirty() -> None:
    Path(".gitignore").unlink()
    commit("doc1", "doc2")
    git("add", "-A")
    git("commit", "-qm", "with reports")
    check("doc1", "doc2")
    assert shown("last")["source"]["dirty"] is False


def test_a_token_that_cannot_be_one_is_named_by_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_REPOSITORY", "octo/app")
    monkeypatch.setenv("GITHUB_TOKEN", "two words")
    ended = rag_contract("history", "show", "--history", "github:")
    error = "error: history: GITHUB_TOKEN has a space or a character in it that no token has\n"
    assert (ended.code, ended.err) == (2, error)


DICE = random.Random(5)
NOISY = [DICE.gauss(0.84, 0.01) for _ in range(30)]


def record_means(values: Sequence[float], gate: dict[str, Any], mode: str = "strict", **head: Any) -> None:
    """Record runs with these means of MRR@5, a day apart, with a limit on it."""
    before = len([*Path().glob(f"{HISTORY}/entries/*/*/*")])
    contract = {"settings": {"strict": {}, "k": {"k": 3}}.get(mode, {"fail_on.mode": mode})}
    of_run = baseline(contract=contract, **head)
    del of_run["queries"]
    for number, value in enumerate(values, before):
        metrics = {"mrr_at_5": {"label": "MRR@5", "value": value, "k": 5, "status": "pass"}}
        gates = [{"metric": "mrr_at_5", "status": "pass", "before": 0.8} | gate]
        at, run_id = FIRST + timedelta(days=number), RUN + number
        Folder(HISTORY).add(new_entry(at=at, run=run_id, metrics=metrics, gates=gates, head=of_run))


def sigma_shown(*argv: str) -> float:
    """Return the noise that show prints."""
    line = next(line for line in lines("show", *argv) if "σ = " in line and "→" in line)
    return float(line.rpartition("σ = ")[2])


DROP = {"id": "fail_on.mrr_drop_gt", "kind": "drop"}
LEVEL = {"id": "history.mrr_drop_gt", "kind": "level_drop"}


def test_show_warns_of_a_limit_below_the_noise() -> None:
    record_means(NOISY, DROP | {"limit": 0.02})
    assert sigma_shown() == sigma_shown("--last", "2") == round(np.std(NOISY, ddof=1), 4) == 0.0102
    assert lines("show")[-1] == (
        "MRR@5: a run's mean varies by σ = 0.0102; the limit fail_on.mrr_drop_gt 0.02 is below 3σ (0.031), so runs "
        "will fail by chance; `rag-contract suggest --history` proposes limits"
    )


@pytest.mark.parametrize(
    ("gate", "mode", "said"),
    [
        (DROP | {"limit": 0.031}, "strict", ""),
        (DROP | {"limit": 0.03, "kind": "relative_drop"}, "strict", "fail_on.mrr_drop_gt 3% is below"),  # of 0.8
        (DROP | {"limit": 0.04, "kind": "relative_drop"}, "strict", ""),
        (DROP | {"limit": 0.02}, "significant", ""),
        (DROP | {"limit": 0.02, "tag": "de"}, "strict", ""),
        (DROP | {"limit": 0.02, "kind": "minimum"}, "strict", ""),
        (DROP | {"limit": 0.02, "kind": "no such kind"}, "strict", ""),
        (DROP | {"limit": 0.02, "metric": "no such metric"}, "strict", ""),
        (LEVEL | {"limit": 0.02}, "significant", "history.mrr_drop_gt 0.02 is below"),
        (LEVEL | {"limit": 0.031}, "strict", ""),
        (LEVEL | {"limit": 0.03, "kind": "relative_level_drop"}, "strict", "history.mrr_drop_gt 3% is below"),
    ],
)
def test_what_is_no_limit_on_a_change_or_is_tested_is_not_below_the_noise(
    gate: dict[str, Any], mode: str, said: str
) -> None:
    record_means(NOISY, gate, mode)
    printed = "\n".join(lines("show"))
    assert (said in printed) if said else ("3σ" not in printed)


def test_runs_that_do_not_vary_need_no_wide_limit() -> None:
    record_means([0.84] * 10, DROP | {"limit": 0})
    assert sigma_shown() == 0
    assert "3σ" not in "\n".join(lines("show"))


@pytest.mark.parametrize(
    ("mode", "other"),
    [("strict", {"golden_sha256": "1" * 64}), ("k", {}), ("strict", {"fingerprints": {"mrr_at_5": "other"}})],
    ids=["questions", "settings", "metric"],
)
def test_a_change_and_other_questions_or_scores_are_no_noise(mode: str, other: dict[str, Any]) -> None:
    record_means([0.1, 0.9] * 10, DROP | {"limit": 0.02}, mode, **other)
    record_means([*NOISY[:15], *(value - 0.3 for value in NOISY[15:])], DROP | {"limit": 0.02})
    pooled = np.sqrt((np.var(NOISY[:15]) * 15 + np.var(NOISY[15:]) * 15) / 28)
    assert sigma_shown("--last", "50") == round(pooled, 4)


def test_with_few_runs_no_noise_is_shown() -> None:
    record_means(NOISY[:4], DROP | {"limit": 0.0001})
    assert "σ" not in "\n".join(lines("show"))


@pytest.mark.parametrize(
    ("limit", "rights", "since", "runs"),
    [
        (0.3, (10, 10, 10, 10, 10, 5, 5), "2026-11-26", 2),
        ("20%", (10, 10, 10, 10, 10, 5, 5), "2026-11-26", 2),
        (0.15, (10, 10, 10, 10, 10, 9, 9, 8, 8), "2026-11-28", 2),
    ],
)
def test_show_says_which_since_accepts_the_loss(
    limit: float | str, rights: tuple[int, ...], since: str, runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries = [golden(f"q{number}", f"doc{number}") for number in range(1, 11)]
    write_jsonl(Path("golden.jsonl"), queries)
    days = iter(NOW + timedelta(days=number // 2) for number in range(1_000))  # a check asks twice
    monkeypatch.setattr("ragcontract.cli.commands.check.clock", lambda: next(days))

    def config(**more: str) -> None:
        history = {"mrr_drop_gt": limit} | more
        Path("ragcontract.yml").write_text(
            json.dumps({"per_query": {"enforce_must_include": False}, "history": history})
        )

    def ends(right: int) -> int:
        rows = [run(f"q{number}", f"doc{number}" if number <= right else "x") for number in range(1, 11)]
        write_jsonl(Path("current_run.jsonl"), rows)
        return rag_contract("check", "--name", "docs", "--history", HISTORY, "--branch", "main").code

    config()
    for right in rights:
        git("commit", "-q", "--allow-empty", "-m", "next")
        code = ends(right)
        assert rag_contract("history", "add", "--history", HISTORY).code == 0
    assert code == 1
    assert lines("show")[-1] == (
        f"`since: {since}` in the section history of ragcontract.yml would accept the loss of MRR@5: "
        f"{runs} runs since then"
    )
    config(since=since)
    assert ends(rights[-1]) == 0
    for _ in range(6):
        git("commit", "-q", "--allow-empty", "-m", "next")
        assert ends(rights[-1]) == 0, "also once there are enough runs for a level"
        assert rag_contract("history", "add", "--history", HISTORY).code == 0
    assert "since:" not in lines("show")[-1]
