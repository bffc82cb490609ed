"""What explains the numbers of a run: likely mistakes in the input, causes of a loss, and notes beside the metrics.

A likely mistake looks like a loss of quality, such as ids that are written in another form. A retriever may really have
lost every document, so the input is evaluated nonetheless.

A cause that is measured has a share: how much of the loss is in the queries that it affects. A wrong cause is worse
than none, so a cause has to fit more than the lost documents alone. How well it does was tried on breaks with known
causes: see docs/contributing/causes.md.
"""

import re
from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from ragcontract.contract.resolve import WIDE
from ragcontract.core import bounds
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.id_forms import Match, difference, named
from ragcontract.core.numbers import SAME, count, fixed, percent
from ragcontract.core.phrase import Name, Phrase, joined
from ragcontract.core.run import COMPARED_VERSIONS, ListedResult
from ragcontract.decision.evaluated import Evaluation
from ragcontract.decision.gate_report import NOT_HELD, GateReport
from ragcontract.evaluation.observations import (
    Depths,
    RepeatedResults,
    ScoreOrder,
    UnseenIds,
    UnseenIdSearch,
    Versions,
)
from ragcontract.evaluation.side import Side

CauseKind = Literal["vanished", "ids", "empty", "short", "versions", "labels"]

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
COMMIT = re.compile(r"(?=.*\d)[0-9a-f]{7,40}")
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
            "baseline; versions: versions changed; labels: documents that nobody has judged may be relevant."
        ),
    ]
    phrase: Phrase
    queries: Annotated[int | UnsetType, Meta(description="How many queries it affects, if that is measured.")] = UNSET
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
        return (self.share or 0.0) >= least


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
        lost = [sum(max(0.0, -query.differences[column]) * query.weight for query in queries) for column in columns]
        if not lost or max(lost) <= SAME:
            return None
        column = columns[lost.index(max(lost))]
        losses = {ids[query.number]: -query.differences[column] * query.weight for query in queries}
        points = {query_id: loss for query_id, loss in losses.items() if loss > SAME}
        return cls(key=family.keys[column], points=points)

    def share(self, query_ids: Collection[str]) -> float:
        """Return how much of the loss is in some queries, from 0 to 1."""
        return sum(self.points.get(query_id, 0.0) for query_id in query_ids) / sum(self.points.values())


def causes_of(evaluation: Evaluation, gates: Sequence[GateReport], *, has_mistakes: bool) -> list[Cause]:
    """Return the probable causes of a loss, the likeliest first; none without a loss.

    If the input probably ``has_mistakes``, such as ids in another form, these explain what else would be measured.
    """
    losses = Losses.of(evaluation, gates) if evaluation.baseline else None
    if losses is None or evaluation.baseline is None:
        return []
    causes = (*_vanished(evaluation, losses), *_empty(evaluation, losses), *_short(evaluation, losses))
    measured = [] if has_mistakes else [cause for cause in causes if (cause.share or 0.0) >= LEAST]
    measured.sort(key=lambda cause: -(cause.share or 0.0))
    is_explained = has_mistakes or any(cause.is_likely for cause in measured)
    labels = [] if is_explained else _labels(evaluation, losses)
    return [*measured, *_versions(evaluation.run, evaluation.baseline), *labels]


