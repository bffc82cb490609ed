"""The reader for YAML, which records the line of every key and accepts only what a configuration needs.

PyYAML reads ``1e-2`` as text, ``010`` as 8 and ``no`` as false, and accepts duplicate keys. Here scalars are typed as
in the core schema of YAML 1.2, and duplicate keys, aliases, tags and lone surrogates are refused.
"""

import re
from collections.abc import Container
from contextlib import suppress
from typing import Any

import yaml
from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.phrase import FieldPath
from ragcontract.core.safe_text import encodable, shorten
from ragcontract.files.json_text import UTF16, UTF16_BOMS

TOO_DEEP = f"is nested more than {bounds.CONFIG_DEPTH} levels deep"
HALF = r"contains half of a surrogate pair (\ud800 to \udfff), which is not a character; write both halves"


class Problem(Struct, frozen=True, kw_only=True):
    """A problem with the YAML itself."""

    line: int  # from 1
    path: FieldPath = ()  # of the key, if it is about one
    message: str


class Document(Struct, frozen=True, kw_only=True):
    """A parsed document."""

    value: Any  # a key without a value has None; keys with problems are left out
    lines: dict[FieldPath, int]
    problems: list[Problem]

    def line(self, path: FieldPath) -> int:
        """Return the line of a key, or of its innermost parent that has a line."""
        return _innermost(self.lines, path)


def without_nulls(value: Any) -> Any:
    """Return a value of a document without the keys that have no value."""
    if isinstance(value, dict):
        return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [without_nulls(inner) for inner in value] if isinstance(value, list) else value


def _innermost(lines: dict[FieldPath, int], path: FieldPath) -> int:
    return next((lines[path[:n]] for n in range(len(path), 0, -1) if path[:n] in lines), 1)


def load(data: bytes, *, texts: Container[str] = ()) -> Document:
    """Parse one document, whose root must be a mapping; a document with only comments is an empty mapping.

    Scalars under a key in ``texts`` are not typed: 007 stays text there.
    """
    text, problem = _decode(data)
    if problem is None and not text.strip():
        problem = Problem(line=1, message="is empty; write at least `k: 5`, or remove the file to use the defaults")
    if problem is not None:
        return Document(value=None, lines={}, problems=[problem])
    tree = _Tree(texts)
    value: Any = None
    try:
        value = tree.root(text)
    except RecursionError:
        tree.problems.append(Problem(line=1, message=TOO_DEEP))
    except _LimitError as error:
        tree.problems.append(error.problem)
    return Document(value=value, lines=tree.lines, problems=tree.problems)


def _decode(data: bytes) -> tuple[str, Problem | None]:
    if data.startswith(UTF16_BOMS):
        return "", Problem(line=1, message=UTF16)
    try:
        return data.decode(), None
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        message = f"is not UTF-8 (byte 0x{data[error.start]:02x}); save the file as UTF-8"
        return "", Problem(line=line, message=message)


class _Loader(yaml.SafeLoader):
    """Counts the values, because PyYAML needs so much time and memory for each that a megabyte could take a minute."""

    values = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        self.values += 1
        if self.values > bounds.CONFIG_VALUES:
            message = f"has more than {bounds.CONFIG_VALUES:,} keys and values"
            raise _LimitError(self.peek_event().start_mark, message)  # type: ignore[no-untyped-call]
        return super().compose_node(parent, index)


class _LimitError(Exception):
    """The document has too many values, or is nested too deeply, from a mark on."""

    def __init__(self, mark: Any, message: str) -> None:
        super().__init__()
        self.problem = Problem(line=mark.line + 1, message=message)


