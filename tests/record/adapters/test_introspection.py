"""Objects of frameworks by their classes' names, and attributes of them."""

from types import SimpleNamespace

import pytest

from ragcontract.record.adapters.framework import bases, named, text_at
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
