"""Inputs about answers that grow: long answers, many rules, turns, contexts, tool calls and scores."""

from pathlib import Path
from random import Random
from typing import Any

from benchmarks.stages import Row, Stage, write_config, write_lines

CHARACTERS = (1 << 18, 1 << 19, 1 << 20)  # the last one is the limit of an answer
# Costs more than other patterns of its size, because RE2 has to follow hundreds of possible matches at once.
EXPENSIVE = "(?:a|b)?.{999}c"


def _golden(**fields: Any) -> Row:
    return {"id": "q", "query": "What is known?", **fields}


def _run(**fields: Any) -> Row:
    return {"query_id": "q", "results": [], **fields}


def long_answer(folder: Path, size: int) -> None:
    """Write an answer of ``size`` characters, and all rules and metrics that read it."""
    rules: list[Row] = [
        {"type": "must_not_contain", "value": "nothing", "word": True},
        {"type": "regex_must_not_match", "pattern": "no .* (is |was )?(mentioned|said)"},
        *({"type": name} for name in ("must_not_refuse", "must_cite")),
        {"type": "json_schema", "schema": {"type": "object"}},
        {"type": "max_chars", "value": 300},
    ]
    claims = {"forbidden_claims": [r"\$\d"], "allowed_phrases": ["no .*"], "required_elements": ["all of it"]}
    write_lines(folder, "golden", [_golden(rules=rules, reference="no way", **claims)])
    write_lines(folder, "current_run", [_run(response=("no $4 [1]( ** é漢 " * size)[:size])])
    write_config(folder, minimums={"exact_match": 0})


def ligatures(folder: Path, size: int) -> None:
    """Write an answer of ``size`` characters that stand for three each."""
    write_lines(folder, "golden", [_golden(rules=[{"type": "must_not_contain", "value": "ffi"}])])
    write_lines(folder, "current_run", [_run(response="ﬃ" * size)])


def many_matches(folder: Path, size: int) -> None:
    """Write an answer of ``size`` characters in which each is a match, after a search to the end."""
    claims = {"forbidden_claims": ["a.*Z|a"], "as_evaluated": "fitz-gov-4.1.0"}
    write_lines(folder, "golden", [_golden(**claims)])
    write_lines(folder, "current_run", [_run(response="a" * size, mode="abstain")])


def expensive_pattern(folder: Path, size: int) -> None:
    """Write an answer of ``size`` characters in no order, and a pattern that makes RE2 slow."""
    random = Random(0)
    answer = "".join(chr(0x4E00 + random.randrange(20_000)) for _ in range(size))
    write_lines(folder, "golden", [_golden(rules=[{"type": "regex_must_not_match", "pattern": EXPENSIVE}])])
    write_lines(folder, "current_run", [_run(response=answer)])


def broken_elements(folder: Path, size: int) -> None:
    """Write ``size`` elements and as many texts that are missing, and texts that must not be there and are."""
    texts = [f"text {number} " for number in range(size)]
    missing = [f"element {number}" for number in range(size)]
    rules = [{"type": "must_contain", "value": missing}, {"type": "must_not_contain", "value": texts}]
    write_lines(folder, "golden", [_golden(rules=rules, required_elements=missing)])
    write_lines(folder, "current_run", [_run(response="".join(texts))])


def rules_in_turns(folder: Path, size: int) -> None:
    """Write a conversation of 1,000 turns, and ``size`` rules that are broken in each turn."""
    rules = [{"type": "must_contain", "value": f"text {number}"} for number in range(size)]
    turns = [{"query": f"turn {number}"} for number in range(1_000)]
    messages = [{"role": role, "content": "x"} for _ in turns for role in ("user", "assistant")]
    write_lines(folder, "golden", [_golden(rules=rules, turns=turns)])
    write_lines(folder, "current_run", [_run(messages=messages)])


def contexts(folder: Path, size: int) -> None:
    """Write ``size`` reference contexts of 100 words, and as many retrieved contexts."""
    texts = [" ".join(f"word{number} of {word}" for word in range(33)) for number in range(size)]
    write_lines(folder, "golden", [_golden(reference_contexts=texts)])
    write_lines(folder, "current_run", [_run(retrieved_contexts=texts[::-1])])
    write_config(folder, minimums={"context_recall_text": 0.5})


