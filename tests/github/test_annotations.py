"""Annotations: at the right line, worst first, and no more than the runner shows."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from ragcontract.core.errors import InputError
from ragcontract.core.phrase import Location
from ragcontract.files.problems import Problem
from ragcontract.github.runner_output import MOST, of_problems, of_report
from ragcontract.report.record import Report
from tests import scenarios
from tests.builders import as_jsonl, golden, run, write_baseline, write_jsonl
from tests.github.standin import Fault, GitHub
from tests.records import query, report
from tests.runner import Annotation, InProcess, Runner, parse_annotations


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[Runner]:
    with GitHub() as github:
        yield InProcess(tmp_path, github)


def annotated(what: Report) -> list[Annotation]:
    return parse_annotations(of_report(what, "error", str))


def broken(count: int, *, warnings: Sequence[str] = (), query_id: str = "q{}") -> Report:
    """Broken queries of which each is worse than the one before."""
    ids = [query_id.format(number) for number in range(count)]
    queries = [query(one, "A", must_rank_at_most=1, location=f"golden.jsonl:{n + 1}") for n, one in enumerate(ids)]
    now = {one: ["x"] * (n + 1) + ["A"] for n, one in enumerate(ids)}
    return report(queries, now, {key: ["A"] for key in ids}, warnings=warnings)


def test_a_broken_query_is_at_its_line_of_the_golden_file() -> None:
    (one,) = annotated(broken(1))
    assert one == Annotation(
        level="error",
        title="Broken query q0 (new)",
        message="Expected A in top 1. Found: rank 2 (was rank 1).",
        file="golden.jsonl",
        line="1",
    )


def test_a_broken_gate_is_at_its_line_of_the_config_and_before_the_queries() -> None:
    what = report(
        [query("q", "A", location="golden.jsonl:3")],
        {"q": ["x"]},
        {"q": ["A"]},
        {"fail_on": {"mrr_drop_gt": 0.1}},
    )
    gate, one = annotated(what)
    assert (gate.title, gate.file, gate.line) == ("fail_on.mrr_drop_gt", "ragcontract.yml", "7")
    assert gate.message.startswith("MRR@5 fell by 1.0")
    assert (one.file, one.line) == ("golden.jsonl", "3")


def test_the_worst_come_first() -> None:
    assert [one.line for one in annotated(broken(5))] == ["5", "4", "3", "2", "1"]


def test_of_more_than_ten_the_last_one_counts_the_rest() -> None:
    assert len(annotated(broken(10))) == 10
    reported = annotated(broken(1200))
    assert len(reported) == 10
    assert reported[0].line == "1200"
    assert reported[-1].message == "… and 1,191 more like these; the report has them all"


def test_a_repository_is_looked_for_only_for_what_is_shown() -> None:
    asked: list[str] = []

    def in_repository(location: str) -> str:
        asked.append(location)
        return location

    for level in ("error", "warning"):
        asked.clear()
        of_report(broken(1200), level, in_repository)
        assert len(asked) == MOST[level] - 1


def test_warnings_leave_room_for_what_delivering_has_to_say() -> None:
    reported = annotated(broken(2, warnings=[f"odd {number}" for number in range(30)]))
    assert [one.level for one in reported] == ["error"] * 2 + ["warning"] * MOST["warning"]
    assert reported[-1].message.startswith("… and 27 more")


def test_what_is_not_enforced_is_a_warning_and_the_limit_is_over_all() -> None:
    reported = parse_annotations(of_report(broken(9, warnings=["odd"] * 9), "warning", str))
    assert {one.level for one in reported} == {"warning"}
    assert len(reported) == MOST["warning"]


@pytest.mark.parametrize("nasty", ["\x1b", "##[", "%0A", "✅", "::error::", "a,b:c=d", "\u202e"])
def test_no_id_makes_a_message_too_long_or_another_command(nasty: str) -> None:
    (one,) = annotated(broken(1, query_id=nasty * 5000))
    assert len(one.title) <= 255
    queries = [query("q", *[f"{nasty * 300}{number}" for number in range(60)], location="golden.jsonl:1")]
    long = annotated(report(queries, {"q": ["x"]}))[0]
    assert len(long.message) <= 4096
    assert (long.file, long.line) == ("golden.jsonl", "1")


def test_problems_are_at_the_line_they_begin_with() -> None:
    missing = str(Problem(Location("a,b.jsonl", 17, ("id",)), "is missing"))
    others = [str(Problem("run.jsonl", "no such file")), "input k: x", "x: 3: y"]
    reported = parse_annotations(of_problems(InputError([missing, *others]), str))
    assert [(one.file, one.line) for one in reported] == [("a,b.jsonl", "17"), ("", ""), ("", ""), ("", "")]
    assert reported[0].message == "a,b.jsonl:17: id: is missing"


def test_of_many_problems_ten_are_shown() -> None:
    problems = [f"golden.jsonl:{number}: x" for number in range(50)]
    reported = parse_annotations(of_problems(InputError(problems, warnings=["odd"] * 7), str))
    assert [one.level for one in reported] == ["error"] * 10 + ["warning"] * 4
    assert reported[9].message == "… and 41 more like these; the job's summary has more of them"
    assert reported[-1].message == "… and 4 more like these; the job's summary has more of them"


def test_problems_that_were_only_counted_are_counted_here_too(runner: Runner) -> None:
    write_jsonl(runner.workspace / "golden.jsonl", [golden(f"q{n}", weight=-1) for n in range(1200)])
    write_jsonl(runner.workspace / "current_run.jsonl", [run("q1")])
    reported = [one.message for one in runner.run().annotations if one.level == "error"]
    (one,) = reported
    assert one.endswith("(and 1,199 more like this, in lines 1 to 50, …)")


def locations(runner: Runner, **inputs: str) -> list[str]:
    result = runner.run({name.replace("_", "-"): value for name, value in inputs.items()})
    assert result.exit_code in {1, 2}
    return [f"{one.file}:{one.line}" for one in result.annotations if one.level == "error"]


def test_the_lines_are_the_files_own(runner: Runner) -> None:
    scenarios.failing(runner.workspace)
    file = runner.workspace / "golden.jsonl"
    file.write_text("\n\n" + as_jsonl(golden("refunds", "doc1")) + "\n" + as_jsonl(golden("sso", "doc2")))
    write_baseline(runner.workspace / "baseline.json")
    (runner.workspace / "ragcontract.yml").write_text("# limits\nk: 5\nminimums:\n  # high\n  mrr_at_k: 0.9\n")
    write_jsonl(runner.workspace / "baseline.jsonl", [run("refunds", "doc1"), run("sso", "doc2")])
    assert locations(runner, baseline="baseline.jsonl") == ["ragcontract.yml:5", "golden.jsonl:5"]


def test_locations_in_a_working_directory_are_relative_to_the_repository(runner: Runner) -> None:
    folder = runner.workspace / "rag" / "contract"
    folder.mkdir(parents=True)
    scenarios.failing(folder)
    (folder / "ragcontract.yml").write_text("minimums:\n  mrr_at_k: 0.9\n")
    expected = ["rag/contract/ragcontract.yml:2", "rag/contract/golden.jsonl:2"]
    assert locations(runner, working_directory="rag/contract") == expected
    assert locations(runner, working_directory="./rag/../rag/contract/") == expected
    assert locations(
        runner, working_directory="rag", golden="contract/golden.jsonl", run="contract/current_run.jsonl"
    ) == ["rag/contract/golden.jsonl:2"]
    (folder / "golden.jsonl").write_text("\n{")
    assert locations(runner, working_directory="rag/contract")[:1] == ["rag/contract/golden.jsonl:2"]


def test_locations_of_absolute_paths_are_relative_to_the_repository(runner: Runner) -> None:
    scenarios.failing(runner.workspace)
    assert locations(runner, golden="/home/runner/work/app/app/golden.jsonl") == ["golden.jsonl:2"]
    assert locations(runner, golden=str(runner.workspace / "golden.jsonl")) == ["golden.jsonl:2"]
    (runner.workspace / "golden.jsonl").write_text("\n{")
    assert locations(runner, golden="/home/runner/work/app/app/golden.jsonl")[:1] == ["golden.jsonl:2"]


def test_locations_are_relative_to_a_repository_in_a_folder_of_the_workspace(runner: Runner) -> None:
    folder = runner.workspace / "head" / "rag"
    folder.mkdir(parents=True)
    (runner.workspace / "head" / ".git").mkdir()
    scenarios.failing(folder)
    assert locations(runner, working_directory="head/rag") == ["rag/golden.jsonl:2"]
    (folder / "golden.jsonl").write_text("\n{")
    assert locations(runner, working_directory="head/rag")[:1] == ["rag/golden.jsonl:2"]


def test_shards_and_packed_files_have_their_own_lines(runner: Runner) -> None:
    import gzip

    scenarios.failing(runner.workspace)
    (runner.workspace / "golden").mkdir()
    write_jsonl(runner.workspace / "golden" / "1.jsonl", [golden("refunds", "doc1")])
    with gzip.open(runner.workspace / "golden" / "2.jsonl.gz", "wt") as file:
        file.write("\n" + json.dumps(golden("sso", "doc2")) + "\n")
    assert locations(runner, golden="golden/*") == ["golden/2.jsonl.gz:2"]


def test_with_everything_going_wrong_no_level_has_more_than_ten(runner: Runner) -> None:
    ids = [f"q{number}" for number in range(30)]
    write_jsonl(runner.workspace / "golden.jsonl", [golden(one, "doc1") for one in ids])
    extra = [run(one, "x", colour="red", shape=2) for one in ids]
    write_jsonl(runner.workspace / "current_run.jsonl", [*extra, *[run(f"unknown{n}") for n in range(30)]])
    for name in ("set_output", "step_summary"):
        (runner.folder / "file_commands" / name).mkdir()
    (runner.workspace / "body").mkdir()
    runner.github.faults = [Fault(method="PATCH|POST", path="^/repos", status=422)]
    for enforce, code in (("true", 1), ("false", 0)):
        result = runner.run({"enforce": enforce})  # the harness counts
        assert result.exit_code == code
        reported = [one.message.split(" could")[0] for one in result.annotations]
        assert {"The outputs", "The summary", "The comment"} <= set(reported)


def test_files_that_are_swapped_are_annotated_at_the_golden_file(runner: Runner) -> None:
    write_jsonl(runner.workspace / "golden.jsonl", [golden("q1", "doc1")])
    write_jsonl(runner.workspace / "current_run.jsonl", [run("q1", "doc1")])
    (annotation,) = runner.run({"golden": "current_run.jsonl", "run": "golden.jsonl"}).annotations
    assert (annotation.file, annotation.line) == ("golden.jsonl", "1")
    assert "current_run.jsonl is the run" in annotation.message
