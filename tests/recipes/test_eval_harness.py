"""Each row of "Coming from RAG Eval Harness" names tests of what it says, or why it is left out."""

import re
import subprocess
import sys
from functools import cache

import yaml

from tests.runner import ROOT

PAGE = ROOT / "docs" / "guides" / "eval-harness.md"
TESTS: dict[str, list[str]] = yaml.safe_load((ROOT / "tests" / "recipes" / "eval_harness.yml").read_text())
HEAD = {"| RAG Eval Harness | rag-contract |", "| --- | --- |"}
LEFT_OUT = "left out: "


def rows() -> dict[str, str]:
    """Return the rows of the tables: what the harness has, and what is here."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ") and line not in HEAD]
    cells = [re.split(r" \| ", line.removeprefix("| ").removesuffix(" |")) for line in lines]
    assert all(len(row) == 2 for row in cells)
    return dict(cells)


@cache
def collected() -> frozenset[str]:
    """Return the tests of the named files, as pytest finds them, without parameters."""
    files = sorted({name.partition("::")[0] for names in TESTS.values() for name in names})
    there = [file for file in files if (ROOT / file).is_file()]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n0", "-p", "no:cacheprovider", *there],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return frozenset(line.partition("[")[0] for line in done.stdout.splitlines() if "::" in line)


def test_each_row_of_the_page_has_its_entry() -> None:
    assert list(rows()) == list(TESTS)


def test_each_named_test_exists_and_is_collected() -> None:
    missing = [f"{row}: {name}" for row, names in TESTS.items() for name in names if name not in collected()]
    assert not missing, "these tests are named and are not there:\n" + "\n".join(missing)


def test_a_row_without_tests_says_why_or_is_no_behaviour() -> None:
    no_behaviour = {"How to add system types, rules, metrics, adapters"}
    commands = {row for row in TESTS if row.startswith("`make ")}
    without = {row for row, names in TESTS.items() if not names}
    assert {row for row in without if LEFT_OUT not in rows()[row]} <= no_behaviour | commands
