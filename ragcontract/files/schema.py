"""JSON Schemas of record types, and explanations of why a value does not fit one.

The field types of a record carry limits (``Meta(ge=1)``) and, if the limits are not self-explanatory, a description of
the expected value (``Meta(title=…)``). Valid rows are validated by msgspec at C speed. Only invalid values are
validated again here with jsonschema, which reports every error.

The validator changes jsonschema in two ways, so that errors can be read one by one, in the order of the value.
jsonschema finds all errors of an ``anyOf`` before it yields the first, and takes additional properties from a set.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from itertools import islice
from typing import Any, Literal, NamedTuple

import msgspec

from ragcontract.core import bounds
from ragcontract.core.nearest import nearest
from ragcontract.core.phrase import Message, private
from ragcontract.core.safe_text import shorten


@cache
def validator_class() -> Any:
    """Return the class of validators; one that is made with a schema yields the errors of a value (``iter_errors``)."""
    # jsonschema takes a tenth of a second to import; only invalid input pays for it.
    import jsonschema

    def is_integer(_checker: object, instance: object) -> bool:
        return isinstance(instance, int) and not isinstance(instance, bool)

    def any_of(validator: Any, branches: list[Any], instance: object, schema: dict[str, Any]) -> Iterator[Any]:
        if "discriminator" in schema and isinstance(instance, dict):
            yield from tagged(validator, instance, schema["discriminator"])
            return
        context = []
        for index, branch in enumerate(branches):
            errors = list(islice(validator.descend(instance, branch, schema_path=index), bounds.FAULTS + 1))
            if not errors:
                return
            context += errors
        yield jsonschema.ValidationError("fits no branch", context=context)

    def tagged(validator: Any, instance: dict[str, Any], discriminator: dict[str, Any]) -> Iterator[Any]:
        field, branches = discriminator["propertyName"], discriminator["mapping"]
        tag = instance.get(field)
        if isinstance(tag, str) and tag in branches:
            yield from validator.descend(instance, {"$ref": branches[tag]})
        elif field in instance:
            yield from validator.descend(tag, {"enum": list(branches)}, path=field)
        else:
            yield from validator.descend(instance, {"required": [field], "discriminator": discriminator})

    def additional(validator: Any, allowed: Any, instance: Any, schema: dict[str, Any]) -> Iterator[Any]:
        known = schema.get("properties", {})
        unknown = [name for name in instance if name not in known] if isinstance(instance, dict) else []
        if unknown and allowed is False:
            yield jsonschema.ValidationError("unknown property")
            return
        for name in unknown:
            yield from validator.descend(instance[name], allowed, path=name)

    base = jsonschema.Draft202012Validator
    return jsonschema.validators.extend(  # type: ignore[no-untyped-call]
        base,
        {"anyOf": any_of, "additionalProperties": additional},
        type_checker=base.TYPE_CHECKER.redefine("integer", is_integer),  # the decoder does not accept 3.0 either
    )


LEAST_PERCENT, PERCENT = 5, 100  # the range of a number that is probably meant as a percentage; 2 may be any mistake
_WORDS = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


class Mismatch(NamedTuple):
    """One validation error: the path within the value, and a message."""

    path: tuple[str | int, ...]
    message: str
    unknown: Literal["", "key", "misspelled key"] = ""  # what it is about, if that is a key that is not known


def json_schema(record: type, *inner: type, null_is_absent: bool = False) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a record type.

    The schema includes ``schema_extra`` of the record and of the ``inner`` record types that define it. With
    ``null_is_absent``, every optional field may be null, for readers that drop null fields before validation.
    """
    schema: dict[str, Any] = msgspec.json.schema(record)
    for part in (record, *inner):
        schema["$defs"][part.__name__] |= getattr(part, "schema_extra", {})
    if null_is_absent:
        for definition in schema["$defs"].values():
            required = definition.get("required", [])
            for name, field in definition.get("properties", {}).items():
                if name not in required:
                    definition["properties"][name] = {"anyOf": [field, {"type": "null"}]}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def mismatches(value: object, record: type) -> list[Mismatch]:
    """Return the reasons why a decoded JSON value does not fit the record type, outermost first.

    Validation stops after ``bounds.FAULTS`` of them; one more says that there are others.
    """
    schema = _schema_of(record)
    errors = validator_class()(schema).iter_errors(value)
    explained = (mismatch for error in errors for mismatch in _explain(error, schema["$defs"]))
    once: dict[Mismatch, None] = {}  # each error about a missing field yields all missing fields
    for mismatch in explained:
        if len(once) == bounds.FAULTS and mismatch not in once:
            break
        once[mismatch] = None
    else:
        return _outermost_first(once)
    others = f"has more faults than these {bounds.FAULTS}; fix them, then run again"
    return [*_outermost_first(once), Mismatch((), others)]


