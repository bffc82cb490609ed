"""The page on recording: what it says of asking, of failures, of Python."""

import json
import sys
from pathlib import Path
from typing import get_args

import pytest

from ragcontract.core import bounds
from ragcontract.net.pacing import FIRST_BACKOFF
from ragcontract.record.record_options import OnFailure
from scripts.docs import block
from tests.process import shell, spawn
from tests.runner import ROOT

PAGE = (ROOT / "docs" / "guides" / "record.md").read_text()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Path:
    assert shell(f"set -e\n{block(PAGE, 'quickstart files')}", cwd=tmp_path).code == 0
    (tmp_path / "bot.py").write_text(block(PAGE, "bot.py"))
    return tmp_path


def test_the_quick_start_records_a_run_that_passes(folder: Path) -> None:
    ended = shell(f"set -e\n{block(PAGE, 'quickstart commands')}", cwd=folder)
    assert (ended.code, ended.out, ended.err) == (0, block(PAGE, "quickstart output"), "")
    first = json.loads((folder / "current_run.jsonl").read_text().splitlines()[0])
    shown = json.loads(block(PAGE, "quickstart row"))
    assert {**first, "latency_ms": shown["latency_ms"]} == shown


def test_the_quick_start_names_options_that_show_the_first_questions(folder: Path) -> None:
    planned = spawn("record", "search.py:retrieve", "--limit", "1", "--plan", cwd=folder)
    assert (planned.code, "to ask     1\n" in planned.out) == (0, True)
    assert not (folder / "current_run.jsonl").exists()


def test_the_conversation_is_recorded(folder: Path) -> None:
    (folder / "golden.jsonl").write_text(block(PAGE, "turns"))
    assert spawn("record", "bot.py:reply", cwd=folder).code == 0
    row = json.loads((folder / "current_run.jsonl").read_text())
    assert [message["content"] for message in row["messages"]] == [
        "Can I return shoes?",
        "Can I return shoes? You have asked 0 times before.",
        "And after 40 days?",
        "And after 40 days? You have asked 1 times before.",
    ]


def test_the_function_in_python_records_a_run_that_passes(folder: Path) -> None:
    (folder / "test.py").write_text(block(PAGE, "record_run"))
    done = shell(f'PYTHONPATH="{ROOT}:." "{sys.executable}" test.py', cwd=folder)
    assert done.code == 0, done


def test_numbers_on_the_page_are_those_of_the_code() -> None:
    assert f"after {bounds.FAILED_IN_A_ROW} failures in a row" in PAGE
    assert f"the calls under way {bounds.WIND_UP} seconds" in PAGE
    assert f"after {FIRST_BACKOFF / 2} to {FIRST_BACKOFF} seconds" in PAGE
    assert f"first {bounds.DETAILED_FAILURES:,} questions that failed" in PAGE
    assert all(f"| `{one}` |" in PAGE for one in get_args(OnFailure))
