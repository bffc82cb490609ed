"""Checks in bounded work whether a JSON document fits a JSON Schema, and finds the faults of a rule's schema.

Validators at hand quote whole documents in every message, search with patterns that can hang, and compare all pairs
for ``uniqueItems``. An answer of a megabyte could occupy them for hours. This one has the keywords of draft 2020-12
apart from ``unevaluated…``, dynamic references and formats, and stops after ``bounds.SCHEMA_STEPS`` steps. The faults
of a schema are reported when the golden file is read.
"""

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from math import inf
from typing import Any, TypeAlias

import msgspec
from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import SchemaError
from msgspec import Struct

from ragcontract.answers.answer_text import Answer
from ragcontract.answers.json_answer import comparable
from ragcontract.answers.regexes import PatternError, compiled
from ragcontract.core import bounds
from ragcontract.core.nearest import nearest
from ragcontract.core.phrase import FieldPath, dotted
from ragcontract.core.safe_text import shorten
from ragcontract.files.schema import shown

Schema: TypeAlias = dict[str, Any] | bool

SIDE_BY_SIDE = 10  # values that are compared in the time of a step
SEARCH, SEARCHED = 10, 200  # the steps that a search takes, and the characters that are searched in one


class TooMuchWorkError(Exception):
    """The document takes more than ``bounds.SCHEMA_STEPS`` steps, or the schema refers to itself without end."""


class Failure(Struct, frozen=True):
    """A place where a document does not fit the schema."""

    path: str
    keyword: str  # of the schema
    wanted: str  # the keyword's value
    actual: str  # in the document


def first_failure(document: object, schema: Schema) -> Failure | None:
    """Return the first way in which a document does not fit, or None; raises :class:`TooMuchWorkError`."""
    try:
        return next(_Fit(schema).failures(schema, document, ()), None)
    except RecursionError:
        raise TooMuchWorkError from None


def target(root: Schema, reference: str) -> Any:
    """Return what a reference within the document points to; raises LookupError."""
    value: Any = root
    for part in reference.removeprefix("#").split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list) and name.isdecimal():
            value = value[int(name)]
        elif isinstance(value, dict):
            value = value[name]
        else:
            raise LookupError(name)
    return value


