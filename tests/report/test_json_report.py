"""report.json, field by field."""

import json
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import given

from ragcontract import __version__
from ragcontract.core.finding import sentence
from ragcontract.core.phrase import Name
from ragcontract.core.phrase import render as say
from ragcontract.report import markdown
from ragcontract.report.build import error_report
from ragcontract.report.json_report import render, render_error, render_score
from ragcontract.report.queries import FindingsByQuery, broken_queries, tolerated_queries
from ragcontract.report.record import Provenance, Report
from ragcontract.schemas import schema_of
from tests.records import NOW, Rows, query, report
from tests.report.generated import reports
from tests.report.page import Page

CONFIG = {"fail_on": {"mrr_drop_gt": 0.1, "recall_drop_gt": "50%"}, "minimums": {"mrr_at_k": 0.9}}


def written(made: Report) -> bytes:
    return b"".join(render(made, made.queries, made.detail))


def judged() -> Report:
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
        questions={"lost": "Lost?", "reworded": "What else?"},
        created_at="2026-06-01T00:00:00+00:00",
        k=[5],
    )
    return report(queries, run, before, CONFIG, warnings=["careful"])


def read(made: Report) -> Any:
    return json.loads(written(made), parse_constant=pytest.fail)


@pytest.fixture(scope="module")
def found() -> Any:
    return read(judged())


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
        "broken",
        "failed_checks",
        "tags",
        "warnings",
        "latency",
        "repeats",
        "findings",
        "scope",
        "likely_mistakes",
        "run_notes",
        "least_overlap",
        "causes",
        "label_notes",
        "source",
        "summary",
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
            "depth": {"most": 4, "typical": 1},
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
            "depth": {"most": 2, "typical": 1},
        },
        "config": {"files": [{"path": "ragcontract.yml", "sha256": "ef" * 32}]},
    }


def test_the_metrics(found: Any) -> None:
    names = ["mrr_at_5", "recall_at_5", "precision_at_5", "hitrate_at_5", "ndcg_at_5", "map_at_5"]
    assert list(found["metrics"]) == [*names, "judged_at_5", "overlap_at_5", "rbo_at_5"]
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
        "k": 5,
        "better": "higher",
        "scale": {"low": 0.0, "high": 1.0},
        # Its best if what nobody has judged were relevant: lost 1, new and reworded 1, silent 0.
        "if_relevant": pytest.approx((2 + 1 + 1 + 0) / 5),
    }
    assert (mrr["noise"]["wins"], mrr["noise"]["ties"], mrr["noise"]["losses"]) == (0, 0, 2)
    assert {key: metric["status"] for key, metric in found["metrics"].items()} == {
        "mrr_at_5": "fail",
        "recall_at_5": "fail",
        "precision_at_5": "none",
        "hitrate_at_5": "none",
        "ndcg_at_5": "none",
        "map_at_5": "none",
        "judged_at_5": "none",
        "overlap_at_5": "none",
        "rbo_at_5": "none",
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
        "p_value": 0.25,
        "alpha": 0.05,
        "bounds": drop["bounds"],
        "certainty": "undecided",
        "waived": None,
        "label": "MRR@5",
        "unit": "points",
        "now": pytest.approx(1 / 6),
        "before": pytest.approx(1.0),
    }
    assert drop["bounds"][0] < drop["observed"] <= drop["bounds"][1]
    assert (minimum["id"], minimum["kind"], minimum["limit"]) == ("minimums.mrr_at_k", "minimum", 0.9)
    assert minimum["observed"] == found["metrics"]["mrr_at_5"]["current"]
    assert (relative["kind"], relative["limit"], relative["status"]) == ("relative_drop", 0.5, "fail")


def test_the_queries_in_the_golden_files_order(found: Any) -> None:
    assert [row["id"] for row in found["queries"]] == ["lost", "leak", "new", "reworded", "silent"]
    lost, leak, new, reworded, silent = found["queries"]
    violations = lost.pop("violations")
    assert lost.pop("retrieved") == [*[{"doc_id": "x"}] * 3, {"doc_id": "A", "contract": "relevant"}]
    assert [one["contract"] for one in lost.pop("baseline_retrieved")] == ["relevant", "relevant"]
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
            "judged_at_5": 0.25,
            "overlap_at_5": pytest.approx(1 / 3),
            "rbo_at_5": lost["metrics"]["rbo_at_5"],
        },
        "baseline_metrics": {
            "mrr_at_5": 1.0,
            "recall_at_5": 1.0,
            "precision_at_5": 0.4,
            "hitrate_at_5": 1.0,
            "ndcg_at_5": 1.0,
            "map_at_5": 1.0,
            "judged_at_5": 1.0,
            "overlap_at_5": None,
            "rbo_at_5": None,
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
        "in_baseline": False,
        "known": False,
    }
    assert [violation["rule"] for violation in violations] == ["must_rank_at_most", "must_include"]
    assert leak["metrics"] == dict.fromkeys(found["metrics"]) | {"overlap_at_5": 0.0, "rbo_at_5": 0.0}
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
    assert messages[5] == "expected no F in the results; found: rank 2 (was not there)"


