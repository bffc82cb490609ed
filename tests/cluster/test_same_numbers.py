"""A cluster says what one machine says: every number of the report, to 1e-9."""

import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql import SparkSession

import ragcontract
from ragcontract import spark as on_spark
from ragcontract.report.record import Report
from tests.builders import write_jsonl
from tests.cluster.data import numbers, once, skewed, write_contract, write_parquet

pytestmark = pytest.mark.spark


def assert_same(cluster: Report, machine: Report) -> None:
    ours, theirs = numbers(msgspec.to_builtins(cluster)), numbers(msgspec.to_builtins(machine))
    assert ours.keys() == theirs.keys()
    differ = {
        path: (value, theirs[path])
        for path, value in ours.items()
        if value != (pytest.approx(theirs[path], abs=1e-9, rel=0) if isinstance(value, float) else theirs[path])
    }
    assert not differ


def said(report: Report) -> list[str]:
    """Return the warnings without locations (one machine alone names rows) and the ids that come first."""
    return [re.sub(r"'[qx]\d.*' and", "… and", warning.partition(": ")[2]) for warning in report.warnings]


@pytest.mark.parametrize("rank_by", ["results", "documents"])
def test_a_row_a_query(rank_by: str, spark: SparkSession, tmp_path: Path) -> None:
    asked, config = write_contract(tmp_path, rank_by=rank_by)
    inputs: dict[str, Any] = {
        "golden": asked,
        "run": write_parquet(tmp_path / "now", once(seed=1)),
        "baseline": str(write_jsonl(tmp_path / "before.jsonl", once(seed=2))),
        "config": config,
    }
    machine, cluster = ragcontract.check(**inputs), on_spark.check(spark, **inputs)
    assert machine.verdict == "fail"
    assert machine.inputs.run.duplicate_rate > 0
    assert_same(cluster, machine)
    assert said(cluster) == said(machine)
    assert (cluster.inputs.run.files[0].path, cluster.inputs.run.files[0].sha256) == (inputs["run"], "")


def test_the_queries_with_a_tag(spark: SparkSession, tmp_path: Path) -> None:
    asked, config = write_contract(tmp_path)
    inputs: dict[str, Any] = {
        "golden": asked,
        "run": write_parquet(tmp_path / "now", once(seed=1)),
        "baseline": str(write_jsonl(tmp_path / "before.jsonl", once(seed=2))),
        "config": config,
        "tags": "even",
    }
    machine, cluster = ragcontract.check(**inputs), on_spark.check(spark, **inputs)
    assert [gate.id for gate in cluster.gates] == ["tags.even.minimums.ndcg_at_3"]
    assert_same(cluster, machine)
    assert said(cluster) == said(machine)


def test_many_rows_a_query_half_of_them_of_one(spark: SparkSession, tmp_path: Path) -> None:
    asked, config = write_contract(tmp_path)
    inputs: dict[str, Any] = {
        "golden": asked,
        "run": write_parquet(tmp_path / "now", skewed(2_400, seed=3)),
        "baseline": write_parquet(tmp_path / "before", skewed(600, seed=4)),
        "config": config,
        "repeats": True,
    }
    machine, cluster = ragcontract.check(**inputs), on_spark.check(spark, **inputs)
    assert_same(cluster, machine)
    assert machine.repeats
    assert cluster.repeats
    assert (cluster.repeats.fewest, cluster.repeats.most) == (machine.repeats.fewest, machine.repeats.most)
    assert cluster.repeats.most > 1_200
    assert (bool(machine.repeats.metrics), cluster.repeats.metrics) == (True, {})


def test_an_executor_that_dies_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    asked, config = write_contract(tmp_path)
    run = write_parquet(tmp_path / "now", once(seed=1))
    rows = spark.read.parquet(run)
    waiting = rows.mapInArrow(waits_in(tmp_path), rows.schema)
    reports: list[Report] = []
    job = threading.Thread(
        target=lambda: reports.append(on_spark.check(spark, golden=asked, run=waiting, config=without_baseline(config)))
    )
    job.start()
    until(lambda: any(location.read_text() for location in tmp_path.glob("at-work-*")))
    at_work = next(location for location in tmp_path.glob("at-work-*") if location.read_text())
    os.kill(int(at_work.read_text()), signal.SIGKILL)
    (tmp_path / "go").touch()
    job.join()
    assert_same(reports[0], ragcontract.check(golden=asked, run=run, config=without_baseline(config)))
    assert Path(f"{at_work}-again").exists(), "what the dead one had in hand is done again"


def without_baseline(config: Path) -> Path:
    path = config.with_name("alone.yml")
    path.write_text(config.read_text().replace("fail_on: {mrr_drop_gt: 0.05}", ""))
    return path


def waits_in(folder: Path) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what a worker does to rows: it says which executor is at work, waits until it may go on, and leaves them.

    A partition that is done again is said to be.
    """
    location = str(folder)

    def wait(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        assert task
        for batch in batches:
            at_work = Path(location, f"at-work-{task.partitionId()}")
            if at_work.exists():
                at_work.with_name(f"{at_work.name}-again").touch()
            else:
                daemon = Path(f"/proc/{os.getppid()}/stat").read_text()  # the workers', which the executor has started
                at_work.write_text(daemon.rpartition(")")[2].split()[1])
            while not Path(location, "go").exists():
                time.sleep(0.01)
            yield batch

    return wait


def until(true: Callable[[], bool]) -> None:
    while not true():
        time.sleep(0.01)


def executors(spark: SparkSession) -> list[int]:
    """Return the process ids of the executors of a Spark application."""
    app = spark.sparkContext.applicationId.encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if b"CoarseGrainedExecutorBackend" in command and app in command:
            found.append(int(process.name))
    return sorted(found)


def test_there_are_two_executors(spark: SparkSession) -> None:
    until(lambda: len(executors(spark)) == 2)
