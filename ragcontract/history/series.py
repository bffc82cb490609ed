"""The metrics of recorded runs as series, computed again from their result sets under today's golden files and config.

Questions and labels that are added move every mean, and are no change of the retriever. So the ids of documents that a
run returned are scored as those of a baseline are: under today's plan, without queries that had another question. All
runs of a series are compared over the queries that each of them has.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, takewhile
from math import fsum, isnan, nan
from sys import intern

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ragcontract.contract.config_file import ConfigFile
from ragcontract.contract.resolve import Contract
from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.ids import as_id
from ragcontract.core.metric import Metric
from ragcontract.core.numbers import count, percent
from ragcontract.core.run import RunRow, SourceFile
from ragcontract.decision.contract_changes import past_contract
from ragcontract.evaluation.past import PastRun, PastSeries, Series
from ragcontract.evaluation.plan import Plan
from ragcontract.evaluation.side import Side
from ragcontract.evaluation.source import Local, entry_ref
from ragcontract.files.json_lines import UNDECODABLE
from ragcontract.files.opening import Progress
from ragcontract.files.problems import FileRead, Problem
from ragcontract.history.choose_baseline import NOT_OURS, lines_of
from ragcontract.history.contract_entries import ContractEntries
from ragcontract.history.entry import Entry
from ragcontract.history.interface import Store
from ragcontract.runs.baseline_contract import Value
from ragcontract.runs.baseline_file import FORMAT_VERSION, ComparedQuery, MeasuredQuery, StoredBatch, StoredEvent

WINDOW = 30  # recorded runs that a level is of, where the configuration is not known
LEAST_SHARED = 0.8  # of today's queries; a run that has fewer with the same question is left out
# The settings on which means depend. Those of metrics that are not computed from ids are in their fingerprints.
SCORING = ("k", "gain", "rank_by", "relevance_level", "unjudged", "missing_queries", "missing_scores")


Limits = Mapping[str, Sequence[tuple[str, float, bool]]]  # by metric: kind, limit, whether it is relative


class QueryValues(Struct, frozen=True, kw_only=True):
    """The queries of a run under today's contract, in the order of the golden queries."""

    has: bytes  # 1 for each query with the same question as today
    values: Mapping[str, "array[float]"]  # by metric; NaN for a query without a value
    first: "array[int]"  # a digest of the first k results of each query, within this process
    ranks: "array[int]"  # the same of the ranks of its relevant documents


class RecordedRun(PastRun, frozen=True, kw_only=True):
    """What is kept of an entry, which may be large."""

    state: str  # the verdict, and why a pass does not count
    run_url: str | None
    failed: tuple[str, ...]  # the first queries that failed
    broken: int  # how many queries are broken
    dirty: bool
    retrieval: str
    means: Mapping[str, float | None]  # as they were recorded
    is_todays: bool = False  # whether its golden files and settings are today's
    queries: QueryValues | None = None  # None without a result set


def recorded(
    entry: Entry, keys: Iterable[str], *, is_todays: bool = False, queries: QueryValues | None = None
) -> RecordedRun:
    """Return what is kept of an entry: of its metrics, those with these ``keys``."""
    return RecordedRun(
        id=entry.id,
        commit=entry.source.commit,
        created_at=entry.created_at,
        verdict=entry.verdict,
        state=entry.state,
        run_url=entry.source.run_url,
        failed=tuple(map(intern, entry.failed)),
        broken=entry.broken.queries,
        dirty=entry.source.dirty,
        retrieval=entry.retrieval,
        means={key: entry.metrics[key].value for key in keys if key in entry.metrics},
        is_todays=is_todays,
        queries=queries,
    )


