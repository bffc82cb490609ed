"""What report.json says of modes and labels, from files to numbers."""

import json
from pathlib import Path
from typing import Any

import pytest

from ragcontract import pipeline
from ragcontract.core.errors import InputError
from ragcontract.evaluation.source import Local
from ragcontract.report.record import Report
from ragcontract.runs.readers import open_baseline, open_run
from tests.builders import Row, write_jsonl
from tests.process import rag_contract
from tests.records import NOW

EXPECTED = {"a1": "abstain", "a2": "abstain", "t1": "trustworthy", "d1": "disputed"}


def asked(query_id: str, **fields: Any) -> Row:
    return {"id": query_id, "query": f"What about {query_id}?", **fields}


def report(folder: Path, golden: list[Row], run: list[Row], config: str = "", **fields: Any) -> Report:
    """Check a run, against the rows of a ``baseline`` if there is one."""
    (folder / "ragcontract.yml").write_text(config or "k: 5\n")
    before = fields.pop("baseline", None)
    request = pipeline.Inputs(
        golden=[str(write_jsonl(folder / "golden.jsonl", golden))],
        config=str(folder / "ragcontract.yml"),
        run=Local(open_run([str(write_jsonl(folder / "run.jsonl", run))])),
        baseline=Local(open_baseline([str(write_jsonl(folder / "before.jsonl", before))])) if before else None,
        **fields,
    )
    return pipeline.check(request, now=NOW).report


MODES = [asked(query_id, expected_mode=mode) for query_id, mode in EXPECTED.items()]


def answered(**modes: str | None) -> list[Row]:
    return [{"query_id": query_id, **({"mode": mode} if mode else {})} for query_id, mode in modes.items()]


def matrix(found: dict[str, dict[str, int]]) -> dict[tuple[str, str], int]:
    """Return the numbers of a matrix that are not 0."""
    return {(expected, mode): n for expected, row in found.items() for mode, n in row.items() if n}


def test_the_matrix_has_every_mode_and_the_measures_follow_from_it(tmp_path: Path) -> None:
    rows = answered(a1="abstain", a2="trustworthy", t1="trustworthy", d1="abstain")
    modes = report(tmp_path, MODES, rows, baseline=answered(a1="abstain", a2="abstain", t1="disputed")).modes
    assert modes
    assert list(modes.matrix) == ["trustworthy", "disputed", "abstain"]
    assert all(list(row) == list(modes.matrix) for row in modes.matrix.values())
    assert matrix(modes.matrix) == {
        ("trustworthy", "trustworthy"): 1,
        ("disputed", "abstain"): 1,
        ("abstain", "trustworthy"): 1,
        ("abstain", "abstain"): 1,
    }
    assert matrix(modes.baseline_matrix or {}) == {("abstain", "abstain"): 2, ("trustworthy", "disputed"): 1}
    assert (modes.accuracy, modes.false_answer_rate, modes.over_refusal_rate, modes.missing) == (0.5, 0.5, 0.5, 0)
    assert modes.per_mode["trustworthy"].precision == 0.5
    assert (modes.per_mode["disputed"].recall, modes.per_mode["disputed"].f1) == (0.0, 0.0)


def test_missing_modes_are_a_fourth_column_where_they_count_as_wrong(tmp_path: Path) -> None:
    rows = answered(a1="abstain", a2=None, t1=None)
    config = "answers: {missing_modes: fail}\nmissing_queries: zero\n"
    modes = report(tmp_path, MODES, rows, config).modes
    assert modes
    assert matrix(modes.matrix) == {
        ("abstain", "abstain"): 1,
        ("abstain", "missing"): 1,
        ("trustworthy", "missing"): 1,
        ("disputed", "missing"): 1,  # without a row at all
    }
    assert (modes.missing, modes.accuracy, modes.false_answer_rate, modes.over_refusal_rate) == (3, 0.25, 0.5, 1.0)


def test_a_row_without_a_mode_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        report(tmp_path, MODES, answered(a1="abstain", a2="abstain", t1=None, d1="disputed"))
    (problem,) = caught.value.problems
    assert problem.removeprefix(f"{tmp_path}/") == (
        'run.jsonl:3: query "t1" has no mode, which expected_mode needs; export trustworthy, disputed or abstain'
    )


