"""The badge of a contract: what it says, what acts in it, and which checks write it into a branch or a folder."""

import json
import os
import re
import stat
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from msgspec.structs import replace

from ragcontract.history.entry import NewEntry
from ragcontract.history.folder import Folder
from tests import scenarios
from tests.builders import golden, run, write_jsonl
from tests.github.standin import Fault, GitHub
from tests.history.action_jobs import BRANCH, IN_BRANCH, Job, entries, messages, pull_request, push
from tests.history.entries import FIRST, RUN, new_entry, results_of
from tests.history.jobs_at_once import Job as BranchJob
from tests.history.repository import git, new_repository
from tests.needs import require
from tests.process import files_in, rag_contract
from tests.runner import InProcess

SVG = "{http://www.w3.org/2000/svg}"
HISTORY = "../history"
GREEN, RED, AMBER = "1a7f37", "cf222e", "9a6700"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new_repository(tmp_path, monkeypatch)
    Path(".gitignore").write_text("*\n")
    git("add", "-f", ".gitignore")
    git("commit", "-qm", "first")


def record(config: Any, *check: str, add: tuple[str, ...] = (), code: int = 0) -> None:
    """Check a run that has the document of one of two queries first, and that of the other second; record it."""
    write_jsonl(Path("golden.jsonl"), [golden("q1", "doc1", tags=["t"]), golden("q2", "doc2")])
    write_jsonl(Path("current_run.jsonl"), [run("q1", "doc1"), run("q2", "other", "doc2")])
    Path("ragcontract.yml").write_text(json.dumps(config))
    ended = rag_contract("check", *check)
    assert ended.code == code, ended
    ended = rag_contract("history", "add", "--history", HISTORY, *add)
    assert ended.code == 0, ended


