"""Whether suggested minimums hold for other questions, on real topics: `python -m benchmarks.other_topics RUNS QRELS`.

Takes a folder of TREC runs (``*.gz``) and a file of judgments, such as those of TREC Robust 2003 in
https://github.com/joaopalotti/trectools (``examples/robust03``). Divides the topics into two halves by chance, makes a
minimum from one half of a run, and counts how often the run meets it on the other half. A minimum that bounds the true
mean only, as the one-sided 95 % interval of a mean does, is counted beside it. Writes docs/choosing-limits.md.
"""

import gzip
import sys
from math import fsum, sqrt
from pathlib import Path
from random import Random

from benchmarks import tables
from benchmarks.retriever import meets
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.numbers import SAME
from ragcontract.metrics.ranking import Ranking
from ragcontract.statistics.student_t import t_quantile
from ragcontract.statistics.suggested_limits import suggested

K = 10
GATED = ("mrr_at_10", "ndcg_at_10", "precision_at_10")
HALVES = 1000
HEAD = ("metric", "minimum met", "mean bounded only")

Values = dict[str, dict[str, float]]  # by metric, then by topic


def judgments(path: Path) -> dict[str, GoldenQuery]:
    """Return the topics that have relevant documents."""
    relevant: dict[str, list[str]] = {}
    for line in path.read_text().splitlines():
        topic, _, document, grade = line.split()
        if int(grade) > 0:
            relevant.setdefault(topic, []).append(document)
    return {
        topic: GoldenQuery(id=topic, query="", relevant_doc_ids=tuple(documents), location="")
        for topic, documents in relevant.items()
    }


def run_of(path: Path, topics: dict[str, GoldenQuery]) -> Values:
    """Return a run's values; its order is that of its scores, and of its document ids where they are equal."""
    retrieved: dict[str, list[tuple[float, str]]] = {topic: [] for topic in topics}
    with gzip.open(path, "rt") as lines:
        for line in lines:
            topic, _, document, _, score, *_ = line.split()
            if topic in retrieved:
                retrieved[topic].append((float(score), document))
    ranking = Ranking([K])
    keys = [metric.key for metric in ranking.metrics]
    scored = {
        topic: ranking.score(query, [document for _, document in sorted(retrieved[topic], reverse=True)]).values
        for topic, query in topics.items()
    }
    return {key: {topic: values[keys.index(key)] for topic, values in scored.items()} for key in GATED}


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


def table(runs: Path, qrels: Path, halves: int = HALVES) -> str:
    """Return the table, and what it was measured on."""
    topics = judgments(qrels)
    systems = [run_of(path, topics) for path in sorted(runs.glob("*.gz"))]
    body = []
    for key in GATED:
        met, within, trials = held(systems, key, halves)
        label = next(metric.label for metric in Ranking([K]).metrics if metric.key == key)
        body.append([label, tables.share(met, trials), tables.share(within, trials)])
    return (
        f"{tables.rows(HEAD, body, 1)}\nMeasured on {len(systems)} runs of {len(topics)} topics, each divided "
        f"{halves:,} times.\n"
    )


if __name__ == "__main__":
    if len(sys.argv) != 3:  # noqa: PLR2004
        sys.exit("give the runs and the judgments: python -m benchmarks.other_topics RUNS QRELS")
    tables.write("other-topics", table(Path(sys.argv[1]), Path(sys.argv[2])))
