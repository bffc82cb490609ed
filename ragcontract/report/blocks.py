"""The blocks that a report is made of, and the parts of the phrases in them.

A section is a function that returns blocks, in whose phrases each part has a type. Each format renders the types of
blocks and parts in its own way, so that a section knows no format's escapes and lengths.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from ragcontract.core.metric import Scale
from ragcontract.core.phrase import Code, Name, Phrase
from ragcontract.report.metric_table import Row

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


Form = Literal["markdown", "html", "terminal"]  # a section may show less, or in another order, in some of them


class Heading(Struct, frozen=True, gc=False):
    """The title of the page, or of a part of it."""

    parts: Parts
    level: Literal[1, 2] = 2


class Note(Struct, frozen=True, gc=False):
    """A paragraph; left out if it is empty, as is a list or a table without rows."""

    parts: Parts


class Items(Struct, frozen=True, gc=False):
    """A list."""

    items: Sequence[Parts]


class Table(Struct, frozen=True, gc=False):
    """A table; ``align`` has a letter for each column, ``l`` or ``r``."""

    head: Sequence[Parts]  # empty for a table without a heading
    align: str
    rows: Sequence[Sequence[Parts]]


class Bars(Struct, frozen=True, gc=False):
    """The values of metrics, with their limits if these are shown."""

    rows: Sequence[Row]
    compared: bool
    limited: bool = True


class Fold(Struct, frozen=True, gc=False):
    """Blocks under a title, folded where a format can."""

    title: Parts
    blocks: Sequence["Block"]


class Group(Struct, frozen=True, gc=False):
    """Blocks that belong together."""

    blocks: Sequence["Block"]


Block: TypeAlias = Heading | Note | Items | Table | Bars | Fold | Group
