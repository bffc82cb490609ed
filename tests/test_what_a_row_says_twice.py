"""A run row that has its answer and calls beside its messages: both must say the same, and neither is ignored."""

from pathlib import Path
from typing import Any

import pytest

from tests.builders import Row, golden, run, write_jsonl
from tests.process import Ended, rag_contract

NO_SECRET = {"type": "must_not_contain", "value": "salary"}
NO_REFUND = {"type": "must_not_call_tool", "tool": "refund"}
LOOKED = {"type": "must_call_tool", "tool": "look"}
USER = {"role": "user", "content": "What does she earn?"}
LOOK = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"id": 7}'}}
REFUND = {"id": "c2", "type": "function", "function": {"name": "refund", "arguments": "{}"}}
TURN = {"turns": [{"query": "What does she earn?"}]}
ONE_AND_NO_TURN = pytest.mark.parametrize("turns", [TURN, {}], ids=["in turns", "without turns"])


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def says(content: Any, **fields: Any) -> Row:
    """Return a message of the assistant."""
    return {"role": "assistant", "content": content, **fields}


def checked(*rules: Row, turns: Row, **fields: Any) -> Ended:
    """Check a row with these fields, for a query with these rules."""
    write_jsonl(Path("golden.jsonl"), [golden(rules=list(rules), **turns)])
    write_jsonl(Path("current_run.jsonl"), [run(**fields)])
    return rag_contract("check")


@ONE_AND_NO_TURN
def test_a_response_that_its_messages_do_not_say_is_refused(turns: Row) -> None:
    for messages, response, said in (
        ([USER, says("The salary is 180,000.")], '"I cannot say."', '"The salary is 180,000."'),
        (
            [USER, says("The salary is 180,000.", tool_calls=[LOOK]), says("I cannot say.")],
            '"I cannot say."',
            '"The sal',
        ),
        ([USER, says("I cannot say.")], '"The salary is 180,000."', '"I cannot say."'),
        ([USER, says("The salary is 180,000.")], "null", '"The salary is 180,000."'),
        ([USER, says(None, tool_calls=[LOOK])], '"I cannot say."', "nothing"),
    ):
        value = None if response == "null" else response.strip('"')
        ended = checked(NO_SECRET, turns=turns, messages=messages, response=value)
        assert ended.code == 2, messages
        assert f"has {response} as response, and {said}" in ended.err
        assert ("leave response out" if turns else "export the same in both") in ended.err
        assert "current_run.jsonl:1" in ended.err


@ONE_AND_NO_TURN
def test_a_response_that_its_messages_say_in_other_parts_and_lines_is_the_same(turns: Row) -> None:
    parts = [{"type": "text", "text": "I can"}, {"type": "text", "text": "not say."}]
    for messages, response in (
        ([USER, says("I cannot say.")], "I cannot say.\n"),
        ([USER, says(parts)], "I cannot say."),
        ([USER, says("Let me see.", tool_calls=[LOOK]), says("I cannot say.")], "Let me see. I cannot say."),
        ([says("Hello."), USER, says("I cannot say.")], "Hello.\n\nI cannot say."),
        ([USER, says(None, refusal="I cannot say.")], "I cannot say."),
        ([USER, says(None, tool_calls=[LOOK])], None),
    ):
        assert "as response, and" not in checked(NO_SECRET, turns=turns, messages=messages, response=response).err


def test_of_several_turns_the_response_is_that_of_the_last() -> None:
    messages = [USER, says("One."), USER, says("Two.")]
    two: Row = {"turns": [{"query": "One?"}, {"query": "Two?"}]}
    for turns in (two, {}):
        assert checked(NO_SECRET, turns=turns, messages=messages, response="Two.").code == 0
        assert checked(NO_SECRET, turns=turns, messages=messages, response="One.").code == 2


def test_a_prompt_without_its_answer_contradicts_no_response() -> None:
    prompt = [{"role": "system", "content": "Be brief."}, USER]
    assert checked(NO_SECRET, turns={}, messages=prompt, response="I cannot say.").code == 0
    earlier = [USER, says("Hello."), USER]
    assert checked(NO_SECRET, turns={}, messages=earlier, response="I cannot say.").code == 0


