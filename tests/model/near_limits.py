"""Brings random workspaces near what decides: most may pass, limits are what is reached, waivers end about now."""

import dataclasses
import datetime as dt
import json
import random

from tests.model.workspace import Row, Verdict, Workspace

FAR, PAST = "2099-12-31", "2020-01-01"


def repaired(workspace: Workspace, reason: str) -> Workspace:
    """Leave out what makes a workspace one that cannot be judged, where that is easy."""
    config = json.loads(json.dumps(workspace.config))
    gate, _, _ = reason.partition(": ")
    path = gate.split(".")
    if path[0] == "tags" and len(path) == 4:
        config["tags"][path[1]][path[2]].pop(path[3], None)
    elif path[0] in ("minimums", "maximums", "fail_on", "latency") and len(path) == 2:
        config[path[0]].pop(path[1], None)
    elif reason.startswith("fail_on: pass_rate"):
        config["minimums"] = {**config.get("minimums", {}), "pass_rate": 0.5}
        if workspace.tags:
            config["per_query"]["fail_on"] = "new"
    elif reason.startswith("tiers"):
        config.pop("tiers", None)
    elif reason.startswith("must_rank_at_most"):
        level = config.get("relevance_level", 1)
        golden = [row if _wants(row, level) else _without(row, "must_rank_at_most") for row in workspace.golden]
        return dataclasses.replace(workspace, golden=tuple(golden))
    return dataclasses.replace(workspace, config=config)


def _wants(row: Row, level: float) -> bool:
    grades = row.get("relevance") or {}
    return bool(row.get("relevant_doc_ids")) or any(grade >= level for grade in grades.values())


def _without(row: Row, name: str) -> Row:
    return {key: value for key, value in row.items() if key != name}


def softened(rng: random.Random, workspace: Workspace, now: Verdict) -> Workspace:
    """Leave out most rules on answers that are broken, so that workspaces pass."""
    keep = rng.choice((0.0, 0.0, 0.3, 1.0))
    broken = now.rules(counting=False)
    golden = []
    for row in workspace.golden:
        if "turns" in row:
            golden.append(row)
            continue
        rules = {rule for query, rule in broken if query == str(row["id"]) and rng.random() >= keep}
        changed = {name: value for name, value in row.items() if name not in rules}
        if "forbidden_claims" in rules:
            changed.pop("allowed_phrases", None)
        if "required_elements" in rules:
            changed.pop("min_required", None)
        if "rules" in changed:
            changed["rules"] = [rule for rule in changed["rules"] if rule["type"] not in rules]
            if not changed["rules"]:
                del changed["rules"]
        golden.append(changed if len(changed) > 2 and _expects(changed) else row)
    return dataclasses.replace(workspace, golden=tuple(golden))


def _expects(row: Row) -> bool:
    return any(name not in ("id", "query", "tags", "weight", "severity", "tier", "must_include_any") for name in row)


def near_limits(rng: random.Random, workspace: Workspace, now: Verdict) -> Workspace:
    """Move some limits to what was reached, a little above it and a little below."""
    if now.exit_code == 2:
        return workspace
    config = dict(workspace.config)
    for section in ("minimums", "maximums"):
        limits = dict(config.get(section) or {})
        for name in limits:
            value = _reached(now, name)
            if value is not None and 0.01 < value < 0.99 and rng.random() < 0.5:
                limits[name] = value + rng.choice((0, 5e-10, 3e-9, -3e-9, -5e-10, -0.01))
        if limits:
            config[section] = limits
    drops = dict(config.get("fail_on") or {})
    for name in drops:
        metric = next((key for key in now.means if key.startswith(f"{name.split('_drop_gt')[0]}_at_")), None)
        before, after = now.baseline_means.get(metric or ""), now.means.get(metric or "")
        if before is not None and after is not None and 0.01 < before - after < 0.99 and rng.random() < 0.5:
            drops[name] = before - after + rng.choice((0, 5e-10, -5e-10, -3e-9, 3e-9))
    return dataclasses.replace(workspace, config={**config, **({"fail_on": drops} if drops else {})})


def _reached(now: Verdict, name: str) -> float | None:
    if name == "pass_rate":
        return now.pass_rate
    if not name.endswith("_at_k"):
        return now.means.get(name)
    cut_offs = [int(key.rpartition("_")[2]) for key in now.means if key.startswith(name[:-1])]
    return now.means.get(f"{name[:-1]}{max(cut_offs)}") if cut_offs else None


def waived(rng: random.Random, workspace: Workspace, now: Verdict, today: dt.date) -> Workspace:
    """Waive some of what is broken, until days around today."""
    waivers: list[Row] = []
    yesterday = today - dt.timedelta(days=1)
    dates = (FAR, FAR, FAR, today.isoformat(), yesterday.isoformat(), PAST)
    tags = {str(row["id"]): row.get("tags") or [] for row in workspace.golden}
    chance = rng.choice((0, 0.5, 1))
    for query, rule in sorted(now.rules(counting=True)):
        if rng.random() < chance:
            tag = rng.choice(tags[query]) if tags[query] and rng.random() < 0.5 else None
            target: Row = {"query": query} if tag is None else {"tag": tag}
            waivers.append({**target, **({"rule": rule} if rng.random() < 0.6 else {})})
    waivers += [{"gate": gate} for gate, status in now.gates.items() if status == "fail" and rng.random() < chance]
    if rng.random() < 0.03:
        waivers.append({"query": "unknown"})
    if not waivers:
        return workspace
    signed = [{**waiver, "reason": "soon", "owner": "ann", "expires": rng.choice(dates)} for waiver in waivers]
    return dataclasses.replace(workspace, config={**workspace.config, "waivers": signed})
