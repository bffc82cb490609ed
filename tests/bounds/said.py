"""Limits on what reports show of answers."""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from ragcontract.core.finding import Message, Said, ToolCall
from ragcontract.core.run import RunRow
from ragcontract.evaluation.listed import said_in
from ragcontract.evaluation.side import evaluate_side
from ragcontract.files.problems import Batch
from ragcontract.report.html.elements import lines
from ragcontract.report.markdown import render
from ragcontract.report.parts import ModesReport
from ragcontract.report.record import AnswerReport, Report
from ragcontract.report.terminal import check_text
from tests.bounds.lab import Case, Cases, Lab, all_of
from tests.evaluation.test_evaluate import plan_of
from tests.records import query, rendered, report
from tests.report.page import Page
from tests.toys import REGISTRY, MustSay

Say = Callable[[int], dict[str, Any]]


def held(say: Say, whole: Callable[[Said, int], bool]) -> Case:
    """Return the trial of a limit on what is held of a row."""
    return Case(lambda _, size: whole(said_in(RunRow(query_id="q", results=[], **say(size)), 5), size))


def answered(said: Said) -> Report:
    """Return a report on a broken query whose row says this."""
    made = report([query("q", "A")], {"q": ["x"]})
    answer = AnswerReport(status="fail", violations=["must_contain"])
    return replace(made, queries=[replace(made.queries[0], said=said, answer=answer)])


def in_markdown(say: Callable[[int], Said], more: str = "") -> Case:
    """Return the trial of a limit on the folded section, where text is cut, or the others are counted."""
    cut = f"… {more}" if more else "…"
    return Case(lambda _, size: cut not in render(answered(say(size))))


def call(size: int) -> dict[str, Any]:
    return {"tool_calls": [{"name": "n" * size, "arguments": "a" * size}]}


def whole_call(said: Said, size: int) -> bool:
    ((name, arguments),) = [(one.name, one.arguments) for one in said.tool_calls or ()]
    return all_of(name == "n" * size, arguments == "a" * size)


def texts_of_all(_: Lab, size: int) -> bool:
    plan = replace(plan_of(replace(query("q", "A"), rules=(MustSay(phrase="y"),)), registry=REGISTRY), families=())
    row = plan.row_type(query_id="q", results=[], response="n" * size)
    return "q" in evaluate_side(plan, [Batch("run.jsonl", 1, [row])]).listed.said


def matrix(_: Lab, size: int) -> bool:
    counts = {f"mode {number}": {f"mode {other}": 1 for other in range(size)} for number in range(size)}
    modes = ModesReport(
        matrix=counts,
        baseline_matrix=None,
        accuracy=1,
        per_mode={},
        false_answer_rate=None,
        over_refusal_rate=None,
        missing=0,
    )
    made = rendered(replace(report([query("q", "A")], {"q": ["A"]}), modes=modes))["report-md"].decode()
    (table,) = [table for table in Page(made).tables if table[0][0].startswith("Expected")]
    heading, *lines = table
    return all_of(len(heading) == size + 2, len(lines) in {size, size + 1} and f"mode {size - 1}" in lines[size - 1])


CASES: Cases = {
    "SAID": held(
        lambda size: dict.fromkeys(("response", "error", "refusal"), "x" * size),
        lambda said, size: all_of(*(one == "x" * size for one in (said.response, said.error, said.refusal))),
    ),
    "SAID_NAME": held(
        lambda size: dict.fromkeys(("mode", "label", "finish_reason"), "x" * size),
        lambda said, size: all_of(*(one == "x" * size for one in (said.mode, said.label, said.finish_reason))),
    ),
    "SAID_CONTEXT": held(
        lambda size: {"retrieved_contexts": ["x" * size]}, lambda said, size: said.contexts == ("x" * size,)
    ),
    "SAID_CONTEXTS": held(lambda size: {"retrieved_contexts": ["x"] * size}, lambda said, _: not said.more_contexts),
    "SAID_CALLS": held(lambda size: {"tool_calls": [{"name": "x"}] * size}, lambda said, _: not said.more_tool_calls),
    "SAID_MESSAGES": held(lambda size: {"messages": [{"role": "user"}] * size}, lambda said, _: not said.more_messages),
    "SAID_MESSAGE": held(
        lambda size: {"messages": [{"role": "user", "content": "x" * size}]},
        lambda said, size: said.messages == (Message(role="user", text="x" * size),),
    ),
    "SAID_ARGUMENTS": held(call, whole_call),
    "SAID_TEXTS": Case(texts_of_all, small=100),
    "MATRIX": Case(matrix),
    "MARKDOWN_SAID": in_markdown(
        lambda size: Said(response="x" * size, tool_calls=(ToolCall(name="x", arguments="y" * (size - 2)),))
    ),
    "MARKDOWN_CONTEXT": in_markdown(lambda size: Said(contexts=("x" * size,))),
    "MARKDOWN_MESSAGES": in_markdown(lambda size: Said(messages=(Message(role="user", text="x"),) * size), "1 more"),
    "MARKDOWN_SAID_LINES": in_markdown(lambda size: Said(contexts=("x",) * size), "1 more"),
    "TERMINAL_ANSWER": Case(
        lambda _, size: f"Answer: {'x' * size}\n" in check_text(answered(Said(response="x" * size)))
    ),
    "HTML_SAID_LINES": Case(lambda _, size: lines("x\n" * (size - 1)).count("\n") == size - 1),
}
