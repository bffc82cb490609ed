"""Edits the text of a configuration: adds a waiver, or sets values. Everything else in it stays, comments included.

The caller must read the result again, because not every notation of YAML is supported.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from ragcontract.core.safe_text import visible

ITEM = "  "  # the indentation of an item in a list of our own


def as_yaml(waivers: Sequence[Mapping[str, str]]) -> str:
    """Return waivers as the key ``waivers`` of a configuration."""
    return "waivers:\n" + "".join(f"{line}\n" for waiver in waivers for line in _item(waiver, len(ITEM)))


def in_braces(waiver: Mapping[str, str]) -> str:
    """Return a waiver in one line."""
    return _dumped(waiver, flow=True).strip()


def with_waiver(text: str, waiver: Mapping[str, str]) -> str | None:
    """Return the text of a configuration with one more waiver at the end of its list; None if it cannot be added."""
    newline = "\r\n" if "\r\n" in text else "\n"
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if root is None or (isinstance(root, yaml.ScalarNode) and not root.value):
        return _appended(text, as_yaml([waiver]), newline)
    if not isinstance(root, yaml.MappingNode):
        return None
    node = next((value for key, value in root.value if key.value == "waivers"), None)
    if node is None:
        return None if root.flow_style else _appended(text, as_yaml([waiver]), newline)
    if isinstance(node, yaml.ScalarNode) and not node.value:
        return _after(text, node.start_mark.index, _item(waiver, len(ITEM)), newline)
    if not isinstance(node, yaml.SequenceNode):
        return None
    if node.flow_style:
        return _in_brackets(text, node, waiver, newline)
    return _after(text, _end(node.value[-1]), _item(waiver, node.start_mark.column), newline)


def with_values(text: str, values: Mapping[str, str | Mapping[str, str]]) -> str | None:
    """Return the text with values, written as YAML, for keys and for keys of sections; None if one cannot be set."""
    for name, value in values.items():
        for key, inner in value.items() if isinstance(value, Mapping) else [("", value)]:
            try:
                edited = _with_value(text, name, key, inner)
            except yaml.YAMLError:  # an edit before this one was wrong, as after the end of a document
                return None
            if edited is None:
                return None
            text = edited
    return text


def _with_value(text: str, section: str, key: str, value: str) -> str | None:
    """Return the text with one value, of the key ``section`` itself if ``key`` is empty."""
    newline = "\r\n" if "\r\n" in text else "\n"
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if root is None or (isinstance(root, yaml.ScalarNode) and not root.value):
        node = None
    elif not isinstance(root, yaml.MappingNode) or root.flow_style:
        return None
    else:
        node = next((inner for name, inner in root.value if name.value == section), None)
    if node is None:
        return _appended(text, f"{section}:\n{ITEM}{key}: {value}\n" if key else f"{section}: {value}\n", newline)
    return _in_section(text, node, key, value, newline) if key else _replaced(text, node, value)


def _in_section(text: str, node: yaml.Node, key: str, value: str, newline: str) -> str | None:
    """Return the text with a value of a section that is there."""
    if isinstance(node, yaml.ScalarNode) and not node.value:
        return _after(text, node.start_mark.index, [f"{ITEM}{key}: {value}"], newline)
    if not isinstance(node, yaml.MappingNode):
        return None
    if there := next((inner for name, inner in node.value if name.value == key), None):
        return _replaced(text, there, value)
    if not node.flow_style:
        return _after(text, _end(node), [f"{' ' * node.start_mark.column}{key}: {value}"], newline)
    end = _end(node.value[-1][1]) if node.value else node.start_mark.index + 1
    return f"{text[:end]}{', ' if node.value else ''}{key}: {value}{text[end:]}"


def _replaced(text: str, node: yaml.Node, value: str) -> str | None:
    """Return the text with another scalar, or list in brackets, in place of a node."""
    is_block = isinstance(node, yaml.CollectionNode) and not node.flow_style
    if is_block or (isinstance(node, yaml.ScalarNode) and node.style in {"|", ">"}):
        return None
    return f"{text[: node.start_mark.index]}{value}{text[node.end_mark.index :]}"


def _dumped(waiver: Mapping[str, str], *, flow: bool = False) -> str:
    """Return a waiver as YAML, in ASCII if a value has characters that a person cannot see."""
    plain = all(visible(value) == value for value in waiver.values())
    options: dict[str, Any] = {"sort_keys": False, "width": 10**9, "default_flow_style": flow}
    return str(yaml.safe_dump(dict(waiver), allow_unicode=plain, **options))


def _item(waiver: Mapping[str, str], indent: int) -> list[str]:
    first, *others = _dumped(waiver).splitlines()
    return [f"{' ' * indent}- {first}", *(f"{' ' * indent}  {line}" for line in others)]


def _appended(text: str, addition: str, newline: str) -> str:
    gap = "" if not text or text.endswith("\n") else newline
    return text + gap + addition.replace("\n", newline)


def _end(node: yaml.Node) -> int:
    """Return the index of the end of a node's last value; a block collection itself ends after following comments."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last)
    return int(node.end_mark.index)


def _after(text: str, index: int, lines: Sequence[str], newline: str) -> str:
    """Insert lines after the line of an index; an index at the start of a line is the end of the line before."""
    if index and text[index - 1] == "\n":
        at = index
    else:
        end = text.find("\n", index)
        at = len(text) if end < 0 else end + 1
    before = text[:at] if text[:at].endswith("\n") else text[:at] + newline
    return before + "".join(line + newline for line in lines) + text[at:]


def _in_brackets(text: str, node: yaml.SequenceNode, waiver: Mapping[str, str], newline: str) -> str:
    if node.value:
        end = node.value[-1].end_mark.index
        return f"{text[:end]}, {in_braces(waiver)}{text[end:]}"
    lines = newline.join(["", *_item(waiver, len(ITEM))])
    return text[: node.start_mark.index].rstrip(" ") + lines + text[node.end_mark.index :]
