"""Cases of fitz-gov are judged as fitz-gov 4.1.0 judges them: verdicts, reasons and aggregates are the same."""

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from ragcontract import check
from ragcontract.reports.report import Report
from tests.builders import write_jsonl
from tests.oracles import fitz_gov_cases
from tests.oracles.fitz_gov_answers import MODES, TEXTS, mode, single_claims
from tests.oracles.outside import asked
from tests.process import rag_contract

pytestmark = pytest.mark.oracles

CONFIG = """\
tiers:
  - {name: sanity, minimum: 0.95, gates: [core]}
answers:
  missing_modes: fail
"""
Answers = Mapping[str, tuple[str, str | None]]  # response and mode by case
CASES = 2_980


class Benchmark(Struct, frozen=True):
    """A folder of cases, the cases, and the folder of the golden file made of them."""

    data: str
    cases: list[dict[str, Any]]
    folder: Path

    def theirs(self, answers: Answers) -> dict[str, Any]:
        """Return what fitz-gov says."""
        rows = [[case_id, *answer] for case_id, answer in answers.items()]
        found: dict[str, Any] = asked("fitz_gov_verdicts", rows, "verdicts", self.data)
        return found

    def ours(self, answers: Answers) -> Report:
        """Return what a check says."""
        rows = [
            {"query_id": case_id, "response": response, **({} if said is None else {"mode": said})}
            for case_id, (response, said) in answers.items()
        ]
        write_jsonl(self.folder / "run.jsonl", rows)
        return check(
            golden=self.folder / "golden.jsonl", run=self.folder / "run.jsonl", config=self.folder / "ragcontract.yml"
        )


def benchmark_of(data: str, cases: list[dict[str, Any]], folder: Path) -> Benchmark:
    """Convert a folder of cases as evaluated."""
    golden = str(folder / "golden.jsonl")
    ended = rag_contract("convert", "--from", "fitz-gov", "--cases", data, "--golden-out", golden)
    assert (ended.code, ended.out) == (0, f"converted {len(cases):,} queries\n")
    (folder / "ragcontract.yml").write_text(CONFIG)
    return Benchmark(data, cases, folder)


@pytest.fixture(scope="module")
def packaged(tmp_path_factory: pytest.TempPathFactory) -> Benchmark:
    """Return the cases of the package."""
    found = asked("fitz_gov_verdicts", None, "cases")
    assert len(found["cases"]) == CASES
    return benchmark_of(found["folder"], found["cases"], tmp_path_factory.mktemp("packaged"))


@pytest.fixture(scope="module")
def made_up(tmp_path_factory: pytest.TempPathFactory) -> Benchmark:
    """Return cases with what the package's own do not have."""
    folder = tmp_path_factory.mktemp("made_up")
    cases = fitz_gov_cases.made_up(folder / "data", 40, random.Random(14))
    return benchmark_of(str(folder / "data"), cases, folder)
