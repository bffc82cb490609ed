"""How often each mode of `fail_on` cries wolf, and how often it finds a real drop: `python -m benchmarks.noise`.

Draws good runs and another one from a model of a retriever (`benchmarks/retriever.py`, in which one query in ten gets
another rank in each run), judges it by every contract, and writes the shares that fail into
docs/background/statistics.md. A real drop is queries that lose their document, so many that HitRate@5 falls by
``DROPS`` on average. Limits are guessed, and measured from one good run, or are those of `rag-contract suggest`: for
`mode: strict` from three good runs, which are also the baseline, for `mode: significant` from one. All is seeded.
"""

from collections.abc import Sequence
from itertools import product
from math import fsum
from multiprocessing import Pool
from random import Random

from msgspec import Struct

from benchmarks import tables
from benchmarks.retriever import GATED, NOISES, Columns, Retriever, suggestions
from ragcontract.core.numbers import SAME
from ragcontract.statistics.significance import ALPHA, assess
from tests.statistics.paired_runs import change_of

QUERIES = (30, 100, 300, 1000)
DROPS = (0.0, 0.05, 0.10)
TRIALS = 1000
MOST_VALUES = 300_000  # of the queries of all trials of a case


class Contract(Struct, frozen=True, kw_only=True):
    """A mode, a limit that both gated metrics have (without one, those suggested), and the runs of the baseline."""

    mode: str
    limit: float | None = None
    runs: int = 1

    @property
    def label(self) -> str:
        """As in a table's head."""
        limit = "suggested" if self.limit is None else f"limit {self.limit:.2f}"
        return f"`{self.mode}`, {limit}" + (f", {self.runs} good runs" if self.runs > 1 else "")


CONTRACTS = (
    Contract(mode="strict", limit=0.02),
    Contract(mode="strict", limit=0.05),
    Contract(mode="strict", runs=3),
    Contract(mode="significant", limit=0.02),
    Contract(mode="significant", limit=0.02, runs=3),
    Contract(mode="significant"),
    Contract(mode="noninferiority", limit=0.05),
    Contract(mode="noninferiority", limit=0.10),
)


class Compared(Struct, frozen=True, kw_only=True):
    """A run against the mean of good runs: what is suggested for each gated metric, the drop, and how sure it is."""

    limits: list[float | None]
    drops: list[float]
    proven: list[bool]
    at_most: list[float]

    @classmethod
    def of(cls, good: Sequence[Columns], now: Columns) -> "Compared":
        """Compare a run with the mean of the ``good`` runs."""
        queries = len(now[0])
        before = [[fsum(values) / len(good) for values in zip(*runs, strict=True)] for runs in zip(*good, strict=True)]
        pairs = list(zip(before, now, strict=True))
        results = assess([change_of(old, new) for old, new in pairs])
        return cls(
            limits=[one.limit for one in suggestions(good, [1.0] * queries)],
            drops=[(fsum(old) - fsum(new)) / queries for old, new in pairs],
            proven=[one.p_value is not None and one.p_value <= ALPHA for one in results],
            at_most=[one.bounds[1] for one in results],
        )

    def fails(self, contract: Contract) -> bool:
        """Return whether any gated metric breaks its limit in the contract's mode."""
        broken = []
        for suggested, drop, proven, at_most in zip(self.limits, self.drops, self.proven, self.at_most, strict=True):
            limit = suggested if contract.limit is None else contract.limit
            if limit is not None:
                over, excluded = drop > limit + SAME, at_most <= limit + SAME
                fails = {"strict": over, "significant": over and proven, "noninferiority": over or not excluded}
                broken.append(fails[contract.mode])
        return any(broken)


def fails(good: Sequence[Columns], now: Columns) -> list[bool]:
    """Return whether each contract fails; its baseline is the mean of the first of the ``good`` runs."""
    compared = {runs: Compared.of(good[:runs], now) for runs in {contract.runs for contract in CONTRACTS}}
    return [compared[contract.runs].fails(contract) for contract in CONTRACTS]


def shares(case: tuple[float, int]) -> list[str]:
    """Return how often each contract fails for so many queries and such a real drop."""
    drop, queries = case
    dice = Random(f"{queries} {drop}")
    trials = min(TRIALS, MOST_VALUES // queries)
    total = [0] * len(CONTRACTS)
    for _ in range(trials):
        retriever = Retriever(queries, NOISES[0], dice)
        good = [retriever.run() for _ in range(3)]
        now = retriever.run(retriever.losing(drop, GATED.index("HitRate@5")))
        total = [before + failed for before, failed in zip(total, fails(good, now), strict=True)]
    return [f"{failed / trials:.0%}" for failed in total]


def table() -> str:
    """Return the table, with a row for each number of queries and real drop."""
    cases = list(product(DROPS, QUERIES))
    with Pool(2) as pool:
        cells = pool.map(shares, cases, chunksize=1)
    head = ("real drop", "queries", *(contract.label for contract in CONTRACTS))
    body = [
        [f"{drop:.2f}" if drop else "none", f"{queries:,}", *of_case]
        for (drop, queries), of_case in zip(cases, cells, strict=True)
    ]
    fewest = min(TRIALS, MOST_VALUES // max(QUERIES))
    few = f"{fewest:,} of {max(QUERIES):,} queries"
    return (
        f"{tables.rows(head, body, 1)}\nEach number is the share of {TRIALS:,} simulated checks ({few}) that fail, "
        f"{tables.precision(TRIALS)} at most ({tables.precision(fewest).removeprefix('give or take ')}).\n"
    )


if __name__ == "__main__":
    tables.write("noise", table())
