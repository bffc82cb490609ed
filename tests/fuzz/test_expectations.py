"""The contract of the fuzzer: what a report, a log and a session must not be, and what they may be."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests

from ragcontract.report.record import ErrorReport, Report
from tests.fuzz import expectations
from tests.fuzz.case import Case, stored
from tests.fuzz.expectations import Broken
from tests.fuzz.generate.kinds import OWN
from tests.fuzz.limits import Limits
from tests.fuzz.minimise import minimised
from tests.fuzz.sandbox import Ended, Sandbox, captured
from tests.fuzz.shapes import shapes
from tests.fuzz.targets import stored as stored_target
from tests.fuzz.targets.command_line import ARGV
from tests.fuzz.targets.github import API, LONGEST_BODY, MARKER, MOST_CALLS, Session
from tests.fuzz.worker import judged
from tests.records import rendered
from tests.report.everything import everything

GOOD = rendered(everything())
FILES = {
    "report-md": "report.md",
    "report-json": "report.json",
    "junit": "junit.xml",
    "report-html": "report.html",
    "report-v2": "report-v2.json",
}


@pytest.mark.parametrize("name", FILES)
def test_a_report_with_everything_in_it_is_as_expected(name: str, tmp_path: Path) -> None:
    (tmp_path / FILES[name]).write_bytes(GOOD[name])
    expectations.CHECKS[name](tmp_path / FILES[name])


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("report-md", b"### x\n\nsee octo/app#1\n", "report.md has a link"),
        ("report-md", b"<img src=x>\n", r"Markdown has the tags \['img'\]"),
        ("report-md", b"<td>\n", "Markdown has tags that are not closed"),
        ("report-json", b"{}", "report.json is invalid"),
        ("report-json", b'{"verdict": "pass"}', "report.json is invalid"),
        ("report-json", b'{"verdict": "error"', "report.json is invalid"),
        ("report-json", b"\xff", "report.json is invalid"),
        ("junit", b"<testsuites>\x01</testsuites>", "junit.xml is invalid"),
        ("report-v2", b'{"schema_version": "2"}', "report-v2.json is invalid"),
        ("report-html", b"<html></html>", "report.html has another number of scripts"),
    ],
)
def test_a_report_that_is_not_as_expected_is_found(name: str, data: bytes, why: str, tmp_path: Path) -> None:
    (tmp_path / FILES[name]).write_bytes(data)
    with pytest.raises(Broken, match=why):
        expectations.CHECKS[name](tmp_path / FILES[name])


def test_both_kinds_of_report_are_read(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_bytes(GOOD["report-json"])
    assert isinstance(expectations.report_json(path), Report)
    error = {"verdict": "error", "tool": {"name": "x", "version": "1"}, "created_at": "", "problems": []}
    path.write_text(json.dumps(error))
    assert isinstance(expectations.report_json(path), ErrorReport)


@pytest.mark.parametrize("text", ["\x1b[31m", "\u202e", "a\rb", "::error::x", "x\n  ::warning::", "##[error]x"])
def test_what_a_terminal_or_a_runner_would_obey_is_found(text: str) -> None:
    with pytest.raises(Broken, match="printed"):
        expectations.is_plain(text)
    expectations.is_plain("FAIL  MRR@5 fell: 0.50 é 😀\n")


def contract() -> dict[str, bytes]:
    """Return a contract with a limit on drops and a run that keeps it, and the commands that store and compare it."""
    row = {"id": "q1", "query": "x", "relevant_doc_ids": ["d"]}
    return {
        "golden.jsonl": json.dumps(row).encode(),
        "current_run.jsonl": b'{"query_id": "q1", "results": [{"doc_id": "d"}]}',
        "ragcontract.yml": b"fail_on: {mrr_drop_gt: 0}",
        ARGV: json.dumps(
            [["baseline", "--out", stored_target.BASELINE], ["check", "--baseline", stored_target.BASELINE]]
        ).encode(),
    }


def test_a_baseline_that_was_written_is_compared_with_its_run() -> None:
    with Sandbox() as sandbox:
        ended = judged(Case(target="stored", files=contract()), stored_target.STORED, sandbox, Limits(memory=1 << 40))
        assert isinstance(ended, Ended)
        assert ended.code == 0
        assert Path(stored_target.BASELINE).exists()


def test_a_baseline_that_was_written_and_cannot_be_read_is_found() -> None:
    with Sandbox() as sandbox:
        sandbox.fill({stored_target.BASELINE: b"{}"})
        ended = Ended(code=2, out="", err=f"error: {stored_target.BASELINE}:1: is not JSON\n")
        with pytest.raises(Broken, match="a baseline that was written cannot be read"):
            stored_target.STORED.expect(sandbox, {}, ended)


@pytest.mark.parametrize("code", [3, 139, -9, 5])
def test_other_exit_codes_are_found(code: int) -> None:
    with pytest.raises(Broken, match=f"exit code {code}"):
        expectations.ended_well(Ended(code=code, out="", err=""))


def test_a_crash_is_named_by_its_exception_and_where_it_was_raised() -> None:
    frames = '  File "/a/ragcontract/x.py", line 3, in outer\n  File "/a/ragcontract/y/z.py", line 9, in inner\n'
    text = f"Traceback (most recent call last):\n{frames}msgspec.DecodeError: of 'q17'\n"
    assert expectations.crash_in(text) == "msgspec.DecodeError in ragcontract/y/z.py:9 (inner)"


@pytest.mark.parametrize(
    "escape",
    [
        lambda home: (home / "outside" / "new").touch(),
        lambda home: (home / "outside" / "secret").write_text("x"),
        lambda home: (home / "beside").touch(),
    ],
)
def test_what_is_written_outside_of_the_workspace_is_found(escape: Callable[[Path], Any]) -> None:
    with Sandbox() as sandbox:
        sandbox.fill({"a/b": b"x"})
        expectations.stays_inside(sandbox)
        assert Path("a/b").read_bytes() == b"x"
        escape(sandbox.home)
        with pytest.raises(Broken, match="outside of the workspace"):
            expectations.stays_inside(sandbox)


def test_the_sandbox_is_emptied_and_removed_and_links_in_it_are_not_followed() -> None:
    before = Path.cwd()
    with Sandbox() as sandbox:
        sandbox.fill({"a": b""})
        Path("link").symlink_to(sandbox.home / "outside")
        sandbox.fill({})
        assert list(sandbox.workspace.iterdir()) == []
        assert (sandbox.home / "outside" / "secret").exists()
    assert not sandbox.home.exists()
    assert Path.cwd() == before


def test_what_is_captured_is_what_a_process_would_print() -> None:
    with captured() as texts:
        print("é")  # noqa: T201
        assert texts() == ("é\n", "")
        with pytest.raises(UnicodeEncodeError):
            print("\ud800")  # noqa: T201


def test_a_shape_has_the_words_of_the_program_only() -> None:
    def shape(line: str) -> set[tuple[str, ...]]:
        return shapes("check", Ended(code=2, out="", err=line)) - {("check", "2")}

    assert shape("golden.jsonl:17: id: duplicate id 'q1', first defined at golden.jsonl:1") == shape(
        "golden.jsonl:3: id: duplicate id 'zzyzx', first defined at golden.jsonl:2"
    )
    assert shape("is not UTF-8") != shape("is cut off in the middle")


def url(path: str) -> str:
    return f"{API}/{path}"


def call(session: Session, method: str, path: str, body: Any = None) -> requests.Response:
    return session.request(method, url(path), json=body, timeout=(1, 1), allow_redirects=False)


def test_a_session_answers_as_github_does() -> None:
    session = Session({"login": OWN, "comments": [], "pulls": []})
    assert call(session, "POST", "graphql", {"query": ""}).json()["data"]["viewer"]["login"] == OWN
    made = call(session, "POST", "repos/o/a/issues/7/comments", {"body": f"{MARKER} x"}).json()
    assert call(session, "GET", "repos/o/a/issues/7/comments?page=1").json() == [made]
    changed = call(session, "PATCH", f"repos/o/a/issues/comments/{made['id']}", {"body": f"{MARKER} y"}).json()
    assert changed["body"] == f"{MARKER} y"
    assert call(session, "DELETE", f"repos/o/a/issues/comments/{made['id']}").status_code == 204
    assert call(session, "DELETE", f"repos/o/a/issues/comments/{made['id']}").status_code == 404
    assert session.faults == []


def test_a_session_says_first_what_the_case_wants_it_to() -> None:
    scripted = {"status": 502, "headers": {"Retry-After": "1"}, "text": "<html>"}
    session = Session({"answers": [scripted, {"raise": "ReadTimeout"}, None]})
    answer = call(session, "GET", "x")
    assert (answer.status_code, answer.headers["retry-after"], answer.text) == (502, "1", "<html>")
    with pytest.raises(requests.ReadTimeout):
        call(session, "GET", "x")
    assert call(session, "GET", "x").status_code == 404


@pytest.mark.parametrize(
    ("fault", "act"),
    [
        ("foreign", lambda session: call(session, "PATCH", "c/1", {"body": f"{MARKER} x"})),
        ("foreign", lambda session: call(session, "DELETE", "c/1")),
        ("no report", lambda session: call(session, "DELETE", "c/2")),
        ("without a marker", lambda session: call(session, "POST", "c", {"body": "x"})),
        ("over GitHub's limit", lambda session: call(session, "POST", "c", {"body": MARKER + "x" * LONGEST_BODY})),
        ("another host", lambda session: session.request("GET", "https://evil.example/", timeout=1)),
        ("without end", lambda session: [call(session, "GET", "x") for _ in range(MOST_CALLS + 1)]),
    ],
)
def test_what_no_client_may_do_is_found(fault: str, act: Callable[[Session], Any]) -> None:
    theirs = {"id": 1, "user": {"login": "mallory"}, "body": f"{MARKER} x"}
    session = Session({"login": OWN, "comments": [theirs, {"id": 2, "user": {"login": OWN}, "body": "by hand"}]})
    try:
        act(session)
    except requests.ConnectionError:
        assert fault == "without end"
    assert fault in session.faults[0]


def test_a_case_is_stored_and_read(tmp_path: Path) -> None:
    case = Case(target="check", files={"golden.jsonl": b"\xff\n", "a/b.json": b"{}"})
    case.save(tmp_path / "check" / "a-name")
    assert stored(tmp_path) == {"check/a-name": case}
    assert Case.unpacked(case.packed()) == case


@pytest.mark.parametrize(
    ("name", "data", "needle", "smallest"),
    [
        ("golden.jsonl", b'{"id": "a", "query": "b"}\n{"id": "c", "tags": ["x", "needle"]}\n', b"needle", 40),
        ("golden.jsonl", b"not json\nneedle here\nmore\n", b"needle", 6),
        ("ragcontract.yml", b"k: 5\nfail_on:\n  needle: 3\n", b"needle", 30),
        ("questions.txt", b"one\ntwo\nneedle\n", b"needle", 6),
    ],
)
def test_a_case_is_made_smaller_while_it_fails(name: str, data: bytes, needle: bytes, smallest: int) -> None:
    case = Case(target="x", files={name: data, "run.trec": b"x", "argv.json": b"[1]"})
    small = minimised(case, lambda one: needle in one.files.get(name, b""), 2_000)
    assert set(small.files) == {name, "argv.json"}
    assert needle in small.files[name]
    assert len(small.files[name]) <= smallest
