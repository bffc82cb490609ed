"""One row, from what an exporter has to the line; :mod:`tests.runs.test_writer` has what is refused."""

import pytest

from ragcontract.core.errors import InputError
from ragcontract.runs.run_writer import RowEncoder


def test_a_row_is_the_line_and_what_a_reader_makes_of_it() -> None:
    line, row = RowEncoder("run", {"index_version": 3, "embedding_model": None}).row(
        7, ["a", {"doc_id": 5, "score": 1, "text": "long"}], latency_ms=2
    )
    assert line == (
        b'{"query_id":7,"results":[{"doc_id":"a"},{"doc_id":5,"score":1,"text":"long"}],'
        b'"latency_ms":2,"index_version":3}\n'
    )
    assert (row.query_id, row.doc_ids, row.latency_ms, row.index_version) == (7, ["a", "5"], 2.0, 3)


def test_everything_that_is_wrong_with_a_row_is_reported() -> None:
    with pytest.raises(InputError) as refused:
        RowEncoder("run", {}).row("q", ["", {"doc": 1}])
    assert list(refused.value.problems) == [
        'run: query "q": results[0].doc_id: expected text of 1 to 2,000 characters, or a whole number, found "" (text)',
        "run: query \"q\": results[1].doc_id: is missing; found instead: 'doc'",
    ]


def test_versions_are_looked_at_before_any_row_is() -> None:
    with pytest.raises(InputError, match="run: index_version: expected text of 1 to 2,000 characters"):
        RowEncoder("run", {"index_version": ""})


@pytest.mark.parametrize(
    ("query_id", "location"), [("q1", 'run: query "q1"'), (7, "run: query 7"), (b"q", "run: query b'q'")]
)
def test_a_location_names_the_query(query_id: object, location: str) -> None:
    assert RowEncoder("run", {}).location(query_id) == location
