"""What a run is like is noted beside its metrics: distances, rows that are short, chunks of one document."""

import json
from pathlib import Path

import pytest

from tests.builders import Row, run, write_jsonl
from tests.five_queries import CONFIG, QUERIES, RUN, five_queries
from tests.process import rag_contract

DISTANCES = (
    "The scores look like distances: they rise in every row where they differ. "
    "Ranks are the order of the results, as always."
)


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    five_queries(tmp_path, monkeypatch)


def scored(*scores: float) -> list[Row]:
    """Return the run with these scores in every row."""
    return [
        row | {"results": [one | {"score": score} for one, score in zip(row["results"], scores, strict=True)]}
        for row in RUN
    ]


def test_distances_are_said_once_instead_of_a_warning_about_order() -> None:
    write_jsonl(Path("current_run.jsonl"), scored(0.1, 0.2, 0.3))
    ended = rag_contract("check", "--report-html", "report.html")
    assert (ended.code, ended.err, ended.out.count(DISTANCES)) == (0, "", 1)
    report = json.loads(Path("report.json").read_text())
    assert (report["warnings"], report["run_notes"]) == ([], [DISTANCES])
    for name in ("report.md", "report.html"):
        assert Path(name).read_text().count(DISTANCES) == 1


def test_scores_that_rise_in_some_rows_only_are_warned_about() -> None:
    write_jsonl(Path("current_run.jsonl"), [*scored(0.1, 0.2, 0.3)[:4], scored(0.3, 0.2, 0.1)[4]])
    ended = rag_contract("check")
    assert "warning: current_run.jsonl:1: the scores are not in descending order (4 such rows)" in ended.err
    assert DISTANCES not in ended.out


def test_a_run_shorter_than_k_is_said_beside_its_metrics() -> None:
    Path("ragcontract.yml").write_text(CONFIG.replace("k: 3", "k: 10"))
    note = "The run has at most 3 results a query, so Recall@10 is Recall@3; export at least 10, or lower k."
    ended = rag_contract("check", "--report-html", "report.html")
    lines = ended.out.splitlines()
    assert lines[lines.index(note) - 1].startswith("MAP@10")
    for name in ("report.md", "report.html"):
        assert Path(name).read_text().count(note) == 1
    assert note in rag_contract("score").out


def test_a_run_shorter_than_the_baseline_is_said_beside_its_metrics() -> None:
    Path("ragcontract.yml").write_text(CONFIG.replace("k: 3", "k: 1"))
    write_jsonl(Path("current_run.jsonl"), [run(f"q{n}", f"doc_{n}") for n in range(QUERIES)])
    note = (
        "The run has at most 1 result a query and the baseline up to 3: "
        "a document that fell below rank 1 reads as missing."
    )
    assert note in rag_contract("check").out.splitlines()


def test_a_run_of_mostly_shorter_rows_than_the_baselines_is_said_beside_its_metrics() -> None:
    rows = [run(f"q{n}", f"doc_{n}", *("bc" if n == 0 else "")) for n in range(QUERIES)]
    write_jsonl(Path("current_run.jsonl"), rows)
    note = (
        "Half of the run's rows have at most 1 result, where the baseline's typically have 3: a document that fell "
        "below the end of its row reads as missing."
    )
    assert note in rag_contract("check").out.splitlines()


def test_a_baseline_shorter_than_k_is_said_beside_the_metrics() -> None:
    Path("ragcontract.yml").write_text(CONFIG.replace("k: 3", "k: 5"))
    write_jsonl(Path("current_run.jsonl"), [run(f"q{n}", f"doc_{n}", *"abcd") for n in range(QUERIES)])
    note = (
        "The baseline has at most 3 results a query and the run up to 5: what the run finds below rank 3 counts as a "
        "gain. Recreate the baseline from a longer export."
    )
    assert note in rag_contract("check").out.splitlines()


def test_whoever_decided_on_rank_by_is_not_asked_again() -> None:
    write_jsonl(Path("current_run.jsonl"), [run(f"q{n}", f"doc_{n}", f"doc_{n}", "x") for n in range(QUERIES)])
    for choice in ("results", "documents"):
        Path("ragcontract.yml").write_text(f"{CONFIG}rank_by: {choice}\n")
        assert "as chunks do" not in rag_contract("check").out


def test_many_chunks_of_a_document_point_at_rank_by() -> None:
    write_jsonl(Path("current_run.jsonl"), [run(f"q{n}", f"doc_{n}", f"doc_{n}", "x") for n in range(QUERIES)])
    note = (
        "33% of the results in the top 3 repeat a document of the same row, as chunks do; "
        "set rank_by in the config: documents gives each document one rank, results each chunk."
    )
    assert note in rag_contract("check").out.splitlines()
    Path("ragcontract.yml").write_text(CONFIG + "rank_by: documents\n")
    assert "repeat a document" not in rag_contract("check").out
