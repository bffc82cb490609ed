"""The whole flow of a check: load → evaluate → decide → report. Start reading here.

Only the first two stages read files; the rest is pure. The clock, the sources and the registry are arguments.
"""

import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.contract.config_file import read_config
from ragcontract.contract.golden_file import read_golden
from ragcontract.contract.resolve import Contract, resolve
from ragcontract.core.run import SCORED_BY
from ragcontract.decision.decide import Decision, decide
from ragcontract.decision.evaluated import Evaluation
from ragcontract.decision.input_problems import input_problems
from ragcontract.evaluation.aggregates import aggregate
from ragcontract.evaluation.check_inputs import Inputs, of_judge
from ragcontract.evaluation.plan import plan_for
from ragcontract.evaluation.side import Side
from ragcontract.evaluation.source import Source, evaluate_sides, file_of_both
from ragcontract.files.mistaken import without_swapped
from ragcontract.files.problems import Problems
from ragcontract.registry import BUILT_IN, Registry
from ragcontract.report.build import report_of
from ragcontract.report.formats import ReportCase
from ragcontract.report.queries import query_reports
from ragcontract.report.record import Detail, Provenance, QueryReport, Report

if TYPE_CHECKING:
    from ragcontract.judgments.check import Replayed

__all__ = ["Inputs", "Outcome", "check", "evaluate", "load", "with_judgments"]
log = logging.getLogger(__name__)


class Outcome(Struct, frozen=True, kw_only=True):
    """The result of a check."""

    report: Report  # of a large set, it may list fewer queries than ``detail`` asks for
    evaluation: Evaluation
    decision: Decision
    detail: Detail
    run: Source  # the source that was checked
    shows_answers: bool  # false if no output may have texts of the application or of its documents

    def queries(self) -> Iterator[QueryReport]:
        """Return the queries that report.json lists. Each call computes them again, to save memory."""
        if self.detail == self.report.detail:
            return iter(self.report.queries)
        return query_reports(self.evaluation, self.decision, self.detail)

    def cases(self) -> Iterator[ReportCase]:
        """Return the answer to each query. Each call reads the run again."""
        from ragcontract.report.report_v2 import ANSWERED, cases

        return cases(self.evaluation, self.decision, self.run.rows(ANSWERED))


def check(
    inputs: Inputs,
    *,
    now: datetime,
    registry: Registry = BUILT_IN,
    detail: Detail | None = None,
    source: Provenance | None = None,
) -> Outcome:
    """Check a run against its contract.

    ``detail`` says which queries report.json lists; the default depends on their number. ``source`` is the origin of
    the report. Raises :class:`~ragcontract.core.errors.InputError` with all problems of all inputs if it cannot be
    judged.
    """
    contract, replayed = with_judgments(load(inputs, registry), inputs, now)
    log.debug("loaded: %d golden queries, %d gates", len(contract.queries), len(contract.gates))
    evaluation = evaluate(contract, inputs, replayed)
    evaluation = replace(evaluation, replayed=replayed and _trusted(replayed, evaluation, inputs, now))
    log.debug("evaluated: %d queries of the run", evaluation.run.queries)
    problems = all_problems(evaluation, complete=inputs.store)
    if inputs.decides and inputs.gates and not problems:
        problems += _compared_with_itself(evaluation)
    problems.raise_if_any()
    decision = decide(evaluation, now.astimezone(UTC).date())
    log.debug("decided: %s, %d findings", decision.verdict, len(decision.findings))
    report = report_of(evaluation, decision, problems.warnings, now, source=source)
    return Outcome(
        report=report,
        evaluation=evaluation,
        decision=decision,
        detail=detail or report.detail,
        run=inputs.sources()[0],
        shows_answers=not inputs.no_answers,
    )


def load(inputs: Inputs, registry: Registry = BUILT_IN) -> Contract:
    """Read config and golden files and resolve metrics, rules and gates; problems are collected in the contract."""
    config_file = read_config(inputs.config, registry, k=inputs.k, others=inputs.other_configs)
    config = config_file.config
    level, own = config.relevance_level, config.allow_fields
    golden = read_golden(inputs.golden, registry, inputs.progress, level=level, allow_fields=own)
    awaited = inputs.awaits_baseline and inputs.baseline is None
    has_baseline = awaited or inputs.baseline is not None
    contract = resolve(golden, config_file, registry, has_baseline=has_baseline, tags=inputs.tags)
    contract = contract.without_comparisons() if awaited else contract
    contract = contract.with_plugins(inputs.plugins)
    if not inputs.decides:
        return contract.without_limits()
    return contract if inputs.gates else contract.without_gates()


