"""The records of the report on what a judge said, item by item of each task."""

from typing import Annotated

from msgspec import Meta, Struct

from ragcontract.core.judge_settings import Task, Verdict

Count = Annotated[int, Meta(ge=0)]


class JudgedItem(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A claim, a criterion or a flagged text, and what the judge said of it; null if it has no verdict.

    ``quote`` are the words that prove the verdict, from the retrieved text of rank ``context``, or else from the
    answer. ``stands`` says of a flagged text whether the violation stands. ``quote`` and ``reason`` are omitted with
    --no-answers, and so is the ``text`` if it is from the answer. ``row`` is the number of the row that a claim or
    criterion was judged in, if the query has several in the run.
    """

    item: str
    row: int | None = None
    text: str = ""
    verdict: Verdict | None
    stands: bool | None = None
    quote: str | None = None
    context: int | None = None
    reason: str = ""


class JudgedQuery(Struct, frozen=True, kw_only=True, gc=False):
    """A golden query, and of how many of its items, in all rows, the judge spoke for the application: ``passed``.

    Those are claims that are supported, criteria that are met, and flagged texts that are cleared. Where nothing was
    retrieved, or nothing answered, none was judged, and ``items`` is empty.
    """

    id: str
    location: str
    passed: Count
    of: Count
    items: list[JudgedItem]


class TaskReport(Struct, frozen=True, kw_only=True):
    """What a judge said at one task, and how far it can be relied on.

    ``metric`` is the key of the metric that is computed from it, and null for what rules flagged. ``queries`` lists the
    judged queries, of more than 10,000 only those with an item that did not pass. ``judgments`` counts those used, and
    ``unjudged`` the items that have none, where these may stand.

    ``why_not`` says why the judgments do not count, and is empty if they do, or if nothing depends on them. ``kappa``
    is the judge's agreement with people beyond chance, and ``kappa_low`` the lower end of its 90 % interval, both null
    without a calibration of this judge. ``estimate`` is the mean that people would give, estimated by Rogan and Gladen
    from ``mean``, that of the judge, and from how often it is right; it is for information, no limit is on it.
    """

    task: Task
    metric: str | None
    label: str
    judgments: Count
    unjudged: Count
    why_not: list[str]
    kappa: float | None
    kappa_low: float | None
    mean: float | None
    estimate: float | None
    queries: list[JudgedQuery]


class JudgeReport(Struct, frozen=True, kw_only=True):
    """What a judge said, replayed from judgments files.

    ``models`` are as they answered, ``fingerprints`` what a calibration must have been made with. ``judgments`` counts
    those that were used, ``unused`` those on other texts, other queries or by other judges, and ``without_verdict`` all
    in the files of which there is none, by why. The oldest and the newest that was used are from ``oldest`` and
    ``newest``; ``cached`` are those that were known already when the newest were asked for.

    What those that were used cost when they were made: ``calls``, with those of them that were ``retried`` (sent
    again), and replies with wrong controls, of which nothing counts (``compromised``); tokens as billed; and ``usd``,
    null if no prices were given for any.
    """

    models: list[str]
    fingerprints: list[str]
    judgments: Count
    unused: Count
    without_verdict: dict[str, Count]
    oldest: str | None
    newest: str | None
    cached: Count
    calls: Count
    retried: Count
    compromised: Count
    tokens_in: Count
    tokens_out: Count
    usd: float | None
    tasks: list[TaskReport]
