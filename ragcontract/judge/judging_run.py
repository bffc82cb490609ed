"""Judges cases into a judgments file; also the options of a judging, and its cost for a dry run.

Judgments in the file are reused, and the file is written whole when the judging ends. For a dry run, the first calls on
each case are counted instead of sent.
"""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import get_args

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.config_sections import Confirm
from ragcontract.core.numbers import is_within
from ragcontract.core.safe_text import shorten
from ragcontract.files.locking import file_digest, in_turn, not_ours, require_unchanged
from ragcontract.judge.chat_model import USUAL_CONTEXT, ChatModel, Dialect, OllamaChat, OpenAIChat, estimated_tokens
from ragcontract.judge.interface import Ask, NoReply, Reply, VoteSettings
from ragcontract.judge.judge_case import judge_case
from ragcontract.judge.judging_session import (
    USUAL_DAYS,
    Cache,
    JudgingProgress,
    JudgingResult,
    JudgingSettings,
    Lacking,
    by_key,
    judge_lacking,
    lacking,
)
from ragcontract.judge.judgment_journal import JudgmentJournal, journal_key, open_journal, path_beside
from ragcontract.judge.model_calls import Budget, CallLimits, ModelCalls, Spending, Spent
from ragcontract.judgments.items import JudgeCase
from ragcontract.judgments.judgments_file import Judgment, QueryKey, query_key, read_judgments, write_judgments
from ragcontract.net.journal import Lines
from ragcontract.net.pool import Stop

SETTINGS, LIMITS = VoteSettings(), CallLimits()  # the defaults
DURATION = re.compile(r"(\d+(?:\.\d+)?)(s|m|min|h)")
UNITS: Mapping[str, int] = {"s": 1, "m": 60, "min": 60, "h": 3_600}
# The least and the most of each option that is a whole number, and of the other numbers.
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
    """The options of a judging. An option that is None is not set."""

    model: str
    votes: int = SETTINGS.votes
    confirm: Confirm = SETTINGS.confirm
    max_calls: int = 1_000
    max_tokens: int | None = None
    max_usd: float | None = None
    price_in: float | None = None  # USD for a million tokens
    price_out: float | None = None  # USD for a million tokens
    concurrency: int = LIMITS.concurrency
    deadline: str | None = None  # such as 20m
    timeout: float = LIMITS.seconds
    connect_timeout: float = LIMITS.connect_seconds
    retries: int = LIMITS.retries
    max_context: int = USUAL_CONTEXT
    max_reply: int = SETTINGS.max_tokens
    max_age_days: float = USUAL_DAYS
    refresh: bool = False

    def wrong(self) -> list[tuple[str, str]]:
        """Return the names of options with wrong values, and what is wrong with each."""
        problems = []
        for name, (least, most) in {**WHOLE, **NUMBERS}.items():
            value, whole = getattr(self, name), name in WHOLE
            if value is None and getattr(USUAL, name) is None:
                continue
            if not is_within(value, least, most, whole=whole):
                kind = "a whole number" if whole else "a number"
                problems.append((name, f"expected {kind} from {least:,} to {most:,}, found {value!r}"))
        if type(self.votes) is int and not self.votes % 2:
            problems.append(("votes", f"expected an odd number, so that a majority decides, found {self.votes}"))
        if self.confirm not in get_args(Confirm):
            known = " or ".join(map(repr, get_args(Confirm)))
            problems.append(("confirm", f"expected {known}, found {_shown(str(self.confirm))}"))
        if not isinstance(self.model, str) or not self.model.strip() or len(self.model) > bounds.JUDGE_NAME:
            problems.append(("model", f"name the model to ask, in 1 to {bounds.JUDGE_NAME} characters"))
        if self.deadline is not None and _seconds(self.deadline) is None:
            problems.append(("deadline", f"expected a time such as 90s, 20m or 2h, found {_shown(str(self.deadline))}"))
        if self.max_usd is not None and (self.price_in is None or self.price_out is None):
            problems.append(
                ("max_usd", "needs the prices of the model: --price-in and --price-out, in USD per million")
            )
        return problems

    @property
    def settings(self) -> VoteSettings:
        return VoteSettings(votes=self.votes, confirm=self.confirm, max_tokens=self.max_reply)

    @property
    def budget(self) -> Budget:
        """What the judging may cost. The options must be valid."""
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
        return CallLimits(
            concurrency=self.concurrency,
            retries=self.retries,
            seconds=self.timeout,
            connect_seconds=self.connect_timeout,
        )


USUAL = JudgeOptions(model="")  # the defaults; the model has none


class JudgingOutcome(Struct, frozen=True, kw_only=True):
    """The result of a judging, and what it cost."""

    judged: JudgingResult
    spent: Spent
    dropped: tuple[str, ...] = ()  # the parameters that the endpoint refused