@ONE_AND_NO_TURN
def test_a_metric_on_the_response_refuses_one_that_its_messages_do_not_say(turns: Row) -> None:
    Path("ragcontract.yml").write_text("minimums: {exact_match: 1}\n")
    fields = {"turns": turns, "messages": [USER, says("The salary is 180,000.")]}
    write_jsonl(Path("golden.jsonl"), [golden(reference="I cannot say.", **turns)])
    write_jsonl(Path("current_run.jsonl"), [run(messages=fields["messages"], response="I cannot say.")])
    ended = rag_contract("check")
    assert ended.code == 2
    assert 'has "I cannot say." as response, and "The salary is 180,000." as the answer in messages' in ended.err


@ONE_AND_NO_TURN
def test_a_call_in_messages_that_is_not_among_the_calls_of_the_row_is_refused(turns: Row) -> None:
    done = says("Done.")
    for calls, own in (([LOOK, REFUND], [LOOK]), ([LOOK], [REFUND]), ([LOOK, LOOK], [LOOK])):
        ended = checked(NO_REFUND, turns=turns, messages=[USER, says(None, tool_calls=calls), done], tool_calls=own)
        assert ended.code == 2, own
        assert "has a call of " in ended.err
        assert " in messages, and not in tool_calls; export all calls" in ended.err


@ONE_AND_NO_TURN
def test_calls_that_a_row_has_in_another_form_than_its_messages_are_the_same(turns: Row) -> None:
    messages = [USER, says(None, tool_calls=[LOOK]), says("Done.")]
    for own in ({"name": "look", "args": {"id": 7}}, {"tool": "look", "tool_input": '{ "id": 7.0 }'}):
        assert checked(LOOKED, NO_REFUND, turns=turns, messages=messages, tool_calls=[own], response="Done.").code == 0


def test_turns_refuse_a_call_of_the_row_that_no_message_has_because_no_turn_made_it() -> None:
    fields: Row = {"messages": [USER, says("Done.")], "response": "Done.", "tool_calls": [REFUND]}
    ended = checked(NO_REFUND, turns=TURN, **fields)
    assert ended.code == 2
    assert 'has a call of "refund()" in tool_calls, and not in messages; leave tool_calls out' in ended.err
    assert checked(NO_REFUND, turns={}, **fields).code == 1  # an agent may call a tool inside of another one


def test_what_no_rule_reads_is_not_compared() -> None:
    contradictory: Row = {
        "messages": [USER, says("A salary.", tool_calls=[REFUND])],
        "tool_calls": [],
        "response": "No.",
    }
    assert checked(turns={}, **contradictory).code == 0
    assert checked(LOOKED, turns={}, **contradictory).code == 2
    assert checked(NO_SECRET, turns={}, **contradictory).code == 2


RESULTS: dict[str, list[Row]] = {
    "a result of no call": [{"role": "tool", "tool_call_id": "c1", "content": "Paid back."}],
    "a result of another call": [
        says(None, tool_calls=[LOOK]),
        {"role": "tool", "tool_call_id": "c2", "content": "Paid back."},
    ],
    "two results of one call without an id": [
        says(None, function_call={"name": "look", "arguments": "{}"}),
        {"role": "function", "name": "look", "content": "180,000"},
        {"role": "function", "name": "refund", "content": "Paid back."},
    ],
    "two results of one call with an id": [
        says(None, tool_calls=[LOOK]),
        {"role": "tool", "tool_call_id": "c1", "content": "180,000"},
        {"role": "tool", "tool_call_id": "c1", "content": "Paid back."},
    ],
    "a second result without an id": [
        says(None, tool_calls=[LOOK]),
        {"role": "tool", "tool_call_id": "c1", "content": "180,000"},
        {"role": "tool", "content": "Paid back."},
    ],
    "a result of another tool": [
        says(None, function_call={"name": "look", "arguments": "{}"}),
        {"role": "function", "name": "refund", "content": "Paid back."},
    ],
    "a result of another tool with the id of a call": [
        says(None, tool_calls=[LOOK]),
        {"role": "tool", "tool_call_id": "c1", "name": "refund", "content": "Paid back."},
    ],
    "two results of one of two tools": [
        says(None, tool_calls=[{"name": "look"}, {"name": "find"}]),
        {"role": "tool", "name": "look", "content": "180,000"},
        {"role": "tool", "name": "look", "content": "Paid back."},
    ],
    "a result as a part": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "x"}]}],
    "a result as an item": [{"type": "function_call_output", "call_id": "c1", "output": "Paid back."}],
    "a result before its call": [
        {"role": "tool", "tool_call_id": "c1", "content": "Paid back."},
        says(None, tool_calls=[LOOK]),
    ],
}


