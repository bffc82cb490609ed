"""What ``history show`` prints: the runs of a contract, one run, or the runs of one query."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache, partial
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

from ragcontract.contract.config import HistoryLimits
from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.gate import COMPARING, OF_LEVEL, written
from ragcontract.core.ids import Id, as_id
from ragcontract.core.nearest import NearNames
from ragcontract.core.numbers import SAME, as_written, count, fixed, more, sparkline
from ragcontract.core.phrase import Name
from ragcontract.core.safe_text import encodable, shorten
from ragcontract.files.json_lines import UNDECODABLE
from ragcontract.history.entry import Entry, short_commit
from ragcontract.history.interface import ChangedResultsError, Store, read_results
from ragcontract.history.trend import mean_beside, recorded_limits
from ragcontract.report.blocks import Block, Items, Note, Parts, Table, Text, between
from ragcontract.report.history_report import time_and_commit
from ragcontract.statistics.change_points import change_points
from ragcontract.statistics.levels import LEAST_SIGMAS, sigma, since_when
from ragcontract.statistics.suggested_limits import round_up

DIGITS, NOISE_DIGITS = 3, 4  # of a mean, and of its standard deviation
ABSENT: Literal["absent"] = "absent"  # there was no such query yet
BROKEN = ("broken", "tolerated")
UNKNOWN = "unknown"  # its entry does not list all broken queries

_Ranks: TypeAlias = dict[str, int | None]  # of the relevant documents of a query


class QueryRun(Struct, frozen=True, kw_only=True):
    """One query in one recorded run."""

    id: str
    commit: str | None
    created_at: str
    status: str  # pass, broken, tolerated, absent or unknown
    ranks: _Ranks | None  # None if they are not known


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
    labels = _labels(entries, metric)
    head: list[Parts] = ["when (UTC)", "commit", "verdict", *labels.values(), "broken"]
    rows: list[list[Parts]] = [
        [
            time_and_commit(entry.id)[0],
            short_commit(entry.commit),
            Text(entry.state, "line"),
            *(fixed(_value(entry, key), DIGITS) for key in labels),
            f"{entry.broken.queries:,}",
        ]
        for entry in entries
    ]
    noise = {key: _noise([value for _, value in _recorded(recent, key)]) for key in labels}
    trends: list[list[Parts]] = [
        [label, *line] for key, label in labels.items() if (line := _trend(entries, key, noise[key]))
    ]
    return [
        Table(head, "lll" + "r" * (len(labels) + 1), rows),
        *([Table([], "lll", trends)] if trends else []),
        *(Note(line) for key in labels for line in _below_noise(recent[0], key, noise[key])),
        *(Note(line) for line in _accepting(recent)),
    ]


def _recorded(entries: Sequence[Entry], key: str) -> list[tuple[Entry, float]]:
    """Return the recorded means, the oldest first, of the runs whose questions and scores are those of the newest one.

    Runs from a dirty working tree count no more than for a limit on levels.
    """
    newest = entries[0].head
    return [(entry, value) for entry in reversed(entries) if (value := mean_beside(newest, entry, key)) is not None]


def _noise(values: Sequence[float]) -> float | None:
    """Return the standard deviation of a run's mean between change points; None with too few runs."""
    return sigma(values, [point.position for point in change_points(values)])


def _below_noise(newest: Entry, key: str, noise: float | None) -> Iterator[Parts]:
    """Yield a warning for each limit of the newest run that good runs may break by chance."""
    settings = newest.head.contract.settings if newest.head.contract else {}
    is_tested = settings.get("fail_on.mode", "strict") != "strict"  # so that noise alone rarely fails
    kinds = OF_LEVEL if is_tested else OF_LEVEL | COMPARING
    for of in recorded_limits(newest):
        before = of.metric.value if of.gate.before is None else of.gate.before
        if noise is None or before is None or of.gate.metric != key or of.kind not in kinds:
            continue
        if of.gate.status == "fail":  # the newest runs may be worse for a reason
            return
        if of.allowed(before) < LEAST_SIGMAS * noise - SAME:
            limit = written(of.limit, relative=of.relative)
            least = as_written(round_up(LEAST_SIGMAS * noise))
            yield (
                Text(of.metric.label, "label"),
                f": a run's mean varies by σ = {fixed(noise, NOISE_DIGITS)}; the limit ",
                Name(shorten(of.gate.id, bounds.MESSAGE)),
                f" {limit} is below {LEAST_SIGMAS}σ ({least}), so runs will fail by chance; ",
                "`rag-contract suggest --history` proposes limits",
            )


