"""Judges many cases: several at a time, without asking again what is known, and every judgment is kept at once.

A cache decides which earlier judgments are reused, and what the judgments file has in the end. Threads take one case
after another, until all are done, a limit is reached, or somebody asks to stop.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from itertools import takewhile
from typing import TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.numbers import count
from ragcontract.judge.calls import TOO_LONG
from ragcontract.judge.chat_model import USUAL_CONTEXT
from ragcontract.judge.endpoint import Endpoint, query_keys
from ragcontract.judge.interface import Clock, Model, NoReply, VoteSettings
from ragcontract.judge.judge_case import judge_case, utc_now
from ragcontract.judge.judgment_journal import JudgmentJournal, RememberingModel
from ragcontract.judge.model_calls import Budget, CallLimits, Spending
from ragcontract.judgments.items import JudgeCase
from ragcontract.judgments.judgments_file import Judgment, QueryKey, query_key
from ragcontract.judgments.replay import edited
from ragcontract.net.pool import Ended, Pool, Stop, by_signals

USUAL_DAYS = 7
Item = TypeVar("Item")
Made = TypeVar("Made")


class Cache(Struct, frozen=True, kw_only=True):
    """Earlier judgments. Those of the future, by the clock of this machine, are not reused."""

    now: datetime
    stored: Mapping[QueryKey, Judgment] = {}  # in the file; reused if they have a verdict
    unfinished: Mapping[QueryKey, Judgment] = {}  # of a judging that did not end; reused whatever the reply was
    max_age_days: float = USUAL_DAYS
    refresh: bool = False  # whether stored judgments are not reused

    def get(self, wanted: QueryKey) -> Judgment | None:
        """Return a judgment to reuse; None if the judge has to be asked about the item."""
        unfinished = self.unfinished.get(wanted)
        if unfinished is not None and unfinished.status != "failed" and self._is_fresh(unfinished):
            return unfinished
        stored = None if self.refresh else self.stored.get(wanted)
        return stored if stored is not None and stored.status == "ok" and self._is_fresh(stored) else None

    def merged(self, wanted: Iterable[QueryKey], new: Iterable[Judgment]) -> list[Judgment]:
        """Return the content of the file: the new judgments, and earlier ones that may still be of use.

        An old judgment without a new one stays, whatever its age; a check reports the age. A judgment that is no longer
        wanted stays while it could be reused, because texts may change back. It also stays until its query has a
        verdict on everything that is wanted, so that a judging of some queries or tasks leaves the others alone.
        """
        result = {**self.stored, **self.unfinished}
        for judgment in new:
            old = result.get(query_key(judgment))
            if judgment.status != "failed" or old is None or old.status == "failed":
                result[query_key(judgment)] = judgment
        asked = set(wanted)
        lacking = {key[0] for key in asked if key not in result or result[key].status != "ok"}
        again = {(key[0], result[key].task) for key in asked if key[0] not in lacking}
        return [
            judgment
            for key, judgment in result.items()
            if key in asked or self._is_fresh(judgment) or (key[0], judgment.task) not in again
        ]

    def _is_fresh(self, judgment: Judgment) -> bool:
        # The days are not made a timedelta, because it cannot have as many days as max_age_days may.
        return 0 <= (self.now - judgment.at) / timedelta(days=1) <= self.max_age_days


def by_key(judgments: Sequence[Judgment]) -> dict[QueryKey, Judgment]:
    """Return judgments by their keys; of several with one key, the last."""
    return {query_key(judgment): judgment for judgment in judgments}


class JudgingProgress(Struct, frozen=True, kw_only=True):
    """How far a judging is, in cases. Cases that are reused do not count."""

    done: int
    total: int
    unjudged: int  # done, but not with a verdict on every item


class JudgingResult(Struct, frozen=True, kw_only=True):
    """The result of a judging."""

    wanted: tuple[QueryKey, ...]
    judgments: Mapping[QueryKey, Judgment]  # reused and new ones
    new: tuple[Judgment, ...]
    cached: int  # how many were reused
    statuses: Mapping[str, int]  # how many wanted judgments have each status
    missing: int  # how many wanted judgments were not asked for
    reasons: Mapping[str, str]  # an example for each status
    over: NoReply | None = None  # why no more calls could be made
    error: KeyboardInterrupt | None = None  # if somebody asked to stop

    @property
    def unjudged(self) -> int:
        """How many wanted items have no verdict."""
        return self.missing + sum(number for status, number in self.statuses.items() if status != "ok")

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to ask: there are replies to everything that is not too long."""
        failed = (judgment for judgment in self.judgments.values() if judgment.status == "failed")
        return not self.missing and all(judgment.reason.startswith(TOO_LONG) for judgment in failed)


class Lacking(Struct, frozen=True, kw_only=True):
    """What there is to ask."""

    wanted: tuple[QueryKey, ...]
    cached: tuple[Judgment, ...]  # reused
    cases: tuple[JudgeCase, ...]  # asked as a whole


