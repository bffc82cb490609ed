"""A contract has the rules and metrics that it names, and imports no others."""

from pathlib import Path
from typing import Any

import pytest

from ragcontract import pipeline
from ragcontract.core.metric import MetricSettings
from ragcontract.core.rule import names_of
from ragcontract.evaluation.source import Local
from ragcontract.registry import BUILT_IN
from ragcontract.runs.readers import RunFiles
from tests.builders import golden, run, write_jsonl


def contract(folder: Path, row: dict[str, Any], config: str = "{}\n") -> Any:
    (folder / "ragcontract.yml").write_text(config)
    asked = write_jsonl(folder / "golden.jsonl", [golden("q1", "doc1"), row])
    found = write_jsonl(folder / "run.jsonl", [run("q1", "doc1")])
    return pipeline.load(
        pipeline.Inputs(
            golden=[str(asked)], run=Local(RunFiles(paths=[str(found)])), config=str(folder / "ragcontract.yml")
        )
    )


def test_each_line_of_a_rule_has_its_names_and_says_where_it_is_written() -> None:
    for line in BUILT_IN.rules:
        rule = line.load()
        assert line.names == names_of(rule)
        assert rule.in_rows is not bool(line.fields)


def test_each_line_of_metrics_has_their_keys_and_the_fields_that_ask_for_them() -> None:
    for line in BUILT_IN.metrics:
        families = list(line.load()(MetricSettings(cutoffs=(5,))))
        if not line.always:
            assert line.names == tuple(metric.key for family in families for metric in family.metrics)
        assert set(line.fields) == {family.switch for family in families if isinstance(family.switch, str)}


def test_each_line_of_options_has_the_names_of_metrics_with_options() -> None:
    for line in BUILT_IN.options:
        assert line.names == tuple(line.load())


def test_a_contract_of_documents_has_no_other_metrics(tmp_path: Path) -> None:
    found = contract(tmp_path, golden("q2", "doc2"), "minimums: {recall_at_k: 0.5}\n")
    assert (found.families, len(found.queries), len(found.gates)) == ((), 2, 1)


@pytest.mark.parametrize(
    ("fields", "config", "named"),
    [
        ({"rules": [{"type": "must_contain", "value": "30 days"}]}, "{}\n", {"answered", "must_contain"}),
        ({"expected_mode": "abstain"}, "{}\n", {"expected_mode", "mode_accuracy", "over_refusal_rate"}),
        ({"turns": [{"query": "a", "answer_must_include": ["b"]}]}, "{}\n", {"answered", "answer_must_include"}),
        ({}, "metrics: {faithfulness: {from: scores}}\n", {"faithfulness"}),
        ({}, "minimums: {context_recall_ids: 0.5}\n", {"context_recall_ids"}),
        ({"reference": "x"}, "fail_on: {rouge_l_drop_gt: 0.1}\n", {"rouge_l"}),
        (
            {"reference_contexts": ["x"]},
            "answers: {composite: {minimum: 0.5, metrics: [context_recall_text]}}\n",
            {"composite", "context_recall_text"},
        ),
        ({}, "per_query: {enforce_must_contain: false}\n", set()),
    ],
)
def test_a_contract_has_what_it_names(fields: dict[str, Any], config: str, named: set[str], tmp_path: Path) -> None:
    found = contract(tmp_path, golden("q2", "doc2", **fields), config)
    assert not found.problems
    of_rules = {names_of(rule)[0] for rule in found.rules} - {"forbidden_docs", "must_rank_at_most", "must_include"}
    of_families = {metric.key for family in found.families for metric in family.metrics}
    assert of_rules | of_families >= named
    assert bool(named) is bool(of_rules | of_families)


def test_a_rule_as_a_field_is_refused_also_in_a_contract_of_documents(tmp_path: Path) -> None:
    (problem,) = contract(tmp_path, golden("q2", "doc2", must_refuse=True)).problems.problems
    assert "must_refuse" in str(problem)
