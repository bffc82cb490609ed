"""``mode: post-comment``: what a stranger's check has left does nothing but say what it says, or is refused."""

import contextlib
import copy
import html
import json
import random
import re
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcontract.cli.commands.render import FORMATS
from ragcontract.cli.commands.render import rendered as in_format
from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.github import relay
from ragcontract.github.delivery import renderer_of
from ragcontract.github.runner_output import LEVELS
from ragcontract.report.json_report import read, render_error
from ragcontract.report.markdown import render
from ragcontract.report.markdown import render_error as render_error_as_markdown
from ragcontract.report.record import ErrorReport, Report
from ragcontract.runs.baseline_file import Tool
from tests.github.relayed import (
    HEAD,
    Json,
    as_json,
    assert_contained,
    everything,
    failing,
    nothing_posted,
    passing,
    posted,
    relayed,
    said,
    unjudgeable,
)
from tests.github.standin import GitHub
from tests.records import query, rendered, report
from tests.report.markdown.test_gfm import NASTY, nasty
from tests.report.page import Page
from tests.runner import InProcess, Runner


@pytest.fixture
def github() -> Iterator[GitHub]:
    with GitHub() as standin:
        standin.add_pull(7, sha=HEAD, head="stranger/app")
        yield standin


@pytest.fixture
def runner(tmp_path: Path, github: GitHub) -> InProcess:
    return InProcess(tmp_path, github)


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


# What is compared, looked up or one of a few: with any other value a report is refused, or another one.
NOT_FREE = {
    "verdict",
    "status",
    "certainty",
    "kind",
    "detail",
    "better",
    "unit",
    "mode",
    "metric",
    "tag",
    "query_id",
} | {
    "id",
    "ids",
    "contract",  # what it wants of a result: relevant or forbidden
    "commit",
}


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
    fields = "state=(fail|error) content=[0-9a-f]{16} contract=[0-9a-f]{16}"
    for number, what in ((55, everything()), (56, unjudgeable("golden.jsonl:1: x", warnings=["odd"]))):
        result = relayed(runner, with_text(what, text, everywhere=everywhere), id=number)
        assert result.exit_code == 0, result.log
        marker, _, body = github.bodies()[0].partition("\n")
        assert re.fullmatch(rf"<!-- rag-contract name= run={number}\.2 {fields} -->", marker)
        assert_contained(said(github.bodies()[0]))
        assert Page(body).tags[-6:-3] == ["p", "sub", f"a href=https://github.com/octo/app/actions/runs/{number}"]
        assert result.annotations == []
        assert "\x1b" not in github.bodies()[0] + result.log


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_commit_of_the_history_stays_text(runner: Runner, github: GitHub, text: str) -> None:
    what = everything()
    points = what["history"]["metrics"]["mrr_at_5"]["change_points"]
    for named in (what["history"]["baseline"], *what["history"]["broken_since"].values(), *points):
        named["commit"] = text
    result = relayed(runner, what)
    assert result.exit_code == 0, result.log
    assert_contained(said(github.bodies()[0]))
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
    assert "<!-- rag-contract" not in re.sub("`[^`]*`", "", body)  # in code, as a short branch is, it is text


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
    ("notes without end", everything() | {"label_notes": [["x"]] * 1_001}, "history.notes: more than 1,000"),
    ("a headline of a megabyte", with_value(everything(), "findings", 0, "found", value=["x" * 2**20]), "characters"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "reported"), [row[1:] for row in APART], ids=[row[0] for row in APART])
def test_a_report_whose_parts_do_not_fit_is_refused(runner: Runner, what: Json, reported: str) -> None:
    nothing_posted(runner, relayed(runner, what), reported)


