"""Limits on the means: what is observed, and where exactly a limit lies."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ragcontract import InputError, check
from ragcontract.contract.config_file import config_of
from ragcontract.core.gate import Gate, Kind, Quantity
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.lines import Line
from ragcontract.core.metric import Family, Metric, MetricSettings, Scale, SwitchedOn
from ragcontract.core.run import RunRow, Values
from ragcontract.decision.evaluated import Evaluation
from ragcontract.decision.gate_report import GateReport, worst
from ragcontract.decision.gates import Observed, observe, report_gate
from ragcontract.evaluation.aggregates import Aggregates
from ragcontract.registry import BUILT_IN
from ragcontract.statistics.means import Comparison
from tests.builders import write_jsonl
from tests.records import evaluate, query

HAIR, TOO_MUCH = 0.9e-9, 1.1e-9
MRR = Quantity(key="mrr_at_5", label="MRR@5")
SECONDS = Quantity(key="seconds", label="Seconds", better="lower")
fractions = st.floats(min_value=0, max_value=1)


def gate(kind: Kind, limit: float, *, relative: bool = False, tag: str | None = None) -> Gate:
    quantity = MRR if kind in {"drop", "minimum"} else SECONDS
    return Gate(
        id="limit", location="ragcontract.yml:7", quantity=quantity, kind=kind, limit=limit, relative=relative, tag=tag
    )


def relative(kind: Kind, limit: float) -> Gate:
    return gate(kind, limit, relative=True)


def judged(asked: Gate, amount: float) -> GateReport:
    return report_gate(asked, Observed(amount=amount))


def amount_of(asked: Gate, now: float, before: float) -> float | None:
    """Return what is observed of a mean that was ``before`` and is ``now``."""
    return observed(asked, Comparison(current=now, current_shared=now, baseline=before)).amount


def observed(asked: Gate, means: Comparison) -> Observed:
    evaluation = evaluate([query("q1", "A")], {"q1": ["A"]}, {"q1": ["A"]})
    key = asked.quantity.key
    aggregates = Aggregates(families=(), comparisons={key: means}, tags={})
    return observe(
        asked,
        Evaluation(
            contract=evaluation.contract, run=evaluation.run, baseline=evaluation.baseline, aggregates=aggregates
        ),
    )


def test_a_minimum_is_for_all_queries_and_a_drop_for_the_shared_ones() -> None:
    means = Comparison(current=0.9, current_shared=0.5, baseline=0.8)
    assert observed(gate("minimum", 0), means) == Observed(amount=0.9, now=0.9, before=0.8, why=NO_QUERY)
    drop = observed(gate("drop", 0), means)
    assert drop.amount == pytest.approx(0.3)
    assert (drop.now, drop.before) == (0.5, 0.8)
    assert observed(relative("drop", 0), means).amount == pytest.approx(0.375)


NO_QUERY = "no golden query has relevant documents"


def test_a_gain_is_a_negative_drop() -> None:
    assert amount_of(gate("drop", 0), 0.9, 0.6) == pytest.approx(-0.3)
    assert amount_of(relative("drop", 0), 0.9, 0.6) == pytest.approx(-0.5)


def test_a_metric_of_which_lower_is_better_rises_for_the_worse() -> None:
    assert amount_of(gate("maximum", 0), 9, 6) == 9
    assert amount_of(gate("rise", 0), 9, 6) == 3
    assert amount_of(relative("rise", 0), 9, 6) == 0.5
    assert amount_of(relative("rise", 0), 3, 6) == -0.5


def test_nothing_falls_below_a_baseline_of_0() -> None:
    for now in (0.0, 0.4):
        assert amount_of(relative("drop", 0.1), now, 0.0) == 0.0
        assert judged(relative("drop", 0.0), 0.0).status == "pass"
        assert amount_of(gate("drop", 0.1), now, 0.0) == -now


@pytest.mark.parametrize("now", [0.0, 0.4])
def test_no_rise_is_a_part_of_a_baseline_of_0(now: float) -> None:
    found = observed(relative("rise", 0.1), Comparison(current=now, current_shared=now, baseline=0.0))
    assert found.amount is None
    assert found.why == "the baseline's Seconds is 0, so a relative limit cannot be applied; give the limit in points"
    assert amount_of(gate("rise", 0.1), now, 0.0) == now


def test_no_change_is_0_and_not_minus_0() -> None:
    limits = [gate("drop", 0), relative("drop", 0), gate("rise", 0), relative("rise", 0)]
    assert [str(amount_of(one, 0.5, 0.5)) for one in limits] == ["0.0"] * 4


def test_a_part_of_a_value_below_0_is_a_part_of_its_size() -> None:
    assert amount_of(relative("drop", 0), -0.75, -0.5) == 0.5
    assert amount_of(relative("drop", 0), -0.25, -0.5) == -0.5
    assert amount_of(relative("rise", 0), -0.25, -0.5) == 0.5
    found = observed(relative("drop", 0.1), Comparison(current=-0.5, current_shared=-0.5, baseline=0.0))
    assert (found.amount, found.why[:32]) == (None, "the baseline's MRR@5 is 0, so a ")


def test_a_limit_in_percent_counts_from_the_lowest_value_of_the_scale() -> None:
    rating = Quantity(key="rating", label="rating", zero=1)  # from 1 to 5: 3 is half of the way
    drop = Gate(id="limit", location="", quantity=rating, kind="drop", limit=0.1, relative=True)
    assert amount_of(drop, 2.5, 3) == 0.25
    assert judged(drop, 0.25).message == "rating fell by 25% of the baseline above 1, allowed drop 10%"
    rise = Gate(id="limit", location="", quantity=rating, kind="rise", limit=0.1, relative=True)
    found = observed(rise, Comparison(current=2, current_shared=2, baseline=1))
    assert found.why == "the baseline's rating is 1, so a relative limit cannot be applied; give the limit in points"


def test_a_change_without_shared_queries_is_not_observed() -> None:
    means = Comparison(current=0.5)
    assert observed(gate("drop", 0), means).amount is None
    assert observed(relative("drop", 0), means).amount is None
    assert observed(gate("minimum", 0), means).amount == 0.5


def test_a_minimum_without_an_answerable_query_is_not_observed() -> None:
    assert observed(gate("minimum", 0), Comparison(current=None)).amount is None


LIMITS = [0.0, 0.1, 0.3, 1 / 3, 0.7, 1.0]


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("kind", ["drop", "rise", "maximum"])
def test_a_change_or_a_mean_of_exactly_the_limit_passes(kind: Kind, limit: float) -> None:
    for asked in (gate(kind, limit), relative(kind, limit)):
        assert judged(asked, limit).status == "pass"
        assert judged(asked, limit + HAIR).status == "pass"
        assert judged(asked, limit + TOO_MUCH).status == "fail"
        assert judged(asked, -1.0).status == "pass"


@pytest.mark.parametrize("limit", LIMITS)
def test_a_mean_of_exactly_the_minimum_passes(limit: float) -> None:
    asked = gate("minimum", limit)
    assert judged(asked, limit).status == "pass"
    assert judged(asked, limit - HAIR).status == "pass"
    assert judged(asked, limit - TOO_MUCH).status == "fail"
    assert judged(asked, limit + 0.1).status == "pass"


def test_a_drop_of_ten_points_in_floats_is_a_drop_of_ten_points() -> None:
    found = amount_of(gate("drop", 0.1), 0.7, 0.8)  # 0.8 - 0.7 is 0.10000000000000009
    assert found is not None
    assert found > 0.1
    assert judged(gate("drop", 0.1), found).status == "pass"


@given(fractions, fractions, fractions)
def test_a_looser_limit_never_breaks_what_a_tighter_one_passed(baseline: float, now: float, limit: float) -> None:
    for is_relative in (False, True):
        found = amount_of(gate("drop", 0, relative=is_relative), now, baseline)
        assert found is not None
        assert found <= 1 + 1e-9
        if judged(gate("drop", limit, relative=is_relative), found).status == "pass":
            assert judged(gate("drop", min(1, limit + 0.1), relative=is_relative), found).status == "pass"
    assert judged(relative("drop", 1), 1.0).status == "pass"


@pytest.mark.parametrize(
    ("asked", "amount", "kind", "message"),
    [
        (gate("drop", 0.10), 0.14, "drop", "MRR@5 fell by 0.14, allowed drop 0.10"),
        (gate("drop", 0.10), -0.02, "drop", "MRR@5 rose by 0.02, allowed drop 0.10"),
        (gate("drop", 0.10), 0.0, "drop", "MRR@5 did not fall, allowed drop 0.10"),
        (gate("drop", 0.10), 1e-17, "drop", "MRR@5 did not fall, allowed drop 0.10"),
        (gate("drop", 0.10), 0.1004, "drop", "MRR@5 fell by 0.1004, allowed drop 0.10"),
        (relative("drop", 0.10), 0.17, "relative_drop", "MRR@5 fell by 17% of the baseline, allowed drop 10%"),
        (
            relative("drop", 0.10),
            0.100002,
            "relative_drop",
            "MRR@5 fell by 10.0002% of the baseline, allowed drop 10%",
        ),
        (relative("drop", 0.125), -0.5, "relative_drop", "MRR@5 rose by 50% of the baseline, allowed drop 12.5%"),
        (gate("minimum", 0.8), 0.68, "minimum", "MRR@5 is 0.68, minimum 0.80"),
        (gate("minimum", 0.8), 0.7996, "minimum", "MRR@5 is 0.7996, minimum 0.80"),
        (gate("minimum", 0.8), 0.0, "minimum", "MRR@5 is 0.00, minimum 0.80"),
        (gate("maximum", 8), 8.5, "maximum", "Seconds is 8.50, allowed 8.00"),
        (gate("rise", 2), 2.5, "rise", "Seconds rose by 2.50, allowed increase 2.00"),
        (gate("rise", 2), -2.5, "rise", "Seconds fell by 2.50, allowed increase 2.00"),
        (gate("rise", 2), 0.0, "rise", "Seconds did not rise, allowed increase 2.00"),
        (relative("rise", 0.1), 0.2, "relative_rise", "Seconds rose by 20% of the baseline, allowed increase 10%"),
    ],
)
def test_what_is_observed_and_allowed_is_said(asked: Gate, amount: float, kind: str, message: str) -> None:
    found = judged(asked, amount)
    assert found.message == message
    assert (found.id, found.location, found.metric, found.kind_in_json, found.limit, found.observed) == (
        asked.id,
        str(asked.location),
        asked.quantity.key,
        kind,
        asked.limit,
        amount,
    )
    assert (found.label, found.unit) == (asked.quantity.label, "points")


def test_a_metric_is_as_bad_as_the_worst_of_its_gates() -> None:
    passing, failing = judged(gate("minimum", 0.5), 0.5), judged(gate("minimum", 0.5), 0.4)
    assert [worst([]), worst([passing]), worst([passing, failing])] == ["none", "pass", "fail"]


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (gate("minimum", 0.1), "no golden query has relevant documents"),
        (gate("drop", 0.1), "no query with relevant documents is in both the run and the baseline"),
        (gate("minimum", 0.1, tag="eu"), "no golden query with the tag 'eu' has relevant documents"),
        (
            gate("drop", 0.1, tag="eu"),
            "no query with the tag 'eu' and with relevant documents is in both the run and the baseline",
        ),
        (gate("maximum", 0.1), "no golden query has a value of Seconds"),
        (gate("rise", 0.1), "no query is in both the run and the baseline"),
        (gate("rise", 0.1, tag="eu"), "no query with the tag 'eu' is in both the run and the baseline"),
    ],
)
def test_why_a_gate_cannot_be_judged(asked: Gate, reason: str) -> None:
    found = observed(asked, Comparison(current=None))
    assert (found.amount, found.why) == (None, reason)


class Waiting:
    """A family with one metric, of which lower is better: the number of results, in seconds."""

    needs = frozenset({"results"})
    from_ids = True
    switch = SwitchedOn.ALWAYS
    metrics = (Metric(key="seconds", label="Seconds", better="lower", scale=Scale(0, 10), aliases=("wait_at_k",)),)

    def values(self, query: GoldenQuery, row: RunRow) -> Values:
        return (float(len(row.results)),) if query.answerable else ()


def waiting(_settings: MetricSettings) -> list[Family]:
    return [Waiting()]


REGISTRY = replace(BUILT_IN, metrics=(*BUILT_IN.metrics, Line(home=waiting, always=True)))
SLOWER: dict[str, Any] = {"q1": ["A"] * 4, "q2": ["B"] * 6, "q3": []}
FASTER: dict[str, Any] = {"q1": ["A"] * 4, "q2": ["B"]}


def test_limits_on_a_metric_of_which_lower_is_better_are_read_observed_and_judged() -> None:
    config = {
        "maximums": {"seconds": 5, "wait_at_k": 4.5},
        "fail_on": {"seconds_rise_gt": "50%"},
        "tags": {"t": {"fail_on": {"seconds_rise_gt": 5}}},
    }
    queries = [query("q1", "A"), query("q2", "B", tags=("t",)), query("q3", tags=("t",))]
    evaluation = evaluate(queries, SLOWER, FASTER, config, registry=REGISTRY)
    reports = [report_gate(one, observe(one, evaluation)) for one in evaluation.contract.gates]
    assert [(one.id, one.observed, one.status) for one in reports] == [
        ("fail_on.seconds_rise_gt", 1.0, "fail"),
        ("maximums.wait_at_k", 5.0, "fail"),
        ("maximums.seconds", 5.0, "pass"),
        ("tags.t.fail_on.seconds_rise_gt", 5.0, "pass"),
    ]
    assert [(one.now, one.before) for one in reports[:2]] == [(5.0, 2.5), (5.0, 2.5)]


def test_the_gates_of_each_way_to_count_are_those_that_the_config_names() -> None:
    gates = config_of({"fail_on": {"seconds_rise_gt": 2}, "maximums": {"seconds": 9}}, REGISTRY).gates
    assert [(one.id, one.kind, one.limit, one.quantity.better) for one in gates] == [
        ("fail_on.seconds_rise_gt", "rise", 2, "lower"),
        ("maximums.seconds", "maximum", 9, "lower"),
    ]


@pytest.mark.parametrize(
    ("limit", "lacking"),
    [
        ("maximums: {false_answer_rate: 0.1}", "expected_mode: abstain"),
        ("maximums: {over_refusal_rate: 0.1}", "expected_mode other than abstain"),
        ("minimums: {rouge_l: 0.1}", "reference"),
    ],
)
def test_a_limit_on_what_no_query_has_says_what_to_add(limit: str, lacking: str, tmp_path: Path) -> None:
    mode = "abstain" if "other" in lacking else "trustworthy"
    asked = {"id": "q1", "query": "?", "expected_mode": mode}
    golden = write_jsonl(tmp_path / "golden.jsonl", [asked])
    run = write_jsonl(tmp_path / "run.jsonl", [{"query_id": "q1", "response": "yes", "mode": mode}])
    (tmp_path / "ragcontract.yml").write_text(limit)
    config = str(tmp_path / "ragcontract.yml")
    with pytest.raises(InputError, match=f"no golden query has {lacking}; add it, or leave the limit out"):
        check(golden=str(golden), run=str(run), config=config)
