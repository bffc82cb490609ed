"""What ``history show`` prints: the runs of a contract, one run, or the runs of one query."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.ids import Id, as_id
from ragcontract.core.nearest import NearNames
from ragcontract.core.numbers import count, fixed, more, sparkline
from ragcontract.core.phrase import Name
from ragcontract.core.safe_text import encodable, shorten
from ragcontract.files.json_lines import UNDECODABLE
from ragcontract.history.entry import Entry, short_commit
from ragcontract.history.interface import ChangedResultsError, Store, read_results
from ragcontract.report.blocks import Block, Items, Note, Parts, Table, Text, between

DIGITS = 3  # of a mean
MINUTE = len("2026-11-21T20:30")


class QueryRun(Struct, frozen=True, kw_only=True):
    """One query in one recorded run."""

    id: str
    commit: str | None
    created_at: str
    status: str  # pass, broken, tolerated, absent (no such query yet), or unknown (its entry does not list all)
    ranks: dict[str, int | None] | None  # of its relevant documents; None if it is not known


class QueryHistory(Struct, frozen=True, kw_only=True):
    """The runs of one query, newest first, and when it broke."""

    query: str
    runs: list[QueryRun]
    broken: bool  # in the newest run
    since: QueryRun  # the first run in a row with this state
    before: QueryRun | None  # the last run with the other state; None if there is none


class Listing(Struct, frozen=True, kw_only=True):
    """What ``history show --format json`` prints."""

    contract: str
    branch: str | None
    entries: list[Entry] = []
    query: QueryHistory | None = None


def runs(entries: Sequence[Entry], metric: str | None) -> list[Block]:
    """Return the table of runs, newest first, and a line for each metric; raises InputError for an unknown metric."""
    keys = _keys(entries, metric)
    labels = {key: _label(entries, key) for key in keys}
    means = [Text(label, "label") for label in labels.values()]
    head: list[Parts] = ["when (UTC)", "commit", "verdict", *means, "broken"]
    rows: list[list[Parts]] = [
        [
            entry.created_at[:MINUTE].replace("T", " "),
            short_commit(entry.source.commit),
            Text(entry.state, "line"),
            *(fixed(_value(entry, key), DIGITS) for key in keys),
            f"{entry.broken.queries:,}",
        ]
        for entry in entries
    ]
    trends: list[list[Parts]] = [[Text(labels[key], "label"), *line] for key in keys if (line := _trend(entries, key))]
    return [Table(head, "lll" + "r" * (len(keys) + 1), rows), *([Table([], "lll", trends)] if trends else [])]


def one_run(entry: Entry) -> list[Block]:
    """Return what an entry says."""
    source = entry.source
    where = [("branch ", Name(shorten(source.branch, bounds.BRANCH)))] if source.branch else []
    facts: list[Parts] = [
        (Name(entry.id), f"  {entry.created_at}"),
        between(", ", [("commit ", Name(source.commit or "not known")), *where]),
        _line_of(entry.summary),
        ("verdict: ", Text(entry.state, "line")),
        *([("run: ", _line_of(source.run_url))] if source.run_url else []),
        *([("no result set: ", _line_of(entry.no_results))] if entry.no_results else []),
    ]
    metrics: list[list[Parts]] = [
        [Text(metric.label, "label"), fixed(metric.value, DIGITS), metric.status] for metric in entry.metrics.values()
    ]
    return [Items(facts), Table(["metric", "mean", "limits"], "lrl", metrics), *_failed(entry)]


def _line_of(text: str) -> Text:
    return Text(shorten(text, bounds.MESSAGE), "line")


def _failed(entry: Entry) -> Iterator[Block]:
    for title, ids in (("failed", entry.failed), ("broken, but not failed", entry.tolerated)):
        if ids:
            listed = between(", ", (Name(query_id) for query_id in ids[: bounds.ROWS]))
            yield Note((f"{title}: ", listed, more(len(ids), bounds.ROWS, form=" and {}")))


def _keys(entries: Sequence[Entry], metric: str | None) -> list[str]:
    """Return the metrics to show: the wanted one, or else those with a limit in the newest run, or else its first."""
    known = {key: each for entry in reversed(entries) for key, each in entry.metrics.items()}
    if metric is not None:
        if metric not in known:
            advice = NearNames(known).advice(metric)
            raise InputError([f"--metric {metric}: no run has this metric{f'; {advice}' if advice else ''}"])
        return [metric]
    limited = [key for key, each in known.items() if each.status != "none"]
    return (limited or [*known])[: bounds.TREND_METRICS]


def _label(entries: Sequence[Entry], key: str) -> str:
    return next(entry.metrics[key].label for entry in entries if key in entry.metrics)


def _value(entry: Entry, key: str) -> float | None:
    return entry.metrics[key].value if key in entry.metrics else None


def _trend(entries: Sequence[Entry], key: str) -> list[str]:
    """Return the values of a metric as blocks, oldest first, with the first and the last value."""
    values = [value for entry in reversed(entries) if (value := _value(entry, key)) is not None]
    if len(values) < 2:  # noqa: PLR2004 (a change needs two)
        return []
    return [sparkline(values), f"{fixed(values[0], DIGITS)} → {fixed(values[-1], DIGITS)}"]


def query_history(store: Store, entries: Iterable[Entry], query_id: str, most: int) -> QueryHistory:
    """Return the newest ``most`` runs of a query, and when it broke in all of the entries, which are newest first.

    Of an entry, which may be large, only its run of the query is kept. Raises :class:`InputError` if no run has the
    query.
    """
    query_id = encodable(query_id)
    ranks = _Ranks(store, query_id)
    all_runs = [ranks.run(entry, with_ranks=number < most) for number, entry in enumerate(entries)]
    listed = all_runs[:most]
    start = next((number for number, run in enumerate(listed) if run.status not in {ABSENT, UNKNOWN}), None)
    if start is None:
        raise InputError([f"--query {query_id}: none of the last {count(len(listed), 'run')} has this query"])
    broken = _is_broken(listed[start])
    others = (number for number in range(start, len(all_runs)) if _differs(all_runs[number], broken=broken))
    end = next(others, len(all_runs))
    since = next(run for run in reversed(all_runs[start:end]) if run.status != UNKNOWN)
    before = all_runs[end] if end < len(all_runs) else None
    return QueryHistory(
        query=query_id,
        runs=listed,
        broken=broken,
        since=replace(since, ranks=None),
        before=before and replace(before, ranks=None),
    )


def _is_broken(run: QueryRun) -> bool:
    return run.status in {"broken", "tolerated"}


def _differs(run: QueryRun, *, broken: bool) -> bool:
    """Return whether a run ends a row of runs in which a query is broken, or holds."""
    return run.status == ABSENT or (run.status != UNKNOWN and _is_broken(run) != broken)


class _Ranked(Struct, gc=False):
    """A query of a result set, as far as it is shown."""

    id: Id
    ranks: dict[str, int | None]


ABSENT: Literal["absent"] = "absent"
UNKNOWN = "unknown"
_InResults: TypeAlias = dict[str, int | None] | Literal["absent"] | None


class _Ranks:
    """Looks a query up in result sets, each of which is read once."""

    def __init__(self, store: Store, query_id: str) -> None:
        self._store = store
        self._query_id = query_id
        self._known: dict[str, _InResults] = {}

    def run(self, entry: Entry, *, with_ranks: bool = True) -> QueryRun:
        query = self._query(entry) if with_ranks else None
        status = "pass" if entry.lists_all_broken else UNKNOWN
        status = ABSENT if query is ABSENT else status
        status = "tolerated" if self._query_id in entry.tolerated else status
        status = "broken" if self._query_id in entry.failed else status
        return QueryRun(
            id=entry.id,
            commit=entry.source.commit,
            created_at=entry.created_at,
            status=status,
            ranks=query if isinstance(query, dict) else None,
        )

    def _query(self, entry: Entry) -> "_InResults":
        if entry.results is None:
            return None
        digest = entry.results.sha256
        if digest not in self._known:
            self._known[digest] = self._ranks_in(digest)
        return self._known[digest]

    def _ranks_in(self, digest: str) -> "_InResults":
        """Return the ranks of the query in a result set, or that it is absent; None if that is gone or was changed."""
        try:
            data = read_results(self._store, digest)
        except ChangedResultsError:
            return None
        if data is None:
            return None
        try:
            queries = msgspec.json.Decoder(_Ranked).decode_lines(data)
        except UNDECODABLE:
            return None
        return next((query.ranks for query in queries if as_id(query.id) == self._query_id), ABSENT)


def query_runs(history: QueryHistory) -> list[Block]:
    """Return the runs of a query as a table, and a sentence on when it broke."""
    rows: list[list[Parts]] = [
        [
            run.created_at[:MINUTE].replace("T", " "),
            short_commit(run.commit),
            run.status,
            between(", ", ((Name(doc_id), f" {rank or 'missing'}") for doc_id, rank in (run.ranks or {}).items())),
        ]
        for run in history.runs
    ]
    return [Table(["when (UTC)", "commit", "status", "ranks"], "llll", rows), Note(_when(history))]


def _when(history: QueryHistory) -> Parts:
    since, before = _at(history.since), history.before
    if before and before.status == ABSENT:
        state = "is broken" if history.broken else "holds"
        return (Name(history.query), f" {state} since {since}, the first run that has it.")
    if history.broken and before:
        return (Name(history.query), f" is broken since {since}; it last held at {_at(before)}.")
    if history.broken:
        return (Name(history.query), f" is broken in all runs that were read, since {since} or earlier.")
    if before:
        return (Name(history.query), f" holds since {since}; it was last broken at {_at(before)}.")
    return (Name(history.query), f" holds in all runs that were read, since {since} or earlier.")


def _at(run: QueryRun) -> str:
    return f"{short_commit(run.commit)} ({run.created_at[:10]})"
