"""A report with everything in it that a report can have: of each kind of row, note and status at least one."""

from collections.abc import Callable
from functools import lru_cache
from random import Random
from typing import Any, Literal, get_args, get_origin, get_type_hints

import yaml
from msgspec import Struct, convert
from msgspec.structs import fields, replace

from ragcontract.core.config_sections import Task
from ragcontract.core.finding import Message, Said, ToolCall
from ragcontract.core.run import Latency, SourceFile
from ragcontract.report.parts import ModesReport, TierReport
from ragcontract.report.record import AnswerReport, Provenance, QueryReport, Report, RetrievedReport, ScopeReport
from ragcontract.runs.baseline_contract import (
    ChangedItem,
    ContractChange,
    Documents,
    Expected,
    PastContract,
    PastWaiver,
    Replaced,
    expected_of,
)
from ragcontract.runs.baseline_file import Accepted
from ragcontract.statistics.means import RepeatsReport, Spread
from ragcontract.statistics.quantities import ClassMeasures
from tests.records import Rows, query, report

TAGS = ("billing", "policy", "shipping", "accounts", "legal", "mobile", "returns", "security", "api", "fraud", "tax")
CONFIG = """
k: [1, 3, 10]
fail_on: {mrr_drop_gt: 0.01, recall_at_3_drop_gt: "5%", ndcg_drop_gt: 0.3}
minimums: {hitrate_at_1: 0.2, map_at_k: 0.99}
tags:
  billing: {minimums: {recall_at_k: 0.99}}
  policy: {fail_on: {mrr_drop_gt: 0.2}, minimums: {mrr_at_3: 0.1}}
latency: {p50_ms: 60, p95_ms: 150, p95_increase_gt: "10%"}
max_baseline_age: 30
waivers:
  - {gate: minimums.map_at_k, reason: "The index is rebuilt, see #41", owner: "@search", expires: "2026-12-31"}
  - {tag: legal, reason: "New contracts are not chunked yet", owner: "@legal", expires: "2026-12-31"}
"""
REASON = "The new chunking loses two questions that nobody asks"
Mark = Callable[[str], str]


def everything(size: int = 12, mark: Mark = str) -> Report:
    """Return the report on ``size`` queries; ``mark`` changes every name and text that comes from a file."""
    random = Random(7)
    queries, now, before = [], {}, {}
    for number in range(size):
        name = mark(f"question-{number:03}")
        wanted = [mark(f"doc-{number}-{letter}") for letter in "ab"]
        queries.append(
            query(
                name,
                *wanted,
                query=mark(f"How is case {number} handled where the customer has paid twice?"),
                tags=(mark(TAGS[number % len(TAGS)]),),
                severity="warn" if number % 4 == 1 else "error",
                forbidden_doc_ids=(mark("secret"),),
                must_rank_at_most=3 if number % 2 else None,
            )
        )
        before[name] = _ranked(random, wanted, lost=0.05)
        now[name] = _ranked(random, wanted, lost=0.15) + ([mark("secret")] if number % 9 == 3 else [])
    del before[queries[-1].id]
    before[mark("gone")] = ["x"]
    questions = {one.id: one.query for one in queries}
    run = Rows(
        docs=now,
        name=mark("run.jsonl"),
        versions={"embedding_model": [mark("e5-large@2")], "index_version": [mark("8"), mark("9")]},
        questions=questions,
        latency=Latency(rows=size, p50_ms=41.2, p95_ms=180, max_ms=950),
    )
    base = Rows(
        docs=before,
        name=mark("baseline.json"),
        versions={"embedding_model": [mark("e5-large@1")], "index_version": [mark("8")]},
        questions=questions,
        latency=Latency(rows=size, p50_ms=40, p95_ms=120, max_ms=900),
        created_at="2026-01-02T03:04:05+00:00",
        accepted=[Accepted(reason=mark(REASON), at="2026-01-02T03:04:05+00:00", failed=2, failed_checks=[])],
        contract=PastContract(
            limits={"fail_on.ndcg_drop_gt": 0.2, "minimums.hitrate_at_1": 0.3, "minimums.mrr_at_3": 0.5},
            settings={"missing_queries": "zero", "per_query.enforce_must_include": False},
            waivers=[PastWaiver(tag=mark("legal"), expires="2026-11-30"), PastWaiver(gate="x", expires="2026-01-01")],
        ),
        expects={one.id: replace(expected_of(one), must_rank_at_most=1, forbidden=None) for one in queries[::2]}
        | {queries[1].id: Expected(relevant=Documents(7, "x"), weight=2, tags="x", grades="x", rules=("x y",))},
        replaces=Replaced(
            sha256="ab" * 32,
            created_at="2025-12-31T03:04:05+00:00",
            shared=3,
            accepted=True,
            metrics=dict.fromkeys(("mrr_at_10", "recall_at_10", "ndcg_at_10", "map_at_10"), 0.8),
            metrics_shared={"mrr_at_10": 0.7, "recall_at_10": 0.6, "ndcg_at_10": 0.5, "map_at_10": 0.4},
            contract_changes=[
                ContractChange(
                    kind="rules_removed",
                    effect="weaker",
                    count=9,
                    items=tuple(ChangedItem(id=mark(f"question-{number:03}")) for number in range(7)),
                )
            ],
        ),
    )
    made = report(queries, run, base, _config(mark), warnings=[mark("golden.jsonl:3: a question twice")])
    spread = {key: Spread(deviation=0.0123, lowest=0.5, highest=0.6) for key in made.metrics}
    assert made.inputs.config
    config = replace(made.inputs.config, files=[SourceFile(path=mark("ragcontract.yml"), sha256="ef" * 32)])
    return replace(
        made,
        queries=[_with_results(query, mark) for query in made.queries],
        repeats=RepeatsReport(fewest=3, most=3, metrics=spread),
        inputs=replace(made.inputs, config=config),
        scope=ScopeReport(
            tags=[mark("smoke"), mark("nightly")],
            queries_not_judged=[mark("question-900")],
            gates_not_judged=[mark("tags.weekly.minimums.mrr_at_k")],
        ),
        modes=_modes(),
        judge=_judge(mark),
        tiers=[
            TierReport(
                name=mark("sanity"), rate=0.5, passed=6, queries=12, status="fail", minimum=0.95, gates=[mark("core")]
            ),
            TierReport(
                name=mark("core"), rate=None, passed=0, queries=0, status="skipped", skipped=mark("sanity is missed")
            ),
        ],
        source=Provenance(repository="octo/app", commit="5ca1ab1e" * 5, branch=mark("main"), pull_request=7),
    )


