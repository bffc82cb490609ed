"""What ``history show`` prints: the runs of a contract, one run, or the runs of one query."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ragcontract.contract.config import HistoryLimits
from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.gate import COMPARING, FALLING, OF_LEVEL, Kind, written
from ragcontract.core.ids import Id, as_id
from ragcontract.core.metric import Direction
from ragcontract.core.nearest import NearNames
from ragcontract.core.numbers import SAME, as_written, count, fixed, more, sparkline
from ragcontract.core.phrase import Name
from ragcontract.core.safe_text import encodable, shorten
from ragcontract.decision.gate_report import KINDS
from ragcontract.files.json_lines import UNDECODABLE
from ragcontract.history.entry import Entry, EntryGate, short_commit
from ragcontract.history.interface import ChangedResultsError, Store, read_results
from ragcontract.history.trend import is_alike, mean_of
from ragcontract.report.blocks import Block, Items, Note, Parts, Table, Text, between
from ragcontract.statistics.change_points import change_points
from ragcontract.statistics.levels import sigma, since_when
from ragcontract.statistics.suggested_limits import round_up

SIGMAS = 3  # of a limit, at least, or good runs fail too often
DIGITS, NOISE_DIGITS = 3, 4  # of a mean, and of its standard deviation
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


def window_of(newest: Entry) -> int:
    """Return how many runs limits on levels looked at in a check."""
    window = newest.head.contract.settings.get("history.window") if newest.head.contract else None
    return window if isinstance(window, int) and 0 < window <= bounds.WINDOW else HistoryLimits().window


def runs(recent: Sequence[Entry], last: int, metric: str | None) -> list[Block]:
    """Return the table of the ``last`` runs, newest first, and a line for each metric, with what may be wrong.

    The noise of a metric is that of all ``recent`` runs. Raises InputError for an unknown metric.
    """
    entries = recent[:last]
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
    noise = {key: _noise([value for _, value in _recorded(recent, key)]) for key in keys}
    trends: list[list[Parts]] = [
        [Text(labels[key], "label"), *line] for key in keys if (line := _trend(entries, key, noise[key]))
    ]
    return [
        Table(head, "lll" + "r" * (len(keys) + 1), rows),
        *([Table([], "lll", trends)] if trends else []),
        *(Note(line) for key in keys for line in _below_noise(recent[0], key, noise[key])),
        *(Note(line) for line in _accepting(recent)),
    ]


def _recorded(entries: Sequence[Entry], key: str) -> list[tuple[Entry, float]]:
    """Return the recorded means, the oldest first, of the runs whose questions and scores are those of the newest one.

    Runs from a dirty working tree count no more than for a limit on levels.
    """
    newest = entries[0].head
    return [
        (entry, value)
        for entry in reversed(entries)
        if is_alike(entry, newest) and (value := mean_of(entry, key, newest.fingerprints.get(key))) is not None
    ]


def _noise(values: Sequence[float]) -> float | None:
    """Return the standard deviation of a run's mean between change points; None with too few runs."""
    return sigma(values, [point.position for point in change_points(values)])


class _Limit(Struct, frozen=True, kw_only=True):
    """A limit of a run on the change of a metric."""

    gate: EntryGate
    limit: float
    kind: Kind
    relative: bool
    zero: float  # of the scale, from which relative limits count
    now: float  # the mean of the run

    def allowed(self, before: float) -> float:
        """Return how much the metric may change from a value."""
        return self.limit * abs(before - self.zero) if self.relative else self.limit

    def holds(self, before: float) -> bool:
        """Return whether the run is within the limit of a value."""
        change = before - self.now if self.kind in FALLING else self.now - before
        return change <= self.allowed(before) + SAME


def _limits(entry: Entry) -> Iterator[_Limit]:
    """Yield the limits of a run on changes of means over all queries."""
    for gate in entry.gates:
        unit, kind, relative = KINDS.get(gate.kind, (None, None, False))  # type: ignore[call-overload]
        metric = entry.metrics.get(gate.metric or "")
        now = metric.value if metric else None
        if metric is None or now is None or not isinstance(gate.limit, float):
            continue
        if unit == "points" and kind in COMPARING | OF_LEVEL and gate.tag is None:
            zero = metric.scale.zero
            yield _Limit(gate=gate, limit=gate.limit, kind=kind, relative=relative, zero=zero, now=now)


def _below_noise(newest: Entry, key: str, noise: float | None) -> Iterator[Parts]:
    """Yield a warning for each limit of the newest run that good runs may break by chance."""
    settings = newest.head.contract.settings if newest.head.contract else {}
    tested = settings.get("fail_on.mode", "strict") != "strict"  # so that noise alone rarely fails
    for limit in _limits(newest):
        if noise is None or limit.gate.metric != key or (tested and limit.kind in COMPARING):
            continue
        before = limit.now if limit.gate.before is None else limit.gate.before
        if limit.allowed(before) < SIGMAS * noise - SAME:
            least = as_written(round_up(SIGMAS * noise))
            yield (
                (
                    Text(newest.metrics[key].label, "label"),
                    f": a run's mean varies by σ = {fixed(noise, NOISE_DIGITS)}; ",
                ),
                ("the limit ", Name(shorten(limit.gate.id, bounds.MESSAGE))),
                f" {written(limit.limit, relative=limit.relative)} is below {SIGMAS}σ ({least}), so runs will fail by ",
                "chance; `rag-contract suggest --history` proposes limits",
            )


def _accepting(recent: Sequence[Entry]) -> Iterator[Parts]:
    """Yield which ``since`` would accept the loss, if the newest run fails because it is below a level."""
    entries = recent[: window_of(recent[0])]
    days = []
    for limit in _limits(recent[0]):
        recorded = _recorded(entries, limit.gate.metric or "")
        if limit.kind in OF_LEVEL and limit.gate.status == "fail" and recorded:
            values = [value for _, value in recorded]
            better: Direction = "higher" if limit.kind in FALLING else "lower"
            days.append(since_when([entry.day for entry, _ in recorded], values, limit.now, limit.holds, better))
    if days:
        since = max(days)
        then = count(sum(entry.day >= since and not entry.source.dirty for entry in entries), "run")
        yield f"since: {since} in the section history of ragcontract.yml would accept the loss: {then} since then"


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


def _trend(entries: Sequence[Entry], key: str, noise: float | None) -> list[str]:
    """Return the values of a metric as blocks, oldest first, with the first and the last value, and the noise."""
    values = [value for entry in reversed(entries) if (value := _value(entry, key)) is not None]
    if len(values) < 2:  # noqa: PLR2004 (a change needs two)
        return []
    varies = "" if noise is None else f", σ = {fixed(noise, NOISE_DIGITS)}"
    return [sparkline(values), f"{fixed(values[0], DIGITS)} → {fixed(values[-1], DIGITS)}{varies}"]


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
