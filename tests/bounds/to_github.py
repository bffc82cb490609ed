"""Limits on what is written to GitHub and read from it, and on the time that it gets."""

import json
import math
from itertools import islice
from typing import Any

import requests

from ragcontract.core import bounds
from ragcontract.core.finding import Finding
from ragcontract.github.comment import Draft
from ragcontract.github.context import Context, GitHubError, Token
from ragcontract.github.delivery import renderer_of
from ragcontract.github.http import Http
from ragcontract.github.marker import NO_RUN, SEVERAL, Marker, head, line, listed
from ragcontract.github.marker import Result as JobResult
from ragcontract.github.pull_request import PullRequest, changed_here
from ragcontract.github.relay import BAREST
from ragcontract.github.runner_output import annotation, of_report
from ragcontract.github.settings import ActionSettings
from ragcontract.net.pacing import JITTER, Timing
from ragcontract.report.record import Report
from tests import scenarios
from tests.bounds.lab import Case, Cases, Lab, all_of
from tests.bounds.reports import broken, holding, replaced
from tests.github.relayed import HEAD, of_commit, relayed
from tests.github.standin import Fault
from tests.github.test_comment import draft, written
from tests.github.test_http import Calls
from tests.records import rendered
from tests.runner import InProcess, Result


def a_comment(lab: Lab, size: int) -> bool:
    def drafted(text: str) -> Draft:
        return Draft(name="", state="pass", run=(100, 1), content="", body=lambda most, _before: text[:most])

    marker = line("", drafted("").marker())
    text = "x" * (size - len(marker) - 1)
    written(lab.github, drafted(text))
    return lab.github.bodies()[0] == f"{marker}\n{text}"


def step(lab: Lab, inputs: dict[str, str]) -> Result:
    """Run the action on a broken contract of three queries, in a folder of its own."""
    runner = InProcess(lab.folder / f"job{len(list(lab.folder.iterdir()))}", lab.github)
    scenarios.failing(runner.workspace)
    found = runner.run({"comment": "never", **inputs})
    file = runner.workspace / "comment.md"
    return found if not file.exists() else Result(**{**as_dict(found), "summary": file.read_text()})


def as_dict(result: Result) -> dict[str, Any]:
    """Return the fields of a result."""
    return {name: getattr(result, name) for name in result.__struct_fields__}


def a_text_of_the_action(name: str, inputs: dict[str, str]) -> Case:
    """Return the trial of a limit on Markdown in bytes; it is set to what the Markdown has, or to one less."""

    def is_whole(lab: Lab, size: int) -> bool:
        limit = getattr(bounds, name)
        whole = step(lab, inputs).summary
        body = whole.rpartition("\nChecked ")[0].removesuffix("\n") + "\n" if inputs else whole.removesuffix("\n")
        lab.make_smaller(name, len(body.encode()) - (size - limit))
        return step(lab, inputs).summary == whole

    return Case(is_whole)


def tries_of_a_comment(lab: Lab, size: int) -> bool:
    lab.github.faults = [Fault(method="POST", path="^/repos", times=size - 1, status=502)]
    try:
        written(lab.github, draft())
    except GitHubError:
        assert not lab.github.comments
        return False
    return len(lab.github.comments) == 1


def second_step(lab: Lab, report: bytes) -> tuple[int, str]:
    """Run ``mode: post-comment`` on a report; returns the exit code and the log."""
    lab.github.add_pull(7, sha=HEAD, head="stranger/app")
    runner = InProcess(lab.folder / "second", lab.github)
    found = relayed(runner, report)
    return found.exit_code, found.log


def posted(lab: Lab, report: bytes, refusal: str) -> bool:
    """Return whether a report is posted; if it is not, it must be for this reason."""
    code, log = second_step(lab, report)
    if code == 2:
        assert refusal in log, log
        return False
    assert code == 0
    assert len(lab.github.comments) == 1, log
    return True


def as_file(report: Report) -> bytes:
    """Return the ``report.json`` of a report."""
    return of_commit(rendered(report)["report-json"])


def report_explained(lab: Lab, size: int) -> bool:
    wrong = json.loads(as_file(holding())) | {"warnings": [1], "verdict": 2}
    code, log = second_step(lab, json.dumps(wrong).encode().ljust(size))
    assert code == 2
    return "is not a report of this version" not in log


