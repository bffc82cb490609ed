"""A converted run has the metrics of the original: pytrec_eval scores TREC's files, this package the converted ones.

Scores tie often, some only in 32 bits, so that an order other than trec_eval's would show.
"""

import json
import random
from pathlib import Path

import ir_measures
import pytest
import pytrec_eval

from ragcontract import check, load_golden
from ragcontract.metrics.formulas import FORMULAS
from ragcontract.runs.readers import read_doc_ids
from tests.process import rag_contract
from tests.records import score_query

QUERIES = 300
K = 5
THEIRS = {"recall": f"recall_{K}", "precision": f"P_{K}", "hitrate": f"success_{K}", "ndcg": f"ndcg_cut_{K}"}


def write_trec(folder: Path, seed: int) -> None:
    """Write qrels with grades from -1 to 3 and a run whose lines are in no order and whose ranks are wrong."""
    dice = random.Random(seed)
    qrels, run = [], []
    for number in range(QUERIES):
        docs = [f"d{n}" for n in range(30)]
        judged = dice.sample(docs, 8)
        qrels += [f"q{number} 0 {judged[0]} {dice.randint(1, 3)}"]
        qrels += [f"q{number} 0 {doc} {dice.randint(-1, 3)}" for doc in judged[1:]]
        for doc in dice.sample(docs, dice.randint(1, 25)):
            score = dice.choice([dice.randint(-3, 3), 0.5 + dice.randint(0, 3) * 1e-9, dice.gauss(0, 1)])
            run.append(f"q{number} Q0 {doc} {dice.randint(1, 99)} {score!r} tag")
    dice.shuffle(run)
    (folder / "qrels.txt").write_text("\n".join(qrels))
    (folder / "run.txt").write_text("\n".join(run))


def by_pytrec_eval(qrels: Path, run: Path) -> dict[str, dict[str, float]]:
    with qrels.open() as lines:
        judged = pytrec_eval.parse_qrel(lines)
    with run.open() as lines:
        ranked = pytrec_eval.parse_run(lines)
    measures = {f"recall.{K}", f"P.{K}", f"success.{K}", f"ndcg_cut.{K}", "recip_rank"}
    found: dict[str, dict[str, float]] = pytrec_eval.RelevanceEvaluator(judged, measures).evaluate(ranked)
    return found


def ours(golden: Path, run: Path) -> dict[str, dict[str, float]]:
    queries = load_golden(golden)
    names = [formula.name for formula in FORMULAS]
    return {
        query_id: dict(zip(names, score_query(queries[query_id], doc_ids, K).values, strict=True))
        for query_id, doc_ids in read_doc_ids([str(run)])[0].items()
    }


@pytest.mark.parametrize("seed", range(3))
def test_metrics_stay_what_trec_eval_says_there_and_back(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_trec(tmp_path, seed)
    there = "--from trec --qrels qrels.txt --run run.txt --golden-out golden.jsonl --run-out run.jsonl"
    assert rag_contract("convert", *there.split()).code == 0
    before = by_pytrec_eval(Path("qrels.txt"), Path("run.txt"))
    found = ours(Path("golden.jsonl"), Path("run.jsonl"))
    assert set(found) == set(before)
    for query_id, values in before.items():
        for name in found[query_id].keys() & THEIRS.keys():
            assert found[query_id][name] == pytest.approx(values[THEIRS[name]], abs=1e-9), (query_id, name)
        within = values["recip_rank"] if values["recip_rank"] >= 1 / K else 0
        assert found[query_id]["mrr"] == pytest.approx(within, abs=1e-9), query_id
    back = "--to trec --golden golden.jsonl --run run.jsonl --qrels-out qrels2.txt --run-out run2.txt"
    assert rag_contract("convert", *back.split()).code == 0
    assert by_pytrec_eval(Path("qrels2.txt"), Path("run2.txt")) == before


def test_a_run_without_scores_has_the_same_metrics_for_trec_eval_and_ir_measures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    dice = random.Random(1)
    golden, run = [], []
    for number in range(QUERIES):
        docs = [f"d{n}" for n in range(20)]
        golden.append({"id": number, "query": "?", "relevant_doc_ids": dice.sample(docs, dice.randint(1, 5))})
        results = [
            {"doc_id": doc, "score": dice.choice([None, 1, 1e300, dice.random()])} for doc in dice.sample(docs, 12)
        ]
        run.append({"query_id": number, "results": results})
    Path("golden.jsonl").write_text("".join(json.dumps(row) + "\n" for row in golden))
    Path("run.jsonl").write_text("".join(json.dumps(row) + "\n" for row in run))
    for form in ("trec", "beir"):
        argv = f"--to {form} --golden golden.jsonl --run run.jsonl --qrels-out {form}.qrels --run-out {form}.run"
        assert rag_contract("convert", *argv.split()).code == 0
    values = ours(Path("golden.jsonl"), Path("run.jsonl"))
    theirs = by_pytrec_eval(Path("trec.qrels"), Path("trec.run"))
    assert {name: value["recall"] for name, value in values.items()} == pytest.approx(
        {name: value[f"recall_{K}"] for name, value in theirs.items()}
    )
    measured = ir_measures.calc_aggregate(
        [ir_measures.RR @ K, ir_measures.P @ K],
        ir_measures.read_trec_qrels("trec.qrels"),  # type: ignore[no-untyped-call]
        ir_measures.read_trec_run("beir.run"),  # type: ignore[no-untyped-call]
    )
    metrics = check(golden="golden.jsonl", run="run.jsonl", k=K).metrics
    assert [metrics[f"mrr_at_{K}"].current, metrics[f"precision_at_{K}"].current] == pytest.approx(
        [measured[ir_measures.RR @ K], measured[ir_measures.P @ K]]
    )
