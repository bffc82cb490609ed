from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from msgspec import Struct
from msgspec.structs import replace

from ragcontract import pipeline
from ragcontract.core.errors import InputError
from ragcontract.evaluation.source import Local
from ragcontract.files.opening import Progress, no_progress
from ragcontract.pipeline import Inputs
from ragcontract.report.record import Report
from ragcontract.runs.readers import open_baseline, open_run
from tests.builders import golden, run, stored_query, write_baseline, write_jsonl

NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)


class Paths(Struct, frozen=True, kw_only=True):
    """Where the inputs of a test are."""

    golden: list[str]
    run: list[str]
    baseline: list[str] | None = None
    config: str | None = None

    def request(self, *, progress: Progress = no_progress, k: int | None = None, decides: bool = True) -> Inputs:
        """Ask for a check of them."""
        return Inputs(
            golden=self.golden,
            run=Local(open_run(self.run, progress)),
            baseline=Local(open_baseline(self.baseline, progress)) if self.baseline else None,
            config=self.config,
            k=k,
            decides=decides,
            progress=progress,
        )


def check(paths: Paths, *, k: int | None = None) -> Report:
    return pipeline.check(paths.request(k=k), now=NOW).report


def compare(paths: Paths, *, k: int | None = None) -> Report:
    """Measure without judging."""
    return pipeline.check(paths.request(k=k, decides=False), now=NOW).report


def paths_in(
    folder: Path,
    golden_rows: Sequence[dict[str, object]],
    run_rows: Sequence[dict[str, object]],
    config: str | None = None,
) -> Paths:
    """Write a contract and a run, and a configuration if there is one."""
    if config is not None:
        (folder / "ragcontract.yml").write_text(config)
    return Paths(
        golden=[str(write_jsonl(folder / "golden.jsonl", golden_rows))],
        run=[str(write_jsonl(folder / "run.jsonl", run_rows))],
        config=str(folder / "ragcontract.yml") if config is not None else None,
    )


def with_baseline(paths: Paths, path: Path) -> Paths:
    return replace(paths, baseline=[str(path)])


def test_a_check_judges_and_a_comparison_does_not(tmp_path: Path) -> None:
    paths = paths_in(tmp_path, [golden("q", "a")], [run("q", "b")], "minimums: {mrr_at_k: 0.5}")
    judged = check(paths)
    assert (judged.verdict, len(judged.gates), len(judged.queries[0].violations)) == ("fail", 1, 1)
    compared = compare(paths)
    assert (compared.verdict, compared.gates, compared.queries[0].violations) == ("pass", [], [])
    assert compared.metrics["mrr_at_5"].current == judged.metrics["mrr_at_5"].current == 0
    assert judged.created_at == "2026-07-01T12:00:00+00:00"


@pytest.mark.parametrize(
    ("argument", "config", "k"), [(None, None, 5), (None, "k: 3", 3), (2, "k: 3", 2), (7, None, 7)]
)
def test_k_is_the_arguments_else_the_configs_else_5(
    argument: int | None, config: str | None, k: int, tmp_path: Path
) -> None:
    paths = paths_in(tmp_path, [golden("q", "a")], [run("q", "a")], config)
    baseline = write_baseline(tmp_path / "baseline.json", stored_query("q", "a"), k=[9])
    assert check(with_baseline(paths, baseline), k=argument).k == [k]


def test_the_baseline_is_scored_again_under_todays_golden_set_and_k(tmp_path: Path) -> None:
    paths = paths_in(tmp_path, [golden("q", "c")], [run("q", "c")])
    stored = stored_query("q", "a", "b", "c", ranks={"a": 1}, metrics={"mrr_at_5": 1.0})
    report = check(with_baseline(paths, write_baseline(tmp_path / "b.json", stored)), k=3)
    assert report.metrics["mrr_at_3"].baseline == pytest.approx(1 / 3)
    assert report.queries[0].baseline_ranks == {"c": 3}


def test_a_query_whose_question_changed_is_not_compared(tmp_path: Path) -> None:
    paths = paths_in(tmp_path, [golden("q", "a"), golden("p", "a")], [run("q", "b"), run("p", "a")])
    stored = write_baseline(tmp_path / "b.json", stored_query("q", "a", query="Else?"), stored_query("p", "a"))
    report = compare(with_baseline(paths, stored))
    assert report.inputs.baseline is not None
    assert report.inputs.baseline.changed == ["q"]
    assert report.metrics["mrr_at_5"].delta == 0


