"""The metrics of recorded runs as series, computed again from their result sets under today's golden files and config.

Questions and labels that are added move every mean, and are no change of the retriever. So the ids of documents that a
run returned are scored as those of a baseline are: under today's plan, without queries that had another question. All
runs of a series are compared over the queries that each of them has.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from math import fsum, isnan, nan
from sys import intern
from typing import TypeAlias

import msgspec
from msgspec import Struct

from ragcontract.contract.config import HistoryLimits
from ragcontract.contract.config_file import ConfigFile
from ragcontract.contract.resolve import Contract
from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.ids import as_id
from ragcontract.core.metric import Metric, Scale
from ragcontract.core.numbers import count, percent
from ragcontract.core.run import Ranks, RunRow, SourceFile
from ragcontract.core.safe_text import shorten, visible
from ragcontract.decision.contract_changes import past_contract
from ragcontract.evaluation.past import PastRun, PastSeries, Series
from ragcontract.evaluation.plan import Plan
from ragcontract.evaluation.side import Side
from ragcontract.evaluation.source import Local, entry_ref
from ragcontract.files.json_lines import UNDECODABLE
from ragcontract.files.problems import FileRead, Problem
from ragcontract.history.choose_baseline import NOT_OURS, lines_of
from ragcontract.history.commits import CheckContext
from ragcontract.history.contract_entries import ContractEntries, contract_in_message
from ragcontract.history.entry import Entry
from ragcontract.history.interface import ResultSets
from ragcontract.history.trend import scores_alike
from ragcontract.runs.baseline_file import FORMAT_VERSION, ComparedQuery, MeasuredQuery, StoredBatch, StoredEvent
from ragcontract.statistics.levels import LEVEL_RUNS

LEAST_SHARED = 0.8  # of today's queries; a run that has fewer with the same question is left out


class QueryValues(Struct, frozen=True, kw_only=True):
    """The queries of a run under today's contract, in the order of the golden queries."""

    has: bytes  # 1 for each query with the same question as today
    values: Mapping[str, "array[float]"]  # by metric; NaN for a query without a value
    first: "array[int]"  # a digest of the first k results of each query, within this process
    ranks: Sequence[Ranks]  # of its relevant documents, in their order


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

    def __init__(self, store: ResultSets, config_file: ConfigFile, plan: Plan, keys: Sequence[str]) -> None:
        """Take the store with the result sets, today's configuration and plan, and the metrics that are wanted."""
        self._store = store
        self._without_results: list[str] = []  # why a result set cannot be used
        self._few = 0  # runs that share too few queries
        self._contract = past_contract(config_file)
        self._plan, self._plan_before = plan, plan.for_baseline()
        self._metrics = {
            metric.key: metric for family in plan.every_family for metric in family.metrics if metric.key in keys
        }
        self._weights = [query.weight for query in plan.golden.values()]
        self._known: dict[tuple[object, ...], QueryValues | None] = {}
        self._ranks: dict[Ranks, Ranks] = {}  # each once, as there are few different ones

    def run_of(self, entry: Entry) -> RecordedRun:
        """Return what is kept of an entry, with its values under today's contract."""
        same = [
            key for key, metric in self._metrics.items() if entry.head.fingerprints.get(key, "") == metric.fingerprint
        ]
        has_golden = entry.head.has_golden(self._plan.golden_files, self._plan.relevance_level)
        is_todays = has_golden and scores_alike(entry.head.contract, self._contract)
        return recorded(entry, same, is_todays=is_todays, queries=self._queries(entry))

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
            self._without_results += error.problems
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
                    scale = self._metrics[key].scale  # somebody may have written the file by hand
                    columns[key] = array("d", [_on(scale, row[place]) if row else nan for row in rows])
        without_results, scores, first_ids = side.rows.without_results, side.scores, side.ids.first_ids
        return QueryValues(
            has=bytes(query_id in scores and query_id not in without_results for query_id in ids),
            values={key: column for key, column in columns.items() if not all(map(isnan, column))},
            first=array("q", [hash(first_ids.get(query_id)) for query_id in ids]),
            ranks=tuple([self._shared(score.ranks) if (score := scores.get(query_id)) else () for query_id in ids]),
        )

    def _shared(self, ranks: Ranks) -> Ranks:
        return self._ranks.setdefault(ranks, ranks)

    def series(self, runs: Sequence[RecordedRun], today: Side | None = None) -> dict[str, Series]:
        """Return the series of each metric; ``runs`` are the oldest first, and ``today`` is the run that is checked."""
        kept, shared = list[RecordedRun](), int.from_bytes(b"\1" * len(self._plan.golden))
        least = LEAST_SHARED * shared.bit_count()
        for run in reversed(runs):  # the newest first: a run that shares too few queries with those is left out
            both = shared if run.queries is None else shared & int.from_bytes(run.queries.has)
            if both.bit_count() >= least:
                kept.append(run)
                shared = both
        self._few = len(runs) - len(kept)
        kept.reverse()
        now = self._values(today) if today else None
        return {key: self._series(metric, kept, now) for key, metric in self._metrics.items()}

    @property
    def unreadable(self) -> bool:
        """Whether a result set cannot be read."""
        return bool(self._without_results)

    def notes(self) -> Iterator[str]:
        """Yield what was left out."""
        if self._few:
            with_others = f"less than {percent(LEAST_SHARED)} of today's {count(len(self._plan.golden), 'query')}"
            left_out = f"{count(self._few, 'recorded run')} left out: with {'it' if self._few == 1 else 'them'}"
            yield f"{left_out}, all runs would share {with_others}"
        if number := len(self._without_results):
            first = shorten(self._without_results[0], bounds.MESSAGE)
            yield f"{count(number, 'result set')} of recorded runs cannot be read: {first}"

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
            stored = run.means.get(key) if run.is_todays and is_whole and run.queries is None else None
            return None if stored is None or isnan(_on(metric.scale, stored)) else stored

        of_today = now.values.get(key) if now else None
        return Series(
            metric=metric,
            runs=tuple(runs),
            values=tuple(map(mean, runs)),
            now=None if of_today is None else means[id(of_today)],
            queries=len(shared),
            todays=sum(not isnan(value) for value in of_today) if of_today is not None else 0,
            share=max(self._weights[number] for number in shared) / total if shared else 0.0,
        )


