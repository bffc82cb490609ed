"""Limits on tool calls and on the comparison of texts. Beyond them, a check exits with 2 and says why."""

from typing import Any

from tests.bounds.lab import Case, Cases, Lab, accepted, all_of
from tests.builders import golden, run


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def calls_of_a_row(lab: Lab, size: int) -> bool:
    wanted = [golden("q1", "doc1", reference_tool_calls=[])]
    rows = [run("q1", "doc1", tool_calls=[{"name": "f"}] * size)]
    return accepted(lab.check(wanted, rows), "tool_calls, more than")


def searched_arguments(lab: Lab, size: int) -> bool:
    forbidden = {"type": "must_not_call_tool", "tool": "f", "arguments": {"a": {"regex": "y"}}}
    rows = [run("q1", "doc1", tool_calls=[{"name": "f", "arguments": {"a": "x" * size}}])]
    return accepted(lab.check([golden("q1", "doc1", rules=[forbidden])], rows), "whose arguments are too long")


def wanted_calls(lab: Lab, size: int) -> bool:
    wanted = [golden("q1", "doc1", reference_tool_calls=[{"name": "f"}] * size)]
    return accepted(lab.check(wanted, [run("q1", "doc1", tool_calls=[])]), "reference_tool_calls: has 101 calls")


def arguments(lab: Lab, size: int) -> bool:
    of_one = {str(number): 1 for number in range(size)}
    rows = [run("q1", "doc1", tool_calls=[])]
    refused = "arguments in all; expected at most", "rules[0].arguments: has 1,001 arguments"
    calls = [golden("q1", "doc1", reference_tool_calls=[{"name": "f", "args": of_one}])]
    rules = [golden("q1", "doc1", rules=[{"type": "must_not_call_tool", "tool": "f", "arguments": of_one}])]
    return all_of(accepted(lab.check(calls, rows), refused[0]), accepted(lab.check(rules, rows), refused[1]))


def levels_of_arguments(lab: Lab, size: int) -> bool:
    call = {"name": "f", "args": {"a": nested(size - 1)}}
    wanted = [golden("q1", "doc1", reference_tool_calls=[call])]
    ended = lab.check(wanted, [run("q1", "doc1", tool_calls=[])])
    valid = [golden("q1", "doc1", rules=[{"type": "tool_arguments_valid"}])]
    return all_of(
        accepted(ended, "expected a JSON object of at most 100 levels"),
        lab.check(valid, [run("q1", "doc1", tool_calls=[call])]).code == 0,
    )


def texts_of_a_distance(lab: Lab, size: int) -> bool:
    wanted = [golden("q1", "doc1", reference_contexts=["r" * 10])]
    rows = [run("q1", "doc1", retrieved_contexts=["c" * (size // 10)])]
    config = "metrics: {context_recall_text: {measure: hamming}}\n"
    return accepted(lab.check(wanted, rows, config), "too many for hamming")


def words_of_rouge(lab: Lab, size: int) -> bool:
    wanted = [golden("q1", "doc1", reference="w")]
    return accepted(lab.check(wanted, [run(response="w " * size)], "minimums: {rouge_l: 0}\n"), "too many for rouge_l")


def characters_of_bleu(lab: Lab, size: int) -> bool:
    wanted = [golden(relevant_doc_ids=[], reference="a")]
    return accepted(lab.check(wanted, [run(response="b" * (size - 1))], "minimums: {bleu: 0}\n"), "too many for bleu")


CASES: Cases = {
    "CALLS": Case(calls_of_a_row),
    "REFERENCE_CALLS": Case(wanted_calls),
    "ARGUMENTS": Case(arguments),
    "ARGUMENTS_SEARCHED": Case(searched_arguments, small=20_000),
    "ARGUMENT_LEVELS": Case(levels_of_arguments),
    "DISTANCE": Case(texts_of_a_distance, small=1_000, past=lambda product: product + 10),
    "SUBSEQUENCE": Case(words_of_rouge, small=100),
    "TRANSLATION": Case(characters_of_bleu, small=100),
}
