"""Problems of runs whose texts must not be shown: where and what, without the value."""

import pytest

from ragcontract.files.problems import Problems, without_values

WITHOUT = {
    'run.jsonl:3: response: expected text, found ["secret"]; so': "run.jsonl:3: response: expected text, found ",
    "run.jsonl:3: is not JSON: expected `:` at column 9, before 'secret'": (
        "run.jsonl:3: is not JSON: expected `:` at column 9, before "
    ),
    "run.jsonl:3: goes on after the end of its JSON object: 'secret' at column 9": (
        "run.jsonl:3: goes on after the end of its JSON object: "
    ),
    'run.jsonl:3: query "q1" has the mode "secret", expected abstain': 'run.jsonl:3: query "q1" has the mode ',
    'run.jsonl:3: query "q\\"1" has {"a": "secret"} as the content': 'run.jsonl:3: query "q\\"1" has ',
    'run.jsonl:3: query "long…" has "secret" as the role': 'run.jsonl:3: query "long…" has ',
    'run.jsonl:3: query "cut… has the mode "secret, found it"': 'run.jsonl:3: query "cut… has the mode ',
    'run.jsonl:3: query "q1" has no type in messages[2].content[0], whose type is "secret"': (
        'run.jsonl:3: query "q1" has no type in messages[2].content[0], whose type is '
    ),
    'run.jsonl:3: query "q1" has ["secret"] as the role of messages[2]; expected "user"': (
        'run.jsonl:3: query "q1" has '
    ),
    "run.jsonl:3: duplicate key 'secret' in one object; leave one of the two values": "run.jsonl:3: duplicate key ",
    "run.jsonl:3: query \"q1\" cannot be judged by the plugin 'P', which failed: ValueError: secret": (
        "run.jsonl:3: query \"q1\" cannot be judged by the plugin 'P', which failed: "
    ),
}
AS_THEY_ARE = (
    'run.jsonl:3: query "q1" has no name in tool_calls[1]; write {"name": …, "arguments": {…}}, or export it',
    'run.jsonl:3: query "q1" has no check \'a\' in checks; export it as true, false or {"passed": …, "reason": …}',
    'run.jsonl:3: query "q1" has no type in messages[0].content[1]; expected {"type": "text", "text": …}',
    'run.jsonl:3: query "q1" has no text in results[3], which context_recall_text needs; export it',
    'run.jsonl:3: query "q1" has no response, which must_contain needs; export it',
    "run.jsonl:3: query \"q1\" has no score 'toxicity'",
    "run.jsonl:3: query_id: duplicate id 'q1', first defined at run.jsonl:1",
    "run.jsonl:3: is cut off in the middle; was the export stopped before it had finished?",
)


@pytest.mark.parametrize(("message", "start"), WITHOUT.items())
def test_a_value_and_all_behind_it_is_left_out(message: str, start: str) -> None:
    found = without_values(Problems(problems=(message,), warnings=(message,), more=3))
    assert found == Problems(problems=(f"{start}(not shown)",), warnings=(f"{start}(not shown)",), more=3)


@pytest.mark.parametrize("message", AS_THEY_ARE)
def test_what_quotes_no_value_stays(message: str) -> None:
    assert without_values(Problems(problems=(message,))).problems == (message,)