@ONE_AND_NO_TURN
@pytest.mark.parametrize("messages", RESULTS.values(), ids=RESULTS.keys())
def test_a_result_of_a_tool_without_its_call_is_refused(messages: list[Row], turns: Row) -> None:
    own: Row = {} if turns else {"tool_calls": []}
    ended = checked(NO_REFUND, turns=turns, messages=[USER, *messages, says("Done.")], **own)
    assert ended.code == 2
    assert "has the result of a tool in messages[" in ended.err
    assert "and not its call; export the call, too" in ended.err


@ONE_AND_NO_TURN
def test_results_that_have_their_calls_are_no_calls(turns: Row) -> None:
    item = {"type": "function_call", "id": "fc", "call_id": "c3", "name": "look", "arguments": "{}"}
    messages = [
        USER,
        says(None, tool_calls=[LOOK]),
        {"role": "tool", "tool_call_id": "c1", "content": "180,000"},
        says(None, tool_calls=[LOOK]),
        {"role": "tool", "tool_call_id": "c1", "name": "functions.Look", "content": "180,000 again"},
        item,
        {"type": "function_call_output", "call_id": "c3", "output": "180,000"},
        says(None, function_call={"name": "look", "arguments": "{}"}),
        {"role": "function", "name": "look", "content": "180,000"},
        says("Done."),
    ]
    own: Row = {} if turns else {"tool_calls": [LOOK, LOOK, item, {"name": "look"}]}
    assert checked(NO_REFUND, turns=turns, messages=messages, **own).code == 0


def test_the_call_of_a_result_may_stand_in_the_row_where_its_messages_are_not_judged() -> None:
    messages = [USER, {"role": "tool", "tool_call_id": "c1", "content": "180,000"}, says("Done.")]
    assert checked(NO_REFUND, LOOKED, turns={}, messages=messages, tool_calls=[LOOK]).code == 0
    assert checked(NO_SECRET, turns=TURN, messages=messages).code == 0  # no rule reads calls


SILENT = {"turns": [{"query": "What does she earn?"}, {"query": "And he?"}]}
TALK = [USER, says("I look."), USER, says("Hm.")]
NO_REFUSAL = {"type": "must_not_refuse"}


@pytest.mark.parametrize(
    ("rule", "field", "found"),
    [
        (NO_SECRET, {"refusal": "A salary of 180,000."}, "salary"),
        (NO_REFUSAL, {"refusal": "No."}, 'the refusal "No."'),
        (NO_REFUSAL, {"mode": "abstain"}, "mode abstain"),
        (NO_REFUSAL, {"finish_reason": "content_filter"}, "finish_reason content_filter"),
    ],
)
def test_what_a_row_says_of_its_refusal_is_that_of_the_last_turn(rule: Row, field: Row, found: str) -> None:
    ended = checked(rule, turns=SILENT, messages=TALK, **field)
    assert ended.code == 1
    assert "Expected in turn 2" in ended.out
    assert "Expected in turn 1" not in ended.out
    assert found in ended.out


def test_a_refusal_beside_messages_hides_none_that_is_in_them() -> None:
    messages = [*TALK[:3], says(None, refusal="A salary of 180,000.")]
    ended = checked(NO_SECRET, turns=SILENT, messages=messages, refusal="No.")
    assert ended.code == 1
    assert "salary" in ended.out


def test_an_answer_that_was_cut_off_warns_in_the_last_turn() -> None:
    ended = checked(NO_SECRET, turns=SILENT, messages=TALK, finish_reason="length")
    assert ended.code == 0
    assert "1 to warn" in ended.out


