"""The records of the report on what a judge said, claim by claim."""

from typing import Annotated

from msgspec import Meta, Struct

Count = Annotated[int, Meta(ge=0)]


class ClaimReport(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A claim of a reference, and what the judge said of it.

    ``quote`` are the words that support it, from the retrieved text of rank ``context``. ``quote`` and ``reason`` are
    omitted with --no-answers.
    """

    item: str
    text: str
    supported: bool
    quote: str | None = None
    context: int | None = None
    reason: str = ""


class JudgedQuery(Struct, frozen=True, kw_only=True, gc=False):
    """A golden query, and how many of its claims are supported; where nothing was retrieved, none was judged."""

    id: str
    location: str
    supported: Count
    of: Count
    claims: list[ClaimReport]


class JudgeReport(Struct, frozen=True, kw_only=True):
    """What a judge said, replayed from judgments files.

    ``models`` are as they answered, ``fingerprints`` what a calibration must have been made with. ``queries`` lists the
    judged queries, of more than 10,000 only those with a claim that is not supported. ``judgments`` counts those that
    were used, ``unused`` those on other texts, other queries or by other judges, and ``without_verdict`` all of which
    there is none, by why. The oldest and the newest that was used are from ``oldest`` and ``newest``.
    ``tokens_in`` and ``tokens_out`` are what those that were used cost when they were made.

    ``why_not`` says why limits on what the judge said do not count, and is empty if they do, or if there are none.
    ``kappa`` is its agreement with people beyond chance, and ``kappa_low`` the lower end of its 90 % interval, both
    null without a calibration. ``estimate`` is the mean that people would give, estimated by Rogan and Gladen from
    ``mean``, that of the judge, and from how often it is right; it is for information, no limit is on it.
    """

    models: list[str]
    fingerprints: list[str]
    why_not: list[str]
    kappa: float | None
    kappa_low: float | None
    mean: float | None
    estimate: float | None
    judgments: Count
    unused: Count
    without_verdict: dict[str, Count]
    oldest: str | None
    newest: str | None
    tokens_in: Count
    tokens_out: Count
    queries: list[JudgedQuery]
