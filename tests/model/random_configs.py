"""Random configurations: limits, switches, tags and tiers."""

import dataclasses
import random
from collections.abc import Sequence
from typing import Any

from tests.model import random_answers
from tests.model.workspace import Row

SCORES: dict[str, Row] = {
    "faithfulness": {"from": "scores"},
    "rating": {"from": "scores", "scale": [1, 5]},
    "toxicity": {"from": "scores", "better": "lower"},
}
RANKING = ("mrr", "recall", "precision", "hitrate", "ndcg", "map")
LIMITS = (0, 0.25, 0.5, 0.75, 1)


@dataclasses.dataclass(frozen=True)
class Kind:
    """What a workspace is about, drawn once."""

    answers: bool
    tools: bool
    scores: tuple[str, ...]
    quality: float  # the share of rows that return what is wanted
    trouble: bool  # whether something may be missing or contradict itself


def random_config(rng: random.Random, kind: Kind, golden: Sequence[Row], tiers: Sequence[Row]) -> Row:
    """Return a configuration."""
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
