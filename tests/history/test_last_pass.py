"""Which entry of a history is the baseline of a check, in a real git repository."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from ragcontract.history.entry import Entry, NewEntry, encode
from ragcontract.history.folder import Folder
from tests.builders import golden, run, write_jsonl
from tests.history.entries import FIRST, RUN, new_entry, results_of
from tests.history.repository import commits, git, new_repository
from tests.process import rag_contract


class Past(NamedTuple):
    """A repository whose branch main has some commits, the newest first, and a history of them."""

    shas: list[str]
    store: Folder

    def record(self, back: int, run_number: int | None = None, **changed: Any) -> str:
        """Record an entry at the commit so many commits back; return its id. Later ones are of later runs."""
        return self.record_at(self.shas[back], len(self.shas) - back, run_number, **changed)

    def record_at(self, sha: str, age: int, run_number: int | None = None, **changed: Any) -> str:
        number = age if run_number is None else run_number
        made = new_entry(
            changed.pop("contract", "docs"),
            at=FIRST + timedelta(minutes=number),
            commit=sha[:12],
            run=RUN + number,
            attempt=changed.pop("attempt", 1),
            results=changed.pop("results", results_of(f"doc{number}")),
        )
        fields = json.loads(made.content) | {name: value for name, value in changed.items() if name != "source"}
        fields["source"] |= {"commit": sha, **changed.get("source", {})}
        self.store.add(_entry(fields, made))
        return str(fields["id"])


def _entry(fields: dict[str, Any], made: NewEntry) -> NewEntry:
    entry = msgspec.json.decode(json.dumps(fields), type=Entry)
    return NewEntry(entry=entry, content=encode(entry), results=made.results)


@pytest.fixture
def past(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Past:
    new_repository(tmp_path, monkeypatch)
    shas = commits(6, "main")
    git("reset", "-q", "--hard")
    write_jsonl(Path("golden.jsonl"), [golden("q1", "doc1")])
    write_jsonl(Path("current_run.jsonl"), [run("q1", "doc1")])
    return Past(shas, Folder(str(tmp_path / "history")))


def checked(past: Past, name: str = "last-pass", *options: str) -> tuple[str, str]:
    """Check against an entry; return its id, or the error."""
    baseline = f"history:{name}"
    ended = rag_contract("check", "--name", "docs", "--history", past.store.name, "--baseline", baseline, *options)
    if ended.code == 2:
        return "", ended.err
    report = json.loads(Path("report.json").read_text())
    history = report["history"]
    return history["baseline"]["id"], ended.out


FAIL: dict[str, Any] = {"verdict": "fail"}
NONE = (
    "error: history:last-pass: none of the 2 entries of 'docs' on main among the last 6 commits of {head} passed; "
    "the newest is {newest} ({state})\n"
)


def test_it_is_the_newest_that_passed(past: Past) -> None:
    past.record(3)
    wanted = past.record(2)
    past.record(1, **FAIL)
    past.record(0, **FAIL)
    assert checked(past)[0] == wanted


NOT_A_PASS: dict[str, dict[str, Any]] = {
    "it failed": FAIL,
    "a label accepted it": {**FAIL, "accepted": True},
    "its files were changed": {"source": {"dirty": True}},
    "it is of another branch": {"source": {"branch": "release"}},
    "it is of another contract": {"contract": "support"},
    "it has no result set": {"results": None, "no_results": "too large"},
}


@pytest.mark.parametrize("changed", NOT_A_PASS.values(), ids=NOT_A_PASS)
def test_an_entry_does_not_count_if(changed: dict[str, Any], past: Past) -> None:
    wanted = past.record(3)
    past.record(1, **changed)
    assert checked(past, "last-pass", "--branch", "main")[0] == wanted


STATES = {"fail": FAIL, "fail, accepted by a label": NOT_A_PASS["a label accepted it"]} | {
    "pass, from a dirty working tree": NOT_A_PASS["its files were changed"]
}


@pytest.mark.parametrize(("state", "changed"), STATES.items())
def test_without_a_pass_the_error_names_the_newest(
    state: str, changed: dict[str, Any], past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_BASE_REF", "main")
    past.record(3, **FAIL)
    newest = past.record(1, **changed)
    expected = NONE.format(head=past.shas[0][:7], newest=newest, state=state)
    assert checked(past) == ("", expected)


def test_outside_of_pull_requests_a_branch_whose_first_runs_failed_can_pass(past: Past) -> None:
    """Without a verdict, nothing would be recorded, and the branch could never pass."""
    Path("ragcontract.yml").write_text("fail_on: {mrr_drop_gt: 0.05}\n")
    past.record(3, **FAIL)
    past.record(1, **FAIL)
    why = "no run of 'docs' with a result set has passed yet, so 1 limit on changes is left out: fail_on.mrr_drop_gt"
    options = ("--history", past.store.name, "--baseline", "history:last-pass", "--quiet")
    ended = rag_contract("check", "--name", "docs", *options)
    assert (ended.code, ended.err) == (0, f"warning: history: {why}\n")
    past.record_at(commits(2, "gone", past.shas[2])[0], 30)  # a run that passed once, and is not reachable
    assert rag_contract("check", "--name", "docs", *options).code == 2


def test_with_passes_that_have_no_result_set_the_error_says_so(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_BASE_REF", "main")
    past.record(2, **FAIL)
    past.record(1, **NOT_A_PASS["it has no result set"])
    assert "passed and has a result set; the newest is" in checked(past)[1]


ONLY: dict[str, tuple[str, dict[str, Any], str]] = {
    "it failed": ("last-pass", FAIL, "(fail), did not pass"),
    "it has no result set": ("last-pass", NOT_A_PASS["it has no result set"], "(pass), has no result set"),
    "it is of another run": ("20261121T203000Z-3f9c1a2b4d5e-17345678901-1", {}, "(pass), does not match the name"),
}


@pytest.mark.parametrize(("name", "changed", "why"), ONLY.values(), ids=ONLY)
def test_of_the_only_entry_the_error_says_what_it_lacks(
    name: str, changed: dict[str, Any], why: str, past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_BASE_REF", "main")
    only = past.record(1, **changed)
    expected = (
        f"error: history:{name}: the only entry of 'docs' on main among the last 6 commits of {past.shas[0][:7]}, "
        f"{only} {why}\n"
    )
    assert checked(past, name) == ("", expected)


def test_entries_of_other_branches_alone_are_named(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_BASE_REF", "main")
    newest = past.record(1, **NOT_A_PASS["it is of another branch"])
    expected = (
        "error: history:last-pass: no entry of 'docs' is on main among the last 6 commits of "
        f"{past.shas[0][:7]}; the newest is {newest} (release@{past.shas[1][:7]})\n"
    )
    assert checked(past, "last-pass", "--branch", "main") == ("", expected)


def test_the_branch_must_be_named_where_entries_have_several(past: Past) -> None:
    wanted = past.record(2)
    past.record(1, source={"branch": "release"})
    error = "error: history: 'docs' has entries from several branches (main, release); name one with --branch\n"
    assert checked(past) == ("", error)
    assert checked(past, "last-pass", "--branch", "main")[0] == wanted


@pytest.mark.parametrize("variable", ["GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME"])
def test_on_a_pull_request_it_is_the_base_branch(variable: str, past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = past.record(2)
    past.record(1, source={"branch": "release"})
    monkeypatch.setenv(variable, "main")
    assert checked(past)[0] == wanted


def test_before_anything_is_recorded_limits_on_changes_are_left_out(past: Past) -> None:
    limits = {"fail_on": {"mrr_drop_gt": 0.05, "recall_drop_gt": "10%"}, "minimums": {"mrr_at_k": 0.9}}
    Path("ragcontract.yml").write_text(json.dumps(limits))
    warning = (
        "warning: history: nothing is recorded for 'docs' yet, so 2 limits on changes are left out: "
        "fail_on.mrr_drop_gt, fail_on.recall_drop_gt\n"
    )
    ended = rag_contract(
        "check", "--name", "docs", "--history", past.store.name, "--baseline", "history:last-pass", "--quiet"
    )
    assert (ended.code, ended.err) == (0, warning)
    report = json.loads(Path("report.json").read_text())
    assert [gate["id"] for gate in report["gates"]] == ["minimums.mrr_at_k"]


def test_before_anything_is_recorded_a_pull_request_cannot_be_judged(
    past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_BASE_REF", "main")
    error = "error: history:last-pass: history has no entries of 'docs': record the base branch first\n"
    assert checked(past) == ("", error)


@pytest.mark.parametrize("name", ["abcdef1", "20261121T203000Z-3f9c1a2b4d5e-17345678901-1"])
def test_before_anything_is_recorded_a_named_entry_is_missing(name: str, past: Past) -> None:
    assert f"history:{name}: history has no entries of 'docs'" in checked(past, name)[1]


def test_entries_of_commits_that_a_force_push_removed_do_not_count(past: Past) -> None:
    wanted = past.record(3)
    gone = commits(2, "gone", past.shas[2])
    past.record_at(gone[0], 20)
    assert checked(past)[0] == wanted


def test_entries_are_in_the_order_of_their_commits(past: Past) -> None:
    """A commit may be checked long after the one that follows it."""
    past.record(4, run_number=30)
    wanted = past.record(1, run_number=5)
    assert checked(past)[0] == wanted


def test_of_two_runs_at_one_commit_the_later_one_counts(past: Past) -> None:
    past.record(0, run_number=10)
    nightly = past.record(0, run_number=12)
    assert checked(past)[0] == nightly


def test_of_the_attempts_of_a_run_the_last_one_counts(past: Past) -> None:
    earlier = past.record(3)
    past.record(1, run_number=10)
    past.record(1, run_number=10, attempt=2, **FAIL)
    assert checked(past)[0] == earlier


def test_the_entries_of_this_very_run_do_not_count(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = past.record(1)
    past.record(0, run_number=40)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_RUN_ID", str(RUN + 40))
    assert checked(past)[0] == wanted


def test_only_the_last_300_commits_count(past: Past) -> None:
    shas = commits(300, "main", past.shas[0])
    git("reset", "-q", "--hard")
    past.record(0)
    found, error = checked(past)
    assert not found
    assert f"no entry of 'docs' is on main among the last 300 commits of {shas[0][:7]}" in error
    wanted = past.record_at(shas[299], 50)
    assert checked(past)[0] == wanted


def test_in_a_shallow_clone_the_error_says_how_to_get_older_commits(
    past: Past, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    past.record(3)
    git("clone", "-q", "--depth", "2", Path.cwd().as_uri(), str(tmp_path / "clone"))
    for name in ("golden.jsonl", "current_run.jsonl"):
        (tmp_path / "clone" / name).write_bytes(Path(name).read_bytes())
    monkeypatch.chdir(tmp_path / "clone")
    error = checked(past)[1]
    assert error.endswith(
        "this clone is shallow, so older commits are not known; check out with fetch-depth: 0 (GitLab: GIT_DEPTH: 0)\n"
    )
    wanted = past.record(1)
    assert checked(past)[0] == wanted


def test_outside_of_a_repository_nothing_is_known_of_commits(
    past: Past, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    past.record(1)
    monkeypatch.chdir(tmp_path)
    for name in ("golden.jsonl", "current_run.jsonl"):
        Path(name).write_bytes((Path("repository") / name).read_bytes())
    assert checked(past)[1].startswith("error: history: git shows no commit here")


NAMES: dict[str, Callable[[Past, str], str]] = {
    "last": lambda _past, _entry: "last",
    "a commit": lambda past, _entry: past.shas[1],
    "a short commit": lambda past, _entry: past.shas[1][:7],
    "an id": lambda _past, entry: entry,
}


@pytest.mark.parametrize("named", NAMES.values(), ids=NAMES)
def test_other_names_may_mean_an_entry_that_failed(named: Callable[[Past, str], str], past: Past) -> None:
    past.record(2)
    wanted = past.record(1, **FAIL)
    assert checked(past, named(past, wanted))[0] == wanted


@pytest.mark.parametrize("name", ["", "abcdef", "first", "../x", "20261121T203000Z-x"])
def test_what_names_no_entry_is_an_error(name: str, past: Past) -> None:
    past.record(1)
    advice = "use history:last-pass, history:last, a commit of at least 7 digits, or the id of an entry"
    assert checked(past, name) == ("", f"error: history:{name}: is not the name of an entry; {advice}\n")


def test_the_report_says_how_many_commits_came_after_it(past: Past) -> None:
    past.record(3)
    assert f"Compared with main@{past.shas[3][:7]}" in checked(past)[1]
    report = json.loads(Path("report.json").read_text())
    assert report["history"]["baseline"]["behind"] == 2  # beside the commit that is checked
    assert report["history"]["baseline"]["commit"] == past.shas[3]


def test_on_a_branch_of_ones_own_it_is_not_known_how_many_came_after_it(
    past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    past.record(3)
    git("checkout", "-q", "-b", "topic")
    monkeypatch.setenv("GITHUB_BASE_REF", "main")
    checked(past)
    assert "behind" not in json.loads(Path("report.json").read_text())["history"]["baseline"]


def test_on_githubs_merge_of_a_pull_request_the_commits_of_the_base_branch_count(
    past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    past.record(2)
    commits(3, "topic", past.shas[4])
    git("merge", "-q", "-s", "ours", "--no-edit", "topic")
    monkeypatch.setenv("GITHUB_BASE_REF", "main")
    monkeypatch.setenv("GITHUB_EVENT_NAME", "pull_request")
    monkeypatch.setenv("GITHUB_SHA", git("rev-parse", "HEAD"))
    assert "2 newer commits of main were not recorded or did not pass" in checked(past)[1]


def test_a_result_set_that_was_changed_is_refused(past: Past) -> None:
    past.record(1)
    file = next(Path(past.store.name).rglob("results/*/*.jsonl"))
    file.write_bytes(file.read_bytes().replace(b"doc", b"dox"))
    assert "its result set was changed; delete it from the store" in checked(past)[1]


def test_a_result_set_that_is_gone_is_named(past: Past) -> None:
    past.record(1)
    next(Path(past.store.name).rglob("results/*/*.jsonl")).unlink()
    assert "its result set was deleted, probably by `rag-contract history prune`" in checked(past)[1]


def test_entries_that_cannot_be_read_are_named_and_left_out(past: Past) -> None:
    wanted = past.record(2)
    newer = past.record(1)
    unknown = past.record(0)
    folder = Path(past.store.name) / "entries" / "docs" / "2026-11"
    (folder / f"{newer}.json").write_text("{}")
    file = folder / f"{unknown}.json"
    file.write_text(file.read_text().replace('"schema_version": 1', '"schema_version": 2'))
    ended = rag_contract("check", "--name", "docs", "--history", past.store.name, "--baseline", "history:last-pass")
    assert json.loads(Path("report.json").read_text())["history"]["baseline"]["id"] == wanted
    assert f"warning: history: entries/docs/2026-11/{newer}.json: is not an entry of a history" in ended.err
    assert "warning: history: skipped 1 entry written by a newer rag-contract" in ended.err


def test_a_mistyped_branch_switches_no_limit_off(past: Past) -> None:
    past.record(1)
    error = checked(past, "last-pass", "--branch", "mian")[1]
    assert error.startswith("error: history:last-pass: no entry of 'docs' is on mian among the last 6 commits of ")


def test_gitlab_names_the_default_branch(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = past.record(2)
    past.record(1, source={"branch": "release"})
    monkeypatch.setenv("CI_DEFAULT_BRANCH", "main")
    assert checked(past)[0] == wanted


def test_a_commit_with_an_old_date_is_still_newer_than_the_one_before_it(
    past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    past.record(0)
    with monkeypatch.context() as long_ago:
        long_ago.setenv("GIT_COMMITTER_DATE", "2001-01-01T00:00:00Z")
        git("commit", "-q", "--allow-empty", "-m", "old")
    wanted = past.record_at(git("rev-parse", "HEAD"), 20)
    git("checkout", "-q", "-b", "topic", past.shas[0])
    git("commit", "-q", "--allow-empty", "-m", "of the topic")
    git("checkout", "-q", "main")
    git("merge", "-q", "-s", "ours", "--no-edit", "topic")
    assert checked(past)[0] == wanted


def test_the_headline_says_that_limits_were_not_checked(past: Past) -> None:
    Path("ragcontract.yml").write_text("fail_on: {mrr_drop_gt: 0.05}\n")
    options = ("--history", past.store.name, "--baseline", "history:last-pass", "--quiet")
    assert rag_contract("check", "--name", "docs", *options).out == "PASS  1 query holds; 1 limit not checked\n"
    assert json.loads(Path("report.json").read_text())["summary"] == "docs: 1 query holds; 1 limit not checked"
