"""Judges many cases: several at a time, without asking again what is known, and every judgment is kept at once.

A cache decides which earlier judgments are reused, and what the judgments file has in the end. Threads take one case
after another, until all are done, a limit is reached, or somebody asks to stop.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.errors import RagContractError
from ragcontract.core.numbers import count
from ragcontract.judge.calls import TOO_LONG
from ragcontract.judge.endpoint import query_keys
from ragcontract.judge.interface import Clock, Model, NoReply, VoteSettings
from ragcontract.judge.judge_case import judge_case
from ragcontract.judge.judgment_journal import JudgmentJournal, RememberingModel
from ragcontract.judge.spending import Spending
from ragcontract.judgments.items import JudgeCase
from ragcontract.judgments.judgments_file import Judgment, QueryKey, query_key
from ragcontract.judgments.replay import edited
from ragcontract.net.stopping import Stop, by_signals

TICK = 0.2  # s; how soon a request to stop is noticed
USUAL_DAYS = 7
Given = TypeVar("Given")
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
    error: BaseException | None = None  # an exception to raise, if it ended the judging early

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


class JudgingSession:
    """One judging under way."""

    def __init__(
        self,
        model: Model,
        settings: VoteSettings,
        journal: JudgmentJournal,
        spending: Spending,
        *,
        concurrency: int,
        stop: Stop,
        watch: Callable[[JudgingProgress], object],
        clock: Clock,
    ) -> None:
        self._model = RememberingModel(model, journal, spending)
        self._settings = settings
        self._journal = journal
        self._spending = spending
        self._concurrency = concurrency
        self._watch = watch  # called in the thread that calls run
        self._clock = clock
        self._stop = stop
        self._began = clock()
        self._failed_in_a_row = 0

    def run(self, to_ask: Lacking) -> JudgingResult:
        """Ask until all cases are judged, somebody asks to stop, or no more calls may be made."""
        new: list[Judgment] = []
        error: BaseException | None = None
        done = unjudged = 0
        coming = in_threads(
            to_ask.cases, self._case, at_once=self._concurrency, spending=self._spending, stop=self._stop
        )
        try:
            for judgments in coming:
                new += judgments
                done += 1
                unjudged += not all(judgment.status == "ok" for judgment in judgments)
                self._mind_failures(judgments)
                self._watch(JudgingProgress(done=done, total=len(to_ask.cases), unjudged=unjudged))
        except RagContractError as raised:
            error = raised
        if self._stop.asked:
            error = error or KeyboardInterrupt()
        return _judged(to_ask, new, self._spending.over, error)

    def _case(self, case: JudgeCase) -> list[Judgment]:
        """Judge a case. If all was stopped meanwhile, keep only what has a reply."""
        keys = [key for _, key in query_keys(case, self._settings, self._model)]
        dice = self._journal.dice(case.task, case.query_id, *keys)
        judgments = judge_case(case, self._model, self._settings, dice, self._clock)
        over = self._spending.over is not None
        kept = [self._booked(judgment) for judgment in judgments if not (over and judgment.status == "failed")]
        if kept:
            self._journal.add(kept)
        return kept

    def _booked(self, judgment: Judgment) -> Judgment:
        """Return a judgment with its cost and the time of this judging."""
        usd = self._spending.budget.cost(judgment.tokens_in, judgment.tokens_out)
        return replace(judgment, session=self._began, usd=usd)

    def _mind_failures(self, judgments: Sequence[Judgment]) -> None:
        """Stop if many cases in a row get no reply, because the endpoint is out of order."""
        if not judgments or all(judgment.reason.startswith(TOO_LONG) for judgment in judgments):
            return
        if any(judgment.status != "failed" for judgment in judgments):
            self._failed_in_a_row = 0
            return
        self._failed_in_a_row += 1
        if self._failed_in_a_row >= bounds.FAILED_IN_A_ROW:
            why = f"{count(self._failed_in_a_row, 'case')} in a row had no reply: {judgments[0].reason}"
            self._spending.stop(NoReply("outage", why, final=True))


def _judged(
    to_ask: Lacking, new: Sequence[Judgment], over: NoReply | None, error: BaseException | None
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


class _Done(Struct, Generic[Made], frozen=True):
    made: Made


def in_threads(
    items: Sequence[Given], make: Callable[[Given], Made], *, at_once: int, spending: Spending, stop: Stop
) -> Iterator[Made]:
    """Yield what is made of each item, as it comes. Raise what ``make`` raises, when all threads have ended.

    If somebody asks to stop, no further item is begun, and those under way have a moment to end.
    """
    results: SimpleQueue[_Done[Made] | BaseException | None] = SimpleQueue()
    left = iter(items)
    lock = threading.Lock()

    def work() -> None:
        try:
            while spending.over is None:
                with lock:
                    item = next(left, None)
                if item is None:
                    break
                results.put(_Done(make(item)))
        except BaseException as error:  # noqa: BLE001 (raised again by the thread that waits)
            spending.stop(NoReply("error", "something else went wrong", final=True))
            results.put(error)
        finally:
            results.put(None)

    running = min(at_once, len(items))
    for number in range(running):
        threading.Thread(target=work, name=f"judging-{number}", daemon=True).start()
    with by_signals(stop):
        yield from _collected(results, running, spending, stop)


def _collected(
    results: "SimpleQueue[_Done[Made] | BaseException | None]", running: int, spending: Spending, stop: Stop
) -> Iterator[Made]:
    error: BaseException | None = None
    end_by: float | None = None
    while running and (end_by is None or monotonic() < end_by):
        if stop.asked and end_by is None:
            spending.stop(NoReply("stopped", "somebody asked to stop", final=True))
            end_by = monotonic() + bounds.WIND_UP
        with suppress(Empty):
            match results.get(timeout=TICK):
                case None:
                    running -= 1
                case BaseException() as raised:
                    error = error or raised
                case done:
                    yield done.made
    if error is not None:
        raise error
