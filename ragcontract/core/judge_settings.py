"""Settings for judgments: the section ``judge`` of the configuration, and counts of labels that agree with a judge.

The configuration never has a judge's address or key. A pull request can change the configuration, and could send the
key elsewhere. Whoever asks the judge names both.
"""

from typing import Annotated, Literal, TypeAlias, get_args

from msgspec import Meta, Struct

from ragcontract.core import bounds

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
