"""Makes values that fit a JSON Schema: a field that is added to a record is generated from then on."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import lru_cache
from typing import Any

from ragcontract.schemas import schema_of
from tests.fuzz.generate.values import DATES, Maker, gate_keys, rule_names

Schema = dict[str, Any]
DEEPEST = 12
GRADES = (0, 0.5, 1, 1, 1, 2, 3, 64)

# What a field holds that a schema calls a text, a list or an object of them. The names make files fit each other.
BY_NAME: Mapping[str, Callable[[Maker], Any]] = {
    "id": lambda maker: maker.pick(maker.queries),
    "query_id": lambda maker: maker.pick(maker.queries),
    "query": Maker.text,
    "doc_id": lambda maker: maker.pick(maker.documents),
    "doc_ids": lambda maker: maker.some(maker.documents, 8),
    "relevant_doc_ids": lambda maker: maker.some(maker.documents, 3),
    "forbidden_doc_ids": lambda maker: maker.some(maker.documents, 2),
    "tag": lambda maker: maker.pick(maker.tags),
    "rule": lambda maker: maker.pick(rule_names()),
    "gate": lambda maker: maker.pick(gate_keys()),
    "expires": lambda maker: maker.pick(DATES),
    "since": lambda maker: maker.pick(DATES),
    "must_rank_at_most": lambda maker: maker.whole(1, 12),
    "location": lambda maker: f"golden.jsonl:{maker.whole(1, 9)}",
    "created_at": lambda maker: f"{maker.pick(DATES)}T03:04:05+00:00",
    "metadata": lambda maker: {maker.text(): maker.anything() if maker.chance(0.05) else maker.number()},
    "relevance": lambda maker: {str(one): maker.pick(GRADES) for one in maker.some(maker.documents, 3)},
}
KEYS: Mapping[str, Callable[[Maker], Any]] = {
    "tags": lambda maker: maker.pick(maker.tags),
    "ranks": lambda maker: maker.pick(maker.documents),
    "metrics": lambda maker: f"{maker.pick(('mrr', 'recall', 'ndcg'))}_at_{maker.pick(maker.cutoffs)}",
}


@lru_cache
def schema(name: str) -> Schema:
    """Return the schema of a format of rag-contract."""
    return schema_of(name)


def fitting(maker: Maker, name: str) -> Any:
    """Return a value that fits the schema of a format."""
    whole = schema(name)
    return value(maker, whole, whole.get("$defs", {}))


def value(
    maker: Maker, schema: Schema | bool, definitions: Mapping[str, Schema], name: str = "", depth: int = 0
) -> Any:
    """Return a value that fits a schema; ``name`` is the field that holds it."""
    if name in BY_NAME:
        made = BY_NAME[name](maker)
        return made if "integer" in str(schema) else _as_text(made)
    if isinstance(schema, bool):
        return maker.anything()
    if "$ref" in schema:
        return value(maker, _resolved(schema["$ref"], definitions), definitions, name, depth)
    if "anyOf" in schema and "properties" not in schema:
        return value(maker, _branch(maker, schema["anyOf"]), definitions, name, depth)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return maker.pick(schema["enum"])
    if "default" in schema and maker.chance(0.2):
        return deepcopy(schema["default"])  # changes may nest a value in itself
    return _TYPES[schema.get("type", "")](maker, schema, definitions, name, depth)


def _as_text(made: Any) -> Any:
    """Return ids as text, for a field that does not take numbers."""
    if isinstance(made, list):
        return [_as_text(one) for one in made]
    return str(made) if isinstance(made, int) else made


def _resolved(reference: str, definitions: Mapping[str, Schema]) -> Schema:
    found: Any = definitions
    for part in reference.removeprefix("#/$defs/").split("/"):
        found = found[part]
    resolved: Schema = found
    return resolved


def _branch(maker: Maker, branches: list[Schema]) -> Schema:
    """Choose a branch, seldom null."""
    some = [branch for branch in branches if branch.get("type") != "null"]
    return maker.pick(some) if some and not maker.chance(0.1) else maker.pick(branches)


def _text(maker: Maker, schema: Schema, _definitions: Mapping[str, Schema], name: str, _depth: int) -> str:
    if name == "tags":
        return str(maker.pick(maker.tags))
    if "pattern" in schema and "%" in schema["pattern"]:
        return f"{maker.number(0, 100):g}%"
    return maker.text()


def _integer(maker: Maker, schema: Schema, _definitions: Mapping[str, Schema], name: str, _depth: int) -> int:
    if name == "k":
        return maker.pick(maker.cutoffs)
    return maker.whole(schema.get("minimum", 0), schema.get("maximum", 10**9))


def _number(maker: Maker, schema: Schema, _definitions: Mapping[str, Schema], _name: str, _depth: int) -> float:
    least = schema["exclusiveMinimum"] + 0.01 if "exclusiveMinimum" in schema else schema.get("minimum", 0.0)
    most = schema["exclusiveMaximum"] - 0.01 if "exclusiveMaximum" in schema else schema.get("maximum", 1.0)
    return maker.number(least, most)


def _array(maker: Maker, schema: Schema, definitions: Mapping[str, Schema], name: str, depth: int) -> list[Any]:
    if depth > DEEPEST:
        return []
    if "prefixItems" in schema:
        return [value(maker, one, definitions, name, depth + 1) for one in schema["prefixItems"]]
    count = maker.random.randint(schema.get("minItems", 0), 3)
    return [value(maker, schema.get("items", {}), definitions, name, depth + 1) for _ in range(count)]


def _object(maker: Maker, schema: Schema, definitions: Mapping[str, Schema], name: str, depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    required = set(schema.get("required", []))
    for field, inner in schema.get("properties", {}).items():
        if field in required or (depth < DEEPEST and maker.chance(maker.fullness)):
            found[field] = value(maker, inner, definitions, field, depth + 1)
    for pattern, inner in schema.get("patternProperties", {}).items():
        if maker.chance(maker.fullness / 8):
            field = pattern.strip("^$").replace("[1-9][0-9]*", str(maker.pick(maker.cutoffs)))
            if "(?!" in pattern:  # any name of a declared score, and a limit on it
                field = "faithfulness" + ("_drop_gt" if "drop" in pattern else "")
            found[field] = value(maker, inner, definitions, field, depth + 1)
    inner = schema.get("additionalProperties")
    least = schema.get("minProperties", 0)
    if isinstance(inner, dict) and (depth < DEEPEST or least):
        for number in range(maker.random.randint(least, 3)):
            key = str(KEYS[name](maker)) if name in KEYS else f"label {number}" if least else maker.text()
            found[key] = value(maker, inner, definitions, "", depth + 1)
    return found


def _any(maker: Maker, _schema: Schema, _definitions: Mapping[str, Schema], _name: str, _depth: int) -> Any:
    return maker.anything()


def _boolean(maker: Maker, *_: object) -> bool:
    return maker.chance(0.5)


def _null(*_: object) -> None:
    return None


_TYPES: Mapping[str, Callable[..., Any]] = {
    "string": _text,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "array": _array,
    "object": _object,
    "null": _null,
    "": _any,
}
