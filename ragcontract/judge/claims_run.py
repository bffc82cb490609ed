"""Splits references into claims, once. The golden file then has the same claims for every judge and every check."""

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from ragcontract.answers.normalising import normalised
from ragcontract.core import bounds
from ragcontract.core.golden import GoldenQuery
from ragcontract.judge.calls import ReplyFault, ask_of, listed, object_of, reply_to, writable
from ragcontract.judge.interface import Dice, Model, NoReply, Reply, VoteSettings
from ragcontract.judge.judging_run import CountingModel, Expected, open_model
from ragcontract.judge.judging_session import JudgingProgress, JudgingSettings, in_threads
from ragcontract.judge.judgment_journal import JudgmentJournal, RememberingModel, journal_key, open_journal, path_beside
from ragcontract.judge.model_calls import Spending, Spent
from ragcontract.judge.tasks import CLAIMS
from ragcontract.judgments.replay import Evidence
from ragcontract.labelling.labels import GoldenRows
from ragcontract.net.pool import Stop

TRIES = 2
FIELD = "reference_claims"


class Split(Struct, frozen=True, kw_only=True):
    """The claims of a reference."""

    status: Literal["ok", "unsure", "failed"]
    claims: tuple[str, ...] = ()  # in the order of the reference; none unless the status is ok
    reason: str = ""  # why there are no claims


class Splits(Struct, frozen=True, kw_only=True):
    """The result of splitting the references of many queries."""

    queries: int  # how many were to be split
    by_query: Mapping[str, Split]
    spent: Spent
    over: NoReply | None = None  # why it ended early
    interrupted: bool = False  # whether somebody asked to stop

    @property
    def ok(self) -> dict[str, Split]:
        """The splits that have claims, by query."""
        return {query_id: split for query_id, split in self.by_query.items() if split.status == "ok"}


def to_split(golden: GoldenRows) -> list[GoldenQuery]:
    """Return the queries that have a reference and no claims."""
    return [
        query
        for query in golden.queries.values()
        if query.answer and query.answer.reference and query.answer.reference_claims is None
    ]


def split_all(
    golden: GoldenRows,
    queries: Sequence[GoldenQuery],
    judging: JudgingSettings,
    *,
    stop: Stop,
    watch: Callable[[JudgingProgress], object] = lambda _: None,
) -> Splits:
    """Split the references of queries, and write the claims into the golden file.

    Replies of an earlier splitting that did not end are not asked for again. Raise InputError or OutputError.
    """
    journal = open_journal(path_beside(Path(golden.path)), key=journal_key(judging.environ), refresh=False)
    spending = Spending(judging.budget)
    model = open_model(judging, spending)
    is_all = False
    try:
        remembering = RememberingModel(model, journal, spending)

        def split(query: GoldenQuery) -> tuple[str, Split]:
            return query.id, _split(query, remembering, judging, journal)

        splits: dict[str, Split] = {}
        lacking = 0

        def take(made: tuple[str, Split]) -> None:
            nonlocal lacking
            query_id, query_split = made
            splits[query_id] = query_split
            lacking += query_split.status != "ok"
            watch(JudgingProgress(done=len(splits), total=len(queries), unjudged=lacking))

        in_threads(queries, split, take, at_once=judging.limits.concurrency, spending=spending, stop=stop)
        golden.save_field(
            FIELD,
            {name: list(query_split.claims) for name, query_split in splits.items() if query_split.status == "ok"},
        )
        is_all = len(splits) == len(queries) and all(query_split.status != "failed" for query_split in splits.values())
        return Splits(
            queries=len(queries), by_query=splits, spent=spending.spent, over=spending.over, interrupted=stop.asked
        )
    finally:
        model.close()
        journal.close(remove=is_all)


def expected_splits(queries: Sequence[GoldenQuery], judging: JudgingSettings) -> Expected:
    """Return what splitting would cost at least, without sending or writing anything."""
    counting = CountingModel(judging.model, judging.endpoint.host)
    for query in queries:
        reference = (query.answer and query.answer.reference) or ""
        split_reference(query.query, reference, counting, judging.settings, random.SystemRandom())
    return counting.expected


def split_reference(question: str, reference: str, model: Model, settings: VoteSettings, dice: Dice) -> Split:
    """Return the claims into which a model splits a reference. The model quotes words of the reference for each."""
    evidence = Evidence({}, reference)
    fault = ""
    for _ in range(TRIES):
        data: dict[str, Any] = {"question": question, "reference": reference}
        ask = ask_of(CLAIMS, data, dice, settings, fault=fault)
        reply = reply_to(ask, model)
        if isinstance(reply, str):
            return Split(status="failed", reason=reply)
        try:
            return Split(status="ok", claims=_claims(reply, evidence))
        except ReplyFault as error:
            fault = f"The last reply {error}."
    return Split(status="unsure", reason=fault)


def _split(query: GoldenQuery, model: Model, judging: JudgingSettings, journal: JudgmentJournal) -> Split:
    reference = (query.answer and query.answer.reference) or ""
    dice = journal.dice("claims", query.id, query.query, reference)
    return split_reference(query.query, reference, model, judging.settings, dice)


def _claims(reply: Reply, evidence: Evidence) -> tuple[str, ...]:
    """Return the claims in a reply; raise :class:`ReplyFault`."""
    claims: dict[str, str] = {}
    for item in listed(object_of(reply), "claims"):
        text = item.get("text")
        if not isinstance(text, str) or not text.strip() or len(text) > bounds.EVIDENCE:
            raise ReplyFault(f"had a claim that is not a text of 1 to {bounds.EVIDENCE:,} characters")
        if wrong := evidence.fault(item.get("quote")):
            raise ReplyFault(f"had a claim that was refused because {wrong}")
        if (same := normalised(text)) in claims:
            raise ReplyFault("had a claim twice")
        claims[same] = writable(text.strip())
    if not 1 <= len(claims) <= bounds.REFERENCE_CLAIMS:
        raise ReplyFault(f"had {len(claims)} claims; expected 1 to {bounds.REFERENCE_CLAIMS}")
    return tuple(claims.values())
