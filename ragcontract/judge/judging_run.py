"""What a judging would cost, for a dry run: the first calls are made of each case, and counted instead of sent.

Options of a judging as users give them, and what is wrong with them.

Judges cases into a judgments file: what the file has is reused, and it is written whole when the judging ends.
"""

import os
import random
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import get_args

from msgspec import Struct, field
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.errors import RagContractError
from ragcontract.core.judge_settings import Confirm
from ragcontract.core.numbers import is_within
from ragcontract.core.safe_text import shorten
from ragcontract.files.locking import file_digest, in_turn, not_ours, require_unchanged
from ragcontract.judge.chat_api import USUAL_CONTEXT, OllamaChat, OpenAIChat
from ragcontract.judge.chat_model import ChatModel, Dialect, estimated_tokens
from ragcontract.judge.endpoint import Endpoint
from ragcontract.judge.interface import Ask, Clock, Model, NoReply, Reply, Settings
from ragcontract.judge.judge_case import judge_case, utc_now
from ragcontract.judge.judging_session import USUAL_DAYS, Cache, Judged, Lacking, Progress, Session, by_key, lacking
from ragcontract.judge.judgment_journal import JudgmentJournal, journal_key, open_journal, path_beside
from ragcontract.judge.model_calls import CallLimits, ModelCalls
from ragcontract.judge.spending import Budget, Spending, Spent
from ragcontract.judgments.items import Case
from ragcontract.judgments.judgments_file import Judgment, QueryKey, query_key, read_judgments, write_judgments
from ragcontract.net.stopping import Stop


class Expected(Struct, frozen=True, kw_only=True):
    """What a judging would cost at least: calls, tokens in, by estimate, and at most so many out."""

    calls: int
    tokens_in: int
    most_out: int


def expected_cost(to_ask: Lacking, model: Model, settings: Settings) -> Expected:
    """Return what the first calls on each case would cost; nothing is asked."""
    counting = CountingModel(model.name, model.host)
    dice = random.SystemRandom()
    for case in to_ask.cases:
        judge_case(case, counting, settings, dice)
    return counting.expected


class CountingModel:
    """Notes what it is asked, and does not reply."""

    def __init__(self, name: str, host: str) -> None:
        """Have the name and the host of the model that would be asked: keys have them."""
        self.name, self.host = name, host
        self.expected = Expected(calls=0, tokens_in=0, most_out=0)

    def ask(self, ask: Ask) -> Reply:
        """Count; raises NoReply."""
        before = self.expected
        self.expected = Expected(
            calls=before.calls + 1,
            tokens_in=before.tokens_in + estimated_tokens(ask),
            most_out=before.most_out + ask.max_tokens,
        )
        raise NoReply("dry_run", "nothing is asked", final=True)


SETTINGS, LIMITS = Settings(), CallLimits()  # what is usual
DURATION = re.compile(r"(\d+(?:\.\d+)?)(s|m|min|h)")
UNITS: Mapping[str, int] = {"s": 1, "m": 60, "min": 60, "h": 3_600}
# The least and the most of each whole number, and of the others.
WHOLE = {
    "votes": (1, bounds.VOTES),
    "max_calls": (0, bounds.JUDGE_BUDGET),
    "max_tokens": (0, bounds.JUDGE_BUDGET),
    "concurrency": (1, bounds.CONCURRENCY),
    "retries": (0, bounds.RETRIES),
    "max_context": (1, bounds.JUDGE_CONTEXT),
    "max_reply": (1, bounds.JUDGE_CONTEXT),
}
NUMBERS = {
    "max_usd": (0, bounds.JUDGE_BUDGET),
    "price_in": (0, bounds.JUDGE_BUDGET),
    "price_out": (0, bounds.JUDGE_BUDGET),
    "timeout": (0.001, bounds.CALL_SECONDS),
    "connect_timeout": (0.001, bounds.CALL_SECONDS),
    "max_age_days": (0, bounds.RANK),
}


