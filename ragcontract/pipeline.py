"""What rag-contract does, on one screen: load → evaluate → decide → report. Start here.

Files are read in the first two stages; what follows is pure. The clock, the sources and the registry are handed in.
"""

import logging
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from msgspec import Struct

from ragcontract.contract.config_file import read_config
from ragcontract.contract.golden_file import read_golden
from ragcontract.contract.resolve import Contract, resolve
from ragcontract.evaluation.aggregates import aggregate
from ragcontract.evaluation.source import Source
from ragcontract.files.opening import Progress, no_progress
from ragcontract.files.problems import Problems
from ragcontract.judging.decision import Decision, decide
from ragcontract.judging.evaluated import Evaluation
from ragcontract.judging.unjudgeable import unjudgeable
from ragcontract.registry import BUILT_IN, Registry
from ragcontract.reports.build import report_of
from ragcontract.reports.queries import query_reports
from ragcontract.reports.report import Detail, Provenance, QueryReport, Report

log = logging.getLogger(__name__)


class Request(Struct, frozen=True, kw_only=True):
    """What is asked for. Sources are named here, and read later.

    With ``repeats`` a run may have several rows a query. Without ``judge`` nothing is limited: the run is only
    measured. ``store`` wants a run that is fit to become a baseline, with its document ids. ``detail`` is what
    report.json lists, by default what suits the number of queries; ``source`` is where the report comes from.
    """

    golden: Sequence[str]
    run: Source
    baseline: Source | None = None
    config: str | None = None
    k: int | None = None
    repeats: bool = False
    judge: bool = True
    store: bool = False
    detail: Detail | None = None
    source: Provenance | None = None
    progress: Progress = no_progress


class Outcome(Struct, frozen=True, kw_only=True):
    """What came of it. The report itself lists fewer queries of a large set than ``detail`` may ask for."""

    report: Report
    evaluation: Evaluation
    decision: Decision
    detail: Detail

    def queries(self) -> Iterator[QueryReport]:
        """Return the queries that report.json lists, made again each time: many are not held for one file."""
        if self.detail == self.report.detail:
            return iter(self.report.queries)
        return query_reports(self.evaluation, self.decision, self.detail)


def check(request: Request, *, now: datetime, registry: Registry = BUILT_IN) -> Outcome:
    """Judge a run against its contract.

    Raises :class:`~ragcontract.core.errors.InputError` with all problems of all inputs where it cannot be judged.
    """
    contract = load(request, registry)
    log.debug("loaded: %d golden queries, %d gates", len(contract.queries), len(contract.gates))
    evaluation = evaluate(contract, request)
    log.debug("evaluated: %d queries of the run", len(evaluation.run.scores))
    problems = all_problems(evaluation, complete=request.store)
    problems.raise_if_any()
    decision = decide(evaluation, now.astimezone(UTC).date())
    log.debug("decided: %s, %d findings", decision.verdict, len(decision.findings))
    report = report_of(evaluation, decision, problems.warnings, now, source=request.source)
    return Outcome(report=report, evaluation=evaluation, decision=decision, detail=request.detail or report.detail)


def load(request: Request, registry: Registry) -> Contract:
    """Read config and golden files; resolve metrics, rules and gates. What is wrong is in the contract's problems."""
    config_file = read_config(request.config, registry, k=request.k)
    golden = read_golden(request.golden, registry, request.progress)
    contract = resolve(golden, config_file, registry, has_baseline=request.baseline is not None)
    return contract if request.judge else contract.without_limits()


def evaluate(contract: Contract, request: Request) -> Evaluation:
    """Fold both sides by the same plan, row by row, and average. Sources do the reading, here or on a cluster."""
    plan = contract.plan(repeats=request.repeats, keep_ids=request.store)
    run = request.run.evaluate(plan)
    baseline = request.baseline.evaluate(plan.for_baseline()) if request.baseline else None
    aggregates = aggregate(plan, run, baseline)
    return Evaluation(contract=contract, run=run, baseline=baseline, aggregates=aggregates)


def all_problems(evaluation: Evaluation, *, complete: bool = False) -> Problems:
    """Return everything that is wrong with all inputs, and all warnings: contract, limits, run, baseline, together."""
    contract = evaluation.contract
    sides = [evaluation.run, *([evaluation.baseline] if evaluation.baseline else [])]
    of_sides = sum((side.problems for side in sides), Problems())
    return contract.problems + contract.limit_problems + of_sides + unjudgeable(evaluation, complete=complete)