class ResultRows(Struct, frozen=True, kw_only=True):
    """The run of an entry, read as a stored baseline from the lines of its result set, which saves half of the time."""

    entry: Entry
    lines: Sequence[bytes]

    def events(self, rows: type[RunRow], *, with_metrics: bool = False) -> Iterator[StoredEvent]:  # noqa: ARG002
        path = entry_ref(self.entry.id)
        yield FileRead(SourceFile(path=path, sha256=""))
        decode = msgspec.json.Decoder(MeasuredQuery if with_metrics else ComparedQuery).decode
        try:
            queries = list(map(decode, self.lines))
        except UNDECODABLE:
            queries = []
        ids = {as_id(query.id) for query in queries}
        if not len(ids) == len(queries) == len(self.lines) or self.entry.head.format_version != FORMAT_VERSION:
            yield Problem(path, f"its result set {NOT_OURS}")
            return
        yield self.entry.head
        yield StoredBatch(queries)


class Rescoring:
    """Computes the metrics of recorded runs again under today's contract, those of each distinct result set once."""

    def __init__(self, store: Store, config_file: ConfigFile, plan: Plan, keys: Sequence[str]) -> None:
        """Take the store with the result sets, today's configuration and plan, and the metrics that are wanted."""
        self.notes: dict[str, None] = {}
        self._store = store
        self._settings = _scoring(past_contract(config_file).settings)
        self._plan, self._plan_before = plan, plan.for_baseline()
        self._metrics = {
            metric.key: metric for family in plan.every_family for metric in family.metrics if metric.key in keys
        }
        self._weights = [query.weight for query in plan.golden.values()]
        self._known: dict[tuple[object, ...], QueryValues | None] = {}

    def run_of(self, entry: Entry) -> RecordedRun:
        """Return what is kept of an entry, with its values under today's contract."""
        return recorded(entry, self._metrics, is_todays=self._is_todays(entry), queries=self._queries(entry))

    def _is_todays(self, entry: Entry) -> bool:
        has_golden = entry.head.has_golden(self._plan.golden_files, self._plan.relevance_level)
        return (
            has_golden and entry.head.contract is not None and _scoring(entry.head.contract.settings) == self._settings
        )

    def _queries(self, entry: Entry) -> QueryValues | None:
        if entry.results is None:
            return None
        head = entry.head
        same = entry.results.sha256, *sorted(head.fingerprints.items()), *head.k, *head.golden_files
        if same not in self._known:
            self._known[same] = self._computed(entry)
        return self._known[same]

    def _computed(self, entry: Entry) -> QueryValues | None:
        try:
            rows = ResultRows(entry=entry, lines=lines_of(self._store, entry))
            side = Local(rows).evaluate(self._plan_before)
            side.problems.raise_if_any()
        except InputError as error:  # its result set was deleted or changed, or has been written by hand
            self.notes |= dict.fromkeys(error.problems)
            return None
        return self._values(side)

    def _values(self, side: Side) -> QueryValues:
        """Return the values of a side for each golden query."""
        ids = list(self._plan.golden)
        incomparable = side.stored.incomparable if side.stored else frozenset()
        columns: dict[str, array[float]] = {}
        for number, family in enumerate(self._plan.every_family):
            places = [(place, metric.key) for place, metric in enumerate(family.metrics) if metric.key in self._metrics]
            rows = side.values(number, ids) if places else []
            for place, key in places:
                if key not in incomparable:
                    columns[key] = array("d", [row[place] if row else nan for row in rows])
        without_results, scores, first_ids = side.rows.without_results, side.scores, side.ids.first_ids
        return QueryValues(
            has=bytes(query_id in scores and query_id not in without_results for query_id in ids),
            values={key: column for key, column in columns.items() if not all(map(isnan, column))},
            first=array("q", [hash(first_ids.get(query_id)) for query_id in ids]),
            ranks=array("q", [hash(score.ranks) if (score := scores.get(query_id)) else 0 for query_id in ids]),
        )

    def series(self, runs: Sequence[RecordedRun], today: Side | None = None) -> dict[str, Series]:
        """Return the series of each metric; ``runs`` are the oldest first, and ``today`` is the run that is checked."""
        total = len(self._plan.golden)
        kept = [run for run in runs if run.queries is None or sum(run.queries.has) >= LEAST_SHARED * total]
        if few := len(runs) - len(kept):
            todays = f"fewer than {percent(LEAST_SHARED)} of today's {count(total, 'query')}"
            self.notes[f"left {count(few, 'recorded run')} out of the trend that {_have(few)} {todays}"] = None
        now = self._values(today) if today else None
        return {key: self._series(metric, kept, now) for key, metric in self._metrics.items()}

    def _series(self, metric: Metric, runs: Sequence[RecordedRun], now: QueryValues | None) -> Series:
        """Return the means of a metric over the queries that have it in all runs that have it at all."""
        key = metric.key
        every = [*(run.queries for run in runs), now]
        columns = {id(column): column for each in every if each and (column := each.values.get(key))}
        have = [not any(map(isnan, values)) for values in zip(*columns.values(), strict=True)]
        shared = [number for number, has in enumerate(have) if has]
        total = fsum(self._weights[number] for number in shared)
        means = {
            known: fsum(self._weights[number] * column[number] for number in shared) / total if shared else None
            for known, column in columns.items()
        }
        # A mean that was recorded is over all queries of that day, so it fits only if no query is left out.
        is_whole = all(sum(not isnan(value) for value in column) == len(shared) for column in columns.values())

        def mean(run: RecordedRun) -> float | None:
            column = run.queries.values.get(key) if run.queries else None
            if column is not None:
                return means[id(column)]
            return run.means.get(key) if run.is_todays and is_whole and run.queries is None else None

        of_today = now.values.get(key) if now else None
        return Series(
            metric=metric,
            runs=tuple(runs),
            values=tuple(map(mean, runs)),
            now=None if of_today is None else means[id(of_today)],
            queries=len(shared),
        )


