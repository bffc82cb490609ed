"""Random workspaces: small ones, in which many features meet, near the limits, and about as many that pass as fail."""

import dataclasses
import datetime
import json
import random
from collections.abc import Sequence
from typing import Any

from tests.model import random_answers
from tests.model.answers import MODES
from tests.model.random_answers import Forms
from tests.model.verdict_model import Policy, verdict
from tests.model.workspace import Row, Verdict, Workspace

DOCUMENTS: tuple[str | int, ...] = ("alpha", "beta", "gamma", "delta", "étage", "書類", 7, "omega")
TAGS = ("x", "y", "zürich")
TIERS = ("sanity", "core", "rest")
SCORES: dict[str, Row] = {
    "faithfulness": {"from": "scores"},
    "rating": {"from": "scores", "scale": [1, 5]},
    "toxicity": {"from": "scores", "better": "lower"},
}
RANKING = ("mrr", "recall", "precision", "hitrate", "ndcg", "map")
LIMITS = (0, 0.25, 0.5, 0.75, 1)
FAR, PAST = "2099-12-31", "2020-01-01"


@dataclasses.dataclass(frozen=True)
class Kind:
    """What a workspace is about, drawn once."""

    answers: bool
    tools: bool
    scores: tuple[str, ...]
    quality: float  # the share of rows that return what is wanted
    trouble: bool  # whether something may be missing or contradict itself
    forms: Forms


def random_workspace(seed: int, forms: Forms = Forms(), today: datetime.date | None = None) -> Workspace:
    """Return the workspace of a seed."""
    rng = random.Random(seed)
    kind = Kind(
        answers=rng.random() < 0.6,
        tools=rng.random() < 0.4,
        scores=tuple(name for name in SCORES if rng.random() < 0.25),
        quality=rng.choice((0.5, 0.9, 1.0, 1.0)),
        trouble=rng.random() < 0.25,
        forms=forms,
    )
    workspace = _first(rng, kind)
    policy = Policy(newer=forms.newer)
    today = today or datetime.datetime.now(datetime.UTC).date()
    for _ in range(8):
        now = verdict(workspace, today, policy)
        if now.exit_code == 2 and rng.random() < 0.97:
            workspace = _repaired(workspace, now.reason)
    workspace = _softened(rng, workspace, verdict(workspace, today, policy))
    workspace = _near_limits(rng, workspace, verdict(workspace, today, policy))
    return _waived(rng, workspace, verdict(workspace, today, policy), today)


def _first(rng: random.Random, kind: Kind) -> Workspace:
    """Return a workspace as it comes."""
    names: list[str | int] = [f"q{number}" for number in range(rng.randint(1, 6))]
    if rng.random() < 0.1:
        names[0] = 7
    tiers = _tiers(rng)
    golden = [_golden(rng, kind, name, tiers) for name in names]
    repeats = rng.random() < 0.08
    config = _config(rng, kind, golden, tiers)
    times = range(rng.randint(2, 3) if repeats else 1)
    run = [_run(rng, kind, row) for _ in times for row in golden if not (kind.trouble and rng.random() < 0.05)]
    if rng.random() < 0.1:
        run.append({"query_id": "unknown", "results": [], "response": "x"})
    baseline = None
    if rng.random() < 0.6:
        baseline = [_run(rng, kind, row) for row in golden]
    stored = baseline is not None and rng.random() < 0.4
    if baseline is not None and not stored:
        baseline = [row for row in baseline if rng.random() < 0.9] or baseline[:1]
    scores = _scores_file(rng, kind, run)
    used = sorted({tag for row in golden for tag in row.get("tags") or []})
    tags = rng.sample(used, rng.randint(1, len(used))) if used and rng.random() < 0.15 else []
    return Workspace(
        golden=tuple(golden),
        run=tuple(run or [{"query_id": "unknown", "results": []}]),
        config=config,
        baseline=None if baseline is None else tuple(baseline),
        stored=stored,
        scores=scores,
        tags=tuple(["nowhere"] if kind.trouble and rng.random() < 0.03 else tags),
        k=rng.randint(1, 4) if rng.random() < 0.1 else None,
        repeats=repeats,
    )