def warnings_of(paths: Paths) -> list[str]:
    folder = str(Path(paths.golden[0]).parent)
    return [line.replace(f"{folder}/", "") for line in check(paths).warnings]


def test_missing_queries_that_score_zero_are_named(tmp_path: Path) -> None:
    queries = [golden(f"q{n}", "a") for n in range(5)]
    paths = paths_in(tmp_path, queries, [run("q0", "a")], "missing_queries: zero")
    assert warnings_of(paths) == ["run.jsonl: no row for 4 golden queries, scored 0: 'q1', 'q2', 'q3' and 1 more"]
    report = check(paths)
    assert report.inputs.run.missing == ["q1", "q2", "q3", "q4"]
    assert report.metrics["mrr_at_5"].current == pytest.approx(0.2)


def test_rows_for_no_golden_query_are_named_and_left_out(tmp_path: Path) -> None:
    paths = paths_in(tmp_path, [golden("q", "a")], [run("x", "a"), run("q", "a"), run("y", "a")])
    assert warnings_of(paths) == ["run.jsonl: 2 rows for no golden query, left out: 'x', 'y'"]


def test_of_several_run_files_the_first_is_named(tmp_path: Path) -> None:
    shards = [str(write_jsonl(tmp_path / f"r{n}.jsonl", [run(f"x{n}")])) for n in range(3)]
    paths = paths_in(tmp_path, [golden("q")], [])
    for count, more in ((1, ""), (2, " (and 1 more file)"), (3, " (and 2 more files)")):
        with pytest.raises(InputError) as caught:
            check(replace(paths, run=shards[:count]))
        assert caught.value.problems[0].startswith(f"{shards[0]}{more}: has no row for golden query 'q'")


def test_a_query_that_can_never_pass_is_warned_about_unless_the_rule_is_off(tmp_path: Path) -> None:
    rows = [golden("q", "a", "b", "c")]
    found = [run("q", "a", "b", "c")]
    assert len(warnings_of(paths_in(tmp_path, rows, found, "k: 2"))) == 1
    assert warnings_of(paths_in(tmp_path, rows, found, "k: 3")) == []
    off = "k: 2\nper_query: {enforce_must_include: false}"
    assert warnings_of(paths_in(tmp_path, rows, found, off)) == []


def test_a_good_run_comes_with_all_it_returned(tmp_path: Path) -> None:
    paths = paths_in(tmp_path, [golden("q", "a")], [run("q", *"abcdefgh"), run("more", "z")])
    outcome = pipeline.check(replace(paths.request(k=2, decides=False), store=True), now=NOW)
    assert outcome.evaluation.run.ids.doc_ids == {"q": [list("abcdefgh")]}
    assert outcome.evaluation.contract.k == 2
    assert outcome.report.warnings == [f"{tmp_path}/run.jsonl: 1 row for no golden query, left out: 'more'"]
    assert pipeline.check(paths.request(), now=NOW).evaluation.run.ids.doc_ids == {}


def test_a_run_that_is_to_be_stored_must_be_whole_whatever_the_config_says(tmp_path: Path) -> None:
    rows = [golden(f"q{n}", "a") for n in range(5)]
    paths = paths_in(tmp_path, rows, [run("q0", "a")], "missing_queries: zero")
    assert check(paths).inputs.run.missing == ["q1", "q2", "q3", "q4"]
    with pytest.raises(InputError) as caught:
        pipeline.check(replace(paths.request(), store=True), now=NOW)
    assert caught.value.problems == [
        f"{tmp_path}/run.jsonl: lacks 4 golden queries ('q1', 'q2', 'q3' and 1 more), so it cannot be a baseline"
    ]


def test_documents_are_counted_where_the_config_says_so_on_both_sides(tmp_path: Path) -> None:
    paths = paths_in(tmp_path, [golden("q", "b")], [run("q", "a", "a", "b")], "rank_by: documents")
    base = write_jsonl(tmp_path / "base.jsonl", [run("q", "a", "a", "a", "b")])
    report = compare(with_baseline(paths, base))
    assert report.queries[0].ranks == report.queries[0].baseline_ranks == {"b": 2}


