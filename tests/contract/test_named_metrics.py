"""The metrics that rules name are computed, and wrong names are refused where they stand."""

from typing import Any

import pytest

from ragcontract.contract.config_file import config_of
from ragcontract.contract.resolve import Contract, resolve
from ragcontract.core.rule import Rule
from ragcontract.registry import BUILT_IN
from ragcontract.rules.scores import CompositeMinimum, MaxHallucinationRisk, MaxScore, MinScore
from tests.records import golden_of, query
from tests.toys import REGISTRY


def resolved(*rules: Rule, config: dict[str, Any] | None = None) -> Contract:
    golden = golden_of([query("q1", "doc1", rules=rules)])
    return resolve(golden, config_of(config or {}, REGISTRY), REGISTRY, has_baseline=False)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (MinScore(metric="toxicty", value=1), ".metric: there is no metric 'toxicty'; did you mean 'toxicity'?"),
        (
            MinScore(metric="helpfulness", value=1),
            ".metric: there is no metric 'helpfulness'; declare it under metrics in the configuration",
        ),
        (MinScore(metric="toxicity", value=1), ".metric: of toxicity, lower is better: write max_score"),
        (MaxScore(metric="mode_accuracy", value=1), ".metric: of mode_accuracy, higher is better: write min_score"),
        (
            MaxScore(metric="toxicity", value=7),
            ".value: expected a number from 0 to 5, the scale of toxicity, found 7",
        ),
        (
            MinScore(metric="mrr_at_5", value=1),
            ".metric: mrr_at_5 is about documents; use must_rank_at_most, or limit its mean under minimums",
        ),
        (
            MaxHallucinationRisk(),
            ": needs the metric faithfulness; declare it under metrics in the configuration",
        ),
        (
            CompositeMinimum(minimum=0.5, metrics=("mode_accuracy", "toxic")),
            ".metrics[1]: there is no metric 'toxic'; did you mean 'toxicity'?",
        ),
    ],
)
def test_a_metric_that_a_rule_cannot_be_about_is_refused(rule: Rule, said: str) -> None:
    ok = MaxScore(metric="toxicity", value=4)
    assert resolved(ok, rule).problems.problems == (f"golden.jsonl:q1: rules[1]{said}",)


def test_the_metrics_of_a_composite_are_refused_once() -> None:
    config = {"answers": {"composite": {"minimum": 0.5, "metrics": ["toxicity", "nonsense"]}}}
    assert resolved(config=config).problems.problems == (
        ": answers.composite.metrics[1]: there is no metric 'nonsense'; declare it under metrics in the configuration",
    )


def test_a_metric_that_a_rule_names_is_computed() -> None:
    def keys(contract: Contract) -> set[str]:
        return {metric.key for family in contract.families for metric in family.metrics}

    assert "label_accuracy" not in keys(resolved())
    named = resolved(MinScore(metric="label_accuracy", value=1))
    assert "label_accuracy" in keys(named)
    assert named.settings.metrics.keys() == {"label_accuracy"}


def test_a_composite_is_a_rule_of_every_query_unless_it_is_turned_off() -> None:
    composite = {"composite": {"minimum": 0.5, "metrics": ["toxicity"]}}
    (rule,) = resolved(config={"answers": composite}).queries["q1"].rules
    assert rule == CompositeMinimum(minimum=0.5, metrics=("toxicity",))
    off = {"answers": composite, "per_query": {"enforce_composite": False}}
    assert resolved(config=off).queries["q1"].rules == ()


def test_a_contract_without_such_rules_has_no_part_in_this() -> None:
    golden = golden_of([query("q1", "doc1")])
    contract = resolve(golden, config_of({}, BUILT_IN), BUILT_IN, has_baseline=False)
    assert (contract.golden, contract.families) == (golden, ())
