"""What a target returns beside a completion or a message is recorded with it, or the recording ends."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders import write_jsonl
from tests.process import Ended, rag_contract

RULES = [
    {"type": "must_not_call_tool", "tool": "refund"},
    {"type": "must_not_contain", "value": "secret"},
]
REFUND = {"name": "refund", "arguments": {"id": 7}}
MESSAGE = {"role": "assistant", "content": "Done."}
CHOICE = {"index": 0, "message": MESSAGE, "finish_reason": "stop", "logprobs": None}
COMPLETION = {
    "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-4.1", "choices": [CHOICE],
    "usage": {"prompt_tokens": 5}, "service_tier": "default", "system_fingerprint": "fp_1", "metadata": {},
    "citations": ["https://a.example"], "response_ms": 12.5, "provider": "A", "prompt_filter_results": [],
}  # fmt: skip
CALLED = [{"role": "user", "content": "x?"}, {**MESSAGE, "tool_calls": [REFUND]}]
OTHER_CALLS = "two lists of tool calls that differ"
OTHER_RESULTS = "two lists of results that differ"
TWO_ANSWERS = "two answers that differ"
RIGHT = {"answer": "Done.", "tool_calls": [], "results": ["a", "b"]}

Returned = dict[str, Any]


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_jsonl(Path("golden.jsonl"), [{"id": "q1", "query": "x?", "rules": RULES, "forbidden_doc_ids": ["z"]}])


def recorded(returned: Returned) -> Ended:
    """Record a function that returns this and its results."""
    Path("app.py").write_text(f"def ask(query):\n    return {returned!r}\n")
    return rag_contract("record", "app.py:ask")


def code_of(returned: Returned) -> int:
    """Return the exit code of the recording; of the check, if there is a run."""
    return recorded(returned).code or rag_contract("check").code


@pytest.mark.parametrize(
    "returned",
    [
        {**COMPLETION, "tool_calls": [REFUND]},
        {**COMPLETION, "function_calls": [REFUND]},
        {**COMPLETION, "messages": CALLED},
        {**COMPLETION, "choices": [{**CHOICE, "tool_calls": [REFUND]}]},
        {**COMPLETION, "choices": [{**CHOICE, "message": {**MESSAGE, "messages": CALLED}}]},
        {**MESSAGE, "messages": CALLED},
        {"answer": {**MESSAGE, "messages": CALLED}},
        {"answer": {"content": "Done.", "tool_calls": [REFUND]}},
        {"answer": {"content": [{"text": "Done."}], "tool_calls": [REFUND]}},
        {**COMPLETION, "documents": ["z"]},
        {**MESSAGE, "documents": ["z"]},
        {"answer": "Done.", "tool_calls": [], "contexts": [{"doc_id": "z", "text": "t"}]},
    ],
)
def test_a_call_or_a_result_beside_a_message_is_recorded(returned: Returned) -> None:
    nothing: Returned = {} if "contexts" in returned else {"documents": []}
    assert recorded({**nothing, **returned}).code == 0
    ended = rag_contract("check")
    assert ended.code == 1
    assert "Expected no" in ended.out


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ({**COMPLETION, "answer": "the secret"}, f"{TWO_ANSWERS}, as 'choices' and 'answer'"),
        ({**COMPLETION, "choices": [{**CHOICE, "output": "the secret"}]}, "as 'choices' and 'choices[0].output'"),
        ({**COMPLETION, "toolCalls": [REFUND]}, "an unknown field 'toolCalls'; did you mean 'tool_calls'?"),
        ({**COMPLETION, "anwser": "the secret"}, f"{TWO_ANSWERS}, as 'choices' and 'anwser'"),
        ({**COMPLETION, "error": "boom"}, "boom"),
        ({**COMPLETION, "choices": [{**CHOICE, "error": {"code": 502}}]}, "502"),
        (
            {**COMPLETION, "choices": [{"message": {**MESSAGE, "tool_calls": [REFUND]}}], "tool_calls": []},
            "a message, and other calls beside it",
        ),
    ],
)
def test_what_contradicts_a_completion_ends_the_recording(returned: Returned, said: str) -> None:
    ended = recorded(returned)
    assert ended.code == 2
    assert said in ended.err
    assert not Path("current_run.jsonl").exists()


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ({"function_calls": [REFUND]}, f"{OTHER_CALLS}, as 'tool_calls' and 'function_calls'"),
        ({"tool_uses": [REFUND]}, OTHER_CALLS),
        ({"toolCalls": [REFUND]}, OTHER_CALLS),
        ({"tool_call": REFUND}, OTHER_CALLS),
        ({"retrieved_doc_ids": ["z"]}, f"{OTHER_RESULTS}, as 'results' and 'retrieved_doc_ids'"),
        ({"retrieved_documents": [{"doc_id": "z"}]}, OTHER_RESULTS),
        ({"reslts": ["z"]}, OTHER_RESULTS),
        ({"contexts": [{"doc_id": "z", "text": "t"}]}, f"{OTHER_RESULTS}, as 'results' and 'contexts'"),
        ({"contexts": [{"doc_id": "a", "text": "s"}, {"doc_id": "z", "text": "t"}]}, OTHER_RESULTS),
        ({"Answer": "the secret"}, TWO_ANSWERS),
        ({"answer": {"content": "Done.", "tool_calls": [REFUND]}}, "a message, and other calls beside it"),
    ],
)
def test_another_name_beside_the_right_one_must_have_the_same(returned: Returned, said: str) -> None:
    ended = recorded({**RIGHT, **returned})
    assert ended.code == 2
    assert said in ended.err
    assert not Path("current_run.jsonl").exists()


@pytest.mark.parametrize(
    "returned",
    [
        {"function_calls": [], "toolCalls": [], "retrieved_doc_ids": ["a", "b"], "Answer": "Done."},
        {"answers": ["Done.", "A secret"], "tool_call_id": "1", "n_results": 2},
        {"answer": {"content": "Done."}},
        {"answer": {"content": [{"text": "Done."}]}},
    ],
)
def test_the_same_and_other_things_beside_the_right_one_are_fine(returned: Returned) -> None:
    assert code_of({**RIGHT, **returned}) == 0


def test_contexts_may_be_fewer_than_the_results_and_keep_their_texts() -> None:
    assert code_of({**RIGHT, "contexts": [{"doc_id": "a", "text": "A text."}]}) == 0
    assert json.loads(Path("current_run.jsonl").read_text())["retrieved_contexts"] == ["A text."]


def test_the_metadata_of_a_completion_is_not_taken_for_an_answer() -> None:
    assert recorded({**COMPLETION, "results": []}).code == 0
    row = json.loads(Path("current_run.jsonl").read_text())
    said = {"response": "Done.", "tool_calls": [], "finish_reason": "stop", "llm_model": "gpt-4.1"}
    assert {name: row[name] for name in said} == said
    assert rag_contract("check").code == 0


@pytest.mark.parametrize("reason", [{"stop_reason": "tool_use"}, {"finish_reason": "requires_action"}])
def test_a_choice_that_stopped_for_calls_without_one_has_lost_them(reason: Returned) -> None:
    assert recorded({**COMPLETION, "results": [], "choices": [{"message": MESSAGE, **reason}]}).code == 0
    ended = rag_contract("check")
    assert ended.code == 2
    assert "has no tool_calls, which must_not_call_tool needs" in ended.err


def test_no_calls_beside_a_required_action_are_lost_calls() -> None:
    assert recorded({**RIGHT, "finish_reason": "requires_action"}).code == 0
    ended = rag_contract("check")
    assert ended.code == 2
    assert "has [] as tool_calls, and 'requires_action' as finish_reason" in ended.err


def test_what_a_command_writes_beside_a_completion_is_recorded() -> None:
    Path("completion.json").write_text(json.dumps({**COMPLETION, "results": [], "tool_calls": [REFUND]}))
    Path("record.yml").write_text("command: {each: [cat, completion.json]}\n")
    assert rag_contract("record", "record.yml").code == 0
    assert rag_contract("check").code == 1
