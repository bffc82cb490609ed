"""The model of a check: what exit code, broken rules, gates and means the documents promise for a workspace."""

import dataclasses
import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

from tests.model import gates
from tests.model.contract import (
    TOLERANCE,
    Contract,
    check_forbidden,
    contract_of,
    repeated_scores,
    rows_of,
    scores_of,
    waivers_of,
)
from tests.model.evaluation import Side, check_failed, check_storable, query_of
from tests.model.gates import Query
from tests.model.workspace import CannotJudgeError, Row, Verdict, Workspace


def verdict(workspace: Workspace, today: dt.date, tolerance: float = TOLERANCE) -> Verdict:
    """Return what the documents promise of a check."""
    try:
        return _judge(workspace, today, tolerance)
    except CannotJudgeError as error:
        return Verdict(exit_code=2, reason=str(error))


def _judge(workspace: Workspace, today: dt.date, tolerance: float) -> Verdict:
    if workspace.repeated or workspace.configs == "both":
        raise CannotJudgeError("a key twice, or two configurations")
    contract = contract_of(workspace, tolerance)
    rows = rows_of(workspace.run, contract, "run")
    check_forbidden(contract, rows)
    before = None if workspace.baseline is None else rows_of(workspace.baseline, contract, "baseline")
    if workspace.stored:
        check_storable(contract, workspace)
    if before is not None:
        check_failed(contract, before)
    if before is not None and not workspace.tags and not any(str(row["id"]) in before for row in workspace.golden):
        raise CannotJudgeError("no query in common with the baseline")
    run = Side(rows, scores_of(workspace, contract), current=True, strict=True, measured=repeated_scores(workspace))
    baseline = None if before is None else Side(before, {}, current=False, strict=workspace.stored)
    waived_gates, waivers = waivers_of(workspace, today)
    queries = [query_of(golden, contract, run, baseline, waivers) for golden in contract.queries]
    return _decide(contract, queries, run, baseline, waived_gates)


def _decide(
    contract: Contract, queries: Sequence[Query], run: Side, baseline: Side | None, waived: set[str]
) -> Verdict:
    config, tags = contract.config, contract.workspace.tags
    tiers = {} if tags else gates.tier_statuses(config, queries, waived, contract.tolerance)
    statuses = {f"tiers.{name}.minimum": status for name, status in tiers.items()}
    queries = _covered(contract, queries, tiers)
    counted = [query for query in queries if tiers.get(query.tier or "") != "skipped"]
    if not any(query.has_rules for query in counted):
        counted = list(queries)
    for gate in gates.gates_of(config, contract.ks, tags):
        statuses[gate.id] = _status(gate, queries, counted, contract, baseline)
    if not tags:
        latencies = [_latencies(side.rows) if side else [] for side in (run, baseline)]
        statuses |= gates.latency_statuses(config.get("latency") or {}, latencies[0], latencies[1])
    statuses = {name: "waived" if name in waived and status == "fail" else status for name, status in statuses.items()}
    broken = tuple(broken for query in queries for broken in query.broken)
    fails = any(item.counts for item in broken) or "fail" in statuses.values()
    metrics = sorted({metric for query in queries for metric in query.now})
    return Verdict(
        exit_code=int(fails),
        broken=broken,
        gates=statuses,
        means={metric: gates.mean(queries, metric) for metric in metrics},
        baseline_means={metric: gates.mean(queries, metric, before=True, shared=True) for metric in metrics},
        tag_means=_tag_means(queries, metrics, tags),
        pass_rate=gates.rate(counted),
        tiers=tiers,
    )


def _status(
    gate: gates.Gate,
    queries: Sequence[Query],
    counted: Sequence[Query],
    contract: Contract,
    baseline: Side | None,
) -> str:
    tolerance = contract.tolerance
    if gate.kind in ("drop", "rise") and baseline is None:
        raise CannotJudgeError(f"{gate.id}: no baseline")
    if gate.metric == "pass_rate":
        members = [query for query in queries if gate.tag is None or gate.tag in query.tags]
        ids = {query.id for query in counted}
        still = [query for query in members if query.id in ids]
        judged = still if any(query.has_rules for query in still) else members
        return gates.rate_status(float(gate.limit), judged, gate.id, tolerance)
    if gate.metric == "label_macro_f1":
        raise CannotJudgeError("label_macro_f1 is not modelled")
    return gates.mean_status(gate, queries, contract.settings.scales, tolerance)


def _covered(contract: Contract, queries: Sequence[Query], tiers: Mapping[str, str]) -> list[Query]:
    """Excuse what is in a skipped tier, and what only a limit on the pass rate counts."""
    rate_decides = (contract.config.get("per_query") or {}).get("fail_on") == "pass_rate"
    judged = gates.gates_of(contract.config, contract.ks, contract.workspace.tags)
    limits = [gate for gate in judged if gate.metric == "pass_rate"]
    if rate_decides and not limits and not tiers:
        raise CannotJudgeError("fail_on: pass_rate without a limit on it")
    result = []
    for query in queries:
        extra = {"skipped"} if tiers.get(query.tier or "") == "skipped" else set()
        covered = query.tier in tiers or any(gate.tag is None or gate.tag in query.tags for gate in limits)
        if rate_decides and covered:
            extra.add("counted")
        broken = tuple(dataclasses.replace(item, excuses=item.excuses | extra) for item in query.broken)
        result.append(dataclasses.replace(query, broken=broken))
    return result


def _latencies(side: Mapping[str, list[Row]]) -> list[float]:
    return [row["latency_ms"] for rows in side.values() for row in rows if row.get("latency_ms") is not None]


def _tag_means(queries: Sequence[Query], metrics: Sequence[str], only: Sequence[str]) -> dict[str, dict[str, Any]]:
    tags = sorted({tag for query in queries for tag in query.tags if not only or tag in only})
    members = {tag: [query for query in queries if tag in query.tags] for tag in tags}
    return {tag: {metric: gates.mean(members[tag], metric) for metric in metrics} for tag in tags}