@lru_cache(maxsize=64)
def _schema_of(record: type) -> dict[str, Any]:
    return msgspec.json.schema(record)


def _outermost_first(reasons: Iterable[Mismatch]) -> list[Mismatch]:
    return sorted(reasons, key=lambda mismatch: [(isinstance(part, str), part) for part in mismatch.path])


def shown(value: object) -> str:
    """Format a value as JSON, shortened to fit into a sentence."""
    return shorten(_brief(value, levels=2), bounds.VALUE)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _brief(value: object, *, levels: int) -> str:
    """Format a value as JSON, ``levels`` deep, with the first three items of each list and object."""
    if isinstance(value, str):
        return _json(shorten(value, bounds.VALUE_TEXT))
    if not isinstance(value, dict | list):
        return _json(value)
    start, end = "{}" if isinstance(value, dict) else "[]"
    if value and not levels:
        return f"{start}…{end}"
    if isinstance(value, dict):
        pairs = islice(value.items(), bounds.VALUE_ITEMS)
        shown = [f"{_brief(str(name), levels=0)}: {_brief(inner, levels=levels - 1)}" for name, inner in pairs]
    else:
        shown = [_brief(inner, levels=levels - 1) for inner in value[: bounds.VALUE_ITEMS]]
    more = ["…"] if len(value) > len(shown) else []
    return start + ", ".join(shown + more) + end


def _explain(error: Any, definitions: dict[str, Any]) -> Iterator[Mismatch]:
    """Yield the mismatches of one jsonschema error; for an anyOf, yield those of the branch whose outer type fits."""
    optional = error.validator == "anyOf" and {"type": "null"} in error.validator_value[1:2]  # a record or null
    inner = [
        cause
        for cause in error.context
        if cause.relative_path
        or "propertyNames" in cause.relative_schema_path
        or (optional and cause.validator in {"required", "additionalProperties"})
    ]
    if inner:
        for cause in inner:
            yield from _explain(cause, definitions)
        return
    path = tuple(error.absolute_path)
    if error.validator == "required":
        for missing in error.validator_value:
            if missing not in error.instance:
                instead = _instead(missing, error.instance, error.schema, definitions)
                yield Mismatch((*path, missing), Message.of("is missing", instead))
    elif error.validator == "additionalProperties":
        known = error.schema.get("properties", {})
        for name in error.instance:
            if name not in known:
                meant, is_near = _meant(str(name), known, definitions)
                yield Mismatch(
                    (*path, str(name)), f"unknown key; {meant}", unknown="misspelled key" if is_near else "key"
                )
    elif "propertyNames" in error.absolute_schema_path:
        too_long = (
            f"has a key of more than {error.schema.get('maxLength')} characters: {shorten(str(error.instance), 40)!r}"
        )
        yield Mismatch(path, too_long if error.instance else "has an empty key")
    else:
        yield Mismatch(path, _mismatch(error.instance, error.schema, definitions))


