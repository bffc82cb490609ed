"""What a judge leaves of what rules about answers flag."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from msgspec.structs import replace

from ragcontract import load_golden
from ragcontract.core import bounds
from ragcontract.core.config_sections import Confirmed
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.phrase import Location
from ragcontract.core.rule import RowContext, RowRule, RuleSettings
from ragcontract.core.run import RunRow
from ragcontract.judgments.second_pass import Confirmation, Upheld, confirmations, upheld
from tests.builders import golden, write_jsonl

QUERY = GoldenQuery(id="q1", query="What does it cost?", relevant_doc_ids=(), location=Location("golden.jsonl", 1))
CONTEXT = RowContext(settings=RuleSettings(k=5), flags=True)
ASSERTS: Confirmed = "asserts_unsupported"
DENIES: Confirmed = "denies_or_reports_absence"
SUPPORTED: Confirmed = "supported_by_context"


def flagging(**fields: Any) -> Any:
    """Return the rule of a golden row that flags words."""
    with TemporaryDirectory() as folder:
        row = load_golden(write_jsonl(Path(folder) / "golden.jsonl", [golden("q1", **fields)]))["q1"]
    (rule,) = [rule for rule in row.rules if hasattr(rule, "searches")]
    return rule


BENCHMARK = {"as_evaluated": "fitz-gov-4.1.0"}
PRICE = flagging(forbidden_claims=[{"regex": r"\$\d+"}])
RULES: tuple[Any, ...] = (
    PRICE,
    flagging(forbidden_claims=[{"regex": r"\$\d+"}, {"text": "free"}], **BENCHMARK),
    flagging(forbidden_elements=[{"text": "free"}, {"any": ["$4", "free"]}]),
    flagging(forbidden_elements=[{"text": "Free"}], **BENCHMARK),
    flagging(rules=[{"type": "must_not_contain", "any": ["free", "cheap"]}]),
)
ANSWER = "It is $4 or $499, but not free. Why is it not free?"


def row(answer: str) -> RunRow:
    return RunRow(query_id="q1", results=[], response=answer)


def asked(answer: str, *rules: RowRule) -> Confirmation:
    (one,) = to_ask(row(answer), *rules)
    return one


def to_ask(row: RunRow, *rules: RowRule) -> tuple[Confirmation, ...]:
    """Return what to ask a judge about a row."""
    violated = [(rule, rule.violations(QUERY, row, CONTEXT)) for rule in rules]
    return confirmations(QUERY, row, violated, CONTEXT, ["It is $4."])


def after(answer: str, verdicts: Mapping[str, Confirmed | None]) -> Upheld:
    return upheld(asked(answer, PRICE), verdicts)


@pytest.mark.parametrize("rule", RULES)
def test_what_is_flagged_is_what_is_violated(rule: Any) -> None:
    flags = [violation.flag for violation in rule.violations(QUERY, row(ANSWER), CONTEXT)]
    without = replace(CONTEXT, flags=False)
    assert [flag.violation for flag in flags] == list(rule.violations(QUERY, row(ANSWER), without))
    assert flags
    assert all(flag.texts for flag in flags)


@pytest.mark.parametrize("rule", RULES[2:3] + RULES[4:])
def test_what_stands_in_a_refusal_stands_because_a_judge_sees_only_the_response(rule: Any) -> None:
    refusing = RunRow(query_id="q1", results=[], response="No.", refusal="It is free.")
    (one,) = to_ask(refusing, rule)
    assert one.case.items == ()
    assert len(upheld(one, {}).standing) == len(list(rule.violations(QUERY, refusing, CONTEXT))) > 0


def test_an_answer_in_which_nothing_is_flagged_is_not_asked_about() -> None:
    assert to_ask(row("It costs nothing."), *RULES) == ()


def test_all_words_that_were_found_are_asked_about_once() -> None:
    one = asked("$4, $499, $4", PRICE, PRICE)
    assert [item.text for item in one.case.items] == ["$4", "$499"]
    assert [names for _, names in one.violations] == [("forbidden_claims:1", "forbidden_claims:2")] * 2


@pytest.mark.parametrize("verdict", [DENIES, SUPPORTED])
def test_what_is_denied_or_supported_is_cleared(verdict: Confirmed) -> None:
    found = after("It does not cost $4.", {"forbidden_claims:1": verdict})
    assert (len(found.cleared), found.standing, found.unknown) == (1, (), ())


def test_what_is_asserted_stands_even_if_other_words_of_the_pattern_are_denied() -> None:
    found = after("Not $4, but $499.", {"forbidden_claims:1": DENIES, "forbidden_claims:2": ASSERTS})
    assert (found.cleared, len(found.standing), found.unknown) == ((), 1, ())


@pytest.mark.parametrize("verdicts", [{}, {"forbidden_claims:1": None}, {"forbidden_claims:1": DENIES}])
def test_what_has_no_verdict_is_never_cleared(verdicts: dict[str, Confirmed | None]) -> None:
    found = after("Not $4, but $499.", verdicts)
    assert found.cleared == ()
    assert len(found.standing) == 1
    assert found.unknown == found.standing


def test_too_many_different_matches_are_not_asked_about_and_stand() -> None:
    answer = " ".join(f"${at}" for at in range(bounds.FLAGGED + 1))
    assert asked(answer, PRICE).case.items == ()
    assert len(after(answer, {}).standing) == 1
