"""Metrics and rules that are not built in come to the same on a cluster as on one machine, whatever they read."""

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from ragcontract.cluster.spark_source import OnSpark, parts_of
from ragcontract.contract.golden_file import read_golden
from ragcontract.core.ids import unpacked
from ragcontract.evaluation.observations import (
    Depths,
    FailedRows,
    Latencies,
    OtherQuestions,
    RepeatedResults,
    ScoreOrder,
    UnknownQueries,
)
from ragcontract.evaluation.plan import Plan
from ragcontract.evaluation.side import Side
from ragcontract.evaluation.source import Local
from ragcontract.files.paths import existing_files
from ragcontract.files.problems import Collector
from ragcontract.registry import BUILT_IN
from ragcontract.runs.readers import open_run
from tests.builders import Row, golden, write_jsonl
from tests.cluster.test_sources import executed
from tests.cluster.toys import REGISTRY, UNASKED
from tests.runs.sides import plan_of

pytestmark = pytest.mark.spark

QUERIES = 40
SAID = ["refunds take 30 days", "no refunds.", "ask again", "30 days."]


def plan_for(folder: Path, **options: Any) -> Plan:
    """Return the plan of golden queries of which some must have something in the answer, and some need none."""
    rows = [golden(f"q{n}", "d1", tags=[UNASKED] if n % 5 == 0 else []) for n in range(QUERIES)]
    for n, row in enumerate(rows):
        if n % 3:
            row["rules"] = [{"type": "must_say", "text": SAID[n % 2][:3]}, {"type": "must_say", "text": "30 days"}][
                : n % 3
            ]
    found = read_golden([str(write_jsonl(folder / "golden.jsonl", rows))], REGISTRY)
    assert not found.problems
    return plan_of(found.queries.values(), {"missing_queries": "zero"}, REGISTRY, **options)


def run_rows(query_ids: list[str], *, seed: int = 1) -> list[Row]:
    chance = random.Random(seed)
    return [
        {
            "query_id": query_id,
            "results": [
                {"doc_id": f"d{n}", "score": 1.0, "text": chance.choice([*SAID, None])}
                for n in range(chance.randrange(4))
            ],
            "response": " and ".join(chance.choices(SAID, k=2)),
            "mode": chance.choice(["chat", "search", None]),
            "latency_ms": chance.choice([None, 5.0, 7.0]),
            "error": chance.choice([None, None, "503"]),
        }
        for query_id in query_ids
    ]


ONCE = [f"q{n}" for n in range(QUERIES) if n % 7] + ["x1", "x2"]
SEVERAL = [f"q{n % (QUERIES - 1)}" for n in range(300)] + ["x1"]


def written(folder: Path, rows: list[Row], form: str) -> str:
    """Write rows as three files; returns their pattern."""
    folder.mkdir()
    for part in range(3):
        if form == "jsonl":
            write_jsonl(folder / f"{part}.jsonl", rows[part::3])
        else:
            pq.write_table(pa.Table.from_pylist(rows[part::3]), folder / f"{part}.parquet")
    return f"{folder}/*.{form}"


def sides(spark: SparkSession, pattern: str, plan: Plan) -> tuple[Side, Side]:
    files, problems = existing_files([pattern])
    assert problems == []
    return OnSpark(spark, [pattern]).evaluate(plan), Local(open_run(files)).evaluate(plan)


def comparable(side: Side, plan: Plan) -> dict[str, Any]:
    """Return what does not depend on the order of rows, or on whether they have lines."""
    return {
        "scores": {query_id: side.scores[query_id] for query_id in plan.golden},
        "values": [side.values(number + 1, plan.golden) for number in range(len(plan.families))],
        "violations": {query_id: frozenset(found) for query_id, found in side.violations.items()},
        "missing": side.rows.missing,
        "unknown": sorted(side.observed(UnknownQueries).listed),
        "latency": side.latency,
        "unmeasured": side.observed(Latencies).unmeasured,
        "failed": sorted(side.observed(FailedRows)),
        "depth": side.observed(Depths),
        "distances": side.observed(ScoreOrder).distances,
        "duplicates": (
            side.observed(RepeatedResults).results,
            side.observed(RepeatedResults).repeated,
            side.observed(RepeatedResults).short,
        ),
    }


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_a_row_a_query(form: str, spark: SparkSession, tmp_path: Path) -> None:
    plan = plan_for(tmp_path)
    cluster, machine = sides(spark, written(tmp_path / "run", run_rows(ONCE), form), plan)
    assert comparable(cluster, plan) == comparable(machine, plan)
    assert not cluster.problems
    assert len(plan.families) == 2
    assert {len(values or ()) for values in machine.values(1, plan.golden)} == {0, 2}
    assert {len(found) for found in machine.violations.values()} == {1, 2}
    assert len(machine.rows.missing) > 3
    assert cluster.listed.retrieved == machine.listed.retrieved
    assert {len(found) for found in cluster.listed.retrieved.values()} == {0, 1, 2, 3}


def test_the_results_of_listed_queries_come_from_the_cluster_too(spark: SparkSession, tmp_path: Path) -> None:
    plan = plan_for(tmp_path).for_baseline(ONCE[3:5])
    pattern = written(tmp_path / "run", run_rows(ONCE), "jsonl")
    cluster, machine = OnSpark(spark, [pattern]).listed(plan), Local(open_run([pattern])).listed(plan)
    assert cluster.retrieved == machine.retrieved
    assert list(cluster.retrieved) == ONCE[3:5]