def _accepting(recent: Sequence[Entry]) -> Iterator[Parts]:
    """Yield which ``since`` would accept the loss, if the newest run fails because it is below a level."""
    entries = recent[: window_of(recent[0])]
    days, labels = [], []
    for of in recorded_limits(recent[0]):
        now, past = of.metric.value, _recorded(entries, of.gate.metric or "")
        if now is not None and past and of.kind in OF_LEVEL and of.gate.status == "fail":
            values = [value for _, value in past]
            days.append(since_when([entry.day for entry, _ in past], values, now, of.allowed, of.metric.better))
            labels.append(Text(of.metric.label, "label"))
    if days:
        since = max(days)
        then = count(sum(entry.day >= since and not entry.source.dirty for entry in entries), "run")
        where = f"`since: {since}` in the section history of ragcontract.yml"
        yield (f"{where} would accept the loss of ", between(", ", labels), f": {then} since then")


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


def _labels(entries: Sequence[Entry], metric: str | None) -> dict[str, Text]:
    """Return the labels of the metrics to show: the wanted one, or else those with a limit, or else the first."""
    known = {key: each for entry in reversed(entries) for key, each in entry.metrics.items()}
    if metric is not None and metric not in known:
        advice = NearNames(known).advice(metric)
        raise InputError([f"--metric {metric}: no run has this metric{f'; {advice}' if advice else ''}"])
    limited = [key for key, each in known.items() if each.status != "none"]
    keys = [metric] if metric else (limited or [*known])[: bounds.TREND_METRICS]
    return {key: Text(known[key].label, "label") for key in keys}


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
    ranks_in = cache(partial(_ranks_in, store, query_id))
    all_runs = []
    for number, entry in enumerate(entries):
        ranks = ranks_in(entry.results.sha256) if entry.results and number < most else None
        all_runs.append(_query_run(entry, query_id, ranks))
    listed = all_runs[:most]
    start = next((number for number, run in enumerate(listed) if run.status not in {ABSENT, UNKNOWN}), None)
    if start is None:
        raise InputError([f"--query {query_id}: none of the last {count(len(listed), 'run')} has this query"])
    broken = listed[start].status in BROKEN
    other = {ABSENT, "pass"} if broken else {ABSENT, *BROKEN}
    end = next((at for at in range(start, len(all_runs)) if all_runs[at].status in other), len(all_runs))
    return QueryHistory(
        query=query_id,
        runs=listed,
        broken=broken,
        since=next(run for run in reversed(all_runs[start:end]) if run.status != UNKNOWN),
        before=all_runs[end] if end < len(all_runs) else None,
    )


def _query_run(entry: Entry, query_id: str, ranks: "_Ranks | Literal['absent'] | None") -> QueryRun:
    if query_id in entry.failed:
        status = "broken"
    elif query_id in entry.tolerated:
        status = "tolerated"
    elif ranks == ABSENT:
        status = ABSENT
    else:
        status = "pass" if entry.lists_all_broken else UNKNOWN
    return QueryRun(
        id=entry.id,
        commit=entry.commit,
        created_at=entry.created_at,
        status=status,
        ranks=ranks if isinstance(ranks, dict) else None,
    )


class _Ranked(Struct, gc=False):
    """A query of a result set, as far as it is shown."""

    id: Id
    ranks: "_Ranks"


def _ranks_in(store: Store, query_id: str, digest: str) -> "_Ranks | Literal['absent'] | None":
    """Return the ranks of a query in a result set, or that it is absent; None if that is gone or was changed."""
    try:
        data = read_results(store, digest)
        queries = msgspec.json.Decoder(_Ranked).decode_lines(data or b"")
    except (ChangedResultsError, *UNDECODABLE):
        return None
    ranks = next((query.ranks for query in queries if as_id(query.id) == query_id), ABSENT)
    return None if data is None else ranks


def query_runs(history: QueryHistory) -> list[Block]:
    """Return the runs of a query as a table, and a sentence on when it broke."""
    rows: list[list[Parts]] = [
        [
            time_and_commit(run.id)[0],
            short_commit(run.commit),
            run.status,
            between(", ", ((Name(doc_id), f" {rank or 'missing'}") for doc_id, rank in (run.ranks or {}).items())),
        ]
        for run in history.runs
    ]
    return [Table(["when (UTC)", "commit", "status", "ranks"], "llll", rows), Note(_when(history))]


def _when(history: QueryHistory) -> Parts:
    since, before = _at(history.since), history.before
    state, other = ("is broken", "last held") if history.broken else ("holds", "was last broken")
    if before is None:
        when = f"in all runs that were read, since {since} or earlier."
    elif before.status == ABSENT:
        when = f"since {since}, the first run that has it."
    else:
        when = f"since {since}; it {other} at {_at(before)}."
    return (Name(history.query), f" {state} {when}")


def _at(run: QueryRun) -> str:
    return f"{short_commit(run.commit)} ({run.created_at[:10]})"
