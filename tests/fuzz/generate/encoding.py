"""Decodes and encodes the files of a case by their names, without refusing what a strict parser would."""

import json
from typing import Any

import yaml

LINES = (".jsonl", ".ndjson")
DEEPEST = 100  # blanks
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def encode(name: str, value: Any, *, ascii_only: bool = False) -> bytes:
    """Return a value as the content of a file of this name: JSON lines, JSON or YAML."""
    if name.endswith(LINES) and isinstance(value, list):
        text = "".join(_json(row, ascii_only=ascii_only) + "\n" for row in value)
    elif name.endswith((".yml", ".yaml")):
        text = _yaml(value).replace("\x7f", "\\x7f")  # which YAML takes only escaped
    else:
        text = _json(value, ascii_only=ascii_only) + "\n"
    return text.encode(errors="surrogatepass")


def decode(name: str, data: bytes) -> Any:
    """Return the value of a file that :func:`encode` can write; raises ValueError."""
    try:
        text = data.decode()
        if name.endswith(LINES):
            return [json.loads(line) for line in text.split("\n") if line.strip()]
        if name.endswith((".yml", ".yaml")):
            return yaml.load(text, Loader=LOADER)
        return json.loads(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(str(error)) from error


def _json(value: Any, *, ascii_only: bool) -> str:
    return json.dumps(value, ensure_ascii=ascii_only, default=str)


def _yaml(value: Any, indent: str = "") -> str:
    """Return YAML in block style; texts are quoted as in JSON, which YAML reads, too."""
    if isinstance(value, dict) and value:
        return "".join(
            f"{indent}{_json(str(key), ascii_only=False)}:{_inner(one, indent)}" for key, one in value.items()
        )
    if isinstance(value, list) and value:
        return "".join(f"{indent}-{_inner(one, indent)}" for one in value)
    return f"{indent}{_json(value, ascii_only=False)}\n"


def _inner(value: Any, indent: str) -> str:
    nested = isinstance(value, dict | list) and value and len(indent) < DEEPEST  # deeper, in one line as JSON
    return "\n" + _yaml(value, indent + "  ") if nested else f" {_json(value, ascii_only=False)}\n"
