"""Limits on the means: what is observed, and where exactly a limit lies."""

from typing import Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcontract.contract.config import Config, Drops, FailOn, Minimums, TagLimits
from ragcontract.judging.gates import Gate, gates_of, judge, limits_set, observe, why_not
from ragcontract.metrics.formulas import METRICS, metrics_at
from ragcontract.model import GateReport
from ragcontract.statistics.aggregate import Comparison

MRR = metrics_at(5)[0]
HAIR, TOO_MUCH = 0.9e-9, 1.1e-9
fractions = st.floats(min_value=0, max_value=1)


def judged(gate: Gate, observed: float) -> GateReport:
    return judge(gate, observed, "ragcontract.yml:7")


def gate(kind: Literal["drop", "relative_drop", "minimum"], limit: float) -> Gate:
    part = "minimums.mrr_at_k" if kind == "minimum" else "fail_on.mrr_drop_gt"
    return Gate(id=part, metric=MRR, kind=kind, limit=limit)


def test_the_gates_are_those_that_the_config_names() -> None:
    fail_on = FailOn(mrr_drop_gt=0.1, recall_drop_gt="10%", precision_drop_gt="2.5 %")
    minimums = Minimums(mrr_at_k=0.0, hitrate_at_k=0.9)
    config = Config(fail_on=fail_on, minimums=minimums)
    found = [(gate.id, gate.metric.key, gate.kind, gate.limit) for gate in gates_of(config, metrics_at(7))]
    assert found == [
        ("fail_on.mrr_drop_gt", "mrr_at_7", "drop", 0.1),
        ("minimums.mrr_at_k", "mrr_at_7", "minimum", 0.0),
        ("fail_on.recall_drop_gt", "recall_at_7", "relative_drop", 0.1),
        ("fail_on.precision_drop_gt", "precision_at_7", "relative_drop", 0.025),
        ("minimums.hitrate_at_k", "hitrate_at_7", "minimum", 0.9),
    ]
    assert list(gates_of(Config(), metrics_at(5))) == []


def test_every_limit_of_the_config_belongs_to_a_metric() -> None:
    drops, minimums = (dict.fromkeys(record.__struct_fields__, 0.1) for record in (Drops, Minimums))
    limits = TagLimits(fail_on=Drops(**drops), minimums=Minimums(**minimums))
    config = Config(fail_on=msgspec.convert(drops, FailOn), minimums=limits.minimums, tags={"a": limits, "b": limits})
    found = [gate.id for gate in gates_of(config, metrics_at(5))]
    assert len(set(found)) == len(found) == 3 * 2 * len(METRICS)
    assert sorted(found) == sorted(limits_set(config))


def test_a_minimum_is_for_all_queries_and_a_drop_for_the_shared_ones() -> None:
    means = Comparison(current=0.9, current_shared=0.5, baseline=0.8)
    assert observe(gate("minimum", 0), means) == 0.9
    assert observe(gate("drop", 0), means) == pytest.approx(0.3)
    assert observe(gate("relative_drop", 0), means) == pytest.approx(0.375)


def test_a_gain_is_a_negative_drop() -> None:
    means = Comparison(current=0.9, current_shared=0.9, baseline=0.6)
    assert observe(gate("drop", 0), means) == pytest.approx(-0.3)
    assert observe(gate("relative_drop", 0), means) == pytest.approx(-0.5)


def test_nothing_falls_below_a_baseline_of_0() -> None:
    for now in (0.0, 0.4):
        means = Comparison(current=now, current_shared=now, baseline=0.0)
        assert observe(gate("relative_drop", 0.1), means) == 0.0
        assert observe(gate("drop", 0.1), means) == -now


def test_no_change_is_0_and_not_minus_0() -> None:
    means = Comparison(current=0.5, current_shared=0.5, baseline=0.5)
    assert [str(observe(gate(kind, 0), means)) for kind in ("drop", "relative_drop")] == ["0.0", "0.0"]


@pytest.mark.parametrize(
    "means", [Comparison(current=0.5), Comparison(current=0.5, current_shared=None, baseline=None)]
)
def test_a_drop_without_a_baseline_is_not_observed(means: Comparison) -> None:
    assert observe(gate("drop", 0), means) is None
    assert observe(gate("relative_drop", 0), means) is None
    assert observe(gate("minimum", 0), means) == 0.5


def test_a_minimum_without_an_answerable_query_is_not_observed() -> None:
    assert observe(gate("minimum", 0), Comparison(current=None)) is None