def _vanished(evaluation: Evaluation, losses: Losses) -> Iterator[Cause]:
    """Yield the relevant documents that the baseline found and that occur nowhere in the run.

    A worse retriever loses documents, too. But it changes the order of others, and loses relevant ones less often than
    others.
    """
    run, baseline = evaluation.run, evaluation.baseline
    unseen, depth = run.observed(UnseenIdSearch).ids, run.observed(Depths)
    if baseline is None or depth is None or not unseen:
        return
    k = min(evaluation.contract.k, depth.typical)
    wanting = [query for query in evaluation.contract.queries.values() if not unseen.isdisjoint(query.relevant_doc_ids)]
    lost = {
        query.id: ids
        for query, ranks in _found(evaluation, k, wanting)
        if (ids := [*filter(unseen.__contains__, ranks)])
    }
    gone, affected = dict.fromkeys(chain.from_iterable(lost.values())), [*lost]
    if len(gone) < FEWEST_VANISHED:
        return
    number, share = count(len(gone), "relevant document"), losses.share(affected)
    renamed = list(_renamed(evaluation, affected, gone))
    if len(renamed) >= RENAMED * len(gone):
        before, now = renamed[0]
        start = f"{number} that the baseline found occur under other ids in this run ("
        advice = "): write ids the same way in the contract and in the run"
        phrase: Phrase = (start, named(now), " for ", named(before), advice)
        yield Cause(kind="ids", phrase=phrase, queries=len(affected), share=share)
    elif _is_like_a_loss(evaluation, affected, len(gone), k):
        start = f"{number} that the baseline found occur nowhere in this run ("
        phrase = (start, *_where(list(gone)), "): are they still indexed?")
        yield Cause(kind="vanished", phrase=phrase, queries=len(affected), share=share)


def _renamed(evaluation: Evaluation, query_ids: Iterable[str], gone: Container[str]) -> Iterator[tuple[str, str]]:
    """Yield documents that seem to have vanished, with an id in the results of their queries that contains theirs."""
    seen: set[str] = set()
    for query_id in query_ids:
        plain = {_plain(result.doc_id): result.doc_id for result in evaluation.run.listed.retrieved.get(query_id, ())}
        for doc_id in evaluation.contract.queries[query_id].relevant_doc_ids:
            wanted = _plain(doc_id)
            if doc_id in gone and doc_id not in seen and len(wanted) >= SHORTEST:
                seen.add(doc_id)
                if other := next((name for text, name in plain.items() if wanted in text), None):
                    yield doc_id, other


def _plain(doc_id: str) -> str:
    return "".join(filter(str.isalnum, doc_id.casefold()))


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
    now = evaluation.run.listed.retrieved
    before = evaluation.baseline.listed.retrieved if evaluation.baseline else {}
    lists = [(before[query_id], now[query_id]) for query_id in affected if query_id in before and query_id in now]
    in_order, pairs = map(sum, zip(*(_kept_pairs(*both) for both in lists), strict=True)) if lists else (0, 0)
    still_found = {result.doc_id for results in now.values() for result in results}
    absent = [doc_id for both in lists for doc_id in _absent(*both)]
    elsewhere = sum(doc_id in still_found for doc_id in absent)
    if not pairs or in_order < IN_ORDER * pairs or elsewhere > ELSEWHERE * len(absent):
        return False
    ranked = sum(len(ranks) for _, ranks in _found(evaluation, k, evaluation.contract.queries.values()))
    retained = _retained(evaluation)
    return retained is None or gone / ranked >= AS_MANY * (1 - retained)


def _absent(before: Sequence[ListedResult], now: Sequence[ListedResult]) -> set[str]:
    """Return the documents that are not among as many results as there are now."""
    return {result.doc_id for result in before[: len(now)]} - {result.doc_id for result in now}


def _kept_pairs(before: Sequence[ListedResult], now: Sequence[ListedResult]) -> tuple[int, int]:
    """Return how many pairs of the documents that two lists share kept their order, and how many there are."""
    ranks = {result.doc_id: rank for rank, result in reversed([*enumerate(now)])}
    shared = [ranks[doc_id] for doc_id in dict.fromkeys(result.doc_id for result in before) if doc_id in ranks]
    return sum(first < second for first, second in combinations(shared, 2)), len(shared) * (len(shared) - 1) // 2


def _retained(evaluation: Evaluation) -> float | None:
    """Return the share of the baseline's results that the run has as well, on average; None if it is not known."""
    family = evaluation.contract.overlap
    jaccard = evaluation.aggregates.comparisons[family.metrics[0].key].current if family else None
    return None if jaccard is None else 2 * jaccard / (1 + jaccard)


