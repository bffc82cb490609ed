"""A validator for JSON Schema whose errors can be read one by one, in the order of the value.

jsonschema finds all errors of an ``anyOf`` before it yields the first, and takes additional properties from a set.
"""

from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import Any

from ragcontract.core import bounds


@cache
def validator_class() -> Any:
    """Return the class of validators; called with a schema, its ``iter_errors`` yields the errors of a value."""
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