class PastOfCheck(Struct, frozen=True, kw_only=True):
    """The recorded runs of a branch, for limits on levels."""

    entries: ContractEntries | None  # None if they could not be read
    branch: str | None
    own_run: int | None  # the workflow run of this check, whose entries do not count
    problem: str = ""  # why they could not be read

    def series(self, contract: Contract, plan: Plan, run: Side, keys: Sequence[str]) -> PastSeries:
        """See :class:`~ragcontract.evaluation.past.Past`."""
        if self.entries is None:
            return PastSeries(problem=self.problem)
        limits = contract.config.history
        since = (limits.since or "").replace("-", "")
        past = Rescoring(self.entries.store, contract.config_file, plan, keys)
        try:
            among = islice(self.entries.newest_first(), bounds.WINDOW_AMONG)
            of_branch = (entry for entry in takewhile(lambda entry: entry.id >= since, among) if self._counts(entry))
            runs = [past.run_of(entry) for entry in islice(of_branch, limits.window)]
        except InputError as error:
            return PastSeries(problem=str(error))
        return PastSeries(series=past.series(runs[::-1], run), notes=tuple(past.notes))

    def _counts(self, entry: Entry) -> bool:
        return entry.source.branch == self.branch and not entry.source.dirty and not entry.is_of_run(self.own_run)


class ContractRuns(Struct, frozen=True, kw_only=True):
    """The recorded runs of a contract on a branch, the oldest first, and their metrics."""

    contract: str
    branch: str | None
    runs: Sequence[RecordedRun]
    series: Mapping[str, Series]
    limits: Limits = {}
    window: int = WINDOW
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
        notes=list(past.notes),
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
        runs.append(recorded(entry, keys if entry.head.golden_sha256 == newest.head.golden_sha256 else ()))
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


def _have(runs: int) -> str:
    return "has" if runs == 1 else "have"


def _scoring(settings: Mapping[str, Value]) -> dict[str, Value]:
    return {key: settings[key] for key in SCORING if key in settings}