def _where(doc_ids: Sequence[str]) -> Phrase:
    """Return the folders of most documents, such as ``crypto/…``, or the first documents if they have none."""
    folders = Counter(doc_id[: max(doc_id.rfind(end) for end in FOLDERS) + 1] for doc_id in doc_ids)
    names = [*doc_ids] if "" in folders else [f"{folder}…" for folder, _ in folders.most_common()]
    return joined(([named(name)] for name in names[: bounds.NAMES]), len(names) - bounds.NAMES)


def _empty(evaluation: Evaluation, losses: Losses) -> Iterator[Cause]:
    """Yield the queries that lost something and have no results at all."""
    listed = evaluation.run.listed.retrieved
    empty = [query_id for query_id in losses.points if query_id in listed and not listed[query_id]]
    if empty:
        has = "1 query has" if len(empty) == 1 else f"{count(len(empty), 'query')} have"
        phrase = (f"{has} no results: did the retriever fail or time out?",)
        yield Cause(kind="empty", phrase=phrase, queries=len(empty), share=losses.share(empty))


def _short(evaluation: Evaluation, losses: Losses) -> Iterator[Cause]:
    """Yield that the run has fewer results than the baseline, if documents were found below its end."""
    now = evaluation.run.observed(Depths)
    before = evaluation.baseline.observed(Depths) if evaluation.baseline else None
    if now is None or before is None or not 0 < now.typical < min(before.typical, evaluation.contract.k):
        return
    queries = evaluation.contract.queries.values()
    affected = [
        query.id
        for query, ranks in _found(evaluation, evaluation.contract.k, queries)
        if any(rank > now.typical for rank in ranks.values())
    ]
    has = f"The run has {count(now.typical, 'result')} a query and the baseline has {before.typical:,}"
    below = f"{count(len(affected), 'query')} found a document below rank {now.typical}"
    yield Cause(kind="short", phrase=(f"{has}: {below}",), queries=len(affected), share=losses.share(affected))


def _versions(run: Side, baseline: Side) -> Iterator[Cause]:
    """Yield the versions that changed, those with values on both sides first, and commits last."""
    now, before = run.observed(Versions) or {}, baseline.observed(Versions) or {}
    steps: list[tuple[bool, bool, Phrase]] = []
    for field in COMPARED_VERSIONS:
        values = [", ".join(side.get(field, ())) for side in (before, now)]
        if values[0] == values[1] or set(before.get(field, ())) == set(now.get(field, ())):
            continue
        name = field.replace("_", " ")
        is_commit = field == "retriever_version" and any(map(COMMIT.fullmatch, values))
        phrase: Phrase = (f"{name} ", Name(values[0]), " → ", Name(values[1]))
        if not values[0]:
            phrase = (f"{name} is ", Name(values[1]), " now and was unknown before")
        elif not values[1]:
            phrase = (f"{name} was ", Name(values[0]), " and is unknown now")
        steps.append((is_commit, not all(values), phrase))
    if steps:
        ordered = [step[2] for step in sorted(steps, key=lambda step: step[:2])]
        yield Cause(kind="versions", phrase=("Changed since the baseline: ", *joined(ordered)))


