"""``ragcontract.yml``: the limits. Read through YAML's node tree, so that every message can name a line."""

import re
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from ragcontract.inputs.diagnostics import Diagnostics
from ragcontract.inputs.files import InputFile
from ragcontract.inputs.ids import Rank
from ragcontract.inputs.schema import dotted, misfits
from ragcontract.model import SourceFile

DEFAULT_K = 5
MAX_BYTES = 1 << 20

Fraction = Annotated[float, Meta(ge=0, le=1, title="a fraction from 0 to 1, as 0.10")]
Percentage = Annotated[
    str, Meta(pattern=r"^(100(\.0+)?|[0-9]{1,2}(\.[0-9]+)?) ?%$", title='a percentage of the baseline, as "10%"')
]
Drop = Fraction | Percentage


class FailOn(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far a metric may fall below the baseline: absolute as 0.10, or of the baseline's value as "10%"."""

    mrr_drop_gt: Drop | None = None
    recall_drop_gt: Drop | None = None
    precision_drop_gt: Drop | None = None
    hitrate_drop_gt: Drop | None = None


class Minimums(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a metric must reach, whatever the baseline was."""

    mrr_at_k: Fraction | None = None
    recall_at_k: Fraction | None = None
    precision_at_k: Fraction | None = None
    hitrate_at_k: Fraction | None = None


class PerQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which of the golden queries' own rules count."""

    enforce_must_rank_at_most: bool = True
    enforce_must_include: bool = True
    enforce_forbidden_docs: bool = True
    forbidden_within: Annotated[
        Rank | None, Meta(description="Look for forbidden documents in the first results only; in all by default.")
    ] = None


class Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole file; every key is optional."""

    k: Annotated[Rank, Meta(description="The cut-off: how many results count.")] = DEFAULT_K
    fail_on: FailOn = FailOn()
    minimums: Minimums = Minimums()
    per_query: PerQuery = PerQuery()
    rank_by: Annotated[
        Literal["results", "documents"],
        Meta(description="Count results as exported, or each document's first result only."),
    ] = "results"
    missing_queries: Annotated[
        Literal["error", "zero"],
        Meta(description="A golden query without a run row: refuse the run, or score it 0."),
    ] = "error"


class LoadedConfig(Struct, frozen=True, kw_only=True):
    """The configuration and where it came from. ``lines`` maps ``fail_on.mrr_drop_gt`` to its 1-based line."""

    config: Config = Config()
    files: list[SourceFile] = []
    lines: dict[str, int] = {}


def read_config(path: str, diagnostics: Diagnostics) -> LoadedConfig:
    """Read the configuration file; the defaults if it cannot be read, which the diagnostics then know."""
    try:
        file = InputFile(path)
        try:
            data = file.stream.read(MAX_BYTES + 1)
            files = [SourceFile(path=path, sha256=file.sha256())]
        finally:
            file.close()
    except (OSError, EOFError) as error:
        diagnostics.problem(path, f"cannot be read ({error})")
        return LoadedConfig()
    if len(data) > MAX_BYTES:
        diagnostics.problem(path, "is larger than 1 MiB, which no configuration is")
        return LoadedConfig()
    lines: dict[tuple[str | int, ...], int] = {}
    try:
        value = _load_yaml(data, lines)
        config = msgspec.convert(value, Config)
    except _YamlError as error:
        diagnostics.problem(f"{path}:{error.line}", error.message)
    except msgspec.ValidationError as error:
        found = misfits(value, Config)
        for misfit in found:
            line = next(
                (lines[misfit.path[:n]] for n in range(len(misfit.path), -1, -1) if misfit.path[:n] in lines), 1
            )
            diagnostics.problem(
                f"{path}:{line}: {dotted(misfit.path)}" if misfit.path else f"{path}:{line}", misfit.message
            )
        if not found:
            diagnostics.problem(path, str(error))
    else:
        return LoadedConfig(config=config, files=files, lines={dotted(key): line for key, line in lines.items()})
    return LoadedConfig()


class _YamlError(Exception):
    """What is wrong with the YAML itself."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.message = message


def _load_yaml(data: bytes, lines: dict[tuple[str | int, ...], int]) -> Any:
    """Return the document's value, typed by :func:`_scalar`, and fill ``lines`` with the line of every key."""
    import yaml  # here, so that a check without a configuration does not load it

    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise _YamlError(line, f"is not UTF-8 (byte 0x{data[error.start]:02x}); save the file as UTF-8") from error
    if not text.strip():
        raise _YamlError(1, "is empty; write at least `k: 5`, or remove the file to use the defaults")
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        message = " ".join(part for part in (error.problem, error.context) if part)
        raise _YamlError(mark.line + 1 if mark else 1, f"is not YAML: {message}") from error
    except yaml.reader.ReaderError as error:
        line = text[: error.position].count("\n") + 1
        raise _YamlError(line, f"has a character that YAML does not allow ({error.character!r})") from error
    except RecursionError as error:
        raise _YamlError(1, "is nested too deeply") from error
    if root is None:
        return {}
    if not isinstance(root, yaml.MappingNode):
        raise _YamlError(root.start_mark.line + 1, "is not a mapping of keys to values, as in `k: 5`")
    return _Tree(lines).value(root, ())


class _Tree:
    """Walks YAML nodes. A node that is met twice is an alias: refused, so that none can explode."""

    def __init__(self, lines: dict[tuple[str | int, ...], int]) -> None:
        self._lines = lines
        self._met: set[int] = set()

    def value(self, node: Any, path: tuple[str | int, ...]) -> Any:
        line = node.start_mark.line + 1
        if id(node) in self._met:
            raise _YamlError(line, f"{dotted(path)}: is an alias (*name), which is not read here; write the value out")
        self._met.add(id(node))
        if not node.tag.startswith("tag:yaml.org,2002:") or "python" in node.tag:
            raise _YamlError(line, f"{dotted(path)}: has a tag ({node.tag}), which is not read here")
        if node.id == "mapping":
            return self._mapping(node, path)
        if node.id == "sequence":
            return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
        return _scalar(node)

    def _mapping(self, node: Any, path: tuple[str | int, ...]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        first: dict[str, int] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if key_node.id != "scalar":
                raise _YamlError(line, f"{dotted(path)}: a key must be plain text")
            key = str(key_node.value)
            here = (*path, key)
            if key in first:
                raise _YamlError(line, f"{dotted(here)}: stands here again; it is first in line {first[key]}")
            first[key] = self._lines[here] = line
            value = self.value(value_node, here)
            if value is not None:  # null means absent
                found[key] = value
        return found


def _scalar(node: Any) -> str | int | float | bool | None:
    """Type a scalar as YAML 1.2 does: PyYAML itself reads 1e-2 as text, 010 as 8 and `no` as false."""
    text = str(node.value)
    if node.style is not None:
        return text
    if text in {"", "~", "null", "Null", "NULL"}:
        return None
    if text in {"true", "True", "TRUE", "false", "False", "FALSE"}:
        return text.lower() == "true"
    if re.fullmatch(r"[-+]?[0-9]{1,18}", text):
        return int(text)
    if re.fullmatch(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", text):
        number = float(text)
        return number if abs(number) != float("inf") else text
    return text
