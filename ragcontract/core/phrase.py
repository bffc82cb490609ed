"""Messages that contain names and values, written once and rendered for each output.

A name (of a document, a tag or a query) comes from a file. Each output quotes and escapes names in its own way. It also
escapes the text around them, because a downloaded report is untrusted input. What the application or a document says
is marked as such, so that it can be left out. A message about a file knows the line, as a value until it is written.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

from ragcontract.core import bounds
from ragcontract.core.numbers import more

FieldPath: TypeAlias = tuple[str | int, ...]  # within a value: ("results", 3, "doc_id")


class Location(Struct, frozen=True, gc=False):
    """A place in a file; as text, for example ``golden.jsonl:17: relevant_doc_ids[0]``."""

    path: str
    line: int = 0  # 0 if it is not known, or if there are no lines
    field: FieldPath = ()  # within the value that begins on the line

    @classmethod
    def of_report(cls, text: str) -> "Location":
        """Return the location that a report has as text, which is of a row or a key as a whole."""
        path, _, line = text.rpartition(":")
        return cls(path, int(line)) if line.isascii() and line.isdecimal() else cls(text)

    def at(self, *field: str | int) -> "Location":
        """Return the location of a field of the value that is here."""
        return Location(self.path, self.line, (*self.field, *field))

    def __str__(self) -> str:
        """Return the location as text."""
        start = f"{self.path}:{self.line}" if self.line else self.path
        match self.field:
            case ():
                return start
            case (str(name),):
                return f"{start}: {name}"
            case path:
                return f"{start}: {dotted(path)}"


Place: TypeAlias = Location | str  # a text is a path, or another name of what is wrong as a whole


def dotted(path: Iterable[str | int]) -> str:
    """Format a path for display: ``results[3].doc_id``."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


class Name(Struct, frozen=True, gc=False, omit_defaults=True):
    """A name or a short text from a file; each output quotes it in its own way."""

    name: str
    said: Annotated[
        bool, Meta(description="Whether it is part of an answer or a document, which `--no-answers` leaves out.")
    ] = False
    quoted: Annotated[
        bool, Meta(description="Whether it is in quotation marks in outputs that have no style for names.")
    ] = False


class Code(str):
    """A command of ours in a phrase, which outputs without a style for code show in backquotes."""

    __slots__ = ()


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
            plain += f"`{part}`" if isinstance(part, Code) else part
    return "".join([*rendered, text(plain)] if plain else rendered)


NOT_SHOWN = "(not shown)"


class Message(str):
    """A message about an input that knows its parts; a message that quotes no value is an ordinary string."""

    __slots__ = ("location", "phrase")
    phrase: Phrase
    location: Location | None  # the line that it is about

    @classmethod
    def of(cls, *parts: str, location: Location | None = None) -> "Message":
        """Join texts, in which messages keep their parts."""
        return cls.quoting(*(part for text in parts for part in parts_of(text)), location=location)

    @classmethod
    def quoting(cls, *parts: str | Name, location: Location | None = None) -> "Message":
        """Return the message that consists of these parts."""
        message = cls(render(parts))
        message.phrase = parts
        message.location = location
        return message

    def __str__(self) -> str:
        """Return the message itself, so that it keeps its parts as the text of an exception."""
        return self


def private(text: str) -> Name:
    """Return a value of a file, and what repeats it behind it, as the part of a message."""
    return Name(text, said=True)


def parts_of(message: str) -> Phrase:
    """Return the parts of a message."""
    return message.phrase if isinstance(message, Message) else (message,)


def location_of(message: str) -> Location | None:
    """Return the line that a message is about; None if it is about something else."""
    return message.location if isinstance(message, Message) else None


def plain(message: str) -> str:
    """Return a message as an ordinary string, as files are written with."""
    return render(parts_of(message))


def cut(message: str, length: int) -> str:
    """Cut a message to at most ``length`` characters, ending in an ellipsis if it was cut; it keeps its parts."""
    if len(message) <= length:
        return message
    parts: list[str | Name] = []
    left = length - 1
    for part in parts_of(message):
        text = part.name if isinstance(part, Name) else part
        parts.append(private(text[:left]) if isinstance(part, Name) else text[:left])
        left -= len(text)
        if left <= 0:
            break
    return Message.quoting(*parts, "…")


def without_values(message: str) -> str:
    """Return a message up to its first value, for which ``(not shown)`` stands; the text behind it may repeat it."""
    parts = parts_of(message)
    first = next((at for at, part in enumerate(parts) if isinstance(part, Name) and part.said), None)
    if first is None:
        return message
    return Message.of(f"{render(parts[:first])}{NOT_SHOWN}", location=location_of(message))


def shortened(phrase: Phrase, length: int, of_name: int) -> Phrase:
    """Cut a phrase to ``length`` characters, with an ellipsis at the end; ``of_name`` are shown of each name."""
    left = length
    for number, part in enumerate(phrase):
        left -= min(len(part.name), of_name) + 1 if isinstance(part, Name) else len(part)
        if left < 0:
            return (*phrase[:number], "…" if isinstance(part, Name) else f"{part[: left - 1]}…")
    return phrase


def joined(phrases: Iterable[Iterable[str | Name]], rest: int = 0) -> Phrase:
    """Return phrases with commas between them, followed by ``3 more`` if ``rest`` is 3 and by nothing if it is 0."""
    shown = [*phrases, *([[more(rest, 0)]] if rest > 0 else [])]
    return tuple([part for number, phrase in enumerate(shown) for part in ([", "] if number else []) + [*phrase]])


def listed(names: Sequence[str], conjunction: str) -> Phrase:
    """Return names as ``a, b and c``. Of a long list, return the first five names and the number of the others."""
    rest = more(len(names), bounds.LISTED)
    items: list[str | Name] = [*map(Name, names[: bounds.LISTED]), *([rest] if rest else [])]
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