def _labels(evaluation: Evaluation, losses: Losses) -> Iterator[Cause]:
    """Yield that labels may be missing, if they could explain the drop.

    Every worse retriever finds documents without a label. So this is only likely where those with one are still found.
    """
    means, best = evaluation.aggregates.comparisons[losses.key], evaluation.aggregates.if_relevant.get(losses.key)
    judged = evaluation.aggregates.comparisons.get(f"judged_at_{evaluation.contract.k}")
    if best is None or means.baseline is None or judged is None or judged.current is None:
        return
    if means.baseline - best > LEFT + SAME:
        return
    column = evaluation.aggregates.families[0].keys.index(losses.key)
    undone = [
        query.id
        for query, ranks in _found(
            evaluation, evaluation.contract.k, map(evaluation.contract.queries.__getitem__, losses.points)
        )
        if _all_found(evaluation, query, ranks) and _undone(evaluation, query.id, column)
    ]
    metric = next(metric for metric in evaluation.contract.metrics if metric.key == losses.key)
    nobody = f"nobody has judged {percent(1 - judged.current, 0)} of the top {evaluation.contract.k}"
    would = f"{metric.label} would be {fixed(best, DIGITS)} if all of that were relevant; "
    yield Cause(
        kind="labels",
        phrase=(f"The drop may be missing labels: {nobody}, and {would}", COMMAND, " lists what to judge first"),
        share=losses.share(undone),
    )


def _all_found(evaluation: Evaluation, query: GoldenQuery, before: Mapping[str, int]) -> bool:
    """Return whether the run still has the documents of a query that the baseline found in its top k."""
    now = dict(zip(query.relevant_doc_ids, evaluation.run.scores[query.id].ranks, strict=True))
    return all((rank := now[doc_id]) is not None and rank <= evaluation.contract.k for doc_id in before)


def _undone(evaluation: Evaluation, query_id: str, column: int) -> bool:
    """Return whether labels could give a query back what it lost of a metric."""
    before = evaluation.baseline.scores[query_id].values if evaluation.baseline else ()
    best = evaluation.run.scores[query_id].if_relevant
    return bool(best and before) and best[column] >= before[column] - SAME


# Two documents may well be called guide and guide#2. So the form must explain half of the ids that never occur, and
# more than one of them, unless that is the only id; but no two documents differ in case or blanks alone.
FEWEST_MATCHED = 2
SHARE_MATCHED = 0.5
UNMISTAKABLE = frozenset({"blanks", "case"})
# If no relevant id occurs at all, this is a mistake rather than a bad run only if at least as many were wanted.
FEWEST_WANTED = 5
CHUNKS = "are these chunk ids? A result has the document's id as doc_id and the chunk's as chunk_id"
OTHERWISE = "write ids the same way in the contract and in the run"
LITTLE = 1 / 3  # the Jaccard index of two lists of equal length that share half of their documents
REPEATED = 0.2  # share of repeated documents from which on rank_by is pointed at; a few are common in any index


def likely_mistakes(evaluation: Evaluation) -> Iterator[Phrase]:
    """Yield what is probably wrong with the input although it can be evaluated."""
    run = evaluation.run
    yield from _fractions(evaluation)
    wanted = any(query.needs_results for query in evaluation.contract.queries.values())
    depth = run.observed(Depths)
    if depth is not None and depth.most == 0 and wanted:
        yield ("No row of the run has any result: did the export go wrong, or is the index empty?",)
        return
    unseen = run.observed(UnseenIdSearch)
    if unseen.example is not None and _is_likely(unseen, unseen.example):
        yield _in_another_form(unseen, unseen.example)
    elif len(unseen.ids) == unseen.relevant >= FEWEST_WANTED:
        yield _other_ids(unseen)


def _fractions(evaluation: Evaluation) -> Iterator[Phrase]:
    """Yield the scores that are all fractions, although their scale goes from 0 to 10 or more, as percentages do."""
    declared = evaluation.contract.config_file.declared
    for number, family in enumerate(evaluation.aggregates.families if declared else ()):
        for position, metric in enumerate(family.metrics):
            low, high = getattr(declared.get(metric.key), "scale", (0, 1))
            if low == 0 and high >= WIDE:
                rows = evaluation.run.values(number, evaluation.contract.queries)
                values = {row[position] for row in rows if row} - {None}
                if any(0 < value < 1 for value in values) and max(values) <= 1:
                    what = f" are all from 0 to 1, but its scale is from 0 to {high:g}"
                    yield ("The values of ", Name(metric.key), f"{what}: are they fractions of it?")


