"""The parts of the report on answers: pass rates, tiers, modes, labels. Parts that nothing asks for are unset."""

from collections.abc import Iterable
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from ragcontract.answers.metric_options import MODES
from ragcontract.contract.scope import tier_gate
from ragcontract.core.run import Confusion
from ragcontract.decision.decide import Decision
from ragcontract.decision.evaluated import Evaluation
from ragcontract.decision.gate_report import GateStatus
from ragcontract.decision.policy import PassRate
from ragcontract.report.inputs import Count
from ragcontract.statistics.quantities import ClassMeasures, classes, macro_f1, measures

Share = Annotated[float, Meta(ge=0, le=1)]
Matrix = dict[str, dict[str, Count]]
MISSING = "missing"


class PassRateReport(Struct, frozen=True, kw_only=True):
    """The share of the queries with rules whose rules hold, by weight; queries of skipped tiers are left out.

    Waived and known failures, and queries that only warn, count as passed.
    """

    rate: Annotated[Share | None, Meta(description="Null if no query has rules.")]
    passed: Count
    queries: Count


class TierReport(Struct, frozen=True, kw_only=True):
    """One tier and the pass rate of its queries."""

    name: str
    rate: Share | None
    passed: Count
    queries: Count
    status: Annotated[GateStatus | Literal["none"], Meta(description="none for a tier without a minimum.")]
    minimum: Share | None = None
    gates: Annotated[list[str], Meta(description="The tiers that are skipped if this one misses its minimum.")] = []
    skipped: Annotated[str | None, Meta(description="Which tier missed its minimum, so that this one is skipped.")] = (
        None
    )


class ModesReport(Struct, frozen=True, kw_only=True):
    """The modes of the run. The three rates are the weighted means of the metrics; null where no query has them."""

    matrix: Annotated[
        Matrix,
        Meta(
            description="The number of rows by expected and actual mode, each row counting as one. If rows have no "
            "mode, which the contract counts as wrong, there is a fourth column: missing."
        ),
    ]
    baseline_matrix: Annotated[
        Matrix | None, Meta(description="The same for a baseline that is a run; null for any other.")
    ]
    accuracy: Share | None
    per_mode: Annotated[dict[str, ClassMeasures], Meta(description="Computed from the matrix.")]
    false_answer_rate: Share | None
    over_refusal_rate: Share | None
    missing: Annotated[Count, Meta(description="How many rows have no mode.")]


class LabelsReport(Struct, frozen=True, kw_only=True):
    """The labels of the run."""

    accuracy: Annotated[Share | None, Meta(description="Weighted.")]
    macro_f1: Annotated[Share | None, Meta(description="Over all classes, each row counting as one.")]
    classes: Count


class AnswersReport(Struct, frozen=True, kw_only=True):
    """The parts of the report on answers, each unset if nothing asks for it."""

    pass_rate: PassRateReport | UnsetType = UNSET
    tiers: list[TierReport] | UnsetType = UNSET
    modes: ModesReport | UnsetType = UNSET
    labels: LabelsReport | UnsetType = UNSET


def answers_of(evaluation: Evaluation, decision: Decision) -> AnswersReport:
    """Return the parts of the report on answers."""
    overall = decision.outcomes.overall
    tiers = _tiers(evaluation, decision)
    return AnswersReport(
        pass_rate=PassRateReport(rate=overall.rate, passed=overall.passed, queries=overall.queries)
        if overall.queries
        else UNSET,
        tiers=tiers or UNSET,
        modes=_modes(evaluation) if evaluation.run.modes else UNSET,
        labels=_labels(evaluation) if evaluation.run.labels else UNSET,
    )


def _tiers(evaluation: Evaluation, decision: Decision) -> list[TierReport]:
    """Return the tiers, those of the configuration first; none if only some of the queries are in scope."""
    if evaluation.contract.scope is not None:
        return []
    configured = {tier.name: tier for tier in evaluation.contract.config.tiers}
    gates = {gate.id: gate for gate in decision.gates}
    tiers = []
    for name in dict.fromkeys([*configured, *decision.outcomes.tiers]):
        tier, gate = configured.get(name), gates.get(tier_gate(name))
        rate = decision.outcomes.tiers.get(name, PassRate())
        tiers.append(
            TierReport(
                name=name,
                rate=rate.rate,
                passed=rate.passed,
                queries=rate.queries,
                status=gate.status if gate else "none",
                minimum=tier.minimum if tier else None,
                gates=list(tier.gates) if tier else [],
                skipped=(gate.skipped or None) if gate else None,
            )
        )
    return tiers


def _modes(evaluation: Evaluation) -> ModesReport:
    run, baseline = evaluation.run, evaluation.baseline
    missing = _missing(run.modes)
    before = baseline.modes if baseline else {}
    columns = [*MODES, *([MISSING] if missing or _missing(before) else [])]
    return ModesReport(
        matrix=_matrix(run.modes, columns),
        baseline_matrix=_matrix(before, columns) if before else None,
        accuracy=_mean(evaluation, "mode_accuracy"),
        per_mode=measures(run.modes, MODES),
        false_answer_rate=_mean(evaluation, "false_answer_rate"),
        over_refusal_rate=_mean(evaluation, "over_refusal_rate"),
        missing=missing,
    )


def _missing(modes: Confusion) -> int:
    return sum(number for (_, mode), number in modes.items() if mode is None)


def _matrix(confusion: Confusion, columns: Iterable[str]) -> Matrix:
    """Return the number of rows by expected and actual mode, in the order of the modes."""
    return {
        expected: {name: confusion.get((expected, None if name == MISSING else name), 0) for name in columns}
        for expected in MODES
    }


def _labels(evaluation: Evaluation) -> LabelsReport:
    labels = evaluation.run.labels
    accuracy = _mean(evaluation, "label_accuracy")
    return LabelsReport(accuracy=accuracy, macro_f1=macro_f1(labels), classes=len(classes(labels)))


def _mean(evaluation: Evaluation, key: str) -> float | None:
    compared = evaluation.aggregates.comparisons.get(key)
    return compared.current if compared else None
