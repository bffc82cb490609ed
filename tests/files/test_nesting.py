"""How deeply JSON may be nested: the same for every decoder and every version of Python."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcontract.core import bounds
from ragcontract.files.json_text import NestingError, check_nesting


def nested(levels: int, inside: bytes = b"") -> bytes:
    return b"[" * levels + inside + b"]" * levels


def is_too_deep(data: bytes) -> bool:
    try:
        check_nesting(data)
    except NestingError:
        return True
    return False


@pytest.mark.parametrize(
    "document",
    [
        nested,
        lambda levels: b'{"a": ' * levels + b"1" + b"}" * levels,
        lambda levels: b"[{}, " * (levels - 1) + b"[2]" + b"]" * (levels - 1),
        lambda levels: b'["]", ' * levels + b'"["' + b', "["]' * levels,
        lambda levels: b'["\\"]", ' * levels + b"2" + b', "\\\\", "["]' * levels,
        lambda levels: b'["\\\\", ' * levels + b'"\\\\\\"]"' + b"]" * levels,
        lambda levels: b"[\n" * levels + b"\t\r\n]" * levels,
    ],
)
def test_the_limit_itself_is_read_and_one_level_more_is_not(document: Any) -> None:
    json.loads(document(bounds.NESTING))  # so that the examples are JSON
    assert not is_too_deep(document(bounds.NESTING))
    assert is_too_deep(document(bounds.NESTING + 1))


@pytest.mark.parametrize("text", ["[" * 1000, "[{" * 1000, "]" * 1000, '"[' * 300, '\\"[[' * 200, "\\" * 9])
def test_brackets_in_text_do_not_count(text: str) -> None:
    assert not is_too_deep(json.dumps({text: [text, "", text] * 100}).encode())


def test_many_lists_beside_each_other_are_not_deep() -> None:
    assert not is_too_deep(json.dumps([[{"a": []}]] * 1000).encode())


@pytest.mark.parametrize("data", [b"", b"]" * 1000, b"[}" * 1000, b'"' * 1001, b"[" * 100, b"\xff" * 200])
def test_what_is_no_json_is_left_to_the_decoder(data: bytes) -> None:
    assert not is_too_deep(data)


def test_what_is_cut_off_is_as_deep_as_what_is_there() -> None:
    assert is_too_deep(b"[" * (bounds.NESTING + 1))


def depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth, inner), default=0)


texts = st.text(st.sampled_from('[]{}"\\,: a'), max_size=6)
values = st.recursive(texts, lambda one: st.lists(one, max_size=3) | st.dictionaries(texts, one, max_size=3))


@given(values)
def test_any_document_is_as_deep_as_its_value(value: Any) -> None:
    inside = json.dumps(value).encode()
    assert not is_too_deep(nested(bounds.NESTING - depth(value), inside))
    assert is_too_deep(nested(bounds.NESTING - depth(value) + 1, inside))
