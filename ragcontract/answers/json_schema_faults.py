"""What is wrong with the JSON Schema of a rule, found when the golden file is read."""

from collections.abc import Iterator
from typing import Any

import msgspec

from ragcontract.answers.json_fit import CHECKED, Schema, target
from ragcontract.answers.regexes import PatternError, compiled
from ragcontract.core import bounds
from ragcontract.core.nearest import nearest
from ragcontract.core.text import shorten
from ragcontract.files.schema import dotted, shown

_OF_OTHERS = frozenset({"then", "else", "minContains", "maxContains"})  # they belong to `if` and to `contains`
_NOTES = frozenset(
    {"$schema", "$id", "$comment", "$defs", "definitions", "title", "description", "default", "examples", "format"}
    | {"deprecated", "readOnly", "writeOnly"}
)
_KNOWN = CHECKED | _OF_OTHERS | _NOTES
_BY_NAME = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTED = ("allOf", "anyOf", "oneOf", "prefixItems")
_SINGLE = ("items", "contains", "not", "if", "then", "else", "additionalProperties", "propertyNames")


def schema_fault(schema: Schema) -> str | None:
    """Return what is wrong with a schema, or None."""
    from jsonschema import Draft202012Validator, FormatChecker
    from jsonschema.exceptions import SchemaError

    if len(msgspec.json.encode(schema)) > bounds.SCHEMA:
        return f"is longer than {bounds.SCHEMA:,} bytes; check the answer in your own code, and export `checks`"
    try:
        Draft202012Validator.check_schema(schema, format_checker=FormatChecker(()))
    except SchemaError as error:
        return f"is no JSON Schema ({dotted(error.absolute_path)}: {shorten(error.message, bounds.VALUE)})"
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
    found = target(root, reference)
    if isinstance(found, dict | bool):
        return found
    raise LookupError(reference)
