"""report.json: the design's section 6, field by field."""

import json
import math
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from ragcontract import __version__
from ragcontract.reports.build import Checked
from ragcontract.reports.json_report import render, render_score
from ragcontract.reports.report import Report
from ragcontract.schemas import SCHEMAS
from tests.records import Rows, query, report

CONFIG = {"fail_on": {"mrr_drop_gt": 0.1, "recall_drop_gt": "50%"}, "minimums": {"mrr_at_k": 0.9}}


def written(made: Report) -> bytes:
    return b"".join(render(Checked.of(made)))


def checked() -> Report:
    queries = [
        query("lost", "A", "B", must_rank_at_most=3, tags=("policy", "eu"), weight=2.0, query="Lost?"),
        query("leak", forbidden_doc_ids=("F",)),
        query("new", "A", tags=("eu",)),
        query("reworded", "A"),
        query("silent", "A"),
    ]
    run = Rows(
        docs={
            "silent": [],
            "reworded": ["A"],
            "new": ["A"],
            "leak": ["x", "F"],
            "lost": ["x", "x", "x", "A"],
            "odd": [],
        },
        name="run.jsonl",
        versions={"embedding_model": ["e5@2"]},
    )
    before = Rows(
        docs={"lost": ["A", "B"], "leak": [], "reworded": ["A"], "silent": ["A"], "gone": ["A"]},
        name="baseline.json",
        versions={"embedding_model": ["e5@1"]},
        questions={"reworded": "What else?"},
    )
    before.created_at, before.k = "2026-06-01T00:00:00+00:00", [5]
    return report(queries, run, before, CONFIG, warnings=["careful"])


def read(made: Report) -> Any:
    return json.loads(written(made), parse_constant=pytest.fail)


@pytest.fixture(scope="module")
def found() -> Any:
    return read(checked())


def test_the_head(found: Any) -> None:
    assert list(found) == [
        "schema_version",
        "tool",
        "verdict",
        "k",
        "created_at",
        "inputs",
        "metrics",
        "gates",
        "detail",
        "queries",
        "failed_checks",
        "tags",
        "warnings",
        "latency",
        "repeats",
    ]
    assert found["schema_version"] == 1
    assert found["tool"] == {"name": "rag-contract", "version": __version__}
    assert (found["verdict"], found["k"], found["created_at"]) == ("fail", [5], "2026-07-01T12:00:00+00:00")
    assert found["warnings"] == ["careful"]


def test_the_inputs(found: Any) -> None:
    assert found["inputs"] == {
        "golden": {"files": [{"path": "golden.jsonl", "sha256": "cd" * 32}], "queries": 5, "answerable": 4},
        "run": {
            "files": [{"path": "run.jsonl", "sha256": "ab" * 32}],
            "queries": 6,
            "versions": {"embedding_model": ["e5@2"]},
            "missing": [],
            "unknown": ["odd"],
            "duplicate_rate": 2 / 8,
        },
        "baseline": {
            "files": [{"path": "baseline.json", "sha256": "ab" * 32}],
            "queries": 5,
            "versions": {"embedding_model": ["e5@1"]},
            "created_at": "2026-06-01T00:00:00+00:00",
            "k": [5],
            "shared": 3,
            "new": ["new"],
            "changed": ["reworded"],
            "gone": ["gone"],
            "age_days": 30,
            "too_old": False,
        },
        "config": {"files": [{"path": "ragcontract.yml", "sha256": "ef" * 32}]},
    }


def test_the_metrics(found: Any) -> None:
    names = ["mrr_at_5", "recall_at_5", "precision_at_5", "hitrate_at_5", "ndcg_at_5", "map_at_5"]
    assert list(found["metrics"]) == names
    # lost 1/4 (weight 2), new 1, reworded 1, silent 0; shared: lost and silent, which both were 1.
    mrr = found["metrics"]["mrr_at_5"]
    assert mrr == {
        "label": "MRR@5",
        "current": pytest.approx((2 / 4 + 1 + 1 + 0) / 5),
        "current_shared": pytest.approx((2 / 4 + 0) / 3),
        "baseline": pytest.approx(1.0),
        "delta": pytest.approx(1 / 6 - 1),
        "status": "fail",
        "noise": mrr["noise"],
    }
    assert (mrr["noise"]["wins"], mrr["noise"]["ties"], mrr["noise"]["losses"]) == (0, 0, 2)
    assert {key: metric["status"] for key, metric in found["metrics"].items()} == {
        "mrr_at_5": "fail",
        "recall_at_5": "fail",
        "precision_at_5": "none",
        "hitrate_at_5": "none",
        "ndcg_at_5": "none",
        "map_at_5": "none",
    }