def a_sentence(lab: Lab, size: int) -> bool:
    finding = Finding(
        kind="rule",
        ids=("must_include",),
        status="warn",
        location="",
        query_id="q0",
        expected=("x" * size,),
        found=("nothing",),
    )
    report = json.loads(as_file(holding()))
    report["findings"] = [json.loads(json.dumps({name: getattr(finding, name) for name in finding.__struct_fields__}))]
    return posted(lab, json.dumps(report).encode(), "findings: a sentence has more than")


def notes_of_a_report(lab: Lab, count: int) -> bool:
    report = json.loads(as_file(holding())) | {"run_notes": ["n"] * count}
    return posted(lab, json.dumps(report).encode(), "run_notes, label_notes, causes, history.notes: more than")


def shortest_report(lab: Lab, size: int) -> bool:
    report = broken(2)
    shortest = len(renderer_of(report, "")(BAREST).encode())
    lab.make_smaller("REPORT_SHORTEST", shortest - (size - bounds.REPORT_SHORTEST))
    return posted(lab, as_file(report), "its shortest form is too long for a comment")


def an_input(name: str) -> Case:
    """Return the trial of an input with a number."""

    def is_whole(_: Lab, number: int) -> bool:
        found = ActionSettings.from_environ({f"INPUT_{name.upper()}": str(number)})
        refusal = f"input {name}: expected a whole number from 1 to {number - 1:,}, found '{number}'"
        assert found.problems in {(), (refusal,)}
        return not found.problems

    return Case(is_whole)


def a_run(_: Lab, digits: int) -> bool:
    environ = {"GITHUB_RUN_ID": "9" * digits, "GITHUB_RUN_ATTEMPT": "9" * digits}
    id_of_run, attempt = Context.from_environ(environ).run
    return all_of(id_of_run > 0, attempt > 0)


def a_marker(_: Lab, size: int) -> bool:
    start = "<!-- rag-contract name="
    end = " run=100.1 "
    return Marker.of(f"{start}{'x' * (size - len(start) - len(end))}{end}-->", (100, 1)).run == (100, 1)


def results_of_a_run(_: Lab, count: int) -> bool:
    kept = listed(JobResult(f"{number:016x}", 1, "fail", "0") for number in range(count))
    return all(result.contract != SEVERAL for result in kept)


def a_run_ahead(_: Lab, ahead: int) -> bool:
    return Marker.of(f"<!-- rag-contract name= run={100 + ahead}.1 state=pass content=0 -->", (100, 1)).run != NO_RUN


def authors(lab: Lab, count: int) -> bool:
    for number in range(count):
        lab.github.add_comment(f"{head('')} run=100.1 state=pass content=0 -->", login=f"stranger{number}")
    written(lab.github, draft())
    asked = [sent for sent in lab.github.sent if "viewerDidAuthor" in str(sent.body)]
    return len(asked) == 1 and str(asked[0].body).count("IC_") >= count


def events_of_a_label(lab: Lab, size: int) -> bool:
    lab.github.add_pull(7, sha="a" * 40)
    lab.github.push(HEAD, at="2026-01-01T10:00:00Z")
    for number in range(size - 1):
        lab.github.set_label(f"label {number}", at="2026-01-01T10:01:00Z")
    lab.github.set_label("accepted", at="2026-01-01T10:02:00Z")
    runner = InProcess(lab.folder / "job", lab.github)
    scenarios.failing(runner.workspace)
    event = {"action": "labeled", "number": 7, "pull_request": {"number": 7, "head": {"sha": HEAD}}}
    found = runner.run({"comment": "never", "accept-label": "accepted"}, event=event)
    assert (found.exit_code == 0) is not ("events, which are not all read" in found.log)
    return found.exit_code == 0


def a_page(lab: Lab, size: int) -> bool:
    for _ in range(size):
        lab.github.add_comment("x", login="ann")
    calls = Calls(lab.github)
    assert len(list(islice(calls.client.comments(7), size))) == size
    return len(lab.github.requests) == 1


def an_answer_of_github(lab: Lab, size: int) -> bool:
    lab.github.faults = [Fault(status=400, message="m" * size)]
    return str(Calls(lab.github).fails()).endswith("m" * size)


def got(calls: Calls) -> bool:
    """Return whether a call succeeds in the end."""
    try:
        calls.get()
    except GitHubError:
        return False
    return True


def all_calls(lab: Lab, seconds: int) -> bool:
    lab.github.faults = [Fault(times=1, status=503, headers={"Retry-After": str(seconds - 1)})]
    return got(Calls(lab.github, seconds=ActionSettings.from_environ({}).github_timeout))


