import sys
from pathlib import Path

import msgspec

from benchmarks import data, tools

REPORT = msgspec.json.encode(
    {"metrics": {"mrr_at_5": {"current": 0.5, "baseline": 0.75}, "recall_at_5": {"current": 1, "baseline": None}}}
)


def logs(*lines: dict[str, float]) -> str:
    return "a warning\n" + "".join(msgspec.json.encode(line).decode() + "\n" for line in lines)


def test_a_peer_that_computes_the_same_is_compared() -> None:
    log = logs({"mrr": 0.5 + 1e-12}, {"mrr": 0.75})
    assert tools.disagreements(["ranx"], lambda _: log, REPORT) == []


def test_a_peer_that_computes_something_else_is_reported() -> None:
    log = logs({"mrr": 0.5, "recall": 1}, {"mrr": 0.5, "recall": 1})
    assert tools.disagreements(["ranx"], lambda _: log, REPORT) == [
        "ranx: mrr of the baseline run is 0.5, ours is 0.75",
        "ranx: recall of the baseline run is 1.0, ours is None",
    ]


def test_the_old_version_is_not_run_on_a_million_queries() -> None:
    assert tools.takes(tools.OLD, data.Shape(queries=100_000))
    assert not tools.takes(tools.OLD, data.Shape(queries=1_000_000))
    assert tools.takes(tools.OURS, data.Shape(queries=1_000_000))
    assert {tool for tool in tools.TOOLS if tools.takes(tool, data.WIDE)} == set(tools.WIDE_TOOLS)


def test_a_baseline_that_is_left_of_an_older_version_is_made_anew(tmp_path: Path) -> None:
    made = data.make(data.Shape(queries=3), tmp_path)
    (made / "rag-contract-baseline.json").write_text("of an older version")
    baseline = tools.stored_baseline(tools.OURS, made, Path(sys.executable).parent, "today")
    assert baseline.name == "rag-contract-baseline.json"
    assert msgspec.json.decode(baseline.read_bytes(), type=dict[str, object])