NOTHING_JUDGED: Json = {"id": "q", "location": "", "passed": 9, "of": 0, "items": []}
JUDGE: Json = {
    "models": ["@octocat <b>"], "fingerprints": [], "judgments": 1, "unused": 10**15,
    "without_verdict": {"@octocat": 1},
    "oldest": "@octocat #1", "newest": "<b>", "cached": 9, "calls": 0, "retried": 1, "compromised": 1,
    "tokens_in": 1, "tokens_out": 1, "usd": 1e308, "tasks": [
        {
            "task": task, "metric": None, "label": "</summary> @octocat", "judgments": 1, "unjudged": 1, "mean": 1e308,
            "why_not": ["@octocat"], "kappa": -1e308, "kappa_low": 1, "estimate": 5e-324, "queries": [
                NOTHING_JUDGED,
                NOTHING_JUDGED | {"items": [
                    {"item": "@octocat", "verdict": verdict, "quote": "<b>" * (1 << 18), "reason": "| @octocat"}
                    for verdict in (True, None, "supported_by_context")
                ]},
            ],
        }
        for task in ("attribution", "criteria", "confirmation")
    ],
}  # fmt: skip
ODD: list[tuple[str, Json]] = [
    ("a judge that says anything of nothing", everything() | {"judge": JUDGE}),
    ("no metrics", everything() | {"metrics": {}, "gates": [], "tags": {}, "findings": [], "queries": []}),
    ("findings of queries that are not there", with_value(everything(), "findings", 1, "query_id", value="nobody")),
    ("no findings", everything() | {"findings": []}),
    ("no queries", everything() | {"queries": []}),
    ("fields that nobody knows", everything() | {"later": {"a": [1]}}),
    ("a question of a megabyte", with_value(everything(), "queries", 0, "query", value="x " * (1 << 19))),
    ("labels of a megabyte", with_value(everything(), "metrics", "mrr_at_5", "label", value="@" * 2**20)),
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


def findings_of(text: str) -> Json:
    """Return a report on a query of which many findings say this at length."""
    what = everything()
    finding = next(one for one in what["findings"] if one.get("query_id") == "q1")
    names = [{"name": text}, text] * (bounds.REPORT_SENTENCE // len(text) // 2)
    return what | {"findings": [finding | {"expected": names, "found": [text * 50]}] * 25}


LONG_IN: dict[str, Callable[[str], Json]] = {
    "the label of a metric": lambda text: with_value(everything(), "metrics", "mrr_at_5", "label", value=text * 5_000),
    "the version of the tool": lambda text: with_value(everything(), "tool", "version", value=text * 5_000),
    "a question": lambda text: with_value(everything(), "queries", 0, "query", value=text * 5_000),
    "the name of a judge's task": lambda text: (
        everything() | {"judge": with_value(JUDGE, "tasks", 0, "label", value=text * 5_000)}
    ),
    "findings": findings_of,
}


@pytest.mark.parametrize("text", ["`", "|", "<", "&", "✅", "\n", "a b "])
@pytest.mark.parametrize("where", LONG_IN)
def test_a_long_text_is_shortened_before_it_is_escaped(runner: Runner, github: GitHub, where: str, text: str) -> None:
    data = json.dumps(LONG_IN[where](text * (100 // len(text))), ensure_ascii=False).encode()
    tracemalloc.start()
    result = relayed(runner, data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert result.exit_code == 0, result.log
    assert "…" in github.bodies()[0]
    assert_contained(said(github.bodies()[0]))
    assert peak < bounds.REPORT + 5 * len(data)  # room for the largest file, the file itself, and what it is decoded to


def test_a_report_that_is_wrong_a_hundred_thousand_times_names_the_first_faults(runner: Runner) -> None:
    result = relayed(runner, everything() | {"warnings": [1] * 100_000})
    nothing_posted(runner, result, "report.json: warnings[0]: expected text, found 1")
    assert "… and 41 more like these" in result.log  # of 49, and of one message that there are more


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
                found = read(file)
                draw = renderer_of(found, "a name")
                relay._refuse_unrenderable(draw, file)
            except InputError:
                refused += 1
                continue
            for layout in LEVELS:
                for recovered in (False, True):
                    assert draw(layout, recovered=recovered).startswith("### ")
            for form in FORMATS:
                with contextlib.suppress(InputError):
                    assert in_format(file, form)
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
        (
            {"run_notes": ["$" * 70_000]},
            "run_notes, label_notes, causes, history.notes: a sentence has more than 65,536 characters",
        ),
        ({"likely_mistakes": [["$" * 40_000, {"name": "$" * 30_000}]]}, "likely_mistakes, run_notes, "),
        (
            {"label_notes": [["$" * 40_000, {"name": "$" * 30_000}]]},
            "likely_mistakes, run_notes, label_notes, causes, history.notes: ",
        ),
        (
            {"causes": [{"kind": "versions", "phrase": ["$" * 40_000, {"name": "$" * 30_000}]}]},
            "label_notes, causes, history.notes: a sentence",
        ),
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
