"""From the counts of all workers to the scores that a verdict rests on, on the driver."""

from collections.abc import Mapping, Sequence

import msgspec
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sql

from ragcontract.inputs.diagnostics import SHOWN, Diagnostics
from ragcontract.model import VERSION_FIELDS, GoldenQuery, QueryScore, SourceFile
from ragcontract.numbers import count
from ragcontract.scoring.duplicates import NAMED, Duplicates
from ragcontract.scoring.repeats import averaged
from ragcontract.scoring.scored import ScoredRun
from ragcontract.spark.latency import latency_of
from ragcontract.spark.partition import TALLIES, Job

LISTED = 1_000  # ids of no golden query, and versions, that a report lists


def scored_run(
    counts: DataFrame, names: Sequence[str], job: Job, diagnostics: Diagnostics, *, repeats: bool
) -> ScoredRun:
    """Fold ``counts``, each kind, number and key once, into the scores of a run that is called ``names``.

    What is collected has the size of the golden set times the scores that its queries have, never that of the run.
    """
    golden = job.golden
    queries = list(golden.values())
    place = names[0] + (f" (and {count(len(names) - 1, 'more file')})" if len(names) > 1 else "")
    fared: dict[int, list[tuple[bytes, int]]] = {}
    short: dict[int, int] = {}
    tally = dict.fromkeys(TALLIES, 0)
    for kind, number, key, rows in counts.filter(sql.col("kind").isin("score", "short", "tally")).collect():
        if kind == "score":
            fared.setdefault(number, []).append((bytes(key), rows))
        elif kind == "short":
            short[number] = rows
        else:
            tally[bytes(key).decode()] = rows

    _tell(counts, tally, place, diagnostics)
    unknown, more_unknown = _unknown(counts, place, diagnostics, repeats=repeats)
    scores, rows_of = _scores(fared, queries, place, diagnostics, repeats=repeats)
    missing = [query_id for query_id in golden if query_id not in scores]
    scores |= {query_id: job.scorer.score(golden[query_id], ()) for query_id in missing}
    return ScoredRun(
        scores=scores,
        rows=rows_of,
        versions=_versions(counts, place, diagnostics),
        files=[SourceFile(path=name, sha256="") for name in names],
        missing=missing,
        unknown=unknown,
        more_unknown=more_unknown,
        latency=latency_of(counts.filter("kind = 'latency'")),
        unmeasured=tally["unmeasured"],
        duplicates=Duplicates(
            k=job.k,
            results=tally["results"],
            repeated=tally["repeated"],
            short=sum(short.values()),
            named=[queries[number].id for number in sorted(short)[:NAMED]],
        ),
    )


def _scores(
    fared: Mapping[int, list[tuple[bytes, int]]],
    queries: Sequence[GoldenQuery],
    place: str,
    diagnostics: Diagnostics,
    *,
    repeats: bool,
) -> tuple[dict[str, QueryScore], dict[str, int]]:
    """Return a score a query, and how many rows each has where any has several."""
    decode = msgspec.msgpack.Decoder(QueryScore).decode
    decoded: dict[bytes, QueryScore] = {}  # queries that fared alike share a score
    scores: dict[str, QueryScore] = {}
    rows_of: dict[str, int] = {}
    for number, different in sorted(fared.items()):
        query_id = queries[number].id
        rows_of[query_id] = sum(rows for _, rows in different)
        if rows_of[query_id] > 1 and not repeats:
            _refuse_repeats(place, query_id, rows_of[query_id], diagnostics)
        counted = []
        for key, rows in sorted(different):
            if key not in decoded:
                decoded[key] = decode(key)
            counted.append((decoded[key], rows))
        alone = rows_of[query_id] == 1
        scores[query_id] = counted[0][0] if alone else averaged(*zip(*counted, strict=True))
    return scores, rows_of if any(rows > 1 for rows in rows_of.values()) else {}


def _refuse_repeats(place: str, query_id: str, rows: int, diagnostics: Diagnostics) -> None:
    diagnostics.problem(
        f"{place}: query_id",
        f"{query_id!r} stands in {count(rows, 'row')} (several rows a query are averaged with --repeats)",
    )


def _unknown(counts: DataFrame, place: str, diagnostics: Diagnostics, *, repeats: bool) -> tuple[list[str], int]:
    """Return the first ids of no golden query, and how many more there are."""
    unknown = counts.filter("kind = 'unknown'")
    if not repeats:
        for row in _first(unknown.filter("rows > 1"), SHOWN):
            _refuse_repeats(place, bytes(row.key).decode(), row.rows, diagnostics)
    listed = [bytes(row.key).decode() for row in _first(unknown, LISTED)]
    return listed, unknown.count() - len(listed) if len(listed) == LISTED else 0


def _tell(counts: DataFrame, tally: Mapping[str, int], place: str, diagnostics: Diagnostics) -> None:
    """Tell what workers found to be wrong or odd with rows."""
    if not tally["rows"] and not tally["problems"]:
        diagnostics.problem(place, "has no rows")
    if tally["problems"]:
        told = [bytes(row.key).decode() for row in _first(counts.filter("kind = 'problem'"), SHOWN)]
        diagnostics.include(told, more=tally["problems"] - len(told))
    if tally["unordered"]:
        (first,) = _first(counts.filter("kind = 'unordered'"), 1)
        diagnostics.warning(
            f"{bytes(first.key).decode()}: the scores are not in descending order "
            f"({count(tally['unordered'], 'such row')}); ranks are the order of the results, scores never reorder them"
        )


def _versions(counts: DataFrame, place: str, diagnostics: Diagnostics) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for number, field in enumerate(VERSION_FIELDS):
        rows = _first(counts.filter((sql.col("kind") == "version") & (sql.col("number") == number)), LISTED + 1)
        if len(rows) > LISTED:
            diagnostics.warning(f"{place}: has more than {LISTED:,} values of {field}; the others are left out")
        if rows:
            found[field] = [bytes(row.key).decode() for row in rows[:LISTED]]
    return found


def _first(rows: DataFrame, number: int) -> list[Row]:
    return rows.orderBy("key").limit(number).collect()
