"""The parts of the phrases in reports, which each format escapes, shortens and styles by their types."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from ragcontract.core.metric import Scale
from ragcontract.core.phrase import Code, Name, Phrase

Kind = Literal[
    "label",  # of a metric
    "question",
    "name",  # of a query or a document, where there is little room
    "id",  # the same in a line of text
    "run",  # the name of a run
    "mode",
    "status",  # of a gate, a tier or a query
    "fact",  # sentences
    "line",  # a sentence that may be long: a problem, a warning, a reason
    "note",  # the same where it is not at the start of a line
    "why",  # the reason why something does not fail
    "said",  # what was answered
    "context",  # what was retrieved for an answer, and the messages of a conversation
]


class Text(Struct, frozen=True, gc=False):
    """Words that may be from a file. Their kind decides how a format escapes them, and how many of them it shows."""

    text: str
    kind: Kind


class Sentence(Struct, frozen=True, gc=False):
    """A phrase of the report; the text around its names is escaped, because somebody else may have written it."""

    phrase: Phrase
    kind: Literal["sentence", "line", "reason", "fact"] = "sentence"
    marks: str = '"'  # around quoted names


class Styled(Struct, frozen=True, gc=False):
    """What stands out, or is less important than the text around it."""

    parts: "Parts"
    style: Literal["strong", "small"] = "strong"


class Lines(Struct, frozen=True, gc=False):
    """Lines of one cell; empty ones are left out."""

    lines: Sequence["Parts"]


def between(separator: str, items: "Iterable[Parts]") -> "Parts":
    """Return items as one phrase, with a separator between them."""
    return tuple([part for item in items for part in (separator, item)][1:])


class Mean(Struct, frozen=True, gc=False, kw_only=True):
    """A mean in a table, with its change and its bar."""

    text: str
    change: str  # empty if it did not change in the digits that are shown
    is_better: bool
    is_significant: bool
    now: float | None
    before: float | None
    scale: Scale


class Tally(Struct, frozen=True, gc=False, kw_only=True):
    """How many rows there are of one kind."""

    number: int
    of: int
    before: int | None  # the number in a baseline that is a run
    is_right: bool  # whether rows should be of this kind


# Words of ours (a string, or a command as ``Code``), a name as an id, and what is of the types above.
Part: TypeAlias = str | Name | Text | Sentence | Styled | Lines | Mean | Tally
Parts: TypeAlias = "Part | tuple[Parts, ...]"


class Style(Struct, frozen=True, kw_only=True):
    """How a format renders the parts of a phrase."""

    own: Callable[[str], str] = str  # words of ours
    code: Callable[[str], str] = "`{}`".format  # commands of ours
    name: Callable[[str], str]
    words: Mapping[Kind, Callable[[str], str]]
    sentence: Callable[[Sentence], str]
    numbers: Callable[[Mean | Tally], str]
    styles: Mapping[Literal["strong", "small"], Callable[[str], str]]
    joint: str = ""  # between parts
    line_break: str


def rendered(parts: Parts, style: Style) -> str:
    """Render the parts of a phrase."""
    match parts:
        case str():
            return style.code(parts) if isinstance(parts, Code) else style.own(parts)
        case Text():
            return style.words[parts.kind](parts.text)
        case tuple():
            return style.joint.join([rendered(part, style) for part in parts])
        case Lines():
            return style.line_break.join([line for part in parts.lines if (line := rendered(part, style))])
        case Name():
            return style.name(parts.name)
        case Sentence():
            return style.sentence(parts)
        case Styled():
            return style.styles[parts.style](rendered(parts.parts, style))
        case Mean() | Tally():
            return style.numbers(parts)
