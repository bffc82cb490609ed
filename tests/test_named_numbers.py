"""Numbers that other tools computed, as a team meets them: baselines, drift, suggestions, Python, the action."""

import json
from pathlib import Path
from typing import Any

import pytest

import ragcontract
from tests.builders import golden, run, write_jsonl
from tests.github.standin import GitHub
from tests.process import rag_contract
from tests.runner import InProcess

IDS = ("q1", "q2", "q3")
CONFIG = "metrics: {faithfulness: {from: scores}}\nminimums: {faithfulness: 0.5}\n"


def workspace(folder: Path, *values: float, config: str = CONFIG, **fields: Any) -> Path:
    """Write a contract, a run without scores, and a scores file."""
    write_jsonl(folder / "golden.jsonl", [golden(one, "doc1") for one in IDS])
    write_jsonl(folder / "current_run.jsonl", [run(one, "doc1") for one in IDS])
    rows = [
        {"query_id": one, "scores": {"faithfulness": value}, **fields} for one, value in zip(IDS, values, strict=True)
    ]
    write_jsonl(folder / "scores.jsonl", rows)
    (folder / "ragcontract.yml").write_text(config)
    return folder


@pytest.fixture(name="folder")
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_baseline_keeps_the_numbers_and_names_what_computed_them(folder: Path) -> None:
    drop = f"{CONFIG}fail_on: {{faithfulness_drop_gt: 0.05}}\n"
    workspace(folder, 0.9, 0.8, 0.7, config=drop, scored_by="judge 1")
    assert rag_contract("baseline", "--scores", "scores.jsonl").code == 0
    stored = json.loads((folder / "baseline.json").read_text())
    assert [one["metrics"]["faithfulness"] for one in stored["queries"]] == [0.9, 0.8, 0.7]
    assert stored["versions"]["scored_by"] == ["judge 1"]
    workspace(folder, 0.9, 0.8, 0.4, config=drop, scored_by="judge 2")
    ended = rag_contract("check", "--scores", "scores.jsonl")
    assert ended.code == 1
    assert "-0.10  FAIL  allowed drop 0.05" in ended.out
    assert "scored by judge 1 → judge 2" in ended.out


def test_a_baseline_with_another_scale_is_not_compared(folder: Path) -> None:
    workspace(folder, 0.9, 0.8, 0.7)
    assert rag_contract("baseline", "--scores", "scores.jsonl").code == 0
    config = "metrics: {faithfulness: {from: scores, scale: [0, 5]}}\nfail_on: {faithfulness_drop_gt: 1}\n"
    workspace(folder, 4, 3, 2, config=config)
    ended = rag_contract("check", "--scores", "scores.jsonl")
    assert ended.code == 2
    assert "fail_on.faithfulness_drop_gt cannot be judged" in ended.err
    ways = "(the defaults, and now from 0.0 to 5.0, higher is better)"
    assert f"the baseline's faithfulness was computed in another way {ways}" in ended.err


def test_a_drop_in_percent_counts_from_the_lowest_value_of_the_scale(folder: Path) -> None:
    config = 'metrics: {faithfulness: {from: scores, scale: [1, 5]}}\nfail_on: {faithfulness_drop_gt: "20%"}\n'
    workspace(folder, 3, 3, 3, config=config)
    assert rag_contract("baseline", "--scores", "scores.jsonl").code == 0
    workspace(folder, 2.5, 2.5, 2.5, config=config)
    ended = rag_contract("check", "--scores", "scores.jsonl")
    assert ended.code == 1
    assert "FAIL  allowed drop 20% (0.40)" in ended.out


def test_a_run_that_lacks_scores_is_no_baseline_even_where_they_may_be_missing(folder: Path) -> None:
    workspace(folder, 0.9, 0.8, 0.7, config=f"{CONFIG}missing_scores: zero\n")
    write_jsonl(folder / "scores.jsonl", [{"query_id": "q1", "scores": {"faithfulness": 1}}])
    ended = rag_contract("baseline", "--scores", "scores.jsonl")
    assert ended.code == 2
    assert "lacks the score 'faithfulness' of 2 of 3 queries ('q2', 'q3'), so it cannot be a baseline" in ended.err