def _instead(missing: str, instance: dict[str, Any], schema: dict[str, Any], definitions: dict[str, Any]) -> str:
    """Name the field that was probably meant, or else the unknown fields of the object."""
    if tags := schema.get("discriminator"):
        for name, value in instance.items():
            if near := nearest(name, tags["mapping"]):
                return f"; write {_as_tagged(near, value, tags, definitions)}"
    return instead_of(missing, [name for name in instance if name not in schema.get("properties", {})])


def instead_of(missing: str, strangers: list[str]) -> str:
    """Return what may be meant as a field that is missing, out of unknown names; completes ``is missing``."""
    if near := nearest(missing, strangers):
        return f"; is {near!r} a misspelling of it?"
    listed = ", ".join(map(repr, strangers[: bounds.NAMES]))
    return Message.quoting("; found instead: ", private(listed)) if strangers else ""


def _as_tagged(tag: str, value: object, tags: dict[str, Any], definitions: dict[str, Any]) -> str:
    """Return the object that ``{tag: value}`` probably means. The value has its fields, or is that of the first one."""
    record = definitions[tags["mapping"][tag].rsplit("/", 1)[-1]]
    fields = [name for name in record["properties"] if name not in {tags["propertyName"], "in"}]
    written = [f"{_json(tags['propertyName'])}: {_json(tag)}"]
    if isinstance(value, dict) and any(name in fields for name in value):
        written += [f"{_json(name)}: {_brief(inner, levels=1)}" for name, inner in value.items() if name in fields]
    elif fields and not isinstance(value, bool) and value is not None:
        fits = _type_of(value) in _types(record["properties"][fields[0]], definitions)
        written.append(f"{_json(fields[0])}: {_brief(value, levels=1)}" if fits else "…")
    return f"{{{', '.join(written)}}}"


def _type_of(value: object) -> str:
    kinds = {str: "string", int: "integer", float: "number", list: "array", dict: "object"}
    return kinds.get(type(value), "")


def _meant(name: str, known: dict[str, Any], definitions: dict[str, Any]) -> tuple[str, bool]:
    """Name the key that was probably meant, here or one level deeper, or all known keys; say whether one is near."""
    if near := nearest(name, known):
        return f"did you mean {near!r}?", True
    for outer, schema in known.items():
        for branch in schema.get("anyOf", [schema]):
            inner = definitions.get(branch.get("$ref", "").rsplit("/", 1)[-1], {}).get("properties", {})
            if name in inner:
                return f"write it under {outer!r}, indented", False
            if near := nearest(name, inner):
                return f"did you mean {near!r} under {outer!r}?", True
    return f"known here: {', '.join(known)}", False


def _mismatch(instance: object, schema: dict[str, Any], definitions: dict[str, Any]) -> str:
    found = private(_found(instance, schema, definitions))
    return Message.quoting(f"expected {describe(schema, definitions)}", ", found ", found)


def _found(instance: object, schema: dict[str, Any], definitions: dict[str, Any]) -> str:
    """Return a value that does not fit, with advice, which often repeats the value."""
    message = shown(instance)
    if (meant := _meant_value(instance, schema, definitions)) is not None:
        return f"{message}; write {meant}"
    required = definitions.get(schema.get("$ref", "").rsplit("/", 1)[-1], schema).get("required", [])
    if isinstance(instance, str | int) and len(required) == 1:
        return f"{message}; write {{{_json(required[0])}: {_brief(instance, levels=0)}}}"
    if isinstance(instance, str) and (tags := schema.get("discriminator")):
        near = nearest(instance, tags["mapping"])
        return f"{message}; write {{{_json(tags['propertyName'])}: {_json(near)}, …}}" if near else f"{message} (text)"
    branches = [schema, *schema.get("anyOf", ())]
    if isinstance(instance, str) and (
        values := next((branch["enum"] for branch in branches if "enum" in branch), None)
    ):
        near = nearest(instance, [value for value in values if isinstance(value, str)])
        if near or "enum" in schema:
            return f"{message}; did you mean {_json(near)}?" if near else message
    if _number(instance) is not None and _takes_any_text(schema, definitions):
        return f"{message}; write {_json(_json(instance))}"
    if isinstance(instance, str):
        message += " (text)"
        wanted = _types(schema, definitions)
        if wanted & {"integer", "number", "boolean"}:
            message += "; leave the quotes out" if _is_json_scalar(instance) else ""
        elif "array" in wanted and instance:
            message += f"; write [{_brief(instance, levels=0)}] for a list of one"
    return message