def test_the_gates(found: Any) -> None:
    drop, minimum, relative = found["gates"]
    assert drop == {
        "id": "fail_on.mrr_drop_gt",
        "location": "ragcontract.yml:7",
        "metric": "mrr_at_5",
        "kind": "drop",
        "limit": 0.1,
        "observed": pytest.approx(5 / 6),
        "status": "fail",
        "message": "MRR@5 fell by 0.83, allowed drop 0.10",
        "tag": None,
        "p_value": None,
        "waived": None,
    }
    assert (minimum["id"], minimum["kind"], minimum["limit"]) == ("minimums.mrr_at_k", "minimum", 0.9)
    assert minimum["observed"] == found["metrics"]["mrr_at_5"]["current"]
    assert (relative["kind"], relative["limit"], relative["status"]) == ("relative_drop", 0.5, "fail")


def test_the_queries_in_the_golden_files_order(found: Any) -> None:
    assert [row["id"] for row in found["queries"]] == ["lost", "leak", "new", "reworded", "silent"]
    lost, leak, new, reworded, silent = found["queries"]
    violations = lost.pop("violations")
    assert lost == {
        "id": "lost",
        "location": "golden.jsonl:lost",
        "query": "Lost?",
        "tags": ["policy", "eu"],
        "weight": 2.0,
        "status": "fail",
        # A at rank 4: 1 / log2(5) of the 1 + 1 / log2(3) that both at the top would have.
        "metrics": {
            "mrr_at_5": 0.25,
            "recall_at_5": 0.5,
            "precision_at_5": 0.2,
            "hitrate_at_5": 1.0,
            "ndcg_at_5": pytest.approx(1 / math.log2(5) / (1 + 1 / math.log2(3))),
            "map_at_5": 0.125,
        },
        "baseline_metrics": {
            "mrr_at_5": 1.0,
            "recall_at_5": 1.0,
            "precision_at_5": 0.4,
            "hitrate_at_5": 1.0,
            "ndcg_at_5": 1.0,
            "map_at_5": 1.0,
        },
        "ranks": {"A": 4, "B": None},
        "baseline_ranks": {"A": 1, "B": 2},
        "forbidden_ranks": {},
        "baseline_forbidden_ranks": {},
    }
    assert violations[0] == {
        "rule": "must_rank_at_most",
        "message": "expected A or B in top 3; found: A rank 4, B missing from top 3",
        "expected": "A or B in top 3",
        "found": "A rank 4, B missing from top 3",
        "doc_ids": ["A", "B"],
        "limit": 3,
        "waived": None,
    }
    assert [violation["rule"] for violation in violations] == ["must_rank_at_most", "must_include"]
    assert leak["metrics"] == dict.fromkeys(found["metrics"])
    assert (leak["ranks"], leak["forbidden_ranks"], leak["baseline_forbidden_ranks"]) == ({}, {"F": 2}, {})
    for row in (new, reworded):
        assert (row["baseline_metrics"], row["baseline_ranks"], row["baseline_forbidden_ranks"]) == (None, None, None)
        assert (row["status"], row["violations"]) == ("pass", [])
    assert silent["ranks"] == {"A": None}


def test_every_failed_check_flat_and_gates_first(found: Any) -> None:
    assert [(check["kind"], check["id"], check["query_id"]) for check in found["failed_checks"]] == [
        ("gate", "fail_on.mrr_drop_gt", None),
        ("gate", "minimums.mrr_at_k", None),
        ("gate", "fail_on.recall_drop_gt", None),
        ("rule", "must_rank_at_most", "lost"),
        ("rule", "must_include", "lost"),
        ("rule", "forbidden_docs", "leak"),
        ("rule", "must_include", "silent"),
    ]
    messages = [check["message"] for check in found["failed_checks"]]
    assert messages[0] == found["gates"][0]["message"]
    assert messages[5] == "expected no F in the results; found: rank 2"


