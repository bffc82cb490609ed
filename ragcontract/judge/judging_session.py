"""Judges many cases: what is known is not asked again, several are asked at a time, and what comes is kept at once."""

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from time import monotonic

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.errors import RagContractError
from ragcontract.core.ids import as_id
from ragcontract.core.numbers import count
from ragcontract.http.stopping import Stop
from ragcontract.judge.interface import Ask, Clock, Model, NoReply, Reply, Settings
from ragcontract.judge.judge_case import judge_case, utc_now
from ragcontract.judge.judge_identity import keys_of
from ragcontract.judge.judgment_cache import Cache, Place, place_of
from ragcontract.judge.judgment_journal import JudgmentJournal, RememberingModel
from ragcontract.judge.spending import Spending
from ragcontract.runs.judged_texts import Case
from ragcontract.runs.judgments import Judgment

TICK = 0.2  # s; how often somebody who asks to stop is heard


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

    wanted: tuple[Place, ...]
    found: Mapping[Place, Judgment]
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


class Lacking(Struct, frozen=True, kw_only=True):
    """What there is to ask: ``cached`` judgments are reused, ``cases`` are asked as a whole."""

    wanted: tuple[Place, ...]
    cached: tuple[Judgment, ...]
    cases: tuple[Case, ...]


def lacking(cases: Sequence[Case], model: Model, settings: Settings, cache: Cache) -> Lacking:
    """Return what is to be asked; a case is asked as a whole, because its items are judged together."""
    wanted: list[Place] = []
    cached: list[Judgment] = []
    to_ask = []
    for case in cases:
        places = [(as_id(case.query_id), key) for key in keys_of(case, settings, model)]
        known = [one for place in places if (one := cache.get(place)) is not None]
        wanted += places
        if len(known) == len(places):
            cached += known
        else:
            to_ask.append(case)
    return Lacking(wanted=tuple(wanted), cached=tuple(cached), cases=tuple(to_ask))


class Expected(Struct, frozen=True, kw_only=True):
    """What a judging would cost at least: calls, tokens in, by estimate, and at most so many out."""

    calls: int
    tokens_in: int
    most_out: int


def expected(to_ask: Lacking, model: Model, settings: Settings, estimate: Callable[[Ask], int]) -> Expected:
    """Return what the first calls on each case would cost; nothing is asked."""
    counting = CountingModel(model.name, model.host, estimate)
    dice = random.SystemRandom()
    for case in to_ask.cases:
        judge_case(case, counting, settings, dice)
    return counting.expected


class CountingModel:
    """Notes what it is asked, and does not reply."""

    def __init__(self, name: str, host: str, estimate: Callable[[Ask], int]) -> None:
        """Be called so; ``estimate`` returns the tokens that are sent."""
        self.name, self.host = name, host
        self._estimate = estimate
        self.expected = Expected(calls=0, tokens_in=0, most_out=0)

    def ask(self, ask: Ask) -> Reply:
        """Count; raises NoReply."""
        before = self.expected
        self.expected = Expected(
            calls=before.calls + 1,
            tokens_in=before.tokens_in + self._estimate(ask),
            most_out=before.most_out + ask.max_tokens,
        )
        raise NoReply("dry_run", "nothing is asked", final=True)


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
        watch: Callable[[Progress], object] = lambda _: None,
        clock: Clock = utc_now,
    ) -> None:
        """Prepare; ``watch`` is called from the thread that calls :meth:`run`."""
        self._model = RememberingModel(model, journal, spending)
        self._settings = settings
        self._journal = journal
        self._spending = spending
        self._concurrency = concurrency
        self._stop = stop
        self._watch = watch
        self._clock = clock
        self._lock = threading.Lock()
        self._done: SimpleQueue[list[Judgment] | BaseException | None] = SimpleQueue()
        self._failed_in_a_row = 0

    def run(self, to_ask: Lacking) -> Judged:
        """Ask until all cases are judged, or until somebody asks to stop, or nothing more may be asked."""
        cases = iter(to_ask.cases)
        threads = [
            threading.Thread(target=self._work, args=(cases,), name=f"judging-{number}", daemon=True)
            for number in range(min(self._concurrency, len(to_ask.cases)))
        ]
        self._stop.on_asking(lambda: self._done.put([]))
        for thread in threads:
            thread.start()
        new, error = self._collected(len(threads), len(to_ask.cases))
        if self._stop.asked:
            error = error or KeyboardInterrupt()
        return _judged(to_ask, new, self._spending.over, error)

    def _work(self, cases: Iterator[Case]) -> None:
        try:
            while self._spending.over is None:
                with self._lock:
                    case = next(cases, None)
                if case is None:
                    break
                self._done.put(self._case(case))
        except BaseException as error:  # noqa: BLE001 (raised again when the others have ended)
            self._spending.stop(NoReply("error", "a case could not be judged", final=True))
            self._done.put(error)
        finally:
            self._done.put(None)

    def _case(self, case: Case) -> list[Judgment]:
        """Judge a case; of one that was only begun when all was stopped, keep what has a verdict."""
        dice = self._journal.dice(case.task, as_id(case.query_id), *keys_of(case, self._settings, self._model))
        judgments = judge_case(case, self._model, self._settings, dice, self._clock)
        over = self._spending.over is not None
        kept = [one for one in judgments if not (over and one.status == "failed")]
        if kept:
            self._journal.add(kept)
        return kept

    def _collected(self, threads: int, total: int) -> tuple[list[Judgment], BaseException | None]:
        new: list[Judgment] = []
        done = unjudged = 0
        error: BaseException | None = None
        end_by: float | None = None
        while threads and (end_by is None or monotonic() < end_by):
            if self._stop.asked and end_by is None:
                self._spending.stop(NoReply("stopped", "somebody asked to stop", final=True))
                end_by = monotonic() + bounds.WIND_UP
            with suppress(Empty):
                match self._done.get(timeout=TICK):
                    case None:
                        threads -= 1
                    case BaseException() as raised:
                        error = error or raised
                    case judgments:
                        new += judgments
                        done += bool(judgments)
                        unjudged += any(one.status != "ok" for one in judgments)
                        self._mind_failures(judgments)
            self._watch(Progress(done=done, total=total, unjudged=unjudged))
        return new, error

    def _mind_failures(self, judgments: Sequence[Judgment]) -> None:
        """Stop all if case after case gets no reply: the endpoint is out of order."""
        if not judgments:
            return
        if any(one.status != "failed" for one in judgments):
            self._failed_in_a_row = 0
            return
        self._failed_in_a_row += 1
        if self._failed_in_a_row >= bounds.FAILED_IN_A_ROW:
            why = f"{count(self._failed_in_a_row, 'case')} in a row had no reply: {judgments[0].reason}"
            self._spending.stop(NoReply("outage", why, final=True))


def _judged(to_ask: Lacking, new: Sequence[Judgment], over: NoReply | None, error: BaseException | None) -> Judged:
    if error is not None and not isinstance(error, KeyboardInterrupt | RagContractError):
        raise error  # a bug; the journal has what came
    found = {place_of(one): one for one in [*to_ask.cached, *new]}
    statuses: Counter[str] = Counter(found[place].status for place in to_ask.wanted if place in found)
    reasons: dict[str, str] = {one.status: one.reason for one in reversed(list(found.values())) if one.status != "ok"}
    return Judged(
        wanted=to_ask.wanted,
        found=found,
        new=tuple(new),
        cached=len(to_ask.cached),
        statuses=statuses,
        missing=sum(place not in found for place in to_ask.wanted),
        reasons=reasons,
        over=over,
        error=error,
    )
