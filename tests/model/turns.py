"""The model of conversations: what each turn says and calls, and which rules judge it."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from tests.model import answers
from tests.model.answers import FIELDS, Answer, Rule, Settings, Wrong
from tests.model.tools import read_calls, same
from tests.model.workspace import CannotJudgeError, Row

TURN_FIELDS = (*FIELDS[:4], "allowed_phrases", "min_required", "rules")
SAID = frozenset({"text", "output_text", "input_text", "markdown"})
CALLS = frozenset({"tool_use", "tool_call", "function_call", "server_tool_use"})
RESULTS = frozenset({"tool_result", "mcp_tool_result", "function_call_output"})
UNSEEN = frozenset({"image", "image_url", "file", "thinking", "reasoning", "document"})
WHOLE_ROW = frozenset({*answers.ON_SCORES, "check", "custom"})
OF_TURN, OF_ROW = 1000, 500  # added to the place of a rule in a turn, and of a rule of the row there


def conversation(row: Row) -> list[Row]:
    """Return the turns of a row, each as a row with what the assistant said and called in it."""
    turns: list[Row] = []
    early: list[Row] = []
    for message in row["messages"]:
        if message["role"] == "user" and not _only_results(message):
            turns.append({"response": [], "tool_calls": [], "refusal": None})
        elif message["role"] == "assistant":
            early.append(message) if not turns else _add(turns[-1], message)
    for message in reversed(early):
        if turns:
            _add(turns[0], message)
    return [{**turn, "response": "\n".join(turn["response"])} for turn in turns]


def _only_results(message: Row) -> bool:
    content = message.get("content")
    return isinstance(content, list) and bool(content) and all(part["type"] in RESULTS for part in content)


def _add(turn: Row, message: Row) -> None:
    turn["response"] += filter(None, ["".join(_said(message))])
    turn["tool_calls"] += calls_of(message)
    turn["refusal"] = message.get("refusal") or turn["refusal"]


def _said(message: Row) -> list[str]:
    content = message.get("content")
    if not isinstance(content, list):
        return [content or ""]
    for part in content:
        if part["type"] not in SAID | CALLS | RESULTS | UNSEEN | {"refusal"}:
            raise CannotJudgeError(f"an unknown type of part: {part['type']}")
    return [part.get("text") or part.get("markdown") or "" for part in content if part["type"] in SAID]


def calls_of(message: Row) -> list[Row]:
    """Return the calls of a message, in any of its fields; one that several fields have counts once."""
    content = message.get("content")
    fields = [
        list(message.get("tool_calls") or []),
        [message["function_call"]] if message.get("function_call") else [],
        [part for part in content if part["type"] in CALLS] if isinstance(content, list) else [],
    ]
    found: list[Row] = []
    for calls in fields:
        found += [call for call in calls if not any(_same_call(call, other) for other in found)]
    return found


def _same_call(one: Row, other: Row) -> bool:
    first, second = read_calls({"tool_calls": [one, other]}, "a message")
    return first.name == second.name and same(first.arguments, second.arguments)


def check_messages(row: Row) -> None:
    """Refuse a row that says that nothing was called, and has a message with a call, or a result without its call."""
    _check_results(row.get("messages") or [])
    assistant = [message for message in row.get("messages") or [] if message["role"] == "assistant"]
    if row.get("tool_calls") == [] and any(calls_of(message) for message in assistant):
        raise CannotJudgeError("no tool_calls, and a message with a call")


def _check_results(messages: Sequence[Row]) -> None:
    made: list[str] = []
    without_id = 0
    for message in messages:
        content = message.get("content")
        parts = content if isinstance(content, list) else []
        calls = calls_of(message)
        made += [str(call["id"]) for call in calls if "id" in call]
        without_id += sum("id" not in call for call in calls)
        for part in parts:
            if part["type"] not in RESULTS:
                continue
            if part["tool_use_id"] in made:
                made.remove(part["tool_use_id"])  # each call has one result
            else:
                without_id -= 1
        if without_id < 0:
            raise CannotJudgeError("the result of a tool without its call")


def turn_rules(golden: Row, settings: Settings) -> Iterator[tuple[int, Row, list[Rule]]]:
    """Return the rules of each turn that every turn must hold: its own, or else those of the row."""
    alone = dataclasses.replace(settings, composite=None)
    for place, turn in enumerate(golden["turns"]):
        own = {name: turn[name] for name in TURN_FIELDS if turn.get(name) is not None}
        judged = own or {name: golden[name] for name in TURN_FIELDS if golden.get(name) is not None}
        yield place, judged, [rule for rule in answers.rules_of(judged, alone) if own or not _of_the_row(rule)]


def _of_the_row(rule: Rule) -> bool:
    return rule.name in WHOLE_ROW or "in" in (rule.content if isinstance(rule.content, dict) else {})


def rules_of_conversation(golden: Row, settings: Settings) -> list[Rule]:
    """Return all rules that judge a conversation."""
    of_turns = [rule for _, _, rules in turn_rules(golden, settings) for rule in rules]
    return of_turns + [rule for rule in answers.rules_of(golden, settings) if _of_the_row(rule)]


def broken_in_turns(golden: Row, answer: Answer) -> tuple[dict[Rule, Wrong], set[Rule]]:
    """Return what is wrong by broken rule, over all turns, and the rules that only warn."""
    if answer.row is not None and answer.row.get("messages") is None:
        raise CannotJudgeError("no messages")
    turns: Sequence[Row | None] = [None] * len(golden["turns"]) if answer.row is None else conversation(answer.row)
    if len(turns) != len(golden["turns"]):
        raise CannotJudgeError("another number of turns")
    wrong: dict[Rule, Wrong] = {}
    weak: set[Rule] = set()
    for place, judged, rules in turn_rules(golden, answer.settings):
        _collect(place, answers.broken_rules(rules, _of_turn(answer, judged, turns[place])), wrong, weak)
    for rule in answers.rules_of(golden, dataclasses.replace(answer.settings, composite=None)):
        where = rule.content.get("in") if isinstance(rule.content, dict) else None
        if where:
            of_row = dataclasses.replace(rule, place=OF_ROW + rule.place)  # a turn may have a rule of its own there
            outcomes = [answers.broken_rules([of_row], _of_turn(answer, golden, turn)) for turn in turns]
            for place, outcome in _counting(where, outcomes):
                _collect(place, outcome, wrong, weak)
    return wrong, weak


def _counting(where: str, outcomes: Sequence[Any]) -> list[tuple[int, Any]]:
    """Return the turns whose outcome counts for a rule of the row that names its turns."""
    numbered = list(enumerate(outcomes))
    if where == "last":
        return numbered[-1:]
    return numbered if where == "each" or all(wrong for wrong, _ in outcomes) else []


def _of_turn(answer: Answer, judged: Row, turn: Row | None) -> Answer:
    return dataclasses.replace(answer, golden=judged, row=turn)


def _collect(
    place: int, outcome: tuple[dict[Rule, Wrong], set[Rule]], wrong: dict[Rule, Wrong], weak: set[Rule]
) -> None:
    for rule, what in outcome[0].items():
        named = dataclasses.replace(rule, place=OF_TURN * (place + 1) + rule.place)
        wrong[named] = what | wrong.get(named, frozenset()) if rule.name == "answered" else what
        if rule in outcome[1]:
            weak.add(named)