def seconds_of_one_call(lab: Lab, seconds: float) -> tuple[float, float]:
    """Return the time to connect and the time between two bytes that a call gets if ``seconds`` are left."""
    found: list[tuple[float, float]] = []

    class Spy(requests.Session):
        def request(self, *_: Any, timeout: Any = None, **__: Any) -> requests.Response:
            found.append(timeout)
            raise requests.ConnectTimeout

    timing = Timing(monotonic=lambda: 0.0, now=lambda: 0.0, sleep=lambda _seconds: None)
    client = Http(Spy(), Token("t"), seconds=seconds, timing=timing)
    try:
        client.call("GET", lab.github.url, tries=1)
    except GitHubError:
        return found[0]
    raise AssertionError("the call did not fail")


def tries_of_a_call(lab: Lab, size: int) -> bool:
    lab.github.faults = [Fault(times=size - 1, status=503)]
    return got(Calls(lab.github))


def pauses(lab: Lab, **fault: Any) -> list[float]:
    """Return the pauses, without chance, of a call that fails twice."""
    lab.patch.setattr(JITTER, "uniform", max)
    lab.github.faults = [Fault(times=2, **fault)]
    calls = Calls(lab.github, seconds=math.inf)
    calls.get()
    return calls.waits


def files_of_a_pull_request(lab: Lab, size: int) -> bool:
    lab.github.files = [*(f"docs/{number}.md" for number in range(size - 1)), "baseline.json"]
    calls = Calls(lab.github)
    environ = {"GITHUB_WORKSPACE": str(lab.folder)}
    found = changed_here(calls.client, PullRequest(7), replaced(), Context.from_environ(environ)).baseline
    assert found in {True, None}
    return found is True


CASES: Cases = {
    "PULL_REQUEST_FILES": Case(files_of_a_pull_request, small=120),
    "COMMENT": Case(a_comment),
    "COMMENT_FILE": a_text_of_the_action("COMMENT_FILE", {"comment-body-file": "comment.md"}),
    "COMMENT_NAME": Case(lambda _, size: "n" * size in head("n" * size)),
    "COMMENT_TRIES": Case(tries_of_a_comment),
    "SUMMARY": a_text_of_the_action("SUMMARY", {}),
    "ERRORS": Case(lambda _, size: "more like these" not in of_report(broken(size), "error", str)),
    "WARNINGS": Case(lambda _, size: "more like these" not in of_report(holding(warnings=["w"] * size), "error", str)),
    "ANNOTATION": Case(lambda _, size: annotation("error", "m" * size).endswith(f"::{'m' * size}\n")),
    "ANNOTATION_TITLE": Case(lambda _, size: f"title={'t' * size}::" in annotation("error", "m", title="t" * size)),
    "REPORT": Case(lambda lab, size: posted(lab, as_file(holding()).ljust(size), "is larger than"), small=10_000),
    "REPORT_EXPLAINED": Case(report_explained, small=10_000),
    "REPORT_SENTENCE": Case(a_sentence),
    "REPORT_NOTES": Case(notes_of_a_report),
    "REPORT_SHORTEST": Case(shortest_report),
    "PULL_REQUEST": an_input("pull-request"),
    "RUN_DIGITS": Case(a_run),
    "MARKER": Case(a_marker),
    "COMMENT_RESULTS": Case(results_of_a_run),
    "LABEL_EVENTS": Case(events_of_a_label, small=150),
    "RUN_AHEAD": Case(a_run_ahead),
    "AUTHORS": Case(authors, small=3),
    "PAGE": Case(a_page),
    "GITHUB_ANSWER": Case(an_answer_of_github),
    "TIMEOUT": an_input("github-timeout"),
    "TIMEOUT_DEFAULT": Case(all_calls),
    "CONNECT": Case(lambda lab, seconds: seconds_of_one_call(lab, seconds)[0] == seconds),
    "READ": Case(lambda lab, seconds: seconds_of_one_call(lab, seconds)[1] == seconds),
    "TRIES": Case(tries_of_a_call),
    "FIRST_PAUSE": Case(lambda lab, seconds: pauses(lab, status=503) == [seconds, 2 * seconds]),
    "LIMITED_PAUSE": Case(lambda lab, seconds: pauses(lab, status=429) == [seconds, 2 * seconds]),
}
