"""The recorded runs that the page of a history shows, with their metrics under today's contract or as recorded."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.contract.config import HistoryLimits
from ragcontract.contract.resolve import Contract
from ragcontract.core import bounds
from ragcontract.core.metric import Metric
from ragcontract.evaluation.past import Series
from ragcontract.evaluation.plan import Plan
from ragcontract.files.opening import Progress
from ragcontract.history.contract_entries import ContractEntries
from ragcontract.history.entry import Entry
from ragcontract.history.series import RecordedRun, Rescoring, recorded
from ragcontract.history.trend import is_alike

Limits = Mapping[str, Sequence[tuple[str, float, bool]]]  # by metric: kind, limit, whether it is relative


class ContractRuns(Struct, frozen=True, kw_only=True):
    """The recorded runs of a contract on a branch, the oldest first, and their metrics."""

    contract: str
    branch: str | None
    runs: Sequence[RecordedRun]
    series: Mapping[str, Series]
    limits: Limits = {}
    window: int = HistoryLimits().window
    questions: Mapping[str, str] = {}  # by query; without any, the means are as they were recorded
    notes: Sequence[str] = ()


class Today(Struct, frozen=True, kw_only=True):
    """The contract as its files have it now."""

    contract: Contract
    plan: Plan


def runs_on_page(
    entries: ContractEntries, branch: str | None, last: int, today: Today | None, progress: Progress
) -> ContractRuns:
    """Read the last runs of a branch, scored again under today's contract if it is known and fits any of them."""
    notes: Sequence[str] = ()
    if today:
        of_today = rescored(entries, branch, last, today, progress)
        if any(series.known for series in of_today.series.values()):
            return of_today
        notes = of_today.notes
    return replace(as_recorded(entries, branch, last, progress), notes=notes)


def wanted_keys(limited: Iterable[str], known: Mapping[str, object], k: int) -> list[str]:
    """Return the metrics that are shown: those with limits, and MRR and Recall at the largest cut-off."""
    keys = dict.fromkeys([*limited, f"mrr_at_{k}", f"recall_at_{k}"])
    return [key for key in keys if key in known][: bounds.PAGE_CHARTS]


def rescored(entries: ContractEntries, branch: str | None, last: int, today: Today, progress: Progress) -> ContractRuns:
    """Read the last runs of a branch, with their metrics computed again under today's contract."""
    contract, plan = today.contract, today.plan
    config = contract.config_file
    gates = [gate for gate in config.gates if gate.tag is None and gate.tier is None]
    known = {metric.key: metric for metric in contract.metrics}
    keys = wanted_keys((gate.quantity.key for gate in gates), known, contract.k)
    past = Rescoring(entries.store, config, plan, keys)
    runs = [past.run_of(entry) for entry in _newest(entries, branch, last, progress)][::-1]
    return ContractRuns(
        contract=entries.contract,
        branch=branch,
        runs=runs,
        series=past.series([run for run in runs if not run.dirty]),
        limits={
            key: [(gate.kind, gate.limit, gate.relative) for gate in gates if gate.quantity.key == key] for key in keys
        },
        window=config.config.history.window,
        questions={query_id: query.query for query_id, query in plan.golden.items()},
        notes=list(past.notes()),
    )


def as_recorded(entries: ContractEntries, branch: str | None, last: int, progress: Progress) -> ContractRuns:
    """Read the last runs of a branch, with the means that were recorded under the newest run's golden queries."""
    runs: list[RecordedRun] = []
    newest: Entry | None = None
    keys: list[str] = []
    for entry in _newest(entries, branch, last, progress):
        if newest is None:
            newest = entry
            limited = (key for key, metric in entry.metrics.items() if metric.status != "none")
            keys = wanted_keys(limited, entry.metrics, max(entry.head.k))
        prints = newest.head.fingerprints
        same = [key for key in keys if entry.head.fingerprints.get(key) == prints.get(key)]
        runs.append(recorded(entry, same if is_alike(entry, newest.head) else ()))
    runs.reverse()
    clean = [run for run in runs if not run.dirty]
    metrics = {key: newest.metrics[key] for key in keys} if newest else {}
    return ContractRuns(
        contract=entries.contract,
        branch=branch,
        runs=runs,
        series={
            key: Series(
                metric=Metric(key=key, label=metric.label, better=metric.better, scale=metric.scale, k=metric.k),
                runs=clean,
                values=[run.means.get(key) for run in clean],
            )
            for key, metric in metrics.items()
        },
        limits={
            key: [
                (gate.kind, gate.limit, False)
                for gate in (newest.gates if newest else ())
                if gate.metric == key and gate.tag is None and isinstance(gate.limit, float)
            ]
            for key in keys
        },
    )


def _newest(entries: ContractEntries, branch: str | None, last: int, progress: Progress) -> Iterator[Entry]:
    for entry in islice((entry for entry in entries.newest_first() if entry.source.branch == branch), last):
        progress(1)
        yield entry
