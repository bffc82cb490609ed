"""GitHub's published schema of GraphQL, as npm's ``@octokit/graphql-schema`` carries it, and queries executed over it.

A query that the schema does not allow is refused, and an answer in which it does not find the types that it names is
a mistake of the stand-in.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from graphql import GraphQLError, GraphQLSchema, build_schema, graphql_sync
from msgspec import Struct

from tests.github.packages import unpacked

PACKAGE = "@octokit/graphql-schema@15.26.1"


class RefusedError(Exception):
    """GitHub does not do what a query asks for; the type is that which GitHub writes beside the message."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Executed(Struct, frozen=True, kw_only=True):
    """An answer, and why the query was none that GitHub would execute."""

    answer: dict[str, Any]
    invalid: str | None


@cache
def schema() -> GraphQLSchema:
    """Return the schema, fetched once into ``build/``; npm must be there."""
    text = (unpacked(PACKAGE, "graphql", ["schema.graphql"]) / "schema.graphql").read_text()
    return build_schema(text, assume_valid=True, no_location=True)


def execute(body: Mapping[str, Any], root: Mapping[str, Any]) -> Executed:
    """Execute a query; ``root`` has the fields of queries and mutations, as values and as functions of ``info``."""
    if unknown := set(body) - {"query", "variables", "operationName"}:
        return Executed(answer={"message": "Problems parsing JSON"}, invalid=f"unknown keys {sorted(unknown)}")
    result = graphql_sync(schema(), body["query"], dict(root), variable_values=body.get("variables"))
    errors = result.errors or []
    wrong = next((error for error in errors if not isinstance(error.original_error, RefusedError)), None)
    answer: dict[str, Any] = {"data": result.data}
    if errors:
        answer["errors"] = [_as_github_writes(error) for error in errors]
    return Executed(answer=answer, invalid=None if wrong is None else str(wrong))


def _as_github_writes(error: GraphQLError) -> dict[str, Any]:
    refused = error.original_error if isinstance(error.original_error, RefusedError) else None
    kind = {"type": refused.kind} if refused and refused.kind else {}
    return kind | dict(error.formatted)