@pytest.mark.parametrize("options", [(), ("--repeats",)])
@pytest.mark.parametrize("numbers", [(None, 0.9), (0.9, None)])
def test_of_two_scores_of_a_query_one_that_is_null_is_missing(
    numbers: tuple[float | None, ...], options: tuple[str, ...], folder: Path
) -> None:
    workspace(folder, 0.9, 0.9, 0.9)
    repeated = [{"query_id": "q1", "scores": {"faithfulness": number}} for number in numbers]
    rows = [{"query_id": one, "scores": {"faithfulness": 0.9}} for one in ("q2", "q3")]
    write_jsonl(folder / "scores.jsonl", [*repeated, *rows])
    ended = rag_contract("check", "--scores", "scores.jsonl", *options)
    assert ended.code == 2
    assert "minimums.faithfulness cannot be judged: 1 of 3 queries has no such score ('q1')" in ended.err


@pytest.mark.parametrize("numbers", [(None, 0.9), (0.9, None)])
def test_of_two_rows_of_a_run_one_without_a_score_makes_it_missing(
    numbers: tuple[float | None, ...], folder: Path
) -> None:
    workspace(folder, 0.9, 0.9, 0.9)
    repeated = [run("q1", "doc1", scores={"faithfulness": number}) for number in numbers]
    others = [run(one, "doc1", scores={"faithfulness": 0.9}) for one in ("q2", "q3")]
    write_jsonl(folder / "current_run.jsonl", [*repeated, *others])
    ended = rag_contract("check", "--repeats")
    assert ended.code == 2
    assert "minimums.faithfulness cannot be judged: 1 of 3 queries has no such score ('q1')" in ended.err


@pytest.mark.parametrize("numbers", [(None, 0.9), (0.9, None)])
@pytest.mark.parametrize("where", ["the run", "a scores file", "two scores files"])
def test_a_null_among_scores_of_a_query_counts_as_the_worst_where_the_config_says_so(
    where: str, numbers: tuple[float | None, ...], folder: Path
) -> None:
    workspace(folder, 0.9, 0.9, 0.9, config=f"{CONFIG.replace('0.5', '0.7')}missing_scores: zero\n")
    scored = [("q1", numbers[0]), ("q1", numbers[1]), ("q2", 0.9), ("q3", 0.9)]
    rows = [{"query_id": one, "scores": {"faithfulness": number}} for one, number in scored]
    options = ["--repeats", "--scores", "scores.jsonl", "more.jsonl"]
    if where == "the run":
        results = [{"doc_id": "doc1"}]
        write_jsonl(folder / "current_run.jsonl", [{**row, "results": results} for row in rows])
        options = options[:1]
    elif where == "a scores file":
        write_jsonl(folder / "scores.jsonl", rows)
        options = options[:3]
    else:
        write_jsonl(folder / "scores.jsonl", rows[:1])
        write_jsonl(folder / "more.jsonl", rows[1:])
    assert rag_contract("check", *options).code == 1
    report = json.loads((folder / "report.json").read_text())
    assert report["metrics"]["faithfulness"]["current"] == pytest.approx(0.6)


@pytest.mark.parametrize("numbers", [(None, 0.9), (0.9, None), (None, None), (None,)])
@pytest.mark.parametrize("missing", ["error", "zero"])
def test_a_null_among_rows_of_a_query_is_a_missing_score_of_a_baseline(
    numbers: tuple[float | None, ...], missing: str, folder: Path
) -> None:
    config = f"{CONFIG}fail_on: {{faithfulness_drop_gt: 0.05}}\nmissing_scores: {missing}\n"
    workspace(folder, 0.9, 0.9, 0.9, config=config)
    repeated = [run("q1", "doc1", scores={"faithfulness": number}) for number in numbers]
    others = [run(one, "doc1", scores={"faithfulness": 0.6}) for one in ("q2", "q3")]
    write_jsonl(folder / "good.jsonl", [*repeated, *others])
    ended = rag_contract("check", "--repeats", "--scores", "scores.jsonl", "--baseline", "good.jsonl")
    why = "no faithfulness for 1 of 3 queries, which fail_on.faithfulness_drop_gt leaves out: 'q1'"
    assert (ended.code, why in ended.err) == (0, True)
    metric = json.loads((folder / "report.json").read_text())["metrics"]["faithfulness"]
    assert metric["baseline"] == pytest.approx(0.6)