def _tiers(rng: random.Random) -> list[Row]:
    if rng.random() < 0.8:
        return []
    names = rng.sample(TIERS, rng.randint(1, 3))
    tiers: list[Row] = [{"name": name, "minimum": rng.choice(LIMITS)} for name in names]
    for place, tier in enumerate(tiers[:-1]):
        if rng.random() < 0.6:
            tier["gates"] = [names[place + 1]]
    return tiers


# ---- golden rows ----


def _golden(rng: random.Random, kind: Kind, name: str | int, tiers: Sequence[Row]) -> Row:
    row: Row = {"id": name, "query": f"What of {name}?"}
    about_documents = not kind.answers or rng.random() < 0.7
    if about_documents:
        row |= _documents(rng, kind)
    if kind.answers:
        row |= random_answers.answer_fields(rng) | random_answers.similarity_fields(rng)
        rules = [random_answers.rule(rng, kind.scores) for _ in range(rng.choice((0, 0, 1, 1, 2, 3)))]
        if not kind.tools:
            rules = [rule for rule in rules if "tool" not in rule["type"]]
        row |= {"rules": rules} if rules else {}
    if kind.tools and rng.random() < 0.6:
        row["reference_tool_calls"] = [
            random_answers.call(rng, kind.forms, wanted=True) for _ in range(rng.randint(0, 3))
        ]
    if len(row) == 2:
        row["relevant_doc_ids"] = []
    row |= _labels(rng, tiers)
    if not kind.trouble:
        _without_contradictions(row)
    return row


def _documents(rng: random.Random, kind: Kind) -> Row:
    row: Row = {}
    wanted = rng.sample(DOCUMENTS, rng.choice((0, 1, 1, 2, 3)))
    if rng.random() < 0.4:
        grades = {str(document): rng.choice((1, 1, 2, 3, 1.5)) for document in wanted}
        row["relevance"] = grades | {
            str(d): 0 for d in rng.sample(DOCUMENTS, 2) if str(d) not in grades and rng.random() < 0.5
        }
    else:
        row["relevant_doc_ids"] = wanted + (wanted[:1] if rng.random() < 0.1 else [])
    others = [document for document in DOCUMENTS if kind.trouble or document not in wanted]
    if rng.random() < 0.4:
        row["forbidden_doc_ids"] = rng.sample(others, min(len(others), rng.randint(0, 2)))
    if rng.random() < 0.4 and (wanted or kind.trouble):
        row["must_rank_at_most"] = rng.randint(1, 4)
    if rng.random() < 0.4:
        row["must_include_any"] = rng.random() < 0.7
    return row


def _labels(rng: random.Random, tiers: Sequence[Row]) -> Row:
    row: Row = {}
    if rng.random() < 0.6:
        row["tags"] = rng.sample(TAGS, rng.randint(0, 2))
    if rng.random() < 0.3:
        row["weight"] = rng.choice((0.5, 2, 3, 0.1))
    if rng.random() < 0.15:
        row["severity"] = rng.choice(("warn", "error"))
    if tiers and rng.random() < 0.9:
        row["tier"] = rng.choice(tiers)["name"]
    return row


def _without_contradictions(row: Row) -> None:
    """Leave out what no answer can hold."""
    names = {rule["type"] for rule in row.get("rules") or []}
    if "must_refuse" in names or row.get("expected_mode") == "abstain":
        row["rules"] = [rule for rule in row.get("rules") or [] if rule["type"] != "must_not_refuse"]
        if not row["rules"]:
            del row["rules"]


# ---- runs ----


