"""Why a run is probably worse than its baseline: the causes that both sides themselves show, the likeliest first.

A cause that is measured has a share: how much of the loss is in the queries that it affects. A wrong cause is worse
than none, so a cause has to fit more than the lost documents alone. How well it does was tried on breaks with known
causes: see docs/contributing/causes.md.
"""

import re
from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations
from math import inf
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from ragcontract.core import bounds
from ragcontract.core.golden import FEWEST_LABELLED, GoldenQuery
from ragcontract.core.id_forms import named
from ragcontract.core.numbers import SAME, count, fixed, more, percent
from ragcontract.core.phrase import Name, Phrase, joined
from ragcontract.core.run import COMPARED_VERSIONS, ListedResult, QueryScore
from ragcontract.core.safe_text import shorten
from ragcontract.decision.evaluated import Evaluation
from ragcontract.decision.gate_report import NOT_HELD, GateReport
from ragcontract.evaluation.observations import (
    Depths,
    UnknownQueries,
    UnseenIdSearch,
    Versions,
)
from ragcontract.evaluation.side import Side

CauseKind = Literal["vanished", "ids", "empty", "short", "versions", "commit", "labels"]

MAIN = 1 / 3  # the share of the loss from which on a measured cause is likely; two causes may share a loss
LEAST = 0.1  # the share from which on it is possible
FEWEST_VANISHED = 2  # one document may be lost by chance
IN_ORDER = 0.85  # the share of pairs of documents that kept their order; an index that lost documents keeps it
AS_MANY = 0.6  # relevant documents are found more reliably than others, unless documents are gone
ELSEWHERE = 0.01  # the share of documents that one query lost and another still finds; an index has them or not
RENAMED = 0.5  # the share of documents that seem to have vanished and occur under another id
SHORTEST = 6  # letters and digits; shorter ids may be a part of others by chance
LEFT = 0.05  # points that may remain of a drop that missing labels explain
EXPLAINED = 0.8  # the share of the loss that missing labels explain, query by query
COMMIT = re.compile(r"(?=.*\d)(?=.*[a-f])[0-9a-f]{7,40}(-dirty)?")
FOLDERS = "/#:"  # each ends a beginning that ids have in common
COMMAND = Name("rag-contract unjudged")
DIGITS = 2


class Cause(Struct, frozen=True, kw_only=True):
    """Something that probably made the run worse than the baseline."""

    kind: Annotated[
        CauseKind,
        Meta(
            description="vanished: relevant documents that the baseline found occur nowhere in the run; ids: they "
            "occur under other ids; empty: queries have no results; short: the run has fewer results than the "
            "baseline; versions: versions changed; commit: only the commit did; labels: documents that nobody has "
            "judged may be relevant."
        ),
    ]
    phrase: Phrase
    queries: Annotated[
        Annotated[int, Meta(ge=0)] | UnsetType, Meta(description="How many queries it affects, if that is measured.")
    ] = UNSET
    share: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | UnsetType,
        Meta(
            description="How much of the loss is in these queries; for labels, how much of it they would undo where "
            "the documents that have one are still found."
        ),
    ] = UNSET

    @property
    def is_likely(self) -> bool:
        """Whether reports name it as the cause."""
        least = {"labels": EXPLAINED, "versions": 0.0}.get(self.kind, MAIN)
        # Nearly every pull request has another commit.
        return self.kind != "commit" and (self.share or 0.0) >= least


class Losses(Struct, frozen=True, kw_only=True):
    """What the queries lost since the baseline, in points of one ranking metric."""

    key: str  # of the metric
    points: Mapping[str, float]  # by query id; only of queries that lost any

    @classmethod
    def of(cls, evaluation: Evaluation, gates: Sequence[GateReport]) -> "Losses | None":
        """Return the losses of a metric that breaks its limit or, if none does, of the one that lost most."""
        family = evaluation.aggregates.families[0]
        over = {gate.metric for gate in gates if gate.status in NOT_HELD}
        columns = [column for column, metric in enumerate(family.metrics) if metric.k == evaluation.contract.k]
        columns = [column for column in columns if family.keys[column] in over] or columns
        queries, ids = family.changed, [*evaluation.contract.queries]
        lost = [
            {ids[query.number]: loss * query.weight for query in queries if (loss := -query.differences[column]) > SAME}
            for column in columns
        ]
        points = max(lost, key=lambda of_column: sum(of_column.values()), default={})
        return cls(key=family.keys[columns[lost.index(points)]], points=points) if points else None

    def share(self, query_ids: Collection[str]) -> float:
        """Return how much of the loss is in some queries, from 0 to 1."""
        return sum(self.points.get(query_id, 0.0) for query_id in query_ids) / sum(self.points.values())


