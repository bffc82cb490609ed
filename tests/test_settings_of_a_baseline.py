"""A baseline that is stored with a setting, whichever it is, can be read by the next check."""

import json
from pathlib import Path
from typing import Any

import pytest

from ragcontract.contract.config import config_record
from ragcontract.contract.limits import limit_keys, sections
from ragcontract.registry import BUILT_IN
from tests.builders import golden, run, write_jsonl
from tests.process import rag_contract

SETTINGS: dict[str, Any] = {
    "k": [1, 5],
    "gain": "exponential",
    "relevance_level": 0.5,
    "unjudged": "skip",
    "max_baseline_age": 9,
    "rank_by": "documents",
    "missing_queries": "zero",
    "missing_scores": "zero",
    "allow_fields": ["roles", "007"],
    "tiers": [{"name": "core", "minimum": 0.5}],
    "waivers": [{"query": "q1", "reason": "r", "owner": "o", "expires": "2099-01-01"}],
    "tags": {"eu": {"minimums": {"mrr_at_k": 0.1}}},
    "fail_on": {"mode": "significant", "alpha": 0.01},
    "history": {"window": 20, "since": "2026-01-01"},
    "per_query": {"fail_on": "new", "must_include": "any", "forbidden_within": 3, "different_documents": ["a", 7]},
    "answers": {
        "normalise": False,
        "refusal_phrases": ["Ask our support."],
        "only_these": True,
        "refusal": "phrases",
        "missing_modes": "fail",
        "composite": {"minimum": 0.1, "metrics": ["exact_match"]},
        "must_not_leak": ["email", "card"],
    },
    "judge": {
        "model": "m",
        "votes": 3,
        "confirm": "all",
        "unconfirmed": "stands",
        "uncalibrated": "advisory",
        "max_age_days": 3,
    },
    "metrics": {
        "context_recall_text": {"threshold": 0.3},
        "rating": {"from": "scores", "scale": [1, 5], "tags": ["eu"]},
    },
}
NEEDED = {"only_these": {"refusal_phrases": ["Ask our support."]}}
NEED_JUDGMENTS = {"judge.metrics", "judge.second_pass"}
LEAVES = [
    {section: {key: value, **NEEDED.get(key, {})}} if isinstance(inner, dict) else {section: inner}
    for section, inner in SETTINGS.items()
    for key, value in (inner.items() if isinstance(inner, dict) else [("", None)])
]


@pytest.mark.parametrize("config", LEAVES, ids=json.dumps)
def test_a_baseline_that_remembers_a_setting_can_be_read(
    config: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_jsonl(tmp_path / "golden.jsonl", [golden("q1", tier="core", tags=["eu"], reference="Yes.")])
    write_jsonl(tmp_path / "current_run.jsonl", [run("q1", response="Yes.", scores={"rating": 4})])
    Path("ragcontract.yml").write_text(json.dumps(config))
    for command in ("baseline", "check"):
        ended = rag_contract(command)
        assert (ended.code, "error" in ended.err) == (0, False)
    assert json.loads(Path("report.json").read_text())["inputs"]["baseline"].get("contract_changes", []) == []


def test_every_setting_is_tried() -> None:
    record = config_record(BUILT_IN, limit_keys(BUILT_IN, [5]))
    limits = {"minimums", "maximums", "latency"}
    assert {*record.__struct_fields__} == {*SETTINGS} | limits
    for name in ("per_query", "answers", "judge"):
        inner = sections(record)[name]
        assert inner is not None
        keys = {f"{name}.{key}" for key in inner.__struct_fields__ if not key.startswith("enforce_")}
        assert keys == {f"{name}.{key}" for key in SETTINGS[name]} | (keys & NEED_JUDGMENTS)
