"""A contract of documents only is read with a small registry, and any other with everything that is built in."""

from pathlib import Path
from typing import Any

import pytest

from ragcontract import pipeline
from ragcontract.built_in import BUILT_IN
from ragcontract.evaluation.source import Local
from ragcontract.registry import DOCUMENTS, ROW_RULES
from ragcontract.runs.readers import RunFiles
from tests.builders import golden, run, write_jsonl


def contract(folder: Path, row: dict[str, Any], config: str = "{}\n") -> Any:
    (folder / "ragcontract.yml").write_text(config)
    asked = write_jsonl(folder / "golden.jsonl", [golden("q1", "doc1"), row])
    found = write_jsonl(folder / "run.jsonl", [run("q1", "doc1")])
    return pipeline.load(
        pipeline.Request(
            golden=[str(asked)], run=Local(RunFiles(paths=[str(found)])), config=str(folder / "ragcontract.yml")
        )
    )


def test_the_names_of_rules_in_rows_are_those_of_the_rules() -> None:
    assert sorted(str(rule.__struct_config__.tag) for rule in BUILT_IN.rules if rule.in_rows) == list(ROW_RULES)


def test_the_small_registry_is_a_part_of_the_other() -> None:
    assert set(DOCUMENTS.metrics) <= set(BUILT_IN.metrics)
    assert BUILT_IN.rules[: len(DOCUMENTS.rules)] == DOCUMENTS.rules
    assert set(DOCUMENTS.quantities) <= set(BUILT_IN.quantities)


def test_a_contract_of_documents_has_no_other_metrics(tmp_path: Path) -> None:
    found = contract(tmp_path, golden("q2", "doc2"), "minimums: {recall_at_k: 0.5}\n")
    assert (found.families, len(found.queries), len(found.gates)) == ((), 2, 1)


@pytest.mark.parametrize(
    ("fields", "config"),
    [
        ({"rules": [{"type": "must_contain", "value": "30 days"}]}, "{}\n"),
        ({"expected_mode": "abstain"}, "{}\n"),
        ({"tier": "core"}, "tiers: [{name: core, minimum: 0.5}]\n"),
        ({"turns": [{"query": "a", "answer_must_include": ["b"]}]}, "{}\n"),
        ({}, "metrics: {faithfulness: {from: scores}}\n"),
        ({}, "minimums: {context_recall_ids: 0.5}\n"),
        ({}, "answers: {composite: {minimum: 0.5, metrics: [context_recall_text]}}\n"),
        ({}, "per_query: {enforce_must_contain: false}\n"),
    ],
)
def test_whatever_is_about_more_than_documents_is_read_with_everything(
    fields: dict[str, Any], config: str, tmp_path: Path
) -> None:
    found = contract(tmp_path, golden("q2", "doc2", **fields), config)
    assert not found.problems
    assert len(found.rules) > len(DOCUMENTS.rules)


def test_a_rule_as_a_field_is_refused_also_in_a_contract_of_documents(tmp_path: Path) -> None:
    (problem,) = contract(tmp_path, golden("q2", "doc2", must_refuse=True)).problems.problems
    assert "must_refuse" in str(problem)
