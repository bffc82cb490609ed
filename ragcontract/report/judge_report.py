"""The records of the report on what a judge said, for each task and its items."""

from typing import Annotated

from msgspec import Meta, Struct

from ragcontract.core.judge_settings import JudgeVerdict, Task

Count = Annotated[int, Meta(ge=0)]


class JudgedItem(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A claim, a criterion or a flagged text, and what the judge said about it.

    With --no-answers, the quote and the reason are omitted, and so is a text from the answer.
    """

    item: str
    row: Annotated[
        int | None, Meta(description="The row in which a claim or criterion was judged, if the query has several.")
    ] = None
    text: str = ""
    verdict: Annotated[JudgeVerdict | None, Meta(description="Null if there is none.")]
    stands: Annotated[bool | None, Meta(description="Whether the violation by a flagged text stands.")] = None
    quote: Annotated[str | None, Meta(description="The words that prove the verdict.")] = None
    context: Annotated[
        int | None, Meta(description="The rank of the retrieved text that is quoted; null if the answer is quoted.")
    ] = None
    reason: str = ""


class JudgedQuery(Struct, frozen=True, kw_only=True, gc=False):
    """A golden query and its judged items, over all of its rows."""

    id: str
    location: str
    passed: Annotated[
        Count, Meta(description="How many items are supported claims, criteria that are met, or cleared texts.")
    ]
    of: Annotated[Count, Meta(description="How many items there are.")]
    items: Annotated[
        list[JudgedItem], Meta(description="Empty if nothing was retrieved or answered, so that nothing was judged.")
    ]


class TaskReport(Struct, frozen=True, kw_only=True):
    """What a judge said at one task, and how far it can be relied on."""

    task: Task
    metric: Annotated[
        str | None, Meta(description="The key of the metric that the judgments give; null for what rules flagged.")
    ]
    label: str
    judgments: Annotated[Count, Meta(description="How many judgments are used.")]
    unjudged: Annotated[Count, Meta(description="How many flagged texts have no verdict.")]
    why_not: Annotated[
        list[str],
        Meta(description="Why the judgments do not count; empty if they do, or if nothing depends on them."),
    ]
    kappa: Annotated[
        float | None,
        Meta(description="The judge's agreement with people beyond chance; null without a calibration of this judge."),
    ]
    kappa_low: Annotated[float | None, Meta(description="The lower end of the 90 % interval of kappa.")]
    mean: Annotated[float | None, Meta(description="The mean by the judge, which limits are on.")]
    estimate: Annotated[
        float | None,
        Meta(
            description="The mean that people would give, estimated by Rogan and Gladen from the mean and from how "
            "often the judge is right; for information only."
        ),
    ]
    queries: Annotated[
        list[JudgedQuery],
        Meta(description="The judged queries; of more than 10,000, those with an item that did not pass."),
    ]


class JudgeReport(Struct, frozen=True, kw_only=True):
    """What a judge said, replayed from judgments files, and what the judgments that are used cost when they were made.

    The costs are calls, tokens as billed, and money.
    """

    models: Annotated[list[str], Meta(description="As they answered.")]
    fingerprints: Annotated[list[str], Meta(description="What a calibration must have been made with.")]
    judgments: Annotated[Count, Meta(description="How many judgments are used.")]
    unused: Annotated[
        Count, Meta(description="How many are not used: on other texts or queries, by other judges, or not needed.")
    ]
    without_verdict: Annotated[
        dict[str, Count], Meta(description="How many judgments in the files have no verdict, by the reason.")
    ]
    oldest: Annotated[str | None, Meta(description="The time of the oldest judgment that is used.")]
    newest: Annotated[str | None, Meta(description="The time of the newest judgment that is used.")]
    cached: Annotated[Count, Meta(description="How many were known already when the newest were asked for.")]
    calls: Count
    retried: Annotated[Count, Meta(description="How many calls were sent again.")]
    compromised: Annotated[
        Count, Meta(description="How many replies had wrong controls, so that nothing in them counts.")
    ]
    tokens_in: Count
    tokens_out: Count
    usd: Annotated[float | None, Meta(description="Null if no prices are known for any of them.")]
    tasks: list[TaskReport]