def causes_of(evaluation: Evaluation, gates: Sequence[GateReport], *, has_mistakes: bool) -> list[Cause]:
    """Return the probable causes of a loss, the likeliest first; none without a loss.

    If the input probably ``has_mistakes``, such as ids in another form, these explain what else would be measured.
    """
    if evaluation.baseline is None:
        return []
    if (losses := Losses.of(evaluation, gates)) is None:  # answers or latencies got worse
        return [*_versions(evaluation.run, evaluation.baseline)]
    causes = (*_vanished(evaluation, losses), *_empty(evaluation, losses), *_short(evaluation, losses))
    measured = [] if has_mistakes else [cause for cause in causes if (cause.share or 0.0) >= LEAST]
    measured.sort(key=lambda cause: -(cause.share or 0.0))
    labels = [] if has_mistakes or any(cause.is_likely for cause in measured) else _labels(evaluation, losses)
    return [*measured, *_versions(evaluation.run, evaluation.baseline), *labels]


def _vanished(evaluation: Evaluation, losses: Losses) -> Iterator[Cause]:
    """Yield the relevant documents that the baseline found and that occur nowhere in the run.

    A worse retriever loses documents, too. But it changes the order of others, and loses relevant ones less often than
    others.
    """
    run, unseen = evaluation.run, evaluation.run.observed(UnseenIdSearch).ids
    if evaluation.contract.scope or run.observed(UnknownQueries).listed:  # not all rows are looked at
        return
    k, queries = evaluation.contract.k, evaluation.contract.queries.values()
    wanting = [query for query in queries if not unseen.isdisjoint(query.relevant_doc_ids)]
    lost = {
        query.id: doc_ids
        for query, ranks in _found(evaluation, k, wanting)
        if (doc_ids := [*_lost(evaluation, query, {each: ranks[each] for each in ranks if each in unseen})])
    }
    gone, affected = dict.fromkeys(chain.from_iterable(lost.values())), [*lost]
    if len(gone) < FEWEST_VANISHED:
        return
    number, share = count(len(gone), "relevant document"), losses.share(affected)
    renamed = list(_renamed(evaluation, affected, gone))
    if len(renamed) >= RENAMED * len(gone):
        before, now = renamed[0]
        start = f"{number} that the baseline found have other ids in this run ("
        phrase: Phrase = (start, named(now), ", in the contract ", named(before), "): write them as in the contract")
        yield Cause(kind="ids", phrase=phrase, queries=len(affected), share=share)
    elif _is_like_a_loss(evaluation, affected, len(gone), k):
        start = f"{number} that the baseline found occur nowhere in this run ("
        phrase = (start, *_where(list(gone)), "): are they still indexed?")
        yield Cause(kind="vanished", phrase=phrase, queries=len(affected), share=share)


def _lost(evaluation: Evaluation, query: GoldenQuery, ranks: Mapping[str, int]) -> Iterator[str]:
    """Yield the documents at some ranks of the baseline that others have not just pushed below the end of the row."""
    before, now = _lists(evaluation, query.id)
    shared = {result.doc_id for result in before} & {result.doc_id for result in now}
    last = max((rank for rank, result in enumerate(before, 1) if result.doc_id in shared), default=0)
    yield from (doc_id for doc_id, rank in ranks.items() if rank <= len(now) and (not shared or rank < last))


def _lists(evaluation: Evaluation, query_id: str) -> tuple[Sequence[ListedResult], Sequence[ListedResult]]:
    """Return the results of a query in the baseline and in the run, both empty if it breaks no rule."""
    before = evaluation.baseline.listed.retrieved if evaluation.baseline else {}
    return before.get(query_id, ()), evaluation.run.listed.retrieved.get(query_id, ())


def _renamed(evaluation: Evaluation, query_ids: Iterable[str], gone: Container[str]) -> Iterator[tuple[str, str]]:
    """Yield documents that seem to have vanished, with an id in the results of their queries that contains theirs."""

    def plain_of(doc_id: str) -> str:
        return "".join(filter(str.isalnum, doc_id.casefold()))

    seen: set[str] = set()
    for query_id in query_ids:
        before, now = _lists(evaluation, query_id)
        old = {result.doc_id for result in before}
        plain = {plain_of(result.doc_id): result.doc_id for result in now if result.doc_id not in old}
        for doc_id in evaluation.contract.queries[query_id].relevant_doc_ids:
            wanted = plain_of(doc_id)
            if doc_id in gone and doc_id not in seen and len(wanted) >= SHORTEST:
                seen.add(doc_id)
                if other := next((name for text, name in plain.items() if wanted in text), None):
                    yield doc_id, other