def _judge(mark: Mark) -> Any:
    """Return what a judge said at every task; a query has nothing to judge."""
    quote, reason = mark("Refunds take five days."), mark("It is said there.")

    def task(name: Task, metric: str | None, *items: dict[str, Any], **trust: Any) -> dict[str, Any]:
        judged = {
            "id": mark("question-001"),
            "location": mark("golden.jsonl:2"),
            "passed": 1,
            "of": 2,
            "items": list(items),
        }
        nothing = {"id": mark("question-002"), "location": mark("golden.jsonl:3"), "passed": 0, "of": 1, "items": []}
        unknown: dict[str, Any] = {"kappa": None, "kappa_low": None, "mean": None, "estimate": None, "why_not": []}
        return dict(
            task=name,
            metric=metric,
            label=mark(name.capitalize()),
            judgments=2,
            unjudged=0,
            queries=[judged, nothing],
            **{**unknown, **trust},
        )

    passed = {"item": mark("claim:1"), "text": quote, "verdict": True, "quote": quote, "context": 2, "reason": reason}
    failed = {"item": mark("claim:2"), "text": mark("A year."), "verdict": False, "reason": reason}
    flagged: list[dict[str, Any]] = [
        {"item": mark("x:1"), "text": mark("$5"), "verdict": "asserts_unsupported", "stands": True, "quote": quote},
        {"item": mark("x:2"), "verdict": "denies_or_reports_absence", "stands": False, "reason": reason},
        {"item": mark("x:3"), "text": mark("$7"), "verdict": None, "stands": True},
    ]
    made = {
        "models": [mark("m-2026")],
        "fingerprints": [mark("m-2026 at models.example")],
        "judgments": 7,
        "unused": 3,
        "without_verdict": {"unsure": 2, "compromised": 1},
        "oldest": "2026-01-02T03:04:05+00:00",
        "newest": "2026-01-03T03:04:05+00:00",
        "cached": 4,
        "calls": 9,
        "retried": 2,
        "compromised": 1,
        "tokens_in": 12_345,
        "tokens_out": 678,
        "usd": 0.0123,
        "tasks": [
            task("attribution", "context_recall", passed, failed, kappa=0.8, kappa_low=0.7, mean=0.5, estimate=0.45),
            task("criteria", "criteria_met", passed, failed, why_not=[mark("there is no calibration")]),
            task("confirmation", None, *flagged, kappa=0.9, kappa_low=0.8),
        ],
    }
    return convert(made, get_type_hints(Report)["judge"])