def lacking(cases: Sequence[JudgeCase], model: Model, settings: VoteSettings, cache: Cache) -> Lacking:
    """Return what has to be asked. A case is asked as a whole, because its items are judged together.

    Judgments that were edited, so that their quotes are not in the texts, are not reused.
    """
    wanted: list[QueryKey] = []
    cached: list[Judgment] = []
    to_ask = []
    for case in cases:
        keys = query_keys(case, settings, model)
        known = [judgment for key in keys if (judgment := cache.get(key)) is not None]
        wanted += keys
        if len(known) == len(keys) and not edited(case, known):
            cached += known
        else:
            to_ask.append(case)
    return Lacking(wanted=tuple(wanted), cached=tuple(cached), cases=tuple(to_ask))


class JudgingSettings(Struct, frozen=True, kw_only=True):
    """How cases are judged, and where the judgments are stored."""

    path: str  # of the judgments file
    model: str
    endpoint: Endpoint
    settings: VoteSettings = VoteSettings()
    budget: Budget = Budget()
    limits: CallLimits = CallLimits()
    max_age_days: float = USUAL_DAYS
    max_context: int = USUAL_CONTEXT
    refresh: bool = False
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)  # names the folder for the journal's key
    clock: Clock = utc_now


def judge_lacking(
    to_ask: Lacking,
    judging: JudgingSettings,
    model: Model,
    journal: JudgmentJournal,
    spending: Spending,
    *,
    stop: Stop,
    watch: Callable[[JudgingProgress], object],
) -> JudgingResult:
    """Ask until all cases are judged, somebody asks to stop, or no more calls may be made.

    All judgments are kept in the journal; raise OutputError if that fails. ``watch`` is called in this thread.
    """
    remembering = RememberingModel(model, journal, spending)
    began = judging.clock()
    new: list[Judgment] = []
    done = unjudged = failed_in_a_row = 0

    def judge(case: JudgeCase) -> list[Judgment]:
        """Judge a case. If all was stopped meanwhile, keep only what has a reply."""
        keys = [key for _, key in query_keys(case, judging.settings, model)]
        dice = journal.dice(case.task, case.query_id, *keys)
        judgments = judge_case(case, remembering, judging.settings, dice, judging.clock)
        is_over = spending.over is not None
        kept = [
            replace(judgment, session=began, usd=judging.budget.cost(judgment.tokens_in, judgment.tokens_out))
            for judgment in judgments
            if not (is_over and judgment.status == "failed")
        ]
        if kept:
            journal.add(kept)
        return kept

    def take(judgments: list[Judgment]) -> None:
        nonlocal done, unjudged, failed_in_a_row
        new.extend(judgments)
        done += 1
        unjudged += not all(judgment.status == "ok" for judgment in judgments)
        if judgments and not all(judgment.reason.startswith(TOO_LONG) for judgment in judgments):
            has_reply = any(judgment.status != "failed" for judgment in judgments)
            failed_in_a_row = 0 if has_reply else failed_in_a_row + 1
            if failed_in_a_row >= bounds.FAILED_IN_A_ROW:  # the endpoint is out of order
                why = f"{count(failed_in_a_row, 'case')} in a row had no reply: {judgments[0].reason}"
                spending.stop(NoReply("outage", why, final=True))
        watch(JudgingProgress(done=done, total=len(to_ask.cases), unjudged=unjudged))

    in_threads(to_ask.cases, judge, take, at_once=judging.limits.concurrency, spending=spending, stop=stop)
    return _judged(to_ask, new, spending.over, KeyboardInterrupt() if stop.asked else None)


def _judged(
    to_ask: Lacking, new: Sequence[Judgment], over: NoReply | None, error: KeyboardInterrupt | None
) -> JudgingResult:
    judgments = {query_key(judgment): judgment for judgment in [*to_ask.cached, *new]}
    statuses: Counter[str] = Counter(judgments[key].status for key in to_ask.wanted if key in judgments)
    reasons: dict[str, str] = {
        judgment.status: judgment.reason for judgment in reversed(list(judgments.values())) if judgment.status != "ok"
    }
    return JudgingResult(
        wanted=to_ask.wanted,
        judgments=judgments,
        new=tuple(new),
        cached=len(to_ask.cached),
        statuses=statuses,
        missing=sum(key not in judgments for key in to_ask.wanted),
        reasons=reasons,
        over=over,
        error=error,
    )


def in_threads(
    items: Sequence[Item],
    make: Callable[[Item], Made],
    take: Callable[[Made], object],
    *,
    at_once: int,
    spending: Spending,
    stop: Stop,
) -> None:
    """Make something of each item in threads, and pass it to ``take`` in this one, as it comes.

    Raise what either raises, when all threads have ended. If somebody asks to stop, no further item is begun, and those
    under way have a moment to end.
    """

    def mind_stop() -> None:
        if stop.asked:
            spending.stop(NoReply("stopped", "somebody asked to stop", final=True))

    def settle(_item: Item, ended: Ended[Made]) -> None:
        if ended.error is not None:
            spending.stop(NoReply("error", "something else went wrong", final=True))
            raise ended.error
        if ended.made is not None:
            take(ended.made)

    affordable = takewhile(lambda _: spending.over is None, items)
    with by_signals(stop), closing(Pool(make, size=at_once, stop=stop, tick=mind_stop)) as pool:
        pool.run(affordable, settle)
