"""Settings for answers and for judgments: the sections ``answers`` and ``judge`` of the configuration.

The code that searches answers is elsewhere, because only contracts about answers import it. The configuration never has
a judge's address or key: a pull request can change the configuration, and could send the key elsewhere. Whoever asks
the judge names both.
"""

from typing import Annotated, Literal, TypeAlias, get_args

from msgspec import Meta, Struct

from ragcontract.core import bounds
from ragcontract.core.numbers import SAME


class Composite(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A mean of several metrics that each query must reach. A metric where lower is better counts reversed."""

    minimum: Annotated[
        float, Meta(gt=SAME, le=1, title="a fraction above 0, which every mean reaches, and at most 1, as 0.5")
    ]
    metrics: Annotated[list[str], Meta(min_length=1, description="The metrics, by their keys.")]


LeakKind: TypeAlias = Literal["email", "phone", "card", "iban", "key"]


class Leaks(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Personal data and keys that no answer may have."""

    kinds: Annotated[list[LeakKind], Meta(min_length=1)]
    allowed: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=bounds.PATTERN)]],
        Meta(max_length=bounds.ALLOWED_VALUES, description="Values that may be said, such as a public address."),
    ] = []


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
    must_not_leak: Annotated[
        Annotated[list[LeakKind], Meta(min_length=1)] | Leaks | None,
        Meta(description="Kinds of personal data that no answer may have, or these with `allowed` values."),
    ] = None


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


# Attribution: is a claim of the reference supported by a retrieved text? Confirmation: does the response assert what a
# rule flagged? Criteria: does the response meet a criterion?
Task: TypeAlias = Literal["attribution", "confirmation", "criteria"]
Confirmed: TypeAlias = Literal["asserts_unsupported", "denies_or_reports_absence", "supported_by_context"]
# True and false are whether a claim is supported, or a criterion is met.
JudgeVerdict: TypeAlias = bool | Confirmed
# What further votes are for: only verdicts against the application, or all.
Confirm: TypeAlias = Literal["failures", "all"]
# What happens to a flagged text without a verdict: its query cannot be judged, or the text counts.
Unconfirmed: TypeAlias = Literal["error", "stands"]

JudgedMetric = Literal["context_recall", "criteria_met"]
JUDGED_METRICS = frozenset(get_args(JudgedMetric))


class JudgeSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which judgments of a judge count, and what for."""

    model: Annotated[
        Annotated[str, Meta(min_length=1, max_length=bounds.JUDGE_NAME)] | None,
        Meta(description="Only judgments of this model count, as it was asked for; any by default."),
    ] = None
    metrics: Annotated[
        list[JudgedMetric], Meta(description="Metrics that need judgments even if there is no limit on them.")
    ] = []
    votes: Annotated[
        Annotated[int, Meta(ge=1, le=bounds.VOTES, title=f"an odd number from 1 to {bounds.VOTES}")] | None,
        Meta(description="Only judgments with so many votes count; any by default."),
    ] = None
    confirm: Annotated[
        Confirm | None,
        Meta(description="Only judgments count whose judge was asked again about these verdicts; any by default."),
    ] = None
    second_pass: Annotated[
        bool, Meta(description="A text that rules forbid in an answer counts only if the judge confirms it.")
    ] = False
    unconfirmed: Annotated[
        Unconfirmed,
        Meta(description="With second_pass, what has no verdict: refuse the run, or count it."),
    ] = "error"
    uncalibrated: Annotated[
        Literal["refuse", "advisory"],
        Meta(
            description="A limit on judgments whose judge has no good calibration: refuse the run, or show the limit "
            "without effect."
        ),
    ] = "refuse"
    max_age_days: Annotated[
        Annotated[float, Meta(ge=0, le=bounds.RANK, title="a number of days")] | None,
        Meta(description="The age from which `rag-contract judge` asks again; a check accepts any age, and shows it."),
    ] = None


Count = Annotated[int, Meta(ge=0, le=bounds.LABELS)]


class LabelCounts(Struct, frozen=True, kw_only=True):
    """How often a judge and people said yes and no to the same items; people are right by definition."""

    tp: Annotated[Count, Meta(description="Both say yes.")]
    fp: Annotated[Count, Meta(description="Only the judge says yes.")]
    fn: Annotated[Count, Meta(description="Only people say yes.")]
    tn: Annotated[Count, Meta(description="Both say no.")]

    @property
    def n(self) -> int:
        """The number of items with a label and a judgment."""
        return self.tp + self.fp + self.fn + self.tn

    @property
    def yes(self) -> int:
        """The number of items to which people say yes."""
        return self.tp + self.fn

    @property
    def no(self) -> int:
        """The number of items to which people say no."""
        return self.fp + self.tn
