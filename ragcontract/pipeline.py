"""The whole flow of a check: load → evaluate → decide → report. Start reading here.

Only the first two stages read files; the rest is pure. The clock, the sources and the registry are arguments.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.contract.config_file import read_config
from ragcontract.contract.golden_file import read_golden
from ragcontract.contract.resolve import Contract, resolve
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.ids import as_id
from ragcontract.core.rule import Plugin
from ragcontract.core.run import SCORED_BY, RunRow
from ragcontract.decision.decide import Decision, decide
from ragcontract.decision.evaluated import Evaluation
from ragcontract.decision.input_problems import input_problems
from ragcontract.evaluation.aggregates import aggregate
from ragcontract.evaluation.plan import plan_for
from ragcontract.evaluation.side import Side
from ragcontract.evaluation.source import Source, evaluate_sides, file_of_both
from ragcontract.files.mistaken import without_swapped
from ragcontract.files.opening import Progress, no_progress
from ragcontract.files.problems import Problems
from ragcontract.registry import BUILT_IN, Registry
from ragcontract.report.build import report_of
from ragcontract.report.formats import ANSWERED
from ragcontract.report.queries import query_reports
from ragcontract.report.record import Detail, Provenance, QueryReport, Report

if TYPE_CHECKING:
    from ragcontract.judgments.check import Replayed

log = logging.getLogger(__name__)


class Request(Struct, frozen=True, kw_only=True):
    """The inputs and options of a check. The sources are read later."""

    golden: Sequence[str]
    run: Source
    baseline: Source | None = None
    scores: Sequence[str] = ()  # scores files for the run
    judgments: Sequence[str] = ()  # judgments files
    calibration: str | None = None  # the file that says how well the judge agrees with people
    config: str | None = None
    other_configs: Sequence[str] = ()  # files that nobody named, but that may be meant as the configuration
    k: int | None = None
    tags: Sequence[str] = ()  # if any: only golden queries with one of them and the limits of these tags are checked
    repeats: bool = False  # a run may have several rows per query
    decides: bool = True  # if false, the run is only measured, without rules or limits
    gates: bool = True  # if false, only the rules decide
    store: bool = False  # the run must be able to become a baseline, and its document ids are kept
    detail: Detail | None = None  # which queries report.json lists; the default depends on their number
    source: Provenance | None = None  # the origin of the report
    awaits_baseline: bool = False  # while there is no baseline, limits that need one are left out
    plugins: Mapping[str, Plugin] = {}  # objects for the rule ``custom``, by class name
    no_answers: bool = False  # no output has a text of the application or of its documents
    replays: bool = True  # if false, judgments are ignored, with the metrics, limits and second pass that need them
    progress: Progress = no_progress


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

    def answered(self) -> Iterator[tuple[GoldenQuery, RunRow | None]]:
        """Return each query with its first row: those with a row in the order of the run, then those without one.

        Each call reads the run again.
        """
        waiting = dict(self.evaluation.contract.queries)
        for row in self.run.rows(ANSWERED):
            if query := waiting.pop(as_id(row.query_id), None):
                yield query, row
        yield from ((query, None) for query in waiting.values())


def check(request: Request, *, now: datetime, registry: Registry = BUILT_IN) -> Outcome:
    """Check a run against its contract.

    Raises :class:`~ragcontract.core.errors.InputError` with all problems of all inputs if it cannot be judged.
    """
    contract, replayed = with_judgments(load(request, registry), request, now)
    log.debug("loaded: %d golden queries, %d gates", len(contract.queries), len(contract.gates))
    evaluation = evaluate(contract, request, replayed)
    evaluation = replace(evaluation, replayed=replayed and _trusted(replayed, evaluation, request, now))
    log.debug("evaluated: %d queries of the run", evaluation.run.queries)
    problems = all_problems(evaluation, complete=request.store)
    if request.decides and request.gates and not problems:
        problems += _compared_with_itself(evaluation)
    problems.raise_if_any()
    decision = decide(evaluation, now.astimezone(UTC).date())
    log.debug("decided: %s, %d findings", decision.verdict, len(decision.findings))
    report = report_of(evaluation, decision, problems.warnings, now, source=request.source)
    return Outcome(
        report=report,
        evaluation=evaluation,
        decision=decision,
        detail=request.detail or report.detail,
        run=request.run,
        shows_answers=not request.no_answers,
    )


def load(request: Request, registry: Registry = BUILT_IN) -> Contract:
    """Read config and golden files and resolve metrics, rules and gates; problems are collected in the contract."""
    config_file = read_config(request.config, registry, k=request.k, others=request.other_configs)
    config = config_file.config
    level, own = config.relevance_level, config.allow_fields
    golden = read_golden(request.golden, registry, request.progress, level=level, allow_fields=own)
    awaited = request.awaits_baseline and request.baseline is None
    has_baseline = awaited or request.baseline is not None
    contract = resolve(golden, config_file, registry, has_baseline=has_baseline, tags=request.tags)
    contract = contract.without_comparisons() if awaited else contract
    contract = contract.with_plugins(request.plugins)
    if not request.decides:
        return contract.without_limits()
    return contract if request.gates else contract.without_gates()


def with_judgments(contract: Contract, request: Request, now: datetime) -> tuple[Contract, "Replayed | None"]:
    """Return the contract with its judgments replayed. The second value is None if it needs none and has none."""
    if not request.replays:
        return contract.without_judged_metrics(), None
    second_pass = contract.config.judge.second_pass and bool(contract.rules)
    if not (request.judgments or request.calibration or second_pass or any(metric.task for metric in contract.metrics)):
        return contract, None
    from ragcontract.judgments.check import replayed_contract

    contract, replayed = replayed_contract(
        contract,
        request.judgments,
        request.calibration,
        now,
        request.progress,
        stored=request.store and request.decides,
    )
    if request.no_answers:  # judgments quote answers and documents
        replayed = replace(replayed, problems=_without_values(replayed.problems))
    return contract, replayed


def _trusted(replayed: "Replayed", evaluation: Evaluation, request: Request, now: datetime) -> "Replayed":
    """Return the judgments that an evaluated run used, with the decision whether limits on them count."""
    from ragcontract.judgments.check import of_run, with_trust, without_words

    replayed = of_run(replayed)
    stored = evaluation.baseline is not None and evaluation.baseline.stored is not None
    replayed = without_words(replayed) if request.no_answers else replayed
    return with_trust(replayed, evaluation.contract, now, stored=stored)


def evaluate(contract: Contract, request: Request, replayed: "Replayed | None" = None) -> Evaluation:
    """Score both sides row by row with the same plan, and average. The sources read the rows, here or on a cluster."""
    plan = plan_for(contract, repeats=request.repeats, keep_ids=request.store, texts=not request.no_answers)
    if replayed:
        plan = replace(plan, second_pass=replayed.second_pass, noted=tuple(replayed.by_task.values()))
    scores_files = None
    if request.scores:
        from ragcontract.runs.scores_files import read_scores

        scores_files = read_scores(request.scores, plan.wanted_scores, request.progress)
        plan = replace(plan, scores_files=scores_files)
    run, baseline = evaluate_sides(plan, request.run, request.baseline)
    if scores_files and scores_files.scored_by:
        run = replace(run, versions={**run.versions, SCORED_BY: list(scores_files.scored_by)})
    if request.no_answers:
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