def test_progress_counts_every_byte_of_every_input(tmp_path: Path) -> None:
    paths = paths_in(tmp_path, [golden("q", "a")], [run("q", "a")])
    base = write_baseline(tmp_path / "b.json", stored_query("q", "a"))
    read: list[int] = []
    pipeline.check(with_baseline(paths, base).request(progress=read.append), now=NOW)
    assert sum(read) == sum(Path(path).stat().st_size for path in (paths.golden[0], paths.run[0], base))


def test_problems_of_several_files_are_reported_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_jsonl(Path("golden.jsonl"), [golden("a"), golden("b")])
    write_jsonl(Path("run.jsonl"), [run("a", latency=1)])
    Path("c.yml").write_text("kk: 1\nfail_on:\n  mrr_drop_gt: 0.1\n")
    paths = Paths(golden=["golden.jsonl"], run=["run.jsonl"], config="c.yml")
    with pytest.raises(InputError) as caught:
        check(paths)
    assert [problem.split(": ")[0] for problem in caught.value.problems] == ["c.yml:1", "c.yml:3", "run.jsonl"]
    Path("c.yml").write_text("fail_on:\n  mrr_drop_gt: 0.1\n")
    with pytest.raises(InputError) as caught:
        check(paths)
    assert [problem.split(": ")[0] for problem in caught.value.problems] == ["c.yml:2", "run.jsonl"]
    assert len(caught.value.warnings) == 1


def problems_of(paths: Paths, *, k: int | None = None) -> list[str]:
    folder = str(Path(paths.golden[0]).parent)
    with pytest.raises(InputError) as caught:
        check(paths, k=k)
    return [problem.replace(f"{folder}/", "") for problem in caught.value.problems]


def test_a_limit_at_a_cut_off_that_the_argument_takes_away_is_refused(tmp_path: Path) -> None:
    config = """\
k: [1, 5]
minimums:
  mrr_at_k: 0.5
  mrr_at_5: 0.5
  recall_at_1: 0.5
tags:
  t:
    minimums: {map_at_1: 0}
"""
    paths = paths_in(tmp_path, [golden("q", "a", tags=["t"])], [run("q", "a")], config)
    assert len(check(paths).gates) == 4
    assert problems_of(paths, k=5) == [
        "ragcontract.yml:5: minimums.recall_at_1 cannot be judged: k is 5",
        "ragcontract.yml:8: tags.t.minimums.map_at_1 cannot be judged: k is 5",
    ]
    assert compare(paths, k=5).k == [5]


def test_limits_and_rules_that_name_no_cut_off_take_the_largest(tmp_path: Path) -> None:
    config = "k: [1, 3]\nminimums: {recall_at_k: 0.9, recall_at_1: 0.1}"
    paths = paths_in(
        tmp_path, [golden("q", "a"), golden("p", "a")], [run("q", "b", "c", "a"), run("p", "b", "c", "d", "a")], config
    )
    report = check(paths)
    assert report.k == [1, 3]
    assert [(gate.id, gate.metric, gate.observed) for gate in report.gates] == [
        ("minimums.recall_at_k", "recall_at_3", 0.5),
        ("minimums.recall_at_1", "recall_at_1", 0.0),
    ]
    assert [query.status for query in report.queries] == ["pass", "fail"]
    assert report.metrics["recall_at_1"].status == report.metrics["recall_at_3"].status == "fail"


def test_a_tag_that_no_query_has_cannot_be_judged(tmp_path: Path) -> None:
    config = "tags:\n  ghost:\n    minimums:\n      mrr_at_k: 0\n  t:\n    minimums: {mrr_at_k: 0}"
    paths = paths_in(tmp_path, [golden("q", "a", tags=["t"])], [run("q", "a")], config)
    assert problems_of(paths) == [
        "ragcontract.yml:4: tags.ghost.minimums.mrr_at_k cannot be judged: no golden query has the tag 'ghost'"
    ]


def test_a_drop_of_a_tag_needs_a_baseline_that_has_its_queries(tmp_path: Path) -> None:
    rows = [golden("q", "a", tags=["t"]), golden("p", "a")]
    paths = paths_in(tmp_path, rows, [run("q", "a"), run("p", "a")], "tags:\n  t:\n    fail_on: {mrr_drop_gt: 0}")
    prefix = "ragcontract.yml:3: tags.t.fail_on.mrr_drop_gt cannot be judged: "
    assert [problem.partition(prefix)[2][:20] for problem in problems_of(paths)] == ["there is no baseline"]
    stored = write_baseline(tmp_path / "b.json", stored_query("p", "a"))
    assert problems_of(with_baseline(paths, stored)) == [
        prefix + "no query with the tag 't' and with relevant documents is in both the run and the baseline"
    ]


