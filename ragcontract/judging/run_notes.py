"""Notes on a run that explain its metrics and are shown beside them: its depth, its scores, its duplicates. Pure."""

from collections.abc import Iterator

from ragcontract.core.numbers import count, fixed, percent
from ragcontract.judging.evaluated import Evaluation

LITTLE = 1 / 3  # the Jaccard index of two lists of a length that share half of their documents
REPEATED = 0.2  # share of repeated documents from which on rank_by is pointed at; a few are common in any index


def run_notes(evaluation: Evaluation) -> Iterator[str]:
    """Yield the notes as sentences, without names from files."""
    yield from _depth(evaluation)
    run, contract = evaluation.run, evaluation.contract
    if run.distances:
        rise = "they rise in every row where they differ"
        yield f"The scores look like distances: {rise}. Ranks are the order of the results, as always."
    yield from _other_documents(evaluation)
    decided = contract.config.rank_by == "documents" or contract.config_file.locations.of("rank_by")
    if not decided and run.duplicates.rate >= REPEATED:
        yield (
            f"{percent(run.duplicates.rate, 0)} of the results in the top {contract.k} repeat a document of the same "
            "row, as chunks do; set rank_by in the config: documents gives each document one rank, results each chunk."
        )


def _other_documents(evaluation: Evaluation) -> Iterator[str]:
    """Yield that most of what was retrieved is new, which metrics alone may not show."""
    family, compared = evaluation.contract.overlap, evaluation.aggregates.comparisons
    overlap = compared[family.metrics[0].key].current if family else None
    if family and overlap is not None and overlap < LITTLE:
        label = family.metrics[0].label
        yield f"{label} with the baseline is {fixed(overlap, 2)}: most of what was retrieved is not what it was then."


def _depth(evaluation: Evaluation) -> Iterator[str]:
    """Yield what a run or a baseline that is shorter than k, or than the other side, does to the numbers."""
    k, now = evaluation.contract.k, evaluation.run.depth
    before = evaluation.baseline.depth if evaluation.baseline else None
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
