"""What other evaluation tools take for the metrics alone: ``python peers.py TOOL golden.jsonl RUN [RUN ...]``.

Loads golden queries and runs from JSON lines, evaluates MRR@5, Recall@5, Precision@5 and HitRate@5 of each run, and
prints the means as JSON, a line a run. Runs in the tool's own environment, so it imports the standard library and the
tool. Means are not weighted, as the tools have no weights.
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

K = 5
Judged = dict[str, dict[str, int]]
Ranked = dict[str, dict[str, float]]
Means = dict[str, float]


def rows(path: str) -> Iterator[Any]:
    """Yield the objects of a file of JSON lines."""
    with Path(path).open("rb") as lines:
        for line in lines:
            yield json.loads(line)


def load_golden(path: str) -> Judged:
    """Return which documents are relevant for each query, as the tools take it."""
    return {row["id"]: dict.fromkeys(row["relevant_doc_ids"], 1) for row in rows(path)}


def load_run(path: str) -> Ranked:
    """Return the scores of each query's documents, as the tools take it."""
    return {row["query_id"]: {result["doc_id"]: result["score"] for result in row["results"]} for row in rows(path)}


def with_pytrec_eval(judged: Judged, runs: Iterable[Ranked]) -> Iterator[Means]:
    """Evaluate with trec_eval's own code; its recip_rank has no cut-off, so that lists are cut before."""
    import pytrec_eval

    names = {"recip_rank": "mrr", f"recall_{K}": "recall", f"P_{K}": "precision", f"success_{K}": "hitrate"}
    evaluator = pytrec_eval.RelevanceEvaluator(judged, set(names))
    for run in runs:
        top = {query: dict(list(ranked.items())[:K]) for query, ranked in run.items()}
        values = list(evaluator.evaluate(top).values())
        yield {ours: fmean(value[theirs] for value in values) for theirs, ours in names.items()}


def with_ir_measures(judged: Judged, runs: Iterable[Ranked]) -> Iterator[Means]:
    """Evaluate with ir_measures, which picks a provider for each measure."""
    import ir_measures

    names = {ir_measures.RR @ K: "mrr", ir_measures.R @ K: "recall", ir_measures.P @ K: "precision"}
    names[ir_measures.Success @ K] = "hitrate"
    evaluator = ir_measures.evaluator(list(names), judged)
    for run in runs:
        yield {names[measure]: value for measure, value in evaluator.calc_aggregate(run).items()}


def with_ranx(judged: Judged, runs: Iterable[Ranked]) -> Iterator[Means]:
    """Evaluate with ranx."""
    import ranx

    names = {f"mrr@{K}": "mrr", f"recall@{K}": "recall", f"precision@{K}": "precision", f"hit_rate@{K}": "hitrate"}
    qrels = ranx.Qrels(judged)
    for run in runs:
        values = ranx.evaluate(qrels, ranx.Run(run), list(names), make_comparable=False)
        yield {ours: float(values[theirs]) for theirs, ours in names.items()}


TOOLS: dict[str, Callable[[Judged, Iterable[Ranked]], Iterator[Means]]] = {
    "pytrec_eval": with_pytrec_eval,
    "ir_measures": with_ir_measures,
    "ranx": with_ranx,
}

if __name__ == "__main__":
    tool, golden, *paths = sys.argv[1:]
    for means in TOOLS[tool](load_golden(golden), map(load_run, paths)):
        print(json.dumps(means))
