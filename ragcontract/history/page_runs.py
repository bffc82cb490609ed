"""The recorded runs that the page of a history shows, with their metrics under today's contract or as recorded."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.contract.config import HistoryLimits
from ragcontract.contract.resolve import Contract
from ragcontract.core import bounds
from ragcontract.core.gate import Kind
from ragcontract.core.metric import Metric
from ragcontract.evaluation.past import Series
from ragcontract.evaluation.plan import Plan
from ragcontract.history.contract_entries import ContractEntries
from ragcontract.history.series import RecordedRun, Rescoring, recorded
from ragcontract.history.trend import mean_beside, recorded_limits
from ragcontract.statistics.levels import level

Today = tuple[Contract, Plan]  # the contract as its files have it now
Limit = tuple[str, Kind, float, bool]  # the metric, the kind, the limit, and whether it is relative


class ContractRuns(Struct, frozen=True, kw_only=True):
    """The recorded runs of a contract on a branch, the oldest first, and their metrics."""

    contract: str
    branch: str | None
    runs: Sequence[RecordedRun]
    series: Mapping[str, Series]
    limits: Sequence[Limit] = ()
    window: int = HistoryLimits().window
    questions: Mapping[str, str] = {}  # by query; without any, the means are as they were recorded
    notes: Sequence[str] = ()

    def level(self, key: str) -> float | None:
        """Return the best level of a metric in the newest runs; None if too few of them have a value."""
        series = self.series[key]
        best = level([value for _, value in series.known[-self.window :]], series.metric.better)
        return best.value if best else None


def runs_on_page(entries: ContractEntries, branch: str | None, today: Today | None) -> ContractRuns:
    """Read the runs of a branch, scored again under today's contract if it is known and fits any of them."""
    if today is None:
        return as_recorded(entries, branch)
    runs = rescored(entries, branch, today)
    if any(series.known for series in runs.series.values()):
        return runs
    return replace(as_recorded(entries, branch), notes=runs.notes)


def wanted_keys(limited: Iterable[str], known: Mapping[str, object], k: int) -> list[str]:
    """Return the metrics that are shown: those with limits, and MRR and Recall at the largest cut-off."""
    keys = dict.fromkeys([*limited, f"mrr_at_{k}", f"recall_at_{k}"])
    return [key for key in keys if key in known][: bounds.PAGE_CHARTS]


def rescored(entries: ContractEntries, branch: str | None, today: Today) -> ContractRuns:
    """Read the runs of a branch, with their metrics computed again under today's contract."""
    contract, plan = today
    config = contract.config_file
    gates = [gate for gate in config.gates if gate.tag is None and gate.tier is None]
    known = {metric.key: metric for metric in contract.metrics}
    keys = wanted_keys((gate.quantity.key for gate in gates), known, contract.k)
    past = Rescoring(entries.store, config, plan, keys)
    runs = [past.run_of(entry) for entry in entries.of_branch(branch)][::-1]
    return ContractRuns(
        contract=entries.contract,
        branch=branch,
        runs=runs,
        series=past.series([run for run in runs if not run.dirty]),
        limits=[(gate.quantity.key, gate.kind, gate.limit, gate.relative) for gate in gates],
        window=config.config.history.window,
        questions={query_id: query.query for query_id, query in plan.golden.items()},
        notes=list(past.notes()),
    )


def as_recorded(entries: ContractEntries, branch: str | None) -> ContractRuns:
    """Read the runs of a branch, with the means that were recorded under the newest run's golden queries."""
    of_branch = entries.of_branch(branch)
    newest = next(of_branch, None)
    if newest is None:
        return ContractRuns(contract=entries.contract, branch=branch, runs=(), series={})
    limited = (key for key, metric in newest.metrics.items() if metric.status != "none")
    keys = wanted_keys(limited, newest.metrics, max(newest.head.k))
    runs = [
        recorded(entry, [key for key in keys if mean_beside(newest.head, entry, key) is not None])
        for entry in chain([newest], of_branch)
    ][::-1]
    clean = [run for run in runs if not run.dirty]
    series = {}
    for key in keys:
        of = newest.metrics[key]
        metric = Metric(key=key, label=of.label, better=of.better, scale=of.scale, k=of.k)
        series[key] = Series(metric=metric, runs=clean, values=[run.means.get(key) for run in clean])
    return ContractRuns(
        contract=entries.contract,
        branch=branch,
        runs=runs,
        series=series,
        limits=[(of.gate.metric or "", of.kind, of.limit, of.relative) for of in recorded_limits(newest)],
    )
