"""A check that failed and that no rule reads does not pass in silence."""

from pathlib import Path
from typing import Any

import pytest

from tests.builders import golden, run, write_jsonl
from tests.process import rag_contract

FAILED = [False, {"passed": False}, {"passed": False, "reason": "a phone number"}]
PASSED = [True, {"passed": True}]
PII = {"type": "check", "name": "pii"}
READ_NOWHERE = "checks has 'pii', which failed"


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def contract(*rules: dict[str, Any]) -> None:
    """Write two queries; the second has these rules."""
    write_jsonl(Path("golden.jsonl"), [golden("q1"), golden("q2", **({"rules": list(rules)} if rules else {}))])


def checked(check: object, where: str) -> tuple[int, int, str]:
    """Check a run of which the first query has a check, in its row or in a scores file; return what came of it."""
    rows = [run("q1"), run("q2", checks={"pii": True})]
    if where == "rows":
        rows[0]["checks"] = {"pii": check}
    write_jsonl(Path("current_run.jsonl"), rows)
    write_jsonl(Path("s.jsonl"), [{"query_id": "q1", "checks": {"pii": check}}])
    ended = rag_contract("check", *(["--scores", "s.jsonl"] if where == "scores" else []))
    return ended.code, ended.err.count(READ_NOWHERE), ended.err


@pytest.mark.parametrize("where", ["rows", "scores"])
@pytest.mark.parametrize(
    "rules", [(), (PII,), ({"type": "check", "name": "other"},)], ids=["none", "another query's", "other"]
)
def test_a_failed_check_that_no_rule_reads_is_named(rules: tuple[dict[str, Any], ...], where: str) -> None:
    contract(*rules)
    if rules and rules[0]["name"] == "other":
        Path("ragcontract.yml").write_text("per_query: {enforce_check: false}\n")
    for check in FAILED:
        code, named, err = checked(check, where)
        assert (code, named) == (0, 1), err
        assert READ_NOWHERE in Path("report.json").read_text()
    for check in PASSED:
        assert checked(check, where)[:2] == (0, 0)


@pytest.mark.parametrize("where", ["rows", "scores"])
def test_a_failed_check_that_a_rule_reads_breaks_it(where: str) -> None:
    write_jsonl(Path("golden.jsonl"), [golden("q1", rules=[PII]), golden("q2", rules=[PII])])
    for check in FAILED:
        assert checked(check, where)[:2] == (1, 0)


def test_commands_that_read_documents_only_say_nothing_of_checks() -> None:
    write_jsonl(Path("golden.jsonl"), [golden("q1", rules=[PII])])
    write_jsonl(Path("current_run.jsonl"), [run("q1", checks={"pii": False})])
    assert READ_NOWHERE not in rag_contract("lint").err


@pytest.mark.parametrize("where", ["rows", "scores"])
def test_a_check_with_an_error_has_failed_whatever_it_says_of_passing(where: str) -> None:
    errors: list[dict[str, Any]] = [{"passed": True, "error": "boom"}, {"passed": True, "reason": "r", "error": "boom"}]
    contract()
    for check in errors:
        assert checked(check, where)[:2] == (0, 1)
    write_jsonl(Path("golden.jsonl"), [golden("q1", rules=[PII]), golden("q2", rules=[PII])])
    for check in errors:
        code, named, _ = checked(check, where)
        assert (code, named) == (1, 0)
        assert "it failed: " in Path("report.md").read_text()
        assert "boom" in Path("report.md").read_text()
    for error in (None, ""):
        assert checked({"passed": True, "error": error}, where)[0] == 0
