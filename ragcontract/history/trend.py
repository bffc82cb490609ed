"""What a report says of its metrics in recorded runs: values, level, noise and change points.

Nothing here asks a store. Without limits on levels, the values are those that entries have, where golden files and
settings were today's; otherwise, new questions would look like a change of the retriever.
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.gate import Kind, allowed_change
from ragcontract.core.metric import Direction
from ragcontract.decision.contract_changes import past_contract
from ragcontract.decision.gate_report import KINDS
from ragcontract.evaluation.past import PastRun, PastSeries
from ragcontract.history.entry import Entry, EntryGate, EntryMetric
from ragcontract.pipeline import Outcome
from ragcontract.report.baseline import fingerprints_of
from ragcontract.report.history_report import ChangePointReport, MetricHistory
from ragcontract.report.record import Report
from ragcontract.runs.baseline_contract import PastContract
from ragcontract.runs.baseline_file import StoredHead
from ragcontract.statistics.change_points import change_points
from ragcontract.statistics.levels import level, sigma

# The settings on which means depend. Those of metrics that are not computed from ids are in their fingerprints.
SCORING = ("k", "gain", "rank_by", "relevance_level", "unjudged", "missing_queries", "missing_scores")


class RecordedLimit(Struct, frozen=True, kw_only=True):
    """A limit of a run on the mean of a metric over all queries."""

    gate: EntryGate
    metric: EntryMetric
    limit: float
    kind: Kind
    relative: bool

    def allowed(self, before: float) -> float:
        """Return how much the metric may change from a value."""
        return allowed_change(self.limit, before, self.metric.scale, relative=self.relative)


def recorded_limits(entry: Entry) -> Iterator[RecordedLimit]:
    """Yield the limits of a run on means over all queries."""
    for gate in entry.gates:
        unit, kind, relative = KINDS.get(gate.kind, (None, None, False))  # type: ignore[call-overload]
        metric = entry.metrics.get(gate.metric or "")
        if metric and unit == "points" and gate.tag is None and isinstance(gate.limit, float):
            yield RecordedLimit(gate=gate, metric=metric, limit=gate.limit, kind=kind, relative=relative)


def metric_history(
    runs: Sequence[Entry | PastRun], values: Sequence[float | None], now: float | None, better: Direction
) -> MetricHistory:
    """Return a metric in recorded runs, the oldest first, each with its mean; ``now`` is that of the run checked.

    Level, noise and change points are those of all runs. Of more than ``bounds.TREND_RUNS``, the report lists the
    newest ones, and only change points among them.
    """
    known = [run for run, value in zip(runs, values, strict=True) if value is not None]
    means = [value for value in values if value is not None]
    points, best = change_points(means), level(means, better)
    ids = [run.id for run in runs[-bounds.TREND_RUNS :]]
    return MetricHistory(
        values=[*values[-bounds.TREND_RUNS :]],
        ids=ids,
        now=now,
        level=best.value if best else None,
        sigma=sigma(means, [point.position for point in points]),
        change_points=[
            ChangePointReport(
                id=run.id,
                commit=run.commit,
                at=run.created_at,
                before=point.before,
                after=point.after,
                p_value=point.p_value,
            )
            for point in points
            if (run := known[point.position]).id in ids
        ],
    )


def limited_metrics(report: Report) -> list[str]:
    """Return the metrics with a limit over all queries, in the order of the report."""
    limited = {gate.metric for gate in report.gates if gate.of is None}
    return [key for key in report.metrics if key in limited]


def comparable(newest: Sequence[Entry], outcome: Outcome) -> list[Entry]:
    """Return the entries whose means can be compared with those of a check, the oldest first.

    They have its golden files and its settings, and are not from a dirty working tree. ``newest`` are the entries of a
    branch, newest first.
    """
    config = outcome.evaluation.contract.config_file
    files, today = outcome.report.inputs.golden.files, past_contract(config)
    runs = [
        entry
        for entry in newest
        if not entry.source.dirty
        and entry.head.has_golden(files, config.config.relevance_level)
        and scores_alike(entry.head.contract, today)
    ]
    return runs[: bounds.TREND_RUNS][::-1]


def scores_alike(before: PastContract | None, today: PastContract | None) -> bool:
    """Return whether means under two configurations can be compared, as far as their settings decide it."""
    was, now = ((contract or PastContract()).settings for contract in (before, today))
    return all(was.get(key) == now.get(key) for key in SCORING)


def mean_beside(newest: StoredHead, entry: Entry, key: str) -> float | None:
    """Return the recorded mean of an entry if it can be compared with that of the newest run, whose head is given.

    Both have the same golden queries and settings, and the entry is not from a dirty working tree.
    """
    has_queries = entry.head.golden_sha256 == newest.golden_sha256
    if entry.source.dirty or not has_queries or not scores_alike(entry.head.contract, newest.contract):
        return None
    return mean_of(entry, key, newest.fingerprints.get(key))


def past_metrics(past: PastSeries, outcome: Outcome) -> dict[str, MetricHistory]:
    """Return the metrics with limits on levels, whose values were computed again."""
    return {
        key: metric_history(series.runs, series.values, series.now, series.metric.better)
        for key, series in past.series.items()
        if series.known and key in outcome.report.metrics
    }


def recorded_metrics(runs: Sequence[Entry], outcome: Outcome) -> dict[str, MetricHistory]:
    """Return the limited metrics of a check as :func:`comparable` entries have them, without those that none has."""
    report, prints = outcome.report, fingerprints_of(outcome.evaluation) if runs else {}
    metrics: dict[str, MetricHistory] = {}
    for key in limited_metrics(report):
        values = [mean_of(entry, key, prints.get(key)) for entry in runs]
        if any(value is not None for value in values):
            metric = report.metrics[key]
            metrics[key] = metric_history(runs, values, metric.current, metric.better)
    return metrics


def mean_of(entry: Entry, key: str, fingerprint: str | None) -> float | None:
    """Return the recorded mean; None without one, or if the metric was computed in another way than today."""
    same = entry.head.fingerprints.get(key) == fingerprint
    return entry.metrics[key].value if same and key in entry.metrics else None
