"""JSON Schemas made from the records that are read, and what a value that does not fit one is told.

A record's field types carry limits (``Meta(ge=1)``) and, where the limits do not speak for themselves, the words for
what is expected (``Meta(title=…)``). Decoding a good row never comes here: msgspec has checked it at C speed. A bad one
is looked at again with jsonschema, which names everything that is wrong with it.
"""

import difflib
import json
import reprlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

_WORDS = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


class Misfit(NamedTuple):
    """One thing that is wrong: where in the value, and a sentence about it."""

    path: tuple[str | int, ...]
    message: str


def json_schema(record: type, *, null_is_absent: bool = False) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a record.

    With ``null_is_absent``, null is allowed for every optional field: the reader leaves such fields out beforehand.
    """
    schema: dict[str, Any] = msgspec.json.schema(record)
    schema["$defs"][record.__name__] |= getattr(record, "schema_extra", {})
    if null_is_absent:
        for definition in schema["$defs"].values():
            required = definition.get("required", [])
            for name, field in definition.get("properties", {}).items():
                if name not in required:
                    definition["properties"][name] = {"anyOf": [field, {"type": "null"}]}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def misfits(value: object, record: type) -> list[Misfit]:
    """Say everything that keeps a decoded JSON value from being the record, outermost first."""
    # jsonschema takes a tenth of a second to import; only bad input pays for it.
    import jsonschema

    def is_integer(_checker: object, instance: object) -> bool:
        return isinstance(instance, int) and not isinstance(instance, bool)

    base = jsonschema.Draft202012Validator
    checker = base.TYPE_CHECKER.redefine("integer", is_integer)  # 3.0 is no whole number to the decoder either
    schema = msgspec.json.schema(record)
    validator = jsonschema.validators.extend(base, type_checker=checker)(schema)
    found = [misfit for error in validator.iter_errors(value) for misfit in _explain(error, schema["$defs"])]
    return sorted(found, key=lambda misfit: [str(part) for part in misfit.path])


def dotted(path: Iterable[str | int]) -> str:
    """Write a path as people do: ``results[3].doc_id``."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that was probably meant, if one is near."""
    close = difflib.get_close_matches(word.lower().replace("-", "_"), list(known), n=1, cutoff=0.75)
    return close[0] if close else None


def shown(value: object) -> str:
    """Write a value as JSON, cut to a length that fits into a sentence."""
    text = json.dumps(value, ensure_ascii=False) if not isinstance(value, dict | list) else _short(value)
    return text if len(text) <= 80 else f"{text[:77]}…"  # noqa: PLR2004


def _short(value: object) -> str:
    brief = reprlib.Repr()
    brief.maxlist = brief.maxdict = 3
    brief.maxlevel, brief.maxstring = 2, 40
    return brief.repr(value).replace("'", '"')


def _explain(error: Any, definitions: dict[str, Any]) -> Iterator[Misfit]:
    """Turn one jsonschema error into sentences; an anyOf whose branch fits on the outside is told from the inside."""
    inner = [cause for cause in error.context if cause.relative_path]
    if inner:
        for cause in inner:
            yield from _explain(cause, definitions)
        return
    path = tuple(error.absolute_path)
    if error.validator == "required":
        missing = next(name for name in error.validator_value if f"'{name}'" in error.message.split(" is a ")[0])
        near = nearest(missing, error.instance)
        yield Misfit((*path, missing), "is missing" + (f"; is {near!r} meant to be it?" if near else ""))
    elif error.validator == "additionalProperties":
        known = error.schema.get("properties", {})
        for name in error.instance:
            if name not in known:
                near = nearest(str(name), known)
                hint = f"did you mean {near!r}?" if near else f"known here: {', '.join(known)}"
                yield Misfit((*path, str(name)), f"unknown key; {hint}")
    else:
        yield Misfit(path, _mismatch(error.instance, error.schema, definitions))


def _mismatch(instance: object, schema: dict[str, Any], definitions: dict[str, Any]) -> str:
    message = f"expected {describe(schema, definitions)}, found {shown(instance)}"
    if isinstance(instance, str):
        message += " (text)"
        wanted = _types(schema, definitions)
        if "array" in wanted:
            message += f'; write ["{instance[:40]}"] for a list of one'
        elif wanted & {"integer", "number", "boolean"} and _is_json_scalar(instance):
            message += "; leave the quotes out"
    return message


def _is_json_scalar(text: str) -> bool:
    try:
        return isinstance(json.loads(text), int | float | bool)
    except ValueError:
        return False


def _types(schema: dict[str, Any], definitions: dict[str, Any]) -> set[str]:
    if "anyOf" in schema:
        return set().union(*(_types(branch, definitions) for branch in schema["anyOf"]))
    if "$ref" in schema:
        return _types(definitions[schema["$ref"].rsplit("/", 1)[-1]], definitions)
    return {schema["type"]} if "type" in schema else set()


def describe(schema: dict[str, Any], definitions: dict[str, Any]) -> str:
    """Say in words what a schema wants: "a whole number of at least 1"."""
    if "title" in schema and schema.get("type") != "object":
        return str(schema["title"])
    if "$ref" in schema:
        return describe(definitions[schema["$ref"].rsplit("/", 1)[-1]], definitions)
    if "anyOf" in schema:
        branches = [describe(branch, definitions) for branch in schema["anyOf"] if branch.get("type") != "null"]
        return " or ".join(dict.fromkeys(branches))
    if "enum" in schema:
        return " or ".join(json.dumps(value) for value in schema["enum"])
    if "const" in schema:
        return json.dumps(schema["const"])
    words = _WORDS.get(schema.get("type", ""), "a value")
    if schema.get("minLength") or schema.get("minItems"):
        words = f"{words} that is not empty"
    if "minimum" in schema:
        words += f" of at least {schema['minimum']:g}"
    if "exclusiveMinimum" in schema:
        words += f" greater than {schema['exclusiveMinimum']:g}"
    if "maximum" in schema:
        words += f" and at most {schema['maximum']:g}"
    return words
