"""``relevance_level``, trec_eval's ``-l``: the grade from which a document is relevant, from files to report."""

import json
import random
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import pytrec_eval

from ragcontract import InputError, load_golden
from ragcontract.labelling.labels import Labels, labels_of
from tests.builders import Row, run, write_jsonl
from tests.process import rag_contract, spawn
from tests.replacing import notes_everywhere

NAMES = {
    "mrr": "recip_rank",
    "recall": "recall_5",
    "precision": "P_5",
    "hitrate": "success_5",
    "map": "map_cut_5",
    "ndcg": "ndcg_cut_5",
}
MEASURES = {"recip_rank", "recall.5", "P.5", "success.5", "map_cut.5", "ndcg_cut.5"}
EXACT = 1e-9
OF_LABELS = ("judged", "overlap", "rbo")


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def graded(relevance: Mapping[str, float], query_id: str = "q1", **fields: Any) -> Row:
    return {"id": query_id, "query": f"What about {query_id}?", "relevance": dict(relevance), **fields}


def contract(*rows: Row) -> None:
    write_jsonl(Path("golden.jsonl"), rows)


def returned(*rows: Row) -> None:
    write_jsonl(Path("current_run.jsonl"), rows)


def labels() -> list[dict[str, float]]:
    return [json.loads(line)["relevance"] for line in Path("golden.jsonl").read_text().splitlines()]


def config(**keys: Any) -> None:
    Path("ragcontract.yml").write_text(json.dumps(keys))


def report(*options: str) -> Any:
    assert rag_contract("check", *options).code in {0, 1}
    return json.loads(Path("report.json").read_text())


def current(made: Any) -> dict[str, float]:
    return {key: one["current"] for key, one in made["metrics"].items() if not key.startswith(OF_LABELS)}


@pytest.mark.parametrize("level", [1, 2, 3])
def test_converted_trec_judgments_have_the_values_of_trec_eval_at_each_level(level: int) -> None:
    dice = random.Random(level)
    documents = [f"d{number}" for number in range(30)]
    qrels = {
        f"q{number}": {**{doc_id: dice.choice([0, 1, 2, 3]) for doc_id in dice.sample(documents, 20)}, "d0": 3}
        for number in range(40)
    }
    lists = {query_id: dice.sample(documents, 10) for query_id in qrels}
    Path("qrels").write_text("".join(f"{q} 0 {d} {g}\n" for q, of in qrels.items() for d, g in of.items()))
    Path("run").write_text(
        "".join(f"{q} Q0 {d} {rank} {99 - rank} x\n" for q, docs in lists.items() for rank, d in enumerate(docs))
    )
    made = "golden.jsonl", "current_run.jsonl"
    assert rag_contract("convert", "--from", "trec", "--qrels", "qrels", "--run", "run", *outs(made)).code == 0
    config(relevance_level=level, per_query={"enforce_must_include": False})
    scores = {q: {d: float(99 - rank) for rank, d in enumerate(docs)} for q, docs in lists.items()}
    cut = {q: dict(list(of.items())[:5]) for q, of in scores.items()}
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, MEASURES, relevance_level=level)
    whole, at_5 = evaluator.evaluate(scores), evaluator.evaluate(cut)
    theirs = {key: fmean((at_5 if key == "mrr" else whole)[q][name] for q in qrels) for key, name in NAMES.items()}
    ours = current(report())
    assert ours == pytest.approx({f"{key}_at_5": value for key, value in theirs.items()}, abs=EXACT)


def outs(made: tuple[str, str]) -> tuple[str, ...]:
    return ("--golden-out", made[0], "--run-out", made[1])


def test_rules_ask_for_documents_of_the_level_only() -> None:
    contract(graded({"a": 2, "b": 1}))
    returned(run("q1", "a"))
    assert report()["verdict"] == "fail"
    config(relevance_level=2)
    assert report()["verdict"] == "pass"


def test_a_row_with_both_fields_is_accepted_at_the_level_at_which_they_agree() -> None:
    contract(graded({"a": 2, "b": 1}, relevant_doc_ids=["a"]))
    returned(run("q1", "b", "a"))
    refused = rag_contract("check")
    assert refused.code == 2
    assert "'b' is of grade 1 or more only in relevance" in refused.err
    assert "with `relevance_level: 2` in the config, they agree" in refused.err
    config(relevance_level=2)
    assert current(report())["mrr_at_5"] == 0.5


