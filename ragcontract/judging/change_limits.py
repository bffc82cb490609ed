"""Limits on changes of metrics: what is sure about each, and whether it fails, given the test of the change."""

import sys
from collections.abc import Iterator, Sequence

from msgspec import UNSET
from msgspec.structs import replace

from ragcontract.contract.too_few import TooFew, too_few_queries
from ragcontract.core.gate import Gate
from ragcontract.core.numbers import SAME
from ragcontract.judging.gate_report import Certainty, GateReport, GateStatus
from ragcontract.judging.tested_changes import ChangeTests
from ragcontract.statistics.queries_needed import queries_needed
from ragcontract.statistics.significance import ChangeTest


def with_test(gate: Gate, report: GateReport, tests: ChangeTests) -> GateReport:
    """Return the result of a gate as the test of its change decides it; as it is if nothing is tested for it.

    The given ``report`` has the status of ``strict``, which fails where the change is over the limit. ``significant``
    fails only if it is significant as well, and ``noninferiority`` unless the upper bound is within the limit
    (Schuirmann, *A Comparison of the Two One-Sided Tests Procedure and the Power Approach*, Journal of Pharmacokinetics
    and Biopharmaceutics 15 (1987)).
    """
    test = tests.of(gate)
    if test is None:
        return report
    whole = abs((report.before or 0.0) - gate.quantity.zero) if gate.relative else 1.0
    low, high = (_relative(bound, whole) for bound in test.bounds)
    certainty: Certainty = "beyond" if low - gate.limit > SAME else "undecided"
    if high - gate.limit <= SAME:
        certainty = "within"
    needs = _needs(gate.limit * whole, test, tests)
    return replace(
        report,
        status=_status(test, tests, over=report.status == "fail", certainty=certainty),
        bounds=(low, high),
        certainty=certainty,
        p_value=test.p_value,
        alpha=tests.alpha,
        needs=UNSET if needs is None else needs,
    )


def _relative(bound: float, whole: float) -> float:
    """Return a bound in points as a fraction of the ``whole``."""
    most = sys.float_info.max  # JSON has no infinity
    if not whole:
        return most if bound > 0 else 0.0
    return max(-most, min(most, bound / whole))


def _status(test: ChangeTest, tests: ChangeTests, *, over: bool, certainty: Certainty) -> GateStatus:
    if tests.mode == "noninferiority":
        return "pass" if certainty == "within" else "fail"
    if not over:
        return "pass"
    proven = test.p_value is not None and test.p_value <= tests.alpha
    if tests.mode == "strict" or proven:
        return "fail"
    return "unproven" if test.could_be else "too_few"


def _needs(limit: float, test: ChangeTest, tests: ChangeTests) -> int | None:
    """Return how many queries the limit takes, if that is more than there are and the mode asks what is sure."""
    if tests.mode == "strict":
        return None
    needs = queries_needed(limit, tests.mode, alpha=tests.alpha, span=test.span, tests=tests.sets)
    return needs if needs is not None and needs > test.queries else None


def too_few_warnings(gates: Sequence[Gate], reports: Sequence[GateReport], tests: ChangeTests) -> Iterator[str]:
    """Yield a warning for each size of limit that its queries cannot carry; ``reports`` are those of the gates.

    There is none where this run's change is decided nonetheless: it is proven, or within the limit for sure.
    """
    found = [
        TooFew(gate=gate, queries=test.queries, needs=report.needs)
        for gate, report in zip(gates, reports, strict=True)
        if report.needs and not _is_decided(report, tests) and (test := tests.of(gate))
    ]
    for location, message in too_few_queries(found):
        yield f"{location}: {message}"


def _is_decided(report: GateReport, tests: ChangeTests) -> bool:
    return report.certainty != "undecided" or (tests.mode == "significant" and report.status == "fail")
