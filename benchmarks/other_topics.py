"""Whether suggested minimums hold for other questions, on real topics: `python -m benchmarks.other_topics FOLDER`.

Takes the systems of :mod:`benchmarks.robust03`. Divides the topics into two halves by chance, makes a minimum from one
half of a system's run, and counts how often the run meets it on the other half. A minimum that bounds the true mean
only, as the one-sided 95 % interval of a mean does, is counted beside it. Writes docs/background/statistics.md.
"""

import sys
from math import fsum, sqrt
from random import Random

from benchmarks import tables
from benchmarks.retriever import meets
from benchmarks.robust03 import Robust, from_command_line
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.numbers import SAME
from ragcontract.core.phrase import Location
from ragcontract.metrics.ranking import Ranking
from ragcontract.statistics.significance import t_quantile
from ragcontract.statistics.suggested_limits import suggested

K = 10
GATED = ("mrr_at_10", "ndcg_at_10", "precision_at_10")
HALVES = 1000
HEAD = ("metric", "minimum met", "mean bounded only")

Values = dict[str, dict[str, float]]  # by metric, then by topic


def values_of(robust: Robust) -> list[Values]:
    """Return the values of each system, for the topics that have relevant documents."""
    ranking = Ranking([K])
    keys = [metric.key for metric in ranking.metrics]
    queries = {
        topic: GoldenQuery(id=topic, query="", relevant_doc_ids=tuple(relevant), location=Location(""))
        for topic in robust.topics
        if (relevant := robust.relevant(topic))
    }
    found = []
    for system in robust.systems.values():
        scored = {topic: ranking.score(query, system.get(topic, ())).values for topic, query in queries.items()}
        found.append({key: {topic: values[keys.index(key)] for topic, values in scored.items()} for key in GATED})
    return found


def bounded(half: list[float]) -> float:
    """Return the lower end of the one-sided 95 % interval of a mean."""
    mean = fsum(half) / len(half)
    error = sqrt(fsum((value - mean) ** 2 for value in half) / (len(half) - 1) / len(half))
    return mean - t_quantile(0.05, len(half) - 1) * error


def held(runs: list[Values], key: str, halves: int = HALVES) -> tuple[int, int, int]:
    """Count the halves that met the suggested minimum, those that met a bound of the mean, and all."""
    dice = Random(key)
    met = within = trials = 0
    for values in (run[key] for run in runs):
        topics = sorted(values)
        for _ in range(halves):
            order = dice.sample(topics, len(topics))
            one, other = ([values[topic] for topic in part] for part in (order[::2], order[1::2]))
            limit = suggested([one], [1.0] * len(one))
            met += meets(limit, other, [1.0] * len(other))
            within += fsum(other) / len(other) >= bounded(one) - SAME
            trials += 1
    return met, within, trials


def table(robust: Robust, halves: int = HALVES) -> str:
    """Return the table, and what it was measured on."""
    systems = values_of(robust)
    body = []
    for key in GATED:
        met, within, trials = held(systems, key, halves)
        label = next(metric.label for metric in Ranking([K]).metrics if metric.key == key)
        body.append([label, tables.share(met, trials), tables.share(within, trials)])
    return (
        f"{tables.rows(HEAD, body, 1)}\nMeasured on {len(systems)} runs of {len(systems[0][GATED[0]])} topics, each "
        f"divided {halves:,} times.\n"
    )


if __name__ == "__main__":
    tables.write("other-topics", table(from_command_line(sys.argv[1:], "benchmarks.other_topics", K)))