def _run(rng: random.Random, kind: Kind, golden: Row) -> Row:
    row: Row = {"query_id": golden["id"]}
    wanted = list(
        golden.get("relevant_doc_ids") or [d for d, grade in (golden.get("relevance") or {}).items() if grade]
    )
    documents: list[Any] = rng.choices(DOCUMENTS, k=rng.randint(0, 6))
    if rng.random() < kind.quality:
        rng.shuffle(wanted)
        forbidden = {str(document) for document in golden.get("forbidden_doc_ids") or []}
        documents = [document for document in wanted + documents if str(document) not in forbidden]
    names_documents = any(name in golden for name in ("relevant_doc_ids", "relevance", "forbidden_doc_ids"))
    if names_documents or rng.random() < 0.5:
        row["results"] = [_result(rng, document) for document in documents]
    if rng.random() < 0.5:
        row["latency_ms"] = rng.choice((1, 10, 10, 20, 20.5, 100))
    if kind.answers or kind.tools:
        row |= _said(rng, kind, golden)
    if kind.scores and rng.random() < 0.8:
        row["scores"] = _scores(rng, kind)
    return row


def _result(rng: random.Random, document: str | int) -> Row:
    return {"doc_id": document, **({"score": rng.choice((0.5, 0.9, None))} if rng.random() < 0.3 else {})}


def _said(rng: random.Random, kind: Kind, golden: Row) -> Row:
    row: Row = {"response": random_answers.answer(rng, kind.forms), "retrieved_contexts": []}
    row["retrieved_contexts"] = [random_answers.context(rng) for _ in range(rng.randint(0, 3))]
    if rng.random() < 0.5:
        row["retrieved_contexts"] += golden.get("reference_contexts") or []
    row["tool_calls"] = [random_answers.call(rng, kind.forms) for _ in range(rng.randint(0, 3))]
    if golden.get("reference_tool_calls") and rng.random() < 0.6:
        row["tool_calls"] = golden["reference_tool_calls"] + row["tool_calls"][:1]
    if golden.get("reference") is not None and rng.random() < 0.4:
        row["response"] = golden["reference"]
    expected = golden.get("expected_mode")
    if expected is not None or rng.random() < 0.2:
        row["mode"] = expected if expected and rng.random() < 0.7 else rng.choice(MODES)
    if golden.get("expected_label") is not None:
        row["label"] = golden["expected_label"] if rng.random() < 0.7 else rng.choice(("a", "b", "d"))
    row["checks"] = {name: _check(rng) for name in ("pii", "style")}
    row |= _rare(rng)
    if kind.trouble and rng.random() < 0.1:
        del row[rng.choice(list(row))]
    return row


def _check(rng: random.Random) -> bool | Row:
    passed = rng.random() < 0.8
    return passed if rng.random() < 0.5 else {"passed": passed, "reason": "because"}


def _rare(rng: random.Random) -> Row:
    kind = rng.random()
    if kind < 0.03:
        return {"error": "it failed", **({"response": None} if rng.random() < 0.5 else {})}
    if kind < 0.06:
        return {"refusal": rng.choice(("I will not.", "", None))}
    if kind < 0.1:
        return {"finish_reason": rng.choice(("stop", "content_filter", "length"))}
    return {"response": random_answers.REFUSALS[2]} if kind < 0.13 else {}


def _scores(rng: random.Random, kind: Kind) -> Row:
    values: Row = {}
    for name in kind.scores:
        values[name] = rng.choice((1, 2, 3, 5) if name == "rating" else (0, 0.25, 0.5, 0.75, 1, 1))
        if kind.trouble and rng.random() < 0.1:
            values[name] = rng.choice((None, 7))
    return values


def _scores_file(rng: random.Random, kind: Kind, run: list[Row]) -> tuple[Row, ...] | None:
    """Move the scores of a run to a file, sometimes; a query without any gets them there."""
    if not kind.scores:
        return None
    rows = []
    for query in dict.fromkeys(str(row["query_id"]) for row in run):
        own = [row for row in run if str(row["query_id"]) == query]
        if any("scores" in row for row in own) and rng.random() < 0.7:
            if not all("scores" in row for row in own):
                for row in own:
                    row["scores"] = _scores(rng, kind)
            continue
        for row in own:
            row.pop("scores", None)
            rows.append({"query_id": query, "scores": _scores(rng, kind)})
    return tuple(rows) if rows else None


# ---- configurations ----


