"""The page on recording: what it says of asking, of failures, of Python."""

import json
import sys
from pathlib import Path
from typing import get_args

import pytest

from ragcontract.core import bounds
from ragcontract.record.pace import FIRST_BACKOFF
from ragcontract.record.wanted import OnFailure
from scripts.docs import block
from tests.builders import golden, write_jsonl
from tests.process import shell, spawn
from tests.runner import ROOT

PAGE = (ROOT / "docs" / "record.md").read_text()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Path:
    for name in ("search.py", "bot.py"):
        (tmp_path / name).write_text(block(PAGE, name))
    rows = [
        golden("refunds", "doc_refunds", query="is it returned within 30 days"),
        golden("login", "doc_login", query="log in"),
    ]
    write_jsonl(tmp_path / "golden.jsonl", rows)
    return tmp_path


def test_the_commands_record_a_run_that_passes(folder: Path) -> None:
    ended = shell(f"set -e\n{block(PAGE, 'commands')}", cwd=folder)
    assert ended.code == 0, ended
    assert "to ask     2\n" in ended.out
    assert "recorded 2 answers in current_run.jsonl\n" in ended.out
    assert "PASS" in ended.out


def test_the_conversation_is_recorded(folder: Path) -> None:
    write_jsonl(folder / "golden.jsonl", [golden("chat", turns=[{"query": "Hi."}, {"query": "Bye."}])])
    assert spawn("record", "bot.py:reply", cwd=folder).code == 0
    row = json.loads((folder / "current_run.jsonl").read_text())
    assert [message["content"] for message in row["messages"]] == [
        "Hi.",
        "Hi. You have asked 0 times before.",
        "Bye.",
        "Bye. You have asked 1 times before.",
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
