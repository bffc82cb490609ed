"""What a worker does with its part, without a cluster."""

import json
from collections.abc import Iterable
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from msgspec.structs import replace

from ragcontract.cluster import workers as partition
from ragcontract.cluster.workers import Job, bits, from_bits, kind_of, of_columns, of_lines
from ragcontract.core import bounds
from ragcontract.evaluation.observations import Depths, RepeatedResults, ScoreOrder
from ragcontract.evaluation.plan import RowOutcome
from tests.builders import Row, run
from tests.records import query
from tests.runs.sides import plan_of

Counts = dict[tuple[str, int, bytes], int]


def job(k: int = 3) -> Job:
    queries = [query("q1", "a"), query("q2", "a", "b", forbidden_doc_ids=("x",))]
    return Job(plan_of(queries, {"k": k}))


def added_up(batches: Iterable[pa.RecordBatch]) -> Counts:
    found: Counts = {}
    for batch in batches:
        for row in batch.to_pylist():
            key = (row["kind"], row["number"], row["key"])
            found[key] = found.get(key, 0) + row["rows"]
    return found


def lines(*rows: Row | bytes) -> pa.RecordBatch:
    encoded = [row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows]
    return pa.RecordBatch.from_pydict({"line": pa.array(encoded, pa.binary()), "file": ["r.jsonl"] * len(rows)})


def columns(*rows: Row) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([row | {"file": "r.parquet"} for row in rows])


def of(counts: Counts, kind: str) -> dict[tuple[int, bytes], int]:
    return {(number, key): rows for (of_kind, number, key), rows in counts.items() if of_kind == kind}


def observed(counts: Counts, observation: type) -> dict[tuple[Any, ...], int]:
    kind, decode = kind_of(observation), msgspec.msgpack.Decoder(tuple[Any, ...]).decode
    return {decode(key): rows for (_, key), rows in of(counts, kind).items()}


def test_rows_with_the_same_outcome_are_one_count() -> None:
    rows = [run("q1", "x", "a"), run("q2", "b", "x"), run("q1", "y", "a"), run("q1", "a")]
    for counts in (
        added_up(of_lines([lines(*rows[:3]), lines(rows[3])], job())),
        added_up(of_columns([columns(*rows)], job())),
    ):
        scores = {
            (number, msgspec.msgpack.decode(key, type=RowOutcome).score.ranks): rows
            for (number, key), rows in of(counts, "outcome").items()
        }
        assert scores == {(0, (2,)): 2, (0, (1,)): 1, (1, (None, 1)): 1}
        assert counts["tally", 0, b"rows"] == 4
        assert observed(counts, RepeatedResults) == {("results",): 7}


def test_what_is_known_of_rows_besides_is_counted() -> None:
    rows = [
        run("q1", "a", latency_ms=3, embedding_model="e", index_version=7),
        run("q1", "a", latency_ms=-0.0, embedding_model="e"),
        run("q2", "a", "a", "b", latency_ms=3.0),
        run("q2", "a"),
        run("x", "a", latency_ms=9, embedding_model="other"),
        run("x", "a"),
        {"query_id": "q1", "results": [{"doc_id": "a", "score": 1}, {"doc_id": "b", "score": 2}]},
    ]
    counts = added_up(of_lines([lines(*rows)], job()))
    assert of(counts, "latency") == {(bits(3.0), b""): 2, (bits(0.0), b""): 1}
    assert of(counts, "unknown") == {(0, b"x"): 2}
    assert of(counts, "version") == {(0, b"e"): 2, (1, b"7"): 1}
    assert observed(counts, RepeatedResults) == {("results",): 8, ("repeated",): 1, ("short", "q2"): 1}
    assert observed(counts, Depths) == {(1,): 3, (2,): 1, (3,): 1}
    first = ("first", "r.jsonl", 0, '"q1"')
    assert observed(counts, ScoreOrder) == {first: 1, ("unordered",): 1, ("rising",): 1}
    assert {key.decode(): rows for (_, key), rows in of(counts, "tally").items() if rows} == {
        "rows": 7,
        "measured": 3,
        "unmeasured": 2,
    }


def test_bits_are_in_the_order_of_numbers() -> None:
    values = [0.0, 5e-324, 0.1, 1.0, 1.0000000000000002, 41.5, 1e9]
    assert sorted(map(bits, values)) == [bits(value) for value in values]
    assert [from_bits(bits(value)) for value in values] == values


BAD_LINES: list[tuple[bytes, str]] = [
    (b'{"query_id": "q1"}', 'r.jsonl: query "q1": results: is missing'),
    (
        b'{"query_id": "", "results": []}',
        'r.jsonl: query "": query_id: expected text of 1 to 2,000 characters, or a whole number',
    ),
    (b'{"results": []}', r'r.jsonl: the line "{\"results\": []}": query_id: is missing'),
    (b'{"query_id": "q1", "resu', r'r.jsonl: the line "{\"query_id\": \"q1\", \"resu": is cut off in the middle'),
    (b"[1]", 'r.jsonl: the line "[1]": expected an object, found [1]'),
]


@pytest.mark.parametrize(("line", "sentence"), BAD_LINES, ids=[sentence for _, sentence in BAD_LINES])
def test_a_bad_line_is_reported_by_file_and_query(line: bytes, sentence: str) -> None:
    assert_reported(line, sentence)


