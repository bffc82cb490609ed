"""The recipes for search services, against stand-ins: the recorded run is one that `check` judges."""

import json
from pathlib import Path

from tests.builders import golden, write_jsonl
from tests.process import spawn
from tests.recipes.elasticsearch_standin import elasticsearch
from tests.runner import ROOT

QUESTIONS = {
    "refund": ("How do I get a refund, my money back?", "refund_policy"),
    "sso": ("Which plan does single sign-on need?", "sso_setup"),
    "limit": ("How many requests per minute does the API allow?", "rate_limits"),
}


def test_an_index_of_elasticsearch_is_recorded_without_code(tmp_path: Path) -> None:
    rows = [golden(name, doc_id, must_rank_at_most=1) for name, (_, doc_id) in QUESTIONS.items()]
    write_jsonl(tmp_path / "golden.jsonl", [row | {"query": QUESTIONS[row["id"]][0]} for row in rows])
    recipe = (ROOT / "examples" / "recipes" / "elasticsearch.yml").read_text()
    with elasticsearch("help-2026-01") as address:
        (tmp_path / "elasticsearch.yml").write_text(recipe.replace("http://localhost:9200", address))
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
