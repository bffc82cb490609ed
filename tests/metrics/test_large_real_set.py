"""A whole check over a large real set, its numbers against pytrec_eval's.

The PyPI package fitz-gov holds 5,043 documents and 3,800 questions with relevant and decoy documents. Two BM25 indexes
are built here: over whole documents, the baseline, and over their first 60 words, the run: a real regression. The set's
own faults are left in: 19 ids stand for two texts, so a document does come twice in one list of results.
"""

import importlib.util
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any

import bm25s
import pytest
import pytrec_eval
from msgspec import UNSET

from ragcontract import pipeline
from ragcontract.evaluation.source import Local
from ragcontract.report.record import Report
from ragcontract.runs.readers import RunFiles
from tests.builders import golden, run, write_jsonl

K = 10
DEPTH = 20
Lists = Mapping[str, list[str]]


def fitz_gov() -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]:
    """Return the documents, and the questions by id."""
    spec = importlib.util.find_spec("fitz_gov")  # its own loader brings an HTTP client along
    assert spec is not None
    assert spec.submodule_search_locations is not None
    data = Path(spec.submodule_search_locations[0]) / "data"
    with (data / "corpus" / "documents.jsonl").open(encoding="utf-8") as lines:
        documents = [json.loads(line) for line in lines if line.strip()]
    mappings = json.loads((data / "queries" / "query_mappings.json").read_text(encoding="utf-8"))["mappings"]
    return documents, {query_id: row for group in mappings.values() for query_id, row in group.items()}


def retrieve(documents: list[dict[str, Any]], questions: Mapping[str, str], *, words: int | None) -> Lists:
    """Search the first words of each document, or all of them."""
    texts = [" ".join([document.get("title", ""), *document["content"].split()[:words]]) for document in documents]
    index = bm25s.BM25(k1=1.2, b=0.75)
    index.index(bm25s.tokenize(texts, stopwords="en", show_progress=False), show_progress=False)
    asked = bm25s.tokenize(list(questions.values()), stopwords="en", show_progress=False)
    found, _ = index.retrieve(asked, k=DEPTH, show_progress=False)
    return {
        query_id: [documents[number]["id"] for number in numbers]
        for query_id, numbers in zip(questions, found, strict=True)
    }


def by_pytrec_eval(relevant: Lists, lists: Lists) -> dict[str, float]:
    """Return trec_eval's means; a document's second result becomes one that nobody asked for."""
    cut: dict[str, dict[str, float]] = {}
    for query_id in relevant:
        doc_ids = lists[query_id][:K]
        once = [doc if doc not in doc_ids[:rank] else f"again {rank}" for rank, doc in enumerate(doc_ids)]
        cut[query_id] = {doc: 1.0 - rank / 100 for rank, doc in enumerate(once)}
    qrels = {query_id: dict.fromkeys(doc_ids, 1) for query_id, doc_ids in relevant.items()}
    names = {"mrr": "recip_rank", "recall": f"recall_{K}", "precision": f"P_{K}", "hitrate": f"success_{K}"}
    names |= {"ndcg": f"ndcg_cut_{K}", "map": f"map_cut_{K}"}
    measures = {"recip_rank", *(f"{name}.{K}" for name in ("recall", "P", "success", "ndcg_cut", "map_cut"))}
    values = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(cut)
    return {f"{ours}_at_{K}": fmean(row[theirs] for row in values.values()) for ours, theirs in names.items()}


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, Lists, Lists, Lists, Lists]:
    """Check, and return the report, what is relevant, what is forbidden, and both lists of results."""
    folder = tmp_path_factory.mktemp("fitz-gov")
    documents, mappings = fitz_gov()
    questions = {query_id: row["query"] for query_id, row in mappings.items()}
    relevant = {query_id: row["relevant_docs"] for query_id, row in mappings.items()}
    forbidden = {query_id: row["decoy_docs"] for query_id, row in mappings.items() if not relevant[query_id]}
    before, now = retrieve(documents, questions, words=None), retrieve(documents, questions, words=60)
    rows = [
        golden(query_id, forbidden_doc_ids=forbidden.get(query_id, []))
        | {"query": question, "relevant_doc_ids": relevant[query_id]}
        for query_id, question in questions.items()
    ]
    write_jsonl(folder / "golden.jsonl", rows)
    write_jsonl(folder / "run.jsonl", [run(query_id, *now[query_id]) for query_id in questions])
    write_jsonl(folder / "baseline.jsonl", [run(query_id, *before[query_id]) for query_id in questions])
    (folder / "ragcontract.yml").write_text(f"k: {K}\nfail_on: {{mrr_drop_gt: 0.5}}\n", encoding="utf-8")
    request = pipeline.Inputs(
        golden=[str(folder / "golden.jsonl")],
        run=Local(RunFiles(paths=[str(folder / "run.jsonl")])),
        baseline=Local(RunFiles(paths=[str(folder / "baseline.jsonl")])),
        config=str(folder / "ragcontract.yml"),
    )
    report = pipeline.check(request, now=datetime(2026, 7, 1, tzinfo=UTC)).report
    return report, {query_id: doc_ids for query_id, doc_ids in relevant.items() if doc_ids}, forbidden, before, now


Outcome = tuple[Report, Lists, Lists, Lists, Lists]


def test_the_set_is_as_large_as_it_says(outcome: Outcome) -> None:
    report, relevant, forbidden, _, now = outcome
    assert (report.inputs.golden.queries, report.inputs.golden.answerable) == (3800, 2812)
    assert (len(relevant), len(forbidden)) == (2812, 988)
    assert any(len(set(doc_ids[:K])) < K for doc_ids in now.values())


def test_the_means_agree_with_pytrec_eval(outcome: Outcome) -> None:
    report, relevant, _, before, now = outcome
    current, baseline = by_pytrec_eval(relevant, now), by_pytrec_eval(relevant, before)
    got = {key: metric for key, metric in report.metrics.items() if metric.diagnostic is UNSET}
    assert {key: metric.current for key, metric in got.items()} == pytest.approx(current, abs=1e-9)
    assert {key: metric.current_shared for key, metric in got.items()} == pytest.approx(current, abs=1e-9)
    assert {key: metric.baseline for key, metric in got.items()} == pytest.approx(baseline, abs=1e-9)
    deltas = {key: value - baseline[key] for key, value in current.items()}
    assert {key: metric.delta for key, metric in got.items()} == pytest.approx(deltas, abs=1e-9)
    assert deltas[f"mrr_at_{K}"] < 0


def test_the_broken_queries_are_those_that_sets_say(outcome: Outcome) -> None:
    report, relevant, forbidden, _, now = outcome
    broken = {query.id: {violation.rule for violation in query.violations} for query in report.queries}
    for query_id, doc_ids in relevant.items():
        assert broken[query_id] == (set() if set(doc_ids) <= set(now[query_id][:K]) else {"must_include"}), query_id
    for query_id, doc_ids in forbidden.items():
        assert broken[query_id] == ({"forbidden_docs"} if set(doc_ids) & set(now[query_id]) else set()), query_id
