import shutil
from pathlib import Path

import pytest

from benchmarks import data
from tests.process import rag_contract

SHAPES = [data.Shape(queries=300), data.Shape(queries=20, results=50, text=30)]


def files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_the_same_shape_gives_the_same_files(shape: data.Shape, tmp_path: Path) -> None:
    first, second = (files(data.make(shape, tmp_path / name)) for name in ("a", "b"))
    assert first == second
    assert set(first) == {data.GOLDEN, data.RUN, data.GOOD_RUN, data.CONFIG_FILE, "made-by"}


def test_what_is_there_is_not_made_again_unless_it_was_cut_off(tmp_path: Path) -> None:
    shape = data.Shape(queries=3)
    run = data.make(shape, tmp_path) / data.RUN
    whole = run.read_bytes()
    run.write_bytes(b"untouched")
    data.make(shape, tmp_path)
    assert run.read_bytes() == b"untouched"
    (run.parent / "made-by").unlink()
    data.make(shape, tmp_path)
    assert run.read_bytes() == whole


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_every_row_has_its_results_each_document_once_best_first(shape: data.Shape) -> None:
    for query, good_row, row in data.rows(shape):
        for each in (good_row, row):
            assert each["query_id"] == query["id"]
            doc_ids = [result["doc_id"] for result in each["results"]]
            assert len(set(doc_ids)) == len(doc_ids) == shape.results
            scores = [result["score"] for result in each["results"]]
            assert scores == sorted(set(scores), reverse=True)
            assert all(len(result.get("text", "")) == shape.text for result in each["results"])


def test_a_few_queries_of_the_run_are_worse_than_in_the_good_run() -> None:
    moved = broken = 0
    shape = data.Shape(queries=4000)
    for query, good_row, row in data.rows(shape):
        good, now = ([result["doc_id"] for result in each["results"]] for each in (good_row, row))
        moved += good != now
        broken += not set(query["relevant_doc_ids"]) & set(now)
    assert broken / shape.queries == pytest.approx(data.BROKEN, abs=0.01)
    assert data.BROKEN < moved / shape.queries < data.BROKEN + data.CHANGED + data.FORBIDDEN + 0.01


def test_the_good_run_keeps_the_contract_and_the_other_breaks_it_without_a_warning(tmp_path: Path) -> None:
    folder = data.make(data.Shape(queries=500), tmp_path)
    golden, config = ("--golden", str(folder / data.GOLDEN)), ("--config", str(folder / data.CONFIG_FILE))
    reports = ("--report-md", "", "--report-json", "", "--junit", "")
    baseline = shutil.copy(folder / data.GOOD_RUN, tmp_path / "before.jsonl")
    for run, code in ((data.GOOD_RUN, 0), (data.RUN, 1)):
        runs = ("--run", str(folder / run), "--baseline", str(baseline))
        done = rag_contract("check", *golden, *runs, *config, *reports)
        assert done.code == code, done.out
        assert "warning" not in done.err
