"""Judges cases into a judgments file: what the file has is reused, and it is written whole when the judging ends."""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from ragcontract.core.errors import RagContractError
from ragcontract.files.locking import not_ours
from ragcontract.files.rewriting import file_digest, in_turn, require_unchanged
from ragcontract.http.stopping import Stop
from ragcontract.judge.chat_model import ChatModel, Dialect
from ragcontract.judge.endpoint import Endpoint
from ragcontract.judge.expected_cost import Expected, expected_cost
from ragcontract.judge.interface import Clock, Settings
from ragcontract.judge.journal_key import journal_key
from ragcontract.judge.judge_case import utc_now
from ragcontract.judge.judging_session import Judged, Lacking, Progress, Session, lacking
from ragcontract.judge.judgment_cache import USUAL_DAYS, Cache, by_key
from ragcontract.judge.judgment_journal import JudgmentJournal, open_journal, path_beside
from ragcontract.judge.model_calls import CallLimits, ModelCalls
from ragcontract.judge.ollama import USUAL_CONTEXT, OllamaChat
from ragcontract.judge.openai_chat import OpenAIChat
from ragcontract.judge.spending import Budget, Spending, Spent
from ragcontract.runs.judged_texts import Case
from ragcontract.runs.judgments import Judgment, QueryKey, query_key, read_judgments, write_judgments


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
