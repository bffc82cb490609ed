"""The recipes for search services, against stand-ins: the recorded run is one that `check` judges."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders import golden, write_jsonl
from tests.process import spawn
from tests.recipes.elasticsearch_standin import elasticsearch
from tests.runner import ROOT

RECIPE = (ROOT / "examples" / "recipes" / "elasticsearch.yml").read_text()
QUESTIONS = {
    "refund": ("How do I get a refund, my money back?", "refund_policy"),
    "sso": ("Which plan does single sign-on need?", "sso_setup"),
    "limit": ("How many requests per minute does the API allow?", "rate_limits"),
}


@pytest.mark.parametrize(
    "partly",
    [
        {"timed_out": True},
        {"_shards": {"total": 3, "successful": 1, "skipped": 0, "failed": 2}},
        {"error": {"type": "search_phase_execution_exception"}},
    ],
)
def test_partial_results_of_elasticsearch_are_not_recorded(tmp_path: Path, partly: dict[str, Any]) -> None:
    write_jsonl(tmp_path / "golden.jsonl", [golden("refund", "refund_policy")])
    with elasticsearch("help-2026-01", **partly) as address:
        (tmp_path / "elasticsearch.yml").write_text(RECIPE.replace("http://localhost:9200", address))
        recorded = spawn("record", "elasticsearch.yml", "--retries", "0", cwd=tmp_path)
    assert recorded.code == 2, recorded
    assert ("search_phase" if "error" in partly else "partial results") in recorded.err
    assert not (tmp_path / "current_run.jsonl").exists()


def test_an_index_of_elasticsearch_is_recorded_without_code(tmp_path: Path) -> None:
    rows = [golden(name, doc_id, must_rank_at_most=1) for name, (_, doc_id) in QUESTIONS.items()]
    write_jsonl(tmp_path / "golden.jsonl", [row | {"query": QUESTIONS[row["id"]][0]} for row in rows])
    with elasticsearch("help-2026-01") as address:
        (tmp_path / "elasticsearch.yml").write_text(RECIPE.replace("http://localhost:9200", address))
        recorded = spawn("record", "elasticsearch.yml", cwd=tmp_path)
    assert recorded.code == 0, recorded.err
    found = [json.loads(line) for line in (tmp_path / "current_run.jsonl").read_text().splitlines()]
    assert [row["query_id"] for row in found] == list(QUESTIONS)
    for row in found:
        assert row["index_version"] == "help-2026-01"
        scores = [result["score"] for result in row["results"]]
        assert scores == sorted(scores, reverse=True)
    ended = spawn("check", cwd=tmp_path)
    assert ended.code == 0, ended.err + ended.out
