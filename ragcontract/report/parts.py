"""The records of the parts of a report: its inputs, its answers (pass rates, tiers, modes, labels), and its judge.

Parts that nothing asks for are unset.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import asdict

from ragcontract.answers.metric_options import MODES
from ragcontract.contract.scope import tier_gate
from ragcontract.core.config_sections import JudgeVerdict, Task
from ragcontract.core.run import Confusion, SourceFile
from ragcontract.core.safe_text import encodable
from ragcontract.decision.decide import Decision
from ragcontract.decision.evaluated import Evaluation
from ragcontract.decision.gate_report import GateStatus
from ragcontract.decision.policy import PassRate
from ragcontract.evaluation.observations import ClassCounts, Depth
from ragcontract.runs.baseline_contract import ContractChange, Replaced, RunCount
from ragcontract.runs.baseline_file import Accepted
from ragcontract.statistics.quantities import ClassMeasures, classes, macro_f1, measures

Count = Annotated[int, Meta(ge=0)]


class GoldenInput(Struct, frozen=True, kw_only=True):
    """The golden set."""

    files: list[SourceFile]
    queries: Count
    answerable: Annotated[Count, Meta(description="How many queries have relevant documents.")]


class RunInput(Struct, frozen=True, kw_only=True):
    """The run."""

    files: list[SourceFile]
    queries: Count
    versions: dict[str, list[str]]
    missing: Annotated[list[str], Meta(description="Golden queries without a row, which score 0.")]
    unknown: Annotated[
        list[str], Meta(description="Ids of rows without a golden query, at most 10,000; queries counts all.")
    ]
    duplicate_rate: Annotated[
        float, Meta(description="The share of results in the exported top k that repeat a document of their row.")
    ] = 0.0
    depth: Annotated[Depth | None, Meta(description="How many results its rows have.")] = None


class ScoresInput(Struct, frozen=True, kw_only=True):
    """The scores files for the run; what computed the scores is ``scored_by`` among the run's versions."""

    files: list[SourceFile]


class JudgmentsInput(Struct, frozen=True, kw_only=True):
    """The judgments files for the run."""

    files: list[SourceFile]
    calibration: Annotated[str | None, Meta(description="The path of the judge's calibration.")] = None