def _meant_value(instance: object, schema: dict[str, Any], definitions: dict[str, Any]) -> str | None:
    """Return the number or boolean that was probably meant: 0.8 for 80 and "80%", 0.5 for "0,5", true for "yes"."""
    wanted = _types(schema, definitions)
    if isinstance(instance, str):
        if "boolean" in wanted:
            return {"yes": "true", "on": "true", "no": "false", "off": "false"}.get(instance.lower())
        if "number" in wanted and re.fullmatch(r"[0-9]{1,9},[0-9]{1,9}", instance):
            return instance.replace(",", ".")
    number = _number(instance)
    if number is None or not LEAST_PERCENT <= number <= PERCENT or not _is_fraction(schema, definitions):
        return None
    return f"{number / PERCENT:g}"


def _takes_any_text(schema: dict[str, Any], definitions: dict[str, Any]) -> bool:
    """Return whether a schema accepts any text, and no numbers."""
    branches = schema.get("anyOf", [schema])
    free = [part for part in branches if part.get("type") == "string" and not {"pattern", "enum"} & part.keys()]
    return bool(free) and not _types(schema, definitions) & {"integer", "number"}


def _number(instance: object) -> float | None:
    """Return a number, or the number of a percentage such as "80%"; None for anything else."""
    if isinstance(instance, str):
        return float(instance[:-1]) if re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,9})?%", instance) else None
    return instance if isinstance(instance, int | float) and not isinstance(instance, bool) else None


def _is_fraction(schema: dict[str, Any], definitions: dict[str, Any]) -> bool:
    """Return whether a schema accepts numbers from 0 to 1, and no larger ones."""
    branches = schema.get("anyOf", [schema])
    numbers = [branch for branch in branches if _types(branch, definitions) & {"number", "integer"}]
    return bool(numbers) and all((branch.get("minimum"), branch.get("maximum")) == (0, 1) for branch in numbers)


def _is_json_scalar(text: str) -> bool:
    try:
        return math.isfinite(json.loads(text))
    except (ValueError, TypeError, OverflowError, RecursionError):
        return False


def _types(schema: dict[str, Any], definitions: dict[str, Any]) -> set[str]:
    if "anyOf" in schema:
        return set().union(*(_types(branch, definitions) for branch in schema["anyOf"]))
    if "$ref" in schema:
        return _types(definitions[schema["$ref"].rsplit("/", 1)[-1]], definitions)
    return {schema["type"]} if "type" in schema else set()


def describe(schema: dict[str, Any], definitions: dict[str, Any]) -> str:
    """Describe what a schema accepts, for example "a whole number of at least 1"."""
    if "title" in schema and "properties" not in schema:  # the title of a record is its name in the code
        return str(schema["title"])
    if "$ref" in schema:
        return describe(definitions[schema["$ref"].rsplit("/", 1)[-1]], definitions)
    if "anyOf" in schema:
        branches = [describe(branch, definitions) for branch in schema["anyOf"] if branch.get("type") != "null"]
        return " or ".join(dict.fromkeys(branches))
    if "enum" in schema:
        return " or ".join(_json(value) for value in schema["enum"])
    if "const" in schema:
        return _json(schema["const"])
    wanted = _WORDS.get(schema.get("type", ""), "a value")
    if schema.get("minLength") or schema.get("minItems"):
        wanted = f"{wanted} that is not empty"
    if "minimum" in schema and "maximum" in schema:
        return f"{wanted} from {schema['minimum']:,} to {schema['maximum']:,}"
    if "minimum" in schema:
        wanted += f" of at least {schema['minimum']:g}"
    return wanted
