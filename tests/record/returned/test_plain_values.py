"""Whatever a system returns becomes values of JSON."""

from collections import UserDict
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, NamedTuple
from uuid import UUID

import pytest
from msgspec import Struct

from ragcontract.record.returned.returned_messages import fields_of, part, plain


@dataclass
class Data:
    doc_id: str


class Record(Struct):
    doc_id: str


class Pair(NamedTuple):
    doc_id: str


class Model:
    """As a pydantic model."""

    model_fields: ClassVar = {"doc_id": None}

    def __init__(self) -> None:
        self.doc_id = "a"


class Attribute:
    name = "doc_id"


class Attrs:
    __attrs_attrs__ = (Attribute,)
    doc_id = "a"


class Scalar:
    """As one of numpy that is in no hierarchy of numbers."""

    size = 1

    def item(self) -> bool:
        return True


class Vector:
    size = 2

    def __len__(self) -> int:
        return 2

    def __iter__(self) -> Any:
        return iter([1, 2])

    def item(self) -> None:
        raise ValueError("it has two")


class Opaque:
    def __str__(self) -> str:
        return "a client"


RECORDS = [Data("a"), Record("a"), Pair("a"), Model(), Attrs(), {"doc_id": "a"}, UserDict({"doc_id": "a"})]


@pytest.mark.parametrize("value", RECORDS, ids=lambda one: type(one).__name__)
def test_a_record_has_fields(value: object) -> None:
    assert fields_of(value) == {"doc_id": "a"}
    assert part(value, "doc_id") == "a"
    assert part(value, "score") is None


@pytest.mark.parametrize("value", ["doc_id", b"doc_id", 7, None, ["doc_id"], Data, Opaque()], ids=str)
def test_other_values_have_none(value: object) -> None:
    assert fields_of(value) is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": [1, 2.5, "x", True, None]}, {"a": [1, 2.5, "x", True, None]}),
        ({1: "a", "b": (1, {2})}, {"1": "a", "b": [1, [2]]}),
        (
            [Data("a"), Record("b"), Model(), UserDict(x=1)],
            [{"doc_id": "a"}, {"doc_id": "b"}, {"doc_id": "a"}, {"x": 1}],
        ),
        (datetime(2026, 11, 22, tzinfo=UTC), "2026-11-22T00:00:00Z"),
        (UUID(int=7), "00000000-0000-0000-0000-000000000007"),
        (Decimal("0.5"), "0.5"),
        (Fraction(1, 2), 0.5),
        ([Scalar(), Vector()], [True, [1, 2]]),
        ({"client": Opaque(), "path": Path("a/b")}, {"client": "a client", "path": "a/b"}),
    ],
)
def test_what_json_has_is_left(value: object, expected: object) -> None:
    assert plain(value) == expected


def test_what_is_nested_without_end_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(ValueError, match="nested without end"):
        plain(value)