def _config(rng: random.Random, kind: Kind, golden: Sequence[Row], tiers: Sequence[Row]) -> Row:
    config: Row = {"k": rng.choice((1, 2, 3, 3, 5, [1, 3], [3, 1, 2]))} if rng.random() < 0.9 else {}
    used = sorted({tag for row in golden for tag in row.get("tags") or []})
    named = {row.get("tier") for row in golden}
    if tiers and (kind.trouble or named - {None}):
        names = {tier["name"] for tier in tiers if kind.trouble or tier["name"] in named}
        config["tiers"] = [_tier(tier, names) for tier in tiers if tier["name"] in names]
    config |= _limits(rng, kind)
    if used and rng.random() < 0.4:
        config["tags"] = {tag: _limits(rng, kind) for tag in rng.sample(used, rng.randint(1, len(used)))}
    if kind.scores or kind.tools:
        config["metrics"] = {name: dict(SCORES[name]) for name in kind.scores} | _tool_options(rng)
    config |= _choices(rng)
    config["per_query"] = _per_query(rng)
    if kind.answers:
        config["answers"] = _answers(rng, kind)
    if rng.random() < 0.15:
        config["latency"] = {rng.choice(("p50_ms", "p95_ms", "max_ms")): rng.choice((10, 20, 20.5, 100))}
        if rng.random() < 0.3:
            config["latency"]["p95_increase_gt"] = rng.choice((5, 10, "50%"))
    return config


def _tier(tier: Row, names: set[str]) -> Row:
    gates = [name for name in tier.get("gates") or [] if name in names]
    return {**{key: value for key, value in tier.items() if key != "gates"}, **({"gates": gates} if gates else {})}


def _limits(rng: random.Random, kind: Kind) -> Row:
    """Return a group of limits, of all queries or of a tag."""
    group: Row = {}
    if rng.random() < 0.3:
        group["minimums"] = {f"{rng.choice(RANKING)}_at_k": rng.choice((0, 0.25, 0.5))}
    if rng.random() < 0.2:
        group.setdefault("minimums", {})["pass_rate"] = rng.choice(LIMITS)
    if rng.random() < 0.08:
        group.setdefault("minimums", {})[rng.choice(("judged_at_k", "overlap_at_k", "context_recall_ids"))] = 0.25
    if kind.tools and rng.random() < 0.2:
        group.setdefault("minimums", {})[rng.choice(("tool_f1", "tool_recall", "tool_order", "tool_arguments"))] = 0.25
    if kind.answers and rng.random() < 0.15:
        name = rng.choice(("context_recall_text", "rouge_l", "exact_match", "mode_accuracy", "label_accuracy"))
        group.setdefault("minimums", {})[name] = 0.25
    if rng.random() < 0.3:
        group["fail_on"] = {f"{rng.choice(RANKING)}_drop_gt": rng.choice((0, 0.25, 0.5, "10%", "50%", "100%"))}
    for name in kind.scores:
        if rng.random() < 0.3:
            section, key = ("maximums", name) if name == "toxicity" else ("minimums", name)
            group.setdefault(section, {})[key] = 3 if name == "rating" else 0.5
            change = f"{name}_rise_gt" if name == "toxicity" else f"{name}_drop_gt"
            if rng.random() < 0.5:
                group.setdefault("fail_on", {})[change] = rng.choice((0.25, "25%"))
    return group


def _tool_options(rng: random.Random) -> Row:
    options: Row = {}
    for name in ("tool_precision", "tool_recall", "tool_f1"):
        if rng.random() < 0.3:
            options[name] = {"match": rng.choice(("name", "name_and_arguments")), "lenient": rng.random() < 0.5}
    if rng.random() < 0.3:
        options["tool_arguments"] = {"strict_arguments": rng.random() < 0.5, "lenient": rng.random() < 0.5}
    return options


def _choices(rng: random.Random) -> Row:
    choices: dict[str, tuple[Any, ...]] = {
        "rank_by": ("results", "documents"),
        "missing_queries": ("error", "zero"),
        "missing_scores": ("error", "zero"),
        "relevance_level": (1, 2, 1.5),
        "gain": ("linear", "exponential"),
        "unjudged": ("count", "skip"),
    }
    return {name: rng.choice(values) for name, values in choices.items() if rng.random() < 0.2}


