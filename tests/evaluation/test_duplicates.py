"""Documents that a row returns more than once: how many, and what is said of them."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from ragcontract import pipeline
from ragcontract.core.run import Result, RunRow
from ragcontract.evaluation.observations import Duplicates, RepeatedResults
from ragcontract.evaluation.side import evaluate_side
from ragcontract.evaluation.source import Local
from ragcontract.files.problems import Batch
from ragcontract.metrics.ranking import Ranking
from ragcontract.report import markdown
from ragcontract.report.record import Report
from ragcontract.runs.readers import RunFiles
from tests.builders import golden, run, write_jsonl
from tests.records import query
from tests.runs.sides import plan_of


def duplicates(*rows: tuple[str, str], k: int = 3) -> Duplicates:
    plan = replace(plan_of([query(query_id, "a") for query_id, _ in rows], repeats=True), ranking=Ranking([k]))
    batch = [
        RunRow(query_id=query_id, results=[Result(doc_id=doc_id) for doc_id in doc_ids]) for query_id, doc_ids in rows
    ]
    return evaluate_side(plan, [Batch("run.jsonl", 1, batch)]).observed(RepeatedResults)


@pytest.mark.parametrize(
    ("rows", "rate", "short"),
    [
        ([], 0, 0),
        (["abcde"], 0, 0),
        (["aab"], 1 / 3, 1),
        (["abcc"], 0, 0),  # below the top 3
        (["aabc"], 1 / 3, 0),  # and three documents remain
        (["ab", "aaa", "bbbc"], 4 / 8, 2),
        (["ab"], 0, 0),  # few, but none twice
    ],
)
def test_the_rate_is_of_the_top_k_and_a_row_is_short_by_all_of_it(rows: list[str], rate: float, short: int) -> None:
    found = duplicates(*((f"q{number}", row) for number, row in enumerate(rows)))
    assert (found.rate, found.short) == (rate, short)


def reported(folder: Path, config: str, *rows: str) -> Report:
    (folder / "c.yml").write_text(config)
    golden_file = write_jsonl(folder / "g.jsonl", (golden(f"q{n}", "a") for n in range(len(rows))))
    run_file = write_jsonl(folder / "r.jsonl", (run(f"q{n}", *row) for n, row in enumerate(rows)))
    request = pipeline.Inputs(
        golden=[str(golden_file)], run=Local(RunFiles(paths=[str(run_file)])), config=str(folder / "c.yml")
    )
    return pipeline.check(request, now=datetime(2026, 7, 1, tzinfo=UTC)).report


def test_one_warning_counts_the_rows_and_names_three(tmp_path: Path) -> None:
    rows = ["abc", "aab", "aba", "aaa", "abb", "ab"]
    report = reported(tmp_path, "{k: 3, rank_by: documents}", *rows)
    (warning,) = report.warnings
    assert warning.replace(f"{tmp_path}/", "") == (
        "r.jsonl: 4 rows with fewer than 3 distinct documents, as some are there more than once: "
        "'q1', 'q2', 'q3' and 1 more; export more results"
    )
    assert report.inputs.run.duplicate_rate == 5 / 17
    assert "6 queries, 29.41% of the results repeat a document |" in markdown.render(report)


def test_ranking_by_results_counts_the_rate_and_warns_of_nothing(tmp_path: Path) -> None:
    report = reported(tmp_path, "k: 3", "aab")
    assert (report.warnings, report.inputs.run.duplicate_rate) == ([], 1 / 3)
    assert "repeat a document" not in markdown.render(reported(tmp_path, "k: 3", "abc"))


def test_a_query_with_several_such_rows_is_named_once() -> None:
    found = duplicates(*((query_id, "aab") for query_id in ("q1", "q1", "q2", "q3", "q4")), ("q5", "abc"))
    assert (found.short, found.named) == (5, ("q1", "q2", "q3"))
