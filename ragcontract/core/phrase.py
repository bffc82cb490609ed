"""Sentences with names in them, written once and rendered for every output.

A name (a document, a tag, a query) comes from a file. Each output quotes and escapes names in its own way, and escapes
the text around them as well: a report that was downloaded is not ours.
"""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import TypeAlias

from msgspec import Struct

NAMED = 5  # names that a list spells out


class Name(Struct, frozen=True, gc=False):
    """A name from a file, to be quoted by whoever prints it."""

    name: str


Phrase: TypeAlias = tuple[str | Name, ...]  # in JSON: ["no ", {"name": "doc_a"}, " in top 5"]
Quote: TypeAlias = Callable[[str], str]


def render(phrase: Phrase, name: Quote = str, text: Quote = str) -> str:
    """Return a phrase as one string, its names passed through ``name`` and the rest through ``text``.

    Texts that follow each other are one: ``"https:", "//example.org"`` is a link as much as the whole is.
    """
    parts: list[str] = []
    for is_name, several in groupby(phrase, lambda part: isinstance(part, Name)):
        if is_name:
            parts += [name(part.name) for part in several if isinstance(part, Name)]
        else:
            parts.append(text("".join(part for part in several if isinstance(part, str))))
    return "".join(parts)


def listed(names: Sequence[str], conjunction: str) -> Phrase:
    """Return ``a, b and c``; of a long list the first five names and a count."""
    items: list[str | Name] = [Name(name) for name in names[:NAMED]]
    if len(names) > NAMED:
        items.append(f"{len(names) - NAMED} more")
    phrase: list[str | Name] = []
    for number, item in enumerate(items):
        if number:
            phrase.append(f" {conjunction} " if number == len(items) - 1 else ", ")
        phrase.append(item)
    return tuple(phrase)
