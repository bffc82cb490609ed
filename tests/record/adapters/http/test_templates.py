"""What placeholders of a target file stand for, and that nothing that is filled in is read as a template."""

from typing import Any

import pytest

from ragcontract.net.secrets import NO_SECRETS, Secrets
from ragcontract.record.adapters.templates import Template, values_of
from ragcontract.record.interface import CallFailed, Context

EARLIER = ({"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"})
CONTEXT = Context(query_id="q1", top=7, messages=EARLIER, metadata={"lang": "de", "n": 2}, attempt=2, repeat=3)
SECRETS = Secrets({"KEY": "sk-{query}-0123456789"})


def filled(value: Any, query: str = "why?") -> Any:
    template = Template(value, SECRETS, at="http.json")
    assert not template.problems
    return template.filled(values_of(query, CONTEXT))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("{query}", "why?"),
        ("{top}", 7),
        ("{top} of {query_id}", "7 of q1"),
        ("{query_id}-{repeat}-{attempt}", "q1-3-2"),
        ("{history}", list(EARLIER)),
        ("{messages}", [*EARLIER, {"role": "user", "content": "why?"}]),
        ("in {metadata.lang}", "in de"),
        ("{metadata.n}", 2),
        ("{{query}}", "{query}"),
        ("query($a: Int) { hits { id } }", "query($a: Int) { hits { id } }"),
        ('{"a": {"b": {}}}', '{"a": {"b": {}}}'),
        ("", ""),
        (7, 7),
        (None, None),
        ({"a": ["{top}", {"{query}": "{query}"}]}, {"a": [7, {"{query}": "why?"}]}),
        ("Bearer ${secret:KEY}", "Bearer sk-{query}-0123456789"),
    ],
)
def test_texts_are_filled_and_one_placeholder_alone_keeps_its_type(value: Any, expected: Any) -> None:
    assert filled(value) == expected


def test_a_question_is_not_read_as_a_template() -> None:
    hostile = "{top} ${secret:KEY} {{query}} {nonsense}"
    assert filled(["{query}", "ask: {query}"], hostile) == [hostile, f"ask: {hostile}"]


def test_metadata_that_a_golden_row_lacks_fails_its_attempt() -> None:
    with pytest.raises(CallFailed, match=r"has no metadata\.tenant") as raised:
        filled("{metadata.tenant}")
    assert (raised.value.kind, raised.value.again) == ("no_metadata", False)


def test_everything_that_is_wrong_is_said_with_its_place() -> None:
    value = {"a": "{qeury}", "b": ["${secret:OTHER}", "${secret:}", "${KEY}"]}
    first, *others = Template(value, NO_SECRETS, at="http.json").problems
    assert first.startswith("http.json.a: {qeury} is not a placeholder, which are {query}, {top}, ")
    assert first.endswith("{metadata.NAME}; write {{qeury}} for these characters")
    assert others[0] == "http.json.b[0]: ${secret:OTHER} is not given on the command line; add --secret OTHER"
    assert others[1] == "http.json.b[1]: a secret is written ${secret:NAME}, with letters, digits and _ in its name"
    assert others[2].startswith("http.json.b[2]: {KEY} is not a placeholder")