def _per_query(rng: random.Random) -> Row:
    per_query: Row = {}
    if rng.random() < 0.4:
        per_query["fail_on"] = rng.choice(("any", "new", "new", "pass_rate"))
    for rule in ("must_include", "must_rank_at_most", "forbidden_docs", "must_contain", "answered", "must_call_tool"):
        if rng.random() < 0.07:
            per_query[f"enforce_{rule}"] = rng.choice((False, True, "new"))
    if rng.random() < 0.1:
        per_query["forbidden_within"] = rng.randint(1, 4)
    return per_query


def _answers(rng: random.Random, kind: Kind) -> Row:
    settings: Row = {}
    if rng.random() < 0.15:
        settings["normalise"] = False
    if rng.random() < 0.3:
        settings["refusal_phrases"] = [random_answers.OWN_PHRASE]
        if rng.random() < 0.3:
            settings["only_these"] = True
    if rng.random() < 0.2:
        settings["refusal"] = rng.choice(("evidence", "phrases"))
    if rng.random() < 0.2:
        settings["missing_modes"] = "fail"
    if kind.scores and rng.random() < 0.2:
        settings["composite"] = {"minimum": rng.choice((0.25, 0.5)), "metrics": list(kind.scores)}
    return settings


# ---- near what counts ----


def _repaired(workspace: Workspace, reason: str) -> Workspace:
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


def _softened(rng: random.Random, workspace: Workspace, now: Verdict) -> Workspace:
    """Leave out most rules on answers that are broken, so that workspaces pass."""
    keep = rng.choice((0.0, 0.0, 0.3, 1.0))
    broken = now.rules(counting=False)
    golden = []
    for row in workspace.golden:
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


def _near_limits(rng: random.Random, workspace: Workspace, now: Verdict) -> Workspace:
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


def _waived(rng: random.Random, workspace: Workspace, now: Verdict, today: datetime.date) -> Workspace:
    """Waive some of what is broken, until days around today."""
    waivers: list[Row] = []
    yesterday = today - datetime.timedelta(days=1)
    dates = (FAR, FAR, today.isoformat(), yesterday.isoformat(), PAST)
    tags = {str(row["id"]): row.get("tags") or [] for row in workspace.golden}
    chance = rng.choice((0, 0, 0.3, 0.9))
    for query, rule in sorted(now.rules(counting=True)):
        if rng.random() < chance:
            tag = rng.choice(tags[query]) if tags[query] and rng.random() < 0.3 else None
            target: Row = {"query": query} if tag is None else {"tag": tag}
            waivers.append({**target, **({"rule": rule} if rng.random() < 0.6 else {})})
    waivers += [{"gate": gate} for gate, status in now.gates.items() if status == "fail" and rng.random() < chance]
    if rng.random() < 0.03:
        waivers.append({"query": "unknown"})
    if not waivers:
        return workspace
    signed = [{**waiver, "reason": "soon", "owner": "ann", "expires": rng.choice(dates)} for waiver in waivers]
    return dataclasses.replace(workspace, config={**workspace.config, "waivers": signed})


def features(workspace: Workspace) -> set[str]:
    """Return the features that a workspace has, to count them."""
    found = {name for name in ("baseline", "scores", "k", "tags", "repeats", "stored") if getattr(workspace, name)}
    for section, value in workspace.config.items():
        names = value if isinstance(value, dict) else ()
        found |= {f"config.{section}"} if not names else set()
        found |= {f"config.{section}.{name}" if section != "tags" else "config.tags" for name in names}
    found |= {f"golden.{name}" for row in workspace.golden for name in row}
    found |= {f"rule.{rule['type']}" for row in workspace.golden for rule in row.get("rules") or []}
    found |= {f"run.{name}" for row in workspace.run for name in row}
    found |= {f"waiver.{name}" for waiver in workspace.config.get("waivers") or [] for name in waiver if len(name) < 6}
    return found
