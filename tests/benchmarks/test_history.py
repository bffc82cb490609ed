"""The page about levels and change points says what its tables do, which `python -m benchmarks.history` writes."""

import re
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import fmean, stdev

import pytest

from benchmarks import history, tables
from benchmarks.rebuilt_index import LISTS
from ragcontract.statistics import change_points as points

PAGE = history.PAGE.read_text(encoding="utf-8")
PROSE = " ".join(re.sub(r"<!-- begin: .*? -->\n.*?<!-- end -->", "", PAGE, flags=re.DOTALL).split())
HEAD, RULE = 1, 1  # lines of a table before its rows


def body_of(text: str) -> dict[str, list[str]]:
    """Return the cells of a table by the text in its first column, or by two of them where that is repeated."""
    lines = [line for line in text.splitlines() if line.startswith("| ")][HEAD + RULE :]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    repeated = len({row[0] for row in rows}) < len(rows)
    return {" ".join(row[: 1 + repeated]): row[1 + repeated :] for row in rows}


def percent(cell: str) -> float:
    return float(cell.removesuffix("%"))


ALARMS, FALSE, FOUND, REBUILT = (
    body_of(tables.table(PAGE, name)) for name in ("level-alarms", "false-points", "found-steps", "rebuilt-history")
)


def test_the_tables_have_every_case() -> None:
    assert list(ALARMS) == list(history.COMPARED)
    assert list(FALSE) == list(history.NOISES)
    assert list(FOUND) == list(history.STEPS)
    assert list(REBUILT) == [f"{name} {metric}" for name in history.INDEXES for metric in history.METRICS]
    assert PAGE.count(f"Each number is from {history.HISTORIES:,} histories") == 2


def test_what_is_said_about_limits_on_levels_is_in_their_table() -> None:
    level, previous = ALARMS["**the best mean of 5**"], ALARMS["the previous run"]
    assert f"At a limit of 3σ, {percent(level[2])} % of checks fail" in PROSE
    assert abs(percent(level[2]) - percent(previous[2])) < 0.5
    assert f"At 2σ, it is {percent(level[1]):g} %" in PROSE
    assert f"The window has {history.WINDOW} runs" in PROSE


def test_pages_say_how_often_change_points_are_wrong() -> None:
    shares = [percent(cells[-1]) for cells in FALSE.values()]
    assert (
        f"Without a change, {FALSE['independent'][-1]} of histories of {history.GROWN} runs" in points.HOW_OFTEN_WRONG
    )
    assert points.HOW_OFTEN_WRONG.endswith(f"up to {max(shares):g}% do.")


def test_what_is_said_about_the_test_is_what_it_does() -> None:
    assert f"in at most 1 of {1 / points.ALPHA:,.0f} cases (α = {points.ALPHA})" in PROSE
    assert f"There must be {points.LEAST_RUNS} runs, and three on each side" in PROSE
    assert "after up to three steps are taken out" in PROSE
    assert "From 0.1 on, blocks of three runs" in PROSE
    assert "from 0.35 on blocks of five. Fewer than eight blocks are not tested" in PROSE
    numbers = points.LEAST_RUNS_A_SIDE, points.NOISE_PARTS - 1, points.BLOCKS, points.LEAST_BLOCKS, history.NEAR
    assert numbers == (3, 3, ((0.35, 5), (0.1, 3)), 8, 3)


def test_what_is_said_about_points_without_a_change_is_in_their_table() -> None:
    loose, strict = map(percent, FALSE["autocorrelation 0.6"])
    assert f"With an autocorrelation of 0.6, {strict:g} % of histories have a false change point" in PROSE
    assert f"with α = 0.01, it would be {loose:g} %" in PROSE
    assert max(percent(cells[1]) for cells in FALSE.values()) == strict


def test_what_is_said_about_steps_is_in_their_table() -> None:
    found = {name: percent(*cells) for name, cells in FOUND.items()}
    for runs in (30, 80):
        assert found[f"3σ after 5 runs, {runs} before"] < found[f"3σ after 10 runs, {runs} before"]
        assert found[f"2σ after 10 runs, {runs} before"] < found[f"3σ after 10 runs, {runs} before"]
    for step in ("3σ after 5", "2σ after 10", "3σ after 10"):
        assert found[f"{step} runs, 30 before"] < found[f"{step} runs, 80 before"]
    assert found["both of 3σ and its repair, 30 runs each"] < found["both of 3σ and 3σ, 30 runs each"] - 20


def test_an_index_that_is_only_rebuilt_shows_no_change_point_and_a_smaller_one_shows_its_run() -> None:
    for name, cells in REBUILT.items():
        if name.startswith("as it is"):
            assert cells[1:] == ["-", "never", "none"]
        else:
            assert cells[3] == f"run {history.SMALLER_AT + 1}"
            assert int(cells[2].removeprefix("after run ")) <= history.SMALLER_AT + 10
    assert f"for each of {history.GROWN} runs. At the {history.SMALLER_AT + 1}st" in PROSE


@pytest.mark.parametrize("correlation", [0, 0.3, 0.6])
def test_noise_has_the_deviation_and_the_correlation_that_it_is_called_by(correlation: float) -> None:
    values = history.correlated(correlation)(Random(1), 40_000)
    assert stdev(values) == pytest.approx(1, abs=0.03)
    products = [one * other for one, other in pairwise(values)]
    assert fmean(products) == pytest.approx(correlation, abs=0.03)


def test_tables_are_made_from_a_few_histories() -> None:
    assert list(body_of(history.level_table(histories=1))) == list(history.COMPARED)
    assert set(body_of(history.alarm_table(histories=1))) == set(history.NOISES)
    few = body_of(history.step_table(histories=2))
    assert few["3σ after 10 runs, 80 before"] == ["100%"]


def test_a_small_collection_is_rebuilt_and_made_smaller(tmp_path: Path) -> None:
    texts = [f"w{'abcdefghij'[number % 10]}{'klmnopqrst'[number // 10]} of wing" for number in range(2 * LISTS)]
    documents = [f"<docno>{n}</docno>\n<text>{text}</text>\n" for n, text in enumerate(texts, start=1)]
    (tmp_path / "cran.all.1400.xml").write_text("".join(documents))
    topics = [f"<num> {n}</num>\n<title>\n{texts[n - 1]}\n</title>\n" for n in range(1, len(texts) + 1)]
    (tmp_path / "cran.qry.xml").write_text("".join(topics))
    (tmp_path / "cranqrel.trec.txt").write_text("".join(f"{n} 0 {n} 1\n" for n in range(1, len(texts) + 1)))
    body = body_of(history.rebuilt_table(tmp_path, grown=24, smaller_at=12))
    assert body["as it is MRR@5"][1:] == ["-", "never", "none"]
    assert body["half of the documents missing MRR@5"][3] == "run 13"
