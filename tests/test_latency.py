"""Latencies from the rows to the verdict and the baseline file."""

import json
from pathlib import Path

import pytest

from tests.builders import as_jsonl, golden, run
from tests.process import Ended, rag_contract


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "golden.jsonl").write_text(as_jsonl(*(golden(f"q{n}") for n in range(4))))
    write_run(tmp_path / "current_run.jsonl", 10, 20, 30, 40)
    return tmp_path


def write_run(path: Path, *latencies: float | None) -> None:
    path.write_text(as_jsonl(*(run(f"q{n}", latency_ms=latency) for n, latency in enumerate(latencies))))


def check_with(folder: Path, config: str) -> Ended:
    (folder / "ragcontract.yml").write_text(config)
    return rag_contract("check")


def report(folder: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((folder / "report.json").read_bytes())
    return found


def test_a_limit_fails_or_passes_the_check(folder: Path) -> None:
    ended = check_with(folder, "latency:\n  p50_ms: 20\n  max_ms: 39")
    assert ended.code == 1
    assert "p50 latency  20 ms  PASS  allowed 20 ms" in ended.out
    assert "max latency  40 ms  FAIL  allowed 39 ms" in ended.out
    assert report(folder)["latency"] == {
        "current": {"rows": 4, "p50_ms": 20.0, "p95_ms": 40.0, "max_ms": 40.0},
        "baseline": None,
    }
    assert check_with(folder, "latency:\n  max_ms: 40").code == 0


def test_rows_for_no_golden_query_have_no_part(folder: Path) -> None:
    with (folder / "current_run.jsonl").open("a") as file:
        file.write(as_jsonl(run("else", latency_ms=999)))
    assert check_with(folder, "latency: {max_ms: 40}").code == 0


def test_rows_without_one_are_counted(folder: Path) -> None:
    write_run(folder / "current_run.jsonl", 10, None, 0, None)
    ended = check_with(folder, "latency: {max_ms: 40}")
    assert ended.code == 0
    assert "current_run.jsonl: 2 of 4 rows without latency_ms, which the limits on latency leave out" in ended.err
    assert "latency" not in check_with(folder, "k: 5").err


def test_a_run_without_any_cannot_be_judged(folder: Path) -> None:
    write_run(folder / "current_run.jsonl", None, None, None, None)
    ended = check_with(folder, "k: 5\nlatency:\n  p50_ms: 1\n  p95_ms: 1")
    assert ended.code == 2
    for line, gate in ((3, "p50_ms"), (4, "p95_ms")):
        assert f"ragcontract.yml:{line}: latency.{gate} cannot be judged: no row of the run has" in ended.err
    assert check_with(folder, "k: 5").code == 0
    assert report(folder)["latency"] is None


def test_the_baseline_remembers_them(folder: Path) -> None:
    assert rag_contract("baseline").code == 0
    stored = json.loads((folder / "baseline.json").read_bytes())
    assert stored["latency"] == {"rows": 4, "p50_ms": 20.0, "p95_ms": 40.0, "max_ms": 40.0}
    write_run(folder / "current_run.jsonl", 10, 20, 30, 50)
    assert check_with(folder, 'latency: {p95_increase_gt: "25%"}').code == 0
    ended = check_with(folder, 'latency: {p95_increase_gt: "24%"}')
    assert ended.code == 1
    assert "FAIL  allowed increase 24%" in ended.out


def test_an_older_baseline_reads_and_has_to_be_recreated_for_an_increase(folder: Path) -> None:
    write_run(folder / "good.jsonl", None, None, None, None)
    assert rag_contract("baseline", "--run", "good.jsonl").code == 0
    assert "latency" not in json.loads((folder / "baseline.json").read_bytes())
    assert check_with(folder, "latency: {p95_ms: 40}").code == 0
    ended = check_with(folder, "latency:\n  p95_increase_gt: 5")
    assert ended.code == 2
    assert (
        "ragcontract.yml:2: latency.p95_increase_gt cannot be judged: the baseline has no latency; recreate"
        in ended.err
    )


def test_a_run_as_baseline_has_its_own(folder: Path) -> None:
    write_run(folder / "base.jsonl", 10, 20, 30, 35)
    (folder / "ragcontract.yml").write_text("latency: {p95_increase_gt: 4}")
    ended = rag_contract("check", "--baseline", "base.jsonl")
    assert (ended.code, "+5 ms  FAIL  allowed increase 4 ms" in ended.out) == (1, True)


@pytest.mark.parametrize(
    ("slowest", "limit", "asked"),
    [
        (1.9, "p95_ms: 900", True),
        (1.9, "p95_increase_gt: 50", True),
        (1.9, 'p95_increase_gt: "50%"', False),
        (1.9, "max_ms: 5", False),
        (2, "p95_ms: 900", False),
    ],
)
def test_latencies_far_below_a_limit_may_be_seconds(*, slowest: float, limit: str, asked: bool, folder: Path) -> None:
    write_run(folder / "current_run.jsonl", 0.5, 0.5, 0.5, slowest)
    assert rag_contract("baseline").code == 0
    ended = check_with(folder, f"latency: {{{limit}}}")
    assert (ended.code, "every latency_ms is below 2" in ended.err) == (0, asked)


@pytest.mark.parametrize("limit", ['"20%"', '"0%"', "5"])
@pytest.mark.parametrize(("slowest", "asked"), [(1.9, True), (20, True), (44.9, True), (46, False), (900, False)])
def test_latencies_far_below_those_of_the_baseline_may_be_seconds(
    *, slowest: float, asked: bool, limit: str, folder: Path
) -> None:
    write_run(folder / "current_run.jsonl", 850, 850, 900, 900)
    assert rag_contract("baseline").code == 0
    write_run(folder / "current_run.jsonl", 0.9, 0.9, 1.9, slowest)
    ended = check_with(folder, f"latency: {{p95_increase_gt: {limit}}}")
    assert (ended.code, ended.err.count("are these seconds?")) == (0, asked)
    assert ("are these seconds?" in str(report(folder)["warnings"])) == asked
    assert "seconds" not in check_with(folder, "k: 5").err


LEFT_OUT = "3 of 4 rows without latency_ms, which the limits on latency leave out"


@pytest.mark.parametrize("update", [False, True])
def test_rows_of_the_baseline_without_one_are_counted(*, folder: Path, update: bool) -> None:
    (folder / "ragcontract.yml").write_text('latency: {p95_increase_gt: "20%"}')
    if update:
        assert rag_contract("baseline").err == ""
    write_run(folder / "base.jsonl", 5000, None, None, None)
    ended = rag_contract("baseline", "--run", "base.jsonl", *(["--update", "--accept-regressions", "x"] * update))
    assert (ended.code, f"base.jsonl: {LEFT_OUT}" in ended.err) == (0, True)
    for baseline in ("base.jsonl", "baseline.json"):
        ended = rag_contract("check", "--baseline", baseline)
        assert (ended.code, f"{baseline}: {LEFT_OUT}" in ended.err) == (0, True)
    (folder / "ragcontract.yml").write_text("latency: {p95_ms: 900}")
    assert LEFT_OUT not in rag_contract("check").err  # it compares nothing


def test_all_rows_of_several_good_runs_are_counted(folder: Path) -> None:
    (folder / "ragcontract.yml").write_text("latency: {p95_increase_gt: 20}")
    for name, latencies in (("one", (1, None, 3, 4)), ("two", (1, 2, 3, 4))):
        write_run(folder / f"{name}.jsonl", *latencies)
    rag_contract("baseline", "--run", "one.jsonl", "--run", "two.jsonl")
    assert "baseline.json: 1 of 8 rows without latency_ms" in rag_contract("check").err
    write_run(folder / "one.jsonl", 1, 2, 3, 4)
    assert rag_contract("baseline", "--run", "one.jsonl", "--run", "two.jsonl", "--force").err == ""
    (folder / "golden.jsonl").write_text(as_jsonl(golden("q1"), golden("q2"), golden("new")))
    write_run(folder / "current_run.jsonl", 1, 2, 3)
    with (folder / "current_run.jsonl").open("a") as file:
        file.write(as_jsonl(run("new", latency_ms=1)))
    assert "without latency_ms" not in rag_contract("check").err


def test_an_increase_without_a_baseline_is_reported_with_the_rest(folder: Path) -> None:
    (folder / "golden.jsonl").write_text("{}")
    ended = check_with(folder, "latency:\n  p95_increase_gt: 5")
    assert "ragcontract.yml:2: latency.p95_increase_gt cannot be judged: there is no baseline" in ended.err
    assert "golden.jsonl:1: id: is missing" in ended.err


@pytest.mark.parametrize("limit", ["p95_ms: 0", "p95_ms: -1", "max_ms: .inf", "p95_increase_gt: -1", 'p50_ms: "9%"'])
def test_a_limit_that_is_none_is_refused(limit: str, folder: Path) -> None:
    ended = check_with(folder, f"latency:\n  {limit}")
    assert ended.code == 2
    name = limit.split(":", maxsplit=1)[0]
    assert f"ragcontract.yml:2: latency.{name}: expected a number of milliseconds" in ended.err


@pytest.mark.usefixtures("folder")
def test_score_prints_them() -> None:
    assert "latency: p50 20 ms, p95 40 ms, max 40 ms (4 rows)" in rag_contract("score").out
    assert json.loads(rag_contract("score", "--format", "json").out)["latency"]["max_ms"] == 40
