"""One row, from what an exporter has to the line; :mod:`tests.runs.test_writer` has what is refused."""

from pathlib import Path

import pytest

from ragcontract import InputError, RunWriter
from tests.runs.sides import read_run


def test_a_row_is_the_line_and_what_a_reader_makes_of_it(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with RunWriter(path, index_version=3, embedding_model=None) as run:
        run.write(7, ["a", {"doc_id": 5, "score": 1, "text": "long"}], latency_ms=2)
    assert path.read_bytes() == (
        b'{"query_id":7,"results":[{"doc_id":"a"},{"doc_id":5,"score":1,"text":"long"}],'
        b'"latency_ms":2,"index_version":3}\n'
    )
    assert read_run(path)[0] == [("7", ["a", "5"])]


def refused(folder: Path, query_id: object, *results: object) -> list[str]:
    """Return what is wrong with a row, without the folder."""
    with RunWriter(folder / "run") as run:
        run.write("first", ["a"])
        with pytest.raises(InputError) as caught:
            run.write(query_id, list(results))  # type: ignore[arg-type]
    return [problem.replace(f"{folder}/", "") for problem in caught.value.problems]


def test_everything_that_is_wrong_with_a_row_is_reported(tmp_path: Path) -> None:
    assert refused(tmp_path, "q", "", {"doc": 1}) == [
        'run: query "q": results[0].doc_id: expected text of 1 to 2,000 characters, or a whole number, found "" (text)',
        "run: query \"q\": results[1].doc_id: is missing; found instead: 'doc'",
    ]


def test_versions_are_looked_at_before_any_row_is(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="run: index_version: expected text of 1 to 2,000 characters"):
        RunWriter(tmp_path / "run", index_version="")


@pytest.mark.parametrize(
    ("query_id", "location"), [("q1", 'run: query "q1": '), (7, "run: query 7: "), (b"q", "run: query b'q': ")]
)
def test_a_location_names_the_query(query_id: object, location: str, tmp_path: Path) -> None:
    assert refused(tmp_path, query_id, "")[0].startswith(location)