@pytest.mark.parametrize(("rows", "repeats"), [(ONCE, False), (SEVERAL, True)])
def test_the_first_ids_of_a_baseline_come_from_the_cluster_too(
    rows: list[str], repeats: bool, spark: SparkSession, tmp_path: Path
) -> None:
    plan = plan_for(tmp_path, repeats=repeats).for_baseline()
    cluster, machine = sides(spark, written(tmp_path / "run", run_rows(rows), "jsonl"), plan)

    def lists(side: Side) -> dict[str, list[list[str]]]:
        return {query_id: sorted(unpacked(found)) for query_id, found in side.ids.first_ids.items()}

    assert lists(cluster) == lists(machine)
    assert len(lists(cluster)) > 30
    assert cluster.ids.pools is cluster.ids.first_ids


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_several_rows_a_query(form: str, spark: SparkSession, tmp_path: Path) -> None:
    plan = plan_for(tmp_path, repeats=True)
    cluster, machine = sides(spark, written(tmp_path / "run", run_rows(SEVERAL), form), plan)
    ours, theirs = comparable(cluster, plan), comparable(machine, plan)
    for family in range(len(plan.families)):
        for one, other in zip(ours["values"][family], theirs["values"][family], strict=True):
            assert one == pytest.approx(other, abs=1e-9)
    for query_id in plan.golden:
        assert ours["scores"][query_id].ranks == theirs["scores"][query_id].ranks
        assert ours["scores"][query_id].values == pytest.approx(theirs["scores"][query_id].values, abs=1e-9)
    same = ours.keys() - {"values", "scores"}
    assert {name: ours[name] for name in same} == {name: theirs[name] for name in same}
    assert set(cluster.rows.of_queries.values()) > {7}
    assert cluster.listed.retrieved.keys() == machine.listed.retrieved.keys()
    assert (
        OnSpark(spark, [f"{tmp_path}/run/*.{form}"], few=0).evaluate(plan).listed.retrieved == cluster.listed.retrieved
    )


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_distances_are_recognized_by_both(form: str, spark: SparkSession, tmp_path: Path) -> None:
    plan = plan_for(tmp_path)
    rows = run_rows(ONCE)
    for row in rows:
        row["results"] = [{"doc_id": f"d{n}", "score": n / 10, "text": "x"} for n in range(4)]
    cluster, machine = sides(spark, written(tmp_path / "run", rows, form), plan)
    assert (cluster.observed(ScoreOrder).distances, machine.observed(ScoreOrder).distances) == (True, True)
    assert (cluster.problems.warnings, machine.problems.warnings) == ((), ())


def test_a_row_that_lacks_what_a_metric_needs_is_a_problem_of_both(spark: SparkSession, tmp_path: Path) -> None:
    plan = plan_for(tmp_path)
    rows = run_rows(ONCE)
    rows[0]["response"] = None
    rows[1]["response"] = "x" * 1_001
    cluster, machine = sides(spark, written(tmp_path / "run", rows, "jsonl"), plan)
    ids = [row["query_id"] for row in rows[:2]]
    why = ["has no response", "length is 1001, outside of its scale from 0 to 1000"]
    assert sorted(machine.problems.problems) == [
        f'{tmp_path}/run/{n}.jsonl:1: query "{query_id}" {reason}'
        for n, (query_id, reason) in enumerate(zip(ids, why, strict=True))
    ]
    assert sorted(cluster.problems.problems) == [
        f'{tmp_path}/run/{n}.jsonl: query "{query_id}" {reason}'
        for n, (query_id, reason) in enumerate(zip(ids, why, strict=True))
    ]


def test_what_nothing_needs_is_not_read_from_columns(spark: SparkSession, tmp_path: Path) -> None:
    """What a baseline breaks is compared, so it needs what the rules read, too."""
    plan = plan_for(tmp_path)
    pattern = written(tmp_path / "run", run_rows(ONCE), "parquet")
    for of in (plan, plan.for_baseline()):
        assert of.needs - of.ranking.needs == {"response", "results.text", "mode"}
        (part,) = parts_of(spark, [pattern], of, Collector())
        assert set(part.rows.columns) == {"query_id", "results", "latency_ms", "error", "response", "mode", "file"}
        assert "results:array<struct<doc_id:string,score:double,text:string>>" in executed(part.rows)
    side = OnSpark(spark, [pattern]).evaluate(plan.for_baseline())
    assert set(side.violations) <= set(side.scores)
    assert not set(side.scores) & set(side.rows.missing)


@pytest.mark.parametrize("as_baseline", [False, True])
def test_conversations_with_other_questions(as_baseline: bool, spark: SparkSession, tmp_path: Path) -> None:
    turns = [{"query": "How long?", "rules": [{"type": "must_contain", "value": "30"}]}]
    asked = [golden(f"q{n}", "d1", turns=turns) for n in range(6)]
    queries = read_golden([str(write_jsonl(tmp_path / "golden.jsonl", asked))], BUILT_IN).queries
    plan = plan_of(queries.values(), {"missing_queries": "zero"})
    rows: list[Row] = [
        {
            "query_id": f"q{n}",
            "results": [{"doc_id": "d1"}],
            "messages": [
                {"role": "user", "content": "How much?" if n % 3 else "How long?"},
                {"role": "assistant", "content": "20"},
            ],
        }
        for n in range(6)
    ]
    pattern = written(tmp_path / "run", rows, "jsonl")
    cluster, machine = sides(spark, pattern, plan.for_baseline() if as_baseline else plan)
    assert (
        sorted(cluster.observed(OtherQuestions)) == sorted(machine.observed(OtherQuestions)) == ["q1", "q2", "q4", "q5"]
    )
    assert (
        sorted(cluster.rows.changed)
        == sorted(machine.rows.changed)
        == (["q1", "q2", "q4", "q5"] if as_baseline else [])
    )
    assert cluster.scores.keys() == machine.scores.keys() == ({"q0", "q3"} if as_baseline else queries.keys())
    assert cluster.rows.missing == machine.rows.missing == ()
