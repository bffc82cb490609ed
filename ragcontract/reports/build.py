"""From a judgement to the report that every renderer reads."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial

from msgspec import Struct

from ragcontract import __version__
from ragcontract.core.text import encodable
from ragcontract.evaluation.scored import Scored, ScoredBaseline
from ragcontract.judging.gates import worst
from ragcontract.judging.verdict import Judgement
from ragcontract.judging.words import told
from ragcontract.model import (
    BaselineInput,
    ConfigInput,
    Detail,
    FailedCheck,
    GateReport,
    GoldenInput,
    Inputs,
    LatencyReport,
    MetricReport,
    QueryReport,
    RepeatsReport,
    Report,
    RunInput,
    SourceFile,
    TagReport,
    Tool,
)
from ragcontract.reports.queries import query_reports, usual_detail
from ragcontract.statistics.aggregate import Comparison, Group, by_tag, compare, noise_of
from ragcontract.statistics.repeats import spread
from ragcontract.statistics.significance import benjamini_hochberg


class Checked(Struct, frozen=True, kw_only=True):
    """A report, and the ``queries`` of the ``detail`` that ``report.json`` is to have: made anew each time, one by one.

    The report itself lists all of up to 10,000 queries, and of more those that broke a rule or changed.
    """

    report: Report
    detail: Detail
    queries: Callable[[], Iterable[QueryReport]]

    @classmethod
    def of(cls, report: Report) -> "Checked":
        """List what the report itself lists."""
        return cls(report=report, detail=report.detail, queries=lambda: report.queries)


TOOL = Tool(name="rag-contract", version=__version__)


def checked(
    scored: Scored, judgement: Judgement, warnings: list[str], now: datetime, detail: Detail | None = None
) -> Checked:
    """Build the report, and have ``report.json`` list the queries of this ``detail``, or of the report's own."""
    report = build_report(scored, judgement, warnings, now)
    if detail is None or detail == report.detail:
        return Checked.of(report)
    return Checked(report=report, detail=detail, queries=partial(query_reports, scored, judgement, detail))


def build_report(scored: Scored, judgement: Judgement, warnings: list[str], now: datetime) -> Report:
    """Bring scores and judgement together; ``now`` is when, with its time zone."""
    detail = usual_detail(scored)
    queries = list(query_reports(scored, judgement, detail))
    return Report(
        tool=TOOL,
        verdict=judgement.verdict,
        k=sorted({metric.k for metric in scored.metrics}),
        created_at=now.isoformat(timespec="seconds"),
        inputs=_inputs(scored, now),
        metrics=_metrics(scored, judgement),
        gates=judgement.gates,
        detail=detail,
        queries=queries,
        failed_checks=_failed_checks(judgement.gates, queries),
        tags=_tags(scored),
        warnings=[encodable(warning) for warning in [*warnings, *_about_age(scored, now)]],
        latency=_latency(scored),
        repeats=_repeats(scored),
    )


def _repeats(scored: Scored) -> RepeatsReport | None:
    run = scored.run
    return spread(scored.golden.queries.values(), run.scores, scored.metrics, run.missing, run.rows)


def _latency(scored: Scored) -> LatencyReport | None:
    if scored.run.latency is None:
        return None
    return LatencyReport(current=scored.run.latency, baseline=scored.baseline.latency if scored.baseline else None)


def _inputs(scored: Scored, now: datetime) -> Inputs:
    golden, run, baseline, config = scored.golden, scored.run, scored.baseline, scored.config
    return Inputs(
        golden=GoldenInput(
            files=_files(golden.files),
            queries=len(golden.queries),
            answerable=sum(kind.count for kind in scored.groups if kind.now),
        ),
        run=RunInput(
            files=_files(run.files),
            queries=len(run.scores) - len(run.missing) + len(run.unknown) + run.more_unknown,
            versions=run.versions,
            missing=run.missing,
            unknown=run.unknown,
            duplicate_rate=run.duplicates.rate,
        ),
        baseline=_baseline_input(baseline, config.config.max_baseline_age, now) if baseline else None,
        config=ConfigInput(files=_files(config.files)) if config.files else None,
    )


