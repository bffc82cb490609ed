"""A report with everything in it that a report can have: of each kind of row, note and status at least one."""

from collections.abc import Callable
from datetime import date
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import msgspec

from ragcontract.contract.config import LoadedConfig, read_config
from ragcontract.files.problems import Diagnostics
from ragcontract.judging.verdict import judge
from ragcontract.judging.waivers import with_waivers
from ragcontract.model import Accepted, Latency, RepeatsReport, Report, SourceFile, Spread
from ragcontract.reports.build import build_report
from tests.records import NOW, Rows, query, score

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
  - {gate: minimums.map_at_k, reason: "The index is rebuilt, see #41", owner: "@search", expires: 2026-12-31}
  - {tag: legal, reason: "New contracts are not chunked yet", owner: "@legal", expires: 2026-12-31}
"""
REASON = "The new chunking loses two questions that nobody asks"


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
    run = Rows(
        now,
        name=mark("run.jsonl"),
        versions={"embedding_model": [mark("e5-large@2")], "index_version": [mark("8"), mark("9")]},
        latency=Latency(rows=size, p50_ms=41.2, p95_ms=180, max_ms=950),
    )
    base = Rows(
        before,
        name=mark("baseline.json"),
        versions={"embedding_model": [mark("e5-large@1")], "index_version": [mark("8")]},
        latency=Latency(rows=size, p50_ms=40, p95_ms=120, max_ms=900),
    )
    base.created_at, base.k = "2026-01-02T03:04:05+00:00", [5]
    base.accepted = [Accepted(reason=mark(REASON), at="2026-01-02T03:04:05+00:00", failed=2, failed_checks=[])]
    config = _config(mark)
    scored = msgspec.structs.replace(score(queries, run, base, config.config), config=config)
    judgement, warnings = with_waivers(judge(scored), scored, date(2026, 7, 1))
    made = build_report(scored, judgement, [*warnings, mark("golden.jsonl:3: a question twice")], NOW)
    spread = {key: Spread(deviation=0.0123, lowest=0.5, highest=0.6) for key in made.metrics}
    return msgspec.structs.replace(made, repeats=RepeatsReport(fewest=3, most=3, metrics=spread))


def _config(mark: Callable[[str], str]) -> LoadedConfig:
    with TemporaryDirectory() as folder:
        (Path(folder) / "ragcontract.yml").write_text(CONFIG)
        loaded = read_config(str(Path(folder) / "ragcontract.yml"), Diagnostics())
    config = loaded.config
    waivers = [
        msgspec.structs.replace(waiver, reason=mark(waiver.reason), tag=waiver.tag and mark(waiver.tag))
        for waiver in config.waivers
    ]
    tags = {mark(tag): limits for tag, limits in config.tags.items()}
    return LoadedConfig(
        config=msgspec.structs.replace(config, waivers=waivers, tags=tags),
        files=[SourceFile(path=mark("ragcontract.yml"), sha256="ef" * 32)],
        lines={
            **loaded.lines,
            **{limit.replace(f"tags.{tag}.", f"tags.{mark(tag)}."): 1 for limit in loaded.lines for tag in TAGS},
        },
    )


def _ranked(random: Random, wanted: list[str], *, lost: float) -> list[str]:
    """Return a ranking of ten, in which each wanted document is lost with that chance, and mostly at the top."""
    ranking = [f"other-{number}" for number in range(10)]
    for doc_id in wanted:
        if random.random() > lost:
            ranking.insert(min(int(random.expovariate(0.6)), 9), doc_id)
    return ranking
