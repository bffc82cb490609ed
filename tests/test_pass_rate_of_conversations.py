"""A conversation counts in pass rates and tiers as any other query does."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders import Row, golden, run, write_jsonl
from tests.process import rag_contract

WANTED: list[Row] = [{"type": "must_contain", "value": "yes"}]
CONVERSATIONS = {
    "the turn has rules": {"turns": [{"query": "?", "rules": WANTED}]},
    "the row has rules": {"turns": [{"query": "?"}], "rules": WANTED},
    "in any turn": {"turns": [{"query": "?"}], "rules": [WANTED[0] | {"in": "any"}]},
    "a field of the turn": {"turns": [{"query": "?", "answer_must_include": ["yes"]}]},
}
LIMITS: dict[str, Any] = {
    "overall": {"minimums": {"pass_rate": 1}},
    "by tag": {"tags": {"chat": {"minimums": {"pass_rate": 1}}}},
    "by tier": {"tiers": [{"name": "chat", "minimum": 1}]},
}


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def check(limit: dict[str, Any], answer: str, **conversation: Any) -> tuple[int, Row]:
    """Check a conversation and a query about documents that holds; return the exit code and report.json."""
    Path("ragcontract.yml").write_text(json.dumps(limit | {"per_query": {"fail_on": "pass_rate"}}))
    asked = {"id": "q1", "query": "?", "tags": ["chat"], "tier": "chat", **conversation}
    messages = [{"role": "user", "content": "?"}, {"role": "assistant", "content": answer}]
    write_jsonl(Path("golden.jsonl"), [asked, golden("q2", tags=["chat"], tier="chat")])
    write_jsonl(Path("current_run.jsonl"), [{"query_id": "q1", "messages": messages}, run("q2", response="x")])
    ended = rag_contract("check")
    return ended.code, json.loads(Path("report.json").read_text())


@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)
@pytest.mark.parametrize("conversation", CONVERSATIONS.values(), ids=CONVERSATIONS)
def test_a_conversation_with_a_broken_rule_misses_the_pass_rate(conversation: Row, limit: dict[str, Any]) -> None:
    code, report = check(limit, "no", **conversation)
    assert (code, report["pass_rate"]) == (1, {"rate": 0.5, "passed": 1, "queries": 2})
    code, report = check(limit, "yes", **conversation)
    assert (code, report["pass_rate"]) == (0, {"rate": 1.0, "passed": 2, "queries": 2})


def test_the_answer_of_a_conversation_that_holds_is_reported_as_any_other() -> None:
    _, report = check({"minimums": {"pass_rate": 1}}, "yes", **CONVERSATIONS["the turn has rules"])
    assert [query["answer"]["status"] for query in report["queries"] if query["id"] == "q1"] == ["pass"]


def test_a_rule_of_turns_that_is_turned_off_counts_in_no_pass_rate() -> None:
    check({"minimums": {"pass_rate": 1}}, "no", **CONVERSATIONS["the turn has rules"])
    off = {"enforce_must_contain": False, "enforce_answered": False, "fail_on": "pass_rate"}
    Path("ragcontract.yml").write_text(json.dumps({"minimums": {"pass_rate": 1}, "per_query": off}))
    assert rag_contract("check").code == 0
    assert json.loads(Path("report.json").read_text())["pass_rate"] == {"rate": 1.0, "passed": 1, "queries": 1}