def test_limits_of_a_tag_are_about_its_queries_alone(tmp_path: Path) -> None:
    rows = [golden("q", "a", tags=["t"]), golden("r", "a", tags=["t", "u"]), golden("p", "a")]
    config = """\
tags:
  t:
    minimums: {mrr_at_k: 0.8}
    fail_on: {mrr_drop_gt: 0.2}
  u:
    minimums: {mrr_at_k: 0.5}
"""
    paths = paths_in(tmp_path, rows, [run("q", "a"), run("r", "b", "a"), run("p", "a")], config)
    base = write_jsonl(tmp_path / "base.jsonl", [run(query_id, "a") for query_id in "qrp"])
    report = check(with_baseline(paths, base))
    assert [(gate.tag, gate.id, gate.observed, gate.status, gate.message) for gate in report.gates] == [
        ("t", "tags.t.fail_on.mrr_drop_gt", 0.25, "fail", "MRR@5 fell by 0.25, allowed drop 0.20"),
        ("t", "tags.t.minimums.mrr_at_k", 0.75, "fail", "MRR@5 is 0.75, minimum 0.80"),
        ("u", "tags.u.minimums.mrr_at_k", 0.5, "pass", "MRR@5 is 0.50, minimum 0.50"),
    ]
    assert report.verdict == "fail"
    assert [check.message for check in report.failed_checks] == [
        "t: MRR@5 fell by 0.25, allowed drop 0.20",
        "t: MRR@5 is 0.75, minimum 0.80",
    ]
    assert {metric.status for metric in report.metrics.values()} == {"none"}


def test_grades_count_on_both_sides_with_the_gain_of_the_config(tmp_path: Path) -> None:
    rows = [golden("q", "a", "b", relevance={"a": 2, "b": 1})]
    base = write_jsonl(tmp_path / "base.jsonl", [run("q", "a")])
    for gain, (a, b) in {"linear": (2, 1), "exponential": (3, 1)}.items():
        paths = with_baseline(paths_in(tmp_path, rows, [run("q", "b")], f"k: 1\ngain: {gain}"), base)
        ndcg = compare(paths).metrics["ndcg_at_1"]
        assert ndcg.current == pytest.approx(b / a)
        assert ndcg.baseline == 1


def test_a_grade_that_is_no_exponent_is_refused_beside_all_else(tmp_path: Path) -> None:
    rows = [golden("q", "a", relevance={"a": 64, "b": 0}), golden("r", "a", relevance={"a": 64.5}), golden("p", "a")]
    rows += [golden("s", "a", relevance={"a": 1, "b": 0.5}) | {"relevance": {"a": 1e9}}]
    paths = paths_in(tmp_path, rows, [run("q", "a"), run("r", "a"), run("s", "a")], "gain: exponential")
    stored = write_baseline(tmp_path / "b.json", stored_query("r", "a"), stored_query("s", "a"))
    found = problems_of(with_baseline(paths, stored))
    assert len(found) == 3
    assert found[:2] == [
        "golden.jsonl:2: relevance: has a grade over 64, too much for `gain: exponential`",
        "golden.jsonl:4: relevance: has a grade over 64, too much for `gain: exponential`",
    ]
    assert found[2].startswith("run.jsonl: has no row for golden query 'p'")
    paths = paths_in(tmp_path, rows, [run(query_id, "a") for query_id in "qrsp"])
    assert check(paths).metrics["ndcg_at_5"].current == 1


def test_a_waivers_last_day_ends_in_utc_wherever_the_clock_is(tmp_path: Path) -> None:
    waiver = "waivers: [{query: q, reason: known, owner: ann, expires: 2026-12-31}]"
    paths = paths_in(tmp_path, [golden("q", "a")], [run("q", "b")], waiver)
    east = timezone(timedelta(hours=14))

    def verdict(hour: int) -> str:
        return pipeline.check(paths.request(), now=datetime(2027, 1, 1, hour, 30, tzinfo=east)).report.verdict

    assert (verdict(0), verdict(14)) == ("pass", "fail")