def tool_calls(folder: Path, size: int) -> None:
    """Write ``size`` tool calls with 20 arguments, a hundred that were wanted, and rules on them."""
    given = [{str(one): number for one in range(20)} for number in range(size)]
    calls = [{"name": f"tool_{number % 7}", "arguments": one} for number, one in enumerate(given)]
    wanted = [{"name": f"tool_{number % 7}", "arguments": {str(number % 20): number}} for number in range(100)]
    rules: list[Row] = [{"type": "tool_arguments_valid"}]
    rules += [{"type": "must_not_call_tool", "tool": f"tool_{number}", "arguments": {"0": 1}} for number in range(7)]
    write_lines(folder, "golden", [_golden(reference_tool_calls=wanted, rules=rules)])
    write_lines(folder, "current_run", [_run(tool_calls=calls)])
    write_config(folder, minimums={"tool_f1": 0, "tool_arguments": 0, "tool_order": 0})


def rules_on_tools(folder: Path, size: int) -> None:
    """Write ``size`` rules on tools, by name, arguments and patterns, for a thousand calls under their other names."""
    rules: list[Row] = [{"type": "must_not_call_tool", "tool": f"absent_{number}"} for number in range(0, size, 2)]
    for number in range(1, size, 2):
        arguments = {"id": -number} if number % 4 == 1 else {"of": {"regex": f"^{number}$"}}
        rules.append({"type": "must_not_call_tool", "tool": f"tool_{number % 7}", "arguments": arguments})
    calls = [{"name": f"shop.tool_{number % 7}", "arguments": {"id": number, "of": "me"}} for number in range(1_000)]
    write_lines(folder, "golden", [_golden(rules=rules)])
    write_lines(folder, "current_run", [_run(tool_calls=calls)])
    write_config(folder)


def declared_scores(folder: Path, size: int) -> None:
    """Write 1,000 queries with ``size`` scores each, all of which are declared and limited, and a baseline."""
    names = [f"score_{number}" for number in range(size)]
    queries = [f"query {number}" for number in range(1_000)]
    write_lines(folder, "golden", [{"id": one, "query": one, "relevant_doc_ids": ["d"]} for one in queries])
    for name in ("current_run", "baseline"):
        rows = [{"query_id": one, "results": [{"doc_id": "d"}], "scores": dict.fromkeys(names, 0.5)} for one in queries]
        write_lines(folder, name, rows)
    limits = {"minimums": dict.fromkeys(names, 0.4), "fail_on": {f"{name}_drop_gt": 0.1 for name in names}}
    write_config(folder, metrics={name: {"from": "scores"} for name in names}, **limits)


ANSWER_STAGES = (
    Stage(name="all rules on a long answer", unit="characters", sizes=CHARACTERS, make=long_answer, most=15),
    Stage(name="an answer of ligatures", unit="characters", sizes=CHARACTERS, make=ligatures, most=25),
    Stage(name="matches in an imported case", unit="characters", sizes=CHARACTERS, make=many_matches, most=30),
    Stage(
        name="a pattern that makes RE2 slow",
        unit="characters",
        sizes=(16_384, 32_768, 65_536),
        make=expensive_pattern,
        most=40,
    ),
    Stage(name="broken elements in a row", unit="elements", sizes=(2_000, 4_000, 8_000), make=broken_elements, most=20),
    Stage(name="rules broken in 1,000 turns", unit="rules", sizes=(25, 50, 100), make=rules_in_turns, most=50),
    Stage(
        name="n reference × n retrieved contexts", unit="contexts", sizes=(1_000, 2_000, 4_000), make=contexts, most=15
    ),
    Stage(name="tool calls of a row", unit="calls", sizes=(250, 500, 1_000), make=tool_calls, most=10),
    Stage(name="rules on 1,000 tool calls", unit="rules", sizes=(500, 1_000, 2_000), make=rules_on_tools, most=10),
    Stage(name="scores of 1,000 queries", unit="scores", sizes=(25, 50, 100), make=declared_scores, most=60),
)
