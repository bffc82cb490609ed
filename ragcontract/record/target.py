"""Reads TARGET: what is recorded, as ``module:attribute``, ``file.py:attribute``, a YAML file, or a Python object."""

import hashlib
import inspect
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.record.adapters.python import python_code
from ragcontract.record.adapters.user_code import source_of
from ragcontract.record.git_commit import refuse_changed_by_others
from ragcontract.record.interface import Context, Response, Surroundings, System
from ragcontract.record.target_file import TargetFile, read_target_file
from ragcontract.record.target_registry import AROUND, KINDS, Modules, around, kind

YAML = (".yml", ".yaml")


class Target(Struct, frozen=True, kw_only=True):
    """What is recorded: its name, a digest of the files that say what it is, and the system.

    The digest differs from that of an earlier version of the target. It is empty if no file is known.
    """

    name: str
    sha256: str
    system: System
    files: tuple[Path, ...] = ()


def read_target(
    given: object, surroundings: Surroundings, *, kinds: Modules = KINDS, around: Modules = AROUND
) -> Target:
    """Return the target that a text or an object names; raises InputError if it cannot be recorded.

    A text that ends in ``.yml`` or ``.yaml`` is a file; every other one names an attribute of a module or a file of
    Python, after a colon. Paths in a file are relative to its folder.
    """
    if not isinstance(given, str | os.PathLike):
        return _of_object(given, surroundings)
    text = os.fspath(given)
    if text.endswith(YAML):
        return _of_file(text, surroundings, kinds, around)
    folder = surroundings.folder.absolute()  # before code is imported that may change the current one
    system = python_code.system(python_code.Options(object=text), surroundings)
    return _target(text, system, _files([], [text], folder))


def _of_object(given: object, surroundings: Surroundings) -> Target:
    name = python_code.name_of(given)
    if surroundings.isolate:
        raise InputError([f"{name}: an object has no process of its own; name it, as in my_app.search:retrieve"])
    made = given if inspect.isroutine(given) or isinstance(given, type) else type(given)
    try:
        files = [Path(inspect.getfile(made))]
    except (TypeError, OSError):
        files = []
    return _target(name, python_code.of_object(given, surroundings), files)


def _of_file(path: str, surroundings: Surroundings, kinds: Modules, around_: Modules) -> Target:
    file = read_target_file(path, surroundings.secrets, kinds=kinds, around=around_)
    refuse_changed_by_others(path, file.data, surroundings.environ)
    if surroundings.isolate and file.kind != "python":
        raise InputError([f"{path}: --isolate is for a target of Python; this one is {file.kind}"])
    here = replace(surroundings, folder=surroundings.folder / Path(path).parent)
    absolute, folder = Path(path).absolute(), here.folder.absolute()
    try:
        system = kind(file.kind, kinds).system(file.options, here)
        for name, options in file.around.items():
            system = around(name, around_).around(options, system, here)
    except InputError as error:
        raise InputError([f"{path}: {problem}" for problem in error.problems], more=error.more) from error
    if file.versions:
        system = _Versioned(system, file)
    texts = list(_texts(file.options))
    return _target(path, system, _files([absolute], texts, folder))


class _Versioned:
    """A system with versions that its file states, above what it says of itself."""

    def __init__(self, system: System, file: TargetFile) -> None:
        self._system = system
        self._versions = file.versions
        self.concurrency = system.concurrency

    def setup(self) -> None:
        self._system.setup()

    def ask(self, query: str, context: Context) -> Response:
        return self._system.ask(query, context)

    def versions(self) -> Mapping[str, str]:
        return {**self._system.versions(), **self._versions}

    def facts(self) -> Mapping[str, Any]:
        return self._system.facts()

    def teardown(self) -> None:
        self._system.teardown()


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts in the options of a target."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Struct):
        for name in value.__struct_fields__:
            yield from _texts(getattr(value, name))
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)


def _files(files: list[Path], texts: list[str], folder: Path) -> list[Path]:
    """Return files, and those that texts name: a file, or code as ``module:attribute``."""
    named = [source_of(text, folder) or folder / text for text in texts if len(text) <= bounds.KEY and "\0" not in text]
    return list(dict.fromkeys([*files, *named]))


def _target(name: str, system: System, files: list[Path]) -> Target:
    """Return the target with one digest of all of the files that exist."""
    digests: dict[Path, str] = {}
    for path in files:
        with suppress(OSError):  # a name that no file can have
            if path.is_file() and path.stat().st_size <= bounds.TARGET_SOURCE:
                digests[path] = hashlib.sha256(path.read_bytes()).hexdigest()
    sha256 = hashlib.sha256("".join(digests.values()).encode()).hexdigest() if digests else ""
    return Target(name=name, sha256=sha256, system=system, files=tuple(digests))