def test_what_is_wrong_with_limits_the_run_and_the_baseline_is_reported_in_this_order(tmp_path: Path) -> None:
    config = """\
fail_on:
  mrr_drop_gt: 0.1
tags:
  ghost:
    minimums:
      mrr_at_k: 0.5
latency:
  max_ms: 100
  p95_increase_gt: 5
"""
    paths = paths_in(tmp_path, [golden("q", "a"), golden("p", "a")], [run("q", "a")], config)
    missing = (
        "run.jsonl: has no row for golden query 'p' (golden.jsonl:2); export it again, or have such queries scored 0 "
        "with `missing_queries: zero` in the config"
    )
    unmeasured = "cannot be judged: no row of the run has latency_ms; export it, or leave the limit out"
    no_baseline = (
        "cannot be judged: there is no baseline; make one with `rag-contract baseline`, or leave the limit out"
    )
    assert problems_of(paths) == [
        f"ragcontract.yml:2: fail_on.mrr_drop_gt {no_baseline}",
        "ragcontract.yml:6: tags.ghost.minimums.mrr_at_k cannot be judged: no golden query has the tag 'ghost'",
        f"ragcontract.yml:9: latency.p95_increase_gt {no_baseline}",
        missing,
        f"ragcontract.yml:8: latency.max_ms {unmeasured}",
    ]
    other = write_jsonl(tmp_path / "base.jsonl", [run("other", "a")])
    assert problems_of(with_baseline(paths, other)) == [
        "ragcontract.yml:6: tags.ghost.minimums.mrr_at_k cannot be judged: no golden query has the tag 'ghost'",
        missing,
        "base.jsonl: has no query in common with the golden file; recreate it with `rag-contract baseline --force`",
        f"ragcontract.yml:8: latency.max_ms {unmeasured}",
    ]


def test_problems_of_every_input_come_before_those_between_them(tmp_path: Path) -> None:
    paths = paths_in(tmp_path, [golden("q", "a"), {"id": "p"}], [run("q", "a"), {"query_id": "q"}], "kk: 1\nk: 0")
    stored = tmp_path / "b.json"
    stored.write_text("{")
    found = problems_of(with_baseline(paths, stored))
    files = [problem.partition(":")[0] for problem in found]
    assert files == sorted(files, key=["ragcontract.yml", "golden.jsonl", "run.jsonl", "b.json"].index)
    assert list(dict.fromkeys(files)) == ["ragcontract.yml", "golden.jsonl", "run.jsonl", "b.json"]


def test_a_cut_off_that_replaces_others_takes_limits_that_name_none_along(tmp_path: Path) -> None:
    config = "k: [1, 5]\nminimums:\n  mrr_at_k: 0.3\n  recall_at_k: 1\n"
    paths = paths_in(tmp_path, [golden("q", "a")], [run("q", "b", "c", "a")], config)
    report = check(paths, k=3)
    assert report.k == [3]
    assert [(gate.id, gate.metric, gate.status) for gate in report.gates] == [
        ("minimums.mrr_at_k", "mrr_at_3", "pass"),
        ("minimums.recall_at_k", "recall_at_3", "pass"),
    ]
    assert check(paths, k=2).verdict == "fail"
    paths = paths_in(tmp_path, [golden("q", "a")], [run("q", "b", "c", "a")], config + "  mrr_at_1: 0\n")
    assert problems_of(paths, k=3) == ["ragcontract.yml:5: minimums.mrr_at_1 cannot be judged: k is 3"]


def test_a_relative_limit_on_a_baseline_of_0_holds_for_a_drop_and_cannot_be_judged_for_a_rise(tmp_path: Path) -> None:
    config = 'fail_on: {mrr_drop_gt: "0%"}'
    paths = with_baseline(
        paths_in(tmp_path, [golden("q", "a")], [run("q", "a", latency_ms=4)], config),
        write_jsonl(tmp_path / "base.jsonl", [run("q", "b", latency_ms=0)]),
    )
    assert [(gate.observed, gate.status) for gate in check(paths).gates] == [(0.0, "pass")]
    (tmp_path / "ragcontract.yml").write_text(config + '\nlatency: {p95_increase_gt: "10%"}')
    reason = "the baseline's p95 is 0 ms, so a relative limit cannot be applied; give the limit in milliseconds"
    assert problems_of(paths) == [f"ragcontract.yml:2: latency.p95_increase_gt cannot be judged: {reason}"]
