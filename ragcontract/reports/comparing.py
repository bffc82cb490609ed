"""Builds the comparison of several runs from their evaluations."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import PurePath

import msgspec

from ragcontract.core import bounds
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.metric import Metric
from ragcontract.core.numbers import SAME
from ragcontract.core.run import SourceFile
from ragcontract.core.scores import ranks_by_id
from ragcontract.core.text import encodable
from ragcontract.judging.evaluated import Evaluation
from ragcontract.judging.likely_mistakes import likely_mistakes
from ragcontract.judging.run_notes import run_notes
from ragcontract.reports.build import TOOL
from ragcontract.reports.drift import as_warning
from ragcontract.reports.run_comparison import (
    AgainstFirst,
    ComparedMetric,
    ComparedRun,
    Disagreement,
    RunComparison,
    RunMean,
)
from ragcontract.statistics.change import Change
from ragcontract.statistics.change_bounds import change_bounds
from ragcontract.statistics.mean_interval import Z_95, mean_interval


def comparison_of(
    evaluations: Sequence[Evaluation],
    names: Sequence[str],
    *,
    warnings: Sequence[str],
    now: datetime,
) -> RunComparison:
    """Compare runs; each evaluation but the first has the first run as its baseline. ``names`` are their paths."""
    contract = evaluations[0].contract
    found = disagreements(evaluations)
    labels = distinct_labels(list(map(encodable, names)))
    return RunComparison(
        tool=TOOL,
        created_at=now.isoformat(timespec="seconds"),
        k=sorted(contract.config_file.cutoffs),
        golden=_files(contract.golden.files),
        config=_files(contract.config_file.files),
        tag=contract.scope.tags[0] if contract.scope else None,
        queries=len(contract.queries),
        metrics={
            metric.key: ComparedMetric(label=metric.label, k=metric.k, better=metric.better, scale=metric.scale)
            for metric in contract.metrics
        },
        runs=[_run(one, label) for one, label in zip(evaluations, labels, strict=True)],
        disagreements=found[: bounds.DISAGREEMENTS],
        more_disagreements=max(0, len(found) - bounds.DISAGREEMENTS),
        warnings=[encodable(warning) for warning in warnings],
    )


def distinct_labels(paths: Sequence[str]) -> list[str]:
    """Return the shortest names that set the runs apart: without suffix, without folder, else the whole path.

    A path that is there several times gets a number.
    """
    names = [PurePath(path).name for path in paths]
    for labels in ([name.partition(".")[0] for name in names], names, list(paths)):
        if len({*labels}) == len(labels) and all(labels):
            return labels
    return [f"{path} ({number})" for number, path in enumerate(paths, 1)]


def _files(files: Sequence[SourceFile]) -> list[SourceFile]:
    return [SourceFile(path=encodable(file.path), sha256=file.sha256) for file in files]


def _run(evaluation: Evaluation, label: str) -> ComparedRun:
    run, aggregates = evaluation.run, evaluation.aggregates
    metrics: dict[str, RunMean] = {}
    for family in aggregates.families:
        groups = [one for one in family.groups if one.now]
        changes = family.changes(None, family.keys)
        for column, metric in enumerate(family.metrics):
            values = [(one.weight, one.now[column], one.count) for one in groups]
            compared = aggregates.comparisons[metric.key]
            metrics[metric.key] = RunMean(
                mean=compared.current,
                interval=mean_interval(values, metric.scale),
                against_first=None
                if evaluation.baseline is None or compared.delta is None
                else _against_first(compared.delta, changes[metric.key]),
            )
    return ComparedRun(
        label=label,
        files=_files(run.files),
        queries=run.queries,
        missing=list(run.missing),
        versions=run.versions,
        metrics=metrics,
        notes=list(_notes(evaluation)),
    )


def _notes(evaluation: Evaluation) -> Iterator[str]:
    """Yield what explains the metrics of a run, whatever the first run is."""
    alone = msgspec.structs.replace(evaluation, baseline=None)
    yield from map(as_warning, likely_mistakes(alone))
    yield from run_notes(alone)


def _against_first(delta: float, change: Change) -> AgainstFirst:
    """Return the change with its 95 % interval, of which each end is wrong in 2.5 % of samples."""
    interval = None
    if change.changed:
        low, high = change_bounds(change, Z_95, Z_95)
        interval = (low, high) if change.better == "lower" else (0.0 - high, 0.0 - low)
    return AgainstFirst(
        delta=delta if interval else 0.0,
        interval=interval,
        wins=change.wins,
        ties=change.ties,
        losses=change.losses,
    )


def disagreements(evaluations: Sequence[Evaluation]) -> list[Disagreement]:
    """Return the queries whose metrics differ between runs, those with the largest spread first."""
    contract = evaluations[0].contract
    largest = contract.metrics_at_largest_k
    spreads: list[tuple[list[float], GoldenQuery]] = []
    for query in contract.queries.values():
        scores = [evaluation.run.scores[query.id] for evaluation in evaluations]
        if not contract.families and all(score is scores[0] or score == scores[0] for score in scores):
            continue
        spread = list(_spreads(evaluations, query, largest))
        if max(spread, default=0.0) > SAME:
            spreads.append((spread, query))
    spreads.sort(key=lambda item: [-size for size in item[0]])
    return [_disagreement(evaluations, query) for _, query in spreads]


def _spreads(evaluations: Sequence[Evaluation], query: GoldenQuery, metrics: Sequence[Metric]) -> Iterator[float]:
    by_run = [evaluation.metrics(evaluation.run, query.id) for evaluation in evaluations]
    for metric in metrics:
        values = [value for of_run in by_run if (value := of_run.get(metric.key)) is not None]
        yield max(values) - min(values) if values else 0.0


def _disagreement(evaluations: Sequence[Evaluation], query: GoldenQuery) -> Disagreement:
    by_run = [evaluation.metrics(evaluation.run, query.id) for evaluation in evaluations]
    return Disagreement(
        id=query.id,
        location=encodable(query.location),
        query=query.query,
        metrics={key: [of_run[key] for of_run in by_run] for key in by_run[0]},
        ranks=[
            ranks_by_id(query.relevant_doc_ids, evaluation.run.scores[query.id].ranks) for evaluation in evaluations
        ],
    )