class _Tree:
    """Converts YAML nodes to values. A node visited twice is an alias; refusing it prevents exponential growth."""

    def __init__(self, texts: Container[str]) -> None:
        self._texts = texts
        self.lines: dict[FieldPath, int] = {}
        self.problems: list[Problem] = []
        self._met: set[int] = set()

    def root(self, text: str) -> Any:
        try:
            node = yaml.compose(text, Loader=_Loader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            message = ", ".join(part for part in (error.context, error.problem) if part)
            return self._refuse(mark, (), f"is not YAML: {message}{_hint(message, text, mark)}")
        except yaml.reader.ReaderError as error:
            line = text[: error.position].count("\n") + 1
            code = error.character if isinstance(error.character, int) else ord(error.character)
            message = f"has a character that YAML does not allow (U+{code:04X})"
            self.problems.append(Problem(line=line, message=message))
            return None
        except (ValueError, OverflowError):  # PyYAML passes the number after a \\U to chr()
            self.problems.append(Problem(line=1, message=r"has an escape \U… that is not a character"))
            return None
        if node is None or (isinstance(node, yaml.ScalarNode) and node.style is None and _scalar(node) is None):
            return {}
        if not isinstance(node, yaml.MappingNode):
            return self._refuse(node.start_mark, (), "is not a mapping of keys to values, as in `k: 5`")
        return self._value(node, ())

    def _refuse(self, mark: Any, path: FieldPath, message: str) -> None:
        self.problems.append(Problem(line=mark.line + 1 if mark else 1, path=path, message=message))

    def _value(self, node: Any, path: FieldPath) -> Any:
        if id(node) in self._met:
            # The node of an alias has the mark of its anchor, so the line is that of the key.
            message = "is an alias (*name), which is not read here; write the value out"
            self.problems.append(Problem(line=_innermost(self.lines, path), path=path, message=message))
            return None
        self._met.add(id(node))
        if not node.tag.startswith("tag:yaml.org,2002:") or "python" in node.tag:
            tag = node.tag.replace("tag:yaml.org,2002:", "!!")
            return self._refuse(node.start_mark, path, f"has a tag ({tag}), which is not read here; leave it out")
        if len(path) > bounds.CONFIG_DEPTH:
            raise _LimitError(node.start_mark, TOO_DEEP)
        if node.id == "mapping":
            return self._mapping(node, path)
        if node.id == "sequence":
            return [self._item(item, (*path, index)) for index, item in enumerate(node.value)]
        if (text := _whole(node.value)) is None:
            self._refuse(node.start_mark, path, HALF)
            return encodable(str(node.value))  # not None, which would also be reported as a missing value
        value = _scalar(node) if node.style is None else text
        return value if value is None or not path or path[-1] not in self._texts else text

    def _item(self, node: Any, path: FieldPath) -> Any:
        if id(node) not in self._met:  # an alias has the mark of its anchor
            self.lines[path] = node.start_mark.line + 1
        return self._value(node, path)

    def _mapping(self, node: Any, path: FieldPath) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.id != "scalar":
                self._refuse(key_node.start_mark, path, "has a key that is not plain text")
                continue
            key = _whole(key_node.value)
            if key is None:
                self._refuse(key_node.start_mark, path, f"has a key that {HALF}")
                continue
            if len(key) > bounds.KEY:
                self._refuse(
                    key_node.start_mark, path, f"has a key of more than {bounds.KEY} characters: {shorten(key, 40)!r}"
                )
                continue
            here = (*path, key)
            if here in self.lines:
                self._refuse(key_node.start_mark, here, f"duplicate key, first defined at line {self.lines[here]}")
                continue
            self.lines[here] = key_node.start_mark.line + 1
            problems = len(self.problems)
            value = self._value(value_node, here)
            if value is not None or len(self.problems) == problems:
                values[key] = value
        return values


def _hint(message: str, text: str, mark: Any) -> str:
    """Return the advice on a frequent mistake, to add to PyYAML's message."""
    if r"'\t'" in message:
        return "; indent with spaces, not tabs"
    if "mapping values are not allowed" not in message:
        return ""
    for number, line in enumerate(text.splitlines()[: mark.line + 1 if mark else 0], 1):
        if match := re.match(r"\s*([A-Za-z_]\w{0,60}):[^\s:/]", line):
            return f"; write a blank after the colon of {match[1]!r} in line {number}"
    return "; indent all keys of one level by as many blanks"


def _whole(text: str) -> str | None:
    r"""Join surrogate pairs, which JSON uses for emoji: ``"\ud83d\ude00"``. Return None if one half is missing."""
    with suppress(UnicodeEncodeError):
        text.encode()
        return text  # the common case
    try:
        return text.encode("utf-16-le", errors="surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        return None


def _scalar(node: Any) -> str | int | float | bool | None:
    text = str(node.value)
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