@pytest.mark.parametrize("limit", [0.0, 0.1, 0.3, 1 / 3, 0.7, 1.0])
@pytest.mark.parametrize("kind", ["drop", "relative_drop"])
def test_a_drop_of_exactly_the_limit_passes(kind: Literal["drop", "relative_drop"], limit: float) -> None:
    asked = gate(kind, limit)
    assert judged(asked, limit).status == "pass"
    assert judged(asked, limit + HAIR).status == "pass"
    assert judged(asked, limit + TOO_MUCH).status == "fail"
    assert judged(asked, -1.0).status == "pass"


@pytest.mark.parametrize("limit", [0.0, 0.1, 0.3, 1 / 3, 0.7, 1.0])
def test_a_mean_of_exactly_the_minimum_passes(limit: float) -> None:
    asked = gate("minimum", limit)
    assert judged(asked, limit).status == "pass"
    assert judged(asked, limit - HAIR).status == "pass"
    assert judged(asked, limit - TOO_MUCH).status == "fail"
    assert judged(asked, limit + 0.1).status == "pass"


def test_a_drop_of_ten_points_in_floats_is_a_drop_of_ten_points() -> None:
    means = Comparison(current=0.7, current_shared=0.7, baseline=0.8)  # 0.8 - 0.7 is 0.10000000000000009
    observed = observe(gate("drop", 0.1), means)
    assert observed is not None
    assert observed > 0.1
    assert judged(gate("drop", 0.1), observed).status == "pass"


@given(fractions, fractions, fractions)
def test_a_looser_limit_never_breaks_what_a_tighter_one_passed(baseline: float, now: float, limit: float) -> None:
    means = Comparison(current=now, current_shared=now, baseline=baseline)
    for kind in ("drop", "relative_drop"):
        observed = observe(gate(kind, 0), means)
        assert observed is not None
        assert observed <= 1 + 1e-9
        if judged(gate(kind, limit), observed).status == "pass":
            assert judged(gate(kind, min(1, limit + 0.1)), observed).status == "pass"
    assert judged(gate("relative_drop", 1), 1.0).status == "pass"


@pytest.mark.parametrize(
    ("asked", "observed", "message"),
    [
        (gate("drop", 0.10), 0.14, "MRR@5 fell by 0.14, allowed drop 0.10"),
        (gate("drop", 0.10), -0.02, "MRR@5 rose by 0.02, allowed drop 0.10"),
        (gate("drop", 0.10), 0.0, "MRR@5 did not fall, allowed drop 0.10"),
        (gate("drop", 0.10), 1e-17, "MRR@5 did not fall, allowed drop 0.10"),
        (gate("drop", 0.10), 0.1004, "MRR@5 fell by 0.1004, allowed drop 0.1000"),
        (gate("relative_drop", 0.10), 0.17, "MRR@5 fell by 17% of the baseline, allowed drop 10%"),
        (gate("relative_drop", 0.10), 0.100002, "MRR@5 fell by 10.0002% of the baseline, allowed drop 10%"),
        (gate("relative_drop", 0.125), -0.5, "MRR@5 rose by 50% of the baseline, allowed drop 12.5%"),
        (gate("minimum", 0.8), 0.68, "MRR@5 is 0.68, minimum 0.80"),
        (gate("minimum", 0.8), 0.7996, "MRR@5 is 0.7996, minimum 0.8000"),
        (gate("minimum", 0.8), 0.0, "MRR@5 is 0.00, minimum 0.80"),
    ],
)
def test_the_words(asked: Gate, observed: float, message: str) -> None:
    found = judged(asked, observed)
    assert found.message == message
    assert (found.id, found.metric, found.kind, found.limit, found.observed) == (
        asked.id,
        "mrr_at_5",
        asked.kind,
        asked.limit,
        observed,
    )


@pytest.mark.parametrize(
    ("asked", "has_baseline", "reason"),
    [
        (gate("minimum", 0.1), True, "no golden query has relevant documents"),
        (gate("drop", 0.1), True, "no query with relevant documents is in both the run and the baseline"),
        (
            gate("relative_drop", 0.1),
            False,
            "there is no baseline; make one with `rag-contract baseline`, or leave the limit out",
        ),
        (
            msgspec.structs.replace(gate("minimum", 0.1), tag="eu"),
            True,
            "no golden query with the tag 'eu' has relevant documents",
        ),
        (
            msgspec.structs.replace(gate("drop", 0.1), tag="eu"),
            True,
            "no query with the tag 'eu' and with relevant documents is in both the run and the baseline",
        ),
    ],
)
def test_why_a_gate_cannot_be_judged(asked: Gate, *, has_baseline: bool, reason: str) -> None:
    assert why_not(asked, has_baseline=has_baseline) == f"{asked.id} cannot be judged: {reason}"
