"""Read TARGET, the system to record.

It is ``module:attribute``, ``file.py:attribute``, a YAML file or a Python object. A YAML file such as ``record.yml``
names one kind of target and what goes around it. Every problem in it is reported with its line.
"""

import hashlib
import inspect
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.lines import Line
from ragcontract.core.phrase import Location
from ragcontract.core.run import VERSION_FIELDS
from ragcontract.core.safe_text import encodable
from ragcontract.files.opening import READ_ERRORS, read_problem, read_within
from ragcontract.files.paths import not_readable
from ragcontract.files.problems import Problem, Problems
from ragcontract.files.schema import Mismatch, json_schema, mismatches
from ragcontract.net.secrets import Secrets
from ragcontract.record.adapters import python_code
from ragcontract.record.adapters.user_code import source_of
from ragcontract.record.interface import Surroundings, System, Wrapping
from ragcontract.record.sources import refuse_changed_by_others
from ragcontract.record.target_registry import AROUND, KINDS, Modules, module

YAML = (".yml", ".yaml")
_YAML_TREE: Line[Any] = Line(home="ragcontract.files.yaml_tree")  # PyYAML is imported only if there is a file

Keys = tuple[str | int, ...]
_Version = Annotated[str, Meta(min_length=1, max_length=bounds.ID, title="text that is not empty; quote numbers")]


