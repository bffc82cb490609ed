"""Checks of what a judge said, run as users run them in a folder, and what came of them."""

import json
from pathlib import Path
from typing import Any

from tests.process import Ended, rag_contract

BOTH = ("--judgments", "judgments.jsonl", "--calibration", "judge-calibration.json")


def check(*argv: str) -> Ended:
    return rag_contract("check", *argv)


def report(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "report.json").read_text())
    return found


def errors(ended: Ended) -> list[str]:
    """Return what is wrong with a check that cannot be judged."""
    assert ended.code == 2, ended
    return [line.removeprefix("error: ") for line in ended.err.splitlines() if line.startswith("error: ")]