def test_a_row_whose_fields_agree_at_no_level_is_refused_with_what_to_do() -> None:
    contract(graded({"a": 1, "b": 2}, relevant_doc_ids=["a"]))
    returned(run("q1", "a"))
    for level in (1, 2):
        config(relevance_level=level)
        assert "leave relevant_doc_ids out, or name the same documents in both" in rag_contract("check").err


def test_relevant_doc_ids_alone_are_relevant_at_every_level() -> None:
    contract({"id": "q1", "query": "?", "relevant_doc_ids": ["a"]})
    returned(run("q1", "a"))
    config(relevance_level=3)
    assert current(report())["mrr_at_5"] == 1


def test_a_query_without_a_document_of_the_level_is_left_out_with_a_warning() -> None:
    contract(graded({"a": 2}), graded({"a": 1}, "q2"), graded({"b": 1}, "q3"))
    returned(run("q1", "a"), run("q2", "x"), run("q3", "x"))
    config(relevance_level=2)
    made = report()
    assert current(made)["ndcg_at_5"] == 1
    (warning,) = [one for one in made["warnings"] if "relevance_level" in one]
    assert warning.startswith("golden.jsonl:2: relevance: 'q2' has graded documents, but none of grade 2 or more")
    assert "(and 1 more such row)" in warning


@pytest.mark.parametrize(
    ("level", "grades"), [(None, (0.9, 0.5)), (None, (0.99, 1e-9)), (0.5, (0.4, 0.1)), (3, (2, 1))]
)
def test_grades_that_are_all_below_the_level_are_refused(level: float | None, grades: tuple[float, float]) -> None:
    contract(graded({"a": grades[0], "b": grades[1]}), graded({"c": grades[0], "d": 0}, "q2"))
    returned(run("q1", "x"), run("q2", "x"))
    if level:
        config(relevance_level=level)
    ended = rag_contract("check")
    message = f"'q1' has graded documents, but none of grade {level or 1:g} or more, the relevance_level"
    assert (ended.code, f"error: golden.jsonl:1: relevance: {message} (and 1 more such row)" in ended.err) == (2, True)
    assert f"set `relevance_level: {grades[0]:g}` or less in the config" in ended.err
    config(relevance_level=grades[0])
    assert rag_contract("check").code == 1


def test_a_fraction_beside_whole_grades_is_a_warning() -> None:
    contract(graded({"a": 1}), graded({"b": 0.9}, "q2"))
    returned(run("q1", "a"), run("q2", "x"))
    (warning,) = [one for one in report()["warnings"] if "relevance_level" in one]
    assert warning.startswith("golden.jsonl:2: relevance: 'q2' has graded documents, but none of grade 1 or more")
    assert rag_contract("lint", "--strict").code == 1


def test_questions_that_nothing_answers_need_no_document_of_the_level() -> None:
    contract(graded({"a": 0, "b": 0}), graded({"c": 0.5}, "q2", relevant_doc_ids=[]))
    returned(run("q1", "a"), run("q2", "x"))
    assert not any("relevance_level" in one for one in report()["warnings"])


def test_lint_notes_a_question_without_a_grade_above_0_of_which_nothing_is_checked() -> None:
    note = "[no-abstention] 'q1' has no grade but 0, so that no ranking metric counts it, and may be answered all"
    answered = {"id": "q2", "query": "Hm?", "expected_mode": "trustworthy"}
    zeros = graded({"a": 0, "c": 0})
    for rows in ([zeros], [zeros, graded({"b": 1}, "q2")], [zeros, answered], [graded({}), answered]):
        contract(*rows)
        returned(*(run(row["id"], "a", mode="trustworthy") for row in rows))
        assert f"golden.jsonl:1: {note}" in rag_contract("lint").out, rows
    for says in (
        {"expected_mode": "abstain"},
        {"rules": [{"type": "must_refuse"}]},
        {"forbidden_doc_ids": ["b"]},
    ):
        contract({**zeros, **says})
        assert "no-abstention" not in rag_contract("lint").out


def test_a_spreadsheet_with_a_question_without_a_grade_above_0_is_a_warning() -> None:
    Path("q.csv").write_text("question,doc_id,grade\nWhy?,a,0\nWhy?,b,0\nWhen?,c,0\nWhen?,d,1\nWho?,e,0\nWho?,[],0\n")
    ended = rag_contract("convert", "--from", "csv", "--csv", "q.csv", "--golden-out", "g.jsonl")
    assert ended.code == 0, ended.err
    (warning,) = [line for line in ended.err.splitlines() if "no grade but 0" in line]
    advice = "nothing is expected for it; correct the grades, or write [] if nothing answers the question"
    assert warning == f"warning: q.csv:2: 1 query ('why') with no grade but 0: {advice}"


