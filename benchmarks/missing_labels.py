"""How often labels of the baseline's results alone turn good changes red: `python -m benchmarks.missing_labels FOLDER`.

Takes each pair of the systems of :mod:`benchmarks.robust03`, one as the baseline and the other as the change, and for
each metric counts the pairs in which the change is no worse under all of NIST's judgments. The golden set of a pair has
only the relevant documents among the first ``K`` results of the baseline, as where a team ticked what its retriever
found. It is checked with a limit on the drop of each metric, in several ways to treat documents that nobody has judged,
and again when NIST's judgments of those that `rag-contract unjudged` lists first are added. What NIST did not judge
either is not relevant. The table stands in docs/background/statistics.md.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from itertools import permutations
from multiprocessing import Pool
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from benchmarks import tables
from benchmarks.robust03 import Robust, System, from_command_line
from benchmarks.small_checks import Run, judged, run_rows, write_set
from benchmarks.stages import Row, write_lines
from ragcontract.api import Report
from ragcontract.cli.main import main as rag_contract
from ragcontract.core.numbers import SAME

K = 10
LIMIT = 0.05
GATES = {"mrr": f"MRR@{K}", "ndcg": f"nDCG@{K}", "recall": f"Recall@{K}"}
LIMITS = {f"{gate}_drop_gt": LIMIT for gate in GATES}
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
JUDGED_FIRST = (50, 200)  # pairs of query and document that are judged after the first check


class Checked(Struct, frozen=True, kw_only=True):
    """What the checks of one pair found.

    ``no_worse`` are the metrics in which the change is no worse under all judgments. ``red`` are those beyond their
    limits, for each way, and ``left`` those that still are when so many documents were judged. ``judged`` is the mean
    share of the top K that somebody has judged, where all documents count.
    """

    no_worse: frozenset[str]
    red: dict[Way, frozenset[str]]
    left: dict[int, frozenset[str]]
    judged: float


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


def true_means(robust: Robust) -> dict[str, dict[str, float]]:
    """Return the gated means of every system under all judgments, by system and gate."""
    golden = [golden_row(topic, robust.relevant(topic)) for topic in robust.topics]
    found = {}
    with TemporaryDirectory() as name:
        folder = Path(name)
        for system, results in robust.systems.items():
            run = cut(results, K)
            write_set(folder, golden, run)
            metrics = judged(folder, run, k=K).metrics
            found[system] = {gate: metrics[f"{gate}_at_{K}"].current or 0.0 for gate in GATES}
    return found


def checked(robust: Robust, pair: tuple[str, str], no_worse: frozenset[str]) -> Checked:
    """Check the second system of a pair, which is no worse in some metrics, against labels of what the first found."""
    baseline, change = (robust.systems[name] for name in pair)
    golden = golden_of(robust, baseline)
    red = {}
    with TemporaryDirectory() as name:
        folder = Path(name)
        for way in reversed(WAYS):
            write_set(folder, golden, cut(baseline, way.results))
            report = judged(folder, cut(change, way.results), k=K, unjudged=way.unjudged, fail_on=LIMITS)
            red[way] = failing(report)
        left = after_judging(robust, folder, golden, cut(change, K))
    known = report.metrics[f"judged_at_{K}"].current or 0.0
    return Checked(no_worse=no_worse, red=red, left=left, judged=known)


def failing(report: Report) -> frozenset[str]:
    """Return the gates that fail."""
    metrics = {gate.metric for gate in report.gates if gate.status == "fail"}
    return frozenset(gate for gate in GATES if f"{gate}_at_{K}" in metrics)


def after_judging(robust: Robust, folder: Path, golden: Sequence[Row], change: Run) -> dict[int, frozenset[str]]:
    """Return the gates that fail when so many of the documents listed first were judged; the set is in ``folder``."""
    listed = first_to_judge(folder, change, max(JUDGED_FIRST))
    left = {}
    for count in JUDGED_FIRST:
        grades = {row["id"]: dict(row["relevance"]) for row in golden}
        for topic, document in listed[:count]:
            grades[topic][document] = robust.grades[topic].get(document, 0)
        write_lines(folder, "golden", [golden_row(topic, found) for topic, found in grades.items()])
        left[count] = failing(judged(folder, change, k=K, unjudged=COUNT.unjudged, fail_on=LIMITS))
    return left


def first_to_judge(folder: Path, run: Run, count: int) -> list[tuple[str, str]]:
    """Return the pairs of query and document that `rag-contract unjudged` lists first, for the set in ``folder``."""
    write_lines(folder, "run", run_rows(run))
    names = {"golden": "golden.jsonl", "run": "run.jsonl", "baseline": "baseline.jsonl", "config": "ragcontract.yml"}
    options = [part for name, file in names.items() for part in (f"--{name}", str(folder / file))]
    with redirect_stdout(StringIO()) as printed, redirect_stderr(StringIO()):
        rag_contract(["unjudged", *options, "--top", str(count), "--format", "jsonl"])
    lines = [json.loads(line) for line in printed.getvalue().splitlines()]
    return [(line["query_id"], line["doc_id"]) for line in lines]


def content(pairs: Sequence[Checked]) -> Iterator[str]:
    """Yield the lines of the part of the page."""
    body = []
    for gate, label in GATES.items():
        good = [pair for pair in pairs if gate in pair.no_worse]
        red = [sum(gate in pair.red[way] for pair in good) for way in WAYS]
        left = [sum(gate in pair.left[count] for pair in good) for count in JUDGED_FIRST]
        body.append([label, *map(str, [len(good), *red, *left])])
    after = [f"`{COUNT.unjudged}`, {count} more judged" for count in JUDGED_FIRST]
    yield tables.rows([f"limit of {LIMIT} on", "pairs no worse", *(way.label for way in WAYS), *after], body, 1)
    share = sum(pair.judged for pair in pairs) / len(pairs)
    yield f"\nOf the top {K} of the change, {1 - share:.0%} are documents that nobody has judged, on average.\n"


def main() -> None:
    """Check all pairs in which the change is no worse in some metric, and write the part of the page."""
    robust = from_command_line(sys.argv[1:], "benchmarks.missing_labels", DEPTH)
    means = true_means(robust)
    found = {
        (before, after): frozenset(gate for gate in GATES if means[after][gate] >= means[before][gate] - SAME)
        for before, after in permutations(robust.systems, 2)
    }
    cases = [(robust, pair, no_worse) for pair, no_worse in found.items() if no_worse]
    with Pool(2) as pool:
        pairs = pool.starmap(checked, cases, chunksize=8)
    tables.write(PART, "".join(content(pairs)))


if __name__ == "__main__":
    main()
