"""Random workspaces: small ones, in which many features meet, near the limits, and about as many that pass as fail."""

import datetime as dt
import random
from collections.abc import Sequence
from typing import Any

from tests.model import random_answers
from tests.model.answers import MODES
from tests.model.near_limits import near_limits, repaired, softened, waived
from tests.model.random_calls import call
from tests.model.random_configs import LIMITS, SCORES, Kind, random_config
from tests.model.random_conversations import conversation_fields, messages
from tests.model.random_mistakes import with_mistake
from tests.model.verdict_model import verdict
from tests.model.workspace import Row, Workspace

DOCUMENTS: tuple[str | int, ...] = ("alpha", "beta", "gamma", "delta", "étage", "書類", 7, "omega")
TAGS = ("x", "y", "zürich")
TIERS = ("sanity", "core", "rest")


def random_workspace(seed: int, today: dt.date | None = None) -> Workspace:
    """Return the workspace of a seed."""
    rng = random.Random(seed)
    kind = Kind(
        answers=rng.random() < 0.6,
        tools=rng.random() < 0.4,
        scores=tuple(name for name in SCORES if rng.random() < 0.25),
        quality=rng.choice((0.5, 0.9, 1.0, 1.0)),
        trouble=rng.random() < 0.25,
    )
    workspace = _first(rng, kind)
    today = today or dt.datetime.now(dt.UTC).date()
    for _ in range(8):
        now = verdict(workspace, today)
        if now.exit_code == 2 and rng.random() < 0.97:
            workspace = repaired(workspace, now.reason)
    workspace = softened(rng, workspace, verdict(workspace, today))
    workspace = near_limits(rng, workspace, verdict(workspace, today))
    workspace = waived(rng, workspace, verdict(workspace, today), today)
    return with_mistake(rng, workspace) if rng.random() < 0.15 else workspace


def _first(rng: random.Random, kind: Kind) -> Workspace:
    """Return a workspace as it comes."""
    names: list[str | int] = [f"q{number}" for number in range(rng.randint(1, 6))]
    if rng.random() < 0.1:
        names[0] = 7
    tiers = _tiers(rng)
    golden = [_golden(rng, kind, name, tiers) for name in names]
    repeats = rng.random() < 0.08
    config = random_config(rng, kind, golden, tiers)
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
    if kind.answers and rng.random() < 0.08:
        return row | conversation_fields(rng) | _labels(rng, tiers)
    if kind.answers:
        row |= random_answers.answer_fields(rng) | random_answers.similarity_fields(rng)
        rules = [random_answers.rule(rng, kind.scores) for _ in range(rng.choice((0, 0, 1, 1, 2, 3)))]
        if not kind.tools:
            rules = [rule for rule in rules if "tool" not in rule["type"]]
        row |= {"rules": rules} if rules else {}
    if kind.tools and rng.random() < 0.6:
        row["reference_tool_calls"] = [call(rng, wanted=True) for _ in range(rng.randint(0, 3))]
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
    if "turns" in golden:
        row |= messages(rng, golden, trouble=kind.trouble)
    elif kind.answers or kind.tools:
        row |= _said(rng, kind, golden)
    if kind.scores and rng.random() < 0.8:
        row["scores"] = _scores(rng, kind)
    return row


def _result(rng: random.Random, document: str | int) -> Row:
    return {"doc_id": document, **({"score": rng.choice((0.5, 0.9, None))} if rng.random() < 0.3 else {})}


def _said(rng: random.Random, kind: Kind, golden: Row) -> Row:
    row: Row = {"response": random_answers.answer(rng), "retrieved_contexts": []}
    row["retrieved_contexts"] = [random_answers.context(rng) for _ in range(rng.randint(0, 3))]
    if rng.random() < 0.5:
        row["retrieved_contexts"] += golden.get("reference_contexts") or []
    row["tool_calls"] = [call(rng, trouble=kind.trouble) for _ in range(rng.randint(0, 3))]
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