class _Read(Struct, frozen=True, kw_only=True):
    """Entries, the newest first, and their result sets."""

    entries: Sequence[Entry]
    sets: Mapping[str, bytes | None]

    def results(self, sha256: str) -> bytes | None:
        return self.sets.get(sha256)


def at_once(read: Callable[[], _Read]) -> _Read:
    """Read without a limit on time."""
    return read()


Limited: TypeAlias = Callable[[Callable[[], _Read]], _Read]


class PastOfCheck(Struct, frozen=True, kw_only=True):
    """The recorded runs of a branch at the commits that the checked one contains, for limits on levels."""

    entries: ContractEntries
    branch: str | None
    context: CheckContext  # the check
    until: str = "9"  # only entries with lower ids count, which begin with their time
    limited: Limited = at_once  # reads within a limited time

    def series(self, contract: Contract, plan: Plan, run: Side, keys: Sequence[str]) -> PastSeries:
        """See :class:`~ragcontract.evaluation.past.Past`."""
        since, named = contract.config.history.since, contract_in_message(self.entries.contract)
        which = f"{named} on {visible(self.branch)}" if self.branch else named
        try:
            read = self.limited(partial(self._read, contract.config.history, which))
        except InputError as error:
            return PastSeries(problem=str(error))
        past = Rescoring(read, contract.config_file, plan, keys)
        series = past.series([past.run_of(entry) for entry in reversed(read.entries)], run)
        if past.unreadable and any(len(each.known) < LEVEL_RUNS for each in series.values()):
            return PastSeries(problem="; ".join(past.notes()))
        of = f" ({which}{f' since {since}' if since else ''})" if since or not read.entries else ""
        return PastSeries(series=series, of=of, notes=tuple(past.notes()))

    def _read(self, limits: HistoryLimits, which: str) -> _Read:
        """Read the newest entries that count, and their result sets; raises InputError if there should be more."""
        commits, since = self.context.commits(), (limits.since or "").replace("-", "")
        order, recent, looked = frozenset(commits.order), list[Entry](), 0
        for entry in islice(self.entries.newest_first(), bounds.WINDOW_AMONG):
            if entry.id < since or len(recent) == limits.window:
                break
            looked += 1
            if self._counts(entry) and entry.source.commit in order:
                recent.append(entry)
        ended = f"no more are among the newest {looked:,} entries" if looked == bounds.WINDOW_AMONG else ""
        if len(recent) < LEVEL_RUNS and (why := commits.advice or next(self.entries.warnings(), ended)):
            raise InputError([f"history has {count(len(recent), 'run')} of {which} here: {why}"])
        if not recent and not since and self.context.is_pull_request:
            raise InputError([f"nothing is recorded for {which}: record the base branch first"])
        digests = {entry.results.sha256 for entry in recent if entry.results}
        return _Read(entries=recent, sets={sha256: self.entries.store.results(sha256) for sha256 in digests})

    def _counts(self, entry: Entry) -> bool:
        """Return whether a run counts, as far as its commit does not decide it."""
        is_before = entry.id < self.until and not entry.is_of_run(self.context.run_id)
        return is_before and entry.source.branch == self.branch and not entry.source.dirty


def _on(scale: Scale, value: float) -> float:
    """Return a value that is on its scale; otherwise NaN."""
    return value if scale.low <= value <= scale.high and abs(value) <= bounds.SCORE else nan
