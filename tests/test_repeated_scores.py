"""Scores of several rows of a query are judged alike in the rows of a run and in scores files."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.builders import Row, golden, run, write_jsonl
from tests.process import Ended, rag_contract

DECLARED = {"f": "{from: scores}", "g": "{from: scores}", "bad": "{from: scores, better: lower, scale: [0, 5]}"}


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def judged(rules: Sequence[Row], rows: Sequence[Row], config: str, *, in_file: bool) -> Ended:
    """Check a query with rules, whose rows have ``rows`` in the run or in a scores file."""
    write_jsonl(Path("golden.jsonl"), [golden("q1", rules=list(rules))])
    Path("ragcontract.yml").write_text(config)
    fields = [{"query_id": "q1", **row} for row in rows]
    write_jsonl(Path("scores.jsonl"), fields)
    write_jsonl(Path("current_run.jsonl"), [run("q1")] if in_file else [run("q1") | row for row in fields])
    return rag_contract("check", "--repeats", *(["--scores", "scores.jsonl"] if in_file else []))


def declared(*names: str) -> str:
    return "metrics: {" + ", ".join(f"{name}: {DECLARED[name]}" for name in names) + "}\n"


MIN = {"type": "min_score", "metric": "f", "value": 0.5}
MAX = {"type": "max_score", "metric": "bad", "value": 2}
BOTH = {"type": "composite", "metrics": ["f", "g"], "minimum": 0.5}


@pytest.mark.parametrize("in_file", [False, True])
@pytest.mark.parametrize(
    ("rule", "rows", "code", "found"),
    [
        (MIN, [{"f": 1}, {"f": 0.1}], 1, "Found: 0.10"),
        (MIN, [{"f": 0.1}, {"f": 1}, {"f": 1}], 1, "Found: 0.10"),
        (MIN, [{"f": 0.5}, {"f": 1}], 0, "PASS"),
        (MAX, [{"bad": 0}, {"bad": 3}], 1, "Found: 3"),
        (MAX, [{"bad": 0}, {"bad": 2}], 0, "PASS"),
        (BOTH, [{"f": 1, "g": 0}, {"f": 0, "g": 1}], 0, "PASS"),
        (BOTH, [{"f": 1, "g": 1}, {"f": 0.2, "g": 0}], 1, "Found: 0.10 (f 0.2, g 0)"),
    ],
)
def test_a_rule_on_a_score_must_hold_in_every_row(
    *, rule: Row, rows: Sequence[Row], code: int, found: str, in_file: bool
) -> None:
    ended = judged([rule], [{"scores": row} for row in rows], declared(*rows[0]), in_file=in_file)
    assert (ended.code, found in ended.out) == (code, True)


@pytest.mark.parametrize("in_file", [False, True])
@pytest.mark.parametrize(
    ("config", "code"),
    [
        ("minimums: {f: 0.5}\n", 2),
        ("minimums: {f: 0.5}\nmissing_scores: zero\n", 1),
    ],
)
@pytest.mark.parametrize("last", [{}, {"scores": {}}, {"scores": {"f": None}}])
def test_a_score_that_one_row_lacks_is_missing(*, config: str, code: int, last: Row, in_file: bool) -> None:
    assert judged([], [{"scores": {"f": 0.9}}, last], declared("f") + config, in_file=in_file).code == code


@pytest.mark.parametrize("in_file", [False, True])
def test_a_check_that_one_row_lacks_is_missing(*, in_file: bool) -> None:
    rows = [{"checks": {"c": True}}, {"checks": {"d": False}}]
    ended = judged([{"type": "check", "name": "c"}], rows, "k: 5\n", in_file=in_file)
    assert (ended.code, "has no check 'c'" in ended.err) == (2, True)
