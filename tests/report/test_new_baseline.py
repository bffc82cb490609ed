import json
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from ragcontract import __version__, pipeline
from ragcontract.evaluation.source import Local
from ragcontract.report import baseline
from ragcontract.runs.readers import open_run
from tests.builders import golden, run, write_jsonl

NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)


def made_of(folder: Path, golden_rows: list[dict[str, Any]], run_rows: list[dict[str, Any]]) -> bytes:
    """Return the baseline file of a run."""
    request = pipeline.Inputs(
        golden=[str(write_jsonl(folder / "golden.jsonl", golden_rows))],
        run=Local(open_run([str(write_jsonl(folder / "run.jsonl", run_rows))])),
        k=2,
        decides=False,
        store=True,
    )
    return b"".join(baseline.render_baseline(pipeline.check(request, now=NOW).evaluation, NOW))


def test_it_holds_what_was_returned_and_what_it_came_to(tmp_path: Path) -> None:
    rows = [golden("q1", "a", "b", tags=["t"]), golden("q2") | {"relevant_doc_ids": []}]
    found = json.loads(made_of(tmp_path, rows, [run("q1", "x", "a", "y", index_version=3), run("q2", "é")]))
    fingerprint = found.pop("golden_sha256")
    assert len(fingerprint) == 64
    assert found.pop("golden_files") == [sha256((tmp_path / "golden.jsonl").read_bytes()).hexdigest()]
    means = {"mrr_at_2": 0.5, "recall_at_2": 0.5, "precision_at_2": 0.5, "hitrate_at_2": 1.0}
    assert {name: value for name, value in found["metrics"].items() if name in means} == means
    assert found.pop("tags") == {"t": found.pop("metrics")}
    queries = found.pop("queries")
    assert found == {
        "format_version": 1,
        "created_at": "2026-07-01T12:00:00+00:00",
        "created_by": {"name": "rag-contract", "version": __version__},
        "k": [2],
        "versions": {"index_version": ["3"]},
        "contract": {},
    }
    assert [query["doc_ids"] for query in queries] == [["x", "a", "y"], ["é"]]
    assert [query["ranks"] for query in queries] == [{"a": 2, "b": None}, {}]
    assert (queries[0]["id"], queries[0]["query"]) == ("q1", "What about q1?")
    assert queries[1]["metrics"]["mrr_at_2"] is None


def test_a_query_is_a_line_so_that_a_change_is_one_too(tmp_path: Path) -> None:
    rows = [golden("q1"), golden("q2")]
    before = made_of(tmp_path, rows, [run("q1", "doc1"), run("q2", "doc1")]).splitlines()
    after = made_of(tmp_path, rows, [run("q1", "doc1"), run("q2", "doc1", "doc2")]).splitlines()
    assert [line for line in after if line not in before] == [before[-3].replace(b'["doc1"]', b'["doc1","doc2"]')]
    assert len(before) == len(after)


def test_everything_that_was_returned_is_held_however_deep(tmp_path: Path) -> None:
    deep = [f"d{n}" for n in range(200)]
    assert json.loads(made_of(tmp_path, [golden("q")], [run("q", *deep)]))["queries"][0]["doc_ids"] == deep


def test_it_ends_like_a_text_file(tmp_path: Path) -> None:
    assert made_of(tmp_path, [golden("q")], [run("q")]).endswith(b"  ]\n}\n")


def fingerprint(folder: Path, *rows: dict[str, Any]) -> str:
    runs = [run(str(row["id"])) for row in rows]
    return str(json.loads(made_of(folder, list(rows), runs))["golden_sha256"])


def test_the_fingerprint_is_of_what_the_contract_says(tmp_path: Path) -> None:
    one, two = golden("q1", "a"), golden("q2", "b")
    plain = fingerprint(tmp_path, one, two)
    assert fingerprint(tmp_path, two, one) == plain
    assert fingerprint(tmp_path, one | {"weight": 1, "tags": [], "metadata": {"who": "me"}}, two) == plain
    assert fingerprint(tmp_path, one | {"weight": 2}, two) != plain
    assert fingerprint(tmp_path, one | {"query": "Else?"}, two) != plain
    assert fingerprint(tmp_path, one) != plain
