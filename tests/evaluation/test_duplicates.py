"""Documents that a row returns more than once: how many, and what is said of them."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from ragcontract import pipeline
from ragcontract.evaluation.duplicates import Duplicates
from ragcontract.model import Report
from ragcontract.reports.markdown import document as markdown
from tests.builders import golden, run, write_jsonl


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
    found = Duplicates(k=3)
    for number, row in enumerate(rows):
        found.note(f"q{number}", list(row))
    assert (found.rate, found.short) == (rate, short)


def checked(folder: Path, config: str, *rows: str) -> Report:
    (folder / "c.yml").write_text(config)
    paths = pipeline.Paths(
        golden=[str(write_jsonl(folder / "g.jsonl", (golden(f"q{n}", "a") for n in range(len(rows)))))],
        run=[str(write_jsonl(folder / "r.jsonl", (run(f"q{n}", *row) for n, row in enumerate(rows))))],
        config=str(folder / "c.yml"),
    )
    return pipeline.check(paths, clock=lambda: datetime(2026, 7, 1, tzinfo=UTC))


def test_one_warning_counts_the_rows_and_names_three(tmp_path: Path) -> None:
    rows = ["abc", "aab", "aba", "aaa", "abb", "ab"]
    report = checked(tmp_path, "{k: 3, rank_by: documents}", *rows)
    (warning,) = report.warnings
    assert warning.replace(f"{tmp_path}/", "") == (
        "r.jsonl: 4 rows with fewer than 3 distinct documents, as some are there more than once: "
        "'q1', 'q2', 'q3' and 1 more; export more results"
    )
    assert report.inputs.run.duplicate_rate == 5 / 17
    assert "6 queries, 29.41% of the results repeat a document |" in markdown.render(report)


def test_ranking_by_results_tells_the_rate_and_warns_of_nothing(tmp_path: Path) -> None:
    report = checked(tmp_path, "k: 3", "aab")
    assert (report.warnings, report.inputs.run.duplicate_rate) == ([], 1 / 3)
    assert "repeat a document" not in markdown.render(checked(tmp_path, "k: 3", "abc"))