class BaselineInput(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The baseline, and how its queries differ from the current golden set.

    A baseline that is itself a run has no ``created_at`` and no ``k``.
    """

    files: list[SourceFile]
    queries: Count
    runs: Annotated[RunCount, Meta(description="How many good runs it is the mean of; left out for one.")] = 1
    versions: dict[str, list[str]]
    created_at: str | None
    k: list[int] | None
    shared: Annotated[Count, Meta(description="How many queries both sides have.")]
    new: Annotated[list[str], Meta(description="Queries that the baseline does not have.")]
    changed: Annotated[list[str], Meta(description="Queries with another question, which cannot be compared.")]
    gone: Annotated[list[str], Meta(description="Queries that only the baseline has.")]
    age_days: Annotated[int | None, Meta(description="Null if the date is unknown.")]
    too_old: Annotated[bool, Meta(description="The age exceeds max_baseline_age.")]
    depth: Depth | None = None
    accepted: Annotated[
        list[Accepted], Meta(description="Broken contracts that became the baseline, the latest last.")
    ] = []
    replaces: Annotated[Replaced | None, Meta(description="The baseline that was replaced by this one.")] = None
    contract_changes: Annotated[
        list[ContractChange] | None,
        Meta(
            description="How the contract changed since the baseline was made, weaker first. Empty if nothing changed; "
            "omitted if that is not known, because the baseline is a run or was made by an older rag-contract."
        ),
    ] = None


class ConfigInput(Struct, frozen=True, kw_only=True):
    """The configuration file."""

    files: list[SourceFile]


class Inputs(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The inputs of the check; ``scores`` and ``judgments`` are omitted without such files."""

    golden: GoldenInput
    run: RunInput
    baseline: BaselineInput | None
    config: ConfigInput | None
    scores: ScoresInput | None = None
    judgments: JudgmentsInput | None = None


def shown_files(files: Sequence[SourceFile]) -> list[SourceFile]:
    """Return files with paths that can be written into a report, whatever bytes are in their names."""
    return [SourceFile(path=encodable(file.path), sha256=file.sha256) for file in files]


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


class LabelReport(ClassMeasures, frozen=True, kw_only=True):
    """How well one label was chosen; 0 where there is nothing to divide by."""

    support: Annotated[Count, Meta(description="How many rows expect it.")]


class LabelsReport(Struct, frozen=True, kw_only=True):
    """The labels of the run."""

    accuracy: Annotated[Share | None, Meta(description="Weighted.")]
    macro_f1: Annotated[Share | None, Meta(description="Over all classes, each row counting as one.")]
    classes: Count
    per_label: Annotated[dict[str, LabelReport], Meta(description="All that were expected or chosen, by name.")]


def pass_rate_of(decision: Decision) -> PassRateReport | UnsetType:
    """Return the pass rate, if any query has rules."""
    overall = decision.outcomes.overall
    if not overall.queries:
        return UNSET
    return PassRateReport(rate=overall.rate, passed=overall.passed, queries=overall.queries)


def tiers_of(evaluation: Evaluation, decision: Decision) -> list[TierReport]:
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


def modes_of(evaluation: Evaluation) -> ModesReport | UnsetType:
    """Return the modes, if the contract expects any."""
    if not evaluation.run.observed(ClassCounts).modes:
        return UNSET
    run, baseline = evaluation.run, evaluation.baseline
    missing = _missing(run.observed(ClassCounts).modes)
    before = baseline.observed(ClassCounts).modes if baseline else {}
    columns = [*MODES, *([MISSING] if missing or _missing(before) else [])]
    return ModesReport(
        matrix=_matrix(run.observed(ClassCounts).modes, columns),
        baseline_matrix=_matrix(before, columns) if before else None,
        accuracy=_mean(evaluation, "mode_accuracy"),
        per_mode=measures(run.observed(ClassCounts).modes, MODES),
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


def labels_of(evaluation: Evaluation) -> LabelsReport | UnsetType:
    """Return the labels, if the contract expects any."""
    labels = evaluation.run.labels
    if not labels:
        return UNSET
    accuracy = _mean(evaluation, "label_accuracy")
    names, support = classes(labels), Counter[str]()
    for (expected, _), rows in labels.items():
        support[expected] += rows
    per_label = {
        name: LabelReport(**asdict(of_label), support=support[name])
        for name, of_label in measures(labels, names).items()
    }
    return LabelsReport(accuracy=accuracy, macro_f1=macro_f1(labels), classes=len(names), per_label=per_label)


def _mean(evaluation: Evaluation, key: str) -> float | None:
    compared = evaluation.aggregates.comparisons.get(key)
    return compared.current if compared else None


class JudgedItem(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A claim, a criterion or a flagged text, and what the judge said about it.

    With --no-answers, the quote and the reason are omitted, and so is a text from the answer.
    """

    item: str
    row: Annotated[
        int | None, Meta(description="The row in which a claim or criterion was judged, if the query has several.")
    ] = None
    text: str = ""
    verdict: Annotated[JudgeVerdict | None, Meta(description="Null if there is none.")]
    stands: Annotated[bool | None, Meta(description="Whether the violation by a flagged text stands.")] = None
    quote: Annotated[str | None, Meta(description="The words that prove the verdict.")] = None
    context: Annotated[
        int | None, Meta(description="The rank of the retrieved text that is quoted; null if the answer is quoted.")
    ] = None
    reason: str = ""


class JudgedQuery(Struct, frozen=True, kw_only=True, gc=False):
    """A golden query and its judged items, over all of its rows."""

    id: str
    location: str
    passed: Annotated[
        Count, Meta(description="How many items are supported claims, criteria that are met, or cleared texts.")
    ]
    of: Annotated[Count, Meta(description="How many items there are.")]
    items: Annotated[
        list[JudgedItem], Meta(description="Empty if nothing was retrieved or answered, so that nothing was judged.")
    ]


class TaskReport(Struct, frozen=True, kw_only=True):
    """What a judge said at one task, and how far it can be relied on."""

    task: Task
    metric: Annotated[
        str | None, Meta(description="The key of the metric that the judgments give; null for what rules flagged.")
    ]
    label: str
    judgments: Annotated[Count, Meta(description="How many judgments are used.")]
    unjudged: Annotated[Count, Meta(description="How many flagged texts have no verdict.")]
    why_not: Annotated[
        list[str],
        Meta(description="Why the judgments do not count; empty if they do, or if nothing depends on them."),
    ]
    kappa: Annotated[
        float | None,
        Meta(description="The judge's agreement with people beyond chance; null without a calibration of this judge."),
    ]
    kappa_low: Annotated[float | None, Meta(description="The lower end of the 90 % interval of kappa.")]
    mean: Annotated[float | None, Meta(description="The mean by the judge, which limits are on.")]
    estimate: Annotated[
        float | None,
        Meta(
            description="The mean that people would give, estimated by Rogan and Gladen from the mean and from how "
            "often the judge is right; for information only."
        ),
    ]
    queries: Annotated[
        list[JudgedQuery],
        Meta(description="The judged queries; of more than 10,000, those with an item that did not pass."),
    ]


class JudgeReport(Struct, frozen=True, kw_only=True):
    """What a judge said, replayed from judgments files, and what the judgments that are used cost when they were made.

    The costs are calls, tokens as billed, and money.
    """

    models: Annotated[list[str], Meta(description="As they answered.")]
    fingerprints: Annotated[list[str], Meta(description="What a calibration must have been made with.")]
    judgments: Annotated[Count, Meta(description="How many judgments are used.")]
    unused: Annotated[
        Count, Meta(description="How many are not used: on other texts or queries, by other judges, or not needed.")
    ]
    without_verdict: Annotated[
        dict[str, Count], Meta(description="How many judgments in the files have no verdict, by the reason.")
    ]
    oldest: Annotated[str | None, Meta(description="The time of the oldest judgment that is used.")]
    newest: Annotated[str | None, Meta(description="The time of the newest judgment that is used.")]
    cached: Annotated[Count, Meta(description="How many were known already when the newest were asked for.")]
    calls: Count
    retried: Annotated[Count, Meta(description="How many calls were sent again.")]
    compromised: Annotated[
        Count, Meta(description="How many replies had wrong controls, so that nothing in them counts.")
    ]
    tokens_in: Count
    tokens_out: Count
    usd: Annotated[float | None, Meta(description="Null if no prices are known for any of them.")]
    tasks: list[TaskReport]
