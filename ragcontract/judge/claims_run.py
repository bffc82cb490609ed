"""Splitting a reference into claims, once: what is in the golden file is then the same for every judge and check.

Splits references into claims, once: the golden file then says how many there are, for every judge and check.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from ragcontract.answers.normalising import normalised
from ragcontract.core import bounds
from ragcontract.core.golden import GoldenQuery
from ragcontract.judge.calls import ReplyFault, ask_of, listed, object_of, reply_to, writable
from ragcontract.judge.interface import Dice, Model, NoReply, Reply, Settings
from ragcontract.judge.judging_run import CountingModel, Expected, JudgingSettings, open_model
from ragcontract.judge.judging_session import Progress, in_threads
from ragcontract.judge.judgment_journal import JudgmentJournal, RememberingModel, journal_key, open_journal, path_beside
from ragcontract.judge.spending import Spending, Spent
from ragcontract.judge.tasks import CLAIMS
from ragcontract.judgments.replay import Evidence
from ragcontract.labelling.labels import GoldenRows
from ragcontract.net.stopping import Stop

TRIES = 2


class Split(Struct, frozen=True, kw_only=True):
    """The claims of a reference, in its order; if it is not ``ok``, there are none, and ``reason`` says why."""

    status: Literal["ok", "unsure", "failed"]
    claims: tuple[str, ...] = ()
    reason: str = ""


def split_reference(question: str, reference: str, model: Model, settings: Settings, dice: Dice) -> Split:
    """Return the claims that a model splits a reference into, each from words that are in the reference."""
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


def _claims(reply: Reply, evidence: Evidence) -> tuple[str, ...]:
    """Return the claims in a reply; raises :class:`ReplyFault`."""
    found: dict[str, str] = {}
    for item in listed(object_of(reply), "claims"):
        text = item.get("text")
        if not isinstance(text, str) or not text.strip() or len(text) > bounds.EVIDENCE:
            raise ReplyFault(f"had a claim that is no text of 1 to {bounds.EVIDENCE:,} characters")
        if wrong := evidence.fault(item.get("quote"), None):
            raise ReplyFault(f"had a claim that was refused because {wrong}")
        if (same := normalised(text)) in found:
            raise ReplyFault("had a claim twice")
        found[same] = writable(text.strip())
    if not 1 <= len(found) <= bounds.REFERENCE_CLAIMS:
        raise ReplyFault(f"had {len(found)} claims; expected 1 to {bounds.REFERENCE_CLAIMS}")
    return tuple(found.values())


FIELD = "reference_claims"


class Splits(Struct, frozen=True, kw_only=True):
    """The splits of so many ``queries``; ``over`` is why it ended early, ``interrupted`` that somebody asked for it."""

    queries: int
    found: Mapping[str, Split]
    spent: Spent
    over: NoReply | None = None
    interrupted: bool = False

    @property
    def ok(self) -> dict[str, Split]:
        """Those that have claims."""
        return {query_id: split for query_id, split in self.found.items() if split.status == "ok"}


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
    watch: Callable[[Progress], object] = lambda _: None,
) -> Splits:
    """Split the references of queries, and write the claims into the golden file.

    What came of a splitting that did not end is not asked again. Raises InputError or OutputError.
    """
    journal = open_journal(path_beside(Path(golden.path)), key=journal_key(judging.environ), refresh=False)
    spending = Spending(judging.budget)
    model = open_model(judging, spending)
    is_all = False
    try:
        remembering = RememberingModel(model, journal, spending)

        def split(query: GoldenQuery) -> tuple[str, Split]:
            return query.id, _split(query, remembering, judging, journal)

        found: dict[str, Split] = {}
        lacking = 0
        at_once = judging.limits.concurrency
        for query_id, one in in_threads(queries, split, at_once=at_once, spending=spending, stop=stop):
            found[query_id] = one
            lacking += one.status != "ok"
            watch(Progress(done=len(found), total=len(queries), unjudged=lacking))
        golden.save_field(FIELD, {name: list(one.claims) for name, one in found.items() if one.status == "ok"})
        is_all = len(found) == len(queries) and all(one.status != "failed" for one in found.values())
        return Splits(
            queries=len(queries), found=found, spent=spending.spent, over=spending.over, interrupted=stop.asked
        )
    finally:
        model.close()
        journal.close(remove=is_all)


def _split(query: GoldenQuery, model: Model, judging: JudgingSettings, journal: JudgmentJournal) -> Split:
    reference = (query.answer and query.answer.reference) or ""
    dice = journal.dice("claims", query.id, query.query, reference)
    return split_reference(query.query, reference, model, judging.settings, dice)


def expected_splits(queries: Sequence[GoldenQuery], judging: JudgingSettings) -> Expected:
    """Return what splitting would cost at least; sends nothing and writes nothing."""
    counting = CountingModel(judging.model, judging.endpoint.host)
    for query in queries:
        reference = (query.answer and query.answer.reference) or ""
        split_reference(query.query, reference, counting, judging.settings, random.SystemRandom())
    return counting.expected
