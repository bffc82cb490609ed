"""How often labels of the baseline's results alone turn good changes red: `python -m benchmarks.missing_labels FOLDER`.

Takes each pair of the systems of :mod:`benchmarks.robust03`, one as the baseline and the other as the change, and for
each metric counts the pairs in which the change is no worse under all of NIST's judgments. The golden set of a pair has
only the relevant documents among the first ``K`` results of the baseline, as where a team ticked what its retriever
found. It is checked with a limit on the drop of each metric, in several ways to treat documents that nobody has judged.
The table stands in docs/choosing-limits.md.
"""

import sys
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import permutations
from multiprocessing import Pool
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from benchmarks import tables
from benchmarks.robust03 import Robust, System, from_command_line
from benchmarks.small_checks import judged, write_set
from benchmarks.stages import Row
from ragcontract.core.numbers import SAME

K = 10
LIMIT = 0.05
GATES = {"mrr": f"MRR@{K}", "ndcg": f"nDCG@{K}", "recall": f"Recall@{K}"}
PART = "missing-labels"


class Way(Struct, frozen=True, kw_only=True):
    """A way to treat documents that nobody has judged, in runs with so many results for a query."""

    unjudged: str
    results: int

    @property
    def label(self) -> str:
        """As in the head of a table."""
        return f"`{self.unjudged}`, {self.results} results"


COUNT = Way(unjudged="count", results=K)
WAYS = (COUNT, *(Way(unjudged="skip", results=results) for results in (K, 20, 100)))
DEPTH = max(way.results for way in WAYS)


class Checked(Struct, frozen=True, kw_only=True):
    """What the checks of one pair found.

    ``no_worse`` are the metrics in which the change is no worse under all judgments, ``red`` has for each way those
    beyond their limit. ``judged`` is the mean share of the top K that somebody has judged, and ``said`` whether the
    report blames missing labels, where all documents count.
    """

    no_worse: frozenset[str]
    red: dict[Way, frozenset[str]]
    judged: float
    said: bool


def golden_of(robust: Robust, baseline: System) -> list[Row]:
    """Return golden rows whose relevant documents are those that the baseline has in its top K."""
    rows = []
    for topic in robust.topics:
        relevant = robust.relevant(topic)
        rows.append(golden_row(topic, {name: relevant[name] for name in baseline[topic][:K] if name in relevant}))
    return rows


def golden_row(topic: str, grades: dict[str, int]) -> Row:
    """Return the golden row of a topic."""
    return {"id": topic, "query": f"Topic {topic}?", "relevance": grades}


def cut(system: System, results: int) -> dict[str, Sequence[str]]:
    """Return the first results of a system."""
    return {topic: ranking[:results] for topic, ranking in system.items()}


def true_means(robust: Robust, folder: Path) -> dict[str, dict[str, float]]:
    """Return the gated means of every system under all judgments, by system and gate."""
    golden = [golden_row(topic, robust.relevant(topic)) for topic in robust.topics]
    found = {}
    for name, system in robust.systems.items():
        run = cut(system, K)
        write_set(folder, golden, run)
        metrics = judged(folder, run, k=K).metrics
        found[name] = {gate: metrics[f"{gate}_at_{K}"].current or 0.0 for gate in GATES}
    return found


def checked(robust: Robust, means: dict[str, dict[str, float]], pair: tuple[str, str]) -> Checked:
    """Check the second system of a pair against labels of what the first one found."""
    before, after = (means[name] for name in pair)
    baseline, change = (robust.systems[name] for name in pair)
    limits = {f"{gate}_drop_gt": LIMIT for gate in GATES}
    red, said, known = {}, False, 0.0
    with TemporaryDirectory() as folder:
        for way in WAYS:
            write_set(Path(folder), golden_of(robust, baseline), cut(baseline, way.results))
            report = judged(Path(folder), cut(change, way.results), k=K, unjudged=way.unjudged, fail_on=limits)
            failing = {gate.metric for gate in report.gates if gate.status == "fail"}
            red[way] = frozenset(gate for gate in GATES if f"{gate}_at_{K}" in failing)
            if way == COUNT:
                known = report.metrics[f"judged_at_{K}"].current or 0.0
                said = False
    no_worse = frozenset(gate for gate in GATES if after[gate] >= before[gate] - SAME)
    return Checked(no_worse=no_worse, red=red, judged=known, said=said)


def content(pairs: Sequence[Checked]) -> Iterator[str]:
    """Yield the lines of the part of the page."""
    body = []
    for gate, label in GATES.items():
        good = [pair for pair in pairs if gate in pair.no_worse]
        body.append([label, str(len(good)), *(str(sum(gate in pair.red[way] for pair in good)) for way in WAYS)])
    yield tables.rows(["limit of 0.05 on", "pairs no worse", *(way.label for way in WAYS)], body, 1)
    good = [pair for pair in pairs if pair.no_worse]
    red = [pair for pair in good if pair.no_worse & pair.red[COUNT]]
    share = sum(pair.judged for pair in good) / len(good)
    yield (
        f"\nOf the top {K} of the change, {share:.0%} were judged on average. Of the {len(red)} pairs that are red "
        f"with `count`, the report of {sum(pair.said for pair in red)} says that labels may be missing.\n"
    )


def main() -> None:
    """Check all pairs, and write the part of the page."""
    robust = from_command_line(sys.argv[1:], "benchmarks.missing_labels", DEPTH)
    with TemporaryDirectory() as folder:
        means = true_means(robust, Path(folder))
    with Pool(2) as pool:
        pairs = pool.map(partial(checked, robust, means), permutations(robust.systems, 2), chunksize=8)
    tables.write(PART, "".join(content(pairs)))


if __name__ == "__main__":
    main()
