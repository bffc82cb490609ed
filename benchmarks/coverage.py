"""How often the one-sided bounds of a change hold: `python -m benchmarks.coverage`.

Draws pairs of runs from models of a retriever whose true change is known, computes the bounds of each pair's change,
and writes the shares of pairs in which the true change is at least the lower and at most the upper bound into
docs/background/statistics.md. In a run of another index, a share of the queries (``CHURN``) has its ranks sampled
again; on top of that, some lose their documents altogether (``LOST``). One relevant document a query, at rank 1 to 5 or
missing as often as ``RANKS`` says; for Recall, one to four, each found as often as ``FOUND`` says. Pairs without any
changed query are left out: they have no bounds but 0. All is seeded.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import log2
from multiprocessing import Pool

from msgspec import Struct

from benchmarks import tables
from ragcontract.core.numbers import SAME
from ragcontract.statistics.significance import ALPHA, change_bounds, exceeded_by
from tests.statistics.paired_runs import change_of

PART = "coverage"
RANKS = (0.60, 0.12, 0.06, 0.04, 0.03)  # of rank 1 to 5; the rest is missing
FOUND = 0.8
MOST_RELEVANT = 4
QUERIES = (10, 30, 100, 500)
CHURN = (0.05, 0.1, 0.3)
LOST = (0.0, 0.06, 0.12)
EFFORT = 150_000  # pairs times queries, at most, in one case
PAIRS = 1_500
FEWEST_PAIRS = 20
WEIGHTS: dict[str, Callable[[random.Random], float]] = {
    "equal": lambda _: 1.0,
    "1 to 6": lambda dice: float(dice.randint(1, 6)),
    "log-normal": lambda dice: dice.lognormvariate(0.0, 1.0),
}
VALUES: dict[str, list[float]] = {
    "MRR": [*(1 / rank for rank in range(1, len(RANKS) + 1)), 0.0],
    "nDCG": [*(1 / log2(rank + 1) for rank in range(1, len(RANKS) + 1)), 0.0],
    "HitRate": [*(1.0 for _ in RANKS), 0.0],
}
METRICS = (*VALUES, "Recall")
# By the number of queries that are expected to change: in few, changes are too coarse for a share of exactly 95 %.
DENSITIES = {"under 4": (0.0, 4.0), "4 to 10": (4.0, 10.0), "10 or more": (10.0, 1e9)}


class Case(Struct, frozen=True, kw_only=True):
    """A metric, a number of queries, and how they change."""

    queries: int
    weights: str
    metric: str
    churn: float
    lost: float


class Held(Struct, frozen=True, kw_only=True):
    """How often the lower and the upper bound held in a case, and how many queries changed on average."""

    case: Case
    lower: float
    upper: float
    changed: float


def pair(case: Case, dice: random.Random) -> tuple[list[float], list[float], float]:
    """Draw the values of a metric for all queries before and now; the last is how much worse it truly became."""
    if case.metric == "Recall":
        rows = [_recalls(case, dice) for _ in range(case.queries)]
        mean = FOUND
    else:
        values = VALUES[case.metric]
        shares = [*RANKS, 1 - sum(RANKS)]
        before = dice.choices(range(len(values)), shares, k=case.queries)
        others = dice.choices(range(len(values)), shares, k=case.queries)
        rows = []
        for old, new in zip(before, others, strict=True):
            current = new if dice.random() < case.churn else old
            rows.append((values[old], 0.0 if dice.random() < case.lost else values[current]))
        mean = sum(share * value for share, value in zip(shares, values, strict=True))
    return [before for before, _ in rows], [now for _, now in rows], case.lost * mean


def _recalls(case: Case, dice: random.Random) -> tuple[float, float]:
    relevant = dice.randint(1, MOST_RELEVANT)
    before = after = sum(dice.random() < FOUND for _ in range(relevant))
    if dice.random() < case.churn:
        after = sum(dice.random() < FOUND for _ in range(relevant))
    return before / relevant, 0.0 if dice.random() < case.lost else after / relevant


def measure(case: Case, pairs: int) -> Held:
    """Return how often the bounds of drawn pairs hold."""
    dice = random.Random(str(case))
    weigh, normal = WEIGHTS[case.weights], exceeded_by(ALPHA)
    lower = upper = compared = changed = 0
    for _ in range(pairs):
        before, now, true = pair(case, dice)
        change = change_of(before, now, [weigh(dice) for _ in now])
        changed += len(change.changed)
        if change.changed:
            low, high = change_bounds(change, normal, normal)
            compared += 1
            lower += low <= true + SAME
            upper += high >= true - SAME
    share = 1 / max(compared, 1)
    return Held(case=case, lower=lower * share, upper=upper * share, changed=changed / pairs)


def cases() -> list[Case]:
    """Return all cases."""
    axes = product(QUERIES, WEIGHTS, METRICS, CHURN, LOST)
    return [Case(queries=n, weights=w, metric=m, churn=c, lost=lost) for n, w, m, c, lost in axes]


def pairs_for(case: Case) -> int:
    """Return how many pairs are drawn, so that all cases take about the same time."""
    return max(FEWEST_PAIRS, min(PAIRS, EFFORT // case.queries))


def measured(case: Case) -> Held:
    """Measure a case with as many pairs as it is worth."""
    return measure(case, pairs_for(case))


def table(found: Sequence[Held]) -> Iterator[str]:
    """Yield the lines of the table: for each number of queries and weights, by how many queries change."""
    columns = [f"{end}, {density} change" for density in DENSITIES for end in ("lower", "upper")]
    yield "| queries | weights | " + " | ".join(columns) + " |"
    yield "| ---: | --- |" + " ---: |" * len(columns)
    for queries, weights in product(QUERIES, WEIGHTS):
        own = [one for one in found if (one.case.queries, one.case.weights) == (queries, weights)]
        cells = []
        for least, most in DENSITIES.values():
            dense = [one for one in own if least <= one.changed < most]
            cells += [_cell([one.lower for one in dense]), _cell([one.upper for one in dense])]
        yield f"| {queries} | {weights} | " + " | ".join(cells) + " |"
    yield ""
    yield (
        f"Each cell is the mean over the cases (metrics MRR@5, nDCG@5, HitRate@5 and Recall@5, churn of 5 to 30 %, "
        f"true drops of 0 to {max(LOST) * FOUND:.2f}), and in brackets the lowest and the highest of them. Nominal is "
        f"95 %. A case has {pairs_for(found[-1].case):,} to {pairs_for(found[0].case):,} pairs of runs."
    )


def _cell(shares: Sequence[float]) -> str:
    if not shares:
        return ""
    mean, least, most = sum(shares) / len(shares), min(shares), max(shares)
    return f"{100 * mean:.1f}% ({100 * least:.0f}-{100 * most:.0f})"


def main() -> None:
    """Write the table into the page."""
    with Pool(2) as pool:
        found = pool.map(measured, cases(), chunksize=4)
    tables.write(PART, "\n".join(table(found)) + "\n")


if __name__ == "__main__":
    main()