@pytest.mark.parametrize("field", [{"mode": "abstain"}, {"finish_reason": "content_filter"}])
def test_a_message_may_say_how_it_came_about(field: Row) -> None:
    ended = checked(NO_REFUSAL, turns=SILENT, messages=[USER, says("Hm.", **field), USER, says("Yes.")])
    assert ended.code == 1
    assert "Expected in turn 1" in ended.out
    assert "Expected in turn 2" not in ended.out


def test_a_row_and_its_last_message_say_the_same_of_how_the_answer_came_about() -> None:
    messages = [*TALK[:3], says("Hm.", finish_reason="content_filter")]
    assert checked(NO_REFUSAL, turns=SILENT, messages=messages, finish_reason="content_filter").code == 1
    ended = checked(NO_REFUSAL, turns=SILENT, messages=messages, finish_reason="stop")
    assert ended.code == 2
    assert 'has "stop" as finish_reason, and "content_filter" in messages; export the same in both' in ended.err


@pytest.mark.parametrize(
    "stated",
    [
        {"stop_reason": "refusal"},
        {"response_metadata": {"finish_reason": "content_filter"}},
        {"response_metadata": {"stopReason": "guardrail_intervened"}},
        {"finish_reason": "stop", "stop_reason": "refusal"},
    ],
)
def test_why_a_model_stopped_is_read_in_the_forms_of_all_services(stated: Row) -> None:
    silent = says("Hm.", finish_reason="stop", response_metadata={"stop_reason": "end_turn"})
    for turns, messages in (
        (SILENT, [USER, says("Hm.", **stated), USER, silent]),
        (SILENT, [USER, silent, USER, says("Hm.", **stated)]),
        ({}, [USER, says("Hm.", **stated)]),
    ):
        own = {} if turns else {"response": "Hm."}
        ended = checked(NO_REFUSAL, turns=turns, messages=messages, **own)
        assert ended.code == 1
        assert "finish_reason" in ended.out
    assert checked(NO_REFUSAL, turns=SILENT, messages=[USER, silent, USER, silent], finish_reason="stop").code == 0


@pytest.mark.parametrize("stated", [{"stop_reason": "max_tokens"}, {"response_metadata": {"finish_reason": "length"}}])
def test_an_answer_that_was_cut_off_warns_in_the_forms_of_all_services(stated: Row) -> None:
    ended = checked(NO_SECRET, turns=SILENT, messages=[USER, says("Hm.", **stated), USER, says("Yes.")])
    assert ended.code == 0
    assert "1 to warn" in ended.out


@ONE_AND_NO_TURN
@pytest.mark.parametrize("error", ["boom", {"code": 500, "message": "boom"}])
def test_a_message_with_an_error_is_no_answer(error: object, turns: Row) -> None:
    own: Row = {} if turns else {"response": "Hm."}
    ended = checked(NO_SECRET, turns=turns, messages=[USER, says("Hm.", error=error)], **own)
    assert ended.code == 1
    assert "the error " in ended.out
    assert "boom" in ended.out
    assert checked(NO_SECRET, turns=turns, messages=[USER, says("Hm.", error=None)], **own).code == 0


@ONE_AND_NO_TURN
@pytest.mark.parametrize("field", ["mode", "finish_reason"])
def test_what_a_message_says_of_how_it_came_about_is_text(field: str, turns: Row) -> None:
    own: Row = {} if turns else {"response": "Hm."}
    ended = checked(NO_REFUSAL, turns=turns, messages=[USER, says("Hm.", **{field: {"kind": "safety"}})], **own)
    assert ended.code == 2
    assert f'has {{"kind": "safety"}} as the {field} of messages[1]; expected text or null' in ended.err.replace(
        '{"kind":"safety"}', '{"kind": "safety"}'
    )


NOT_READ = "warning: current_run.jsonl:1: unknown field '{}' is not read; "


@pytest.mark.parametrize("name", ["stop_reason", "stopReason", "finishReason", "done_reason"])
def test_why_a_model_stopped_under_another_name_in_a_row_is_a_warning(name: str) -> None:
    ended = checked(NO_REFUND, turns={}, response="Let me look.", tool_calls=[], **{name: "tool_use"})
    assert NOT_READ.format(name) + "did you mean 'finish_reason'?" in ended.err


