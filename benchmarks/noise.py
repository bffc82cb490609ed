"""How often each mode of `fail_on` cries wolf, and how often it finds a real drop: `python -m benchmarks.noise`.

Draws pairs of runs from a model of a retriever, judges each pair by every contract, and writes the shares that fail
into docs/choosing-limits.md. The model: one relevant document a query, at rank 1 to 5 or missing, as often as ``RANKS``
says. In a run of an index that is as good but not the same, a share of the queries (``CHURN``) has its rank sampled
again. A real drop is queries that, on top of that, lose their document altogether, so many that HitRate@5 falls by
``DROPS`` on average. The limits of `rag-contract suggest` are made from three good runs. All is seeded.
"""

import random
import sys
from collections.abc import Iterator, Sequence
from itertools import product
from math import sqrt
from multiprocessing import Pool
from pathlib import Path

from msgspec import Struct

from ragcontract.core.numbers import SAME
from ragcontract.statistics.detectable import Detectable, detectable, round_up
from ragcontract.statistics.significance import ALPHA, assess
from tests.statistics.paired_runs import change_of

PAGE = Path(__file__).parent.parent / "docs" / "choosing-limits.md"
BEGIN, END = "<!-- begin: noise -->\n", "<!-- end -->"
RANKS = (0.60, 0.12, 0.06, 0.04, 0.03)  # of rank 1 to 5; the rest is missing
K = len(RANKS)
CHURN = 0.1
QUERIES = (30, 100, 300, 1000, 5000)
DROPS = (0.0, 0.05, 0.10)
LIMITS = (0.02, 0.05, None)
GATED = ("mrr", "hitrate")  # of one relevant document
PAIRS = 1000


class Contract(Struct, frozen=True, kw_only=True):
    """A mode and a limit, which both gated metrics have; without a limit, those that are suggested for the mode."""

    mode: str
    limit: float | None

    @property
    def label(self) -> str:
        """As in a table's head."""
        return f"`{self.mode}`, " + ("suggested" if self.limit is None else f"limit {self.limit:.2f}")

    def limit_on(self, suggested: Detectable) -> float:
        """Return the limit on one metric."""
        if self.limit is not None:
            return self.limit
        return suggested.change_limit if self.mode == "significant" else round_up(suggested.noise)


CONTRACTS = [Contract(mode=mode, limit=limit) for mode, limit in product(("strict", "significant"), LIMITS)]
Columns = list[list[float]]  # of one run: a column for each gated metric


def runs(queries: int, drop: float, dice: random.Random) -> Iterator[Columns]:
    """Draw three good runs and one that lost ``drop`` of HitRate on average, by the values of the gated metrics."""
    ranks = [*range(1, K + 1), 0]
    shares = [*RANKS, 1 - sum(RANKS)]
    usual = dice.choices(ranks, shares, k=queries)
    yield _values(usual)
    for lost in (0.0, 0.0, drop / sum(RANKS)):
        anew = dice.choices(ranks, shares, k=queries)
        run = [new if dice.random() < CHURN else old for old, new in zip(usual, anew, strict=True)]
        yield _values([0 if dice.random() < lost else rank for rank in run])


def _values(ranks: Sequence[int]) -> Columns:
    return [[1 / rank if rank else 0.0 for rank in ranks], [float(rank > 0) for rank in ranks]]


def verdicts(good: Sequence[Columns], now: Columns) -> dict[str, bool]:
    """Return whether each contract fails, on any gated metric: ``now`` against the first of the ``good`` runs."""
    before, weights = good[0], [1.0] * len(now[0])
    changes = [change_of(old, new) for old, new in zip(before, now, strict=True)]
    drops = [(sum(old) - sum(new)) / len(old) for old, new in zip(before, now, strict=True)]
    suggested = [detectable(columns, weights) for columns in zip(*good, strict=True)]
    counts = [one.p_value is not None and one.p_value <= ALPHA for one in assess(changes, ALPHA)]
    return {
        contract.label: any(
            drop > contract.limit_on(limits) + SAME and (sure_enough or contract.mode == "strict")
            for drop, limits, sure_enough in zip(drops, suggested, counts, strict=True)
        )
        for contract in CONTRACTS
    }


def share_of_failures(case: tuple[float, int]) -> dict[str, float]:
    """Return how often each contract fails for so many queries and such a real drop."""
    drop, queries = case
    dice = random.Random(f"{queries} {drop}")
    total = dict.fromkeys((contract.label for contract in CONTRACTS), 0)
    for _ in range(PAIRS):
        *good, now = runs(queries, drop, dice)
        for label, fails in verdicts(good, now).items():
            total[label] += fails
    return {label: failures / PAIRS for label, failures in total.items()}


def table() -> Iterator[str]:
    """Yield the lines of the table, one for each number of queries and real drop."""
    cases = list(product(DROPS, QUERIES))
    with Pool(2) as pool:
        shares = dict(zip(cases, pool.map(share_of_failures, cases, chunksize=1), strict=True))
    labels = [contract.label for contract in CONTRACTS]
    yield "| real drop | queries | " + " | ".join(labels) + " |"
    yield "| --- | ---: |" + " ---: |" * len(labels)
    for drop, queries in cases:
        cells = [f"{shares[drop, queries][label]:.0%}" for label in labels]
        yield f"| {f'{drop:.2f}' if drop else 'none'} | {queries:,} | " + " | ".join(cells) + " |"
    worst = 1.96 * sqrt(0.25 / PAIRS)
    yield ""
    yield f"Each number is the share of {PAIRS:,} simulated checks that fail, give or take {worst:.0%} at most."


def main() -> None:
    """Write the table into the page."""
    text = "\n".join(table()) + "\n"
    page = PAGE.read_text(encoding="utf-8")
    before, begin, rest = page.partition(BEGIN)
    if not begin:
        sys.exit(f"{PAGE.name} has no {BEGIN.strip()}")
    PAGE.write_text(before + BEGIN + text + END + rest.partition(END)[2], encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
