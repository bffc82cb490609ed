"""Threads that take one thing after another, until all is done, nothing more may be begun, or somebody asks to stop.

Which earlier judgments are as good as new ones, and what a judgments file has in the end.

Judges many cases: what is known is not asked again, several are asked at a time, and what comes is kept at once.
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
from ragcontract.judge.interface import Clock, Model, NoReply, Settings
from ragcontract.judge.judge_case import judge_case
from ragcontract.judge.judgment_journal import JudgmentJournal, RememberingModel
from ragcontract.judge.spending import Spending
from ragcontract.judgments.items import Case
from ragcontract.judgments.judgments_file import Judgment, QueryKey, query_key
from ragcontract.judgments.replay import edited
from ragcontract.net.stopping import Stop, by_signals

TICK = 0.2  # s; how often somebody who asks to stop is heard

Given = TypeVar("Given")
Made = TypeVar("Made")


class _Done(Struct, Generic[Made], frozen=True):
    made: Made


def in_threads(
    items: Sequence[Given], make: Callable[[Given], Made], *, at_once: int, spending: Spending, stop: Stop
) -> Iterator[Made]:
    """Yield what is made of each item, as it comes; raises what ``make`` raises, when all that is under way has ended.

    If somebody asks to stop, nothing more is begun, and what is under way then is waited for a moment only.
    """
    results: SimpleQueue[_Done[Made] | BaseException | None] = SimpleQueue()
    left = iter(items)
    lock = threading.Lock()

    def work() -> None:
        try:
            while spending.over is None:
                with lock:
                    one = next(left, None)
                if one is None:
                    break
                results.put(_Done(make(one)))
        except BaseException as error:  # noqa: BLE001 (raised again by who waits)
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


USUAL_DAYS = 7


class Cache(Struct, frozen=True, kw_only=True):
    """Earlier judgments: those ``stored`` in the file, and those of a judging that did not end.

    A judgment is reused for ``max_age_days``, by the clock of this machine: one from the future is not. What is
    ``stored`` is reused only where there is a verdict; of the judging that did not end, whatever was replied.
    """

    now: datetime
    stored: Mapping[QueryKey, Judgment] = {}
    unfinished: Mapping[QueryKey, Judgment] = {}
    max_age_days: float = USUAL_DAYS
    refresh: bool = False

    def get(self, wanted: QueryKey) -> Judgment | None:
        """Return a judgment to reuse; None if the item is to be asked."""
        unfinished = self.unfinished.get(wanted)
        if unfinished is not None and unfinished.status != "failed" and self._is_fresh(unfinished):
            return unfinished
        stored = None if self.refresh else self.stored.get(wanted)
        return stored if stored is not None and stored.status == "ok" and self._is_fresh(stored) else None

    def merged(self, wanted: Iterable[QueryKey], new: Iterable[Judgment]) -> list[Judgment]:
        """Return the content of the file: the new judgments, and earlier ones that may still be of use.

        Where there is no new one, the old one stays, however old: a check says how old it is. What is not wanted any
        more stays as long as it could be reused, because texts may change back, and until its query has a verdict on
        all that is wanted: a judging of some queries or tasks leaves the others alone.
        """
        result = {**self.stored, **self.unfinished}
        for judgment in new:
            old = result.get(query_key(judgment))
            if judgment.status != "failed" or old is None or old.status == "failed":
                result[query_key(judgment)] = judgment
        asked = set(wanted)
        lacking = {one[0] for one in asked if one not in result or result[one].status != "ok"}
        again = {(one[0], result[one].task) for one in asked if one[0] not in lacking}
        return [
            one
            for found_by, one in result.items()
            if found_by in asked or self._is_fresh(one) or (found_by[0], one.task) not in again
        ]

    def _is_fresh(self, judgment: Judgment) -> bool:
        # Not the other way round: a timedelta cannot have as many days as somebody may allow.
        return 0 <= (self.now - judgment.at) / timedelta(days=1) <= self.max_age_days


def by_key(judgments: Sequence[Judgment]) -> dict[QueryKey, Judgment]:
    """Return judgments by what they are found by; of several, the last."""
    return {query_key(judgment): judgment for judgment in judgments}


class Progress(Struct, frozen=True, kw_only=True):
    """How far a judging is, in cases; ``cached`` ones are not asked."""

    done: int
    total: int
    unjudged: int


class Judged(Struct, frozen=True, kw_only=True):
    """What came of a judging: the judgments ``found`` of those wanted, of which some are ``new``.

    ``cached`` counts those that were reused, ``statuses`` all that were found, and ``missing`` what was not even asked;
    ``reasons`` has one for each status. ``error`` is why it ended early, an exception to raise.
    """

    wanted: tuple[QueryKey, ...]
    found: Mapping[QueryKey, Judgment]
    new: tuple[Judgment, ...]
    cached: int
    statuses: Mapping[str, int]
    missing: int
    reasons: Mapping[str, str]
    over: NoReply | None = None
    error: BaseException | None = None

    @property
    def unjudged(self) -> int:
        """How many wanted items have no verdict."""
        return self.missing + sum(number for status, number in self.statuses.items() if status != "ok")

    @property
    def is_complete(self) -> bool:
        """Whether there is nothing to go on with: everything was replied to, or cannot be asked."""
        failed = (one for one in self.found.values() if one.status == "failed")
        return not self.missing and all(one.reason.startswith(TOO_LONG) for one in failed)


class Lacking(Struct, frozen=True, kw_only=True):
    """What there is to ask: ``cached`` judgments are reused, ``cases`` are asked as a whole."""

    wanted: tuple[QueryKey, ...]
    cached: tuple[Judgment, ...]
    cases: tuple[Case, ...]


def lacking(cases: Sequence[Case], model: Model, settings: Settings, cache: Cache) -> Lacking:
    """Return what is to be asked; a case is asked as a whole, because its items are judged together.

    Judgments that were edited, so that their quotes are not in the texts, are not reused.
    """
    wanted: list[QueryKey] = []
    cached: list[Judgment] = []
    to_ask = []
    for case in cases:
        keys = query_keys(case, settings, model)
        known = [one for key in keys if (one := cache.get(key)) is not None]
        wanted += keys
        if len(known) == len(keys) and not edited(case, known):
            cached += known
        else:
            to_ask.append(case)
    return Lacking(wanted=tuple(wanted), cached=tuple(cached), cases=tuple(to_ask))


class Session:
    """One judging under way."""

    def __init__(
        self,
        model: Model,
        settings: Settings,
        journal: JudgmentJournal,
        spending: Spending,
        *,
        concurrency: int,
        stop: Stop,
        watch: Callable[[Progress], object],
        clock: Clock,
    ) -> None:
        """Prepare; ``watch`` is called from the thread that calls :meth:`run`."""
        self._model = RememberingModel(model, journal, spending)
        self._settings = settings
        self._journal = journal
        self._spending = spending
        self._concurrency = concurrency
        self._watch = watch
        self._clock = clock
        self._stop = stop
        self._began = clock()
        self._failed_in_a_row = 0

    def run(self, to_ask: Lacking) -> Judged:
        """Ask until all cases are judged, or until somebody asks to stop, or nothing more may be asked."""
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
                unjudged += not all(one.status == "ok" for one in judgments)
                self._mind_failures(judgments)
                self._watch(Progress(done=done, total=len(to_ask.cases), unjudged=unjudged))
        except RagContractError as raised:
            error = raised
        if self._stop.asked:
            error = error or KeyboardInterrupt()
        return _judged(to_ask, new, self._spending.over, error)

    def _case(self, case: Case) -> list[Judgment]:
        """Judge a case; of one that was only begun when all was stopped, keep what has a verdict."""
        keys = [key for _, key in query_keys(case, self._settings, self._model)]
        dice = self._journal.dice(case.task, case.query_id, *keys)
        judgments = judge_case(case, self._model, self._settings, dice, self._clock)
        over = self._spending.over is not None
        kept = [self._booked(one) for one in judgments if not (over and one.status == "failed")]
        if kept:
            self._journal.add(kept)
        return kept

    def _booked(self, judgment: Judgment) -> Judgment:
        """Return a judgment with what is known of this judging."""
        usd = self._spending.budget.cost(judgment.tokens_in, judgment.tokens_out)
        return replace(judgment, session=self._began, usd=usd)

    def _mind_failures(self, judgments: Sequence[Judgment]) -> None:
        """Stop all if case after case gets no reply: the endpoint is out of order."""
        if not judgments or all(one.reason.startswith(TOO_LONG) for one in judgments):
            return
        if any(one.status != "failed" for one in judgments):
            self._failed_in_a_row = 0
            return
        self._failed_in_a_row += 1
        if self._failed_in_a_row >= bounds.FAILED_IN_A_ROW:
            why = f"{count(self._failed_in_a_row, 'case')} in a row had no reply: {judgments[0].reason}"
            self._spending.stop(NoReply("outage", why, final=True))


def _judged(to_ask: Lacking, new: Sequence[Judgment], over: NoReply | None, error: BaseException | None) -> Judged:
    found = {query_key(one): one for one in [*to_ask.cached, *new]}
    statuses: Counter[str] = Counter(found[one].status for one in to_ask.wanted if one in found)
    reasons: dict[str, str] = {one.status: one.reason for one in reversed(list(found.values())) if one.status != "ok"}
    return Judged(
        wanted=to_ask.wanted,
        found=found,
        new=tuple(new),
        cached=len(to_ask.cached),
        statuses=statuses,
        missing=sum(one not in found for one in to_ask.wanted),
        reasons=reasons,
        over=over,
        error=error,
    )
