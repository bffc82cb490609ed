"""What is said about the result of a gate: how sure a change is, and why one over its limit does not fail."""

from typing import Any

import pytest

from ragcontract.core.gate import FailMode, Gate, Quantity
from ragcontract.decision.gate_report import GateReport, found_and_allowed, p_beside_threshold, why_not_proven

MRR = Quantity(key="mrr_at_5", label="MRR@5")
TOXICITY = Quantity(key="toxicity", label="toxicity", better="lower")


def said(
    observed: float, *, mode: FailMode = "strict", relative: bool = False, rise: bool = False, **fields: Any
) -> str:
    """Return what is said of a change where 0.05 are allowed."""
    gate = Gate(
        id="limit",
        location="ragcontract.yml:7",
        quantity=TOXICITY if rise else MRR,
        kind="rise" if rise else "drop",
        limit=0.05,
        relative=relative,
    )
    return ", ".join(found_and_allowed(gate, result(observed, **fields), mode))


def result(observed: float = 0.1, **fields: Any) -> GateReport:
    """Return the result of a limit of 0.05."""
    given: dict[str, Any] = {"status": "pass", "message": "", "kind_in_json": "drop", "limit": 0.05, **fields}
    return GateReport(id="limit", location="ragcontract.yml:7", metric="mrr_at_5", observed=observed, **given)


@pytest.mark.parametrize(
    ("observed", "bounds", "found"),
    [
        (0.02, (-0.03, 0.07), "MRR@5 fell by 0.02, at most by 0.07"),
        (0.02, (0.01, 0.04996), "MRR@5 fell by 0.02, at most by 0.04996"),
        (0.0, (-0.03, 0.03), "MRR@5 did not fall, or fell by at most 0.03"),
        (-0.03, (-0.09, 0.02), "MRR@5 rose by 0.03, or fell by at most 0.02"),
        (-0.09, (-0.15, -0.04), "MRR@5 rose by 0.09, at least by 0.04"),
        (-0.09, (-0.15, 0.0), "MRR@5 rose by 0.09"),
        (0.0, (0.0, 0.0), "MRR@5 did not fall"),
    ],
)
def test_a_change_within_its_limit_says_how_bad_it_may_be(
    observed: float, bounds: tuple[float, float], found: str
) -> None:
    assert said(observed, bounds=bounds) == f"{found}, allowed drop 0.05"


def test_a_rise_and_a_relative_drop_say_it_in_their_own_words() -> None:
    assert (
        said(0.02, bounds=(-0.03, 0.07), rise=True) == "toxicity rose by 0.02, at most by 0.07, allowed increase 0.05"
    )
    assert said(-0.02, bounds=(-0.03, 0.07), rise=True) == (
        "toxicity fell by 0.02, or rose by at most 0.07, allowed increase 0.05"
    )
    assert said(0.02, bounds=(-0.03, 0.07), relative=True) == (
        "MRR@5 fell by 2% of the baseline, at most by 7% of the baseline, allowed drop 5%"
    )


def test_without_bounds_nothing_is_added() -> None:
    assert said(0.02) == "MRR@5 fell by 0.02, allowed drop 0.05"


def test_a_drop_that_is_not_excluded_fails_where_that_is_asked_and_says_what_it_takes() -> None:
    failed: dict[str, Any] = {"bounds": (-0.03, 0.08), "status": "fail", "mode": "noninferiority"}
    start = "MRR@5 fell by 0.02, at most by 0.08, allowed drop 0.05: more is not excluded"
    assert said(0.02, **failed) == start
    assert said(0.02, needs=120, **failed) == f"{start}; needs 120 queries"
    assert said(0.1, **failed) == "MRR@5 fell by 0.10, allowed drop 0.05"


def test_only_where_significance_decides_a_broken_limit_says_that_the_drop_is_significant() -> None:
    failed: dict[str, Any] = {"bounds": (0.03, 0.17), "status": "fail", "p_value": 0.0123, "alpha": 0.05}
    assert said(0.1, mode="significant", **failed) == "MRR@5 fell by 0.10, allowed drop 0.05 (significant, p 0.012)"
    assert said(0.1, mode="strict", **failed) == "MRR@5 fell by 0.10, allowed drop 0.05"


def test_a_drop_over_its_limit_that_does_not_fail_says_that_it_is_not_shown_to_be_real() -> None:
    unproven = result(status="unproven", p_value=0.19, alpha=0.05)
    assert why_not_proven(unproven) == "over its limit, not shown to be real"
    few = "over its limit, too few queries changed to tell"
    assert why_not_proven(result(status="too_few", p_value=0.25, alpha=0.05)) == few
    assert why_not_proven(result(status="too_few", needs=40)) == f"{few}: needs 40 queries"
    assert why_not_proven(result(status="unproven")) == "over its limit, not shown to be real"


@pytest.mark.parametrize(
    ("p_value", "alpha", "text"),
    [
        (0.19, 0.05, "0.19 > 0.05"),
        (0.0504, 0.05, "0.0504 > 0.05"),
        (0.0500000000001, 0.05, "0.0500000000001 > 0.05"),
        (0.05, 0.05, "0.05 ≤ 0.05"),
        (0.0123, 0.05, "0.012 ≤ 0.05"),
        (0.0123, None, "0.012"),
    ],
)
def test_a_p_value_stands_on_the_right_side_of_its_threshold(p_value: float, alpha: float | None, text: str) -> None:
    assert p_beside_threshold(p_value, alpha) == text
