"""``mode: post-comment``: what a stranger's check has left is posted, and does nothing but say what it says."""

import copy
import html
import json
import os
import random
import re
import shlex
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.run import Latency
from ragcontract.github import relay
from ragcontract.github.body import LEVELS
from ragcontract.github.delivery import renderer_of
from ragcontract.reports.json_report import render_error
from ragcontract.reports.markdown.document import render
from ragcontract.reports.markdown.document import render_error as render_error_as_markdown
from ragcontract.reports.report import ErrorReport, Report
from ragcontract.runs.stored import Tool
from tests import scenarios
from tests.builders import golden, run, stored_query, write_baseline, write_jsonl
from tests.github.standin import ACTIONS_BOT, TOKEN, Fault, GitHub, Sent
from tests.records import Rows, query, rendered, report
from tests.reports.markdown.test_gfm import NASTY, nasty
from tests.reports.page import Page
from tests.runner import InProcess, Result, Runner

CASES = Path(__file__).parent.parent / "cases"
HEAD = "c" * 40
INPUTS = {"mode": "post-comment"}
EVERY_TAG = {
    "br", "code", "details", "h3", "li", "p", "strong", "summary", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
HOLDS = "### ✅ Retrieval contract holds: nothing broken in 1 query; no gates are set\n"
Json = dict[str, Any]


def as_json(what: Report) -> Json:
    """Return what ``report.json`` holds of a report."""
    found: Json = json.loads(rendered(what)["report-json"])
    return found


def passing() -> Json:
    return as_json(report([query("q", "A")], {"q": ["A"]}))


def failing() -> Json:
    return as_json(report([query("q", "A")], {"q": ["x"]}))


def unjudgeable(*problems: str, **fields: Any) -> Json:
    tool = Tool(name="rag-contract", version="1")
    made = ErrorReport(tool=tool, created_at="2026-01-01T00:00:00+00:00", problems=list(problems or ["x"]), **fields)
    found: Json = json.loads(render_error(made))
    return found


def everything() -> Json:
    """Return a report with something in each of its parts."""
    queries = [
        query("q1", "A", "B", tags=("t", "u"), must_rank_at_most=1, forbidden_doc_ids=("X",)),
        query("q2", "A", tags=("t",)),
        query("q3", "C"),
        query("q4", "D", severity="warn"),
    ]
    before = Rows(
        docs={"q1": ["A", "B"], "q2": ["A"], "q3": ["C"], "gone": ["z"]},
        name="baseline.json",
        questions={"q3": "Another?"},
        versions={"embedding_model": ["a"]},
        latency=Latency(rows=3, p50_ms=1.0, p95_ms=2.0, max_ms=3.0),
    )
    now = Rows(
        docs={"q1": ["X", "x", "A"], "q2": ["x", "A"], "q3": ["C", "C"], "q4": ["x"]},
        name="run.jsonl",
        versions={"embedding_model": ["b", "c"]},
    )
    waiver = {"reason": "known", "owner": "ann", "expires": "2027-01-01"}
    config = {
        "k": [1, 5],
        "fail_on": {"mrr_drop_gt": "1%", "recall_drop_gt": 0.5, "mode": "significant"},
        "minimums": {"recall_at_1": 0.9},
        "tags": {"t": {"minimums": {"mrr_at_k": 0.9}}},
        "waivers": [{"query": "q2", **waiver}, {"gate": "minimums.recall_at_1", **waiver}],
    }
    return as_json(report(queries, now, before, config, warnings=["odd"]))


def event(**fields: Any) -> dict[str, Any]:
    head = {
        "id": 55,
        "run_number": 5,
        "run_attempt": 2,
        "head_sha": HEAD,
        "head_branch": "topic",
        "head_repository": {"full_name": "stranger/app"},
        "pull_requests": [],
    }
    return {"action": "completed", "workflow_run": head | fields}


@pytest.fixture
def github() -> Iterator[GitHub]:
    with GitHub() as standin:
        standin.add_pull(7, sha=HEAD, head="stranger/app")
        yield standin


@pytest.fixture
def runner(tmp_path: Path, github: GitHub) -> InProcess:
    return InProcess(tmp_path, github)


def relayed(
    runner: Runner, what: Json | bytes | None = None, inputs: dict[str, str] | None = None, **head: Any
) -> Result:
    """Run the second workflow on what the first one left: a passing report, if nothing else is given."""
    data = what if isinstance(what, bytes) else json.dumps(passing() if what is None else what).encode()
    (runner.workspace / "report.json").write_bytes(data)
    return posted(runner, inputs, **head)


def posted(runner: Runner, inputs: dict[str, str] | None = None, **head: Any) -> Result:
    """Run the second workflow on what is there."""
    return runner.run(INPUTS | (inputs or {}), event=event(**head), name="workflow_run", run=900)


def said(body: str) -> str:
    """Return a comment without its first line, the marker, and without its foot."""
    return body.partition("\n")[2].partition("\n<sub>")[0]


def test_the_report_is_posted_on_the_pull_request_that_the_workflow_ran_for(runner: Runner, github: GitHub) -> None:
    result = relayed(runner)
    assert result.exit_code == 0
    assert result.outputs == {"comment-url": github.comments[0]["html_url"]}
    assert github.comments[0]["issue_url"].endswith("/issues/7")
    assert github.bodies()[0].partition("\n")[2].startswith(HOLDS)


def test_its_foot_and_its_marker_are_those_of_the_run_that_checked(runner: Runner, github: GitHub) -> None:
    relayed(runner)
    body = github.bodies()[0]
    assert body.startswith("<!-- rag-contract name= run=55.2 state=pass ")
    assert "<sub>Posted 2026-01-02 00:00 UTC · [run 5, attempt 2](https://github.com/octo/app/actions/runs/55)" in body
    assert f"commit {HEAD}" in body


def test_it_updates_the_comment_of_the_same_contract_unless_that_is_newer(runner: Runner, github: GitHub) -> None:
    relayed(runner, failing())
    relayed(runner, passing(), id=56)
    assert "✅" in github.bodies()[0]
    assert "A newer run has commented already" in relayed(runner, failing()).log
    assert "✅" in github.bodies()[0]
    assert len(github.comments) == 1


@pytest.mark.parametrize(
    ("what", "icon", "state"), [(passing, "✅", "pass"), (failing, "❌", "fail"), (unjudgeable, "⚠️", "error")]
)
def test_the_verdict_is_that_of_the_report(
    runner: Runner, github: GitHub, what: Callable[[], Json], icon: str, state: str
) -> None:
    relayed(runner, what())
    assert f" state={state} " in github.bodies()[0]
    assert said(github.bodies()[0]).startswith(f"### {icon} Retrieval contract ")


def test_each_contract_has_its_comment_by_the_name_that_this_workflow_gives_it(runner: Runner, github: GitHub) -> None:
    other = passing()
    other["source"] = {"contract": "another"}
    for name in ("search", "", "search"):
        relayed(runner, other, {"name": name})
    assert [said(body).partition(" holds")[0] for body in github.bodies()] == [
        "### ✅ Retrieval contract search",
        "### ✅ Retrieval contract",
    ]


def test_the_pull_request_is_never_that_of_the_file_or_of_an_input(runner: Runner, github: GitHub) -> None:
    github.add_pull(8, sha=HEAD, head="octo/app")
    source = {"pull_request": 8, "commit": HEAD, "repository": "octo/app", "run_url": "https://evil.example"}
    assert relayed(runner, passing() | {"source": source}, {"pull-request": "8"}).exit_code == 0
    assert github.comments[0]["issue_url"].endswith("/issues/7")
    assert "evil.example" not in github.bodies()[0]


def test_a_pull_request_that_has_moved_on_gets_no_comment(runner: Runner, github: GitHub) -> None:
    result = relayed(runner, head_sha="d" * 40)
    assert result.exit_code == 0
    assert "No comment: no open pull request has dddddddddddd of stranger/app" in result.log
    assert github.comments == []


@pytest.mark.parametrize("name", ["pull_request", "push", "workflow_dispatch"])
@pytest.mark.parametrize(("required", "code"), [("false", 0), ("true", 4)])
def test_another_event_than_a_workflow_run_is_reported_and_fails_where_the_comment_is_required(
    runner: Runner, github: GitHub, name: str, required: str, code: int
) -> None:
    (runner.workspace / "report.json").write_text(json.dumps(passing()))
    result = runner.run(INPUTS | {"comment-required": required}, event={"after": HEAD}, name=name)
    assert result.exit_code == code
    assert f"mode post-comment needs the event workflow_run, and this is '{name}'" in result.log
    assert github.comments == []


@pytest.mark.parametrize(
    ("required", "code"),
    [("false", 0), ("true", 4)],
)
def test_a_refusal_is_reported_and_fails_where_the_comment_is_required(
    runner: Runner, github: GitHub, required: str, code: int
) -> None:
    github.may_write = False
    result = relayed(runner, inputs={"comment-required": required})
    assert result.exit_code == code
    assert "permissions: pull-requests: write" in result.log


def test_without_a_token_it_says_so(runner: Runner) -> None:
    result = relayed(runner, inputs={"github-token": "", "comment-required": "true"})
    assert result.exit_code == 4
    assert "there is no github-token" in result.log


def test_outputs_that_cannot_be_written_take_no_comment_back(runner: Runner, github: GitHub) -> None:
    (runner.folder / "file_commands" / "set_output").mkdir()
    result = relayed(runner)
    assert result.exit_code == 0
    assert "could not be delivered (IsADirectoryError" in result.log
    assert len(github.comments) == 1


def test_a_post_that_was_received_is_not_repeated(runner: Runner, github: GitHub) -> None:
    github.faults = [Fault(method="POST", path="^/repos", kind="do and drop")]
    assert relayed(runner).exit_code == 0
    assert len(github.comments) == 1


def nothing_posted(runner: Runner, result: Result, reported: str) -> None:
    assert result.exit_code == 2
    assert reported in result.log
    assert runner.github.requests == []
    assert result.annotations[0].level == "error"


def test_a_file_that_is_not_there_is_reported_and_not_made(runner: Runner) -> None:
    nothing_posted(runner, posted(runner), "report.json: cannot be read (No such file")
    assert not (runner.workspace / "report.json").exists()


def test_a_file_of_16_mib_is_read_and_one_byte_more_is_refused(runner: Runner, github: GitHub) -> None:
    data = json.dumps(passing()).encode().ljust(bounds.REPORT)
    assert bounds.REPORT == 16 << 20
    nothing_posted(runner, relayed(runner, data + b" "), "is larger than 16 MiB; report-json-detail: failed")
    assert relayed(runner, data).exit_code == 0
    assert len(github.comments) == 1


@pytest.mark.parametrize("make", [lambda path: path.mkdir(), os.mkfifo])
def test_what_is_no_file_is_not_read(runner: Runner, make: Any) -> None:
    make(runner.workspace / "report.json")
    nothing_posted(runner, posted(runner), "report.json: is not a file")


@pytest.mark.parametrize("target", ["/etc/hostname", "/proc/self/environ", "../home/secret"])
def test_a_link_out_of_the_workspace_is_not_followed(runner: Runner, target: str) -> None:
    (runner.folder / "home" / "secret").write_text("secret")
    (runner.workspace / "report.json").symlink_to(target)
    nothing_posted(runner, posted(runner), "leads out of the workspace")


def test_a_link_to_another_file_of_the_workspace_is_not_followed(runner: Runner) -> None:
    (runner.workspace / ".git").mkdir()
    (runner.workspace / ".git" / "report.json").write_text(json.dumps(passing()))
    (runner.workspace / "artifact").symlink_to(".git")
    (runner.workspace / "report.json").symlink_to(".git/report.json")
    nothing_posted(runner, posted(runner), "is behind a symbolic link")
    nothing_posted(runner, posted(runner, {"report-json": "artifact/report.json"}), "is behind a symbolic link")
    nothing_posted(runner, posted(runner, {"working-directory": "artifact"}), "is behind a symbolic link")


def test_a_link_to_itself_is_reported(runner: Runner) -> None:
    (runner.workspace / "report.json").symlink_to("report.json")
    nothing_posted(runner, posted(runner), "report.json: is behind a symbolic link")


@pytest.mark.parametrize("path", ["../home/secret", "/etc/hostname", "a/../../home/secret"])
def test_a_file_outside_of_the_workspace_is_not_read(runner: Runner, path: str) -> None:
    (runner.folder / "home" / "secret").write_text("secret")
    nothing_posted(runner, posted(runner, {"report-json": path}), "leads out of the workspace")


def test_the_file_is_found_in_the_working_directory_and_by_the_machines_path(runner: Runner, github: GitHub) -> None:
    data = json.dumps(passing())
    (runner.workspace / "artifact").mkdir()
    (runner.workspace / "artifact/report.json").write_text(data)
    assert posted(runner, {"working-directory": "artifact"}).exit_code == 0
    assert posted(runner, {"report-json": "/home/runner/work/app/app/artifact/report.json"}).exit_code == 0
    (runner.folder / "runner_temp/r.json").write_text(data)
    assert posted(runner, {"report-json": str(runner.folder / "runner_temp/r.json")}).exit_code == 0
    assert len(github.comments) == 1


@pytest.mark.parametrize(
    "inputs", [{"comment": "never"}, {"comment-body-file": "comment.md"}, {"working-directory": ".."}]
)
def test_inputs_that_do_not_go_together_are_reported(runner: Runner, inputs: dict[str, str]) -> None:
    nothing_posted(runner, relayed(runner, inputs=inputs), "input ")


def test_a_body_file_is_refused_with_the_name_of_the_input_that_replaces_it(runner: Runner) -> None:
    result = relayed(runner, inputs={"comment-body-file": "comment.md"})
    nothing_posted(runner, result, "name it here with the input report-json, and remove comment-body-file")


def test_a_comment_that_was_red_says_so_when_the_contract_holds_again(runner: Runner, github: GitHub) -> None:
    for number, broken in enumerate((failing(), unjudgeable())):
        relayed(runner, broken, id=60 + 10 * number)
        relayed(runner, passing(), id=61 + 10 * number)
        assert said(github.bodies()[0]).startswith("### ✅ Retrieval contract holds again: ")
        relayed(runner, passing(), id=62 + 10 * number)
        assert "again" not in github.bodies()[0]


def test_on_change_leaves_a_report_alone_that_differs_in_time_and_inputs_only(runner: Runner, github: GitHub) -> None:
    for number, (what, day) in enumerate(((passing(), 1), (passing(), 2), (failing(), 3), (failing(), 4))):
        what["created_at"] = f"2026-01-0{day}"
        what["inputs"]["run"]["files"][0]["sha256"] = f"{day}" * 64
        relayed(runner, what, {"comment": "on-change"}, id=60 + number)
        assert f"2026-01-0{1 if day < 3 else 3}" in github.bodies()[0]


def test_a_late_run_of_an_older_commit_overwrites_nothing(runner: Runner, github: GitHub) -> None:
    def push(sent: Sent) -> None:
        if "comments" in sent.path:
            github.pulls[0]["head"]["sha"] = "d" * 40

    github.meanwhile = push
    result = relayed(runner)
    assert result.exit_code == 0
    assert "the pull request has a newer commit by now" in result.log
    assert github.comments == []


@pytest.mark.parametrize(("required", "code"), [("false", 0), ("true", 4)])
def test_an_event_that_cannot_be_read_is_reported_and_fails_where_the_comment_is_required(
    runner: Runner, required: str, code: int
) -> None:
    (runner.workspace / "report.json").write_text(json.dumps(passing()))
    (runner.folder / "workflow" / "event.json").write_text("{")
    result = runner.run(INPUTS | {"comment-required": required}, event=None, name="workflow_run")
    assert result.exit_code == code
    assert "The comment could not be posted: the event's file cannot be read" in result.log


@pytest.mark.parametrize(("required", "code"), [("false", 0), ("true", 4)])
def test_a_setting_of_the_network_that_is_wrong_is_no_bug_of_ours(
    runner: Runner, monkeypatch: pytest.MonkeyPatch, required: str, code: int
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/no/such/bundle")
    inputs = INPUTS | {"comment-required": required}
    (runner.workspace / "report.json").write_text(json.dumps(passing()))
    api = {"GITHUB_API_URL": "https://127.0.0.1:9", "GITHUB_GRAPHQL_URL": "https://127.0.0.1:9/graphql"}
    result = runner.run(inputs, event=event(), name="workflow_run", environ=api)
    assert result.exit_code == code
    assert "The comment could not be posted (OSError: Could not find a suitable TLS CA certificate bundle" in result.log


HOSTILE = [
    *(text.replace("\ud800", "") for text in NASTY),  # JSON has no half of a character
    "<a href='https://evil.example'>click</a> <A HREF=x>",
    "<img src='https://evil.example/x.png'><IMG SRC=x><svg onload=x><iframe src=x></iframe>",
    "<!-- an open comment\n\neverything after",
    "<details><summary>open for ever</summary>",
    "</details>\n\n</details>\n\n<details><summary>x</summary>\n\n<details><summary>y</summary>",
    "<details open>\n\n<summary>@octocat</summary>\n",
    "<details><summary>@octocat www.evil.example deadbeefdeadbeef</summary>",
    "<details><summary>deadbeefdeadbeef</summary>",
    "<details><summary>:tada:</summary>",
    "<details>\n`@octocat`\n</details>",
    "<br>\n`hi @octocat` deadbeefdeadbeef",
    "<details><summary>x</summary>\n`hi @octocat`\n</details>\n`hi @octocat`",
    "- <br>\n  `@octocat`",
    "> <details>\n> `@octocat`",
    "| a | b |\n| --- | --- |\n| `x | @octocat` |",
    "a ` b `` c ` @octocat `",
    "`\n@octocat `b` @octocat",
    "\\`@octocat`",
    "```\n@octocat",
    "~~~html\n<b>",
    "    @octocat",
    "\t<b>@octocat",
    "&#64;octocat &commat;octocat &#x40;octocat &#0064;octocat",
    "&#35;12 &num;12 #&#49;2 \\#12 \\@octocat",
    "<code>&#64;octocat</code> <code>a&#64;evil.example</code>",
    "<code>a&#64;<!-- -->evil&#46;example</code>",
    "user&#64;evil.example user\\@evil.example",
    "https&colon;//evil.example http&#58;//evil.example",
    "[a]: https://evil.example\n[a]\n\n[a][]",
    "[^1]\n\n[^1]: note",
    "![a](x) !\\[a](x) !&#91;a](x)",
    "[a](javascript:alert`1`)",
    "$$\\href{https://evil.example}{x}$$ $`x`$",
    "<span>$</span><span onclick=x>",
    "# one\n## two\n###### six",
    "text\n===",
    "*" * 3000,
    "[" * 3000,
    "> " * 500 + "x",
    "a\rb\x00c\x1b[31m\u202ed\u200be\ufeff",
    "a\x0bb\x0cc\x85d\u2028e",
]


def assert_contained(text: str) -> Page:
    """Render it and see that nothing in it reaches beyond it, with nothing left open (the page fails on that)."""
    page = Page(text)
    names = {tag.removeprefix("/").split(" ")[0] for tag in page.tags}
    assert names <= EVERY_TAG, (text, names - EVERY_TAG)
    assert not [tag for tag in page.tags if " " in tag and " align=" not in tag], page.tags
    assert page.links() == []
    assert "<!--" not in page.html.replace("<!-- -->", "")
    assert page.tags.count("details") == page.tags.count("/details")
    return page


# What is compared, looked up or one of a few: with any other value a report is refused, or another one.
NOT_FREE = {"verdict", "status", "kind", "detail", "better", "unit", "metric", "tag", "query_id", "id", "ids"}


def with_text(value: Any, text: str, *, everywhere: bool) -> Any:
    """Return a report with ``text`` for all text in it, names of queries, tags and metrics too if ``everywhere``."""
    if isinstance(value, dict):
        return {
            f"{text}{name}" if everywhere and _is_own(name) else name: with_text(inner, text, everywhere=everywhere)
            if isinstance(inner, dict | list)
            else _free(name, inner, text, everywhere=everywhere)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [text if isinstance(one, str) else with_text(one, text, everywhere=everywhere) for one in value]
    return value


OWN = {"t", "u", "A", "B", "C", "D", "X"}  # tags and documents of `everything`


def _is_own(name: str) -> bool:
    return name in OWN or "_at_" in name


def _free(name: str, value: Any, text: str, *, everywhere: bool) -> Any:
    if not isinstance(value, str) or (name in NOT_FREE and not (everywhere and name in {"metric", "tag"})):
        return value
    return f"{text}{value}" if name in {"metric", "tag"} else text


@pytest.mark.parametrize("everywhere", [False, True])
@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_in_a_hostile_report_reaches_beyond_it(
    runner: Runner, github: GitHub, text: str, *, everywhere: bool
) -> None:
    for what in (everything(), unjudgeable("golden.jsonl:1: x", warnings=["odd"])):
        result = relayed(runner, with_text(what, text, everywhere=everywhere))
        assert result.exit_code == 0, result.log
        marker, _, body = github.bodies()[0].partition("\n")
        assert re.fullmatch(r"<!-- rag-contract name= run=55\.2 state=(fail|error) content=[0-9a-f]{16} -->", marker)
        assert_contained(said(github.bodies()[0]))
        assert Page(body).tags[-6:-3] == ["p", "sub", "a href=https://github.com/octo/app/actions/runs/55"]
        assert result.annotations == []
        assert "\x1b" not in github.bodies()[0] + result.log


PIECES = [
    ["see https:", "//evil.example"],
    ["www", ".evil.example"],
    ["deadb", "eef", "1234567"],
    ["#", "12 gh", "-12"],
    ["octocat@", "evil.example"],
    [":", "tada", ":"],
    ["<", "b>", "[a]", "(https:", "//evil.example)"],
    ["`", {"name": "@octocat"}, "`"],
    ["@", {"name": "octocat"}],
    [{"name": ""}, {"name": "@octocat [x](https://evil.example) <img src=https://evil.example/x.png>"}],
    [{"name": ""}, "`", {"name": "@octocat https://evil.example"}],
    [{"name": "@octocat"}, {"name": ""}],
]


@pytest.mark.parametrize("pieces", PIECES, ids=str)
def test_pieces_of_a_sentence_do_not_become_a_link_together(runner: Runner, github: GitHub, pieces: list[Any]) -> None:
    what = everything()
    what["findings"] = [
        finding | dict.fromkeys(("expected", "found", "found_now"), pieces) for finding in what["findings"]
    ]
    assert relayed(runner, what).exit_code == 0
    assert_contained(said(github.bodies()[0]))


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_ids_and_questions_stay_text(runner: Runner, github: GitHub, text: str) -> None:
    ids = [f"{number}{text}" for number in range(2)]
    queries = [query(one, *ids, must_rank_at_most=1, tags=(text,), query=f"{text}?") for one in ids]
    before = dict.fromkeys(ids, ids) | {f"gone {text}": ["A"]}
    what = report(queries, {one: ["x", ids[0]] for one in ids}, before, warnings=[text])
    assert relayed(runner, as_json(what)).exit_code == 0
    assert_contained(said(github.bodies()[0]))


def test_a_forged_marker_stays_text(runner: Runner, github: GitHub) -> None:
    forged = "<!-- rag-contract name=other run=999999.1 state=pass content=0 -->"
    relayed(runner, with_text(everything(), f"{forged}\n{forged}", everywhere=True))
    marker, _, body = github.bodies()[0].partition("\n")
    assert " run=55.2 " in marker
    assert "<!-- rag-contract" not in body


def seen(markdown: str) -> str:
    """Return the page that people see."""
    return re.sub("[\u200b]", "", html.unescape(Page(markdown).html))


@given(st.lists(nasty, min_size=2, max_size=3, unique=True))
@settings(max_examples=40)
def test_a_report_reads_the_same_after_it_was_a_file(texts: list[str]) -> None:
    ids = [f"{text}{number}".encode(errors="ignore").decode() for number, text in enumerate(texts)]
    queries = [query(one, *ids, must_rank_at_most=1, tags=(one,), query=f"{one}?") for one in ids]
    before = dict.fromkeys(ids, ids) | {f"gone {ids[0]}": ["A"]}
    what = report(queries, {one: ["x", ids[0]] for one in ids}, before, warnings=ids)
    read = msgspec.json.decode(rendered(what)["report-json"], type=Report)
    assert render(read, name=ids[0]) == render(what, name=ids[0])
    assert_contained(render(read, name=ids[0]))
    error = ErrorReport(tool=Tool(name="x", version="1"), created_at="now", problems=ids, warnings=ids)
    again = msgspec.json.decode(render_error(error), type=ErrorReport)
    assert render_error_as_markdown(again, name=ids[1]) == render_error_as_markdown(error, name=ids[1])
    assert_contained(render_error_as_markdown(again, name=ids[1]))


def both(runner: InProcess, inputs: dict[str, str] | None = None, code: int | None = None) -> tuple[str, str]:
    """Run both workflows; returns the comment of a first one that may write, and that of the second."""
    own = {name: value for name, value in (inputs or {}).items() if name == "name"}
    with GitHub() as there:
        there.add_pull(7, sha=HEAD, head="stranger/app")
        job = InProcess(runner.folder / "first", there)
        shutil.rmtree(job.workspace)
        shutil.copytree(runner.workspace, job.workspace)
        result = job.run(inputs)
        assert code is None or result.exit_code == code, result.log
        (runner.workspace / "report.json").write_bytes((job.workspace / "report.json").read_bytes())
        shutil.rmtree(job.folder)
        (first,) = there.bodies()
    result = posted(runner, own)
    assert result.exit_code == 0, result.log
    (second,) = runner.github.bodies()
    return first, second


def state_and_content(body: str) -> Sequence[str]:
    found = re.match(r"<!-- rag-contract name=(\S*) run=\S+ state=(\w+) content=(\w+) -->", body)
    assert found
    return found.groups()


@pytest.mark.parametrize("name", ["", "search <b>"])
@pytest.mark.parametrize(
    ("scenario", "code"), [(scenarios.passing, 0), (scenarios.failing, 1), (scenarios.unusable, 2)]
)
def test_the_comment_is_the_one_that_the_first_workflow_could_not_post(
    runner: InProcess, scenario: Callable[[Path], None], code: int, name: str
) -> None:
    scenario(runner.workspace)
    first, second = both(runner, {"name": name}, code)
    assert said(second) == said(first)
    assert state_and_content(second) == state_and_content(first)


def inputs_of(case: Path) -> dict[str, str]:
    """Return the inputs of the action that are a golden case's arguments."""
    given: dict[str, str] = {}
    name = ""
    for arg in shlex.split((case / "args").read_text()) if (case / "args").exists() else ():
        if arg.startswith("--"):
            name = arg.removeprefix("--")
        else:
            given[name] = f"{given[name]}\n{arg}" if name in given else arg
    return given


@pytest.mark.parametrize("case", sorted(CASES.iterdir()), ids=lambda case: case.name)
def test_the_comment_on_every_golden_case_is_the_one_that_the_first_workflow_would_post(
    runner: InProcess, case: Path
) -> None:
    shutil.copytree(case, runner.workspace, ignore=shutil.ignore_patterns("expected", "args"), dirs_exist_ok=True)
    first, second = both(runner, inputs_of(case), int((case / "expected" / "exit_code").read_text()))
    assert said(second) == said(first)
    assert state_and_content(second) == state_and_content(first)
    assert_contained(said(second))


def test_the_report_of_a_huge_check_fits_into_the_comment(runner: InProcess) -> None:
    workspace = runner.workspace
    ids = [f"query {number} |{'ü' * 40}" for number in range(3000)]
    write_jsonl(workspace / "golden.jsonl", [golden(one, "doc1", "doc2", tags=[one]) for one in ids])
    write_jsonl(workspace / "current_run.jsonl", [run(one, "x") for one in ids])
    write_baseline(workspace / "baseline.json", *[stored_query(one, "doc1", query=golden(one)["query"]) for one in ids])
    first, second = both(runner)
    assert "more broken queries, in `report.json`" in second
    assert len(second.encode()) < 65_536
    assert said(second) == said(first)


def test_the_token_is_in_nothing_that_is_written(runner: Runner, github: GitHub) -> None:
    assert github.login == ACTIONS_BOT
    result = relayed(runner)
    assert TOKEN not in result.log + result.summary + "".join(github.bodies())


def without(what: Json, *path: str | int) -> Json:
    return changed(what, path, lambda at, name: at.pop(name))


def with_value(what: Json, *path: str | int, value: Any) -> Json:
    return changed(what, path, lambda at, name: at.__setitem__(name, value))


def changed(what: Json, path: Sequence[str | int], change: Callable[[Any, Any], object]) -> Json:
    found: Json = copy.deepcopy(what)
    at: Any = found
    for name in path[:-1]:
        at = at[name]
    change(at, path[-1])
    return found


DEEP = b'{"verdict": "pass", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
NO_REPORT: list[tuple[str, bytes, str]] = [
    ("nothing", b"", "report.json: "),
    ("blank", b" \n", "report.json: "),
    ("a list", b"[1]", "report.json: expected an object, found [1]"),
    ("null", b"null", "report.json: expected an object, found null"),
    ("no report", b"{}", "report.json: created_at: is missing"),
    ("no JSON", b"### holds", "report.json: is not JSON: "),
    ("cut off", json.dumps(failing()).encode()[:-30], "report.json: is cut off in the middle"),
    ("no UTF-8", json.dumps(failing()).encode().replace(b"What", b"Wh\xe4t"), "report.json: is not UTF-8"),
    ("nested", DEEP, "report.json: is nested too deeply: more than 100 levels"),
    ("nested in an error", DEEP.replace(b"pass", b"error"), "report.json: is nested too deeply: more than 100 levels"),
    ("another verdict", json.dumps(passing() | {"verdict": "x"}).encode(), "report.json: verdict: expected"),
    ("a verdict of another type", json.dumps(passing() | {"verdict": []}).encode(), "report.json: verdict: expected"),
    ("half of a character", json.dumps(passing() | {"warnings": ["\ud800"]}).encode(), "report.json: is not JSON"),
    ("another version", json.dumps(passing() | {"schema_version": 2}).encode(), "schema_version: expected 1"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "reported"), [row[1:] for row in NO_REPORT], ids=[row[0] for row in NO_REPORT])
def test_what_is_no_report_is_refused(runner: Runner, data: bytes, reported: str) -> None:
    nothing_posted(runner, relayed(runner, data), reported)


def gate_of(tag: str | None, **fields: Any) -> Json:
    gate: Json = next(gate for gate in everything()["gates"] if gate["tag"] == "t")
    return gate | {"tag": tag} | fields


DO_NOT_FIT = "its parts are inconsistent"
APART: list[tuple[str, Json, str]] = [
    ("a gate of a tag that is not there", everything() | {"gates": [gate_of("no tag")]}, DO_NOT_FIT),
    ("a tag without the metric of its gate", with_value(everything(), "tags", "t", "metrics", value={}), DO_NOT_FIT),
    ("no k", everything() | {"k": []}, "k: expected a list that is not empty, found []"),
    ("a k of 0", everything() | {"k": [0]}, "k[0]: expected"),
    ("no files", with_value(everything(), "inputs", "golden", "files", value=[]), DO_NOT_FIT),
    ("a wrong type", with_value(everything(), "queries", value={}), "queries: expected a list, found {}"),
    ("a missing key", without(everything(), "inputs", "run"), "inputs.run: is missing"),
    ("a number for text", with_value(everything(), "warnings", 0, value=1), "warnings[0]: expected text, found 1"),
    ("a rank in a text", with_value(everything(), "queries", 0, "ranks", "A", value="1"), "queries[0].ranks"),
    ("no problems, but an error", unjudgeable() | {"problems": "x"}, "problems: expected a list"),
    ("labels of a megabyte", with_value(everything(), "metrics", "mrr_at_5", "label", value="@" * 2**20), "too long"),
    ("a headline of a megabyte", with_value(everything(), "findings", 0, "found", value=["x" * 2**20]), "characters"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "reported"), [row[1:] for row in APART], ids=[row[0] for row in APART])
def test_a_report_whose_parts_do_not_fit_is_refused(runner: Runner, what: Json, reported: str) -> None:
    nothing_posted(runner, relayed(runner, what), reported)


ODD: list[tuple[str, Json]] = [
    ("no metrics", everything() | {"metrics": {}, "gates": [], "tags": {}, "findings": [], "queries": []}),
    ("findings of queries that are not there", with_value(everything(), "findings", 1, "query_id", value="nobody")),
    ("no findings", everything() | {"findings": []}),
    ("no queries", everything() | {"queries": []}),
    ("fields that nobody knows", everything() | {"later": {"a": [1]}}),
    ("a question of a megabyte", with_value(everything(), "queries", 0, "query", value="x " * (1 << 19))),
    ("warnings of a megabyte", everything() | {"warnings": ["@x " * (1 << 18)] * 4}),
    ("ids of a megabyte", with_value(everything(), "queries", 0, "id", value="<b>" * (1 << 18))),
    ("numbers beyond all measure", with_value(everything(), "metrics", "mrr_at_5", "current", value=1e308)),
    ("problems of a megabyte", unjudgeable(*["x" * (1 << 20)] * 3, warnings=["y" * (1 << 20)])),
    ("no problem", unjudgeable() | {"problems": []}),
    ("many problems", unjudgeable(*map(str, range(100_000)), more_problems=10**12)),
]


@pytest.mark.parametrize("what", [row[1] for row in ODD], ids=[row[0] for row in ODD])
def test_an_odd_report_is_posted_and_contained(runner: Runner, github: GitHub, what: Json) -> None:
    assert relayed(runner, what).exit_code == 0
    assert_contained(said(github.bodies()[0]))
    assert len(github.bodies()[0].encode()) < 65_536


def test_a_report_that_is_wrong_a_hundred_thousand_times_names_fifty(runner: Runner) -> None:
    result = relayed(runner, everything() | {"warnings": [1] * 100_000})
    nothing_posted(runner, result, "report.json: warnings[0]: expected text, found 1")
    assert "… and 99,991 more like these" in result.log


VALUES: list[Any] = [
    None, 0, -1, True, 1.5, 1e308, -1e308, 5e-324, 10**18, 10**30, "", "\n| a", [], {}, ["x"], {"x": 1}, [None], [[]],
]  # fmt: skip


def paths_in(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield where something stands in a report, at any depth."""
    for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield (*path, name)
        if isinstance(inner, dict | list):
            yield from paths_in(inner, (*path, name))


@pytest.mark.parametrize("seed", range(4))
def test_no_change_to_a_report_is_a_bug_of_ours(seed: int, tmp_path: Path) -> None:
    """Each changed report is refused, or rendered in every layout."""
    what, dice = everything(), random.Random(seed)
    file = tmp_path / "report.json"
    refused = 0
    for path in dice.sample(list(paths_in(what)), 60):
        at_random = with_value(what, *path, value=dice.choice(VALUES))
        for other in (at_random, without(what, *path)):
            file.write_text(json.dumps(other))
            try:
                found = relay._report(file)
                draw = renderer_of(found, "a name")
                relay._refuse_unrenderable(draw, file)
            except InputError:
                refused += 1
                continue
            for layout in LEVELS:
                for recovered in (False, True):
                    assert draw(layout, recovered=recovered).startswith("### ")
    assert 20 < refused < 120


def test_a_report_of_very_many_metrics_and_limits_takes_no_long_time(runner: Runner) -> None:
    what, gate = everything(), gate_of(None, status="pass")
    metric = what["metrics"]["mrr_at_5"] | {"noise": None, "k": None}
    names = [f"m{number}" for number in range(12_000)]
    what |= {"metrics": dict.fromkeys(names, metric), "gates": [gate | {"metric": name} for name in names], "tags": {}}
    before = time.process_time()
    nothing_posted(runner, relayed(runner, what), "too long for a comment")
    assert time.process_time() - before < 20


def test_a_report_of_very_many_tags_takes_no_long_time(runner: Runner, github: GitHub) -> None:
    what = everything()
    tag = what["tags"]["u"]
    what |= {"tags": {f"t{number}": tag for number in range(9_000)}, "gates": []}
    before = time.process_time()
    assert relayed(runner, what).exit_code == 0
    assert_contained(said(github.bodies()[0]))
    assert time.process_time() - before < 20


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"k": [5, 5]}, "k: a cut-off occurs twice"),
        ({"queries": "twice"}, "queries: an id occurs twice"),
        ({"findings": "long"}, "findings: a sentence has more than 65,536 characters"),
        ({"inputs": "negative"}, "inputs.golden.queries: "),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_no_check_writes_is_refused_before_it_takes_long(
    runner: Runner, changed: dict[str, Any], problem: str
) -> None:
    what = failing()
    what |= {name: value for name, value in changed.items() if isinstance(value, list)}
    if changed.get("queries"):
        what["queries"] *= 2
    if changed.get("findings"):
        what["findings"][0]["found"] = ["$" * 40_000, {"name": "$" * 30_000}]
    if changed.get("inputs"):
        what["inputs"]["golden"]["queries"] = -1
    nothing_posted(runner, relayed(runner, what), problem)


def test_a_large_file_that_is_no_report_is_refused_without_looking_for_every_mistake(runner: Runner) -> None:
    what = passing() | {"warnings": [1] * 600_000}
    nothing_posted(runner, relayed(runner, what), "is not a report of this version of rag-contract (Expected `str`")


def test_a_path_that_no_file_can_have_is_refused(runner: Runner) -> None:
    result = posted(runner, {"report-json": "x" * 300})
    assert result.exit_code == 2
    assert "cannot be read" in result.log