def test_each_of_several_rows_counts(tmp_path: Path) -> None:
    rows = [*answered(a1="abstain", a2="abstain", t1="trustworthy", d1="disputed"), *answered(a1="disputed")]
    modes = report(tmp_path, MODES, rows, repeats=True).modes
    assert modes
    assert matrix(modes.matrix)["abstain", "disputed"] == 1
    assert sum(matrix(modes.matrix).values()) == 5
    assert modes.false_answer_rate == 0.25


def test_the_rates_are_weighted_and_by_tag(tmp_path: Path) -> None:
    golden = [asked("a1", expected_mode="abstain", weight=3, tags=["x"]), asked("a2", expected_mode="abstain")]
    found = report(tmp_path, golden, answered(a1="trustworthy", a2="abstain"))
    assert found.modes
    assert found.modes.false_answer_rate == 0.75
    assert found.tags["x"].metrics["false_answer_rate"] == 1.0
    assert matrix(found.modes.matrix) == {("abstain", "trustworthy"): 1, ("abstain", "abstain"): 1}


def test_labels_have_an_accuracy_and_a_macro_f1_with_a_minimum(tmp_path: Path) -> None:
    golden = [asked(query_id, expected_label=label) for query_id, label in (("q1", "a"), ("q2", "a"), ("q3", "b"))]
    rows = [{"query_id": query_id, "label": label} for query_id, label in (("q1", "a"), ("q2", "c"), ("q3", "b"))]
    found = report(tmp_path, golden, rows, "minimums: {label_macro_f1: 0.6}\n")
    assert found.labels
    assert (found.labels.accuracy, found.labels.classes) == (2 / 3, 3)
    assert found.labels.macro_f1 == pytest.approx((2 / 3 + 1 + 0) / 3)
    assert [(gate.id, gate.status, gate.message) for gate in found.gates] == [
        ("minimums.label_macro_f1", "fail", "Label macro F1 is 0.56, minimum 0.60")
    ]


def test_a_minimum_of_the_macro_f1_needs_labels(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no golden query has expected_label; add it, or leave the limit out"):
        report(tmp_path, MODES[:1], answered(a1="abstain"), "minimums: {label_macro_f1: 0.6}\n")


def test_a_changed_mode_label_and_tier_are_changes_of_the_contract(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    golden = tmp_path / "golden.jsonl"
    rows = answered(q1="abstain", q2="abstain")
    rows[0]["label"] = "x"
    other = asked("q2", expected_mode="abstain", tier="extra")
    write_jsonl(golden, [asked("q1", expected_mode="abstain", expected_label="x", tier="sanity"), other])
    run = str(write_jsonl(tmp_path / "run.jsonl", rows))
    config, out = tmp_path / "ragcontract.yml", tmp_path / "report.json"
    config.write_text("tiers:\n- {name: sanity, minimum: 1}\n- {name: extra, minimum: 1}\n")
    baseline = str(tmp_path / "baseline.json")
    inputs = ["--golden", str(golden), "--run", run, "--config", str(config)]
    assert rag_contract("baseline", *inputs, "--out", baseline).code == 0
    write_jsonl(golden, [asked("q1", expected_mode="disputed", expected_label="y", tier="core"), other])
    config.write_text(
        "tiers:\n- {name: core, minimum: 0.1}\n- {name: extra, minimum: 0.5}\n"
        "per_query: {fail_on: pass_rate}\nmissing_scores: zero\nanswers: {missing_modes: fail}\n"
    )
    rag_contract("check", *inputs, "--baseline", baseline, "--report-json", str(out))
    changes = json.loads(out.read_text())["inputs"]["baseline"]["contract_changes"]
    found = {change["kind"]: [item["id"] for item in change["items"]] for change in changes}
    assert found == {
        "limits_removed": ["tiers.sanity.minimum"],
        "limits_weakened": ["tiers.extra.minimum"],
        "references_changed": ["q1"],  # its label
        "settings_weakened": ["per_query.fail_on", "missing_scores", "answers.missing_modes"],
        "rules_changed": ["q1"],
        "tiers_changed": ["q1"],
        "limits_added": ["tiers.core.minimum"],
    }