def _found(
    evaluation: Evaluation, k: int, queries: Iterable[GoldenQuery]
) -> Iterator[tuple[GoldenQuery, dict[str, int]]]:
    """Yield those queries that both sides have, with the ranks of the relevant documents in the baseline's top k."""
    scores = evaluation.baseline.scores if evaluation.baseline else {}
    for query in queries:
        if (score := scores.get(query.id)) is None:
            continue
        ranks = zip(query.relevant_doc_ids, score.ranks, strict=True)
        if in_top := {doc_id: rank for doc_id, rank in ranks if rank is not None and rank <= k}:
            yield query, in_top


def _is_like_a_loss(evaluation: Evaluation, affected: Collection[str], gone: int, k: int) -> bool:
    """Return whether the affected queries lost documents as from an index that does not have them any more.

    Other documents keep their order, no other query finds what is lost, and relevant documents are lost about as often
    as others.
    """
    lists = [_lists(evaluation, query_id) for query_id in affected]
    in_order, pairs = map(sum, zip(*(_kept_pairs(*both) for both in lists), strict=True)) if lists else (0, 0)
    still_found = {result.doc_id for results in evaluation.run.listed.retrieved.values() for result in results}
    absent = [doc_id for both in lists for doc_id in _absent(*both)]
    elsewhere = sum(doc_id in still_found for doc_id in absent)
    if not pairs or in_order < IN_ORDER * pairs or elsewhere > ELSEWHERE * len(absent):
        return False
    ranked = sum(len(ranks) for _, ranks in _found(evaluation, k, evaluation.contract.queries.values()))
    family = evaluation.contract.overlap
    jaccard = evaluation.aggregates.comparisons[family.metrics[0].key].current if family else None
    retained = 0.0 if jaccard is None else 2 * jaccard / (1 + jaccard)  # the share of all results that are in both
    return jaccard is None or gone / ranked >= AS_MANY * (1 - retained)


def _absent(before: Sequence[ListedResult], now: Sequence[ListedResult]) -> set[str]:
    """Return the documents that are not among as many results as there are now."""
    return {result.doc_id for result in before[: len(now)]} - {result.doc_id for result in now}


def _kept_pairs(before: Sequence[ListedResult], now: Sequence[ListedResult]) -> tuple[int, int]:
    """Return how many pairs of the documents that two lists share kept their order, and how many there are."""
    ranks = {result.doc_id: rank for rank, result in reversed([*enumerate(now)])}
    shared = [ranks[doc_id] for doc_id in dict.fromkeys(result.doc_id for result in before) if doc_id in ranks]
    return sum(first < second for first, second in combinations(shared, 2)), len(shared) * (len(shared) - 1) // 2


def _where(doc_ids: Sequence[str]) -> Phrase:
    """Return the folders of most documents, such as ``crypto/…``, or the documents if they are few or have none."""
    for ends in (FOLDERS, "/"):
        folders = Counter(doc_id[: max(doc_id.rfind(end) for end in ends) + 1] for doc_id in doc_ids)
        if len(folders) < len(doc_ids):  # several documents share a folder; else, their sections may be in one
            break
    are_few = len(doc_ids) <= bounds.NAMES and sum(map(len, doc_ids)) <= bounds.VALUE
    if "" in folders or are_few:
        return joined(([named(doc_id)] for doc_id in doc_ids[: bounds.NAMES]), len(doc_ids) - bounds.NAMES)
    names = [f"{folder}…" for folder, _ in folders.most_common(bounds.NAMES)]
    further = more(len(folders), bounds.NAMES, "folder", ", {}")
    return (*joined([named(name)] for name in names), *([further] if further else []))


def _empty(evaluation: Evaluation, losses: Losses) -> Iterator[Cause]:
    """Yield the queries that lost something and have no results at all."""
    listed = evaluation.run.listed.retrieved
    scores = evaluation.run.scores
    known = [query_id for query_id in losses.points if query_id in listed and not scores[query_id].repeats]
    empty = [query_id for query_id in known if not listed[query_id]]
    if empty:
        start = "At least " if len(listed) >= bounds.RETRIEVED_QUERIES else ""  # further ones are not listed
        has = f"{start}{count(len(empty), 'query')} {'has' if len(empty) == 1 else 'have'}"
        phrase = (f"{has} no results: did the retriever fail or time out?",)
        share = losses.share(empty) / losses.share(known)
        yield Cause(kind="empty", phrase=phrase, queries=len(empty), share=share)


