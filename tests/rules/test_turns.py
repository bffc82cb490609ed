"""Rules that are applied to the turns of a conversation."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ragcontract import pipeline
from ragcontract.core.errors import InputError
from ragcontract.core.finding import sentence
from ragcontract.core.lines import Line
from ragcontract.evaluation.source import Local
from ragcontract.pipeline import Outcome
from ragcontract.registry import BUILT_IN
from ragcontract.runs.readers import open_baseline, open_run
from tests.builders import Row, write_jsonl
from tests.process import rag_contract
from tests.records import NOW
from tests.toys import MustSay

REGISTRY = replace(BUILT_IN, rules=(*BUILT_IN.rules, Line(names=("must_say",), home=MustSay)))


def say(phrase: str, **fields: Any) -> Row:
    """Return a rule of the toy's type."""
    return {"type": "must_say", "phrase": phrase, **fields}


def asked(*turns: list[Row] | None, **fields: Any) -> Row:
    """Return a golden row with turns, each with its rules if it has any."""
    listed = [{"query": "?", **({} if rules is None else {"rules": rules})} for rules in turns]
    return {"id": "q1", "query": "?", "turns": listed, **fields}


def answered(*answers: str | None, **fields: Any) -> Row:
    """Return a run row with a turn for each answer."""
    messages = [
        message
        for answer in answers
        for message in ({"role": "user", "content": "?"}, {"role": "assistant", "content": answer})
    ]
    return {"query_id": "q1", "messages": messages, **fields}


def check(folder: Path, query: Row, row: Row, config: str = "k: 5\n", baseline: Row | None = None) -> Outcome:
    """Check one row."""
    (folder / "ragcontract.yml").write_text(config)
    before = [str(write_jsonl(folder / "base.jsonl", [baseline]))] if baseline else []
    request = pipeline.Inputs(
        golden=[str(write_jsonl(folder / "golden.jsonl", [query]))],
        config=str(folder / "ragcontract.yml"),
        run=Local(open_run([str(write_jsonl(folder / "run.jsonl", [row]))])),
        baseline=Local(open_baseline(before)) if before else None,
    )
    return pipeline.check(request, now=NOW, registry=REGISTRY)


def said(outcome: Outcome) -> list[str]:
    """Return the findings as sentences."""
    return [sentence(finding) for finding in outcome.decision.findings]


def test_each_turn_is_judged_by_its_own_rules_or_else_by_those_of_the_row(tmp_path: Path) -> None:
    query = asked([say("A")], None, [say("C")], rules=[say("R")])
    assert said(check(tmp_path, query, answered("A", "R", "C"))) == []
    (finding,) = check(tmp_path, query, answered("A", "x", "C")).decision.findings
    assert sentence(finding) == "expected in turn 2 (messages[2]): R in the answer; found: x"
    assert finding.ids == ("must_say",)
    assert len(check(tmp_path, query, answered("R", "R", "R")).decision.violations["q1"]) == 2


@pytest.mark.parametrize(
    ("where", "answers", "wrong"),
    [
        ("each", ["R", "x"], ["in turn 2 (messages[2]): R in the answer; found: x"]),
        ("each", ["x", "A"], ["in turn 1 (messages[0]): R in the answer", "in turn 2 (messages[2]): R in the answer"]),
        ("any", ["R", "A"], []),
        ("any", ["x", "A"], ["in any of 2 turns: R in the answer; found: in turn 2 (messages[2]): A"]),
        ("last", ["x", "R A"], []),
        ("last", ["R", "A"], ["in turn 2 (messages[2]): R in the answer; found: A"]),
    ],
)
def test_a_rule_of_the_row_may_name_its_turns(where: str, answers: list[str], wrong: list[str], tmp_path: Path) -> None:
    query = asked(None, [say("A")], rules=[say("R", **{"in": where})])
    violations = check(tmp_path, query, answered(*answers)).decision.violations.get("q1", ())
    found = [sentence_of(one) for one in violations if "R in the answer" in sentence_of(one)]
    assert len(found) == len(wrong)
    assert all(text in one for text, one in zip(wrong, found, strict=True))


def sentence_of(violation: Any) -> str:
    """Return a violation as text."""
    parts = (*violation.expected, "; found: ", *violation.actual)
    return "".join(part if isinstance(part, str) else part.name for part in parts)


@pytest.mark.parametrize(
    ("config", "verdict"),
    [
        ("k: 5\n", "fail"),
        ("per_query:\n  enforce_must_say: false\n", "pass"),
        (
            "waivers: [{query: q1, rule: must_say, reason: r, owner: o, expires: 2099-01-01}]\n",
            "pass",
        ),
    ],
)
def test_it_is_switched_off_and_waived_by_the_rules_own_name(config: str, verdict: str, tmp_path: Path) -> None:
    assert check(tmp_path, asked([say("A")]), answered("x"), config).decision.verdict == verdict


def test_another_turn_that_breaks_it_is_new(tmp_path: Path) -> None:
    query = asked(None, None, rules=[say("R")])
    outcome = check(tmp_path, query, answered("x", "x"), baseline=answered("x", "R"))
    assert [one.in_baseline for one in outcome.decision.violations["q1"]] == [True, False]


