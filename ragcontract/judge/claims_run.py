"""Splits references into claims, once: the golden file then says how many there are, for every judge and check."""

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from ragcontract.core.golden import GoldenQuery
from ragcontract.http.stopping import Stop
from ragcontract.judge.expected_cost import CountingModel, Expected
from ragcontract.judge.interface import Model, NoReply
from ragcontract.judge.journal_key import journal_key
from ragcontract.judge.judging_run import JudgingSettings, open_model
from ragcontract.judge.judging_session import Progress
from ragcontract.judge.judgment_journal import JudgmentJournal, RememberingModel, open_journal, path_beside
from ragcontract.judge.spending import Spending, Spent
from ragcontract.judge.splitting import Split, split_reference
from ragcontract.judge.worker_threads import in_threads
from ragcontract.labelling.golden_rows import GoldenRows

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
