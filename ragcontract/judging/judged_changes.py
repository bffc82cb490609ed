"""A limit on the change of a metric beside the test and the bounds of that change: what is sure, and what fails."""

import sys
from typing import Literal

from msgspec import Struct

from ragcontract.core.gate import Gate
from ragcontract.core.numbers import SAME
from ragcontract.judging.gate_report import Certainty, GateStatus
from ragcontract.statistics.queries_needed import queries_needed
from ragcontract.statistics.significance import Assessed

Mode = Literal["strict", "significant", "noninferiority"]


class JudgedChange(Struct, frozen=True, kw_only=True):
    """The fields of a gate's result that only a limit on the change of a metric has; see ``GateReport``."""

    status: GateStatus
    bounds: tuple[float, float]
    certainty: Certainty
    p_value: float | None
    alpha: float
    needs: int | None


class Question(Struct, frozen=True, kw_only=True):
    """What is asked of every limit on a change, and of how many separate ``sets`` of queries."""

    mode: Mode
    alpha: float
    sets: int = 1


def judged_change(gate: Gate, amount: float, before: float, result: Assessed, question: Question) -> JudgedChange:
    """Judge an ``amount`` against the limit of a gate; ``before`` is the baseline's mean.

    ``strict`` fails where the amount is over the limit; ``significant`` only if the change is significant as well; and
    ``noninferiority`` unless the upper bound is within the limit (Schuirmann, *A Comparison of the Two One-Sided Tests
    Procedure and the Power Approach*, Journal of Pharmacokinetics and Biopharmaceutics 15 (1987)).
    """
    whole = abs(before - gate.quantity.zero) if gate.relative else 1.0
    low, high = (_part(bound, whole) for bound in result.bounds)
    certainty: Certainty = "beyond" if low - gate.limit > SAME else "undecided"
    if high - gate.limit <= SAME:
        certainty = "within"
    return JudgedChange(
        status=_status(result, question, over=amount - gate.limit > SAME, certainty=certainty),
        bounds=(low, high),
        certainty=certainty,
        p_value=result.p_value,
        alpha=question.alpha,
        needs=_needs(gate.limit * whole, result, question),
    )


def _part(bound: float, whole: float) -> float:
    most = sys.float_info.max  # JSON has no infinity
    if not whole:
        return most if bound > 0 else 0.0
    return max(-most, min(most, bound / whole))


def _status(result: Assessed, question: Question, *, over: bool, certainty: Certainty) -> GateStatus:
    if question.mode == "noninferiority":
        return "pass" if certainty == "within" else "fail"
    if not over:
        return "pass"
    proven = result.p_value is not None and result.p_value <= question.alpha
    if question.mode == "strict" or proven:
        return "fail"
    return "unproven" if result.could_be else "too_few"


def _needs(limit: float, result: Assessed, question: Question) -> int | None:
    """Return how many queries the limit takes, if that is more than there are and the mode asks what is sure."""
    if question.mode == "strict":
        return None
    needs = queries_needed(limit, question.mode, alpha=question.alpha, span=result.span, tests=question.sets)
    return needs if needs is not None and needs > result.queries else None
