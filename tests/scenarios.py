"""Workspaces that the action's tests start from."""

import json
from pathlib import Path

from tests.builders import golden, run, write_jsonl


def passing(workspace: Path) -> None:
    """Two queries whose documents are found first."""
    write_jsonl(workspace / "golden.jsonl", [golden("refunds", "doc1"), golden("sso", "doc2")])
    write_jsonl(workspace / "current_run.jsonl", [run("refunds", "doc1"), run("sso", "doc2")])


def failing(workspace: Path) -> None:
    """The same with one document lost."""
    passing(workspace)
    write_jsonl(workspace / "current_run.jsonl", [run("refunds", "doc1"), run("sso", "doc9")])


def unusable(workspace: Path) -> None:
    """A run whose second row is cut off."""
    passing(workspace)
    (workspace / "current_run.jsonl").write_text('{"query_id": "refunds", "results": []}\n{"query_id": "ss')


def answers(workspace: Path) -> None:
    """Three broken rules about an answer, one for each package that judges them, and a score within its limit.

    Regular expressions need google-re2, the levenshtein distance rapidfuzz, and schemas of answers jsonschema.
    """
    returns = "Returns are accepted within 30 days of delivery."
    rules = [
        {"type": "regex_must_match", "pattern": r"\bwithin \d+ days\b"},
        {"type": "json_schema", "schema": {"type": "object", "required": ["days"]}},
    ]
    asked = golden("refunds", reference_contexts=[returns], forbidden_claims=[r"\d+ months?"], rules=rules)
    write_jsonl(workspace / "golden.jsonl", [asked])
    said = run("refunds", response='{"answer": "You have ٣ months."}', retrieved_contexts=[returns.upper(), returns])
    write_jsonl(workspace / "current_run.jsonl", [said])
    write_jsonl(workspace / "scores.jsonl", [{"query_id": "refunds", "scores": {"faithfulness": 0.75}}])
    settings = {
        "metrics": {"faithfulness": {"from": "scores"}, "context_recall_text": {"measure": "levenshtein"}},
        "minimums": {"faithfulness": 0.75, "context_recall_text": 1.0},
    }
    (workspace / "ragcontract.yml").write_text(json.dumps(settings))
