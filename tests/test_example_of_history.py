"""The example of a history: 60 commits of a retriever, three of which change what it finds."""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from scripts import docs
from tests.process import Ended, rag_contract, spawn

SCRIPT = docs.ROOT / "examples" / "make_history.py"
NAME = "my-history"


def script(*argv: str, cwd: Path) -> Ended:
    """Run the script as a user does."""
    return spawn(*argv, cwd=cwd, command=(sys.executable, str(SCRIPT)))


def git(folder: Path, *arguments: str) -> list[str]:
    """Return the lines that git prints."""
    done = subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


class Made(NamedTuple):
    """What the script made: the output, the repository, its commits and the entries, the oldest first."""

    said: str
    folder: Path
    commits: Sequence[str]
    entries: Sequence[dict[str, Any]]

    @property
    def revealed(self) -> dict[str, str]:
        """The answers by commit."""
        ended = script(NAME, "--reveal", cwd=self.folder.parent)
        assert (ended.code, ended.err) == (0, "")
        answers = (line.partition(" ") for line in ended.out.splitlines())
        full = {commit[:7]: commit for commit in self.commits}
        return {full[short]: answer for short, _, answer in answers}

    def queries(self, entry: dict[str, Any]) -> dict[str, Any]:
        """Return the queries of an entry's result set, by id."""
        digest = entry["results"]["sha256"]
        lines = (self.folder / "history" / "results" / digest[:2] / f"{digest}.jsonl").read_text().splitlines()
        return {query["id"]: query for query in map(json.loads, lines)}


def make(parent: Path) -> Made:
    """Run the script in a folder."""
    ended = script(NAME, cwd=parent)
    assert (ended.code, ended.err) == (0, "")
    folder = parent / NAME
    entries = sorted((folder / "history" / "entries" / "docs").rglob("*.json"), key=lambda path: path.name)
    commits = git(folder, "rev-list", "--reverse", "main")
    return Made(ended.out, folder, commits, [json.loads(path.read_text()) for path in entries])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make(tmp_path_factory.mktemp("history"))


def test_most_of_60_commits_are_checked_once_one_is_checked_again_and_some_fail(made: Made) -> None:
    checked = [entry["source"]["commit"] for entry in made.entries]
    assert (len(made.commits), len(made.entries), len(set(checked))) == (60, 58, 57)
    assert list(dict.fromkeys(checked)) == [commit for commit in made.commits if commit in checked]
    [again] = [entry for entry in made.entries if entry["source"]["run_attempt"] == 2]
    assert (again["verdict"], checked.count(again["source"]["commit"])) == ("fail", 2)
    assert {entry["verdict"] for entry in made.entries} == {"pass", "fail"}
    assert git(made.folder, "status", "--porcelain") == []


def test_each_check_has_the_day_of_its_commit(made: Made) -> None:
    days = dict(line.split() for line in git(made.folder, "log", "--format=%H %cs"))
    assert all(days[entry["source"]["commit"]] == entry["created_at"][:10] for entry in made.entries)


def test_the_history_is_the_same_each_time(made: Made, tmp_path: Path) -> None:
    again = make(tmp_path)
    assert again.commits == made.commits
    names = ("id", "created_at", "verdict", "retrieval", "results", "metrics", "failed")
    for entry, other in zip(made.entries, again.entries, strict=True):
        assert {name: entry[name] for name in names} == {name: other[name] for name in names}


def test_without_new_pages_the_three_commits_alone_change_what_is_retrieved(made: Made) -> None:
    changed = [after["source"]["commit"] for before, after in pairwise(made.entries) if _differ(before, after)]
    with_a_page = [commit for commit in changed if _adds_a_page(made.folder, commit)]
    assert with_a_page
    assert [commit for commit in changed if commit not in with_a_page] == list(made.revealed)


def _differ(before: dict[str, Any], after: dict[str, Any]) -> bool:
    return bool(before["retrieval"] != after["retrieval"])


def _adds_a_page(folder: Path, commit: str) -> bool:
    return any(path.startswith("corpus/") for path in git(folder, "show", "--format=", "--name-only", commit))


def test_the_answer_names_exactly_the_questions_whose_ranks_change(made: Made) -> None:
    answers = made.revealed
    for before, after in pairwise(made.entries):
        then, now = made.queries(before), made.queries(after)
        assert then.keys() == now.keys()
        moved = {query_id for query_id in now if then[query_id]["ranks"] != now[query_id]["ranks"]}
        answer = answers.get(after["source"]["commit"], "") if _differ(before, after) else ""
        assert {word for word in re.findall(r"[\w-]+", answer) if word in now} == moved


def test_the_first_change_is_small_the_second_fails_and_the_third_repairs_it_alone(made: Made) -> None:
    newest = {entry["source"]["commit"]: entry for entry in made.entries}
    small, large, repaired = (newest[commit] for commit in made.revealed)
    mrr = [entry["metrics"]["mrr_at_5"]["value"] for entry in (made.entries[0], small, large, repaired)]
    assert mrr[0] - mrr[1] < mrr[1] - mrr[2]
    assert mrr[1] == mrr[3] == made.entries[-1]["metrics"]["mrr_at_5"]["value"]
    assert [entry["verdict"] for entry in (small, large, repaired)] == ["pass", "fail", "pass"]


def test_no_message_says_what_it_breaks(made: Made) -> None:
    messages = "\n".join(git(made.folder, "log", "--format=%B"))
    assert not re.search(r"break|broke|worse|fail|fix|repair|drop|regress", messages, re.IGNORECASE)
    assert not re.search("pass|fail", made.said)


def test_history_show_lists_the_runs(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(made.folder)
    ended = rag_contract("history", "show", "--history", "history", "--last", "60")
    assert (ended.code, ended.err) == (0, "")
    assert all(entry["source"]["commit"][:7] in ended.out for entry in made.entries)
    assert "0.911 → 0.874" in ended.out


def test_a_folder_that_exists_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    for options in ([], ["--reveal"]):
        assert script(NAME, *options, cwd=tmp_path) == (1, "", f"{NAME}: exists already; name a new folder\n")
    assert not [*(tmp_path / NAME).iterdir()]
