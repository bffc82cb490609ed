"""JSON answers beside a schema: as jsonschema judges them, in bounded work."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from ragcontract.answers.json_answer import NotJsonError, parsed
from ragcontract.answers.json_fit import CHECKED, Failure, TooMuchWorkError, first_failure, schema_fault
from ragcontract.core import bounds
from tests.answers.work import grows_linearly

NUMBERS = st.sampled_from([0, 1, 2, 3, 1.0, 1.5, -1, 10])
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.sampled_from(["", "a", "ab", "é", "A1"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
TYPES = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])
SIMPLE = st.one_of(
    st.builds(lambda kind: {"type": kind}, TYPES | st.lists(TYPES, min_size=1, max_size=2, unique=True)),
    st.builds(
        lambda name, n: {name: n},
        st.sampled_from(["minLength", "maxLength", "minItems", "maxItems"]),
        st.integers(0, 3),
    ),
    st.builds(lambda name, n: {name: n}, st.sampled_from(["minProperties", "maxProperties"]), st.integers(0, 3)),
    st.builds(
        lambda name, n: {name: n},
        st.sampled_from(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]),
        NUMBERS,
    ),
    st.builds(lambda n: {"multipleOf": n}, st.sampled_from([1, 2, 0.5])),
    st.builds(lambda value: {"const": value}, VALUES),
    st.builds(lambda values: {"enum": values}, st.lists(VALUES, min_size=1, max_size=3)),
    st.builds(lambda names: {"required": names}, st.lists(st.sampled_from("abc"), max_size=2, unique=True)),
    st.just({"uniqueItems": True}),
    st.just({"pattern": "^[a-z]+$"}),
    st.just({"dependentRequired": {"a": ["b"]}}),
)
MANY = ("allOf", "anyOf", "oneOf", "prefixItems")
ONE = ("not", "items", "contains", "additionalProperties", "propertyNames")
BY_NAME = ("properties", "dependentSchemas")
SCHEMAS = st.recursive(
    SIMPLE | st.booleans(),
    lambda inner: st.one_of(
        st.builds(lambda name, many: {name: many}, st.sampled_from(MANY), st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda name, one: {name: one}, st.sampled_from(ONE), inner),
        st.builds(
            lambda name, one: {name: one},
            st.sampled_from(BY_NAME),
            st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
        ),
        st.builds(
            lambda one, more, rest: {
                "properties": {"a": one},
                "patternProperties": {"^b": more},
                "additionalProperties": rest,
            },
            inner,
            inner,
            inner,
        ),
        st.builds(lambda a, b, c: {"if": a, "then": b, "else": c}, inner, inner, inner),
        st.builds(lambda one: {"contains": one, "minContains": 0, "maxContains": 1}, inner),
        st.builds(lambda one, two: {"prefixItems": [one], "items": two}, inner, inner),
    ),
    max_leaves=6,
)


@settings(max_examples=500)
@given(SCHEMAS, VALUES, st.booleans())
def test_an_answer_fits_where_jsonschema_says_so(schema: Any, value: Any, referred: bool) -> None:
    if referred:
        schema = {"$defs": {"a/b": schema}, "allOf": [{"$ref": "#/$defs/a~1b"}]}
    assert schema_fault(schema) is None
    assert (first_failure(value, schema) is None) == Draft202012Validator(schema).is_valid(value)


def test_all_keywords_are_those_of_the_standard() -> None:
    left_out = {"$dynamicRef", "format", "unevaluatedItems", "unevaluatedProperties"}
    assert set(Draft202012Validator.VALIDATORS) - left_out == CHECKED


def test_the_first_failure_says_where_and_what() -> None:
    schema = {"type": "object", "properties": {"items": {"items": {"required": ["id"]}}}}
    assert first_failure({"items": [{"id": 1}, {"x": 2}]}, schema) == Failure(
        path="items[1]", keyword="required", wanted='["id"]', actual='{"x": 2}'
    )


@pytest.mark.parametrize(
    ("answer", "document"),
    [
        ('{"a": 1}', {"a": 1}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ("\n```\n[1]\n```\n", [1]),
        (' "```" ', "```"),
        ('``` json title="x"\n["```"]\n```', ["```"]),
        ("````json-ld\n[1]\n`````\n", [1]),
        ("~~~\n[1]\n~~~", [1]),
    ],
)
def test_json_may_stand_in_one_fenced_block(answer: str, document: object) -> None:
    assert parsed(answer) == document


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "It is 5.",
        "Here: ```json\n1\n```",
        '{"a": NaN}',
        "[1,]",
        "```1```",
        "```\n1\n``",
        "````\n1\n```",
        "~~~\n1\n```",
    ],
)
def test_other_answers_are_no_json(answer: str) -> None:
    with pytest.raises(NotJsonError, match="is not JSON"):
        parsed(answer)


def test_deep_json_is_refused() -> None:
    with pytest.raises(NotJsonError, match="nested more than 100 levels"):
        parsed("[" * 200_000 + "]" * 200_000)


@pytest.mark.parametrize(
    ("schema", "fault"),
    [
        ({"type": "objct"}, "is not a JSON Schema (type: 'objct' is not valid under any of the given schemas)"),
        ({"requird": ["a"]}, "has the keyword \"requird\", which is not supported; did you mean 'required'?"),
        (
            {"items": {"unevaluatedProperties": False}},
            'has the keyword "unevaluatedProperties", which is not supported',
        ),
        ({"$ref": "https://example.com/a"}, "only schemas in it can be referred to"),
        ({"$ref": "#/$defs/none"}, "only schemas in it can be referred to"),
        ({"items": {"$id": "a"}}, 'has the keyword "$id", which is not supported'),
        ({"$ref": "#name"}, "only schemas in it can be referred to"),
        ({"$defs": {"a": {"enum": [1]}}, "$ref": "#/$defs/a/enum"}, "only schemas in it can be referred to"),
        ({"pattern": "(?=a)"}, 'has the pattern "(?=a)", which is not an RE2 pattern'),
        ({"patternProperties": {"(": {}}}, 'has the pattern "(", which is not an RE2 pattern'),
        ({"description": "x" * bounds.SCHEMA}, "is longer than 20,000 bytes"),
    ],
)
def test_what_is_wrong_with_a_schema(schema: dict[str, Any], fault: str) -> None:
    assert fault in str(schema_fault(schema))


def test_a_schema_without_end_stops() -> None:
    assert schema_fault({"$ref": "#"}) is None
    with pytest.raises(TooMuchWorkError):
        first_failure(1, {"$ref": "#"})
    doubling = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)} | {"d40": {}}
    with pytest.raises(TooMuchWorkError):
        first_failure(1, {"$defs": doubling, "$ref": "#/$defs/d0"})


@pytest.mark.parametrize(
    ("schema", "item"),
    [
        ({"items": {"enum": [f"{n}" for n in range(1_000)]}}, "999"),
        ({"items": {"properties": {f"a{n}": True for n in range(800)}}}, {}),
        ({"items": {"dependentRequired": {f"a{n}": [] for n in range(800)}}}, {}),
        ({"items": {"allOf": [{"pattern": "b$"}] * 500}}, "ab"),
        ({"items": {"patternProperties": {f"^a{n}": True for n in range(800)}}}, {"b": 1}),
        ({"allOf": [{"uniqueItems": True}] * 800}, 0),
        ({"allOf": [{"items": {}}] * 800}, 0),
    ],
)
def test_a_schema_that_multiplies_the_work_stops(schema: dict[str, Any], item: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(bounds, "SCHEMA_STEPS", 10_000)
    assert schema_fault(schema) is None
    items = list(range(200)) if item == 0 else [item] * 200
    with pytest.raises(TooMuchWorkError):
        first_failure(items, schema)


@pytest.mark.parametrize(
    ("schema", "item"),
    [
        ({"uniqueItems": True}, "[{}]"),
        ({"items": {"anyOf": [{"type": "string"}] * 20}}, "1"),
        ({"anyOf": [{"type": "string"}] * 500}, "1"),
        ({"items": {"pattern": "(a+)+$"}}, '"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"'),
        ({"uniqueItems": True}, "{n}"),
    ],
)
def test_hostile_answers_take_linear_time(schema: dict[str, Any], item: str) -> None:
    def checked(size: int) -> object:
        items = [json.dumps({"n": n * ((1 << 61) - 1)}) if item == "{n}" else item for n in range(size)]
        return first_failure(parsed(f"[{','.join(items)}]"), schema)

    assert grows_linearly(checked, 1_000)