def test_the_tags(found: Any) -> None:
    eu = found["tags"]["eu"]
    assert list(found["tags"]) == ["eu", "policy"]
    assert eu["queries"] == 2
    assert eu["metrics"]["mrr_at_5"] == pytest.approx((2 / 4 + 1) / 3)
    assert (eu["metrics_shared"]["mrr_at_5"], eu["baseline_metrics"]["mrr_at_5"]) == (0.25, 1.0)


def test_a_passing_check_without_baseline_and_config() -> None:
    made = report([query("q", "A", tags=("t",))], {"q": ["A"]})
    found = read(made)
    assert (found["verdict"], found["gates"], found["failed_checks"]) == ("pass", [], [])
    assert found["inputs"]["baseline"] is found["inputs"]["config"] is None
    assert found["metrics"]["mrr_at_5"] == {
        "label": "MRR@5",
        "current": 1.0,
        "current_shared": None,
        "baseline": None,
        "delta": None,
        "status": "none",
        "noise": None,
    }
    assert found["tags"]["t"]["metrics_shared"] is found["tags"]["t"]["baseline_metrics"] is None


def test_a_status_is_pass_where_every_gate_is() -> None:
    made = report([query("q", "A")], {"q": ["A"]}, config={"minimums": {"recall_at_k": 0.5}})
    assert read(made)["metrics"]["recall_at_5"]["status"] == "pass"


def test_queries_that_are_missing_from_the_run_are_named() -> None:
    inputs = read(report([query("q1", "A"), query("q2", "A")], {"q1": ["A"]}))["inputs"]
    assert (inputs["run"]["missing"], inputs["run"]["queries"]) == (["q2"], 1)


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for child in value.values():
            yield from leaves(child)
    elif isinstance(value, list):
        for child in value:
            yield from leaves(child)
    else:
        yield value


@pytest.mark.parametrize(
    "made",
    [
        checked(),
        report([query("q", "A")], {"q": ["A"]}),
        report([query("q")], {"q": []}),
        report([query("q"), query("new", "A")], {"q": [], "new": ["A"]}, {"q": []}),
        report([query("q", "A", weight=5e-324), query("r", "A", weight=1.7e308)], {"q": ["A"], "r": []}),
        report(
            [query("q", "A", query="👩‍👩‍👧 \x00 </script>")], {"q": ["x"]}, path="g\udcff.jsonl", warnings=["g\udcff"]
        ),
    ],
    ids=["everything", "plain", "unanswerable", "nothing shared", "extreme weights", "odd text"],
)
def test_every_report_fits_its_schema_and_has_real_numbers(made: Report) -> None:
    found = read(made)
    jsonschema.Draft202012Validator(SCHEMAS["report"]()).validate(found)
    numbers = [leaf for leaf in leaves(found) if isinstance(leaf, float)]
    assert all(math.isfinite(number) for number in numbers)
    assert written(made).endswith(b"}\n")


def test_the_schema_refuses_what_is_no_report() -> None:
    found = read(checked())
    schema = jsonschema.Draft202012Validator(SCHEMAS["report"]())
    assert schema.is_valid(found)
    assert not schema.is_valid({**found, "verdict": "maybe"})
    assert not schema.is_valid({**found, "schema_version": 2})
    assert not schema.is_valid({key: value for key, value in found.items() if key != "metrics"})


def test_a_file_name_that_is_not_utf_8_is_written_out() -> None:
    made = report([query("q", "A")], {"q": ["A"]}, path="g\udcff.jsonl", warnings=["g\udcff.jsonl: odd"])
    found = read(made)
    assert found["inputs"]["golden"]["files"][0]["path"] == r"g\udcff.jsonl"
    assert found["warnings"] == [r"g\udcff.jsonl: odd"]


def test_the_scores_of_one_run() -> None:
    made = report([query("q1", "A", tags=("t",)), query("q2")], {"q1": ["x", "A"], "q2": []}, warnings=["w"])
    metrics = {
        "mrr_at_5": 0.5,
        "recall_at_5": 1.0,
        "precision_at_5": 0.2,
        "hitrate_at_5": 1.0,
        "ndcg_at_5": pytest.approx(1 / math.log2(3)),
        "map_at_5": 0.5,
    }
    assert json.loads(render_score(made)) == {
        "k": [5],
        "queries": 2,
        "answerable": 1,
        "metrics": metrics,
        "tags": {"t": {"queries": 1, "metrics": metrics}},
        "latency": None,
        "repeats": None,
        "warnings": ["w"],
    }
    assert render_score(made).endswith("}\n")
