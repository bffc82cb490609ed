"""The whole flow of a check: load → evaluate → decide → report. Start reading here.

Only the first two stages read files; the rest is pure. The clock, the sources and the registry are arguments.
"""

import logging
from collections.abc import Iterator, Mapping
from datetime import datetime

from msgspec import Struct

from ragcontract.contract.config_file import read_config
from ragcontract.contract.golden_file import read_golden
from ragcontract.contract.resolve import Contract, resolve
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.ids import as_id
from ragcontract.core.run import RunRow
from ragcontract.decision.decide import Decision, decide
from ragcontract.decision.evaluated import Evaluation, evaluate
from ragcontract.decision.input_problems import all_problems
from ragcontract.evaluation.source import Inputs, Source, passages
from ragcontract.registry import BUILT_IN, Registry
from ragcontract.report.build import report_of
from ragcontract.report.formats import ANSWERED
from ragcontract.report.queries import query_reports
from ragcontract.report.record import Detail, Provenance, QueryReport, Report

__all__ = ["Inputs", "Outcome", "check", "load"]
log = logging.getLogger(__name__)


class Outcome(Struct, frozen=True, kw_only=True):
    """The result of a check."""

    report: Report  # of a large set, it may list fewer queries than ``detail`` asks for
    evaluation: Evaluation
    decision: Decision
    detail: Detail
    run: Source  # the source that was checked
    baseline: Source | None
    shows_answers: bool  # false if no output may have texts of the application or of its documents

    def queries(self) -> Iterator[QueryReport]:
        """Return the queries that report.json lists. Each call computes them again, to save memory."""
        if self.detail == self.report.detail:
            return iter(self.report.queries)
        return query_reports(self.evaluation, self.decision, self.detail)

    def passages(self) -> Mapping[str, Mapping[str, str]]:
        """Return the texts of documents that entered or left the top k of broken queries; none without answers.

        Each call reads the run again, and the baseline if it is a run.
        """
        if not self.shows_answers:
            return {}
        moved: dict[str, set[str]] = {}
        for query in self.report.queries:
            if query.retrieved is not None and query.baseline_retrieved is not None:
                now, then = ({result.doc_id for result in side} for side in (query.retrieved, query.baseline_retrieved))
                if now != then:
                    moved[query.id] = now ^ then
        texts = passages(self.run, self.evaluation.run, moved)
        if self.baseline and self.evaluation.baseline:
            for query_id, before in passages(self.baseline, self.evaluation.baseline, moved).items():
                texts[query_id] = before | texts.get(query_id, {})
        return texts

    def answered(self) -> Iterator[tuple[GoldenQuery, RunRow | None]]:
        """Return each query with its first row: those with a row in the order of the run, then those without one.

        Each call reads the run again.
        """
        waiting = dict(self.evaluation.contract.queries)
        for row in self.run.rows(ANSWERED):
            if query := waiting.pop(as_id(row.query_id), None):
                yield query, row
        yield from ((query, None) for query in waiting.values())


def check(
    inputs: Inputs,
    *,
    now: datetime,
    registry: Registry = BUILT_IN,
    detail: Detail | None = None,
    source: Provenance | None = None,
    tests_all: bool = False,
    contract: Contract | None = None,
) -> Outcome:
    """Check a run against its contract, which is loaded unless it is known.

    ``detail`` says which queries report.json lists; the default depends on their number. ``source`` is the origin of
    the report. ``tests_all`` says whether changes without a limit are tested as well. Raises
    :class:`~ragcontract.core.errors.InputError` with all problems of all inputs if it cannot be judged.
    """
    contract = contract or load(inputs, registry)
    log.debug("loaded: %d golden queries, %d gates", len(contract.queries), len(contract.gates))
    evaluation = evaluate(contract, inputs, now)
    log.debug("evaluated: %d queries of the run", evaluation.run.queries)
    problems = all_problems(evaluation, inputs, now)
    problems.raise_if_any()
    decision = decide(evaluation, now)
    log.debug("decided: %s, %d findings", decision.verdict, len(decision.findings))
    report = report_of(evaluation, decision, problems.warnings, now, source=source, tests_all=tests_all)
    return Outcome(
        report=report,
        evaluation=evaluation,
        decision=decision,
        detail=detail or report.detail,
        run=inputs.sources()[0],
        baseline=inputs.sources()[1],
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