def test_queries_whose_score_a_baseline_lacks_are_named_beside_a_limit_on_its_drop(folder: Path) -> None:
    workspace(folder, 0.9, 0.8, 0.2, config=f"{CONFIG}fail_on: {{faithfulness_drop_gt: 0.05}}\n")
    before = [run(one, "doc1", scores={"faithfulness": 0.9 if one == "q1" else None}) for one in IDS]
    write_jsonl(folder / "before.jsonl", before)
    ended = rag_contract("check", "--scores", "scores.jsonl", "--baseline", "before.jsonl")
    lacking = "no faithfulness for 2 of 3 queries, which fail_on.faithfulness_drop_gt leaves out: 'q2', 'q3'"
    assert ended.code == 0
    assert f"warning: before.jsonl: {lacking}" in ended.err
    assert "no faithfulness for 2 of 3 queries" in (folder / "report.md").read_text()


def test_queries_that_a_baseline_does_not_have_are_no_scores_that_it_lacks(folder: Path) -> None:
    workspace(folder, 0.9, 0.8, 0.7, config=f"{CONFIG}fail_on: {{faithfulness_drop_gt: 0.05}}\n")
    write_jsonl(folder / "before.jsonl", [run("q1", "doc1", scores={"faithfulness": 0.9})])
    ended = rag_contract("check", "--scores", "scores.jsonl", "--baseline", "before.jsonl")
    assert ended.code == 0
    assert "no faithfulness for" not in ended.err


def test_limits_are_suggested_in_the_scores_direction(folder: Path) -> None:
    config = "metrics: {faithfulness: {from: scores, better: lower, scale: [0, 5]}}\n"
    workspace(folder, 4, 3, 2, config=config)
    said = rag_contract("suggest", "--run", "current_run.jsonl", "--scores", "scores.jsonl").out
    assert "faithfulness: 3 queries cannot carry a limit on a rise; add queries" in said
    assert "faithfulness: 3 queries cannot carry a maximum; add queries" in said
    for name in ("one.jsonl", "two.jsonl"):
        rows = [run(one, "doc1", scores={"faithfulness": value}) for one, value in zip(IDS, (1, 0, 1), strict=True)]
        write_jsonl(folder / name, rows)
    said = rag_contract("suggest", "--run", "one.jsonl", "two.jsonl").out
    assert "faithfulness: rise of 1.7, the loss of one query" in said
    assert "\n  faithfulness_rise_gt: 1.7\n" in said
    assert "maximums:\n  faithfulness: " in said


def test_suggestions_from_several_runs_take_no_scores_file(folder: Path) -> None:
    workspace(folder, 1, 1, 1)
    (folder / "other.jsonl").write_text((folder / "current_run.jsonl").read_text())
    ended = rag_contract("suggest", "--run", "current_run.jsonl", "other.jsonl", "--scores", "scores.jsonl")
    assert ended.code == 2
    assert "--scores is about one run" in ended.err


def test_validate_reads_scores_files_without_a_run(folder: Path) -> None:
    workspace(folder, 0.9, 0.8, 1.7)
    ended = rag_contract("validate", "--without-run", "--scores", "scores.jsonl")
    assert ended.code == 2
    assert "scores.jsonl:3: scores.faithfulness: expected a number from 0 to 1, found 1.7" in ended.err


def test_an_empty_path_is_not_taken_for_no_scores(folder: Path) -> None:
    workspace(folder, 1, 1, 1)
    assert "--scores: is given an empty path" in rag_contract("check", "--scores", "").err