def judge_cases(
    cases: Sequence[JudgeCase],
    judging: JudgingSettings,
    *,
    stop: Stop | None = None,
    watch: Callable[[JudgingProgress], object] = lambda _: None,
) -> JudgingOutcome:
    """Judge cases, and write the judgments, also if they are not complete.

    Raise InputError if the judgments file cannot be read, or OutputError. The ``error`` of the result is
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
        cache = cache_of(judging, journal, _stored(judging))
        to_ask = lacking(cases, model, judging.settings, cache)
        judged = judge_lacking(to_ask, judging, model, journal, spending, stop=stop or Stop(), watch=watch)
        with in_turn(judging.path):
            stored, content = cache.stored, cache.merged(to_ask.wanted, judged.new)
            if (now := file_digest(judging.path)) != read:
                stored = _stored(judging)
                content = _beside_others(stored, cache, to_ask, judged)
            # If there is nothing to judge, an empty file is written, so that a check can replay it.
            if (content or path.exists() or not to_ask.wanted) and _is_news(content, stored, judged):
                write_judgments(judging.path, content, before=partial(require_unchanged, judging.path, now))
        is_all = judged.is_complete
        return JudgingOutcome(judged=judged, spent=spending.spent, dropped=model.dropped)
    finally:
        model.close()
        journal.close(remove=is_all)


def open_model(judging: JudgingSettings, spending: Spending) -> ChatModel:
    """Return the model behind the endpoint, without sending anything."""
    calls = ModelCalls(judging.endpoint, spending, judging.limits)
    dialect: Dialect = OllamaChat(judging.max_context) if judging.endpoint.api == "ollama" else OpenAIChat()
    return ChatModel(judging.model, dialect, calls)


class Expected(Struct, frozen=True, kw_only=True):
    """What a judging would cost at least."""

    calls: int
    tokens_in: int  # an estimate
    most_out: int  # tokens


def expected_judging(cases: Sequence[JudgeCase], judging: JudgingSettings) -> tuple[Lacking, Expected]:
    """Return what would be asked, and what it would cost at least, without sending or writing anything."""
    return expected(cases, judging, [path_beside(Path(judging.path))], _stored(judging))


def expected(
    cases: Sequence[JudgeCase],
    judging: JudgingSettings,
    journals: Sequence[Path],
    stored: Mapping[QueryKey, Judgment],
) -> tuple[Lacking, Expected]:
    """Return what would be asked in a pass with each of these journals, and what the first calls on each case cost."""
    model, dice = CountingModel(judging.model, judging.endpoint.host), random.SystemRandom()
    each = [
        lacking(cases, model, judging.settings, cache_of(judging, copied_journal(path, judging), stored))
        for path in journals
    ]
    to_ask = Lacking(
        wanted=tuple(key for of_pass in each for key in of_pass.wanted),
        cached=tuple(judgment for of_pass in each for judgment in of_pass.cached),
        cases=tuple(case for of_pass in each for case in of_pass.cases),
    )
    for case in to_ask.cases:
        judge_case(case, model, judging.settings, dice)
    return to_ask, model.expected


class CountingModel:
    """Counts what it is asked, and does not reply."""

    def __init__(self, name: str, host: str) -> None:
        self.name, self.host = name, host  # of the model that would be asked, because keys have them
        self.expected = Expected(calls=0, tokens_in=0, most_out=0)

    def ask(self, ask: Ask) -> Reply:
        before = self.expected
        self.expected = Expected(
            calls=before.calls + 1,
            tokens_in=before.tokens_in + estimated_tokens(ask),
            most_out=before.most_out + ask.max_tokens,
        )
        raise NoReply("dry_run", "nothing is asked", final=True)


def copied_journal(path: Path, judging: JudgingSettings) -> JudgmentJournal | None:
    """Return a copy of the journal at ``path``, to be read; None if there is none of this user."""
    if not path.is_file() or not_ours(path):
        return None
    return JudgmentJournal(
        Lines(BytesIO(path.read_bytes()), None), key=journal_key(judging.environ), refresh=judging.refresh
    )


def _seconds(text: str) -> float | None:
    """Return the seconds of a deadline; None if the text is not a time, or too long a time."""
    match = DURATION.fullmatch(text.strip()) if isinstance(text, str) else None
    seconds = float(match[1]) * UNITS[match[2]] if match else 0
    return seconds if 0 < seconds <= bounds.JUDGE_DEADLINE else None


def _shown(text: str) -> str:
    return repr(shorten(text, bounds.NAME))


def _is_news(content: Sequence[Judgment], stored: Mapping[QueryKey, Judgment], judged: JudgingResult) -> bool:
    """Return whether there is anything to write. A judging that could not begin leaves the file as it is."""
    ended_early = judged.over is not None or judged.error is not None
    return not (ended_early and content == list(stored.values()))


def _stored(judging: JudgingSettings) -> Mapping[QueryKey, Judgment]:
    """Return the judgments in the file; raise InputError if it is wrong."""
    if not Path(judging.path).exists():
        return {}
    read = read_judgments([judging.path])
    read.problems.raise_if_any()
    return read.by_key


def _beside_others(
    stored: Mapping[QueryKey, Judgment], cache: Cache, to_ask: Lacking, judged: JudgingResult
) -> list[Judgment]:
    """Return the content of a file that another program changed meanwhile to ``stored``: all that it wrote stays."""
    others = {key: judgment for key, judgment in stored.items() if cache.stored.get(key) != judgment}
    settled = {key for key, judgment in others.items() if judgment.status == "ok"}
    now = replace(
        cache,
        stored={**by_key(to_ask.cached), **stored},
        unfinished={key: judgment for key, judgment in cache.unfinished.items() if key not in settled},
    )
    new = [judgment for judgment in judged.new if query_key(judgment) not in settled]
    return now.merged([*to_ask.wanted, *others], new)


def cache_of(judging: JudgingSettings, journal: JudgmentJournal | None, stored: Mapping[QueryKey, Judgment]) -> Cache:
    """Return the earlier judgments, of a judging that did not end and of a file."""
    return Cache(
        now=judging.clock(),
        stored=stored,
        unfinished=by_key(journal.judgments) if journal else {},
        max_age_days=judging.max_age_days,
        refresh=judging.refresh,
    )
