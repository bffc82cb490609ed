"""``turns`` of a golden row."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ragcontract.contract.golden_file import read_golden
from ragcontract.core import bounds
from ragcontract.core.lines import Line
from ragcontract.registry import BUILT_IN
from tests.builders import Row, write_jsonl
from tests.core.test_rule import MostResults
from tests.toys import MustSay

REGISTRY = replace(
    BUILT_IN,
    rules=(*BUILT_IN.rules, Line(names=("must_say",), home=MustSay), Line(names=("most_results",), home=MostResults)),
)
SAY: Row = {"type": "must_say", "phrase": "A"}
OF_ROW: Row = {"type": "most_results", "count": 1}
TURN: Row = {"query": "?"}


def read(folder: Path, **fields: Any) -> tuple[Any, list[str]]:
    """Return the rules of a golden row, and what is wrong with it."""
    path = write_jsonl(folder / "golden.jsonl", [{"id": "q1", "query": "?", **fields}])
    golden = read_golden([str(path)], REGISTRY)
    problems = [problem.removeprefix(f"{path}:1: ") for problem in golden.problems.problems]
    return golden.queries.get("q1"), problems


def applied(query: Any) -> list[tuple[str, tuple[int, ...], str]]:
    """Return the rules that apply to turns."""
    of_turns = [rule for rule in query.rules if hasattr(rule, "turns")]
    return [(getattr(rule.rule, "phrase", ""), rule.turns, rule.how) for rule in of_turns]


def test_what_the_user_says_is_kept_and_the_row_needs_no_documents(tmp_path: Path) -> None:
    query, problems = read(tmp_path, turns=[{"query": "one", "rules": [SAY]}, {"query": "two"}])
    assert problems == []
    assert (query.answer.turns, query.turns, query.names_documents) == (("one", "two"), 2, False)
    assert applied(query) == [("A", (0,), "each")]


def test_rules_of_the_row_are_for_turns_without_their_own_unless_they_say_otherwise(tmp_path: Path) -> None:
    others = [{"type": "must_say", "phrase": phrase, "in": phrase} for phrase in ("each", "any", "last")]
    query, problems = read(tmp_path, rules=[SAY, *others, OF_ROW], turns=[TURN, {"query": "?", "rules": [SAY]}, TURN])
    assert problems == []
    assert applied(query) == [
        ("A", (0, 2), "each"),
        ("each", (0, 1, 2), "each"),
        ("any", (0, 1, 2), "any"),
        ("last", (2,), "each"),
        ("A", (1,), "each"),
    ]
    assert MostResults(count=1) in query.rules  # a rule about the whole row


def test_a_rule_for_the_last_turn_does_not_take_the_fields_of_the_row_from_the_others(tmp_path: Path) -> None:
    query, problems = read(
        tmp_path, turns=[TURN, TURN], answer_must_include=["A"], rules=[{**SAY, "phrase": "last", "in": "last"}]
    )
    assert problems == []
    assert [(rule.rule.__struct_config__.tag, rule.turns) for rule in query.rules] == [
        ("answered", (0, 1)),
        ("must_say", (1,)),
        ("answer_must_include", (0, 1)),
    ]


def test_that_there_is_an_answer_is_a_rule_of_the_last_turn_if_all_others_are(tmp_path: Path) -> None:
    rules = [{"type": "must_contain", "value": "A", "in": "last"}]
    query, problems = read(tmp_path, turns=[TURN, TURN], rules=rules)
    assert problems == []
    assert [rule.turns for rule in query.rules] == [(1,), (1,)]


OWN: Row = {"query": "?", "rules": [SAY]}
WRONG: dict[str, tuple[Row, str]] = {
    "no turns": ({"turns": []}, "turns: expected a list of 1 to 1,000 turns"),
    "too many": ({"turns": [OWN] * (bounds.TURNS + 1)}, "turns: expected a list of 1 to 1,000 turns"),
    "no question": ({"turns": [{"rules": [SAY]}]}, "turns[0].query: is missing"),
    "a misspelling": ({"turns": [{**OWN, "ruels": []}]}, "turns[0].ruels: unknown"),
    "a wrong rule": (
        {"turns": [TURN, {"query": "?", "rules": [{"type": "must_say"}]}]},
        "turns[1].rules[0]",
    ),
    "no rules": ({"turns": [TURN, TURN]}, "turns: no turn has rules, and neither has the row"),
    "rules for no turn": ({"turns": [OWN], "rules": [SAY]}, "turns: all have rules of their own"),
    "a field for no turn": (
        {"turns": [OWN], "answer_must_include": ["A"]},
        "turns: all have rules of their own, so those of the row apply to none; give entries of `rules` an `in`",
    ),
    "in without turns": ({"rules": [{**SAY, "in": "any"}]}, "rules[0].in: needs `turns`"),
    "in within a turn": (
        {"turns": [{"query": "?", "rules": [{**SAY, "in": "any"}]}]},
        "turns[0].rules[0].in: is for the rules of the row",
    ),
    "another in": ({"turns": [TURN], "rules": [{**SAY, "in": "first"}]}, 'rules[0].in: expected "any" or "each" or'),
    "a rule of the row within a turn": (
        {"turns": [{"query": "?", "rules": [OF_ROW]}]},
        "turns[0].rules[0]: is about the whole row, not about a turn",
    ),
    "in for a rule of the row": (
        {"turns": [OWN], "rules": [{**OF_ROW, "in": "any"}]},
        "rules[0].in: does not apply: the rule is about the whole row",
    ),
}


@pytest.mark.parametrize(("fields", "why"), WRONG.values(), ids=WRONG.keys())
def test_turns_that_are_none_are_a_problem_of_the_row(fields: Row, why: str, tmp_path: Path) -> None:
    _, problems = read(tmp_path, **fields)
    assert problems[0].startswith(why), problems
