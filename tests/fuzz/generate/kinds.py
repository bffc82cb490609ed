"""The kinds of input: for each file name, what makes its content. A new kind of input is an entry in ``KINDS``.

A kind is made as a value, so that mutations know its structure; :mod:`.encoding` writes it by the name of its file.
A kind without structure is made as text.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ragcontract.contract.golden_row import ANSWER_FIELDS, OPTIONS
from tests.fuzz.generate.answer_limits import judge_answers, leave_out_answers
from tests.fuzz.generate.by_schema import fitting, schema, value
from tests.fuzz.generate.expected_answers import SCORES, expected_answer
from tests.fuzz.generate.judged import calibration, judgments, labels
from tests.fuzz.generate.other_tools import (
    Kind,
    columns,
    deepeval,
    document_of,
    fitz_gov,
    grade_of,
    inspect_log,
    promptfoo,
    query_of,
    ragas_scores,
    samples,
    score_table,
    table,
    ticked,
)
from tests.fuzz.generate.recorded import ENTRIES, entry, result_set
from tests.fuzz.generate.said import check, said, score
from tests.fuzz.generate.values import DATES, Maker, question
from tests.records import rendered
from tests.report.everything import everything

SHA = "5ca1ab1e" * 5
OWN = "github-actions[bot]"
LABEL = "accepted"
OF_ANY = frozenset({"id", "query", "tags", "weight", "severity", "metadata"})  # fields of any golden row
SAID = frozenset(
    {"response", "error", "retrieved_contexts", "tool_calls", "messages", "mode", "label", "refusal", "finish_reason"}
    | {"scores", "checks"}
)


def golden(maker: Maker) -> list[Any]:
    """Return golden rows with distinct ids, most of which can be judged."""
    rows = []
    for query_id in maker.queries:
        row = fitting(maker, "golden") | {"id": query_id, "query": question(query_id)}
        if row.get("relevance"):  # both are given where they agree
            relevant = [doc_id for doc_id, grade in row["relevance"].items() if grade >= 1]
            row |= {"relevant_doc_ids": relevant}
        else:
            row.pop("relevance", None)
            relevant = row.setdefault("relevant_doc_ids", maker.some(maker.documents, 3))
        if not relevant and not maker.chance(maker.oddness):
            row.pop("must_rank_at_most", None)
            row.pop("must_include_any", None)
        if not maker.chance(maker.oddness / 5):  # seldom, fields of any content that the schema has
            row = _about_answers(maker, row)
        rows.append(row)
    for number, tier in enumerate(maker.tiers if maker.about_answers else ()):  # a tier has a query with a rule
        row = rows[number % len(rows)]
        row |= {"tier": tier} | ({} if "turns" in row else {"rules": [{"type": "max_chars", "value": 100_000}]})
    if maker.chance(0.8):  # of limits on a tag, at least one query has it
        for row in rows if maker.grown == "tags" else rows[:1]:
            row["tags"] = [str(tag) for tag in maker.tags]
    return rows


def _about_answers(maker: Maker, row: dict[str, Any]) -> dict[str, Any]:
    """Return a golden row with what it expects of its answer, if the case is about answers; some name no documents."""
    row = {name: one for name, one in row.items() if name not in (*ANSWER_FIELDS, *OPTIONS)}
    forbidden, relevant = row.get("forbidden_doc_ids") or (), row["relevant_doc_ids"]
    if not maker.chance(maker.oddness):
        row["forbidden_doc_ids"] = [one for one in forbidden if str(one) not in map(str, relevant)]
    if not maker.about_answers:
        return row
    if maker.chance(0.2):
        row = {name: one for name, one in row.items() if name in OF_ANY}
    return row | (expected_answer(maker, row["id"]) if maker.chance(0.9) or "relevant_doc_ids" not in row else {})


def run(maker: Maker) -> list[Any]:
    """Return run rows that cover the golden queries, most of the time."""
    lost = maker.oddness / 4
    rows = [run_row(maker, query_id) for query_id in maker.queries if not maker.chance(lost)]
    while maker.chance(0.1):
        rows.append(run_row(maker, maker.pick([*maker.queries, "unknown"])))
    return rows


def scores(maker: Maker) -> list[Any]:
    """Return the rows of a scores file that covers the golden queries."""
    rows: list[Any] = [fitting(maker, "scores") | {"query_id": query_id} for query_id in maker.queries]
    if maker.scores_apart:
        rows = [row | {"scores": {SCORES[1]: score(maker)}, "checks": {"apart": check(maker)}} for row in rows]
    return rows


def run_row(maker: Maker, query_id: str | int) -> dict[str, Any]:
    """Return the row of one query."""
    definitions = schema("run")["$defs"]
    row: dict[str, Any] = fitting(maker, "run")
    results = [value(maker, definitions["Result"], definitions, "", 1) for _ in range(maker.random.randint(0, 6))]
    if maker.grown == "documents":
        results = [{"doc_id": doc_id} for doc_id in maker.some(maker.documents, 0)]
    if not maker.chance(maker.oddness / 5):
        row = {name: one for name, one in row.items() if name not in SAID}
    return row | {"query_id": query_id, "results": results} | (said(maker, query_id) if maker.about_answers else {})


def baseline(maker: Maker) -> dict[str, Any]:
    """Return a stored baseline of the golden queries."""
    definitions = schema("baseline")["$defs"]
    queries = [
        value(maker, definitions["BaselineQuery"], definitions, "", 1) | {"id": query_id, "query": question(query_id)}
        for query_id in maker.queries
        if not maker.chance(0.05)
    ]
    whole: dict[str, Any] = fitting(maker, "baseline")
    return whole | {"format_version": 1, "queries": queries}


def config(maker: Maker) -> dict[str, Any]:
    """Return a configuration; of what a waiver is for, it names one thing, as it must."""
    made: dict[str, Any] = fitting(maker, "config") | {
        "k": [*maker.cutoffs] if len(maker.cutoffs) > 1 else maker.cutoffs[0]
    }
    if maker.chance(0.8):
        made["missing_queries"] = "zero"
    if not maker.chance(maker.oddness / 3):
        leave_out_answers(maker, made)
    if maker.about_answers:
        judge_answers(maker, made)
    if not maker.chance(maker.oddness):
        _make_consistent(made)
    if maker.grown == "tags":
        made["tags"] = {str(tag): {"minimums": {"mrr_at_k": maker.number()}} for tag in maker.tags}
    if maker.grown == "waivers":
        made["waivers"] = [
            {"query": f"{query_id}{maker.pick(('', 'x'))}", "reason": "x", "owner": "x", "expires": maker.pick(DATES)}
            for query_id in maker.queries
        ]
    _leave_out_levels(maker, made)
    if not maker.has_baseline and maker.chance(0.9):
        for limits in (made, *(made.get("tags") or {}).values()):
            _leave_out_changes(limits)
    for waiver in made.get("waivers") or []:
        about = maker.pick(("query", "tag", "gate"))
        for other in {"query", "tag", "gate"} - {about}:
            waiver.pop(other, None)
        if about == "gate":
            waiver.pop("rule", None)
        waiver.setdefault(about, str(maker.pick(maker.queries)))
    return made


def _make_consistent(made: dict[str, Any]) -> None:
    """Change what other values of the same contract do not allow."""
    answers, judge = made.get("answers") or {}, made.get("judge") or {}
    if not answers.get("refusal_phrases"):
        answers.pop("only_these", None)  # it needs them
    if judge.get("votes"):
        judge["votes"] |= 1  # so that a majority decides
    made.pop("relevance_level", None)  # the golden rows have documents of grade 1 as relevant ones


def _leave_out_levels(maker: Maker, made: dict[str, Any]) -> None:
    """Remove most limits on levels, which need a history."""
    if made.get("history") and maker.chance(0.9):
        made["history"] = {key: one for key, one in made["history"].items() if not key.endswith("_gt")}


def _leave_out_changes(limits: dict[str, Any]) -> None:
    """Remove the limits on drops and rises, and on what is as in the baseline, which need one."""
    minimums = limits.get("minimums") or {}
    for key in [key for key in minimums if key.startswith(("overlap_at_", "rbo_at_"))]:
        del minimums[key]
    for section in ("fail_on", "latency"):
        if section in limits:
            limits[section] = {key: one for key, one in (limits[section] or {}).items() if not key.endswith("_gt")}


def report(maker: Maker) -> dict[str, Any]:
    """Return a report.json as a check writes it, or as anyone may write it."""
    made: dict[str, Any] = json.loads(_written(maker.pick((4, 8, 12)))) if maker.chance(0.5) else _any_report(maker)
    if maker.chance(0.8):  # a report of another commit is refused before it is rendered
        made["source"] = (made.get("source") or {}) | {"commit": SHA}
    return made


def _any_report(maker: Maker) -> dict[str, Any]:
    made: dict[str, Any] = fitting(maker, "report")
    if "problems" in made:
        return made | {"verdict": "error"}
    made["queries"] = list({str(query["id"]): query for query in made["queries"]}.values())
    return made | {"k": list(dict.fromkeys(made["k"]))}


@lru_cache
def _written(size: int) -> bytes:
    return rendered(everything(size))["report-json"]


def event(maker: Maker) -> dict[str, Any]:
    """Return the payload of an event, with what the action reads of it."""
    number = maker.pick((7, 7, 7, 8, 0, -1, 10**20))
    sha = maker.pick((SHA, SHA, SHA, "0" * 40, "x", maker.odd_text()))
    head = {"sha": sha, "ref": "topic", "repo": {"full_name": maker.pick(("octo/app", "fork/app"))}}
    workflow_run = {
        "id": maker.pick((100, 99, 101, 10**12)),
        "run_attempt": maker.whole(1, 3),
        "run_number": maker.whole(1, 99),
        "head_sha": sha,
        "head_branch": maker.pick(("topic", "main", maker.text())),
        "head_repository": {"full_name": maker.pick(("octo/app", "fork/app", maker.odd_text()))},
        "pull_requests": [],
    }
    payloads: list[dict[str, Any]] = [
        {"action": "synchronize", "number": number, "pull_request": {"number": number, "head": head}},
        {"action": "completed", "workflow_run": workflow_run},
        {"before": SHA, "after": sha, "ref": "refs/heads/topic"},
        {"inputs": {"pull-request": str(number)}},
        {"issue": {"number": number, "pull_request": {}}},
    ]
    return maker.pick(payloads)


def answers(maker: Maker) -> dict[str, Any]:
    """Return what GitHub holds, and what it answers: ``null`` for a truthful answer to the next request."""
    head = {"sha": SHA, "ref": "topic", "repo": {"full_name": "octo/app"}}
    pulls = [{"number": 7, "state": "open", "head": head, "labels": [{"name": LABEL}]}]
    return {
        "login": maker.pick((OWN, OWN, "octocat", maker.text())),
        "comments": [comment(maker) for _ in range(maker.pick((0, 0, 1, 1, 2, 5)))],
        "pulls": pulls if maker.chance(0.8) else [maker.anything() for _ in range(2)],
        "events": [label_event(maker) for _ in range(maker.pick((0, 1, 1, 2)))],
        "activities": [{"ref": "refs/heads/topic", "after": SHA, "timestamp": "2026-01-01T10:00:00Z"}],
        "answers": [answer(maker) if maker.chance(0.4) else None for _ in range(maker.pick((0, 0, 1, 3, 8)))],
    }


def label_event(maker: Maker) -> Any:
    """Return what happened to a label, or anything."""
    if maker.chance(0.2):
        return maker.anything()
    times = ("2026-01-01T10:01:00Z", "2026-01-01T10:01:00Z", "2026-01-01T09:59:59Z", maker.odd_text())
    actor = {"login": maker.pick(("ann", "ann", OWN, maker.odd_text())), "type": maker.pick(("User", "User", "Bot"))}
    made = {"event": maker.pick(("labeled", "labeled", "unlabeled")), "created_at": maker.pick(times), "actor": actor}
    return made | {"id": maker.whole(1, 9), "label": {"name": LABEL}, "performed_via_github_app": None}


def comment(maker: Maker) -> dict[str, Any]:
    """Return a comment on a pull request: of ours, of somebody who writes our marker, or of anyone."""
    number = maker.pick(("1", "99", "100", "101", "99999999999", "9" * 5_000, "x", "٣", "-1"))
    state = maker.pick(("pass", "fail", "error", "unknown", "x"))
    name = maker.pick(("", "docs", "x"))
    marker = f"<!-- rag-contract name={name} run={number}.1 state={state} content=0123456789abcdef -->"
    return {
        "id": maker.whole(1, 10**6),
        "html_url": "https://github.com/octo/app/pull/7#issuecomment-1",
        "user": maker.pick(({"login": OWN}, {"login": OWN}, {"login": "mallory"}, None)),
        "body": maker.pick(
            (f"{marker}\n### x", marker, maker.odd_text(), f"{marker[:40]}", f"{marker}{maker.odd_text()}")
        ),
    }


def answer(maker: Maker) -> dict[str, Any]:
    """Return one answer of GitHub, or of whatever is between it and us."""
    status = maker.pick((200, 200, 201, 204, 301, 302, 400, 401, 403, 404, 410, 422, 429, 500, 502, 503))
    bodies: list[Any] = [
        {"message": maker.pick(("Resource not accessible by integration", "secondary rate limit", maker.odd_text()))},
        {"data": {"viewer": {"login": maker.pick((OWN, 3, None))}}},
        {"errors": [{"type": "RATE_LIMITED", "message": "x"}], "data": None},
        [comment(maker)],
        comment(maker),
        {"head": {"sha": maker.pick((SHA, "x", None))}},
        maker.anything(),
    ]
    headers = {
        "Retry-After": maker.pick(
            ("1", "0", "-1", "NaN", "inf", "1e400", "99999", "x", "Wed, 21 Oct 2026 07:28:00 GMT")
        ),
        "X-RateLimit-Remaining": maker.pick(("0", "1", "x")),
        "X-RateLimit-Reset": maker.pick(("0", "1767312000", "NaN", "1e400", "x")),
        "Link": maker.pick(
            (
                '<https://api.github.com/repos/octo/app/issues/7/comments?page=2>; rel="next"',
                '<https://evil.example/next>; rel="next"',
                '<>; rel="next"',
                ";;,<",
                maker.odd_text(),
            )
        ),
    }
    made: dict[str, Any] = {"status": status, "headers": dict(maker.some(list(headers.items()), 2))}
    if maker.chance(0.1):
        return {
            "raise": maker.pick(
                ("ConnectionError", "ReadTimeout", "ConnectTimeout", "ChunkedEncodingError", "InvalidURL")
            )
        }
    if maker.chance(0.2):
        return made | {"text": maker.pick(("<html>no</html>", "", "{", "[" * 2_000, "NaN", maker.odd_text()))}
    return made | {"body": maker.pick(bodies)}


KINDS: Mapping[str, Kind] = {
    "golden.jsonl": golden,
    "current_run.jsonl": run,
    "base.jsonl": run,
    "baseline.json": baseline,
    "ragcontract.yml": config,
    "scores.jsonl": scores,
    "judgments.jsonl": judgments,
    "labels.jsonl": labels,
    "judge-calibration.json": calibration,
    "report.json": report,
    "event.json": event,
    "answers.json": answers,
    "questions.txt": columns(Maker.text),
    "qrels.trec": columns(query_of, lambda _maker: 0, document_of, grade_of),
    "topics.tsv": columns(query_of, Maker.text, between="\t"),
    "run.trec": columns(query_of, lambda _: "Q0", document_of, Maker.whole, Maker.number, lambda _: "tag"),
    "qrels.tsv": columns(query_of, document_of, grade_of, between="\t", head="query-id\tcorpus-id\tscore\n"),
    "queries.jsonl": lambda maker: [{"_id": one, "text": question(one), "metadata": {}} for one in maker.queries],
    "corpus.jsonl": lambda maker: [{"_id": one, "title": "", "text": maker.text()} for one in maker.documents],
    "samples.jsonl": samples,
    "questions.csv": table,
    "candidates.txt": ticked,
    "ragas.jsonl": ragas_scores,
    "test_run.json": deepeval,
    "promptfoo.json": promptfoo,
    "inspect.json": inspect_log,
    "measured.csv": score_table,
    "cases.json": fitz_gov,
    "results.jsonl": result_set,
    **{name: entry(name) for name in ENTRIES},
}
