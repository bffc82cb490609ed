"""Several good runs are the baseline: their means, and as many rows a query."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders import golden, run, write_jsonl
from tests.process import rag_contract

QUERIES = ("q1", "q2", "q3", "q4")


@pytest.fixture(autouse=True)
def contract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a golden set, two good runs of which one finds q1 at rank 2, and two parts of one run."""
    monkeypatch.chdir(tmp_path)
    write_jsonl(Path("golden.jsonl"), [golden(query_id) for query_id in QUERIES])
    good = [run(query_id) for query_id in QUERIES]
    write_jsonl(Path("a.jsonl"), good)
    write_jsonl(Path("b.jsonl"), [run("q1", "x", "doc1"), *good[1:]])
    write_jsonl(Path("part1.jsonl"), good[:2])
    write_jsonl(Path("part2.jsonl"), good[2:])


def stored() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path("baseline.json").read_text())
    return found


def report(*argv: str) -> dict[str, Any]:
    assert rag_contract("check", "--run", "a.jsonl", "--report-json", "report.json", *argv).code in {0, 1}
    found: dict[str, Any] = json.loads(Path("report.json").read_text())
    return found


def test_files_that_each_have_all_queries_are_several_good_runs() -> None:
    ended = rag_contract("baseline", "--run", "a.jsonl", "--run", "b.jsonl")
    assert ended.code == 0, ended.err
    assert ended.out.startswith("baseline of 4 queries, the mean of 2 good runs, in baseline.json\n")
    assert stored()["runs"] == 2
    assert stored()["metrics"]["mrr_at_5"] == pytest.approx(3.75 / 4)
    assert stored()["queries"][0]["repeats"] == [["x", "doc1"]]


def test_a_check_compares_with_the_mean_and_says_so_everywhere() -> None:
    rag_contract("baseline", "--run", "a.jsonl", "b.jsonl")
    found = report("--report-md", "report.md", "--report-html", "report.html")
    assert found["inputs"]["baseline"]["runs"] == 2
    assert found["metrics"]["mrr_at_5"]["baseline"] == pytest.approx(3.75 / 4)
    assert found["metrics"]["mrr_at_5"]["delta"] == pytest.approx(0.25 / 4)
    said = "The baseline is the mean of 2 good runs."
    assert said in rag_contract("check", "--run", "a.jsonl").out
    assert said in Path("report.md").read_text()
    assert said in Path("report.html").read_text()
    assert said in rag_contract("diff", "--run", "a.jsonl").out


def test_ranks_before_are_those_of_the_worst_good_run_and_said_to_be() -> None:
    write_jsonl(Path("b.jsonl"), [run("q1", *"vwxyz", "doc1"), *[run(query_id) for query_id in QUERIES[1:]]])
    rag_contract("baseline", "--run", "a.jsonl", "b.jsonl")
    write_jsonl(Path("now.jsonl"), [run("q1", *"vwxy", "doc1"), run("q2", "x"), *[run(one) for one in QUERIES[2:]]])
    rag_contract("check", "--run", "now.jsonl", "--report-md", "report.md", "--report-html", "report.html")
    written = Path("report.md").read_text()
    assert "MRR@5 0.50 → 0.20; its rank in the worst of the good runs, and now: `doc1` 6 → 5" in written
    assert "Before is the first of the good runs." in written
    assert "Before is the first of the good runs." in Path("report.html").read_text()
    assert "its rows" not in written
    assert "; its rank in the worst of the good runs, and now:\n    doc1: 6 -> 5" in (
        rag_contract("diff", "--run", "now.jsonl").out
    )


def test_files_without_a_common_query_are_parts_of_one_run() -> None:
    ended = rag_contract("baseline", "--run", "part1.jsonl", "part2.jsonl")
    assert ended.out.startswith("baseline of 4 queries in baseline.json\n")
    assert "runs" not in stored()
    assert "runs" not in report()["inputs"]["baseline"]


def test_anything_between_is_refused_with_what_is_where() -> None:
    ended = rag_contract("baseline", "--run", "a.jsonl", "part1.jsonl")
    assert ended.code == 2
    assert ended.err == (
        "error: part1.jsonl: has no row for 2 queries ('q3' and 'q4') of the other files, and rows for 2 queries "
        "('q1' and 'q2') that they have as well; either each file has all queries, as several good runs, or none that "
        "another has, as parts of one run\n"
    )
    assert not Path("baseline.json").exists()


def test_a_query_that_no_file_has_is_missing_once() -> None:
    write_jsonl(Path("golden.jsonl"), [golden(query_id) for query_id in (*QUERIES, "q5")])
    ended = rag_contract("baseline", "--run", "a.jsonl", "b.jsonl")
    assert ended.code == 2
    assert ended.err.count("q5") == 1


def test_a_query_twice_in_one_file_is_refused_with_both_lines() -> None:
    write_jsonl(Path("b.jsonl"), [run("q1"), *[run(query_id) for query_id in QUERIES]])
    ended = rag_contract("baseline", "--run", "a.jsonl", "b.jsonl")
    assert ended.code == 2
    assert "b.jsonl:2: query_id: duplicate id 'q1', first defined at b.jsonl:1 (several rows" in ended.err