class JudgeOptions(Struct, frozen=True, kw_only=True):
    """The options; prices are in USD for a million tokens, ``deadline`` is text such as ``20m``, None is not given."""

    model: str
    votes: int = SETTINGS.votes
    confirm: Confirm = SETTINGS.confirm
    max_calls: int = 1_000
    max_tokens: int | None = None
    max_usd: float | None = None
    price_in: float | None = None
    price_out: float | None = None
    concurrency: int = LIMITS.concurrency
    deadline: str | None = None
    timeout: float = LIMITS.seconds
    connect_timeout: float = LIMITS.connect_seconds
    retries: int = LIMITS.retries
    max_context: int = USUAL_CONTEXT
    max_reply: int = SETTINGS.max_tokens
    max_age_days: float = USUAL_DAYS
    refresh: bool = False

    def wrong(self) -> list[tuple[str, str]]:
        """Return what is wrong, by the names of the fields."""
        found = []
        for name, (least, most) in {**WHOLE, **NUMBERS}.items():
            value, whole = getattr(self, name), name in WHOLE
            if value is None and getattr(USUAL, name) is None:
                continue
            if not is_within(value, least, most, whole=whole):
                kind = "a whole number" if whole else "a number"
                found.append((name, f"expected {kind} from {least:,} to {most:,}, found {value!r}"))
        if type(self.votes) is int and not self.votes % 2:
            found.append(("votes", f"expected an odd number, so that a majority decides, found {self.votes}"))
        if self.confirm not in get_args(Confirm):
            known = " or ".join(map(repr, get_args(Confirm)))
            found.append(("confirm", f"expected {known}, found {_shown(str(self.confirm))}"))
        if not isinstance(self.model, str) or not self.model.strip() or len(self.model) > bounds.JUDGE_NAME:
            found.append(("model", f"name the model to ask, in 1 to {bounds.JUDGE_NAME} characters"))
        if self.deadline is not None and _seconds(self.deadline) is None:
            found.append(("deadline", f"expected a time such as 90s, 20m or 2h, found {_shown(str(self.deadline))}"))
        if self.max_usd is not None and (self.price_in is None or self.price_out is None):
            found.append(("max_usd", "needs the prices of the model: --price-in and --price-out, in USD per million"))
        return found

    @property
    def settings(self) -> Settings:
        """How cases are judged."""
        return Settings(votes=self.votes, confirm=self.confirm, max_tokens=self.max_reply)

    @property
    def budget(self) -> Budget:
        """What it may cost; nothing may be wrong with the options."""
        return Budget(
            max_calls=self.max_calls,
            max_tokens=self.max_tokens,
            max_usd=self.max_usd,
            price_in=self.price_in,
            price_out=self.price_out,
            deadline=None if self.deadline is None else _seconds(self.deadline),
        )

    @property
    def limits(self) -> CallLimits:
        """How calls are made."""
        return CallLimits(
            concurrency=self.concurrency,
            retries=self.retries,
            seconds=self.timeout,
            connect_seconds=self.connect_timeout,
        )


USUAL = JudgeOptions(model="")  # as it is where nothing else is given; only the model must be


def _seconds(text: str) -> float | None:
    """Return the seconds of a deadline; None if it is none, or too far away."""
    found = DURATION.fullmatch(text.strip()) if isinstance(text, str) else None
    seconds = float(found[1]) * UNITS[found[2]] if found else 0
    return seconds if 0 < seconds <= bounds.JUDGE_DEADLINE else None


def _shown(text: str) -> str:
    return repr(shorten(text, bounds.NAME))


class JudgingSettings(Struct, frozen=True, kw_only=True):
    """How cases are judged, and where the judgments are; ``environ`` says where this user's programs keep things."""

    path: str
    model: str
    endpoint: Endpoint
    settings: Settings = Settings()
    budget: Budget = Budget()
    limits: CallLimits = CallLimits()
    max_age_days: float = USUAL_DAYS
    max_context: int = USUAL_CONTEXT
    refresh: bool = False
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    clock: Clock = utc_now


class JudgingOutcome(Struct, frozen=True, kw_only=True):
    """What came of a judging, what it cost, and what the endpoint turned out not to take."""

    judged: Judged
    spent: Spent
    dropped: tuple[str, ...] = ()


def open_model(judging: JudgingSettings, spending: Spending) -> ChatModel:
    """Return the model behind the endpoint; nothing is sent yet."""
    calls = ModelCalls(judging.endpoint, spending, judging.limits)
    dialect: Dialect = OllamaChat(judging.max_context) if judging.endpoint.api == "ollama" else OpenAIChat()
    return ChatModel(judging.model, dialect, calls)


