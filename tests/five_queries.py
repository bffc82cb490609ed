"""A contract of five queries that holds, as a new user has it, for the mistakes that one can make with it."""

from pathlib import Path

import pytest

from tests.builders import golden, run, write_jsonl
from tests.process import rag_contract

QUERIES = 5
GOLDEN = [golden(f"q{n}", f"doc_{n}") for n in range(QUERIES)]
RUN = [run(f"q{n}", f"doc_{n}", f"doc_{n + 1}", f"doc_{n + 2}") for n in range(QUERIES)]
CONFIG = "k: 3\nfail_on:\n  recall_drop_gt: 0.1\nminimums:\n  recall_at_k: 0.5\n"


def five_queries(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Go to a folder with the contract, its run and its baseline."""
    monkeypatch.chdir(folder)
    write_jsonl(Path("golden.jsonl"), GOLDEN)
    write_jsonl(Path("current_run.jsonl"), RUN)
    Path("ragcontract.yml").write_text(CONFIG)
    assert rag_contract("baseline").code == 0
