"""Objects of frameworks by their classes' names, attributes of them, and templates."""

from types import SimpleNamespace
from typing import Any

import pytest

from ragcontract.record.recognised import bases, filled, named, text_at
from tests.record.adapters.stand_ins import Retriever


def test_an_object_is_what_its_classes_are_by_package_and_name() -> None:
    assert {"langchain_core.BaseRetriever", "langchain_core.Runnable", "builtins.object"} <= bases(Retriever())
    assert "langchain_core.Runnable" not in bases({})
    assert named({}) == "builtins.dict"


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (SimpleNamespace(inner=SimpleNamespace(name="bge-m3")), "bge-m3"),
        (SimpleNamespace(inner=SimpleNamespace(name="unknown"), name="other"), "other"),
        (SimpleNamespace(inner=SimpleNamespace(name=""), name=7), None),
        (SimpleNamespace(), None),
    ],
)
def test_the_first_attribute_that_is_a_text_counts(given: object, found: str | None) -> None:
    assert text_at(given, "inner.name", "name") == found


@pytest.mark.parametrize(
    ("template", "becomes"),
    [
        ("{query}", "a {top} b"),
        ("{top}", 5),
        ("q: {query}, {top}!", "q: a {top} b, 5!"),
        ({"input": "{query}", "more": [{"k": "{top}"}, 7, None]}, {"input": "a {top} b", "more": [{"k": 5}, 7, None]}),
        ("{unknown} {", "{unknown} {"),
        ("{{query}}", "{a {top} b}"),
    ],
)
def test_placeholders_are_filled_once(template: Any, becomes: Any) -> None:
    assert filled(template, {"query": "a {top} b", "top": 5}) == becomes
