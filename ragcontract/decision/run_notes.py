"""Notes that reports show beside metrics: likely mistakes in the input, and what explains the numbers.

A likely mistake looks like a loss of quality, such as ids that are written in another form. A retriever may really have
lost every document, so the input is evaluated nonetheless. All functions are pure.
"""

from collections.abc import Iterator, Sequence
from itertools import chain

from ragcontract.contract.resolve import WIDE
from ragcontract.core import bounds
from ragcontract.core.id_forms import Match, difference, named
from ragcontract.core.ids import pool_of
from ragcontract.core.numbers import count, fixed, percent
from ragcontract.core.phrase import Name, Phrase, joined
from ragcontract.decision.evaluated import Evaluation
from ragcontract.evaluation.observations import Depths, RepeatedResults, ScoreOrder, UnseenIds, UnseenIdSearch

# Two documents may well be called guide and guide#2. So the form must explain half of the ids that never occur, and
# more than one of them, unless that is the only id; but no two documents differ in case or blanks alone.
FEWEST_MATCHED = 2
SHARE_MATCHED = 0.5
UNMISTAKABLE = frozenset({"blanks", "case"})
# If no relevant id occurs at all, this is a mistake rather than a bad run only if at least as many were wanted.
FEWEST_WANTED = 5
CHUNKS = "are these chunk ids? A result has the document's id as doc_id and the chunk's as chunk_id"
OTHERWISE = "write ids the same way in the contract and in the run"
SHARED = 0.1  # of the retrieved documents; if so many are the baseline's, it is the same index
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
    elif len(unseen.ids) == unseen.relevant >= FEWEST_WANTED and not _has_ids_of_baseline(evaluation):
        yield _other_ids(unseen)
    elif mistyped := dict.fromkeys(
        chain.from_iterable(evaluation.mistyped.get(query_id, ()) for query_id in evaluation.violations)
    ):
        yield _not_in_the_run([*mistyped])


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


def _has_ids_of_baseline(evaluation: Evaluation) -> bool:
    """Return whether the baseline found wanted documents, and other documents of it are in the run's broken queries.

    Then the run is of the same index and writes ids the same way, and its retriever is bad.
    """
    run, baseline = evaluation.run, evaluation.baseline
    if baseline is None or not any(any(score.ranks) for score in baseline.scores.values()):
        return False
    before = {doc_id for packed in baseline.ids.first_ids.values() for doc_id in pool_of(packed)}
    now = {result.doc_id for results in run.listed.retrieved.values() for result in results}
    return bool(now) and len(now & before) >= SHARED * len(now)


def _in_another_form(unseen: UnseenIds, example: Match) -> Phrase:
    only = f" of the {unseen.compared:,} that were compared," if unseen.compared < len(unseen.ids) else ""
    advice = CHUNKS if "suffix" in example.parts else OTHERWISE
    return (f"{_never(unseen)};{only} {unseen.matched:,} would match ", *difference(example), f": {advice}")


def _other_ids(unseen: UnseenIds) -> Phrase:
    ids = joined([named(doc_id)] for doc_id in unseen.retrieved)
    has = (", which has ", *ids) if ids else ()
    return (_never(unseen), *has, ": is it of another index, or do run and contract write the ids differently?")


def _not_in_the_run(doc_ids: Sequence[str]) -> Phrase:
    ids = joined(([named(doc_id)] for doc_id in doc_ids[: bounds.NAMES]), len(doc_ids) - bounds.NAMES)
    occur, are = ("occurs", "is the id") if len(doc_ids) == 1 else ("occur", "are the ids")
    return (*ids, f" {occur} nowhere in the run, and the labels changed since the baseline: {are} right?")


def _never(unseen: UnseenIds) -> str:
    never = "occurs" if len(unseen.ids) == 1 else "occur"
    return f"{len(unseen.ids):,} of {count(unseen.relevant, 'relevant id')} never {never} in the run"


def _other_documents(evaluation: Evaluation) -> Iterator[str]:
    """Yield a note if most of what was retrieved is new, which metrics alone may not show."""
    contract, compared = evaluation.contract, evaluation.aggregates.comparisons
    family = contract.overlap
    overlap = compared[family.metrics[0].key].current if family else None
    if family and overlap is not None and overlap < LITTLE:
        label = family.metrics[0].label
        yield f"{label} with the baseline is {fixed(overlap, 2)}: most of the top {contract.k} was not there."


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
