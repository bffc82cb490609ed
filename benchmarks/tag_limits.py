"""How often limits on tags cry wolf: `python -m benchmarks.tag_limits FOLDER`.

A set of ``TAGS`` tags, each with as many queries and a limit on the drop of MRR, is checked in each mode while nothing
got worse. Three kinds of such changes are drawn:

- a model: one relevant document a query, at rank 1 to 5 or missing, as often as ``RANKS`` says. In an index that is as
  good but not the same, a share of the queries (``CHURN``) gets another rank by chance,
- the same model with every query ranked again: two unrelated systems that are equally good,
- real ones: two systems of :mod:`benchmarks.robust03`; for each query, a coin decides which of them is before and which
  after the change, so that neither is better.

All is seeded. The table stands in docs/background/statistics.md.
"""

import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from multiprocessing import Pool
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from benchmarks import tables
from benchmarks.robust03 import Robust, from_command_line
from benchmarks.small_checks import Run, judged, write_set
from benchmarks.stages import Row

K = 10
RANKS = (0.60, 0.12, 0.06, 0.04, 0.03)  # of rank 1 to 5; the rest is missing
CHURN = 0.1
TAGS, QUERIES = 10, 10  # queries a tag
LIMIT = 0.05
MODES = ("strict", "significant", "noninferiority")
CHECKS = 300
PART = "tag-limits"


class Change(Struct, frozen=True, kw_only=True):
    """The relevant documents of each query, and the runs before and after a change."""

    relevant: Mapping[str, Mapping[str, int]]
    baseline: Run
    change: Run


Draw = Callable[[random.Random], Change]


def of_model(churn: float, dice: random.Random) -> Change:
    """Draw one relevant document a query, at a rank that changes for a share ``churn`` of the queries."""
    ranks, shares = [*range(1, len(RANKS) + 1), 0], [*RANKS, 1 - sum(RANKS)]
    before = dice.choices(ranks, shares, k=TAGS * QUERIES)
    again = dice.choices(ranks, shares, k=TAGS * QUERIES)
    after = [new if dice.random() < churn else old for old, new in zip(before, again, strict=True)]
    return Change(
        relevant={f"q{number}": {"relevant": 1} for number in range(len(before))},
        baseline={f"q{number}": _ranked(rank) for number, rank in enumerate(before)},
        change={f"q{number}": _ranked(rank) for number, rank in enumerate(after)},
    )


def _ranked(rank: int) -> list[str]:
    others = [f"other {number}" for number in range(1, K)]
    return [*others[: rank - 1], "relevant", *others[rank - 1 :]] if rank else others


def of_systems(robust: Robust, dice: random.Random) -> Change:
    """Draw two systems, and a coin for each topic that decides which of them is before."""
    pair = [robust.systems[name] for name in dice.choice(list(combinations(robust.systems, 2)))]
    topics = dice.sample(robust.topics, k=TAGS * QUERIES)
    sides = {topic: dice.sample(pair, k=2) for topic in topics}
    return Change(
        relevant={topic: robust.relevant(topic) for topic in topics},
        baseline={topic: before[topic][:K] for topic, (before, _) in sides.items()},
        change={topic: after[topic][:K] for topic, (_, after) in sides.items()},
    )


def outcome(draw: Draw, seed: int) -> tuple[frozenset[str], bool]:
    """Return the modes in which a change fails, and whether ``significant`` says that a tag has too few queries."""
    change = draw(random.Random(seed))
    golden: list[Row] = [
        {"id": query, "query": f"Query {query}?", "relevance": relevant, "tags": [f"tag-{number % TAGS}"]}
        for number, (query, relevant) in enumerate(change.relevant.items())
    ]
    limits = {f"tag-{number}": {"fail_on": {"mrr_drop_gt": LIMIT}} for number in range(TAGS)}
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_set(folder, golden, change.baseline)
        reports = {mode: judged(folder, change.change, k=K, fail_on={"mode": mode}, tags=limits) for mode in MODES}
    failing = frozenset(mode for mode, report in reports.items() if report.verdict == "fail")
    return failing, any(gate.status == "too_few" for gate in reports["significant"].gates)


def content(found: Mapping[str, Sequence[tuple[frozenset[str], bool]]]) -> Iterator[str]:
    """Yield the lines of the part of the page, from the outcomes of each kind of change."""
    body = []
    for label, outcomes in found.items():
        shares = [tables.share(sum(mode in failing for failing, _ in outcomes), len(outcomes)) for mode in MODES]
        few = tables.share(sum(too_few for _, too_few in outcomes), len(outcomes))
        body.append([label, *shares, few])
    head = ["nothing got worse", *(f"`{mode}` fails" for mode in MODES), "`significant`: too few changed"]
    yield tables.rows(head, body, 1)
    yield f"\nEach number is a share of {CHECKS:,} checks, {tables.precision(CHECKS)} at most.\n"


def main() -> None:
    """Check all kinds of changes, and write the part of the page."""
    robust = from_command_line(sys.argv[1:], "benchmarks.tag_limits", K)
    kinds: dict[str, Draw] = {
        "model, one query in ten changes": partial(of_model, CHURN),
        "model, every query changes": partial(of_model, 1.0),
        "real systems, shuffled by a coin": partial(of_systems, robust),
    }
    with Pool(2) as pool:
        found = {label: pool.map(partial(outcome, draw), range(CHECKS), chunksize=10) for label, draw in kinds.items()}
    tables.write(PART, "".join(content(found)))


if __name__ == "__main__":
    main()