def test_a_malformed_conversation_of_a_baseline_breaks_nothing(tmp_path: Path) -> None:
    outcome = check(tmp_path, asked([say("R")]), answered("x"), baseline={"query_id": "q1", "messages": []})
    assert [one.in_baseline for one in outcome.decision.violations["q1"]] == [False]


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"query_id": "q1", "response": "A"}, "has no messages, which its turns need"),
        (answered("A", "B"), "has 2 turns in messages, and its golden row has 1"),
        ({"query_id": "q1", "messages": [{"role": "bot"}]}, 'has "bot" as the role of messages[0]'),
    ],
)
def test_a_row_that_is_no_such_conversation_is_refused(row: Row, why: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        check(tmp_path, asked([say("A")]), row)
    assert caught.value.problems[0].startswith(f'{tmp_path / "run.jsonl"}:1: query "q1" {why}')


def test_a_conversation_that_ended_with_an_error_breaks_what_was_to_come(tmp_path: Path) -> None:
    query = asked([say("A")], [say("B")])
    outcome = check(tmp_path, query, answered("A", error="timeout"))
    assert said(outcome) == ["expected in turn 2: B in the answer; found: no answer"]


def test_without_a_row_every_turn_is_unanswered(tmp_path: Path) -> None:
    row = {"query_id": "other", "messages": []}
    outcome = check(tmp_path, asked([say("A")], [say("B")]), row, "missing_queries: zero\n")
    assert len(outcome.decision.violations["q1"]) == 2


@pytest.mark.parametrize(
    "rule",
    [{"type": "must_call_tool", "tool": "f"}, {"type": "must_not_call_tool", "tool": "f"}],
    ids=lambda x: x["type"],
)
@pytest.mark.parametrize("ended", [{}, {"messages": []}], ids=["no messages", "empty"])
def test_of_turns_that_an_error_cut_off_no_rule_about_tools_holds(rule: Row, ended: Row, tmp_path: Path) -> None:
    query = asked([rule], None, [rule])
    broken = check(tmp_path, query, {"query_id": "q1", "error": "timeout", **ended}).decision.violations["q1"]
    assert [one.rule for one in broken] == [rule["type"]] * 2
    missing = check(tmp_path, query, {"query_id": "other"}, "missing_queries: zero\n")
    assert len(missing.decision.violations["q1"]) == 2


FORBIDDING: list[Row] = [
    {"type": "must_not_contain", "value": "secret"},
    {"type": "regex_must_not_match", "pattern": "secret"},
    {"type": "must_not_refuse"},
    {"type": "must_not_call_tool", "tool": "refund"},
]
LIMITING: list[Row] = [
    {"type": "must_call_tool", "tool": "refund", "at_most": 1},
    {"type": "max_chars", "value": 5},
    {"type": "tool_arguments_valid"},
]


@pytest.mark.parametrize("forbidding", FORBIDDING, ids=lambda rule: rule["type"])
def test_what_must_not_be_in_any_turn_is_written_for_each(
    forbidding: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = answered("Hello", "secret")
    write_jsonl(tmp_path / "current_run.jsonl", [said])
    files = "--golden", str(tmp_path / "golden.jsonl"), "--run", str(tmp_path / "current_run.jsonl")
    write_jsonl(tmp_path / "golden.jsonl", [asked(None, None, rules=[{**forbidding, "in": "any"}])])
    ended = rag_contract("check", *files)
    assert ended.code == 2
    assert 'golden.jsonl:1: rules[0].in: is "any", with which the rule would hold as soon as one turn' in ended.err
    write_jsonl(tmp_path / "golden.jsonl", [asked(None, None, rules=[{**forbidding, "in": "each"}])])
    assert rag_contract("check", *files).code == (1 if "secret" in str(forbidding) else 0)


@pytest.mark.parametrize("limiting", LIMITING, ids=lambda rule: rule["type"])
def test_a_limit_in_any_turn_is_written_for_each(
    limiting: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    calls = [{"function": {"name": "refund", "arguments": "none"}}] * 2
    said = answered("A long answer", "Short")
    said["messages"][1]["tool_calls"] = calls
    write_jsonl(tmp_path / "current_run.jsonl", [said])
    files = "--golden", str(tmp_path / "golden.jsonl"), "--run", str(tmp_path / "current_run.jsonl")
    for how, code in {"any": 2, "each": 1}.items():
        write_jsonl(tmp_path / "golden.jsonl", [asked(None, None, rules=[{**limiting, "in": how}])])
        ended = rag_contract("check", *files)
        assert (ended.code, 'rules[0].in: is "any"' in ended.err) == (code, how == "any"), ended


def test_a_tool_may_be_called_in_any_turn(tmp_path: Path) -> None:
    said = answered("Hello", "Done")
    said["messages"][1]["tool_calls"] = [{"function": {"name": "refund", "arguments": "{}"}}]
    rule = {"type": "must_call_tool", "tool": "refund", "at_least": 1, "in": "any"}
    assert not check(tmp_path, asked(None, None, rules=[rule]), said).decision.violations
