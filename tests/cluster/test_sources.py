"""Where a run may come from on a cluster, and what is said where it cannot be read."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from pyspark.sql import DataFrame, SparkSession

from ragcontract import InputError, pipeline
from ragcontract import spark as on_spark
from ragcontract.cluster.spark_source import OnSpark, is_json_lines, parts_of
from ragcontract.cluster.workers import FEW
from ragcontract.contract.golden_file import read_golden
from ragcontract.core.lines import Line
from ragcontract.evaluation.observations import UnknownQueries
from ragcontract.files.problems import Collector, Problems
from ragcontract.registry import BUILT_IN
from tests.builders import Row, as_jsonl, golden, run, write_baseline, write_jsonl
from tests.cluster.data import once, write_contract, write_parquet
from tests.cluster.toys import REGISTRY as OF_CLUSTER
from tests.evaluation.test_stored_rows import same
from tests.process import rag_contract
from tests.records import NOW
from tests.runs.sides import plan_of
from tests.toys import REGISTRY as TOYS

pytestmark = pytest.mark.spark

HIT: Row = {"query_id": "q1", "results": [{"doc_id": "doc1", "score": 1.0}]}


@pytest.fixture
def asked(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "golden.jsonl", [golden("q1"), golden("q2"), golden("3")])


def mrr(spark: SparkSession, asked: Path, run: Any, **options: Any) -> float | None:
    return on_spark.score(spark, golden=asked, run=run, **options).metrics["mrr_at_5"].current


def problems(spark: SparkSession, asked: Path, run: Any, **options: Any) -> list[str]:
    with pytest.raises(InputError) as refused:
        on_spark.check(spark, golden=asked, run=run, **options)
    return [line.replace(f"{asked.parent}/", "") for line in refused.value.lines()]


def test_json_lines_and_parquet_and_packed_files_are_one_run(spark: SparkSession, asked: Path, tmp_path: Path) -> None:
    (tmp_path / "now").mkdir()
    (tmp_path / "now" / "a.jsonl.gz").write_bytes(gzip.compress(as_jsonl(run("q2", "x", "doc1")).encode()))
    (tmp_path / "now" / "b.jsonl").write_bytes(
        b"\xef\xbb\xbf" + as_jsonl({"query_id": 3, "results": []}).encode() + b"\r\n \r\n"
    )
    parquet = write_parquet(tmp_path / "logs", [HIT], files=1)
    assert mrr(spark, asked, [parquet, str(tmp_path / "now" / "*.jsonl*")]) == pytest.approx(0.5)


def test_a_data_frame_may_have_other_columns_and_other_types(spark: SparkSession, asked: Path) -> None:
    frame = spark.createDataFrame(
        [(1, [("doc1", 2)], "x"), (2, [("y", 2), ("doc1", 1)], "x"), (3, [], "x")],
        "n int, results array<struct<doc_id string, score int>>, notes string",
    )
    rows = frame.selectExpr(
        "if(n = 3, '3', concat('q', n)) as query_id", "results", "notes", "cast(n as decimal(9,3)) as latency_ms"
    )
    report = on_spark.check(spark, golden=asked, run=rows, baseline=rows)
    assert report.metrics["mrr_at_5"].current == 0.5
    assert report.latency
    assert (report.latency.current.rows, report.latency.current.p50_ms) == (3, 2.0)
    assert [file.path for file in report.inputs.run.files] == ["(data frame)"]
    assert report.inputs.baseline
    assert (report.inputs.baseline.shared, report.inputs.baseline.created_at) == (3, None)


def test_a_stored_baseline_is_read_by_the_driver(spark: SparkSession, asked: Path, tmp_path: Path) -> None:
    stored = write_baseline(tmp_path / "baseline.json")
    rows = write_jsonl(tmp_path / "run.jsonl", [run("q1"), run("q2"), run("3")])
    report = on_spark.check(spark, golden=asked, run=rows, baseline=stored)
    assert report.inputs.baseline
    assert (report.inputs.baseline.queries, report.inputs.baseline.k) == (1, [5])


def test_only_what_is_needed_is_read(spark: SparkSession, tmp_path: Path) -> None:
    pattern = write_parquet(tmp_path / "logs", once(seed=1), files=1)
    problems = Collector()
    (part,) = parts_of(spark, [pattern], plan_of([]), problems)
    assert problems.collected() == Problems()
    plan = executed(part.rows)
    assert "results:array<struct<doc_id:string,score:double>>" in plan
    assert "text" not in plan.partition("ReadSchema")[2]


def executed(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def test_several_rows_a_query_are_refused_by_name(spark: SparkSession, asked: Path, tmp_path: Path) -> None:
    rows = write_jsonl(
        tmp_path / "run.jsonl", [run("q1"), run("q2"), run("3"), run("q1"), run("x"), run("x"), run("x")]
    )
    why = "(several rows per query are averaged with --repeats)"
    assert problems(spark, asked, rows) == [
        f"run.jsonl: query_id: 'q1' occurs in 2 rows {why}",
        f"run.jsonl: query_id: 'x' occurs in 3 rows {why}",
    ]
    assert mrr(spark, asked, rows, repeats=True) == 1.0


def test_bad_rows_are_reported_by_file_and_query_and_missing_queries_are_not(
    spark: SparkSession, asked: Path, tmp_path: Path
) -> None:
    write_jsonl(tmp_path / "a.jsonl", [run("q1"), {"query_id": "q2"}])
    (tmp_path / "b b.jsonl").write_text('{"query_id": "3", "results": "doc1"}\n')
    found = problems(spark, asked, str(tmp_path / "*b*.jsonl"))
    assert found == [
        'b%20b.jsonl: query "3": results: expected a list, found "doc1" (text); write ["doc1"] for a list of one'
    ]
    assert problems(spark, asked, str(tmp_path / "a.jsonl")) == ['a.jsonl: query "q2": results: is missing']
    write_jsonl(tmp_path / "a.jsonl", [run("")] * 70)
    assert problems(spark, asked, str(tmp_path / "a.jsonl"))[-1] == "… and 69 more like these"


def test_what_cannot_be_read_is_reported(spark: SparkSession, asked: Path, tmp_path: Path) -> None:
    (line,) = problems(spark, asked, str(tmp_path / "none.parquet"))
    assert line.startswith("none.parquet: cannot be read ([PATH_NOT_FOUND]")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and no more")
    (line,) = problems(spark, asked, str(tmp_path / "broken.parquet"))
    assert line.startswith("broken.parquet: ")
    assert "broken.parquet" in line.removeprefix("broken.parquet: ")
    (tmp_path / "broken.jsonl.gz").write_bytes(
        gzip.compress(as_jsonl(*[run(f"q{n}") for n in range(99)]).encode())[:90]
    )
    (line,) = problems(spark, asked, str(tmp_path / "broken.jsonl.gz"))
    assert line.startswith("broken.jsonl.gz: Spark cannot read it")
    (tmp_path / "empty.jsonl").touch()
    assert problems(spark, asked, str(tmp_path / "empty.jsonl"))[0] == "empty.jsonl: has no rows"


def test_columns_are_held_to_the_format_before_any_work_is_done(spark: SparkSession, asked: Path) -> None:
    frame = spark.createDataFrame([("q1", ["doc1"], "3")], "qid string, results array<string>, latency_ms string")
    assert problems(spark, asked, frame) == [
        "(data frame): query_id: is missing; found instead: 'qid'",
        "(data frame): results: expected lists of structs with doc_id, found a column of type list<element: string>",
        "(data frame): latency_ms: expected numbers, found a column of type string; cast it",
    ]


def test_misspelled_fields_are_warned_about(spark: SparkSession, asked: Path, tmp_path: Path) -> None:
    rows = [run(query_id, latencyms=3) for query_id in ("q1", "q2", "3")]
    reported = "unknown field 'latencyms' is not read; did you mean 'latency_ms'?"
    lines = write_jsonl(tmp_path / "run.jsonl", rows)
    assert on_spark.score(spark, golden=asked, run=lines).warnings == [f"{lines}: {reported}"]
    frame = spark.read.json(str(lines))
    assert on_spark.score(spark, golden=asked, run=frame).warnings == [f"(data frame): {reported}"]


def test_many_counts_stay_on_the_cluster_and_the_report_is_the_same(spark: SparkSession, tmp_path: Path) -> None:
    golden_path, _ = write_contract(tmp_path)
    plan = plan_of(read_golden([str(golden_path)], BUILT_IN).queries.values(), {"k": 3})
    rows = write_parquet(tmp_path / "logs", once(seed=1))
    little, much = (OnSpark(spark, [rows], few=few).evaluate(plan) for few in (FEW, 0))
    assert replace(little, columns=()) == replace(much, columns=())
    for family in range(1 + len(little.columns)):
        assert little.values(family, plan.golden) == much.values(family, plan.golden)
    assert little.latency
    assert len(little.observed(UnknownQueries).listed) == 5
    assert (little.problems.problems, bool(little.problems.warnings)) == ((), True)


def test_the_command_takes_the_session_that_is_there(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_jsonl(Path("golden.jsonl"), [golden("q1"), golden("q2"), golden("3")])
    path = str(write_jsonl(tmp_path / "current_run.jsonl", [run("q1"), run("q2"), run("3", "x")]))
    ended = rag_contract("check", "--engine", "spark", "--run", f"file://{path}", "--baseline", path)
    assert (ended.code, "Expected doc1 in top 5" in ended.out) == (1, True), ended.err
    written = json.loads(Path("report.json").read_bytes())
    assert written["inputs"]["run"]["files"] == [{"path": f"file://{path}", "sha256": ""}]
    assert "sha256 ``" not in Path("report.md").read_text()
    ended = rag_contract("score", "--engine", "spark", "--run", str(tmp_path / "*_run.jsonl"), "--format", "json")
    assert json.loads(ended.out)["metrics"]["mrr_at_5"] == pytest.approx(2 / 3)
    assert spark.range(1).count() == 1, "the session is not ours to stop"


@pytest.mark.parametrize(
    ("path", "lines"),
    [
        ("a.jsonl", True),
        ("s3://logs/*.JSONL.gz", True),
        ("logs/part-*.ndjson.zst", True),
        ("logs.json/", True),
        ("logs/", False),
        ("logs/*.snappy.parquet", False),
        ("logs/*", False),
        ("logs/*.jsonl.*", True),
    ],
)
def test_json_lines_are_recognised_by_their_names(path: str, *, lines: bool) -> None:
    assert is_json_lines(path) is lines


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"rules": [{"type": "must_say", "phrase": "A"}]}, "must_say"),
        ({"turns": [{"query": "?", "rules": [{"type": "must_say", "phrase": "A"}]}]}, "must_say"),
        ({"reference": "A"}, "reference"),
        ({"expected_mode": "abstain"}, "expected_mode"),
        ({"expected_label": "A"}, "expected_label"),
    ],
)
def test_what_is_about_answers_is_refused_with_the_first_such_row(
    fields: Row, named: str, spark: SparkSession, tmp_path: Path
) -> None:
    path = write_jsonl(tmp_path / "golden.jsonl", [golden("q1"), golden("q2", **fields), golden("q3", **fields)])
    request = pipeline.Inputs(golden=[str(path)], run=OnSpark(spark, [str(write_jsonl(tmp_path / "r.jsonl", [HIT]))]))
    registry = replace(TOYS, metrics=(*BUILT_IN.metrics, Line(home=same, always=True)))
    with pytest.raises(InputError) as refused:
        pipeline.check(request, now=NOW, registry=registry)
    why = "is about the answer, and Spark judges documents and scores only; check this contract without Spark"
    assert refused.value.problems == [f"{path}:2: {named}: {why}"]


def test_a_rule_of_rows_is_asked_about_every_row_once(spark: SparkSession, tmp_path: Path) -> None:
    rule = {"type": "asked", "file": str(tmp_path / "asked.txt")}
    path = write_jsonl(tmp_path / "golden.jsonl", [golden(f"q{at}", "doc1", rules=[rule]) for at in (1, 2)])
    sides = {}
    for name in ("now", "before"):
        rows = [{**HIT, "query_id": f"q{at}", "response": name} for at in (1, 2)]
        sides[name] = OnSpark(spark, [str(write_jsonl(tmp_path / f"{name}.jsonl", rows))])
    request = pipeline.Inputs(golden=[str(path)], run=sides["now"], baseline=sides["before"])
    registry = replace(OF_CLUSTER, metrics=BUILT_IN.metrics)
    report = pipeline.check(request, now=NOW, registry=registry).report
    assert [[violation.rule for violation in query.violations] for query in report.queries] == [["asked"]] * 2
    assert sorted((tmp_path / "asked.txt").read_text().splitlines()) == ["q1 before", "q1 now", "q2 before", "q2 now"]


@pytest.mark.parametrize("config", ["minimums: {context_recall: 0.5}\n", "judge: {metrics: [context_recall]}\n"])
def test_what_a_judge_said_is_refused_with_the_first_such_row_before_judgments_are_asked_for(
    config: str, spark: SparkSession, tmp_path: Path
) -> None:
    path = write_jsonl(tmp_path / "golden.jsonl", [golden("q1"), golden("q2", reference_claims=["A"])])
    (tmp_path / "ragcontract.yml").write_text(config)
    inputs: dict[str, Any] = {"golden": path, "run": write_jsonl(tmp_path / "r.jsonl", [HIT])}
    why = "is what a judge said of texts, and Spark judges documents and scores only; check this contract without Spark"
    with pytest.raises(InputError) as refused:
        on_spark.check(spark, **inputs, config=tmp_path / "ragcontract.yml")
    assert refused.value.problems == [f"{path}:2: reference_claims: context_recall {why}"]


def test_a_score_on_spark_leaves_judged_metrics_out_and_says_so(spark: SparkSession, tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "golden.jsonl", [golden("q1", "doc1", reference_claims=["A"])])
    (tmp_path / "ragcontract.yml").write_text("minimums: {context_recall: 0.5}\n")
    run_path = write_jsonl(tmp_path / "r.jsonl", [run("q1", "doc1")])
    report = on_spark.score(spark, golden=path, run=run_path, config=tmp_path / "ragcontract.yml")
    assert report.metrics["mrr_at_5"].current == 1
    assert any("Context recall (judged) is left out" in warning for warning in report.warnings)
