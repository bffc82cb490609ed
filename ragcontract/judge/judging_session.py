"""Judges many cases: what is known is not asked again, several are asked at a time, and what comes is kept at once."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.answers.evidence import edited
from ragcontract.core import bounds
from ragcontract.core.errors import RagContractError
from ragcontract.core.numbers import count
from ragcontract.http.stopping import Stop
from ragcontract.judge.calls import TOO_LONG
from ragcontract.judge.interface import Clock, Model, NoReply, Settings
from ragcontract.judge.judge_case import judge_case
from ragcontract.judge.judge_identity import query_keys
from ragcontract.judge.judgment_cache import Cache
from ragcontract.judge.judgment_journal import JudgmentJournal, RememberingModel
from ragcontract.judge.spending import Spending
from ragcontract.judge.worker_threads import in_threads
from ragcontract.runs.judged_texts import Case
from ragcontract.runs.judgments import Judgment, QueryKey, query_key


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