def test_with_repeats_all_rows_of_all_files_are_one_run_as_before() -> None:
    ended = rag_contract("baseline", "--run", "a.jsonl", "b.jsonl", "part1.jsonl", "--repeats")
    assert ended.code == 0, ended.err
    assert "runs" not in stored()
    assert [len(query["repeats"]) for query in stored()["queries"]] == [2, 2, 1, 1]


def test_a_check_of_several_files_is_one_run_as_before() -> None:
    assert rag_contract("check", "--run", "part1.jsonl", "part2.jsonl").code == 0
    ended = rag_contract("check", "--run", "a.jsonl", "b.jsonl")
    assert ended.code == 2
    assert "duplicate id 'q1'" in ended.err


def test_what_ids_cannot_give_again_is_averaged_too() -> None:
    Path("ragcontract.yml").write_text("metrics:\n  faithfulness: {from: scores}\n")
    for name, score in (("a", 0.5), ("b", 1.0), ("c", 0.9)):
        write_jsonl(Path(f"{name}.jsonl"), [run(query_id, scores={"faithfulness": score}) for query_id in QUERIES])
    assert rag_contract("baseline", "--run", "a.jsonl", "b.jsonl", "c.jsonl").code == 0
    assert stored()["queries"][0]["metrics"]["faithfulness"] == pytest.approx(0.8)
    assert report()["metrics"]["faithfulness"]["delta"] == pytest.approx(-0.3)


def test_a_scores_file_is_about_one_run() -> None:
    Path("ragcontract.yml").write_text("metrics:\n  faithfulness: {from: scores}\n")
    write_jsonl(Path("scores.jsonl"), [{"query_id": query_id, "scores": {"faithfulness": 1}} for query_id in QUERIES])
    ended = rag_contract("baseline", "--run", "a.jsonl", "b.jsonl", "--scores", "scores.jsonl")
    assert ended.code == 2
    assert "--scores is about one run" in ended.err
    assert rag_contract("baseline", "--run", "part1.jsonl", "part2.jsonl", "--scores", "scores.jsonl").code == 0


def test_a_rule_that_any_good_run_breaks_is_broken_in_the_baseline() -> None:
    write_jsonl(Path("golden.jsonl"), [golden(query_id, must_rank_at_most=1) for query_id in QUERIES])
    ended = rag_contract("baseline", "--run", "a.jsonl", "b.jsonl")
    assert "1 query is already broken in it: q1" in ended.out


@pytest.mark.parametrize(
    ("good_runs", "now", "code"),
    [
        pytest.param(
            [["a", "x"], ["b", "x"]], [["x", "y"]], 1, id="the last document is lost, one of which each found"
        ),
        pytest.param([["a", "x"], ["b", "x"], ["x"]], [["x", "y"]], 0, id="a good run had none either"),
        pytest.param([["a", "x"], ["b", "x"]], [["x", "a"]], 0, id="the other one is still there"),
        pytest.param([["a", "x"], ["b", "x"]], [["a"], ["b"]], 0, id="no row lost both"),
        pytest.param([["a", "x"], ["b", "x"]], [["a"], ["x"]], 1, id="one row lost both"),
    ],
)
@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("rule", [{}, {"must_rank_at_most": 2}], ids=["must_include", "must_rank_at_most, too"])
def test_the_last_relevant_document_is_lost_if_no_good_run_lost_it(
    *, good_runs: list[list[str]], now: list[list[str]], code: int, stored: bool, rule: dict[str, int]
) -> None:
    write_jsonl(Path("golden.jsonl"), [golden("q", "a", "b", **rule)])
    Path("ragcontract.yml").write_text("per_query: {fail_on: new}\n")
    paths = [str(write_jsonl(Path(f"good{number}.jsonl"), [run("q", *rank)])) for number, rank in enumerate(good_runs)]
    rows = write_jsonl(Path("now.jsonl"), [run("q", *rank) for rank in now])
    if stored:
        assert rag_contract("baseline", "--run", *paths).code == 0
        paths = ["baseline.json"]
    ended = rag_contract("check", "--run", str(rows), "--repeats", "--baseline", *paths)
    assert (ended.code, ended.err) == (code, "")


@pytest.mark.parametrize("option", ["--update", "--force"])
def test_nobody_loses_good_runs_by_accident(option: str) -> None:
    rag_contract("baseline", "--run", "a.jsonl", "b.jsonl")
    ended = rag_contract("baseline", "--run", "a.jsonl", option)
    assert ended.code == 0, ended.err
    fewer = "the older one was the mean of 2 good runs, and this one is a single run"
    assert f"Fewer good runs: {fewer}\n" in ended.out
    assert "runs" not in stored()
    assert stored()["replaces"]["runs"] == 2
    assert fewer in rag_contract("check", "--run", "a.jsonl").out


def test_an_update_takes_several_good_runs_too() -> None:
    rag_contract("baseline", "--run", "a.jsonl")
    ended = rag_contract("baseline", "--run", "a.jsonl", "b.jsonl", "--update")
    assert ended.code == 0, ended.err
    assert stored()["runs"] == 2
    assert "Fewer good runs" not in ended.out
    assert rag_contract("baseline", "--run", "a.jsonl", "b.jsonl", "--update").out.endswith("left unchanged\n")