def with_judgments(contract: Contract, inputs: Inputs, now: datetime) -> tuple[Contract, "Replayed | None"]:
    """Return the contract with its judgments replayed. The second value is None if it needs none and has none."""
    if not inputs.replays:
        return contract.without_judged_metrics(), None
    inputs, unused = of_judge(inputs, needed=contract.needs_judgments)
    contract = replace(contract, problems=contract.problems + unused)
    second_pass = contract.config.judge.second_pass and bool(contract.rules)
    if not (inputs.judgments or inputs.calibration or second_pass or any(metric.task for metric in contract.metrics)):
        return contract, None
    from ragcontract.judgments.check import replayed_contract

    contract, replayed = replayed_contract(
        contract,
        inputs.judgments,
        inputs.calibration,
        now,
        inputs.progress,
        stored=inputs.store and inputs.decides,
    )
    if inputs.no_answers:  # judgments quote answers and documents
        replayed = replace(replayed, problems=_without_values(replayed.problems))
    return contract, replayed


def _trusted(replayed: "Replayed", evaluation: Evaluation, inputs: Inputs, now: datetime) -> "Replayed":
    """Return the judgments that an evaluated run used, with the decision whether limits on them count."""
    from ragcontract.judgments.check import of_run, with_trust, without_words

    replayed = of_run(replayed)
    stored = evaluation.baseline is not None and evaluation.baseline.stored is not None
    replayed = without_words(replayed) if inputs.no_answers else replayed
    return with_trust(replayed, evaluation.contract, now, stored=stored)


def evaluate(contract: Contract, inputs: Inputs, replayed: "Replayed | None" = None) -> Evaluation:
    """Score both sides row by row with the same plan, and average. The sources read the rows, here or on a cluster."""
    plan = plan_for(contract, repeats=inputs.repeats, keep_ids=inputs.store, texts=not inputs.no_answers)
    if replayed:
        plan = replace(plan, second_pass=replayed.second_pass, noted=tuple(replayed.by_task.values()))
    scores_files = None
    if inputs.scores:
        from ragcontract.runs.scores_files import read_scores

        scores_files = read_scores(inputs.scores, plan.wanted_scores, inputs.progress)
        plan = replace(plan, scores_files=scores_files)
    run, baseline = evaluate_sides(plan, *inputs.sources())
    if scores_files and scores_files.scored_by:
        run = replace(run, versions={**run.versions, SCORED_BY: list(scores_files.scored_by)})
    if inputs.no_answers:
        run, baseline = without_texts(run), baseline and without_texts(baseline)
        if scores_files:  # reasons quote answers
            scores_files = replace(scores_files, reasons={}, problems=_without_values(scores_files.problems))
    aggregates = aggregate(plan, run, baseline)
    return Evaluation(contract=contract, run=run, baseline=baseline, aggregates=aggregates, scores_files=scores_files)


def without_texts(side: Side) -> Side:
    """Return the side with problems that quote no value of its rows."""
    return replace(side, problems=_without_values(side.problems))


def _without_values(problems: Problems) -> Problems:
    from ragcontract.files.problems import without_values

    return without_values(problems)


def all_problems(evaluation: Evaluation, *, complete: bool = False) -> Problems:
    """Return all problems and warnings of all inputs: contract, limits, run and baseline."""
    contract = evaluation.contract
    sides = [evaluation.run, *([evaluation.baseline] if evaluation.baseline else [])]
    of_rows = sum(
        (side.problems for side in sides), evaluation.scores_files.problems if evaluation.scores_files else Problems()
    )
    of_files = without_swapped(contract.problems + contract.limit_problems + of_rows)
    return of_files + _of_judge(evaluation) + input_problems(evaluation, complete=complete)


def _compared_with_itself(evaluation: Evaluation) -> Problems:
    """Report a baseline that is the run itself, so that no limit on a change could ever be broken."""
    if path := file_of_both(evaluation.run, evaluation.baseline):
        why = "is the run itself, so that nothing could ever have got worse; name a run that is known to be good"
        return Problems(problems=(f"{path}: the baseline {why}",))
    return Problems()


def _of_judge(evaluation: Evaluation) -> Problems:
    """Report what is wrong with the judgments that the run used, and a judge that cannot be relied on."""
    replayed = evaluation.replayed
    if replayed is None or evaluation.run.problems or replayed.problems.problems:
        return replayed.problems if replayed else Problems()
    from ragcontract.judgments.check import cleared, not_calibrated

    return replayed.problems + cleared(replayed, evaluation.contract) + not_calibrated(replayed, evaluation.contract)
