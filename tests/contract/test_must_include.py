"""``per_query.must_include`` says whether all relevant documents must be found; a golden query that says so wins."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders import golden, run, write_jsonl
from tests.process import rag_contract

ROWS = {"q1": {}, "q2": {"must_include_any": False}, "q3": {"must_include_any": True}}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    asked(ROWS)
    write_jsonl(Path("current_run.jsonl"), [run(name, "a", "c") for name in ROWS])


def asked(rows: dict[str, Any]) -> None:
    write_jsonl(Path("golden.jsonl"), [{**golden(name, "a", "b"), **fields} for name, fields in rows.items()])


def broken(per_query: str) -> dict[str, str]:
    """Check; return the rules that are broken, by query."""
    Path("ragcontract.yml").write_text(f"k: 2\nper_query: {{{per_query}}}\n")
    assert rag_contract("check").code in {0, 1}
    report = json.loads(Path("report.json").read_text())
    return {query["id"]: violation["rule"] for query in report["queries"] for violation in query["violations"]}


def test_all_by_default_or_any_for_queries_that_do_not_say() -> None:
    assert broken("") == broken("must_include: all") == {"q1": "must_include", "q2": "must_include"}
    assert broken("must_include: any") == {"q2": "must_include"}
    write_jsonl(Path("current_run.jsonl"), [run(name, "x") for name in ROWS])
    assert broken("must_include: any") == {"q1": "must_include_any", "q2": "must_include", "q3": "must_include_any"}


def test_more_documents_than_fit_never_pass_only_if_all_are_wanted() -> None:
    Path("ragcontract.yml").write_text("k: 1\nper_query: {must_include: any}\n")
    warnings = [line for line in rag_contract("validate").err.splitlines() if "can never pass" in line]
    assert [line.partition(": ")[2][:4] for line in warnings] == ["gold"]
    assert "'q2' wants all 2 relevant documents" in warnings[0]


@pytest.mark.parametrize(
    ("before", "now", "rows", "said"),
    [
        ("all", "any", ROWS, ["per_query.must_include all → any"]),
        ("any", "any", ROWS | {"q2": {}}, ["must_include_any added to 1 query (q2)"]),
        ("all", "all", ROWS | {"q2": {}}, []),
        ("any", "any", ROWS | {"q1": {"must_include_any": False}}, ["must_include_any removed from 1 query (q1)"]),
        ("any", "any", ROWS | {"q3": {}}, []),
        ("any", "all", ROWS | {"q3": {}}, ["must_include_any removed from 1 query (q3)", "must_include any → all"]),
    ],
)
def test_reports_say_what_changed_since_the_baseline(
    before: str, now: str, rows: dict[str, Any], said: list[str]
) -> None:
    broken(f"fail_on: new, must_include: {before}")
    assert rag_contract("baseline").code == 0
    asked(rows)
    Path("ragcontract.yml").write_text(f"k: 2\nper_query: {{fail_on: new, must_include: {now}}}\n")
    lines = [line for line in rag_contract("check").out.splitlines() if line.startswith("Contract changed since")]
    assert bool(lines) == bool(said)
    assert all(part in lines[0] for part in said)
    assert not said or lines[0].count("must_include") == len(said)


@pytest.mark.parametrize("rule", ["must_include", "must_include_any"])
@pytest.mark.parametrize("setting", ["all", "any"])
def test_a_waiver_of_either_name_waives_the_rule(rule: str, setting: str) -> None:
    write_jsonl(Path("current_run.jsonl"), [run("q1", "x"), run("q2", "a", "b"), run("q3", "a", "b")])
    waiver = f"{{query: q1, rule: {rule}, reason: r, owner: o, expires: 2999-12-31}}"
    Path("ragcontract.yml").write_text(f"k: 2\nper_query: {{must_include: {setting}}}\nwaivers: [{waiver}]\n")
    ended = rag_contract("check")
    assert (ended.code, ended.err) == (0, "")
    assert "1 waived" in ended.out.splitlines()[-1]
