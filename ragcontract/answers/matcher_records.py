"""The records of matchers, as golden rows have them: what an answer is searched for.

They are apart from what searches, which only contracts about answers import.
"""

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from ragcontract.core import bounds

Wanted = Annotated[
    str, Meta(min_length=1, max_length=bounds.PATTERN, title=f"text of 1 to {bounds.PATTERN:,} characters")
]
# Only a row imported from another benchmark may search for nothing; anywhere else, it is a fault of the matcher.
MaybeEmpty = Annotated[str, Meta(max_length=bounds.PATTERN, title=f"text of at most {bounds.PATTERN:,} characters")]
Reading: TypeAlias = Literal["text", "regex"]  # what a text without an object around it stands for


class Single(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """A text or a pattern, and how it is searched for.

    ``word``: no letter, digit or underscore stands before or after the text. ``dot_all``: a dot in the pattern matches
    line breaks, too. Exactly one of ``text`` and ``regex`` is given.
    """

    text: MaybeEmpty | None = None
    regex: MaybeEmpty | None = None
    word: bool | None = None
    ignore_case: bool | None = None
    dot_all: bool | None = None


class Matcher(Single, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """A text, a pattern, or alternatives of which any will do. Exactly one of the three is given."""

    any: tuple[Wanted | Single, ...] | None = None


AsWritten: TypeAlias = Wanted | Matcher
