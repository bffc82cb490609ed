"""From the counts of all workers to the scores that a verdict rests on, on the driver."""

from collections.abc import Sequence

import msgspec

from ragcontract.cluster.counts import Counted, Counts
from ragcontract.cluster.percentiles import latency_of
from ragcontract.cluster.workers import TALLIES, Job
from ragcontract.core.numbers import count
from ragcontract.evaluation.duplicates import NAMED, Duplicates
from ragcontract.evaluation.scored import ScoredRun
from ragcontract.files.problems import SHOWN, Diagnostics
from ragcontract.model import VERSION_FIELDS, GoldenQuery, QueryScore, SourceFile
from ragcontract.statistics.repeats import averaged

WHOLE = ("score", "short", "tally")  # kinds of counts whose number has nothing to do with the number of rows
LISTED = 1_000  # ids of no golden query, and versions, that a report lists


def scored_run(counts: Counts, names: Sequence[str], job: Job, diagnostics: Diagnostics, *, repeats: bool) -> ScoredRun:
    """Fold counts into the scores of a run that is called ``names``.

    What they take has the size of the golden set times the scores that its queries have, never that of the run.
    """
    queries = list(job.golden.values())
    location = names[0] + (f" (and {count(len(names) - 1, 'more file')})" if len(names) > 1 else "")
    tally = dict.fromkeys(TALLIES, 0) | {one.key.decode(): one.rows for one in counts.here("tally") or ()}
    _tell(counts, tally, location, diagnostics)
    scores, rows = _scores(counts.here("score") or (), queries)
    if not repeats:
        _refuse_repeats(counts, rows, location, diagnostics)
    missing = [query_id for query_id in job.golden if query_id not in scores]
    scores |= {query_id: job.scorer.score(job.golden[query_id], ()) for query_id in missing}
    short = counts.here("short") or ()
    unknown = [one.key.decode() for one in counts.first("unknown", LISTED)]
    return ScoredRun(
        scores=scores,
        rows=rows if any(several > 1 for several in rows.values()) else {},
        versions=_versions(counts, location, diagnostics),
        files=[SourceFile(path=name, sha256="") for name in names],
        missing=missing,
        unknown=unknown,
        more_unknown=counts.size("unknown").counts - len(unknown),
        latency=latency_of(counts, tally["measured"]),
        unmeasured=tally["unmeasured"],
        duplicates=Duplicates(
            k=job.k,
            results=tally["results"],
            repeated=tally["repeated"],
            short=sum(one.rows for one in short),
            named=[queries[one.number].id for one in short[:NAMED]],
        ),
    )


def _scores(counted: Sequence[Counted], queries: Sequence[GoldenQuery]) -> tuple[dict[str, QueryScore], dict[str, int]]:
    """Return a score a query, and how many rows each has."""
    decode = msgspec.msgpack.Decoder(QueryScore).decode
    decoded = {key: decode(key) for key in {one.key for one in counted}}  # queries that fared alike share a score
    fared: dict[int, list[Counted]] = {}
    for one in counted:
        fared.setdefault(one.number, []).append(one)
    scores: dict[str, QueryScore] = {}
    rows: dict[str, int] = {}
    for number, different in fared.items():
        query_id = queries[number].id
        rows[query_id] = sum(one.rows for one in different)
        several = [decoded[one.key] for one in different]
        scores[query_id] = several[0] if rows[query_id] == 1 else averaged(several, [one.rows for one in different])
    return scores, rows


def _refuse_repeats(counts: Counts, rows: dict[str, int], location: str, diagnostics: Diagnostics) -> None:
    """Tell of queries with several rows, and of ids of no golden query with several."""
    several = [(query_id, of) for query_id, of in rows.items() if of > 1]
    if counts.size("unknown").most > 1:
        several += [(one.key.decode(), one.rows) for one in counts.first("unknown", SHOWN, rows=2)]
    for query_id, of in several:
        diagnostics.problem(
            f"{location}: query_id",
            f"{query_id!r} stands in {count(of, 'row')} (several rows a query are averaged with --repeats)",
        )


def _tell(counts: Counts, tally: dict[str, int], location: str, diagnostics: Diagnostics) -> None:
    """Tell what workers found to be wrong or odd with rows."""
    if not tally["rows"] and not tally["problems"] and not diagnostics.problems:
        diagnostics.problem(location, "has no rows")
    told = [one.key.decode() for one in counts.first("problem", SHOWN)]
    diagnostics.include(told, more=tally["problems"] - len(told))
    if tally["unordered"]:
        (first,) = counts.first("unordered", 1)
        diagnostics.warning(
            f"{first.key.decode()}: the scores are not in descending order "
            f"({count(tally['unordered'], 'such row')}); ranks are the order of the results, scores never reorder them"
        )


def _versions(counts: Counts, location: str, diagnostics: Diagnostics) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for number, field in enumerate(VERSION_FIELDS):
        values = [one.key.decode() for one in counts.first("version", LISTED + 1, number=number)]
        if len(values) > LISTED:
            diagnostics.warning(f"{location}: has more than {LISTED:,} values of {field}; the others are left out")
        if values:
            found[field] = values[:LISTED]
    return found
