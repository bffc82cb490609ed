"""The document of a result is where its users put it."""

from typing import Any

import pytest

from ragcontract.core.errors import InputError
from ragcontract.record.interface import CallFailed
from ragcontract.record.returned.result_forms import DocumentIds


@pytest.mark.parametrize(
    ("expression", "own", "metadata", "expected"),
    [
        (None, "chunk", {"source": "a.md", "doc_id": "a"}, "a"),
        (None, "chunk", {"source": "", "path": None, "file": "a.md"}, "a.md"),
        (None, "chunk", {"page": 1}, "chunk"),
        (None, None, {"source": 7}, "7"),
        (None, "chunk", {"url": "u", "filename": "b.md", "file_name": "a.md"}, "a.md"),
        (None, "chunk", {"url": "u", "filename": "b.md"}, "b.md"),
        (None, "chunk", {"url": "u"}, "u"),
        (None, "chunk", {"url": "u", "file": "a.md"}, "a.md"),
        (None, "chunk", {"url": {"href": "u"}, "source": ["a.md"]}, "chunk"),
        ("metadata.url", "chunk", {"url": "u", "source": "s"}, "u"),
        ("metadata.url || id", "chunk", {}, "chunk"),
        ("id", "chunk", {"source": "a.md"}, "chunk"),
    ],
)
def test_it_is_found(expression: str | None, own: str | None, metadata: dict[str, Any], expected: str) -> None:
    assert DocumentIds(expression).of(own=own, metadata=metadata, text="A") == expected


@pytest.mark.parametrize(
    ("expression", "metadata", "said"),
    [
        (
            None,
            {"page": 1},
            "under metadata.doc_id, metadata.source_uri, .* id .its metadata has: page.; say where",
        ),
        ("metadata.url", {}, "under metadata.url .its metadata has: none."),
        ("metadata.flag", {"flag": True}, "names no document"),
        ("metadata", {"a": 1}, "names no document"),
    ],
)
def test_without_one_the_attempt_fails(expression: str | None, metadata: dict[str, Any], said: str) -> None:
    with pytest.raises(CallFailed, match=said) as failed:
        DocumentIds(expression).of(own=None, metadata=metadata)
    assert (failed.value.kind, failed.value.again) == ("no_doc_id", False)


def test_an_expression_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match=r"doc_id: is not a JMESPath expression: 'metadata\.'"):
        DocumentIds("metadata.")
