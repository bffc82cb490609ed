"""The record of what a history says of a check, and its sentences: the baseline, broken queries, and the trend.

In the sentences, branch and commit are names, which each format escapes. They are cut here, because every broken query
repeats them.
"""

import re
from collections.abc import Iterator
from typing import Annotated, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

from ragcontract.core import bounds
from ragcontract.core.numbers import count
from ragcontract.core.phrase import Name, Phrase
from ragcontract.core.safe_text import clipped, shorten
from ragcontract.report.parts import BaselineInput

Count = Annotated[int, Meta(ge=0)]
NEWEST = Meta(max_length=bounds.TREND_RUNS)
RunMean = Annotated[float, Meta(ge=-bounds.SCORE, le=bounds.SCORE)]  # beyond, squares and ranges are not finite


class HistoryBaseline(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The entry that is the baseline."""

    id: str
    commit: str
    named: Annotated[str, Meta(description="How it was named: last-pass, last, a commit or an id.")]
    behind: Annotated[Count | None, Meta(description="How many newer commits its branch has; null if unknown.")] = None


class BrokenSince(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The first of the recorded commits in a row at which a query is broken."""

    commit: str
    at: Annotated[str, Meta(description="When it was checked, ISO 8601, UTC.")]
    or_before: Annotated[bool, Meta(description="It may be broken for longer: older commits were not read.")] = False


class ChangePointReport(Struct, frozen=True, kw_only=True):
    """A run since which a metric is different."""

    id: str
    commit: str | None
    at: Annotated[str, Meta(description="When it was checked, ISO 8601, UTC.")]
    before: Annotated[float, Meta(description="The mean of the runs since the change point before.")]
    after: Annotated[float, Meta(description="The mean of the runs until the next change point.")]
    p_value: Annotated[float | None, Meta(description="How likely chance alone is; null if runs vary only here.")]


class MetricHistory(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A metric in the newest runs of the branch, the oldest first, over the queries that all of them have."""

    values: Annotated[list[RunMean | None], NEWEST, Meta(description="The means; null for a run without one.")]
    ids: Annotated[list[str], NEWEST, Meta(description="The entries of these runs.")]
    now: Annotated[RunMean | None, Meta(description="The mean of this run over the same queries.")] = None
    level: Annotated[RunMean | None, Meta(description="The best mean of five consecutive runs.")] = None
    sigma: Annotated[
        float | None,
        Meta(description="The standard deviation of a mean without a change; null with too few runs."),
    ] = None
    change_points: Annotated[list[ChangePointReport], NEWEST] = []


class HistoryReport(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the history says of a check."""

    branch: Annotated[str | None, Meta(description="The branch whose entries were read; null if there are none.")]
    entries: Annotated[Count, Meta(description="How many of its entries were read.")]
    baseline: HistoryBaseline | None = None
    limits_left_out: Annotated[Count, Meta(description="Limits not checked, as there is no baseline yet.")] = 0
    broken_since: Annotated[dict[str, BrokenSince], Meta(description="Of queries broken on the branch, by id.")] = {}
    window: Annotated[Count | None, Meta(description="How many runs limits on levels look at; null without one.")] = (
        None
    )
    since: Annotated[str | None, Meta(description="The day before which runs do not count for levels.")] = None
    failed: Annotated[list[str], Meta(description="The entries in ``metrics`` whose runs failed.")] = []
    metrics: Annotated[dict[str, MetricHistory], Meta(description="The metrics with limits, by key.")] = {}
    notes: list[str] = []


Known: TypeAlias = HistoryReport | UnsetType
COMMIT_DIGITS = 7  # as git and GitHub show commits
_ENTRY_ID = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)\d\dZ-([0-9a-f]{7})[0-9a-f]{5}-", re.ASCII)
# What is true of the commits that are newer than an entry, by how the entry was named; a commit or an id pins it.
PASSED_OVER = {"last-pass": "not recorded or did not pass", "last": "not recorded"}


def time_and_commit(entry_id: str) -> tuple[str, str]:
    """Return the time (UTC) and the commit in the id of an entry; of another text, the text and no commit."""
    match = _ENTRY_ID.match(entry_id)
    if match is None:
        return clipped(entry_id, bounds.HTML_NAME), ""
    year, month, day, hour, minute, commit = match.groups()
    return f"{year}-{month}-{day} {hour}:{minute}", commit


def branch_after(word: str, history: HistoryReport) -> Phrase:
    """Return the branch whose entries were read after a word; empty if it is not known."""
    return (f" {word} ", Name(branch)) if (branch := branch_of(history)) else ()


def branch_of(history: HistoryReport) -> str:
    """Return the branch whose entries were read; empty if it is not known."""
    return shorten(history.branch or "", bounds.BRANCH)


def compared_with(history: Known, baseline: BaselineInput | None) -> Iterator[Phrase]:
    """Yield the note on the entry that is the baseline: its commit, its age, and how many commits are newer."""
    if history is UNSET or history.baseline is None or baseline is None:
        return
    entry, branch, days = history.baseline, branch_of(history), baseline.age_days
    commit = entry.commit[:COMMIT_DIGITS]
    age = "" if days is None else f", {count(days, 'day')} old" if days > 0 else ", recorded today"
    note: list[str | Name] = ["Compared with ", Name(f"{branch}@{commit}" if branch else commit), age]
    if entry.behind and (what := PASSED_OVER.get(entry.named)):
        verb = "was" if entry.behind == 1 else "were"
        note += [f"; {count(entry.behind, 'newer commit')}", *branch_after("of", history), f" {verb} {what}"]
    yield tuple(note)


def newer_baseline(history: Known) -> Phrase:
    """Return what helps if an entry is too old as a baseline; empty if the baseline is not an entry."""
    if history is UNSET or history.baseline is None:
        return ()
    if history.baseline.named not in PASSED_OVER:
        return ("choose a newer entry of the history",)
    passing = (" that passes",) if history.baseline.named == "last-pass" else ()
    return ("record a newer check", *branch_after("of", history), *passing)


def notes_of(history: Known) -> list[Phrase]:
    """Return the notes of the history, such as why it could not be read."""
    return [] if history is UNSET else [(note,) for note in history.notes]


def broken_on_branch(history: Known, query_id: str) -> Phrase:
    """Return ``broken since abc1234 on main``; empty for a query that is not known to be broken there."""
    broken = None if history is UNSET else history.broken_since.get(query_id)
    if history is UNSET or broken is None:
        return ()
    commit = Name(broken.commit[:COMMIT_DIGITS])
    if broken.or_before:
        return ("broken", *branch_after("on", history), " since ", commit, " or earlier")
    return ("broken since ", commit, *branch_after("on", history))