def test_a_report_does_not_overwrite_a_scores_file(folder: Path) -> None:
    workspace(folder, 1, 1, 1)
    assert rag_contract("check", "--scores", "scores.jsonl", "--report-md", "scores.jsonl").code == 2


def test_python_takes_scores_files(folder: Path) -> None:
    workspace(folder, 0.1, 0.2, 0.3)
    report = ragcontract.check(
        golden="golden.jsonl",
        run={one: ["doc1"] for one in IDS},
        scores="scores.jsonl",
        config="ragcontract.yml",
    )
    assert report.verdict == "fail"
    assert report.metrics["faithfulness"].current == pytest.approx(0.2)


def test_the_action_takes_scores_files(tmp_path: Path, github: GitHub) -> None:
    runner = InProcess(tmp_path, github)
    workspace(runner.workspace, 0.1, 0.2, 0.3, reasons={"faithfulness": "invented **a price**"})
    ended = runner.run({"scores": "scores.jsonl", "comment": "never"})
    assert ended.exit_code == 1
    report = (runner.workspace / "report.md").read_text()
    assert "Why the worst scores are as they are" in report
    assert "`invented **a price**`" in report  # as code, so that it is no Markdown
    assert "| scores | `scores.jsonl`" in report


def test_a_rule_on_a_score_says_why_the_score_is_as_it_is(folder: Path) -> None:
    workspace(folder, 0.9, 0.8, 0.2, config="metrics: {faithfulness: {from: scores}}\n")
    rows = [json.loads(line) for line in (folder / "scores.jsonl").read_text().splitlines()]
    write_jsonl(folder / "scores.jsonl", [{**row, "reasons": {"faithfulness": "It invents a price."}} for row in rows])
    rule = {"type": "min_score", "metric": "faithfulness", "value": 0.5}
    write_jsonl(folder / "golden.jsonl", [golden(one, "doc1", rules=[rule]) for one in IDS])
    found = 'expected faithfulness of at least 0.50; found: 0.20: "It invents a price."'
    ended = rag_contract("check", "--scores", "scores.jsonl", "--report-json", "report.json", "--junit", "junit.xml")
    assert ended.code == 1
    assert 'Found: 0.20: "It invents a price."' in ended.out
    assert found in (folder / "junit.xml").read_text().replace("&quot;", '"')
    unsaid = rag_contract("check", "--scores", "scores.jsonl", "--no-answers")
    assert "Found: 0.20\n" in unsaid.out


@pytest.mark.parametrize("mark", [",", "\t", ";"])
def test_a_table_given_as_scores_is_to_be_converted(folder: Path, mark: str) -> None:
    workspace(folder, 0.9, 0.8, 0.2)
    (folder / "scores.csv").write_text(f"id{mark}faithfulness\nq1{mark}0.9\n")
    ended = rag_contract("check", "--scores", "scores.csv")
    assert ended.code == 2
    assert ", not JSON lines; convert it with `rag-contract convert --from table`" in ended.err


def test_without_answers_no_output_has_the_reason_of_a_score_which_quotes_them(folder: Path) -> None:
    workspace(folder, 0.1, 0.2, 0.3, reasons={"faithfulness": "invented CANARY"})
    write = ("--scores", "scores.jsonl", "--report-html", "report.html")
    assert "CANARY" in rag_contract("check", *write).out
    ended = rag_contract("check", "--no-answers", *write)
    assert ended.code == 1
    written = [ended.out, ended.err, *((folder / f"report.{one}").read_text() for one in ("md", "json", "html"))]
    assert not [text for text in (*written, (folder / "junit.xml").read_text()) if "CANARY" in text]


def test_without_answers_no_problem_of_a_scores_file_quotes_it(folder: Path) -> None:
    workspace(folder, 0.1, 0.2, 0.3, reasons={"faithfulness": ["CANARY"]})
    assert "CANARY" in rag_contract("check", "--scores", "scores.jsonl").err
    ended = rag_contract("check", "--no-answers", "--scores", "scores.jsonl")
    assert ended.code == 2
    assert "reasons" in ended.err
    assert "CANARY" not in ended.err
