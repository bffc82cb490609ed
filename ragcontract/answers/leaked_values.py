"""Personal data and keys that an answer must not have: where they are, without saying what they are.

What reports say of them never has the values: they are masked as they are before a text is stored.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from ragcontract.answers.personal_data import KINDS
from ragcontract.core import bounds

_MARK = re.compile(r"\[(email|phone|card|iban|key)\]")


class Leak(Struct, frozen=True):
    """A value of a kind, in a text in which all values are masked."""

    kind: str
    line: int | None  # None where values cover several lines
    masked: str
    start: int
    end: int


def masked(text: str, kinds: Collection[str] = frozenset(KINDS)) -> str:
    """Return a text with the values of kinds as the kind's name in brackets."""
    for kind, redact in KINDS.items():
        if kind in kinds:
            text = redact(text)
    return text


def masked_json(value: Any) -> Any:
    """Return decoded JSON with all values in its texts masked."""
    if isinstance(value, str):
        return masked(value)
    if isinstance(value, list | tuple):
        return [masked_json(inner) for inner in value]
    if isinstance(value, dict):
        return {masked(str(name)): masked_json(inner) for name, inner in value.items()}
    return value


def leaks(text: str, kinds: Collection[str], allowed: Sequence[str] = ()) -> Iterator[Leak]:
    """Yield the values of kinds in a text, but for those that are allowed, in their order."""
    plain = _without(_unmarked(text), allowed)
    of_kinds = masked(plain, kinds)
    if of_kinds == plain:
        return
    whole = masked(of_kinds)  # of kinds that nobody asked for, too, so that an excerpt has none of them
    is_exact = of_kinds.count("\n") == plain.count("\n")
    # Masking other kinds adds marks, but only of these kinds.
    line, counted = 1, 0
    for mark in _MARK.finditer(whole):
        if mark[1] in kinds:
            line, counted = line + whole.count("\n", counted, mark.start()), mark.start()
            yield Leak(mark[1], line if is_exact else None, whole, *mark.span())


def values_in(text: str) -> list[str]:
    """Return the values in a question, which an answer may repeat."""
    values: dict[str, None] = {}
    for line in _unmarked(text).splitlines():
        if len(line) <= bounds.VALUE_LINE:
            for kind in KINDS:
                values.update(dict.fromkeys(_values_of(line, kind)))
    return list(values)


def _values_of(line: str, kind: str) -> Iterator[str]:
    """Yield the values of a kind in a line: what stands between the parts that masking leaves as they are."""
    first, *parts = KINDS[kind](line).split(f"[{kind}]")
    start, before = len(first), first
    for number, part in enumerate(parts, 1):
        before += f"[{kind}]"
        end = _end_of(line, start, part, before, kind, is_last=number == len(parts))
        if end is None:
            return
        yield line[start:end]
        start, before = end + len(part), before + part


def _end_of(line: str, start: int, part: str, beginning: str, kind: str, *, is_last: bool) -> int | None:
    """Return where a value ends: before this part, and so that the line up to there is masked as it is as a whole."""
    if is_last:
        return len(line) - len(part)
    end = start
    for _ in range(bounds.VALUE_ENDS):
        end = line.find(part, end + 1)
        if end < 0:
            return None
        if KINDS[kind](line[:end]) == beginning:
            return end
    return None


def _unmarked(text: str) -> str:
    """Return a text of the same length in which no mark stands that masking did not make."""
    return _MARK.sub(lambda mark: f"({mark[1]})", text)


def _without(text: str, allowed: Iterable[str]) -> str:
    """Return a text of the same length without allowed values; a value is not part of a longer one."""
    for value in allowed:
        if value.strip():
            pattern = rf"(?<![\w.+-])(?<![\w]@){re.escape(value)}(?![\w@-])(?!\.\w)"
            text = re.sub(pattern, lambda match: " " * len(match[0]), text, flags=re.IGNORECASE)
    return text
