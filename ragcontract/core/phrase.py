"""Messages that contain names, written once and rendered for each output.

A name (of a document, a tag or a query) comes from a file. Each output quotes and escapes names in its own way. It also
escapes the text around them, because a downloaded report is untrusted input.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

from ragcontract.core import bounds


class Name(Struct, frozen=True, gc=False, omit_defaults=True):
    """A name or a short text from a file; each output quotes it in its own way."""

    name: str
    said: Annotated[
        bool, Meta(description="Whether it is part of an answer or a document, which `--no-answers` leaves out.")
    ] = False
    quoted: Annotated[
        bool, Meta(description="Whether it is in quotation marks in outputs that have no style for names.")
    ] = False


Phrase: TypeAlias = tuple[str | Name, ...]  # in JSON: ["no ", {"name": "doc_a"}, " in top 5"]
Quote: TypeAlias = Callable[[str], str]


def render(phrase: Phrase, name: Quote = str, text: Quote = str, *, marks: str = '"') -> str:
    """Return a phrase as one string, with names passed through ``name`` and all other text through ``text``.

    Quoted words are put in ``marks``. Adjacent text parts are joined before they are escaped, because a harmful
    sequence may be split across two parts.
    """
    rendered: list[str] = []
    plain = ""
    for part in phrase:
        if isinstance(part, Name):
            shown = f"{marks}{name(part.name)}{marks}" if part.quoted else name(part.name)
            rendered += [text(plain), shown] if plain else [shown]
            plain = ""
        else:
            plain += part
    return "".join([*rendered, text(plain)] if plain else rendered)


def shortened(phrase: Phrase, length: int, of_name: int) -> Phrase:
    """Cut a phrase to ``length`` characters, with an ellipsis at the end; ``of_name`` are shown of each name."""
    left = length
    for number, part in enumerate(phrase):
        left -= min(len(part.name), of_name) + 1 if isinstance(part, Name) else len(part)
        if left < 0:
            return (*phrase[:number], "…" if isinstance(part, Name) else f"{part[: left - 1]}…")
    return phrase


def joined(phrases: Iterable[Iterable[str | Name]], more: int = 0) -> Phrase:
    """Return phrases with commas between them, followed by ``3 more`` if ``more`` is 3 and by nothing if it is 0."""
    shown = [*phrases, *([[f"{more:,} more"]] if more > 0 else [])]
    return tuple([part for number, phrase in enumerate(shown) for part in ([", "] if number else []) + [*phrase]])


def listed(names: Sequence[str], conjunction: str) -> Phrase:
    """Return names as ``a, b and c``. Of a long list, return the first five names and the number of the others."""
    items: list[str | Name] = [Name(name) for name in names[: bounds.LISTED]]
    if len(names) > bounds.LISTED:
        items.append(f"{len(names) - bounds.LISTED:,} more")
    phrase: list[str | Name] = []
    for number, item in enumerate(items):
        if number:
            phrase.append(f" {conjunction} " if number == len(items) - 1 else ", ")
        phrase.append(item)
    return tuple(phrase)


def excerpt(text: str, start: int = 0, end: int = 0) -> Name:
    """Return the part of an answer around ``text[start:end]``, with ellipses where it was cut.

    It has at most ``bounds.EXCERPT`` characters and one line; of a longer span, it is the beginning.
    """
    room = bounds.EXCERPT if len(text) <= bounds.EXCERPT else bounds.EXCERPT - 2  # for the ellipses
    length = min(max(end - start, 0), room)
    first = max(0, min(start - (room - length) // 2, len(text) - room))
    last = min(len(text), first + room)
    shown = " ".join(text[first:last].split())
    return Name(f"{'…' if first else ''}{shown}{'…' if last < len(text) else ''}", said=True, quoted=True)
