"""Builds the report from an evaluation and a decision, with the note on labels that may be missing."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from ragcontract.core.finding import Finding, sentence
from ragcontract.core.numbers import percent
from ragcontract.core.phrase import Name, Phrase
from ragcontract.core.safe_text import encodable
from ragcontract.core.version import __version__
from ragcontract.decision.causes import Cause, causes_of
from ragcontract.decision.contract_changes import contract_changes
from ragcontract.decision.decide import Decision
from ragcontract.decision.evaluated import Evaluation
from ragcontract.decision.gate_report import NOT_HELD, GateReport, worst
from ragcontract.decision.gates import noise_of_metrics, p_values_of_tags
from ragcontract.decision.run_notes import likely_mistakes, run_notes
from ragcontract.evaluation.observations import Depths, RepeatedResults, UnknownQueries, Versions
from ragcontract.evaluation.side import Side
from ragcontract.report.headline import as_warning, summary_of
from ragcontract.report.parts import (
    BaselineInput,
    ConfigInput,
    GoldenInput,
    Inputs,
    JudgeReport,
    JudgmentsInput,
    RunInput,
    ScoresInput,
    labels_of,
    modes_of,
    pass_rate_of,
    shown_files,
    tiers_of,
)
from ragcontract.report.queries import broken_queries_of, query_reports, usual_detail
from ragcontract.report.record import (
    ErrorReport,
    FailedCheck,
    LatencyReport,
    MetricReport,
    Provenance,
    Report,
    ScopeReport,
    TagReport,
    least_overlap,
)
from ragcontract.runs.baseline_file import Tool
from ragcontract.statistics.means import RepeatsReport, spread

TOOL = Tool(name="rag-contract", version=__version__)
ALL = 0.005  # the share of unjudged documents up to which all are judged, when rounded to percent
LIMIT = "minimums.judged_at_k"
COMMAND = "rag-contract unjudged"


def report_of(
    evaluation: Evaluation,
    decision: Decision,
    warnings: Sequence[str],
    now: datetime,
    *,
    source: Provenance | None = None,
    tests_all: bool = False,
) -> Report:
    """Build the report. ``now`` needs a time zone. A report on up to 10,000 golden queries lists all of them.

    ``tests_all`` says whether changes without a limit are tested as well. In the modes of ``fail_on`` that decide by
    tests, they always are.
    """
    contract, detail = evaluation.contract, usual_detail(evaluation)
    mistakes = list(likely_mistakes(evaluation))
    all_warnings = [*map(as_warning, mistakes), *warnings, *decision.warnings, *_about_age(evaluation, now)]
    only_limited = not tests_all and decision.tests.mode == "strict"
    metrics = _metrics(evaluation, decision, only_limited=only_limited)
    report = Report(
        tool=TOOL,
        verdict=decision.verdict,
        k=sorted(contract.config_file.cutoffs),
        created_at=now.isoformat(timespec="seconds"),
        inputs=_inputs(evaluation, now),
        metrics=metrics,
        gates=list(decision.gates),
        detail=detail,
        queries=list(query_reports(evaluation, decision, detail)),
        broken=broken_queries_of(evaluation, decision),
        failed_checks=[check for finding in decision.findings for check in _failed_checks(finding)],
        tags=_tags(evaluation, decision, only_limited=only_limited),
        warnings=[encodable(warning) for warning in all_warnings],
        latency=_latency(evaluation),
        repeats=_repeats(evaluation),
        findings=list(decision.findings),
        scope=_scope(evaluation),
        pass_rate=pass_rate_of(decision),
        tiers=tiers_of(evaluation, decision) or UNSET,
        modes=modes_of(evaluation),
        labels=labels_of(evaluation),
        judge=_judge(evaluation, decision),
        likely_mistakes=mistakes,
        run_notes=list(run_notes(evaluation)),
        least_overlap=UNSET if contract.overlap is None else least_overlap(evaluation),
        causes=_causes(evaluation, decision, mistakes),
        label_notes=list(label_notes(metrics, decision.gates, contract.k, skips=contract.config.unjudged == "skip")),
        source=source,
    )
    return replace(report, summary_line=summary_of(report))


def _causes(evaluation: Evaluation, decision: Decision, mistakes: Sequence[Phrase]) -> list[Cause]:
    """Return the probable causes of what is new and broken, or over its limit; none if nothing is."""
    statuses = NOT_HELD | {"counted"}
    is_worse = any(finding.status in statuses and not finding.in_baseline for finding in decision.findings)
    return causes_of(evaluation, decision.gates, has_mistakes=bool(mistakes)) if is_worse else []


def error_report(
    problems: Sequence[str], more: int, warnings: Sequence[str], now: datetime, source: Provenance | None = None
) -> ErrorReport:
    """Build the report on input that cannot be judged; ``more`` counts the problems that are not listed."""
    report = ErrorReport(
        tool=TOOL,
        created_at=now.isoformat(timespec="seconds"),
        problems=[encodable(problem) for problem in problems],
        more_problems=more,
        warnings=[encodable(warning) for warning in warnings],
        source=source,
    )
    return replace(report, summary_line=summary_of(report))


def _failed_checks(finding: Finding) -> Iterator[FailedCheck]:
    if finding.status == "fail":
        message = sentence(finding)
        for name in finding.ids:
            yield FailedCheck(
                kind=finding.kind,
                id=name,
                query_id=finding.query_id,
                message=message,
                in_baseline=finding.in_baseline,
            )


def _repeats(evaluation: Evaluation) -> RepeatsReport | None:
    run, contract = evaluation.run, evaluation.contract
    if not any(score.repeats for score in run.scores.values()):
        return None
    spreads = []
    for number, family in enumerate(evaluation.aggregates.families):
        values = dict(zip(contract.queries, run.values(number, contract.queries), strict=True))
        having = [query for query in contract.queries.values() if values[query.id]]
        rows = {query.id: run.values_of_rows(number, query.id) for query in having}
        if of_family := spread(having, rows, family.metrics, run.rows.missing, run.rows.of_queries):
            spreads.append(of_family)
    if not spreads:
        return None
    metrics = {key: value for of_family in spreads for key, value in of_family.metrics.items()}
    return RepeatsReport(
        fewest=min(of_family.fewest for of_family in spreads),
        most=max(of_family.most for of_family in spreads),
        metrics=metrics,
    )


def _latency(evaluation: Evaluation) -> LatencyReport | None:
    if evaluation.run.latency is None:
        return None
    baseline = evaluation.baseline
    # A stored baseline has the latency of all queries only.
    comparable = baseline is not None and (evaluation.contract.scope is None or baseline.stored is None)
    before = baseline.latency if baseline and comparable else None
    return LatencyReport(current=evaluation.run.latency, baseline=before)


def _scope(evaluation: Evaluation) -> ScopeReport | None:
    scope = evaluation.contract.scope
    if scope is None:
        return None
    return ScopeReport(
        tags=list(scope.tags), queries_not_judged=list(scope.queries), gates_not_judged=list(scope.gates)
    )


def _judge(evaluation: Evaluation, decision: Decision) -> JudgeReport | UnsetType:
    if evaluation.judge is None:
        return UNSET
    from ragcontract.report.judged_items import judge_report

    return judge_report(evaluation, decision.distrusted) or UNSET


def _inputs(evaluation: Evaluation, now: datetime) -> Inputs:
    contract, run, baseline = evaluation.contract, evaluation.run, evaluation.baseline
    judged = evaluation.judge if evaluation.judge and evaluation.judge.files else None
    return Inputs(
        golden=GoldenInput(
            files=shown_files(contract.golden.files),
            queries=len(contract.queries),
            answerable=sum(group.count for group in evaluation.aggregates.families[0].groups if group.now),
        ),
        run=RunInput(
            files=shown_files(run.files),
            queries=run.queries,
            versions=run.observed(Versions),
            missing=list(run.rows.missing),
            unknown=list(run.observed(UnknownQueries).listed),
            duplicate_rate=run.observed(RepeatedResults).rate,
            depth=run.observed(Depths),
        ),
        baseline=_baseline_input(baseline, evaluation, now) if baseline else None,
        config=ConfigInput(files=shown_files(contract.config_file.files)) if contract.config_file.files else None,
        scores=ScoresInput(files=shown_files(evaluation.scores_files.files)) if evaluation.scores_files else None,
        judgments=JudgmentsInput(files=shown_files(judged.files), calibration=judged.calibration_path)
        if judged
        else None,
    )


def _baseline_input(baseline: Side, evaluation: Evaluation, now: datetime) -> BaselineInput:
    stored, max_age = baseline.stored, evaluation.contract.config.max_baseline_age
    age = _age(stored.head.created_at, now) if stored else None
    return BaselineInput(
        files=shown_files(baseline.files),
        queries=baseline.queries,
        runs=baseline.rows.runs,
        versions=baseline.observed(Versions),
        created_at=stored.head.created_at if stored else None,
        k=stored.head.k if stored else None,
        shared=len(baseline.scores),
        new=list(baseline.rows.missing),
        changed=list(baseline.rows.changed),
        gone=list(baseline.observed(UnknownQueries).listed),
        age_days=None if age is None else age.days,
        too_old=max_age is not None and age is not None and age / timedelta(days=1) > max_age,
        depth=baseline.observed(Depths),
        accepted=stored.head.accepted if stored else [],
        replaces=stored.head.replaces if stored else None,
        contract_changes=contract_changes(evaluation),
    )


def _age(created_at: str | None, now: datetime) -> timedelta | None:
    try:
        return None if created_at is None else now - datetime.fromisoformat(created_at)
    except (ValueError, TypeError):  # a hand-made baseline, or one without a time zone
        return None


def _about_age(evaluation: Evaluation, now: datetime) -> Iterator[str]:
    """Yield a warning if the age of the baseline is limited but unknown."""
    baseline = evaluation.baseline
    if baseline is None or evaluation.contract.config.max_baseline_age is None:
        return
    created_at = baseline.stored.head.created_at if baseline.stored else None
    if _age(created_at, now) is None:
        why = (
            "a run does not say when it was made"
            if created_at is None
            else f"created_at is {created_at!r}, which is not a date with a time zone"
        )
        yield f"{baseline.files[0].path}: its age is not known, so max_baseline_age has no effect ({why})"


def _metrics(evaluation: Evaluation, decision: Decision, *, only_limited: bool) -> dict[str, MetricReport]:
    aggregates = evaluation.aggregates
    noise = noise_of_metrics(aggregates, decision.tests, only_limited=only_limited)
    reports = {}
    for metric in evaluation.contract.metrics:
        compared = aggregates.comparisons[metric.key]
        reports[metric.key] = MetricReport(
            label=metric.label,
            current=compared.current,
            current_shared=compared.current_shared,
            baseline=compared.baseline,
            delta=compared.delta,
            status=worst([gate for gate in decision.gates if gate.metric == metric.key and gate.tag is None]),
            noise=noise.get(metric.key),
            k=metric.k,
            better=metric.better,
            scale=metric.scale,
            if_relevant=aggregates.if_relevant.get(metric.key, UNSET),
            diagnostic=metric.diagnostic or UNSET,
        )
    return reports


def _tags(evaluation: Evaluation, decision: Decision, *, only_limited: bool) -> dict[str, TagReport]:
    compared = evaluation.baseline is not None
    aggregates = evaluation.aggregates
    largest = [metric.key for metric in evaluation.contract.metrics_at_largest_k]
    p_values = p_values_of_tags(aggregates, decision.tests, largest, only_limited=only_limited)
    groups = aggregates.families[0].tags
    return {
        tag: TagReport(
            queries=sum(group.count for group in groups[tag]),
            shared=sum(group.count for group in groups[tag] if group.before is not None) if compared else None,
            metrics={key: mean.current for key, mean in means.items()},
            metrics_shared={key: mean.current_shared for key, mean in means.items()} if compared else None,
            baseline_metrics={key: mean.baseline for key, mean in means.items()} if compared else None,
            p_values=p_values.get(tag, {}),
        )
        for tag, means in aggregates.tags.items()
    }


def label_notes(
    metrics: Mapping[str, MetricReport], gates: Sequence[GateReport], k: int, *, skips: bool
) -> Iterator[Phrase]:
    """Yield a note if the configuration ``skips`` documents that nobody has judged, and nothing limits their share.

    Limits on ranking metrics do not see them then. ``k`` is the largest cut-off.
    """
    judged = metrics.get(f"judged_at_{k}")
    if not skips or judged is None or judged.current is None or judged.current >= 1 - ALL:
        return
    if _without_limit(metrics, gates):
        share = f"{percent(1 - judged.current, 0)} of the top {k} are documents that nobody has judged"
        left_out = f"{share}, and ranking metrics leave them out (unjudged: skip); limit "
        yield (left_out, Name(LIMIT), ", or judge them: ", Name(COMMAND), " lists them")


def _without_limit(metrics: Mapping[str, MetricReport], gates: Iterable[GateReport]) -> bool:
    """Return whether a ranking metric with a limit leaves documents out, and nothing limits their share."""
    limited = {gate.metric: metrics[gate.metric] for gate in gates if gate.metric in metrics}
    return not any(key.startswith("judged_at_") for key in limited) and any(
        metric.k is not None and metric.diagnostic is UNSET and metric.if_relevant is UNSET
        for metric in limited.values()
    )