def badges(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files of badges among those of a store."""
    return {path: content for path, content in files.items() if path.startswith("badges")}


def one_badge(files: Mapping[str, bytes]) -> tuple[str, dict[str, Any]]:
    """Return the name and the JSON of the only badge; its picture is whole, says the same, and loads nothing."""
    picture, document = sorted(badges(files), key=lambda path: path.endswith(".json"))
    assert picture.removesuffix(".svg") == document.removesuffix(".json")
    endpoint: dict[str, Any] = json.loads(files[document])
    assert endpoint.pop("schemaVersion") == 1
    assert len(files[picture]) < 2_000
    svg = ET.fromstring(files[picture])
    assert {each.tag for each in svg.iter()} == {
        f"{SVG}{tag}" for tag in ("svg", "title", "clipPath", "rect", "g", "text")
    }
    assert not [name for each in svg.iter() for name in each.attrib if name.startswith("on") or "href" in name]
    assert svg.attrib["role"] == "img"
    assert svg.findtext(f"{SVG}title") == f"{endpoint['label']}: {endpoint['message']}"
    assert [each.text for each in svg.iter(f"{SVG}text")] == [endpoint["label"], endpoint["message"]]
    assert f"#{endpoint['color']}" in [each.attrib.get("fill") for each in svg.iter(f"{SVG}rect")]
    return Path(document).stem, endpoint


# What it says

NAMED = ("--name", "docs")
# By what is asked: the configuration, options of check and of add, the exit code of check, and the badge.
SAID: dict[str, tuple[Any, tuple[str, ...], tuple[str, ...], int, tuple[str, str, str, str]]] = {
    "no limit": ({}, NAMED, (), 0, ("docs", "docs", "pass · MRR@5 0.75", GREEN)),
    "no name": ({}, (), (), 0, ("_default", "retrieval", "pass · MRR@5 0.75", GREEN)),
    "several cut-offs": ({"k": [1, 5]}, NAMED, (), 0, ("docs", "docs", "pass · MRR@5 0.75", GREEN)),
    "a limit": (
        {"minimums": {"precision_at_k": 0.1}},
        *(NAMED, (), 0, ("docs", "docs", "pass · Precision@5 0.20", GREEN)),
    ),
    "a limit by tag only": (
        {"tags": {"t": {"minimums": {"precision_at_k": 0.1}}}},
        *(NAMED, (), 0, ("docs", "docs", "pass · MRR@5 0.75", GREEN)),
    ),
    "a broken limit": ({"minimums": {"mrr_at_k": 0.9}}, NAMED, (), 1, ("docs", "docs", "fail · MRR@5 0.75", RED)),
    "accepted": (
        {"minimums": {"mrr_at_k": 0.9}},
        *(NAMED, ("--accepted",), 1, ("docs", "docs", "fail, accepted · MRR@5 0.75", AMBER)),
    ),
}


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize(("config", "check", "add", "code", "badge"), SAID.values(), ids=SAID.keys())
def test_a_badge_says_the_verdict_and_the_first_limited_metric(
    config: Any, check: tuple[str, ...], add: tuple[str, ...], code: int, badge: tuple[str, str, str, str]
) -> None:
    record(config, *check, add=add, code=code)
    file, label, message, color = badge
    assert one_badge(files_in(Path(HISTORY))) == (file, {"label": label, "message": message, "color": color})


HOSTILE = {
    "markup": ("</title><script>alert(1)</script>", "</title><script>alert(1)</script>"),
    "an entity": ("&lt;&#x3c;&nope;", "&lt;&#x3c;&nope;"),
    "quotes and braces": ("\"'{label}%s{0}", "\"'{label}%s{0}"),
    "a path": ("../../../etc/passwd", "../../../etc/passwd"),
    "colours of a terminal": ("\x1b[31mred\n::error::x", r"\x1b[31mred\n::error::x"),
    "hidden and reversed": ("a\u202eb\u200bc\U000e0041", r"a\u202eb\u200bc\U000e0041"),
    "not in XML": ("a\ufffe\x0bb", r"a\ufffe\x0bb"),
    "blanks": ("   ", "retrieval"),
    "right to left": ("عقد البحث", "عقد البحث"),
    "letters of several characters": ("e\u0301" * 10 + "👩‍💻", "e\u0301" * 10 + "👩‍💻"),
    "longest": ("&" * 300, "&" * 39 + "…"),
    "longest and wide": ("🎉" * 300, "🎉" * 39 + "…"),
}


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize(("name", "label"), HOSTILE.values(), ids=HOSTILE.keys())
def test_no_name_acts_in_a_badge_or_makes_it_large(name: str, label: str) -> None:
    score = "a" * 100
    write_jsonl(Path("scores.jsonl"), [{"query_id": query, "scores": {score: 1e9}} for query in ("q1", "q2")])
    config = {"metrics": {score: {"from": "scores", "scale": [0, 1_000_000_000]}}, "minimums": {score: 1}}
    record(config, "--name", name, "--scores", "scores.jsonl")
    file, badge = one_badge(files_in(Path(HISTORY)))
    assert re.fullmatch(r"[a-z0-9]{0,40}-[0-9a-f]{8}", file)
    assert badge == {"label": label, "message": f"pass · {'a' * 39}… 1000000000.00", "color": GREEN}


# Which checks write it

# By who records: options, variables of the CI, and whether there is a badge.
BRANCHES: dict[str, tuple[tuple[str, ...], dict[str, str], bool]] = {
    "git says main": ((), {}, True),
    "main": (("--branch", "main"), {}, True),
    "master": (("--branch", "master"), {}, True),
    "another branch": (("--branch", "feature"), {}, False),
    "the default branch of GitLab": ((), {"CI_COMMIT_BRANCH": "trunk", "CI_DEFAULT_BRANCH": "trunk"}, True),
    "main, which is not the default branch": (("--branch", "main"), {"CI_DEFAULT_BRANCH": "trunk"}, False),
    "a pull request from a branch main": ((), {"GITHUB_HEAD_REF": "main", "GITHUB_BASE_REF": "main"}, False),
}


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize(("add", "environ", "has_badge"), BRANCHES.values(), ids=BRANCHES.keys())
def test_the_command_writes_a_badge_for_the_default_branch(
    add: tuple[str, ...], environ: dict[str, str], monkeypatch: pytest.MonkeyPatch, *, has_badge: bool
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    record({}, *NAMED, add=add)
    assert bool(badges(files_in(Path(HISTORY)))) == has_badge


@pytest.mark.usefixtures("repository")
def test_a_dirty_working_tree_writes_no_badge() -> None:
    Path(".gitignore").write_text("*\n# changed\n")
    record({}, *NAMED)
    assert not badges(files_in(Path(HISTORY)))


TRUNK: dict[str, Any] = {"repository": {"default_branch": "trunk"}}
ANY = IN_BRANCH | {"history-record": "any-branch"}
# By the event: the job, its inputs, and whether there is a badge.
EVENTS: dict[str, tuple[Job, dict[str, str], bool]] = {
    "push to main": (push(), IN_BRANCH, True),
    "nightly": (Job(name="schedule", event={"schedule": "0 4 * * *"}), IN_BRANCH, True),
    "push to the default branch trunk": (Job(event=TRUNK, ref="refs/heads/trunk"), IN_BRANCH, True),
    "push to main, which is not the default branch": (Job(event=TRUNK), ANY, False),
    "push to another branch": (push(branch="feature"), ANY, False),
    "pull request": (pull_request(), ANY, False),
}


@pytest.mark.parametrize(("job", "inputs", "has_badge"), EVENTS.values(), ids=EVENTS.keys())
def test_the_action_writes_a_badge_for_the_default_branch(
    tmp_path: Path, github: GitHub, job: Job, inputs: dict[str, str], *, has_badge: bool
) -> None:
    require("npm")
    runner = InProcess(tmp_path, github)
    scenarios.failing(runner.workspace)
    result = job.run(runner, inputs)
    assert not messages(result, "warning") or job.name == "pull_request"
    files = github.repository.files(BRANCH) if BRANCH in github.repository.branches else {}
    assert bool(badges(files)) == has_badge
    if has_badge:
        assert one_badge(files)[1]["message"].startswith("fail · ")
        assert set(badges(files)) < set(github.repository.history(BRANCH)[-1].added)


def test_the_action_writes_a_badge_into_a_folder(tmp_path: Path, github: GitHub) -> None:
    runner = InProcess(tmp_path, github)
    for number, scenario in enumerate((scenarios.failing, scenarios.passing)):
        scenario(runner.workspace)
        runner.now += timedelta(minutes=1)
        result = push().run(runner, {"history": "past", "name": "docs"}, run=RUN + number)
        assert "history-entry" in result.outputs, result.log
    assert one_badge(files_in(runner.workspace / "past"))[1]["message"].startswith("pass · ")


# The stores


class Stored:
    """A store of one kind, and the files that it has."""

    def __init__(self, kind: str, path: Path, github: GitHub) -> None:
        self._path, self._github = path, github
        if kind == "branch":
            require("npm")
        self._kind = kind

    def add(self, new: NewEntry) -> str:
        store = BranchJob(self._github).branch if self._kind == "branch" else Folder(str(self._path / "history"))
        return store.add(new)

    def files(self) -> dict[str, bytes]:
        if self._kind == "branch":
            return dict(self._github.repository.files(BRANCH))
        return files_in(self._path / "history")

    def put(self, path: str) -> None:
        """Let somebody put an empty file there."""
        if self._kind == "branch":
            self._github.repository.commit(BRANCH, {path: b""})
        else:
            (self._path / "history" / path).parent.mkdir(parents=True)
            (self._path / "history" / path).write_bytes(b"")


@pytest.fixture(params=["folder", "branch"])
def stored(request: pytest.FixtureRequest, tmp_path: Path, github: GitHub) -> Stored:
    return Stored(request.param, tmp_path, github)


def with_badge(run: int, attempt: int, hours: int) -> NewEntry:
    """Return the entry of an attempt of a run, whose badge says which it is."""
    entry = new_entry(at=FIRST + timedelta(hours=hours), run=RUN + run, attempt=attempt, results=results_of("d"))
    badge = {f"badges/docs.{kind}": b"%d.%d" % (run, attempt) for kind in ("svg", "json")}
    return replace(entry, badge=badge)


# By what happens: runs in the order of recording, each with its attempt and hour, and the badge in the end.
ORDER: dict[str, tuple[list[tuple[int, int, int]], bytes]] = {
    "the first": ([(1, 1, 0)], b"1.1"),
    "a newer run": ([(1, 1, 0), (2, 1, 1)], b"2.1"),
    "a run of the next month": ([(1, 1, 0), (2, 1, 24 * 20)], b"2.1"),
    "an older run that was slower": ([(2, 1, 1), (1, 1, 0)], b"2.1"),
    "an older run, started again": ([(1, 1, 0), (2, 1, 1), (1, 2, 2)], b"2.1"),
    "the newest run, started again": ([(1, 1, 0), (2, 1, 1), (2, 2, 2)], b"2.2"),
    "a run after an older one was started again": ([(1, 1, 0), (1, 2, 5), (2, 1, 4)], b"2.1"),
    "the same entry once more": ([(1, 1, 0), (2, 1, 1), (1, 1, 0)], b"2.1"),
}


@pytest.mark.parametrize(("recorded", "badge"), ORDER.values(), ids=ORDER.keys())
def test_the_badge_is_that_of_the_newest_run(
    stored: Stored, recorded: list[tuple[int, int, int]], badge: bytes
) -> None:
    for run_, attempt, hours in recorded:
        stored.add(with_badge(run_, attempt, hours))
    assert badges(stored.files()) == {"badges/docs.json": badge, "badges/docs.svg": badge}


def test_files_that_are_no_entries_are_not_newer(stored: Stored) -> None:
    stored.put("entries/docs/2026-11/99991231T235959Z-zzz.json")
    assert stored.add(with_badge(1, 1, 0)) == "added"
    assert badges(stored.files())


def test_an_entry_without_a_badge_leaves_it(stored: Stored) -> None:
    stored.add(with_badge(1, 1, 0))
    stored.add(replace(with_badge(2, 1, 1), badge={}))
    assert set(badges(stored.files()).values()) == {b"1.1"}


def test_a_badge_takes_no_further_call(github: GitHub) -> None:
    stored = Stored("branch", Path(), github)
    stored.add(with_badge(1, 1, 0))
    before = len(github.requests)
    stored.add(with_badge(2, 1, 1))
    assert len(github.requests) - before == 2


def test_a_badge_that_github_refuses_does_not_keep_the_entry_out(github: GitHub) -> None:
    stored = Stored("branch", Path(), github)
    refused = {"data": None, "errors": [{"type": "UNPROCESSABLE", "message": "File extension restriction: svg"}]}
    github.faults = [Fault(body="badges/docs.svg", status=200, answer=refused)]
    assert stored.add(with_badge(1, 1, 0)) == "added"
    assert len(entries(github)) == 1
    assert not badges(stored.files())


def is_a_link(badge: Path, away: Path) -> None:
    badge.symlink_to(away)


def is_a_broken_link(badge: Path, away: Path) -> None:
    badge.symlink_to(away.with_name("new"))


def is_a_folder(badge: Path, _away: Path) -> None:
    badge.mkdir()


def is_a_pipe(badge: Path, _away: Path) -> None:
    os.mkfifo(badge)


def is_behind_a_link(badge: Path, away: Path) -> None:
    badge.parent.rmdir()
    badge.parent.symlink_to(away.parent)


def is_below_a_file(badge: Path, _away: Path) -> None:
    badge.parent.rmdir()
    badge.parent.write_bytes(b"")


IN_THE_WAY = (is_a_link, is_a_broken_link, is_a_folder, is_a_pipe, is_behind_a_link, is_below_a_file)


@pytest.mark.parametrize("put", IN_THE_WAY)
def test_what_is_in_the_way_of_a_badge_stays_and_the_entry_is_added(
    tmp_path: Path, put: Callable[[Path, Path], None]
) -> None:
    away = tmp_path / "away" / "docs.svg"
    away.parent.mkdir()
    away.write_bytes(b"ours")
    badge = tmp_path / "history" / "badges" / "docs.svg"
    badge.parent.mkdir(parents=True)
    put(badge, away)
    before = [path.lstat().st_mode for path in (badge.parent, badge) if os.path.lexists(path)]
    new = with_badge(1, 1, 0)
    assert Folder(str(tmp_path / "history")).add(new) == "added"
    assert (tmp_path / "history" / new.path).read_bytes() == new.content
    assert [path.lstat().st_mode for path in (badge.parent, badge) if os.path.lexists(path)] == before
    assert files_in(away.parent) == {"docs.svg": b"ours"}
    assert not list((tmp_path / "history").glob(".rag-contract-*"))


def test_a_badge_keeps_its_owner_and_mode_and_other_names_of_it_their_content(tmp_path: Path) -> None:
    badge = tmp_path / "history" / "badges" / "docs.svg"
    badge.parent.mkdir(parents=True)
    badge.write_bytes(b"old")
    badge.chmod(0o640)
    owner = (1001, 121) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
    os.chown(badge, *owner)
    other = tmp_path / "other"
    other.hardlink_to(badge)
    Folder(str(tmp_path / "history")).add(with_badge(1, 1, 0))
    status = badge.stat()
    assert (badge.read_bytes(), stat.S_IMODE(status.st_mode)) == (b"1.1", 0o640)
    assert (status.st_uid, status.st_gid) == owner
    assert other.read_bytes() == b"old"


@pytest.mark.usefixtures("repository")
def test_a_copy_has_no_badges_and_pruning_leaves_them() -> None:
    record({}, *NAMED)
    Path("../target/badges").mkdir(parents=True)
    Path("../target/badges/docs.svg").write_bytes(b"own")
    assert rag_contract("history", "copy", HISTORY, "../target").code == 0
    assert badges(files_in(Path("../target"))) == {"badges/docs.svg": b"own"}
    before = badges(files_in(Path(HISTORY)))
    assert rag_contract("history", "prune", "--history", HISTORY, "--keep-results", "1").code == 0
    assert badges(files_in(Path(HISTORY))) == before
