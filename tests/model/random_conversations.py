"""Random conversations: golden rows with turns, and messages in the forms of several providers."""

import json
import random
from collections.abc import Callable
from typing import Any

from tests.model import random_answers
from tests.model.random_answers import WORDS
from tests.model.workspace import Row

CALLED = ("find", "refund")
Part = Callable[[str], Row]
SAYING: tuple[Part, ...] = (
    lambda text: {"type": "text", "text": text},
    lambda text: {"type": "output_text", "text": text},
    lambda text: {"type": "markdown", "markdown": text},
    lambda text: {"type": "markdown", "text": text},
)


def conversation_fields(rng: random.Random) -> Row:
    """Return the fields of a golden row that is a conversation."""
    turns = [{"query": f"And {number}?", **_turn_fields(rng)} for number in range(rng.randint(1, 3))]
    rules = [{**_rule(rng), "in": rng.choice(("each", "any", "last"))} for _ in range(rng.choice((0, 0, 1)))]
    if any(len(turn) == 1 for turn in turns):
        rules += [_rule(rng)]
    return {"turns": turns, **({"rules": rules} if rules else {})}


def _turn_fields(rng: random.Random) -> Row:
    kind = rng.random()
    if kind < 0.3:
        return {}
    if kind < 0.5:
        return {"answer_must_include": [rng.choice(WORDS)]}
    if kind < 0.6:
        return {"forbidden_claims": [rng.choice(random_answers.PATTERNS)]}
    return {"rules": [_rule(rng)]}


def _rule(rng: random.Random) -> Row:
    kind = rng.choice(("must_contain", "must_not_contain", "must_call_tool", "must_not_call_tool", "must_not_refuse"))
    if kind == "must_not_refuse":
        return {"type": kind}
    if kind.endswith("tool"):
        return {"type": kind, "tool": rng.choice(CALLED), **({"arguments": {"id": 1}} if rng.random() < 0.3 else {})}
    return {"type": kind, "value": rng.choice(WORDS)}


def messages(rng: random.Random, golden: Row, *, trouble: bool) -> Row:
    """Return the fields of a row of the run that have the conversation."""
    said: list[Row] = []
    if rng.random() < 0.2:
        said.append({"role": "system", "content": "Be brief."})
    if rng.random() < 0.2:
        said.append(_assistant(rng, []))
    for turn in golden["turns"]:
        said.append({"role": "user", "content": turn["query"]})
        wanted = [word for word in turn.get("answer_must_include") or [] if rng.random() < 0.8]
        said += [_assistant(rng, wanted) for _ in range(rng.choice((1, 1, 1, 2)))]
        if rng.random() < 0.2:
            result = {"type": "tool_result", "tool_use_id": "1", "content": rng.choice(WORDS)}
            if rng.random() < 0.9:
                used = {"type": "tool_use", "id": "1", "name": rng.choice(CALLED), "input": {}}
                said.append({"role": "assistant", "content": [used]})
            said += [{"role": "user", "content": [result]}, _assistant(rng, [])]
    if trouble and rng.random() < 0.2:
        said.append({"role": "user", "content": "One more?"})
    return {"messages": said, **({"tool_calls": []} if rng.random() < 0.05 else {})}


def _assistant(rng: random.Random, wanted: list[str]) -> Row:
    text = " ".join([*wanted, random_answers.sentence_of(rng)])
    made: Row = {"role": "assistant", "content": text}
    if rng.random() < 0.4:
        made["content"] = [rng.choice(SAYING)(text)]
        if rng.random() < 0.3:
            made["content"].append(rng.choice(({"type": "thinking", "thinking": "secret"}, {"type": "reasoning"})))
        if rng.random() < 0.03:
            made["content"].append({"type": "hologram", "text": text})
    if rng.random() < 0.05:
        made["refusal"] = "I will not."
    if rng.random() < 0.4:
        _call(rng, made)
    return made


def _call(rng: random.Random, message: Row) -> None:
    """Add a call in the form of OpenAI, in its older one, or as a part of Anthropic."""
    name: str = rng.choice(CALLED)
    arguments: dict[str, Any] = rng.choice(({}, {"id": 1}, {"id": "1"}))
    kind = rng.random()
    if kind < 0.5 or not isinstance(message["content"], list):
        function = {"name": name, "arguments": json.dumps(arguments)}
        if kind < 0.25 or kind > 0.8:
            message["tool_calls"] = [{"id": "c1", "type": "function", "function": function}]
        if kind >= 0.25:
            message["function_call"] = function
    else:
        message["content"].append({"type": "tool_use", "id": "c1", "name": name, "input": arguments})
