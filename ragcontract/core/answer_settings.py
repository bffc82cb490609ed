"""Settings for answers: the section ``answers`` of the configuration, and the matchers of golden rows.

The code that searches answers is elsewhere, because only contracts about answers import it.
"""

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from ragcontract.core import bounds
from ragcontract.core.numbers import SAME


class Composite(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A mean of several metrics that each query must reach. A metric where lower is better counts reversed."""

    minimum: Annotated[
        float, Meta(gt=SAME, le=1, title="a fraction above 0, which every mean reaches, and at most 1, as 0.5")
    ]
    metrics: Annotated[list[str], Meta(min_length=1, description="The metrics, by their keys.")]


class AnswerSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How answers are compared, and what counts as a refusal."""

    normalise: Annotated[
        bool,
        Meta(
            description="Compare texts regardless of quotes, dashes, Markdown emphasis, blanks and what nobody sees. "
            "`ignore_case` of a rule says whether case counts."
        ),
    ] = True
    refusal_phrases: Annotated[
        list[Annotated[str, Meta(min_length=1)]],
        Meta(
            max_length=bounds.REFUSAL_PHRASES,
            title=f"at most {bounds.REFUSAL_PHRASES:,} phrases",
            description="Sentences with which the application refuses, beside the built-in English ones.",
        ),
    ] = []
    only_these: Annotated[bool, Meta(description="Do not use the built-in English refusals.")] = False
    refusal: Annotated[
        Literal["evidence", "phrases"],
        Meta(description="Whether a missing refusal that only built-in phrases could show fails the check (phrases)."),
    ] = "evidence"
    missing_modes: Annotated[
        Literal["error", "fail"],
        Meta(description="A row without a mode where one is expected: refuse the run, or count it as wrong."),
    ] = "error"
    composite: Composite | None = None


Wanted = Annotated[
    str, Meta(min_length=1, max_length=bounds.PATTERN, title=f"text of 1 to {bounds.PATTERN:,} characters")
]
# Only a row imported from another benchmark may search for an empty text. Anywhere else, that is a fault.
MaybeEmpty = Annotated[str, Meta(max_length=bounds.PATTERN, title=f"text of at most {bounds.PATTERN:,} characters")]
Reading: TypeAlias = Literal["text", "regex"]  # what a text without an object around it stands for


class Single(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """A text or a pattern, and how it is searched for. Exactly one of ``text`` and ``regex`` is given."""

    text: MaybeEmpty | None = None
    regex: MaybeEmpty | None = None
    word: Annotated[
        bool | None, Meta(description="No letter, digit or underscore may stand before or after the text.")
    ] = None
    ignore_case: bool | None = None
    dot_all: Annotated[bool | None, Meta(description="A dot in the pattern matches line breaks, too.")] = None


class Matcher(Single, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """A text, a pattern, or alternatives of which any will do. Exactly one of the three is given."""

    any: tuple[Wanted | Single, ...] | None = None


AsWritten: TypeAlias = Wanted | Matcher