def _short(evaluation: Evaluation, losses: Losses) -> Iterator[Cause]:
    """Yield that the run has fewer results than the baseline, if documents were found below its end."""
    now = evaluation.run.observed(Depths)
    before = evaluation.baseline.observed(Depths) if evaluation.baseline else None
    if now is None or before is None or not 0 < now.typical < min(before.typical, evaluation.contract.k):
        return
    queries, scores = evaluation.contract.queries.values(), evaluation.run.scores
    affected = [
        query.id
        for query, ranks in _found(evaluation, evaluation.contract.k, queries)
        if _only_lost_below(now.typical, ranks, query, scores[query.id])
    ]
    has = f"The run has only {count(now.typical, 'result')} a query (the baseline {before.typical:,})"
    below = f"{count(len(affected), 'query')} had a relevant document below rank {now.typical}"
    phrase = (f"{has}, and {below}: return at least {evaluation.contract.k}",)
    yield Cause(kind="short", phrase=phrase, queries=len(affected), share=losses.share(affected))


def _only_lost_below(end: int, before: Mapping[str, int], query: GoldenQuery, now: QueryScore) -> bool:
    """Return whether documents were found below the end of a shorter run, and no other one has a worse rank."""
    rank_of = dict(zip(query.relevant_doc_ids, now.ranks, strict=True))
    below = any(rank > end for rank in before.values())
    return below and all(rank > end or (rank_of[doc_id] or inf) <= rank for doc_id, rank in before.items())


def _versions(run: Side, baseline: Side) -> Iterator[Cause]:
    """Yield the versions that changed, those with values on both sides first, and commits last."""
    now, before = run.observed(Versions) or {}, baseline.observed(Versions) or {}
    steps: list[tuple[bool, bool, Phrase]] = []
    for field in COMPARED_VERSIONS:
        values = [", ".join(_first(side.get(field, ()))) for side in (before, now)]
        if set(before.get(field, ())) == set(now.get(field, ())):
            continue
        name = field.replace("_", " ")
        is_commit = field == "retriever_version" and all(map(COMMIT.fullmatch, filter(None, values)))
        phrase: Phrase = (f"{name} ", Name(values[0]), " → ", Name(values[1]))
        if not values[0]:
            phrase = (f"{name} is ", Name(values[1]), " now and was unknown before")
        elif not values[1]:
            phrase = (f"{name} was ", Name(values[0]), " and is unknown now")
        steps.append((is_commit, not all(values), phrase))
    if steps:
        ordered = [step[2] for step in sorted(steps, key=lambda step: step[:2])]
        kind: CauseKind = "commit" if all(is_commit for is_commit, *_ in steps) else "versions"
        yield Cause(kind=kind, phrase=("Changed since the baseline: ", *joined(ordered)))


def _first(values: Sequence[str]) -> Iterator[str]:
    """Yield the first values, cut, and how many more there are."""
    yield from (shorten(value, bounds.VALUE) for value in values[: bounds.NAMES])
    yield from filter(None, [more(len(values), bounds.NAMES)])


def _labels(evaluation: Evaluation, losses: Losses) -> Iterator[Cause]:
    """Yield that labels may be missing, if they could explain the drop.

    Every worse retriever finds documents without a label. So this is only likely where those with one are still found.
    """
    means, best = evaluation.aggregates.comparisons[losses.key], evaluation.aggregates.if_relevant.get(losses.key)
    judged = evaluation.aggregates.comparisons.get(f"judged_at_{evaluation.contract.k}")
    if best is None or means.baseline is None or judged is None or judged.current is None:
        return
    if sum(query.answerable for query in evaluation.contract.queries.values()) < FEWEST_LABELLED:
        return
    if means.baseline - best > LEFT + SAME:
        return
    column = evaluation.aggregates.families[0].keys.index(losses.key)
    undone = [
        query.id
        for query, ranks in _found(
            evaluation, evaluation.contract.k, map(evaluation.contract.queries.__getitem__, losses.points)
        )
        if _undone(evaluation, query, ranks, column, losses.points[query.id])
    ]
    if (share := losses.share(undone)) < LEAST:
        return
    metric = next(metric for metric in evaluation.contract.metrics if metric.key == losses.key)
    nobody = f"nobody has judged {percent(1 - judged.current, 0)} of the top {evaluation.contract.k}"
    was = f"{fixed(means.baseline, DIGITS)} in the baseline"
    would = f"{metric.label} would be {fixed(best, DIGITS)} ({was}) if all of that were relevant; "
    yield Cause(
        kind="labels",
        phrase=(f"The drop may be missing labels: {nobody}, and {would}", COMMAND, " lists what to judge first"),
        share=share,
    )


def _undone(evaluation: Evaluation, query: GoldenQuery, ranks: Collection[str], column: int, loss: float) -> bool:
    """Return whether labels could give a query back what it lost, and it still finds its documents in the top k."""
    score = evaluation.run.scores[query.id]
    rank_of = dict(zip(query.relevant_doc_ids, score.ranks, strict=True))
    is_there = all((rank_of[doc_id] or inf) <= evaluation.contract.k for doc_id in ranks)
    gain = score.if_relevant[column] - score.values[column] if score.if_relevant else 0.0
    return is_there and gain * query.weight >= loss - SAME
