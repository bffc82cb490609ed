"""Metrics against pytrec_eval (trec_eval's own code), ir_measures and ranx, on thousands of generated runs.

Where definitions differ, the input is made to mean the same to both:

* trec_eval sorts by score and ignores the order of the file: it is given scores that descend strictly with the rank.
* trec_eval's run holds a document once. Ours may hold it again, which takes a rank and earns nothing: a later result
  becomes a document that nobody asked for. (`rank_by: documents` takes it out instead, and so does the oracle's list.)
* trec_eval's ``recip_rank`` has no cut-off: the list is cut at k before.
* trec_eval's means are not weighted: they are compared with runs without weights, and weighted by hand here otherwise.
* A query without any result is left out of a trec_eval run and of its means: ours scores it 0, and so does the mean
  here. ir_measures counts such a query as 0, as we do. ranx takes no empty list: it is given one useless document.
* trec_eval has linear gain only. ranx's ``ndcg_burges`` is nDCG with exponential gain.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from multiprocessing import get_context
from statistics import fmean
from typing import Any

import ir_measures
import pytest
import pytrec_eval
from msgspec import Struct

from ragcontract.core.golden import GoldenQuery
from ragcontract.core.metric import Gain, RankBy
from ragcontract.metrics.formulas import FORMULAS
from tests.metrics.by_ranx import by_ranx
from tests.records import evaluate, query, score_query

EXACT = 1e-9
QUERIES = 2000
CUTOFFS = (1, 3, 5, 10, 100)
RankedList = dict[str, float]


class Sample(Struct, frozen=True, kw_only=True):
    """A golden set and a run over it."""

    queries: list[GoldenQuery]
    run: dict[str, list[str]]


def sample(seed: int, *, weighted: bool = False) -> Sample:
    """Make up queries of every shape: no results, short and long lists, one or many relevant, duplicates."""
    dice = random.Random(seed)
    queries, run = [], {}
    for number in range(QUERIES):
        documents = [f"d{n}" for n in range(dice.choice([3, 20, 150]))]
        relevant = dice.sample(documents, dice.randint(1, min(len(documents), dice.choice([1, 3, 40]))))
        weight = dice.choice([0.25, 1.0, 3.0, 1000.0]) if weighted else 1.0
        queries.append(query(f"q{number}", *relevant, weight=weight, relevance=grades(dice, relevant, documents)))
        run[f"q{number}"] = dice.choices(documents, k=dice.choice([0, 1, 4, 10, 30, 120]))
    return Sample(queries=queries, run=run)


def grades(dice: random.Random, relevant: Sequence[str], documents: Sequence[str]) -> dict[str, float] | None:
    """Grade the relevant documents of every other query, and some of the others with 0, which is a judgement too."""
    if dice.random() < 0.5:
        return None
    graded: dict[str, float] = {doc_id: dice.choice([1, 1, 2, 3, 4]) for doc_id in relevant}
    others = sorted(set(documents) - set(relevant))
    return graded | dict.fromkeys(dice.sample(others, k=min(3, len(others))), 0)


def ranked(doc_ids: Sequence[str], rank_by: RankBy) -> RankedList:
    """Return a list as an oracle takes it: each document once, scores that say the rank."""
    if rank_by == "documents":
        doc_ids = list(dict.fromkeys(doc_ids))
    once = [doc if doc not in doc_ids[:rank] else f"again {rank}" for rank, doc in enumerate(doc_ids)]
    return {doc: 1.0 - rank / 1000 for rank, doc in enumerate(once)}


def qrels(queries: Sequence[GoldenQuery]) -> dict[str, dict[str, int]]:
    return {
        asked.id: {doc_id: int(grade) for doc_id, grade in asked.relevance.items()}
        if asked.relevance
        else dict.fromkeys(asked.relevant_doc_ids, 1)
        for asked in queries
    }


def by_pytrec_eval(data: Sample, k: int, rank_by: RankBy) -> dict[str, dict[str, float]]:
    names = {"mrr": "recip_rank", "recall": f"recall_{k}", "precision": f"P_{k}", "hitrate": f"success_{k}"}
    names |= {"ndcg": f"ndcg_cut_{k}", "map": f"map_cut_{k}"}
    measures = {"recip_rank", *(f"{name}.{k}" for name in ("recall", "P", "success", "ndcg_cut", "map_cut"))}
    run = {query_id: ranked(doc_ids, rank_by) for query_id, doc_ids in data.run.items()}
    cut = {query_id: dict(list(docs.items())[:k]) for query_id, docs in run.items()}
    evaluator = pytrec_eval.RelevanceEvaluator(qrels(data.queries), measures)
    whole, at_k = evaluator.evaluate(run), evaluator.evaluate(cut)
    nothing = dict.fromkeys(names.values(), 0.0)
    return {
        asked.id: {
            name: (at_k if name == "mrr" else whole).get(asked.id, nothing)[theirs] for name, theirs in names.items()
        }
        for asked in data.queries
    }


def ours(data: Sample, k: int, rank_by: RankBy, gain: Gain = "linear") -> dict[str, dict[str, float]]:
    found = {}
    for asked in data.queries:
        score = score_query(asked, data.run[asked.id], k, rank_by, gain)
        found[asked.id] = {formula.name: value for formula, value in zip(FORMULAS, score.values, strict=True)}
    return found


def our_means(data: Sample, k: int, rank_by: RankBy) -> Mapping[str, Any]:
    means = evaluate(data.queries, data.run, config={"k": k, "rank_by": rank_by}).aggregates.comparisons
    return {formula.name: means[f"{formula.name}_at_{k}"].current for formula in FORMULAS}


@pytest.mark.parametrize("rank_by", ["results", "documents"])
@pytest.mark.parametrize("k", CUTOFFS)
def test_every_query_and_every_mean_agrees_with_pytrec_eval(k: int, rank_by: RankBy) -> None:
    data = sample(k)
    theirs = by_pytrec_eval(data, k, rank_by)
    got = ours(data, k, rank_by)
    for query_id, values in theirs.items():
        assert got[query_id] == pytest.approx(values, abs=EXACT), query_id
    expected = {name: fmean(values[name] for values in theirs.values()) for name in got["q0"]}
    assert our_means(data, k, rank_by) == pytest.approx(expected, abs=EXACT)
    assert 0.02 < expected["mrr"] < 0.98  # the sample has something to tell apart


@pytest.mark.parametrize("k", CUTOFFS)
def test_weighted_means_agree_with_pytrec_evals_values_weighted_by_hand(k: int) -> None:
    data = sample(100 + k, weighted=True)
    theirs = by_pytrec_eval(data, k, "results")
    total = sum(asked.weight for asked in data.queries)
    expected = {
        formula.name: sum(asked.weight * theirs[asked.id][formula.name] for asked in data.queries) / total
        for formula in FORMULAS
    }
    assert our_means(data, k, "results") == pytest.approx(expected, abs=EXACT)


@pytest.mark.parametrize("k", CUTOFFS)
def test_every_query_and_every_mean_agrees_with_ir_measures(k: int) -> None:
    data = sample(200 + k)
    names = {
        ir_measures.RR @ k: "mrr",
        ir_measures.R @ k: "recall",
        ir_measures.P @ k: "precision",
        ir_measures.Success @ k: "hitrate",
        ir_measures.nDCG @ k: "ndcg",
        ir_measures.AP @ k: "map",
    }
    run = {query_id: ranked(doc_ids, "results") for query_id, doc_ids in data.run.items()}
    per_query = ir_measures.iter_calc(list(names), qrels(data.queries), run)
    expected: dict[str, dict[str, float]] = {asked.id: {} for asked in data.queries}
    for value in per_query:
        expected[value.query_id][names[value.measure]] = value.value
    got = ours(data, k, "results")
    for query_id, values in expected.items():
        assert got[query_id] == pytest.approx(values, abs=EXACT), query_id
    aggregate = ir_measures.calc_aggregate(list(names), qrels(data.queries), run)
    expected_means = {names[measure]: value for measure, value in aggregate.items()}
    assert our_means(data, k, "results") == pytest.approx(expected_means, abs=EXACT)


@pytest.fixture(scope="module")
def beside() -> Iterator[Executor]:
    """A process beside this one: ranx compiles itself, and would hold 400 MB here until the last test has run."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        yield pool


@pytest.mark.oracles  # ranx compiles itself for two minutes
@pytest.mark.parametrize("gain", ["linear", "exponential"])
@pytest.mark.parametrize("k", CUTOFFS)
def test_every_query_and_every_mean_agrees_with_ranx(k: int, gain: Gain, beside: Executor) -> None:
    data = sample(300 + k)
    names = {"mrr": "mrr", "recall": "recall", "precision": "precision", "hit_rate": "hitrate", "map": "map"}
    names |= {"ndcg" if gain == "linear" else "ndcg_burges": "ndcg"}
    run = {query_id: ranked(doc_ids, "results") or {"nothing": 0.0} for query_id, doc_ids in data.run.items()}
    measures = [f"{name}@{k}" for name in names]
    per_query, means_of_all = beside.submit(by_ranx, qrels(data.queries), run, measures).result()
    got = ours(data, k, "results", gain)
    for measure, name in zip(measures, names.values(), strict=True):
        assert {query_id: values[name] for query_id, values in got.items()} == pytest.approx(
            per_query[measure], abs=EXACT
        )
        mean = fmean(values[name] for values in got.values())
        assert mean == pytest.approx(means_of_all[measure], abs=EXACT)
