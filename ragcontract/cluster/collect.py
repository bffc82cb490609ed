"""Builds a side on the driver from the counts of all workers."""

from collections import Counter
from collections.abc import Sequence
from itertools import repeat

import msgspec

from ragcontract.cluster.counts import Counted, Counts
from ragcontract.cluster.percentiles import latency_of
from ragcontract.cluster.workers import TALLIES, Job
from ragcontract.core import bounds
from ragcontract.core.first_ids import together
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.numbers import count
from ragcontract.core.rule import Violation
from ragcontract.core.run import VERSION_FIELDS, ListedResult, SourceFile
from ragcontract.core.scores import QueryScore
from ragcontract.evaluation.columns import Column, SharedColumn
from ragcontract.evaluation.depths import depth_of
from ragcontract.evaluation.diagnostics import columns_of
from ragcontract.evaluation.duplicates import Duplicates
from ragcontract.evaluation.fold import merged
from ragcontract.evaluation.listed_results import ListedResults
from ragcontract.evaluation.pattern_ids import PatternIds
from ragcontract.evaluation.plan import RowOutcome
from ragcontract.evaluation.score_gaps import ScoreGaps
from ragcontract.evaluation.side import Side
from ragcontract.files.problems import Collector, Problems
from ragcontract.runs.order import look_like_distances, out_of_order
from ragcontract.statistics.repeats import averaged, averaged_values

# Kinds of counts whose number has nothing to do with the number of rows.
WHOLE = ("outcome", "first", "short", "failed", "otherwise", "tally", "depth")


def side_of(counts: Counts, names: Sequence[str], job: Job, problems: Collector) -> Side:
    """Build the side of a run from its counts; ``names`` are its inputs, ``problems`` those found when opening it.

    Memory use is proportional to the number of golden queries and their distinct outcomes, not to the size of the run.
    """
    plan = job.plan
    queries = list(plan.golden.values())
    location = names[0] + (f" (and {count(len(names) - 1, 'more file')})" if len(names) > 1 else "")
    tally = dict.fromkeys(TALLIES, 0) | {one.key.decode(): one.rows for one in counts.here("tally") or ()}
    _report(counts, tally, location, problems)
    outcomes = _Outcomes(job, counts.here("outcome") or ())
    if not plan.repeats:
        _refuse_repeats(counts, outcomes.rows, location, problems)
    asked_otherwise = tuple(queries[one.number].id for one in counts.here("otherwise") or ())
    changed = asked_otherwise if plan.is_baseline else ()
    apart = {*outcomes.scores, *changed}
    missing = tuple([query_id for query_id in plan.golden if query_id not in apart])
    lacking = plan.score_gaps(outcomes.columns, outcomes.gaps.lacking())
    if not plan.is_baseline:
        outcomes.score(missing)
    first_ids = _first_ids(counts, job)
    unknown = [one.key.decode() for one in counts.first("unknown", bounds.UNKNOWN)]
    return Side(
        scores=outcomes.scores,
        columns=(*outcomes.columns, *columns_of(plan, outcomes.scores, outcomes.overlap)),
        violations=outcomes.violations,
        rows=outcomes.rows if any(several > 1 for several in outcomes.rows.values()) else {},
        versions=_versions(counts, location, problems),
        files=tuple(SourceFile(path=name, sha256="") for name in names),
        missing=missing,
        lacking=lacking,
        undeclared=tuple(one.key.decode() for one in counts.first("undeclared", bounds.NAMES)),
        pools=first_ids,
        first_ids=first_ids,
        retrieved=retrieved_of(counts, job, missing),
        unknown=tuple(unknown),
        more_unknown=counts.size("unknown").counts - len(unknown),
        latency=latency_of(counts, tally["measured"]),
        unmeasured=tally["unmeasured"],
        failed=tuple(queries[one.number].id for one in counts.here("failed") or ()),
        asked_otherwise=asked_otherwise,
        changed=changed,
        pattern_ids=PatternIds(plan).never,
        duplicates=_duplicates(counts, tally, queries),
        depth=depth_of(Counter({one.number: one.rows for one in counts.here("depth") or ()})),
        distances=_are_distances(tally),
        problems=problems.found(),
    )


def _duplicates(counts: Counts, tally: dict[str, int], queries: Sequence[GoldenQuery]) -> Duplicates:
    short = counts.here("short") or []
    return Duplicates(
        results=tally["results"],
        repeated=tally["repeated"],
        short=sum(one.rows for one in short),
        named=tuple(queries[one.number].id for one in short[: bounds.NAMES]),
    )