def _baseline_input(baseline: ScoredBaseline, max_age: int | None, now: datetime) -> BaselineInput:
    age = _age(baseline.created_at, now)
    return BaselineInput(
        files=_files(baseline.files),
        queries=baseline.queries,
        versions=baseline.versions,
        created_at=baseline.created_at,
        k=baseline.k,
        shared=len(baseline.scores),
        new=baseline.new,
        changed=baseline.changed,
        gone=baseline.gone,
        age_days=None if age is None else age.days,
        too_old=max_age is not None and age is not None and age > timedelta(days=max_age),
        accepted=list(baseline.accepted),
    )


def _age(created_at: str | None, now: datetime) -> timedelta | None:
    try:
        return None if created_at is None else now - datetime.fromisoformat(created_at)
    except (ValueError, TypeError):  # a hand-made baseline, or one without a time zone
        return None


def _about_age(scored: Scored, now: datetime) -> Iterator[str]:
    """Yield a warning where a baseline's age is limited and not known."""
    baseline = scored.baseline
    if baseline is None or scored.config.config.max_baseline_age is None:
        return
    if _age(baseline.created_at, now) is None:
        why = (
            "a run does not say when it was made"
            if baseline.created_at is None
            else f"created_at is {baseline.created_at!r}, which is no date with a time zone"
        )
        yield f"{baseline.files[0].path}: its age is not known, so max_baseline_age says nothing ({why})"


def _files(files: list[SourceFile]) -> list[SourceFile]:
    return [SourceFile(path=encodable(file.path), sha256=file.sha256) for file in files]


def _metrics(scored: Scored, judgement: Judgement) -> dict[str, MetricReport]:
    found = {}
    for metric in scored.metrics:
        compared = judgement.means[metric.key]
        found[metric.key] = MetricReport(
            label=metric.label,
            current=compared.current,
            current_shared=compared.current_shared,
            baseline=compared.baseline,
            delta=compared.delta,
            status=worst([gate for gate in judgement.gates if gate.metric == metric.key and gate.tag is None]),
            noise=judgement.noise.get(metric.key),
        )
    return found


def _failed_checks(gates: list[GateReport], queries: list[QueryReport]) -> list[FailedCheck]:
    broken_gates = [
        FailedCheck(kind="gate", id=gate.id, query_id=None, message=told(gate))
        for gate in gates
        if gate.status == "fail"
    ]
    broken_rules = [
        FailedCheck(kind="rule", id=violation.rule, query_id=query.id, message=violation.message)
        for query in queries
        if query.status == "fail"
        for violation in query.violations
        if violation.waived is None
    ]
    return broken_gates + broken_rules


def _tags(scored: Scored) -> dict[str, TagReport]:
    compared = scored.baseline is not None
    groups = by_tag(scored.groups)
    compared_tags = {tag: compare(tagged, scored.metrics) for tag, tagged in groups.items()}
    p_values = _p_values_of_tags(groups, compared_tags, scored)
    found = {}
    for tag, tagged in groups.items():
        means = compared_tags[tag]
        found[tag] = TagReport(
            queries=sum(group.count for group in tagged),
            metrics={key: mean.current for key, mean in means.items()},
            metrics_shared={key: mean.current_shared for key, mean in means.items()} if compared else None,
            baseline_metrics={key: mean.baseline for key, mean in means.items()} if compared else None,
            p_values=p_values.get(tag, {}),
        )
    return found


def _p_values_of_tags(
    groups: Mapping[str, list[Group]], compared: Mapping[str, Mapping[str, Comparison]], scored: Scored
) -> dict[str, dict[str, float]]:
    """Test the drop of every tag that fell, metric by metric; among many tags some would seem to fall by chance alone.

    A tag that did not fall has no drop to test, but is one of the many: its p-value is taken to be 1.
    """
    largest = [(column, metric.key) for column, metric in enumerate(scored.metrics) if metric.k == scored.k]
    noise = {
        tag: noise_of(
            tagged, scored.metrics, [column for column, key in largest if (compared[tag][key].delta or 0) < 0]
        )
        for tag, tagged in groups.items()
    }
    found: dict[str, dict[str, float]] = {tag: {} for tag in groups}
    for _, key in largest:
        p_values = {tag: 1.0 for tag in groups if (compared[tag][key].delta or 0) > 0}
        tested = {tag: p for tag, of_tag in noise.items() if key in of_tag and (p := of_tag[key].p_value) is not None}
        for tag, adjusted in benjamini_hochberg(p_values | tested).items():
            if tag in tested:
                found[tag][key] = adjusted
    return found