def run_notes(evaluation: Evaluation) -> Iterator[str]:
    """Yield the notes as sentences, without names from files."""
    yield from _depth(evaluation)
    run, contract = evaluation.run, evaluation.contract
    if run.observed(ScoreOrder).distances:
        rise = "they rise in every row where they differ"
        yield f"The scores look like distances: {rise}. Ranks are the order of the results, as always."
    yield from _other_documents(evaluation)
    decided = contract.config.rank_by == "documents" or contract.config_file.locations.of("rank_by")
    if not decided and (rate := run.observed(RepeatedResults).rate) >= REPEATED:
        yield (
            f"{percent(rate, 0)} of the results in the top {contract.k} repeat a document of the same "
            "row, as chunks do; set rank_by in the config: documents gives each document one rank, results each chunk."
        )


def _is_likely(unseen: UnseenIds, example: Match) -> bool:
    if UNMISTAKABLE.issuperset(example.parts):
        return True
    several = unseen.matched >= FEWEST_MATCHED or unseen.compared == unseen.relevant
    return several and unseen.matched >= SHARE_MATCHED * unseen.compared


def _in_another_form(unseen: UnseenIds, example: Match) -> Phrase:
    only = f" of the {unseen.compared:,} that were compared," if unseen.compared < len(unseen.ids) else ""
    do = "does" if unseen.matched == 1 else "do"
    advice = CHUNKS if "suffix" in example.parts else OTHERWISE
    return (f"{_never(unseen)};{only} {unseen.matched:,} {do} ", *difference(example), f": {advice}")


def _other_ids(unseen: UnseenIds) -> Phrase:
    ids = joined([named(doc_id)] for doc_id in unseen.retrieved)
    has = (", which has ", *ids) if ids else ()
    return (_never(unseen), *has, ": is it of another index, or do run and contract write the ids differently?")


def _never(unseen: UnseenIds) -> str:
    never = "occurs" if len(unseen.ids) == 1 else "occur"
    return f"{len(unseen.ids):,} of {count(unseen.relevant, 'relevant id')} never {never} in the run"


def _other_documents(evaluation: Evaluation) -> Iterator[str]:
    """Yield a note if most of what was retrieved is new, which metrics alone may not show."""
    family, compared = evaluation.contract.overlap, evaluation.aggregates.comparisons
    overlap = compared[family.metrics[0].key].current if family else None
    if family and overlap is not None and overlap < LITTLE:
        label = family.metrics[0].label
        yield f"{label} with the baseline is {fixed(overlap, 2)}: most of what was retrieved is not what it was then."


def _depth(evaluation: Evaluation) -> Iterator[str]:
    """Yield how a side that is shorter than k, or than the other side, affects the numbers."""
    k, now = evaluation.contract.k, evaluation.run.observed(Depths)
    before = evaluation.baseline.observed(Depths) if evaluation.baseline else None
    if now is None or not now.most:
        return
    shorter = before is not None and now.most < before.most
    has = f"The run has at most {count(now.most, 'result')} a query" + (
        f" and the baseline up to {before.most:,}" if before is not None and shorter else ""
    )
    lost = f"a document that fell below rank {now.most} reads as missing"
    if now.most < k:
        also = f", and {lost}" if shorter else ""
        yield f"{has}, so Recall@{k} is Recall@{now.most}{also}; export at least {k}, or lower k."
    elif shorter:
        yield f"{has}: {lost}."
    elif before is not None and now.typical < min(before.typical, k):
        yield (
            f"Half of the run's rows have at most {count(now.typical, 'result')}, where the baseline's typically "
            f"have {before.typical:,}: a document that fell below the end of its row reads as missing."
        )
    if before is not None and before.most < min(now.most, k):
        yield (
            f"The baseline has at most {count(before.most, 'result')} a query and the run up to {now.most:,}: "
            f"what the run finds below rank {before.most} counts as a gain. Recreate the baseline from a longer export."
        )
