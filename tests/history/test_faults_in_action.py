"""What goes wrong with a history in the action changes no verdict, exit code, file or comment; it is only said."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from ragcontract.history.branch import Branch
from ragcontract.net.pacing import Timing
from tests import scenarios
from tests.github.standin import TOKEN, Fault, GitHub, Sent
from tests.history.action_jobs import (
    BRANCH,
    COMMIT,
    IN_BRANCH,
    QUERY,
    all_said,
    entries,
    is_of_history,
    messages,
    notes_of,
    push,
    writes,
)
from tests.history.entries import runs
from tests.needs import require
from tests.runner import SHA, InProcess, Result

HERE = f"branch {BRANCH}: "
FORBIDDEN = "Resource not accessible by integration"
NEEDS_WRITE = "; the recording job needs `permissions: contents: write`"
NEEDS_READ = "; reading it needs `permissions: contents: read`"
QUIET = IN_BRANCH | {"comment": "never"}
NOT_RECORDED = "This run could not be recorded: "
NOT_SHOWN = "Trend not shown: "
# Where GitHub hangs, the time for one call ends in the same moment as the time for all of them.
HANGS = (
    r"((history: )?GitHub did not answer within the \d seconds of github-timeout|"
    rf"{HERE}GitHub could not be reached \((ConnectionError|ReadTimeout)\); "
    r"the next try would come after the \d seconds that github-timeout allows)"
)


@pytest.fixture(autouse=True)
def _schema() -> None:
    require("npm")


def on_everything(**fault: Any) -> Callable[[InProcess], None]:
    """Return what makes all calls about the history go wrong."""

    def prepare(runner: InProcess) -> None:
        runner.github.faults = [Fault(body=f"{QUERY}|{COMMIT}", **fault), Fault(path="/git/", **fault)]

    return prepare


def on_commit(**fault: Any) -> Callable[[InProcess], None]:
    """Return what makes the commit of the entry go wrong."""

    def prepare(runner: InProcess) -> None:
        begin(runner.github)
        runner.github.faults = [Fault(body=COMMIT, **fault)]

    return prepare


def on_creation(path: str, **fault: Any) -> Callable[[InProcess], None]:
    """Return what makes a call go wrong with which the branch is made."""

    def prepare(runner: InProcess) -> None:
        runner.github.faults = [Fault(method="POST", path=path, **fault)]

    return prepare


def begin(github: GitHub) -> None:
    github.repository.commit(BRANCH, {"README.md": b""})


def begun(runner: InProcess) -> None:
    begin(runner.github)


def protected(runner: InProcess) -> None:
    begin(runner.github)
    runner.github.repository.protected.add(BRANCH)


def of_a_fork(runner: InProcess) -> None:
    begin(runner.github)
    runner.github.repository.access = "read"


def blind(runner: InProcess) -> None:
    runner.github.repository.access = "none"


def nothing(_runner: InProcess) -> None:
    """Change nothing: there is no branch yet."""


def made_by_another(runner: InProcess) -> None:
    """Let another job make the branch while this one does."""

    def meanwhile(sent: Sent) -> None:
        if sent.path.endswith("/git/refs"):
            begin(runner.github)

    runner.github.meanwhile = meanwhile


def moved(times: int) -> Callable[[InProcess], None]:
    """Return what makes another job commit just before this one does, so many times."""

    def prepare(runner: InProcess) -> None:
        begin(runner.github)
        others = iter(runs(times))

        def meanwhile(sent: Sent) -> None:
            if COMMIT in str(sent.body) and (other := next(others, None)):
                runner.github.repository.commit(BRANCH, {other.path: other.content})

        runner.github.meanwhile = meanwhile

    return prepare


def with_another_contract(runner: InProcess) -> None:
    """Record another check under the same name in the same run."""
    before = runner.now
    runner.now = datetime(2026, 1, 1, 23, 59, tzinfo=UTC)
    assert "history-entry" in push().run(runner, QUIET, run=100).outputs
    runner.now = before


def with_an_attempt(runner: InProcess) -> None:
    """Record the first attempt of the run."""
    runner.now = datetime(2025, 12, 31, 23, 59, 59, tzinfo=UTC)
    push().run(runner, QUIET, run=100)
    runner.now = datetime(2026, 1, 2, tzinfo=UTC)


class Case(Struct, frozen=True, kw_only=True):
    """What is different, and what is said; ``note`` and ``warning`` are empty where all is well."""

    prepare: Callable[[InProcess], None] = nothing
    note: str = ""
    warning: str = ""
    timeout: str = "150"
    token: str = TOKEN
    attempt: int = 1
    seeded: int = 0  # entries that are there before


def same(problem: str, read: str = "", write: str = "") -> dict[str, Any]:
    """Return what is said where neither reading nor recording works."""
    return {"note": f"{HERE}{problem}{read}", "warning": f"{HERE}{problem}{write}"}


AFTER_50 = "; the next try would come after the 50 seconds that github-timeout allows"
AFTER = "; the next try would come after the 150 seconds that github-timeout allows"
SHARED = (
    f"entries/docs/2026-01/20260102T000000Z-{SHA[:12]}-100-1.json: this run has already recorded another check of this "
    f"contract as 20260101T235900Z-{SHA[:12]}-100-1.json; give each contract of a run its own name "
    "(option --name, or input name of the action)"
)
CASES: dict[str, Case] = {
    "no branch": Case(),
    "a branch": Case(prepare=begun),
    "two that make the branch": Case(prepare=made_by_another),
    "a head that moves 8 times": Case(prepare=moved(8), seeded=8),
    "401": Case(
        prepare=on_everything(status=401, message="Bad credentials"), **same("GitHub answered 401: Bad credentials")
    ),
    "403": Case(
        prepare=on_everything(status=403, message=FORBIDDEN),
        **same(f"GitHub answered 403: {FORBIDDEN}", NEEDS_READ, NEEDS_WRITE),
    ),
    "403 of the commit only": Case(
        prepare=on_commit(status=403, message=FORBIDDEN),
        warning=f"{HERE}GitHub answered 403: {FORBIDDEN}{NEEDS_WRITE}",
    ),
    "403 of the new branch only": Case(
        prepare=on_creation("/git/trees", status=403, message=FORBIDDEN),
        warning=f"{HERE}GitHub answered 403: {FORBIDDEN}{NEEDS_WRITE}",
    ),
    "404": Case(
        prepare=on_everything(status=404, message="Not Found"),
        **same("GitHub answered 404: Not Found", NEEDS_READ, NEEDS_WRITE),
    ),
    "409": Case(
        prepare=on_creation("/git/trees", status=409, message="Git Repository is empty."),
        warning=f"{HERE}GitHub answered 409: Git Repository is empty.",
    ),
    "422": Case(
        prepare=on_creation("/git/refs", status=422, message="Reference update failed"),
        warning=f"{HERE}GitHub answered 422: Reference update failed",
    ),
    "429 that passes": Case(
        prepare=on_commit(status=429, message="slow down", headers={"Retry-After": "7"}, times=1),
    ),
    "429 for longer than a third of the time": Case(
        prepare=on_everything(status=429, message="slow down", headers={"Retry-After": "51"}, times=1),
        note=f"{HERE}GitHub answered 429: slow down{AFTER_50}",
    ),
    "429 for longer than there is time": Case(
        prepare=on_everything(status=429, message="slow down", headers={"Retry-After": "200"}),
        note=f"{HERE}GitHub answered 429: slow down{AFTER_50}",
        warning=f"{HERE}GitHub answered 429: slow down{AFTER}",
    ),
    "a page of HTML": Case(prepare=on_everything(kind="not json"), **same("GitHub's answer is not JSON")),
    "a page of HTML for the commit": Case(
        prepare=on_commit(kind="not json"), warning=f"{HERE}GitHub's answer is not JSON{AFTER}"
    ),
    "a reading that hangs": Case(
        prepare=lambda runner: setattr(runner.github, "faults", [Fault(body=QUERY, kind="hang", times=1)]),
        note="HANGS",
        timeout="6",
    ),
    "a commit that hangs": Case(
        prepare=on_commit(kind="hang"),
        warning="HANGS",
        timeout="6",
    ),
    "a protected branch": Case(
        prepare=protected, warning=f"{HERE}GitHub's answer is an error: Changes must be made through a pull request."
    ),
    "the token of a fork": Case(
        prepare=of_a_fork, warning=f"{HERE}GitHub's answer is an error: {FORBIDDEN}{NEEDS_WRITE}"
    ),
    "a token that may not read": Case(
        prepare=blind, **same(f"GitHub's answer is an error: {FORBIDDEN}", NEEDS_READ, NEEDS_WRITE)
    ),
    "two contracts of one name": Case(prepare=with_another_contract, warning=SHARED, seeded=1),
    "attempt 2, in another month": Case(prepare=with_an_attempt, attempt=2, seeded=1),
    "no token": Case(token="", note="history: there is no github-token", warning="there is no github-token"),
    "a token with a space": Case(
        token="a b",
        note="history: the input github-token has a space or a character in it that no token has",
        warning="the input github-token has a space or a character in it that no token has",
    ),
}


@contextmanager
def a_runner(folder: Path) -> Iterator[InProcess]:
    """Return a runner with a repository of its own, in which a pull request has the commit that is pushed."""
    with GitHub() as github:
        github.add_pull(7, sha=SHA)
        yield InProcess(folder, github)


def ran(runner: InProcess, case: Case, inputs: dict[str, str]) -> Result:
    own = {"github-token": case.token, "github-timeout": case.timeout, "name": "docs"}
    return push().run(runner, own | inputs, run=100, attempt=case.attempt)


# What the history says: a key of report.json, a line under the headline, a property, and a digest of all that.
OF_HISTORY = (
    r'(?s),\n  "history": \{.*?\n  \}',
    rf"- {NOT_SHOWN}.*\n\n",
    rf'<property name="history" value="{NOT_SHOWN}.*" />\n',
    r"content=[0-9a-f]{16}",
)


def without_history(said: dict[str, str], *, noted: bool) -> dict[str, str]:
    """Return what was said without what it says of the history."""
    for pattern in OF_HISTORY if noted else OF_HISTORY[:1]:
        said = {name: re.sub(pattern, "", text) for name, text in said.items()}
    return said


@pytest.mark.parametrize("scenario", [scenarios.passing, scenarios.failing])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_what_goes_wrong_changes_nothing_but_what_is_said_of_the_history(
    tmp_path: Path, case: Case, scenario: Callable[[Path], None]
) -> None:
    with a_runner(tmp_path / "without") as runner:
        scenario(runner.workspace)
        plain = ran(runner, case, {})
        expected = all_said(runner, plain)
    with a_runner(tmp_path / "with") as runner:
        scenario(runner.workspace)
        case.prepare(runner)
        result = ran(runner, case, IN_BRANCH)
        assert (result.exit_code, result.outputs["verdict"]) == (plain.exit_code, plain.outputs["verdict"])
        notes = messages(result, "notice")
        assert notes == notes_of(runner)
        assert_said(notes, NOT_SHOWN, case.note)
        old = messages(plain, "warning")
        assert_said([text for text in messages(result, "warning") if text not in old], NOT_RECORDED, case.warning)
        assert len(entries(runner.github)) == case.seeded + (not case.warning)
        id_of_entry = result.outputs.pop("history-entry", "")
        assert bool(id_of_entry) == (not case.warning)
        assert result.outputs == plain.outputs
        said = all_said(runner, result)
        assert without_history(said, noted=bool(notes)) == without_history(expected, noted=bool(notes))


def assert_said(messages: list[str], start: str, said: str) -> None:
    """Assert what the only message is, or that there is none; ``HANGS`` stands for what depends on the moment.

    Of the seconds that github-timeout allows, a busy machine may have used some.
    """
    expected = re.escape(f"{start}{said}").replace("HANGS", HANGS)
    for seconds, fewer in (("150", "1(4[0-9]|50)"), ("50", "(4[0-9]|50)")):
        expected = expected.replace(rf"the\ {seconds}\ seconds", rf"the\ {fewer}\ seconds")
    assert [message for message in messages if not re.fullmatch(expected, message)] == []
    assert len(messages) == bool(said)


@pytest.fixture
def runner(tmp_path: Path, github: GitHub) -> InProcess:
    """Return a runner whose clock moves only while it waits, with a commit that a pull request has."""
    runner = InProcess(tmp_path, github)
    runner.timing = Timing(monotonic=lambda: sum(runner.waits), now=runner.timing.now, sleep=runner.waits.append)
    github.add_pull(7, sha=SHA)
    begin(github)
    scenarios.passing(runner.workspace)
    return runner


def position(github: GitHub, is_it: Callable[[Sent], bool]) -> int:
    """Return which of the requests the first such one is."""
    return next(number for number, sent in enumerate(github.sent) if is_it(sent))


def is_comment(sent: Sent) -> bool:
    return sent.method == "POST" and sent.path.endswith("/comments")


def test_a_check_is_recorded_after_its_comment_and_read_before(runner: InProcess, github: GitHub) -> None:
    push().run(runner)
    assert is_of_history(github.sent[0])
    assert not writes(github.sent[0])
    assert 0 < position(github, is_comment) < position(github, writes)
    assert writes(github.sent[-1])


def limited(seconds: int, times: int = 1, **where: Any) -> Fault:
    """Return a rate limit that asks for a pause."""
    return Fault(status=429, message="slow down", headers={"Retry-After": f"{seconds}"}, times=times, **where)


def too_late(seconds: int) -> str:
    after = f"the next try would come after the {seconds} seconds that github-timeout allows"
    return f"GitHub answered 429: slow down; {after}"


def test_reading_takes_a_third_of_the_time_at_most_and_what_it_took_is_gone(runner: InProcess, github: GitHub) -> None:
    github.faults = [
        limited(40, body=QUERY),
        limited(60, method="POST", path="/comments"),
        limited(50, body=COMMIT),
    ]
    result = push().run(runner)
    assert runner.waits == [40, 60]
    assert notes_of(runner) == []
    assert len(github.comments) == 1
    assert messages(result, "warning") == [f"{NOT_RECORDED}{HERE}{too_late(50)}"]


def test_the_comment_has_no_more_time_than_reading_has_left(runner: InProcess, github: GitHub) -> None:
    github.faults = [limited(40, body=QUERY), limited(110, method="POST", path="/comments")]
    result = push().run(runner)
    assert messages(result, "warning") == [f"The comment could not be posted: {too_late(110)}"]
    assert "history-entry" in result.outputs


def test_the_first_pause_that_is_too_long_for_reading_is_not_made(runner: InProcess, github: GitHub) -> None:
    github.faults = [limited(50, body=QUERY)]
    result = push().run(runner)
    assert runner.waits == []
    assert notes_of(runner) == messages(result, "notice") == [f"{NOT_SHOWN}{HERE}{too_late(50)}"]


def test_once_no_time_is_left_nothing_is_sent(runner: InProcess, github: GitHub) -> None:
    def meanwhile(sent: Sent) -> None:
        if is_comment(sent):
            runner.waits.append(151)

    github.meanwhile = meanwhile
    result = push().run(runner)
    nothing_left = "nothing is left of the 150 seconds of github-timeout"
    assert messages(result, "warning") == [f"{NOT_RECORDED}{nothing_left}"]
    assert entries(github) == []


def test_what_nobody_expected_changes_no_verdict(runner: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise KeyError("months")

    monkeypatch.setattr(Branch, "months", broken)
    monkeypatch.setattr(Branch, "add", broken)
    result = push().run(runner)
    assert (result.exit_code, result.outputs["verdict"]) == (0, "pass")
    assert notes_of(runner) == [f"{NOT_SHOWN}history: KeyError: 'months'"]
    assert messages(result, "warning") == [f"{NOT_RECORDED}KeyError: 'months'"]


def test_a_comment_that_is_required_and_not_posted_is_no_reason_not_to_record(
    runner: InProcess, github: GitHub
) -> None:
    github.may_write = False
    result = push().run(runner, IN_BRANCH | {"comment-required": "true"})
    assert result.exit_code == 4
    assert [entry.verdict for entry in entries(github)] == ["pass"]


def test_what_a_label_accepts_is_recorded_as_accepted(runner: InProcess, github: GitHub) -> None:
    github.push("b" * 40, at="2026-01-01T10:01:00Z")
    github.set_label("accepted", at="2026-01-01T10:02:00Z")
    scenarios.failing(runner.workspace)
    result = push("b" * 40).run(runner, IN_BRANCH | {"accept-label": "accepted"})
    assert result.exit_code == 0
    assert [(entry.verdict, entry.accepted) for entry in entries(github)] == [("fail", True)]


HOSTILE = "<img src=x> @ann\n::error::**x** [a](http://x)"


def test_what_github_answers_acts_nowhere(runner: InProcess, github: GitHub) -> None:
    github.faults = [Fault(body=QUERY, status=403, message=HOSTILE)]
    result = push().run(runner)
    assert result.exit_code == 0
    assert messages(result, "error") == []
    for shown in (result.summary, *github.bodies()):
        assert NOT_SHOWN in shown
        assert not re.search(r"<img|\*\*x\*\*|(^|\s)@ann|(?<!\\)\]\(http://x", shown)


def test_a_secret_that_github_echoes_is_said_nowhere(runner: InProcess, github: GitHub) -> None:
    github.faults = [Fault(body=f"{QUERY}|{COMMIT}", status=401, message=f"no {TOKEN} here")]
    result = push().run(runner)
    assert TOKEN not in result.log
    assert not [name for name, text in all_said(runner, result).items() if TOKEN in text]