class Versions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Versions to write into every row, above what the system says of itself."""

    embedding_model: _Version | None = None
    index_version: _Version | None = None
    chunking_version: _Version | None = None
    retriever_version: _Version | None = None
    llm_model: _Version | None = None
    prompt_version: _Version | None = None


class TargetFile(Struct, frozen=True, kw_only=True):
    """A target file that was read."""

    path: str
    data: bytes  # the content of the file
    kind: str  # of the target, as in `KINDS`
    options: Any  # of that kind
    around: Mapping[str, Any] = {}  # the options of what goes around the target, by the keys of `AROUND`
    versions: Mapping[str, str] = {}  # by the fields of run rows


class Target(Struct, frozen=True, kw_only=True):
    """What is recorded: a system, and the files that define it."""

    name: str
    sha256: str  # of these files: another version of the target has another digest; empty if no file is known
    system: System
    files: tuple[Path, ...] = ()


def read_target(
    target: object, surroundings: Surroundings, *, kinds: Modules = KINDS, around: Modules = AROUND
) -> Target:
    """Return the target for a text or an object; raises InputError if it cannot be recorded.

    A text that ends in ``.yml`` or ``.yaml`` is a target file, and paths in it are relative to its folder. Any other
    text names an attribute of a module or of a Python file, after a colon.
    """
    if not isinstance(target, str | os.PathLike):
        return _of_object(target, surroundings)
    text = os.fspath(target)
    if text.startswith(("http://", "https://")):
        raise InputError(["an address is no target; write the service into a file, such as http.yml: `http: {url: …}`"])
    if text.endswith(YAML):
        return _of_file(text, surroundings, kinds, around)
    folder = surroundings.folder.absolute()  # before code is imported that may change the current one
    system = python_code.system(python_code.PythonOptions(object=text), surroundings)
    return _target(text, system, _files([], [text], folder))


def read_target_file(path: str, secrets: Secrets, *, kinds: Modules = KINDS, around: Modules = AROUND) -> TargetFile:
    """Read a target file; raises InputError with everything that is wrong with it."""
    data = _bytes_of(path)
    if not data.strip():
        raise InputError([str(Problem(path, f"is empty; write one of {', '.join(kinds)}, and what it needs"))])
    yaml_tree = _YAML_TREE.load()
    document = yaml_tree.load(data, texts=VERSION_FIELDS)
    problems = [(problem.line, Mismatch(problem.path, problem.message)) for problem in document.problems]
    value = yaml_tree.without_nulls(document.value)
    if value is not None:
        wrong = [*_kinds(value, kinds), *_unknown_secrets(value, secrets)]
        problems += [(document.line(mismatch.path), mismatch) for mismatch in wrong]
        known = {**kinds, **around}
        if value != document.value:
            unknown = _unknown(document.value, record_of(known, kinds, around))
            problems += [(document.line(mismatch.path), mismatch) for mismatch in unknown]
        record = record_of({name: known[name] for name in known if name in value}, kinds, around)
        try:
            made = msgspec.convert(value, record)
        except msgspec.ValidationError as error:
            wrong = mismatches(value, _widest_record(record, known, kinds, around)) or [Mismatch((), str(error))]
            problems += [(document.line(mismatch.path), mismatch) for mismatch in wrong]
    if problems:
        problems.sort(key=lambda problem: problem[0])
        lines = [Problem.of(Location(encodable(path), line), mismatch) for line, mismatch in dict.fromkeys(problems)]
        sum((Problems(problems=(str(line),)) for line in lines), Problems()).raise_if_any()
    name = next(name for name in kinds if name in value)
    stated = getattr(made, "versions", None)
    versions = msgspec.structs.asdict(stated) if stated is not None else {}
    return TargetFile(
        path=path,
        data=data,
        kind=name,
        options=getattr(made, name),
        around={name: getattr(made, name) for name in around if name in known and name in value},
        versions={name: version for name, version in versions.items() if version is not None},
    )


def schema() -> dict[str, Any]:
    """Return the JSON Schema of target files; ``record`` is stricter, because it knows which options fit together."""
    modules = {**KINDS, **AROUND}
    made = json_schema(record_of(modules, KINDS, AROUND), null_is_absent=True)
    definitions = made["$defs"]
    for name in modules:  # readers of the file know the keys, not the records
        definitions[name] = {**definitions.pop(_options(name, KINDS, AROUND).__name__), "title": name}
        definitions["RecordFile"]["properties"][name]["anyOf"][0]["$ref"] = f"#/$defs/{name}"
    definitions["RecordFile"]["oneOf"] = [{"required": [name]} for name in KINDS]
    return made


def _widest_record(record: type[Struct], known: Modules, kinds: Modules, around: Modules) -> type[Struct]:
    """Return the record that knows all keys, to suggest from; ``record`` if an extra of another kind is missing."""
    try:
        return record_of(known, kinds, around)
    except InputError:
        return record


def record_of(modules: Modules, kinds: Modules, around_: Modules) -> type[Struct]:
    """Return the record type of a file with these keys and ``versions``; imports only the modules of these keys."""
    fields: list[Any] = []
    # Null is absent: None is the default, but not among the types, since that would make messages about them vague.
    for name in modules:
        options = _options(name, kinds, around_)
        fields.append((name, Annotated[options, Meta(description=options.__doc__ or "")], None))
    fields.append(("versions", Annotated[Versions, Meta(description="Versions for every row.")], None))
    doc = {"__doc__": "The file: one kind of target, and what goes around it."}
    return msgspec.defstruct("RecordFile", fields, namespace=doc, frozen=True, kw_only=True, forbid_unknown_fields=True)


def _options(name: str, kinds: Modules, around_: Modules) -> type[Struct]:
    options: type[Struct] = module(name, kinds if name in kinds else around_).OPTIONS
    return options


def _of_object(target: object, surroundings: Surroundings) -> Target:
    name = python_code.name_of(target)
    if surroundings.isolate:
        raise InputError([f"{name}: an object has no process of its own; name it, as in my_app.search:retrieve"])
    made = target if inspect.isroutine(target) or isinstance(target, type) else type(target)
    try:
        files = [Path(inspect.getfile(made))]
    except (TypeError, OSError):
        files = []
    return _target(name, python_code.of_object(target, surroundings), files)


def _of_file(path: str, surroundings: Surroundings, kinds: Modules, around_: Modules) -> Target:
    file = read_target_file(path, surroundings.secrets, kinds=kinds, around=around_)
    refuse_changed_by_others(path, file.data, surroundings.environ)
    if surroundings.isolate and file.kind != "python":
        raise InputError([f"{path}: --isolate is for a target of Python; this one is {file.kind}"])
    here = replace(surroundings, folder=surroundings.folder / Path(path).parent)
    absolute, folder = Path(path).absolute(), here.folder.absolute()
    try:
        system: System = module(file.kind, kinds).system(file.options, here)
        for name, options in file.around.items():
            system = module(name, around_).around(options, system, here)
    except InputError as error:
        raise InputError([f"{path}: {problem}" for problem in error.problems], more=error.more) from error
    if file.versions:
        system = _Versioned(system, file)
    texts = list(_texts(file.options))
    return _target(path, system, _files([absolute], texts, folder))


class _Versioned(Wrapping):
    """A system with the versions that its target file states; they win over those that the system reports."""

    def __init__(self, system: System, file: TargetFile) -> None:
        super().__init__(system)
        self._stated = file.versions

    def versions(self) -> Mapping[str, str]:
        return {**super().versions(), **self._stated}


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
    """Return these files and those that the texts name, as a path or as ``module:attribute``."""
    named = [source_of(text, folder) or folder / text for text in texts if len(text) <= bounds.KEY and "\0" not in text]
    return list(dict.fromkeys([*files, *named]))


def _target(name: str, system: System, files: list[Path]) -> Target:
    """Return the target with one digest over those of its files that exist."""
    digests: dict[Path, str] = {}
    for path in files:
        with suppress(OSError):  # a name that no file can have
            if path.is_file() and path.stat().st_size <= bounds.TARGET_SOURCE:
                digests[path] = hashlib.sha256(path.read_bytes()).hexdigest()
    sha256 = hashlib.sha256("".join(digests.values()).encode()).hexdigest() if digests else ""
    return Target(name=name, sha256=sha256, system=system, files=tuple(digests))


def _bytes_of(path: str) -> bytes:
    if problem := not_readable(path):
        raise InputError([str(Problem(path, problem))])
    try:
        return read_within(bounds.CONFIG, path)[0]
    except READ_ERRORS as error:
        raise InputError([str(Problem(path, read_problem(error)))]) from error


def _kinds(value: Mapping[str, Any], kinds: Modules) -> Iterator[Mismatch]:
    """Yield what is wrong unless the file has exactly one kind of target."""
    named = [name for name in value if name in kinds]
    if not named:
        yield Mismatch((), f"names no target; write one of {', '.join(kinds)}")
    for name in named[1:]:
        yield Mismatch((name,), f"is a second target beside {named[0]}; write a file for each")


def _unknown_secrets(value: Any, secrets: Secrets, path: Keys = ()) -> Iterator[Mismatch]:
    """Yield the secrets that the file uses and the command line does not name."""
    if isinstance(value, str):
        for name in secrets.unknown_in(value):
            why = f"the secret {name} is not given: add --secret {name} to the command, and the variable to its step"
            yield Mismatch(path, why)
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _unknown_secrets(inner, secrets, (*path, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _unknown_secrets(inner, secrets, (*path, index))


def _unknown(value: Any, record: type[Struct]) -> list[Mismatch]:
    """Return the unknown keys, with those that have no value: these are taken out before the file is checked."""
    return [mismatch for mismatch in mismatches(value, record) if mismatch.unknown]