def test_a_line_that_is_too_long_is_reported() -> None:
    assert_reported(b"{" + b" " * bounds.LINE, 'r.jsonl: the line "{": the line is longer than 64 MiB')


def assert_reported(line: bytes, sentence: str) -> None:
    counts = added_up(
        of_lines([lines(run("q1"), line, b" \r", b"\xef\xbb\xbf" + json.dumps(run("q2")).encode())], job())
    )
    ((_, reported),) = of(counts, "problem")
    assert reported.decode().startswith(sentence)
    assert (counts["tally", 0, b"problems"], counts["tally", 0, b"rows"]) == (1, 2)


def test_a_bad_row_of_columns_is_reported_by_file_and_query() -> None:
    rows: list[dict[str, Any]] = [run("q1", latency_ms=1.0), run("q2", latency_ms=-2.0), run("q2") | {"query_id": None}]
    counts = added_up(of_columns([columns(*rows)], job()))
    assert sorted(key.decode() for _, key in of(counts, "problem")) == [
        "r.parquet: a row: query_id: is missing",
        'r.parquet: query "q2": latency_ms: expected a number from 0 to a billion, found -2.0',
    ]
    assert counts["tally", 0, b"rows"] == 1


def test_a_forbidden_document_in_another_form_is_reported_by_file_and_query() -> None:
    counts = added_up(of_lines([lines(run("q1", "X"), run("q2", "a", "b", "docs/X.md"))], job()))
    ((_, reported),) = of(counts, "problem")
    assert reported.decode().startswith(
        "r.jsonl: query \"q2\": results[2].doc_id: 'docs/X.md' looks like 'x', which is forbidden here: is this the "
    )


def test_a_row_without_results_is_reported_where_its_query_names_documents() -> None:
    forbids = query("q1", names_documents=False, forbidden_doc_ids=("x",))
    plan = plan_of([forbids, query("q2", names_documents=False), query("q3", "a")], {})
    rows: list[Row] = [{"query_id": "q1"}, {"query_id": "q2"}, {"query_id": "q3"}, run("q1", "b")]
    counts = added_up(of_lines([lines(*rows)], Job(plan)))
    assert sorted(key.decode() for _, key in of(counts, "problem")) == [
        f'r.jsonl: query "{query_id}": results: is missing, and query "{query_id}" names documents; '
        "export what was retrieved, [] where nothing was"
        for query_id in ("q1", "q3")
    ]


def test_bad_rows_are_reported_up_to_a_number_and_counted_beyond() -> None:
    counts = added_up(of_lines([lines(*[b'{"query_id": "q%d"}' % n for n in range(70)])], job()))
    reported = of(counts, "problem")
    assert (len(reported), sum(reported.values()), counts["tally", 0, b"problems"]) == (50, 50, 70)


def test_counts_are_handed_on_before_there_are_too_many() -> None:
    rows = partition.HELD // 4 - 9
    batches = [lines(run("q1", "a", "a"), *[run(f"x{batch}-{n}") for n in range(rows)]) for batch in range(6)]
    handed_on = []

    def watched() -> Iterable[pa.RecordBatch]:
        for batch in batches:
            yield batch
            handed_on.append(len(out))

    out: list[pa.RecordBatch] = []
    for batch in of_lines(watched(), job()):
        out.append(batch)  # noqa: PERF402 (it is watched while it grows)
    assert handed_on[3] == 0 < handed_on[4]
    assert max(map(len, out)) <= partition.AT_ONCE
    counts = added_up(out)
    assert len(of(counts, "unknown")) == 6 * rows
    assert counts["tally", 0, b"rows"] == 6 * rows + 6
    assert observed(counts, RepeatedResults)["repeated",] == 6


def test_a_bad_row_is_reported_without_its_value_where_no_text_may_be_shown() -> None:
    without_texts = Job(replace(job().plan, texts=False))
    counts = added_up(of_columns([columns(run("q2", latency_ms=-2.0))], without_texts))
    ((_, reported),) = of(counts, "problem")
    assert reported.decode() == (
        'r.parquet: query "q2": latency_ms: expected a number from 0 to a billion, found (not shown)'
    )


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (b'{"response": "my secret", "query_id"', "is cut off"),
        (b'{"response": "my secret"}', "query_id: is missing"),
        (b'"my secret"', "expected an object, found (not shown)"),
        (b'{"response": "my secret", "response": "my secret"}', "duplicate key (not shown)"),
        (b'my secret {"query_id": "q1"}', "is not JSON"),
        (b"my secret \xff", "is not UTF-8"),
        (b'"my secret' + b" " * bounds.LINE, "the line is longer than 64 MiB"),
    ],
)
def test_a_bad_line_is_not_quoted_where_no_text_may_be_shown(line: bytes, sentence: str) -> None:
    without_texts = Job(replace(job().plan, texts=False))
    problems = of(added_up(of_lines([lines(line)], without_texts)), "problem")
    for _, reported in problems:
        assert reported.decode().startswith("r.jsonl: the line (not shown): ")
        assert b"secret" not in reported
    assert any(sentence in reported.decode() for _, reported in problems)
