from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta, Struct

from ragcontract.core import bounds
from ragcontract.core.phrase import dotted
from ragcontract.files.schema import Mismatch, describe, json_schema, mismatches, shown
from tests.work import work


class Inner(Struct, frozen=True, kw_only=True):
    name: str


class Record(Struct, frozen=True, kw_only=True):
    id: str
    count: int = 0
    inner: list[Inner] = []
    either: Annotated[float, Meta(ge=0, le=1)] | Literal["all"] | None = None


class Strict(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    inner: Inner | None = None
    other_name: int = 0


def test_a_value_that_fits_has_no_mismatches() -> None:
    assert mismatches({"id": "x", "count": 1, "inner": [{"name": "n"}], "either": "all", "more": 1}, Record) == []


def test_mismatches_are_reported_outermost_first_and_in_the_order_of_lists() -> None:
    value = {"count": True, "inner": [{"name": "n"}, {"name": "n"}, {"name": 2}, *[{"name": "n"}] * 7, {"name": 1}, {}]}
    assert mismatches(value, Record) == [
        Mismatch(("count",), "expected a whole number, found true"),
        Mismatch(("id",), "is missing"),
        Mismatch(("inner", 2, "name"), 'expected text, found 2; write "2"'),
        Mismatch(("inner", 10, "name"), 'expected text, found 1; write "1"'),
        Mismatch(("inner", 11, "name"), "is missing"),
    ]


def test_a_whole_number_with_a_point_is_none() -> None:
    assert mismatches({"id": "x", "count": 3.0}, Record) == [Mismatch(("count",), "expected a whole number, found 3.0")]


def test_of_several_missing_fields_each_is_reported_once() -> None:
    class Three(Struct):
        a: int
        b: int
        c: int

    assert [mismatch.path for mismatch in mismatches({}, Three)] == [("a",), ("b",), ("c",)]


def test_a_choice_is_named_in_full() -> None:
    assert mismatches({"id": "x", "either": 2}, Record) == [
        Mismatch(("either",), 'expected a number from 0 to 1 or "all", found 2')
    ]


def test_an_object_for_which_one_field_would_do_is_written_out() -> None:
    assert mismatches({"id": "x", "inner": ["n"]}, Record) == [
        Mismatch(("inner", 0), 'expected an object, found "n"; write {"name": "n"}')
    ]


def test_unknown_keys_are_reported_with_what_was_meant_or_what_there_is() -> None:
    value = {"othername": 1, "Name": 2, "zzz": 3}
    assert {mismatch.path[0]: mismatch.message for mismatch in mismatches(value, Strict)} == {
        "othername": "unknown key; did you mean 'other_name'?",
        "Name": "unknown key; did you mean 'name' under 'inner'?",
        "zzz": "unknown key; known here: inner, other_name",
    }


def test_paths_are_dotted_as_people_write_them() -> None:
    assert dotted(("results", 3, "doc_id")) == "results[3].doc_id"
    assert dotted((0, "a")) == "[0].a"
    assert dotted(()) == ""


SHOWN: list[tuple[Any, str]] = [
    (None, "null"),
    (True, "true"),
    ("it's", '"it\'s"'),
    ('a "b"', '"a \\"b\\""'),
    ("é", '"é"'),
    ("x" * 100, '"' + "x" * 59 + '…"'),
    ([None, True, "it's", 4], '[null, true, "it\'s", …]'),
    ({"a": {"b": {"c": 1}}}, '{"a": {"b": {…}}}'),
    ([[[[]]]], "[[[…]]]"),
    ({}, "{}"),
    ([], "[]"),
    (["x" * 50, "y" * 50], '["' + "x" * 50 + '", "' + "y" * 23 + "…"),
]


@pytest.mark.parametrize(("value", "text"), SHOWN, ids=[text[:20] for _, text in SHOWN])
def test_values_are_shown_as_short_json(value: Any, text: str) -> None:
    assert shown(value) == text


def test_what_a_schema_expects_is_described_in_plain_english() -> None:
    assert describe({"type": "string", "minLength": 1}, {}) == "text that is not empty"
    assert describe({"type": "number", "minimum": 0}, {}) == "a number of at least 0"
    assert describe({"const": 1}, {}) == "1"
    assert describe({"$ref": "#/$defs/A"}, {"A": {"type": "object", "title": "A", "properties": {}}}) == "an object"
    assert describe({}, {}) == "a value"


def test_a_schema_takes_what_the_record_adds() -> None:
    class Extra(Struct):
        a: int = 0

    Extra.schema_extra = {"minProperties": 1}  # type: ignore[attr-defined]
    assert json_schema(Extra)["$defs"]["Extra"]["minProperties"] == 1


def test_of_many_faults_in_a_value_the_first_are_explained_and_one_says_that_there_are_more() -> None:
    found = mismatches({"id": "x", "inner": [{"name": 1}] * 1_000}, Record)
    assert [mismatch.path for mismatch in found[:-1]] == [("inner", number, "name") for number in range(bounds.FAULTS)]
    assert found[-1] == Mismatch((), "has more faults than these 49; fix them, then run again")
    exactly = mismatches({"id": "x", "inner": [{"name": 1}] * bounds.FAULTS}, Record)
    assert len(exactly) == bounds.FAULTS
    assert all(mismatch.path for mismatch in exactly)


def test_the_faults_that_are_explained_are_the_first_of_the_value_whatever_the_hash_seed() -> None:
    class Graded(Struct):
        grades: dict[str, int] | None = None

    found = mismatches({"grades": {f"{number:04}": "x" for number in range(1_000)}}, Graded)
    assert [mismatch.path[-1] for mismatch in found[:-1]] == [f"{number:04}" for number in range(bounds.FAULTS)]


@pytest.mark.parametrize("optional", [False, True])
def test_no_more_of_a_value_is_read_than_is_explained(optional: bool) -> None:
    class Row(Struct):
        results: list[Inner]

    class Optional(Struct):
        results: list[Inner] | None = None

    record = Optional if optional else Row
    few, many = (work(lambda: mismatches({"results": [0] * faults}, record)) for faults in (100, 2_000))  # noqa: B023
    assert many < 2 * few


class Cat(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type", tag="cat"):
    lives: int


class Dog(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type", tag="dog"):
    name: str


class Owner(Struct, frozen=True, kw_only=True):
    pets: list[Cat | Dog] = []


@pytest.mark.parametrize(
    ("pet", "expected"),
    [
        ({"type": "cat", "lives": "9"}, Mismatch(("pets", 0, "lives"), "expected a whole number, found")),
        ({"type": "dog", "lives": 9}, Mismatch(("pets", 0, "lives"), "unknown key; known here: type, name")),
        ({"type": "god"}, Mismatch(("pets", 0, "type"), 'expected "cat" or "dog", found "god"')),
        ({"type": "dogg"}, Mismatch(("pets", 0, "type"), 'found "dogg"; did you mean "dog"?')),
        ({"type": 7}, Mismatch(("pets", 0, "type"), 'expected "cat" or "dog", found 7')),
        ({"lives": 9}, Mismatch(("pets", 0, "type"), "is missing")),
        ("cat", Mismatch(("pets", 0), "expected an object, found")),
    ],
)
def test_of_several_records_only_the_one_that_is_meant_is_explained(pet: object, expected: Mismatch) -> None:
    found = mismatches({"pets": [pet]}, Owner)
    assert [one.path for one in found if one.path == expected.path] == [expected.path]
    assert all(expected.message in one.message for one in found if one.path == expected.path)
    assert len(found) == (2 if isinstance(pet, dict) and pet == {"type": "dog", "lives": 9} else 1)


class Says(Struct, frozen=True, tag="says", tag_field="type"):
    value: str | list[str]
    word: bool = False


class Costs(Struct, frozen=True, tag="costs", tag_field="type"):
    name: str
    most: float = 0.0


class Answer(Struct, frozen=True):
    rules: list[Says | Costs] = []
    day: Annotated[str, Meta(pattern="^[0-9-]+$", title="a date, as 2026-12-31")] = ""
    call: Annotated[dict[str, Any], Meta(title='an object such as {"name": "x"}')] = {}


@pytest.mark.parametrize(
    ("rule", "meant"),
    [
        ({"says": "x"}, '{"type": "says", "value": "x"}'),
        ({"sais": ["x", "y"]}, '{"type": "says", "value": ["x", "y"]}'),
        ({"says": {"value": "x", "word": True}}, '{"type": "says", "value": "x", "word": true}'),
        ({"costs": 0.4}, '{"type": "costs", …}'),
        ({"costs": True}, '{"type": "costs"}'),
        ({"costs": {"most": 0.4}}, '{"type": "costs", "most": 0.4}'),
    ],
)
def test_a_rule_named_by_its_key_is_shown_as_it_is_written(rule: object, meant: str) -> None:
    assert mismatches({"rules": [rule]}, Answer) == [Mismatch(("rules", 0, "type"), f"is missing; write {meant}")]


def test_a_number_for_a_text_is_shown_in_quotes_unless_the_text_has_a_form() -> None:
    assert mismatches({"rules": [{"type": "says", "value": 30}], "day": 30}, Answer) == [
        Mismatch(("day",), "expected a date, as 2026-12-31, found 30"),
        Mismatch(("rules", 0, "value"), 'expected text or a list, found 30; write "30"'),
    ]


def test_an_object_is_described_by_its_title() -> None:
    assert mismatches({"call": "x"}, Answer) == [
        Mismatch(("call",), 'expected an object such as {"name": "x"}, found "x" (text)')
    ]


class Where(Struct, frozen=True, forbid_unknown_fields=True):
    answer: str | None = None


class Asked(Struct, frozen=True):
    where: Where | None = None


def test_what_is_wrong_in_an_object_that_may_be_null_is_said_of_its_keys() -> None:
    assert mismatches({"where": {"anser": "a"}}, Asked) == [
        Mismatch(("where", "anser"), "unknown key; did you mean 'answer'?", unknown="misspelled key")
    ]
    assert mismatches({"where": 7}, Asked) == [Mismatch(("where",), "expected an object, found 7")]
