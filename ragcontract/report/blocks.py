"""The blocks that a report is made of.

A section is a function that returns blocks, in whose phrases each part has a type. Each format renders the types of
blocks and parts in its own way, so that a section knows no format's escapes and lengths.
"""

from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from ragcontract.report.metric_table import Row
from ragcontract.report.wording import Parts

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
