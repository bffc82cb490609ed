"""The page about limits says what the code does; its table is made by ``python -m benchmarks.noise``."""

import random
import re
from pathlib import Path

import pytest
import yaml

from benchmarks import noise
from ragcontract.statistics.significance import ALPHA
from scripts import docs
from tests.process import rag_contract, spawn

PAGE = noise.PAGE.read_text(encoding="utf-8")


def test_what_the_page_shows_of_the_example_is_what_is_printed(tmp_path: Path) -> None:
    examples, run = docs.ROOT / "examples", tmp_path / "run.jsonl"
    golden = ("--golden", str(examples / "golden.jsonl"))
    assert spawn("record", f"{examples / 'search.py'}:full", *golden, "--out", str(run), cwd=tmp_path).code == 0
    printed = rag_contract("suggest", *golden, "--run", str(run)).out.splitlines()
    excerpt = re.search(r"<!-- excerpt: suggest -->\n *```text\n(.*?)```", PAGE, re.DOTALL)
    assert excerpt is not None
    shown = [line.strip() for line in excerpt[1].splitlines()]
    assert set(shown) <= {line.strip() for line in printed}


def test_the_table_has_every_case_and_contract() -> None:
    table = PAGE.partition(noise.BEGIN)[2].partition(noise.END)[0]
    assert table.count("\n| ") == len(noise.QUERIES) * len(noise.DROPS) + 1
    assert all(contract.label in table for contract in noise.CONTRACTS)


def test_the_modes_on_the_page_are_those_of_the_benchmark() -> None:
    example = next(iter(re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)))
    fail_on = yaml.safe_load(example)["fail_on"]
    assert fail_on["mode"] in {contract.mode for contract in noise.CONTRACTS}
    assert fail_on["alpha"] == ALPHA


@pytest.mark.parametrize("drop", noise.DROPS)
def test_the_model_drops_by_what_it_should(drop: float) -> None:
    dice = random.Random(1)
    *good, now = noise.runs(20_000, drop, dice)
    hit_rates = [sum(columns[noise.GATED.index("hitrate")]) / 20_000 for columns in (good[0], now)]
    assert hit_rates[0] - hit_rates[1] == pytest.approx(drop, abs=0.008)
    assert not any(noise.verdicts(good, good[0]).values())
    if drop > max(limit or 0 for limit in noise.LIMITS):
        assert all(noise.verdicts(good, now).values())
