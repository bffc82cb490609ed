"""A report with everything in it that a report can have: of each kind of row, note and status at least one."""

from collections.abc import Callable
from random import Random
from typing import Any

from msgspec.structs import replace

from ragcontract.core.run import Latency
from ragcontract.reports.report import Report
from ragcontract.runs.stored import Accepted
from ragcontract.statistics.repeats import RepeatsReport, Spread
from tests.records import Rows, query, report

TAGS = ("billing", "policy", "shipping", "accounts", "legal", "mobile", "returns", "security", "api", "fraud", "tax")
REASON = "The new chunking loses two questions that nobody asks"
LONG_AGO = "2026-01-02T03:04:05+00:00"


def everything(size: int = 12, mark: Callable[[str], str] = str) -> Report:
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
    questions = {asked.id: asked.query for asked in queries}
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
    )
    made = report(queries, run, base, _config(mark), warnings=[mark("golden.jsonl:3: a question twice")])
    return _aged(made, mark(REASON))


def _aged(made: Report, reason: str) -> Report:
    """Return a report whose baseline is half a year old and was accepted broken, and whose run is several exports."""
    baseline = made.inputs.baseline
    assert baseline is not None
    accepted = Accepted(reason=reason, at=LONG_AGO, failed=2, failed_checks=[])
    aged = replace(baseline, created_at=LONG_AGO, age_days=180, too_old=True, accepted=[accepted])
    spread = {key: Spread(deviation=0.0123, lowest=0.5, highest=0.6) for key in made.metrics}
    repeats = RepeatsReport(fewest=3, most=3, metrics=spread)
    return replace(made, inputs=replace(made.inputs, baseline=aged), repeats=repeats)


def _config(mark: Callable[[str], str]) -> dict[str, Any]:
    return {
        "k": [1, 3, 10],
        "fail_on": {"mrr_drop_gt": 0.01, "recall_at_3_drop_gt": "5%", "ndcg_drop_gt": 0.3},
        "minimums": {"hitrate_at_1": 0.2, "map_at_k": 0.99},
        "tags": {
            mark("billing"): {"minimums": {"recall_at_k": 0.99}},
            mark("policy"): {"fail_on": {"mrr_drop_gt": 0.2}, "minimums": {"mrr_at_3": 0.1}},
        },
        "latency": {"p50_ms": 60, "p95_ms": 150, "p95_increase_gt": "10%"},
        "max_baseline_age": 30,
        "waivers": [
            {
                "gate": "minimums.map_at_k",
                "reason": mark("The index is rebuilt, see #41"),
                "owner": "@search",
                "expires": "2026-12-31",
            },
            {
                "tag": mark("legal"),
                "reason": mark("New contracts are not chunked yet"),
                "owner": "@legal",
                "expires": "2026-12-31",
            },
        ],
    }


def _ranked(random: Random, wanted: list[str], *, lost: float) -> list[str]:
    """Return a ranking of ten, in which each wanted document is lost with that chance, and mostly at the top."""
    ranking = [f"other-{number}" for number in range(10)]
    for doc_id in wanted:
        if random.random() > lost:
            ranking.insert(min(int(random.expovariate(0.6)), 9), doc_id)
    return ranking