def judge_cases(
    cases: Sequence[Case],
    judging: JudgingSettings,
    *,
    stop: Stop | None = None,
    watch: Callable[[Progress], object] = lambda _: None,
) -> JudgingOutcome:
    """Judge cases, and write what is judged, also if that is not all.

    Raises InputError if the judgments file cannot be read, or OutputError. The ``error`` of the result is
    KeyboardInterrupt if somebody asked to stop.
    """
    path = Path(judging.path)
    key = journal_key(judging.environ)
    journal = open_journal(path_beside(path), key=key, refresh=judging.refresh, option="--judgments")
    spending = Spending(judging.budget)
    model = open_model(judging, spending)
    is_all = False
    try:
        read = file_digest(judging.path)
        cache = _cache(judging, journal)
        to_ask = lacking(cases, model, judging.settings, cache)
        judged = judge_lacking(to_ask, judging, model, journal, spending, stop=stop or Stop(), watch=watch)
        with in_turn(judging.path):
            stored, content = cache.stored, cache.merged(to_ask.wanted, judged.new)
            if (now := file_digest(judging.path)) != read:
                stored = _stored(judging)
                content = _beside_others(stored, cache, to_ask, judged)
            # What nothing is asked about is replayed, too.
            if (content or path.exists() or not to_ask.wanted) and _is_news(content, stored, judged):
                write_judgments(judging.path, content, before=partial(require_unchanged, judging.path, now))
        is_all = judged.is_complete
        return JudgingOutcome(judged=judged, spent=spending.spent, dropped=model.dropped)
    finally:
        model.close()
        journal.close(remove=is_all)


def judge_lacking(
    to_ask: Lacking,
    judging: JudgingSettings,
    model: ChatModel,
    journal: JudgmentJournal,
    spending: Spending,
    *,
    stop: Stop,
    watch: Callable[[Progress], object],
) -> Judged:
    """Judge what is lacking, and keep it in the journal; raises OutputError if that fails."""
    session = Session(
        model,
        judging.settings,
        journal,
        spending,
        concurrency=judging.limits.concurrency,
        stop=stop,
        watch=watch,
        clock=judging.clock,
    )
    judged = session.run(to_ask)
    if isinstance(judged.error, RagContractError):
        raise judged.error
    return judged


def expected_judging(cases: Sequence[Case], judging: JudgingSettings) -> tuple[Lacking, Expected]:
    """Return what would be asked, and what it would cost at least; sends nothing and writes nothing."""
    model = open_model(judging, Spending())
    journal = copied_journal(path_beside(Path(judging.path)), judging)
    to_ask = lacking(cases, model, judging.settings, _cache(judging, journal))
    model.close()
    return to_ask, expected_cost(to_ask, model, judging.settings)


def copied_journal(path: Path, judging: JudgingSettings) -> JudgmentJournal | None:
    """Return a copy of the journal at ``path``, to be read; None if there is none that we made."""
    if not path.is_file() or not_ours(path):
        return None
    copy = BytesIO(path.read_bytes())
    return JudgmentJournal(copy, path, key=journal_key(judging.environ), refresh=judging.refresh)


def _is_news(content: Sequence[Judgment], stored: Mapping[QueryKey, Judgment], judged: Judged) -> bool:
    """Return whether there is anything to write: a judging that could not begin leaves the file as it is."""
    ended_early = judged.over is not None or judged.error is not None
    return not (ended_early and content == list(stored.values()))


def _stored(judging: JudgingSettings) -> Mapping[QueryKey, Judgment]:
    """Return what the file has; raises InputError if it is wrong."""
    if not Path(judging.path).exists():
        return {}
    read = read_judgments([judging.path])
    read.problems.raise_if_any()
    return read.by_key


def _beside_others(
    stored: Mapping[QueryKey, Judgment], cache: Cache, to_ask: Lacking, judged: Judged
) -> list[Judgment]:
    """Return what a file is to have that now has what is ``stored``: all that another program wrote meanwhile stays."""
    others = {key: judgment for key, judgment in stored.items() if cache.stored.get(key) != judgment}
    settled = {key for key, judgment in others.items() if judgment.status == "ok"}
    now = replace(
        cache,
        stored={**by_key(to_ask.cached), **stored},
        unfinished={key: judgment for key, judgment in cache.unfinished.items() if key not in settled},
    )
    new = [judgment for judgment in judged.new if query_key(judgment) not in settled]
    return now.merged([*to_ask.wanted, *others], new)


def _cache(judging: JudgingSettings, journal: JudgmentJournal | None) -> Cache:
    """Return the judgments that there are; raises InputError if the file is wrong."""
    return Cache(
        now=judging.clock(),
        stored=_stored(judging),
        unfinished=by_key(journal.judgments) if journal else {},
        max_age_days=judging.max_age_days,
        refresh=judging.refresh,
    )
