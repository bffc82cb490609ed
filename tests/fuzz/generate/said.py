"""What applications say in run rows: answers, contexts, tool calls, conversations, scores and checks."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from tests.fuzz.generate.expected_answers import CHECKS, SCORES, WORDS, Fields, arguments, call
from tests.fuzz.generate.values import Maker

REFUSALS = ("I'm sorry, but I can't help with that.", "I cannot answer that.", "Ich weiß es nicht.", "I won’t.")
LONGEST = 20_000  # characters of an answer that is long, and yet is searched in no time
# Texts that are easy to search badly: blanks, marks, sentences and brackets without end, and what grows when it is
# brought into the normal form.
RUNS = ("no ", " ", "\u0301", "\ufdfa", "[", "](", "**", "`", ". ", "$4 ", "a\u200b", "😀", "ß", "[1] ", "\n\n", "{")


def response(maker: Maker) -> str | None:
    """Return an answer; any text may be one."""
    shape = maker.random.random()
    if shape < 0.05:
        return maker.pick((None, "", " "))
    if shape < 0.15:
        return json.dumps(maker.pick(({"a": "1"}, [1, 2.0, 2], "a", {"a": {"b": []}}, maker.anything())))
    if shape < 0.25:
        return f"```json\n{json.dumps(arguments(maker))}\n```"
    if shape < 0.35:
        return maker.pick(REFUSALS)
    if shape < 0.4:
        return maker.pick(RUNS) * (maker.random.randrange(LONGEST) // 3)
    parts = [maker.odd_text() if maker.chance(0.1) else maker.pick(WORDS) for _ in range(maker.random.randint(1, 6))]
    cited = maker.pick(("", "", " [1]", " [1, 2]", " [9]", f" [{maker.pick(maker.documents)}]"))
    return maker.pick((" ", " ", ". ", "\n")).join(parts) + cited


def said_call(maker: Maker) -> Fields:
    """Return a tool call; some have arguments that are no object."""
    made = call(maker)
    if maker.chance(0.1):
        made = {"name": made.get("name", "search"), "arguments": maker.pick(("{", "[1]", "", '{"a": ' * 300, '"x"'))}
    return made


def messages(maker: Maker, turns: int) -> list[Fields]:
    """Return a conversation of so many turns."""
    made: list[Fields] = [{"role": "system", "content": "x"}] if maker.chance(0.3) else []
    for number in range(turns):
        made.append({"role": "user", "content": f"turn {number}"})
        if maker.chance(0.3):
            calls = [said_call(maker) for _ in range(maker.pick((1, 2)))]
            made += [{"role": "assistant", "content": None, "tool_calls": calls}, {"role": "tool", "content": "x"}]
        parts = [{"type": "text", "text": response(maker) or ""}, {"type": "refusal", "refusal": "no"}]
        content = maker.pick((response(maker), response(maker), parts[: maker.pick((1, 2))]))
        made.append({"role": "assistant", "content": content})
    return made


def check(maker: Maker) -> Any:
    """Return how a check ended."""
    passed = maker.chance(0.7)
    return passed if maker.chance(0.6) else {"passed": passed, "reason": maker.text()}


def score(maker: Maker) -> float | None:
    """Return a value on the scale from 0 to 1."""
    return None if maker.chance(maker.oddness / 3) else maker.number()


def said(maker: Maker, query_id: str | int) -> Fields:
    """Return the fields of a run row about its answer: nearly always all that rules can need."""
    makes: Mapping[str, Callable[[], Any]] = {
        "response": lambda: response(maker),
        "retrieved_contexts": lambda: [response(maker) or "x" for _ in range(maker.pick((0, 1, 2, 3)))],
        "tool_calls": lambda: [said_call(maker) for _ in range(maker.pick((0, 1, 2)))],
        "mode": lambda: maker.pick(("trustworthy", "disputed", "abstain")),
        "label": lambda: maker.pick(("billing", "other", "Other")),
        "checks": lambda: {name: check(maker) for name in CHECKS},
        "scores": lambda: {SCORES[0]: score(maker)} | ({} if maker.scores_apart else {SCORES[1]: score(maker)}),
    }
    fields = {name: make() for name, make in makes.items() if not maker.chance(maker.oddness / 10)}
    if count := maker.turns.get(str(query_id), 0):
        fields["messages"] = messages(maker, count)
        if maker.chance(0.9):  # or they say something else than the messages
            fields.pop("response", None)
            fields.pop("tool_calls", None)
    if maker.chance(0.1):
        fields |= maker.pick(
            ({"refusal": "no"}, {"finish_reason": "content_filter"}, {"finish_reason": "length"}, {"error": "timeout"})
        )
    return fields