class _Outcomes:
    """The combined outcomes of each query; ``rows`` has the number of rows per query."""

    def __init__(self, job: Job, counted: Sequence[Counted]) -> None:
        self._plan = job.plan
        self.scores: dict[str, QueryScore] = {}
        self.rows: dict[str, int] = {}
        self.columns = tuple(Column(len(family.metrics), job.numbers) for family in job.plan.families)
        self.overlap = SharedColumn()
        self.violations: dict[str, tuple[Violation, ...]] = {}
        self.gaps = ScoreGaps(job.plan.scores)
        decode = msgspec.msgpack.Decoder(RowOutcome).decode
        decoded = {key: decode(key) for key in {one.key for one in counted}}  # queries with the same ranks share one
        by_query: dict[int, list[Counted]] = {}
        for one in counted:
            by_query.setdefault(one.number, []).append(one)
        ids = list(job.plan.golden)
        for number, several in by_query.items():
            self._note(ids[number], [decoded[one.key] for one in several], [one.rows for one in several])

    def _note(self, query_id: str, outcomes: list[RowOutcome], rows: list[int]) -> None:
        once = sum(rows) == 1
        self.rows[query_id] = sum(rows)
        self.scores[query_id] = outcomes[0].score if once else averaged([one.score for one in outcomes], rows)
        for number, column in enumerate(self.columns):
            column.note(query_id, averaged_values([one.values[number] for one in outcomes], rows))
        self.overlap.add(query_id, averaged_values([one.overlap for one in outcomes], rows))
        for outcome in outcomes:
            self.gaps.note(query_id, outcome.lacking)
            if outcome.violations:
                self.violations[query_id] = merged(self.violations.get(query_id, ()), outcome.violations)

    def score(self, missing: Sequence[str]) -> None:
        """Score golden queries without a row as if nothing was retrieved."""
        for query_id in missing:
            self._note(query_id, [self._plan.missing(self._plan.golden[query_id])], [1])
            del self.rows[query_id]


def _first_ids(counts: Counts, job: Job) -> dict[str, bytes]:
    """Return the packed first ids of a baseline's rows by query; rows have no order here, so they are sorted."""
    ids, found = list(job.plan.golden), dict[str, list[Counted]]()
    for one in counts.here("first") or ():
        found.setdefault(ids[one.number], []).append(one)
    return {
        query_id: together(key for one in several for key in repeat(one.key, one.rows))
        for query_id, several in found.items()
    }


def retrieved_of(counts: Counts, job: Job, missing: Sequence[str] = ()) -> dict[str, tuple[ListedResult, ...]]:
    """Return the results that reports list, in the order of the golden queries.

    Rows have no order here: of several rows of a query, always the same one is chosen.
    """
    ids = list(job.plan.golden)
    decode = msgspec.msgpack.Decoder(tuple[ListedResult, ...]).decode
    found: dict[str, tuple[ListedResult, ...]] = {}
    for one in counts.lowest("retrieved", bounds.RETRIEVED_QUERIES):
        if ids[one.number] not in found:
            found[ids[one.number]] = decode(one.key)
    listed = ListedResults(job.plan)
    for query_id in missing if not job.plan.is_baseline else ():
        outcome = job.plan.missing(job.plan.golden[query_id])
        if outcome.violations or listed.breaks(job.plan.golden[query_id], outcome.score):
            listed.hold(query_id, ())
    return found | listed.held


def _refuse_repeats(counts: Counts, rows: dict[str, int], location: str, problems: Collector) -> None:
    """Add a problem for each query id with several rows, whether or not it is a golden query."""
    several = [(query_id, of) for query_id, of in rows.items() if of > 1]
    if counts.size("unknown").most > 1:
        several += [(one.key.decode(), one.rows) for one in counts.first("unknown", bounds.PROBLEMS, rows=2)]
    for query_id, of in several:
        problems.problem(
            f"{location}: query_id",
            f"{query_id!r} occurs in {count(of, 'row')} (several rows per query are averaged with --repeats)",
        )


def _report(counts: Counts, tally: dict[str, int], location: str, problems: Collector) -> None:
    """Add the problems and warnings that the workers counted."""
    if not tally["rows"] and not tally["problems"] and not problems.found():
        problems.problem(location, "has no rows")
    described = tuple(one.key.decode() for one in counts.first("problem", bounds.PROBLEMS))
    problems.include(Problems(problems=described, more=tally["problems"] - len(described)))
    if tally["unordered"] and not _are_distances(tally):
        (first,) = counts.first("unordered", 1)
        problems.warning(out_of_order(first.key.decode(), tally["unordered"]))


def _are_distances(tally: dict[str, int]) -> bool:
    return look_like_distances(tally["unordered"], tally["rising"], falling=tally["falling"] > 0)


def _versions(counts: Counts, location: str, problems: Collector) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for number, field in enumerate(VERSION_FIELDS):
        values = [one.key.decode() for one in counts.first("version", bounds.VERSIONS + 1, number=number)]
        if len(values) > bounds.VERSIONS:
            problems.warning(
                f"{location}: has more than {bounds.VERSIONS:,} values of {field}; the others are left out"
            )
        if values:
            found[field] = values[: bounds.VERSIONS]
    return found
