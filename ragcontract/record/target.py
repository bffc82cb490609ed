"""Reads what is to be recorded: a Python object, or the name of one."""

import hashlib
from typing import cast

from msgspec import Struct

from ragcontract.record.system import Surroundings, System
from ragcontract.record.user_code import imported, source_of


class Target(Struct, frozen=True, kw_only=True):
    """A system, and what it is known by: ``sha256`` is that of the file that names or has it."""

    name: str
    sha256: str
    system: System


def read_target(given: str | object, surroundings: Surroundings) -> Target:
    """Return the target for ``module:attr``, or for an object that is a System."""
    if not isinstance(given, str):
        return Target(name=type(given).__name__, sha256="", system=cast("System", given))
    found = imported(given, surroundings.folder)
    source = source_of(given, surroundings.folder)
    digest = hashlib.sha256(source.read_bytes()).hexdigest() if source else ""
    return Target(name=given, sha256=digest, system=cast("System", found() if isinstance(found, type) else found))
