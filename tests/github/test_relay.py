"""``mode: post-comment``: what a stranger's check has left is posted, and does nothing but say what it says."""

import html
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ragcontract.github.harmless import harmless

from ragcontract.reports.markdown.document import render, render_unusable
from tests import scenarios
from tests.builders import golden, run, stored_query, write_baseline, write_jsonl
from tests.github.standin import ACTIONS_BOT, TOKEN, Fault, GitHub, Sent
from tests.records import query, report
from tests.reports.markdown.test_gfm import NASTY, nasty
from tests.reports.page import Page
from tests.runner import InProcess, Result, Runner

HEAD = "c" * 40
INPUTS = {"mode": "post-comment", "comment-body-file": "comment.md"}
HARMLESS_TAGS = {
    "br", "code", "details", "h3", "li", "p", "strong", "summary", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
GENUINE = "### ✅ Retrieval contract holds: nothing broken in 1 query; no gates are set\n"


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
def runner(tmp_path: Path, github: GitHub) -> Runner:
    return InProcess(tmp_path, github)


def relayed(
    runner: Runner, text: str | bytes | None = GENUINE, inputs: dict[str, str] | None = None, **head: Any
) -> Result:
    if text is not None:
        data = text if isinstance(text, bytes) else text.encode(errors="surrogatepass")
        (runner.workspace / "comment.md").write_bytes(data)
    return runner.run(INPUTS | (inputs or {}), event=event(**head), name="workflow_run", run=900)


def test_the_file_is_posted_on_the_pull_request_that_the_workflow_ran_for(runner: Runner, github: GitHub) -> None:
    result = relayed(runner)
    assert result.exit_code == 0
    assert result.outputs == {"comment-url": github.comments[0]["html_url"]}
    assert github.comments[0]["issue_url"].endswith("/issues/7")
    assert GENUINE in github.bodies()[0]


def test_its_foot_and_its_marker_are_those_of_the_run_that_checked(runner: Runner, github: GitHub) -> None:
    relayed(runner)
    body = github.bodies()[0]
    assert body.startswith("<!-- rag-contract name= run=55.2 state=pass ")
    assert "[run 5, attempt 2](https://github.com/octo/app/actions/runs/55)" in body
    assert f"commit {HEAD}" in body


def test_it_updates_the_comment_of_the_same_contract_unless_that_is_newer(runner: Runner, github: GitHub) -> None:
    relayed(runner, "### ❌ Retrieval contract broken: x\n")
    relayed(runner, GENUINE, id=56)
    assert "✅" in github.bodies()[0]
    assert "A newer run has commented already" in relayed(runner, "### ❌ old\n").log
    assert "✅" in github.bodies()[0]
    assert len(github.comments) == 1


@pytest.mark.parametrize(("icon", "state"), [("✅", "pass"), ("❌", "fail"), ("⚠️", "error"), ("x", "unknown")])
def test_the_verdict_is_that_of_the_first_line(runner: Runner, github: GitHub, icon: str, state: str) -> None:
    relayed(runner, f"### {icon} Retrieval contract\n")
    assert f" state={state} " in github.bodies()[0]


def test_the_pull_request_is_never_that_of_the_file_or_of_an_input(runner: Runner, github: GitHub) -> None:
    github.add_pull(8, sha=HEAD, head="octo/app")
    relayed(runner, "8\n<!-- pull-request: 8 -->\n", {"pull-request": "8"})
    assert github.comments[0]["issue_url"].endswith("/issues/7")


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
    (runner.workspace / "comment.md").write_text(GENUINE)
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
    nothing_posted(runner, relayed(runner, None), "comment.md: cannot be read (No such file")
    assert not (runner.workspace / "comment.md").exists()


def test_a_file_over_its_limit_is_not_read(runner: Runner) -> None:
    nothing_posted(runner, relayed(runner, b"x" * ((128 << 10) + 1)), "is larger than 128 KiB")


@pytest.mark.parametrize("make", [lambda path: path.mkdir(), os.mkfifo])
def test_what_is_no_file_is_not_read(runner: Runner, make: Any) -> None:
    make(runner.workspace / "comment.md")
    nothing_posted(runner, relayed(runner, None), "comment.md: is no file")


@pytest.mark.parametrize("target", ["/etc/hostname", "/proc/self/environ", "../home/secret"])
def test_a_link_out_of_the_workspace_is_not_followed(runner: Runner, target: str) -> None:
    (runner.folder / "home" / "secret").write_text("secret")
    (runner.workspace / "comment.md").symlink_to(target)
    nothing_posted(runner, relayed(runner, None), "leads out of the workspace")


def test_a_link_to_another_file_of_the_workspace_is_not_followed(runner: Runner) -> None:
    (runner.workspace / ".git").mkdir()
    (runner.workspace / ".git" / "comment.md").write_text("the token of the checkout")
    (runner.workspace / "artifact").symlink_to(".git")
    (runner.workspace / "comment.md").symlink_to(".git/comment.md")
    nothing_posted(runner, relayed(runner, None), "is behind a link")
    nothing_posted(runner, relayed(runner, None, {"comment-body-file": "artifact/comment.md"}), "is behind a link")
    inputs = {"working-directory": "artifact"}
    nothing_posted(runner, relayed(runner, None, inputs), "is behind a link")


@pytest.mark.parametrize("path", ["../home/secret", "/etc/hostname", "a/../../home/secret"])
def test_a_file_outside_of_the_workspace_is_not_read(runner: Runner, path: str) -> None:
    (runner.folder / "home" / "secret").write_text("secret")
    nothing_posted(runner, relayed(runner, None, {"comment-body-file": path}), "leads out of the workspace")


def test_the_file_is_found_in_the_working_directory_and_by_the_machines_path(runner: Runner, github: GitHub) -> None:
    (runner.workspace / "artifact").mkdir()
    (runner.workspace / "artifact/comment.md").write_text(GENUINE)
    assert relayed(runner, None, {"working-directory": "artifact"}).exit_code == 0
    path = "/home/runner/work/app/app/artifact/comment.md"
    assert relayed(runner, None, {"comment-body-file": path}).exit_code == 0
    (runner.folder / "runner_temp/comment.md").write_text(GENUINE)
    path = str(runner.folder / "runner_temp/comment.md")
    assert relayed(runner, None, {"comment-body-file": path}).exit_code == 0
    assert len(github.comments) == 1


@pytest.mark.parametrize("inputs", [{"comment": "never"}, {"comment-body-file": ""}, {"working-directory": ".."}])
def test_inputs_that_do_not_go_together_are_reported(runner: Runner, inputs: dict[str, str]) -> None:
    nothing_posted(runner, relayed(runner, inputs=inputs), "input ")


TABLE = "| Metric | Current |\n| --- | ---: |\n| MRR@5 | 0.50 |\n"


@pytest.mark.parametrize(
    "rest",
    [
        "many words " * 9_000,
        "some words\n\n" * 7_000,
        "<details><summary>more</summary>\n\n" + "some words\n\n" * 7_000 + "</details>\n",
        "<details><summary>more</summary>\n\n" * 2_000,
        "<details><summary>more</summary>\n\nx\n\n</details>\n\n" * 1_600,
    ],
)
def test_of_a_text_too_long_for_a_comment_the_start_is_kept_and_all_folds_are_closed(
    runner: Runner, github: GitHub, rest: str
) -> None:
    assert relayed(runner, f"{GENUINE}\n{TABLE}\n{rest}").exit_code == 0
    page = assert_harmless(github.bodies()[0].partition("\n")[2].partition("\n<sub>")[0])
    assert page.tables[0][1] == ["MRR@5", "0.50"]
    assert "too long for a comment" in github.bodies()[0]
    assert len(github.bodies()[0].encode()) < 65_536


def test_a_comment_that_was_red_says_so_when_the_contract_holds_again(runner: Runner, github: GitHub) -> None:
    relayed(runner, "### ❌ Retrieval contract broken: x\n")
    relayed(runner, f"{GENUINE}\n{TABLE}", id=56)
    page = Page(github.bodies()[0].partition("\n")[2])
    assert "It was broken before and holds again." in github.bodies()[0]
    assert page.tables[0][1] == ["MRR@5", "0.50"]
    relayed(runner, GENUINE, id=57)
    assert "again" not in github.bodies()[0]


def test_on_change_leaves_a_report_alone_that_differs_in_time_only(runner: Runner, github: GitHub) -> None:
    def text(result: str, day: int) -> str:
        inputs = f"<details><summary>Inputs</summary>\n\nk = 5 · `2026-01-0{day}`\n\n</details>\n"
        return f"{GENUINE}\n{result}\n\n{inputs}\nChecked 2026-01-0{day} 00:00 UTC · baseline made {day} days ago\n"

    relayed(runner, text("0.50", 1), {"comment": "on-change"})
    relayed(runner, text("0.50", 2), {"comment": "on-change"}, id=56)
    assert "2026-01-01" in github.bodies()[0]
    relayed(runner, text("0.60", 3), {"comment": "on-change"}, id=57)
    assert "2026-01-03" in github.bodies()[0]


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
    (runner.workspace / "comment.md").write_text(GENUINE)
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
    (runner.workspace / "comment.md").write_text(GENUINE)
    api = {"GITHUB_API_URL": "https://127.0.0.1:9", "GITHUB_GRAPHQL_URL": "https://127.0.0.1:9/graphql"}
    result = runner.run(inputs, event=event(), name="workflow_run", environ=api)
    assert result.exit_code == code
    assert "The comment could not be posted (OSError: Could not find a suitable TLS CA certificate bundle" in result.log


HOSTILE = [
    *NASTY,
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


def assert_harmless(text: str) -> Page:
    """Render it and see that nothing in it reaches beyond it, with nothing left open (the page fails on that)."""
    page = Page(text)
    names = {tag.removeprefix("/").split(" ")[0] for tag in page.tags}
    assert names <= HARMLESS_TAGS, (text, names - HARMLESS_TAGS)
    assert not [tag for tag in page.tags if " " in tag and " align=" not in tag], page.tags
    assert page.links() == []
    assert "<!--" not in page.html.replace("<!-- -->", "")
    assert page.tags.count("details") == page.tags.count("/details")
    return page


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_in_a_hostile_text_reaches_beyond_it(runner: Runner, github: GitHub, text: str) -> None:
    for whole in (
        text,
        f"{GENUINE}\n{text}\n",
        f"| a | b |\n| --- | --- |\n| {text} | x |",
        f"- {text}",
        f"**{text}**",
    ):
        assert_harmless(harmless(whole))
    result = relayed(runner, text)
    assert result.exit_code == 0
    marker, _, body = github.bodies()[0].partition("\n")
    assert marker.startswith("<!-- rag-contract name= run=55.2 ")
    assert "<!--" not in Page(body).html.replace("<!-- -->", "")
    assert Page(body).tags[-6:-3] == ["p", "sub", "a href=https://github.com/octo/app/actions/runs/55"]


def test_a_forged_marker_is_taken_out(runner: Runner, github: GitHub) -> None:
    forged = "<!-- rag-contract name=other run=999999.1 state=pass content=0 -->"
    relayed(runner, f"{forged}\n  {forged}\n{GENUINE}{forged} x\nx {forged}\n")
    marker, _, body = github.bodies()[0].partition("\n")
    assert " run=55.2 " in marker
    assert "<!-- rag-contract" not in body


def test_text_that_is_not_utf_8_is_posted_with_replacements(runner: Runner, github: GitHub) -> None:
    assert relayed(runner, b"### \xe2\x9c\x85 caf\xe9 \xff\xfe\x00\n").exit_code == 0
    assert "caf\N{REPLACEMENT CHARACTER} " in github.bodies()[0]


def test_control_characters_are_shown_and_run_no_command_in_the_log(runner: Runner, github: GitHub) -> None:
    result = relayed(runner, "::error::x\n##[error]\n\x1b[31m\n")
    assert result.annotations == []
    assert "\x1b" not in github.bodies()[0] + result.log


@given(
    st.lists(st.sampled_from([*HOSTILE, "\n", "\n\n", "| ", " |", "<br>", "`", "</details>", "- ", "**"]), max_size=6)
)
@settings(max_examples=150)
def test_no_mixture_of_hostile_texts_reaches_beyond_it(parts: list[str]) -> None:
    assert_harmless(harmless("".join(parts)))


@given(st.text(alphabet="@#`|\\<>&;![]()*_~-:/.$ \n1ab", max_size=60))
@settings(max_examples=300)
def test_no_text_at_all_reaches_beyond_it(text: str) -> None:
    assert_harmless(harmless(text))


def seen(markdown: str) -> str:
    """Return the page that people see."""
    return re.sub("[\u200b]", "", html.unescape(Page(markdown).html))


@given(st.lists(nasty, min_size=2, max_size=3, unique=True))
@settings(max_examples=40)
def test_a_genuine_report_reads_the_same(words: list[str]) -> None:
    ids = [f"{word}{number}" for number, word in enumerate(words)]
    queries = [query(one, *ids, must_rank_at_most=1, tags=(one,), query=f"{one}?") for one in ids]
    before = dict.fromkeys(ids, ids) | {f"gone {ids[0]}": ["A"]}
    what = report(queries, {one: ["x", ids[0]] for one in ids}, before, warnings=ids)
    for markdown in (render(what, name=ids[0]), render_unusable(ids, name=ids[1])):
        assert seen(harmless(markdown)) == seen(markdown)
        assert_harmless(harmless(markdown))


def test_harmless_text_stays_as_it_is_when_it_is_made_harmless_again() -> None:
    for text in HOSTILE:
        once = harmless(text)
        assert seen(harmless(once)) == seen(once)


def test_the_body_file_of_a_check_comes_through_whole(runner: Runner, github: GitHub) -> None:
    workspace = runner.workspace
    ids = [f"q|`{number}$" for number in range(4)]
    write_jsonl(workspace / "golden.jsonl", [golden(one, "doc_1", tags=["a_b"], colour=1) for one in ids])
    write_jsonl(workspace / "current_run.jsonl", [run(one, "x", "doc_1" if one != ids[0] else "y") for one in ids])
    write_baseline(
        workspace / "baseline.json", *[stored_query(one, "doc_1", query=golden(one)["query"]) for one in ids]
    )
    github.may_write = False
    checked = runner.run({"comment-body-file": "comment.md"})
    assert checked.exit_code == 1
    text = (workspace / "comment.md").read_text()
    assert text.startswith((workspace / "report.md").read_text())
    assert "<details>" in text
    github.may_write = True
    assert relayed(runner, None).exit_code == 0
    posted = github.bodies()[0].partition("\n")[2].partition("\n<sub>")[0]
    assert seen(posted) == seen(text)
    assert Page(posted).tables == Page(text).tables


def test_the_body_file_of_a_huge_check_fits_into_the_comment(runner: Runner, github: GitHub) -> None:
    workspace = runner.workspace
    ids = [f"query {number} |{'ü' * 40}" for number in range(3000)]
    write_jsonl(workspace / "golden.jsonl", [golden(one, "doc1", "doc2", tags=[one]) for one in ids])
    write_jsonl(workspace / "current_run.jsonl", [run(one, "x") for one in ids])
    runner.run({"comment-body-file": "comment.md", "comment": "never"})
    relayed(runner, None)
    assert "more broken queries, in `report.json`" in github.bodies()[0]
    assert len(github.bodies()[0].encode()) < 65_536


def test_the_token_is_in_nothing_that_is_written(runner: Runner, github: GitHub) -> None:
    scenarios.passing(runner.workspace)
    assert github.login == ACTIONS_BOT
    result = relayed(runner)
    assert TOKEN not in result.log + result.summary + "".join(github.bodies())
