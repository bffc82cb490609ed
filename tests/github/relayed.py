"""What a first workflow leaves to the second: reports of each verdict, and runs of ``mode: post-comment`` on them."""

import copy
import functools
import json
from collections.abc import Callable
from typing import Any

from ragcontract.core.run import Latency
from ragcontract.report.json_report import render_error
from ragcontract.report.record import ErrorReport, Report
from ragcontract.runs.baseline_file import Tool
from tests.records import Rows, query, rendered, report
from tests.report.page import Page
from tests.runner import Result, Runner

HEAD = "c" * 40
INPUTS = {"mode": "post-comment"}
SOURCE = {"source": {"commit": HEAD}}
EVERY_TAG = {
    "b", "br", "code", "details", "h3", "li", "p", "strong", "summary", "table", "tbody", "td", "th", "thead", "tr",
    "ul",
}  # fmt: skip
Json = dict[str, Any]


def as_json(what: Report) -> Json:
    """Return what ``report.json`` holds of a report."""
    found: Json = json.loads(rendered(what)["report-json"])
    return found | SOURCE


def of_commit(written: bytes, commit: str = HEAD) -> bytes:
    """Return a ``report.json`` that the command line wrote as the action writes it for a commit."""
    found: Json = json.loads(written)
    return json.dumps(found | {"source": (found["source"] or {}) | {"commit": commit}}).encode()


def made_once(make: Callable[[], Json]) -> Callable[[], Json]:
    """Make it when it is needed first, and return a copy each time."""
    made = functools.cache(make)
    return lambda: copy.deepcopy(made())


@made_once
def passing() -> Json:
    return as_json(report([query("q", "A")], {"q": ["A"]}))


@made_once
def failing() -> Json:
    return as_json(report([query("q", "A")], {"q": ["x"]}))


def unjudgeable(*problems: str, **fields: Any) -> Json:
    tool = Tool(name="rag-contract", version="1")
    made = ErrorReport(tool=tool, created_at="2026-01-01T00:00:00+00:00", problems=list(problems or ["x"]), **fields)
    found: Json = json.loads(render_error(made))
    return found | SOURCE


@made_once
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
    mistake = ["1 id never occurs; 1 does without the suffix ", {"name": "#n"}]
    broken = {"commit": "deadbeef00", "at": "2026-06-30T00:00:00Z"}
    ids = [f"2026063{number}T120000Z-deadbeef0000-{number}-1" for number in range(3)]
    point = {"id": ids[1], "commit": "deadbeef00", "at": "2026-06-30T12:00:00Z", "before": 0.9, "after": 0.5}
    trend = {"values": [0.9, 0.5, 0.5], "ids": ids, "now": 0.5, "change_points": [point | {"p_value": 0.001}]}
    history = {
        "branch": "main",
        "entries": 9,
        "baseline": {"id": "e", "commit": "deadbeef00", "named": "last-pass", "behind": 2},
        "broken_since": {"q1": broken, "q2": broken, "q3": broken | {"or_before": True}, "nobody": broken},
        "metrics": {"mrr_at_5": trend, "nobody": trend},
        "notes": ["Not shown"],
    }
    made = as_json(report(queries, now, before, config, warnings=["odd"]))
    return made | {"likely_mistakes": [mistake], "history": history}


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


def nothing_posted(runner: Runner, result: Result, reported: str) -> None:
    assert result.exit_code == 2
    assert reported in result.log
    assert runner.github.requests == []
    assert result.annotations[0].level == "error"


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