def _modes() -> ModesReport:
    """Return a matrix with a column for rows without a mode, compared with that of a baseline."""
    modes = ("trustworthy", "disputed", "abstain", "missing")
    return ModesReport(
        matrix={mode: dict(zip(modes, (5, 0, 2, 1), strict=True)) for mode in modes[:3]},
        baseline_matrix={mode: dict(zip(modes, (4, 0, 4, 0), strict=True)) for mode in modes[:3]},
        accuracy=0.7,
        per_mode={mode: ClassMeasures(precision=0.5, recall=0.25, f1=1 / 3) for mode in modes[:3]},
        false_answer_rate=0.1,
        over_refusal_rate=None,
        missing=3,
    )


def _with_results(query: QueryReport, mark: Mark) -> QueryReport:
    """List what was retrieved for a broken query, with a chunk, a score, and documents of the contract.

    And what was said: texts of several lines, tool calls, more of them than are listed.
    """
    if not query.violations:
        return query
    results = [
        RetrievedReport(doc_id=mark("other"), score=0.75, chunk_id=mark("other#1")),
        RetrievedReport(doc_id=mark("secret"), contract="forbidden"),
    ]
    before = [RetrievedReport(doc_id=next(iter(query.ranks)), contract="relevant")]
    said = Said(
        response=mark("I'm sorry.\nNothing says so."),
        error=mark("TimeoutError"),
        mode=mark("abstain"),
        label=mark("billing"),
        refusal=mark("I cannot help with that"),
        finish_reason=mark("length"),
        tool_calls=(ToolCall(name=mark("get_order"), arguments=mark('{"id": 7}')),),
        more_tool_calls=2,
        messages=(Message(role=mark("user"), text=mark("Is it refunded?")),),
        more_messages=2,
        contexts=(mark("Customers who paid twice are refunded."), mark("Prices include tax.")),
        more_contexts=3,
    )
    then = Said(response=mark("They are refunded."), tool_calls=(), contexts=said.contexts)
    return replace(
        query,
        retrieved=results,
        baseline_retrieved=before if query.baseline_ranks else None,
        answer=AnswerReport(status="fail", violations=[mark("must_contain")]),
        said=said,
        baseline_said=then if query.baseline_ranks else None,
    )


def _config(mark: Mark) -> dict[str, Any]:
    config: dict[str, Any] = yaml.safe_load(CONFIG)
    config["tags"] = {mark(tag): limits for tag, limits in config["tags"].items()}
    for waiver in config["waivers"]:
        waiver |= {name: mark(waiver[name]) for name in ("reason", "tag") if name in waiver}
    return config


def _ranked(random: Random, wanted: list[str], *, lost: float) -> list[str]:
    """Return a ranking of ten, in which each wanted document is lost with that chance, and mostly at the top."""
    ranking = [f"other-{number}" for number in range(10)]
    for doc_id in wanted:
        if random.random() > lost:
            ranking.insert(min(int(random.expovariate(0.6)), 9), doc_id)
    return ranking


def untrusted(made: Report, mark: Mark) -> Report:
    """Return a report as somebody else may have written it: every text and key in it is marked that a record allows."""
    marked: Report = _marked(made, mark)
    return marked


def _marked(value: Any, mark: Mark) -> Any:
    if isinstance(value, str):
        return mark(value)
    if isinstance(value, dict):
        return {_marked(key, mark): _marked(one, mark) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_marked(one, mark) for one in value)
    if isinstance(value, Struct):
        chosen = _chosen(type(value))
        given = {field.name: getattr(value, field.name) for field in fields(value)}
        return type(value)(**{name: one if name in chosen else _marked(one, mark) for name, one in given.items()})
    return value


@lru_cache
def _chosen(record: type[Struct]) -> frozenset[str]:
    """Return the fields that have one of a few values."""
    return frozenset(name for name, hint in get_type_hints(record).items() if is_literal(hint))


def is_literal(hint: Any) -> bool:
    """Return whether a field has one of a few values."""
    return get_origin(hint) is Literal or any(map(is_literal, get_args(hint)))