def test_the_findings_as_text_and_names(found: Any) -> None:
    drop, *_, ranked, included, leak, silent = found["findings"]
    assert drop == {
        "kind": "gate",
        "ids": ["fail_on.mrr_drop_gt"],
        "status": "fail",
        "location": "ragcontract.yml:7",
        "expected": ["allowed drop 0.10"],
        "found": ["MRR@5 fell by 0.83"],
    }
    assert ranked == {
        "kind": "rule",
        "ids": ["must_rank_at_most"],
        "status": "fail",
        "location": "golden.jsonl:lost",
        "query_id": "lost",
        "expected": [{"name": "A"}, " or ", {"name": "B"}, " in top 3"],
        "found": [{"name": "A"}, " rank 4 (was rank 1)", ", ", {"name": "B"}, " missing from top 5 (was rank 2)"],
        "found_now": [{"name": "A"}, " rank 4", ", ", {"name": "B"}, " missing from top 5"],
        "ranks": [4, None],
        "ranks_before": [1, 2],
    }
    assert (included["ids"], included["query_id"]) == (["must_include"], "lost")
    assert (leak["ids"], leak["ranks"], leak["ranks_before"]) == (["forbidden_docs"], [2], [None])
    assert (silent["ids"], silent["query_id"]) == (["must_include"], "silent")


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
        "k": 5,
        "better": "higher",
        "scale": {"low": 0.0, "high": 1.0},
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
        judged(),
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
    jsonschema.Draft202012Validator(schema_of("report")).validate(found)
    numbers = [leaf for leaf in leaves(found) if isinstance(leaf, float)]
    assert all(math.isfinite(number) for number in numbers)
    assert written(made).endswith(b"}\n")


def test_the_schema_refuses_what_is_no_report() -> None:
    found = read(judged())
    schema = jsonschema.Draft202012Validator(schema_of("report"))
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
        "judged_at_5": 0.5,
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


@given(reports())
def test_the_findings_cover_exactly_what_is_broken_and_failed_checks_are_those_that_fail(made: Report) -> None:
    found = msgspec.json.decode(written(made), type=Report)
    assert found == made
    covered = Counter((one.kind, name, one.query_id) for one in found.findings for name in one.ids)
    gates = [("gate", gate.id, None) for gate in found.gates if gate.status != "pass"]
    rules = [("rule", broken.rule, query.id) for query in found.queries for broken in query.violations]
    assert covered == Counter([*gates, *rules])
    failing = [one for one in found.findings if one.status == "fail"]
    assert [(check.kind, check.id, check.query_id, check.message) for check in found.failed_checks] == [
        (one.kind, name, one.query_id, sentence(one)) for one in failing for name in one.ids
    ]
    assert {check.id for check in found.failed_checks if check.kind == "gate"} == {
        gate.id for gate in found.gates if gate.status == "fail"
    }
    assert {(check.query_id, check.id) for check in found.failed_checks if check.kind == "rule"} == {
        (query.id, broken.rule)
        for query in found.queries
        for broken in query.violations
        if query.status == "fail" and broken.waived is None
    }
    assert found.verdict == ("fail" if failing else "pass")


@given(reports())
def test_the_findings_say_the_same_as_the_markdown_comment(made: Report) -> None:
    found = msgspec.json.decode(written(made), type=Report)
    page = Page(markdown.render(found))
    findings = FindingsByQuery(found)
    broken = [item.split("\n")[1:] for item in page.broken]
    failing = [one for query in broken_queries(found) for one in findings.failing(query.id)]
    by_query = [findings.failing(query.id) for query in broken_queries(found)]
    assert [len(lines) for lines in broken] == [len(items) for items in by_query]
    for lines, items in zip(broken, by_query, strict=True):
        for line, one in zip(lines, items, strict=True):
            names = [part.name for part in one.expected if isinstance(part, Name)]
            assert all(name in line for name in names)
    assert len(failing) == sum(one.kind == "rule" and one.status == "fail" for one in found.findings)
    waived_or_warned = [(query, findings.tolerated(query.id)) for query in tolerated_queries(found)]
    tolerated = [row[:2] for table in page.tables if table[0][:2] == ["", "Broken"] for row in table[1:]]
    waived = [[one.ids[0], sentence(one)] for one in found.findings if (one.kind, one.status) == ("gate", "waived")]
    assert tolerated == [
        *waived,
        *(
            [query.query + query.id, "; ".join(f"{say(one.expected)}: {say(one.found)}" for one in items)]
            for query, items in waived_or_warned
        ),
    ]
    assert sum(len(items) for _, items in waived_or_warned) == sum(
        one.kind == "rule" and one.status != "fail" for one in found.findings
    )


def test_why_there_is_no_verdict() -> None:
    source = Provenance(repository="octo/app", pull_request=7)
    made = render_error(error_report(["g\udcff.jsonl:1: id: is missing"], 3, ["odd"], NOW, source))
    assert made.endswith(b"}\n")
    found = json.loads(made)
    assert found == {
        "schema_version": 1,
        "tool": {"name": "rag-contract", "version": __version__},
        "verdict": "error",
        "created_at": "2026-07-01T12:00:00+00:00",
        "problems": [r"g\udcff.jsonl:1: id: is missing"],
        "more_problems": 3,
        "warnings": ["odd"],
        "source": {
            "repository": "octo/app",
            "commit": None,
            "branch": None,
            "pull_request": 7,
            "run_url": None,
            "contract": None,
        },
        "summary": r"could not be judged: g\udcff.jsonl:1: id: is missing (and 3 more problems)",
    }
    schema = jsonschema.Draft202012Validator(schema_of("report"))
    schema.validate(found)
    assert not schema.is_valid(found | {"verdict": "pass"})
    assert not schema.is_valid({key: value for key, value in found.items() if key != "problems"})
