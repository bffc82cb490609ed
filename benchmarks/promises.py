"""Whether `rag-contract suggest` keeps its promises for generated runs: `python -m benchmarks.promises`.

Draws good runs from a model of a retriever (`benchmarks/retriever.py`), makes limits from them, and counts how often
another run breaks these limits: one that is equally good, and one that really lost as much as is to be found 4 times in
5. A run of other questions says whether the suggested minimum is met. Writes docs/background/statistics.md. All is
seeded.
"""

from itertools import product
from multiprocessing import Pool
from random import Random

from msgspec import Struct

from benchmarks import tables
from benchmarks.retriever import GATED, NOISES, Retriever, breaks, drops, meets, suggestions
from ragcontract.core.numbers import SAME

QUERIES = (30, 100, 500)
RUNS = (2, 3, 5)
TRIALS = 2000
CASES = list(product(NOISES, QUERIES, RUNS))
HEAD = ("results that differ", "queries", "good runs", "equally good runs that fail", "real drops found", "minimum met")
Case = tuple[str, int, int]


class Kept(Struct):
    """What was counted: runs that fail, real drops that could be found and were, and minimums that were met."""

    failed: int = 0
    could_be_found: int = 0
    found: int = 0
    met: int = 0


def kept(case: Case, trials: int = TRIALS) -> Kept:
    """Count how often the promises are kept."""
    noise, queries, runs = case
    dice = Random(f"{noise} {queries} {runs}")
    counted = Kept()
    for _ in range(trials):
        retriever = Retriever(queries, noise, dice)
        good = [retriever.run() for _ in range(runs)]
        weights = retriever.weights
        limits = suggestions(good, weights)
        counted.failed += breaks(limits, good, retriever.run(), weights)
        first = limits[0]
        if first.limit is not None and first.detectable is not None and first.detectable < first.mean:
            worse = retriever.run(retriever.losing(first.detectable))
            counted.could_be_found += 1
            counted.found += next(drops(good, worse, weights)) > first.limit + SAME
        others = Retriever(queries, noise, dice)
        counted.met += sum(
            meets(limit, column, others.weights) for limit, column in zip(limits, others.run(), strict=True)
        )
    return counted


def table(trials: int = TRIALS) -> str:
    """Return the table, and how precise it is."""
    with Pool(2) as pool:
        counts = pool.map(kept, CASES, chunksize=1) if trials == TRIALS else [kept(case, trials) for case in CASES]
    body = [
        [
            noise,
            f"{queries:,}",
            str(runs),
            tables.share(one.failed, trials),
            tables.share(one.found, one.could_be_found),
            tables.share(one.met, trials * len(GATED)),
        ]
        for (noise, queries, runs), one in zip(CASES, counts, strict=True)
    ]
    return (
        f"{tables.rows(HEAD, body, 1)}\nEach number is from {trials:,} simulations, {tables.precision(trials, 0.05)} "
        f"near 5% and {tables.precision(trials, 0.8).removeprefix('give or take ')} near 80%.\n"
    )


if __name__ == "__main__":
    tables.write("promises", table())
