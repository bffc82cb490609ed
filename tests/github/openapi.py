"""GitHub's own description of its API, as npm's ``@octokit/openapi`` carries it: what may be sent, what comes back."""

import re
from functools import cache
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec
from openapi_schema_validator import OAS30Validator
from referencing import Registry
from referencing.jsonschema import DRAFT4

from tests.github.packages import unpacked
from tests.needs import here

Json = Any
PACKAGE = "@octokit/openapi@23.0.2"
NOTHING: Json = {"paths": {}}
DESCRIPTIONS = {"github.com": "api.github.com.json", "enterprise": "ghes-3.19.json"}


@cache
def description(kind: str) -> "Description":
    """Return the description of ``github.com`` or of an ``enterprise`` server, fetched once into ``build/``.

    Outside CI a machine may lack npm, which brings it: the stand-in then lets every request pass.
    """
    if not here("npm"):
        return Description(NOTHING)
    folder = unpacked(PACKAGE, "openapi", [f"generated/{name}" for name in DESCRIPTIONS.values()])
    file = folder / "generated" / DESCRIPTIONS[kind]
    return Description(msgspec.json.decode(file.read_bytes()))


class Description:
    """An OpenAPI document, asked about single requests and answers."""

    def __init__(self, document: Json) -> None:
        self._document = document
        resource = DRAFT4.create_resource(document)
        self._registry: Registry[Any] = Registry().with_resource("urn:github", resource)
        self._paths = [
            (re.compile(re.sub(r"\\\{[^}]+\\\}", "([^/]+)", re.escape(path))), path) for path in document["paths"]
        ]

    def operation(self, method: str, target: str) -> Json | None:
        """Return the description of a call; None if there is no such call."""
        path = urlsplit(target).path
        found = [template for pattern, template in self._paths if pattern.fullmatch(path)]
        found.sort(key=lambda template: template.count("{"))
        return self._document["paths"][found[0]].get(method.lower()) if found else None

    def refuses(self, method: str, target: str, body: Json) -> str | None:
        """Say why a request is not one that the description allows; None if it is."""
        if self._document is NOTHING:
            return None
        operation = self.operation(method, target)
        if operation is None:
            return f"there is no {method} {urlsplit(target).path}"
        known = {
            parameter["name"]: parameter for parameter in self._parameters(operation) if parameter["in"] == "query"
        }
        for name, values in parse_qs(urlsplit(target).query, keep_blank_values=True).items():
            if name not in known:
                return f"unknown query parameter {name}"
            schema = known[name]["schema"]
            value: Json = unquote(values[0])
            if schema["type"] == "integer":
                if not value.isdecimal():
                    return f"{name} is no integer"
                value = int(value)
            if problem := self._mismatch(value, schema):
                return f"{name}: {problem}"
        if "requestBody" not in operation:
            return None if body is None else "there is a body where none belongs"
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        return self._mismatch(body, {**schema, "additionalProperties": False})

    def mismatch_of_answer(self, method: str, target: str, status: int, body: Json) -> str | None:
        """Say why an answer is not one that the description foresees; None if it is."""
        if self._document is NOTHING:
            return None
        operation = self.operation(method, target)
        answer = (operation or {}).get("responses", {}).get(str(status))
        if answer is None:
            return f"{method} {target} never answers {status}"
        if "$ref" in answer:
            answer = self._resolve(answer["$ref"])
        if "content" not in answer:
            return None if body is None else "there is an answer where none belongs"
        return self._mismatch(body, answer["content"]["application/json"]["schema"])

    def _parameters(self, operation: Json) -> list[Json]:
        return [self._resolve(found["$ref"]) if "$ref" in found else found for found in operation.get("parameters", [])]

    def _resolve(self, reference: str) -> Json:
        found = self._document
        for part in reference.removeprefix("#/").split("/"):
            found = found[part]
        return found

    def _mismatch(self, value: Json, schema: Json) -> str | None:
        absolute = _absolute(schema)
        errors = OAS30Validator(absolute, registry=self._registry).iter_errors(value)
        return next((error.message for error in errors), None)


def _absolute(schema: Json) -> Json:
    """Point references inside a part of the document at the whole of it."""
    if isinstance(schema, dict):
        return {
            key: f"urn:github{value}" if key == "$ref" and isinstance(value, str) else _absolute(value)
            for key, value in schema.items()
        }
    return [_absolute(item) for item in schema] if isinstance(schema, list) else schema
