"""Reads what is to be recorded: a Python object, or the name of one."""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from ragcontract.record.asked import Context, Response
from ragcontract.record.system import Surroundings, System
from ragcontract.record.user_code import imported, source_of


class Target(Struct, frozen=True, kw_only=True):
    """A system, and what it is known by: ``sha256`` is that of the file that names or has it."""

    name: str
    sha256: str
    system: System


class _Function:
    concurrency = 1

    def __init__(self, function: Callable[[str, Context], Any]) -> None:
        self._function = function

    def setup(self) -> None:
        pass

    def ask(self, query: str, context: Context) -> Response:
        found = self._function(query, context)
        return found if isinstance(found, Response) else Response(results=[{"doc_id": one} for one in found])

    def versions(self) -> Mapping[str, str]:
        return {}

    def facts(self) -> Mapping[str, Any]:
        return {}

    def teardown(self) -> None:
        pass


def read_target(given: str | object, surroundings: Surroundings) -> Target:
    """Return the target for ``module:attr``, or for a function of a question and its context."""
    if not isinstance(given, str):
        return Target(name=getattr(given, "__qualname__", type(given).__name__), sha256="", system=_Function(given))  # type: ignore[arg-type]
    found = imported(given, surroundings.folder)
    source = source_of(given, surroundings.folder)
    digest = hashlib.sha256(source.read_bytes()).hexdigest() if source else ""
    return Target(name=given, sha256=digest, system=_Function(found))  # type: ignore[arg-type]
