"""Workspaces that the action's tests start from."""

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