def test_a_placeholder_still_fails_at_every_level() -> None:
    contract(graded({"TODO": 1, "a": 0}))
    returned(run("q1", "a"))
    config(relevance_level=2)
    assert report()["verdict"] == "fail"


def test_levels_are_numbers_over_zero() -> None:
    contract(graded({"a": 0.5}))
    returned(run("q1", "a"))
    config(relevance_level=0.5)
    assert current(report())["recall_at_5"] == 1
    for level in (0, -1, 2e9, "high"):
        config(relevance_level=level)
        assert "relevance_level: expected a number over 0, at most a billion" in rag_contract("check").err


def test_a_baseline_is_scored_again_and_the_changed_level_is_named_once() -> None:
    contract(graded({"a": 2, "b": 1}), graded({"a": 1, "c": 2}, "q2"))
    returned(run("q1", "b", "a"), run("q2", "a", "c"))
    assert rag_contract("baseline", "--force").code == 0
    config(relevance_level=2)
    made = report()
    assert made["metrics"]["mrr_at_5"]["baseline"] == 0.5
    (note,) = [one for one in notes_everywhere() if "relevance_level" in one]
    assert "relevance_level 1 → 2" in note
    assert "relabelled" not in note
    assert "grades" not in note


def test_a_lower_level_and_a_row_that_was_relabelled_are_both_named() -> None:
    config(relevance_level=2)
    contract(graded({"a": 2, "b": 1}))
    returned(run("q1", "a", "b"))
    assert rag_contract("baseline", "--force").code == 0
    contract(graded({"a": 1, "b": 2}))
    config()
    report()
    (note,) = [one for one in notes_everywhere() if "relevance_level" in one]
    assert "relevance_level 2 → 1" in note
    assert "1 query relabelled" in note


def test_what_is_ticked_or_answered_has_the_grade_of_the_level() -> None:
    contract(graded({"a": 1, "TODO": 1}), {"id": "q2", "query": "?", "relevant_doc_ids": ["z"]})
    Path("c.txt").write_text("## q1\n- [x] a\n- [x] b\n- [1] c\n- [ ] d\n## q2\n- [-] y\n")
    config(relevance_level=2)
    assert rag_contract("label", "--ticked", "c.txt").code == 0
    assert labels() == [{"a": 2, "d": 0, "b": 2, "c": 1}, {"z": 2, "y": 0}]
    contract(graded({"TODO": 1}))
    returned(run("q1", "a", "b"))
    assert spawn("label", cwd=Path(), stdin="y\nn\n").code == 0
    assert labels() == [{"a": 2, "b": 0}]


def test_a_grade_below_the_level_leaves_the_placeholder() -> None:
    contract({"id": "q1", "query": "?", "relevant_doc_ids": ["TODO"]})
    Path("c.txt").write_text("## q1\n- [1] a\n- [-] b\n")
    config(relevance_level=2)
    assert rag_contract("label", "--ticked", "c.txt").code == 0
    assert labels() == [{"a": 1, "b": 0, "TODO": 2}]


def test_lint_and_validate_read_the_level() -> None:
    contract(graded({"a": 2, "b": 1}, relevant_doc_ids=["a"]))
    returned(run("q1", "a"))
    assert rag_contract("lint").code == 2
    config(relevance_level=2)
    assert rag_contract("lint").code == 0
    assert rag_contract("validate").code == 0
    assert rag_contract("score").code == 0


def test_a_conversion_knows_no_level_and_keeps_all_grades() -> None:
    contract(graded({"a": 2, "b": 1}, relevant_doc_ids=["a"]))
    assert rag_contract("convert", "--to", "trec", "--golden", "golden.jsonl", "--qrels-out", "q").code == 0
    assert Path("q").read_text() == "q1 0 a 2\nq1 0 b 1\n"


def test_python_reads_golden_files_at_a_level() -> None:
    contract(graded({"a": 2, "b": 1}))
    assert load_golden("golden.jsonl")["q1"].relevant_doc_ids == ("a", "b")
    (query,) = load_golden("golden.jsonl", relevance_level=2).values()
    assert query.relevant_doc_ids == ("a",)
    assert labels_of(query, 2) == Labels(grades={"a": 2, "b": 1}, level=2)
    with pytest.raises(InputError, match="a number over 0"):
        load_golden("golden.jsonl", relevance_level=0)
