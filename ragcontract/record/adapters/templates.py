"""Fill in the placeholders of a target file for every question: ``{query}``, ``{top}``, ``${secret:NAME}``.

What is filled in is not read as a template again, so a question may contain anything.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from ragcontract.net.secrets import PLACEHOLDER, Secrets
from ragcontract.record.interface import CallFailed, Context

_PART = re.compile(rf"{PLACEHOLDER.pattern}" r"|\{\{([A-Za-z_][\w.-]*)\}\}|\{([A-Za-z_][\w.-]*)\}")
PLACEHOLDERS = ("query", "top", "query_id", "messages", "history", "repeat", "attempt")
METADATA = "metadata."
ASKING = ("query", "messages")  # what stands for the question; metadata may as well
SAME = (
    "no placeholder stands for the question, so all questions would be the same; write {query}, or {messages} for the "
    "conversation up to it, where it belongs"
)
# As in Jinja and other languages of templates; a name that is no placeholder may be of any language in braces.
_KNOWN = rf"(?:{'|'.join(PLACEHOLDERS)}|metadata\.[\w.-]+)"
_WITH_BLANKS = re.compile(rf"\{{(?:\s+({_KNOWN})\s*|({_KNOWN})\s+)\}}")


class Placeholder:
    """A name that stands for a value."""

    def __init__(self, name: str) -> None:
        self.name = name

    def of(self, values: Mapping[str, Any]) -> Any:
        """Return the value; raises CallFailed if it is metadata that the golden row does not have."""
        if not self.name.startswith(METADATA):
            return values[self.name]
        field = self.name.removeprefix(METADATA)
        if field not in values["metadata"]:
            raise CallFailed("no_metadata", f"the golden row has no {self.name}, for which {{{self.name}}} stands")
        return values["metadata"][field]


class Template:
    """A value with placeholders in its texts; ``problems`` says what is wrong with it."""

    def __init__(self, value: Any, secrets: Secrets, *, at: str) -> None:
        """Read a value; ``at`` is its place in the target file."""
        self.problems: list[str] = []
        self._secrets = secrets
        self._names: set[str] = set()
        self._value = self._read(value, at)
        asks = any(name in ASKING or name.startswith(METADATA) for name in self._names)
        self.is_the_same = not asks and not self.problems  # for all questions

    def filled(self, values: Mapping[str, Any]) -> Any:
        """Return the value for a question. A text that is only a placeholder becomes a value of that type."""
        return _filled(self._value, values)

    def _read(self, value: Any, at: str) -> Any:
        if isinstance(value, Mapping):
            return {str(name): self._read(inner, f"{at}.{name}") for name, inner in value.items()}
        if isinstance(value, list):
            return [self._read(inner, f"{at}[{number}]") for number, inner in enumerate(value)]
        return _Text(self._parts(value, at)) if isinstance(value, str) else value

    def _parts(self, text: str, at: str) -> list[str | Placeholder]:
        parts: list[str | Placeholder] = []
        end = 0
        for match in _PART.finditer(text):
            parts.append(text[end : match.start()])
            end = match.end()
            secret, literal, name = match.groups()
            if secret:
                parts.append(self._secret(match[0], at))
            elif literal:
                parts.append(match[0][1:-1])
            else:
                parts.append(self._placeholder(name, at))
        parts.append(text[end:])
        for match in _WITH_BLANKS.finditer(text):
            name = match[1] or match[2]
            advice = f"write {{{name}}}, or {{{{{name}}}}} for the name in braces"
            self.problems.append(f"{at}: {match[0]} has blanks, so it is not a placeholder; {advice}")
        if "${secret" in _PART.sub("", text):
            self.problems.append(f"{at}: a secret is written ${{secret:NAME}}, with letters, digits and _ in its name")
        return [part for part in parts if part != ""]

    def _secret(self, text: str, at: str) -> str:
        unknown = self._secrets.unknown_in(text)
        if unknown:
            self.problems.append(f"{at}: {text} is not given on the command line; add --secret {unknown[0]}")
            return ""
        return self._secrets.filled(text)

    def _placeholder(self, name: str, at: str) -> Placeholder:
        if name not in PLACEHOLDERS and not name.startswith(METADATA):
            known = ", ".join(f"{{{known}}}" for known in (*PLACEHOLDERS, f"{METADATA}NAME"))
            self.problems.append(
                f"{at}: {{{name}}} is not a placeholder, which are {known}; write {{{{{name}}}}} for these characters"
            )
        self._names.add(name)
        return Placeholder(name)


class _Text:
    """The parts of a text."""

    def __init__(self, parts: list[str | Placeholder]) -> None:
        self.parts = parts


def _filled(value: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(value, _Text):
        if len(value.parts) == 1 and isinstance(value.parts[0], Placeholder):
            return value.parts[0].of(values)
        return "".join(part if isinstance(part, str) else _text(part.of(values)) for part in value.parts)
    if isinstance(value, dict):
        return {name: _filled(inner, values) for name, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, values) for inner in value]
    return value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def values_of(query: str, context: Context) -> dict[str, Any]:
    """Return the values of the placeholders.

    ``messages`` is the conversation with this question as its last message, ``history`` the conversation before it.
    """
    return {
        "query": query,
        "top": context.top,
        "query_id": context.query_id,
        "history": [dict(message) for message in context.messages],
        "messages": [*map(dict, context.messages), {"role": "user", "content": query}],
        "repeat": context.repeat,
        "attempt": context.attempt,
        "metadata": context.metadata,
    }