TWICE: dict[str, tuple[Row, Row]] = {
    **{
        name: ({"response": "ok"}, {name: "A salary."})
        for name in (
            *("answer", "output", "text", "content", "completion", "final_answer", "finalAnswer", "Answer", "reply"),
            *("actual_output", "generated_answer", "generated_text", "generation"),
        )
    },
    "an answer in parts": ({"response": "ok"}, {"content": [{"type": "text", "text": "A salary."}]}),
    "an answer beside null": ({"response": None}, {"answer": "A salary."}),
    "documents": ({"results": [{"doc_id": "a"}]}, {"documents": [{"id": "a"}, {"id": "secret"}]}),
    "retrieved_doc_ids": ({"results": []}, {"retrieved_doc_ids": ["secret"]}),
    "function_call": ({"tool_calls": []}, {"function_call": {"name": "refund", "arguments": "{}"}}),
    "calls": ({"tool_calls": []}, {"calls": [REFUND]}),
    "actions": ({"tool_calls": [LOOK]}, {"actions": [LOOK, REFUND]}),
    "other arguments": ({"tool_calls": [LOOK]}, {"function_call": {"name": "look", "arguments": {"id": 8}}}),
    "finish_reason": ({"finish_reason": "stop"}, {"stop_reason": "tool_use"}),
}


@pytest.mark.parametrize(("own", "other"), TWICE.values(), ids=TWICE.keys())
def test_what_a_row_has_otherwise_under_another_name_is_a_warning(own: Row, other: Row) -> None:
    fields = {"response": "ok", "tool_calls": [], **own, **other}
    ended = checked(NO_SECRET, NO_REFUND, turns={}, **fields)
    (name,), (meant,) = other, own
    assert f"{NOT_READ.format(name)}it differs from '{meant}'; export only one of them, as '{meant}'" in ended.err


SAME: dict[str, tuple[Row, Row]] = {
    "an answer": ({"response": "It is ok."}, {"answer": "It is  ok.\n"}),
    "an answer in parts": ({"response": "It is ok."}, {"content": [{"type": "text", "text": "It is ok."}]}),
    "nothing": ({"tool_calls": [LOOK]}, {"function_call": None}),
    "a number of tokens": ({"response": "ok"}, {"completion": 34}),
    "documents": (
        {"results": [{"doc_id": "a", "score": 1}, {"doc_id": "b"}]},
        {"documents": [{"id": "b", "text": "B"}]},
    ),
    "calls": ({"tool_calls": [LOOK]}, {"function_call": {"name": "look", "arguments": '{"id":7}'}}),
    "contexts": ({"retrieved_contexts": ["A text.", "Another."]}, {"context": "A text.\n\nAnother."}),
}


@pytest.mark.parametrize(("own", "other"), SAME.values(), ids=SAME.keys())
def test_what_a_row_has_twice_is_no_warning(own: Row, other: Row) -> None:
    fields = {"response": "ok", "tool_calls": [], **own, **other}
    assert checked(NO_SECRET, NO_REFUND, turns={}, **fields).err == ""


def test_an_answer_beside_the_response_that_is_the_reference_is_no_warning() -> None:
    write_jsonl(Path("golden.jsonl"), [golden(reference="In five days.", rules=[NO_SECRET])])
    for answer, is_silent in (("In five days.", True), ("In six days.", False)):
        write_jsonl(Path("current_run.jsonl"), [run(response="Five days.", answer=answer)])
        assert ("'answer' is not read" not in rag_contract("check").err) == is_silent


def test_a_second_answer_that_no_rule_reads_is_no_warning() -> None:
    ended = checked(LOOKED, turns={}, tool_calls=[LOOK], response="ok", stop_reason="end_turn")
    assert "'stop_reason'" in ended.err
    write_jsonl(Path("golden.jsonl"), [golden(relevant_doc_ids=["doc1"])])
    write_jsonl(Path("current_run.jsonl"), [run("q1", "doc1", response="ok", answer="A salary.", stop_reason="stop")])
    assert rag_contract("check").err == ""