class _Fit:
    """Compares a document with a schema and counts the steps."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._left = bounds.SCHEMA_STEPS
        self._searched = 0
        self._sizes: dict[int, int] = {}

    def failures(self, schema: Schema, value: object, path: FieldPath) -> Iterator[Failure]:
        """Yield the ways in which a value does not fit; the value of a keyword may be a schema again."""
        self._spend(1)
        if schema is False:
            yield Failure(dotted(path), "false", "nothing", shown(value))
        if isinstance(schema, bool):
            return
        for keyword, wanted in schema.items():
            self._spend(1)
            if keyword in _COMPARED_WHOLE:
                self._spend(self._size_of(wanted) // SIDE_BY_SIDE)
            if simple := _SIMPLE.get(keyword):
                fits = simple(wanted, value)
            elif keyword in _ALTERNATIVES:
                fits = self._holds(keyword, wanted, value, schema)
            else:
                for inner_schema, inner, at in self._inner(keyword, wanted, value, schema):
                    if inner_schema is False and keyword == "additionalProperties":
                        yield Failure(dotted(path), keyword, "false", shown(at[0]))
                    yield from self.failures(inner_schema, inner, (*path, *at))
                continue
            if not fits:
                yield Failure(dotted(path), keyword, shown(wanted), shown(value))

    def _spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise TooMuchWorkError

    def _size_of(self, wanted: object) -> int:
        if id(wanted) not in self._sizes:
            self._sizes[id(wanted)] = _size(wanted)
        return self._sizes[id(wanted)]

    def _matches(self, pattern: str, text: str) -> bool:
        self._spend(SEARCH + len(text) // SEARCHED)
        wanted = compiled(pattern, ignore_case=False)
        self._searched += len(text) * wanted.size
        if self._searched > bounds.SEARCHED:
            raise TooMuchWorkError
        return wanted.search(Answer(text, compose=False)) is not None

    def _fits(self, schema: Schema, value: object) -> bool:
        return next(self.failures(schema, value, ()), None) is None

    def _holds(self, keyword: str, wanted: Any, value: object, schema: dict[str, Any]) -> bool:
        """Return whether a value fits a keyword that takes schemas or patterns as alternatives, or counts them."""
        match keyword:
            case "pattern":
                return not isinstance(value, str) or self._matches(wanted, value)
            case "uniqueItems":
                items = _list(value) if wanted else []
                self._spend(_size(items))
                return len({comparable(item, levels=inf) for item in items}) == len(items)
            case "anyOf":
                return any(self._fits(inner, value) for inner in wanted)
            case "oneOf":
                return sum(self._fits(inner, value) for inner in wanted) == 1
            case "not":
                return not self._fits(wanted, value)
            case _:  # contains
                if not isinstance(value, list):
                    return True
                count = sum(self._fits(wanted, item) for item in value)
                return bool(schema.get("minContains", 1) <= count <= schema.get("maxContains", len(value)))

    def _inner(
        self, keyword: str, wanted: Any, value: object, schema: dict[str, Any]
    ) -> Iterator[tuple[Schema, object, FieldPath]]:
        """Yield the schemas of a keyword, each with the value that must fit it and the path from the value to that."""
        match keyword:
            case "$ref":
                yield target(self._root, wanted), value, ()
            case "allOf":
                yield from ((inner, value, ()) for inner in wanted)
            case "if":
                yield schema.get("then" if self._fits(wanted, value) else "else", True), value, ()
            case "prefixItems":
                pairs = zip(wanted, _list(value), strict=False)
                yield from ((inner, item, (at,)) for at, (inner, item) in enumerate(pairs))
            case "items":
                first = len(schema.get("prefixItems", []))
                yield from ((wanted, item, (at,)) for at, item in enumerate(_list(value)[first:], first))
            case _ if isinstance(value, dict):
                yield from self._of_members(keyword, wanted, value, schema)

    def _of_members(
        self, keyword: str, wanted: Any, value: dict[str, Any], schema: dict[str, Any]
    ) -> Iterator[tuple[Schema, object, FieldPath]]:
        match keyword:
            case "properties":
                yield from ((wanted[name], value[name], (name,)) for name in wanted if name in value)
            case "dependentSchemas":
                yield from ((wanted[name], value, ()) for name in wanted if name in value)
            case "propertyNames":
                yield from ((wanted, name, ()) for name in value)
            case "patternProperties":
                for name, member in value.items():
                    yield from ((wanted[each], member, (name,)) for each in wanted if self._matches(each, name))
            case "additionalProperties":
                known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
                for name, member in value.items():
                    self._spend(1)
                    if name not in known and not any(self._matches(pattern, name) for pattern in patterns):
                        yield wanted, member, (name,)


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _size(value: object) -> int:
    """Return how many values a JSON value holds; a long text counts as several."""
    if isinstance(value, list):
        return 1 + sum(map(_size, value))
    if isinstance(value, dict):
        return 1 + sum(_size(name) + _size(inner) for name, inner in value.items())
    return 1 + len(value) // SEARCHED if isinstance(value, str) else 1


def _is(kind: str, value: object) -> bool:
    if kind == "integer":
        return _number(value) and float(value).is_integer() if isinstance(value, float) else type(value) is int
    if kind == "number":
        return _number(value)
    return isinstance(value, _TYPES[kind])


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _equal(first: object, second: object) -> bool:
    return first == second and comparable(first, levels=inf) == comparable(second, levels=inf)  # 1 is true in Python


def _multiple(wanted: float, value: object) -> bool:
    return not _number(value) or Fraction(repr(value)) % Fraction(repr(wanted)) == 0


def _sized(kind: type, fits: Callable[[int, int], bool]) -> Callable[[Any, Any], bool]:
    return lambda wanted, value: not isinstance(value, kind) or fits(len(value), wanted)  # type: ignore[arg-type]


def _compared(fits: Callable[[float, float], bool]) -> Callable[[Any, Any], bool]:
    return lambda wanted, value: not _number(value) or fits(value, wanted)


def _required(wanted: list[str], value: object) -> bool:
    return not isinstance(value, dict) or all(name in value for name in wanted)


_TYPES: Mapping[str, Any] = {"string": str, "boolean": bool, "null": type(None), "array": list, "object": dict}
_SIMPLE: Mapping[str, Callable[[Any, Any], bool]] = {
    "type": lambda wanted, value: any(_is(kind, value) for kind in ([wanted] if isinstance(wanted, str) else wanted)),
    "enum": lambda wanted, value: any(_equal(listed, value) for listed in wanted),
    "const": _equal,
    "required": _required,
    "dependentRequired": lambda wanted, value: all(
        _required(names, value) for name, names in wanted.items() if isinstance(value, dict) and name in value
    ),
    "minLength": _sized(str, lambda size, least: size >= least),
    "maxLength": _sized(str, lambda size, most: size <= most),
    "minItems": _sized(list, lambda size, least: size >= least),
    "maxItems": _sized(list, lambda size, most: size <= most),
    "minProperties": _sized(dict, lambda size, least: size >= least),
    "maxProperties": _sized(dict, lambda size, most: size <= most),
    "minimum": _compared(lambda value, least: value >= least),
    "maximum": _compared(lambda value, most: value <= most),
    "exclusiveMinimum": _compared(lambda value, least: value > least),
    "exclusiveMaximum": _compared(lambda value, most: value < most),
    "multipleOf": _multiple,
}
_ALTERNATIVES = frozenset({"anyOf", "oneOf", "not", "contains", "pattern", "uniqueItems"})
_NESTED = frozenset(
    {"$ref", "allOf", "if", "properties", "patternProperties", "additionalProperties", "propertyNames"}
    | {"dependentSchemas", "prefixItems", "items"}
)
# A value may be compared with all that is listed under these.
_COMPARED_WHOLE = frozenset({"enum", "const", "required", "dependentRequired", "properties", "dependentSchemas"})
CHECKED = frozenset(_SIMPLE) | _ALTERNATIVES | _NESTED


_OF_OTHERS = frozenset({"then", "else", "minContains", "maxContains"})  # they belong to `if` and to `contains`
_NOTES = frozenset(
    {"$schema", "$id", "$comment", "$defs", "definitions", "title", "description", "default", "examples", "format"}
    | {"deprecated", "readOnly", "writeOnly"}
)
_KNOWN = CHECKED | _OF_OTHERS | _NOTES
_BY_NAME = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTED = ("allOf", "anyOf", "oneOf", "prefixItems")
_SINGLE = ("items", "contains", "not", "if", "then", "else", "additionalProperties", "propertyNames")


_OF_EACH_TYPE: tuple[object, ...] = (None, True, 7, "I cannot answer.", [], {})


def untyped(root: Schema) -> str | None:
    """Return the path of the first part of a schema that hardly any type of value breaks; None if there is none.

    It has keywords such as ``properties`` or ``minLength``, which bind values of one type only, and no ``type``. A part
    without any keyword allows everything on purpose.
    """
    waiting: list[tuple[FieldPath, Schema]] = [((), root)]
    while waiting:
        path, schema = waiting.pop()
        if isinstance(schema, bool):
            continue
        accepted = sum(_accepts(root, schema, value) for value in _OF_EACH_TYPE)
        if accepted >= len(_OF_EACH_TYPE) - 1 and not schema.keys() <= _NOTES - {"format"}:
            return dotted(path)
        waiting += reversed([((*path, name), inner) for name, inner in schema.get("properties", {}).items()])
        waiting += [((*path, name), schema[name]) for name in ("items", "additionalProperties") if name in schema]
    return None


def _accepts(root: Schema, schema: Schema, value: object) -> bool:
    try:
        return next(_Fit(root).failures(schema, value, ()), None) is None
    except (TooMuchWorkError, RecursionError):
        return False


def schema_fault(schema: Schema) -> str | None:
    """Return what is wrong with a schema, or None."""
    if len(msgspec.json.encode(schema)) > bounds.SCHEMA:
        return f"is longer than {bounds.SCHEMA:,} bytes; check the answer in your own code, and export `checks`"
    try:
        Draft202012Validator.check_schema(schema, format_checker=FormatChecker(()))
    except SchemaError as error:
        return f"is not a JSON Schema ({dotted(error.absolute_path)}: {shorten(error.message, bounds.VALUE)})"
    return next(_faults(schema), None)


def _faults(root: Schema) -> Iterator[str]:
    waiting: list[Any] = [root]
    seen: set[int] = set()
    while waiting:
        schema = waiting.pop()
        if not isinstance(schema, dict) or id(schema) in seen:
            continue
        seen.add(id(schema))
        for keyword in schema:
            if keyword not in _KNOWN or (keyword == "$id" and schema is not root):
                near = nearest(keyword, _KNOWN - {keyword})
                advice = f"; did you mean {near!r}?" if near else ""
                yield f"has the keyword {shown(keyword)}, which is not supported{advice}"
        if "$ref" in schema:
            try:
                waiting.append(_referred(root, schema["$ref"]))
            except (LookupError, ValueError):
                yield f'refers to {shown(schema["$ref"])}; only schemas in it can be referred to, as "#/$defs/name"'
        for pattern in [*([schema["pattern"]] if "pattern" in schema else []), *schema.get("patternProperties", {})]:
            try:
                compiled(pattern, ignore_case=False)
            except PatternError as error:
                yield f"has the pattern {shown(pattern)}, which {error}"
        waiting += [inner for name in _BY_NAME for inner in schema.get(name, {}).values()]
        waiting += [inner for name in _LISTED for inner in schema.get(name, [])]
        waiting += [schema[name] for name in _SINGLE if name in schema]


def _referred(root: Schema, reference: str) -> dict[str, Any] | bool:
    if reference != "#" and not reference.startswith("#/"):
        raise LookupError(reference)
    referred = target(root, reference)
    if isinstance(referred, dict | bool):
        return referred
    raise LookupError(reference)
