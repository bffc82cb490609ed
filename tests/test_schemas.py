"""The printed schemas: valid, and of one mind with the readers about what is accepted."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from ragcontract.contract.config import config_record
from ragcontract.contract.golden_row import typed_record
from ragcontract.contract.limits import limit_keys
from ragcontract.core.run import row_type
from ragcontract.files.schema import mismatches
from ragcontract.registry import BUILT_IN
from ragcontract.runs.baseline_file import BaselineFile
from tests.builders import baseline, golden, good_workspace, run, write_jsonl
from tests.github.standin import GitHub
from tests.judgment_files import FALSE, TRUE, write_good_calibration, write_judgments_on
from tests.process import rag_contract
from tests.runner import InProcess

ROOT = Path(__file__).parent.parent
CASES = ROOT / "tests" / "cases"
NAMES = (
    "golden", "run", "scores", "judgments", "calibration", "labels", "baseline", "config", "record", "report", "diff",
    "comparison",
)  # fmt: skip


def schema(name: str) -> Any:
    """Return a schema as the command prints it."""
    ended = rag_contract("schema", name)
    assert (ended.code, ended.err) == (0, "")
    return json.loads(ended.out)


def accepts(name: str, value: object) -> bool:
    """Say whether a value is valid under a printed schema."""
    return bool(jsonschema.Draft202012Validator(schema(name)).is_valid(value))


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_valid_itself(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schema(name))
    assert schema(name)["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def rows_of(pattern: str) -> list[Any]:
    """Return the rows of all files that match, in the cases that were judged and the example."""
    judged = [case for case in CASES.iterdir() if (case / "expected" / "report.json").exists()]
    files = [path for folder in (*judged, ROOT / "examples") for path in folder.glob(pattern)]
    rows = [json.loads(line) for path in files for line in path.read_text(encoding="utf-8").splitlines()]
    assert rows
    return rows


def test_every_golden_row_and_run_row_that_is_read_is_accepted() -> None:
    assert all(accepts("golden", row) for row in rows_of("golden.jsonl"))
    assert all(accepts("run", row) for row in [*rows_of("current_run.jsonl"), *rows_of("baseline.jsonl")])


def test_every_configuration_that_is_read_is_accepted() -> None:
    judged = [case for case in CASES.iterdir() if (case / "expected" / "report.json").exists()]
    files = [path for folder in (*judged, ROOT / "examples") for path in folder.glob("ragcontract.yml")]
    assert len(files) > 3
    assert all(accepts("config", yaml.safe_load(path.read_text())) for path in files)


def test_every_report_and_baseline_that_is_written_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reports = list(CASES.glob("*/expected/report.json"))
    assert len(reports) > 10
    validator = jsonschema.Draft202012Validator(schema("report"))
    for path in reports:
        validator.validate(json.loads(path.read_bytes()))
    assert accepts("baseline", json.loads((ROOT / "examples" / "baseline.json").read_bytes()))
    monkeypatch.chdir(good_workspace(tmp_path))
    assert rag_contract("baseline", "--force").code == 0
    assert accepts("baseline", json.loads(Path("baseline.json").read_bytes()))


def test_what_a_judge_said_and_what_people_say_is_accepted(tmp_path: Path) -> None:
    write_judgments_on(tmp_path, [TRUE, FALSE])
    rows = [json.loads(line) for line in (tmp_path / "judgments.jsonl").read_text().splitlines()]
    assert all(accepts("judgments", row) for row in rows)
    assert not any(accepts("judgments", {**row, "verdict": "maybe"}) for row in rows)
    write_good_calibration(tmp_path)
    calibration = json.loads((tmp_path / "judge-calibration.json").read_bytes())
    assert accepts("calibration", calibration)
    assert not accepts("calibration", {**calibration, "calibrations": []})
    label = {"task": "attribution", "question": "?", "text": "It is free.", "label": True, "contexts": ["Free."]}
    assert accepts("labels", label)
    assert not accepts("labels", {**label, "label": "yes"})


RECORDS: dict[str, tuple[type, dict[str, Any]]] = {
    "golden": (typed_record(BUILT_IN), golden()),
    "run": (row_type(), run()),
    "baseline": (BaselineFile, baseline()),
    "config": (config_record(BUILT_IN, limit_keys(BUILT_IN, [5])), {}),
}
REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("golden", {"id": None}),
    ("golden", {"id": ""}),
    ("golden", {"query": ""}),
    ("golden", {"relevant_doc_ids": "doc1"}),
    ("golden", {"relevant_doc_ids": [[]]}),
    ("golden", {"must_rank_at_most": 0}),
    ("golden", {"must_rank_at_most": 10**9 + 1}),
    ("golden", {"weight": 0}),
    ("golden", {"weight": 2e9}),
    ("golden", {"relevance": {"doc1": -1}}),
    ("golden", {"relevance": {"": 1}}),
    ("golden", {"tags": [""]}),
    ("run", {"query_id": None}),
    ("run", {"results": None}),
    ("run", {"results": [{}]}),
    ("run", {"results": [{"doc_id": "a", "score": "1"}]}),
    ("run", {"latency_ms": -1}),
    ("baseline", {"k": [0]}),
    ("baseline", {"queries": [{}]}),
    ("baseline", {"created_at": None}),
    ("config", {"kk": 5}),
    ("config", {"k": 0}),
    ("config", {"fail_on": {"mrr_drop_gt": 2}}),
    ("config", {"fail_on": {"mrr_drop_gt": "101%"}}),
    ("config", {"fail_on": {"mrr_drop_gt": "10%\n"}}),
    ("config", {"minimums": {"mrr_at_k": "10%"}}),
    ("config", {"rank_by": "chunks"}),
]


@pytest.mark.parametrize(
    ("name", "fields"), REFUSED, ids=lambda part: json.dumps(part) if isinstance(part, dict) else part
)
def test_what_the_reader_refuses_the_schema_refuses(name: str, fields: dict[str, Any]) -> None:
    record, good = RECORDS[name]
    assert accepts(name, good)
    assert not mismatches(good, record)
    assert not accepts(name, good | fields)
    assert mismatches(good | fields, record)


def test_the_schema_of_golden_rows_wants_documents_or_grades() -> None:
    row = {"id": "q", "query": "?"}
    assert not accepts("golden", row)
    assert not accepts("golden", row | {"relevant_doc_ids": None})
    assert accepts("golden", row | {"relevant_doc_ids": []})
    assert accepts("golden", row | {"relevance": {"a": 1}})


def test_null_means_absent_in_optional_fields() -> None:
    optional = ["must_rank_at_most", "must_include_any", "forbidden_doc_ids", "weight", "tags", "metadata", "relevance"]
    assert accepts("golden", golden() | dict.fromkeys(optional))
    assert accepts("run", run() | {"latency_ms": None, "embedding_model": None})


def test_a_section_of_the_configuration_may_be_null_and_a_key_may_not() -> None:
    assert accepts("config", {"fail_on": None, "minimums": None, "tags": None, "waivers": None})
    for key in ("k", "max_baseline_age", "rank_by"):
        assert not accepts("config", {key: None})
    for section, key in (("minimums", "mrr_at_k"), ("minimums", "faithfulness"), ("per_query", "forbidden_within")):
        assert not accepts("config", {section: {key: None}})


def test_fields_that_are_not_known_are_accepted_in_rows() -> None:
    assert accepts("golden", golden(owner="me"))
    assert accepts("run", run(cost=0.1))


def test_the_schema_of_reports_is_of_a_judged_one_or_of_an_error() -> None:
    printed = schema("report")
    judged, error = (printed["$defs"][one["$ref"].rpartition("/")[2]] for one in printed["anyOf"])
    assert (judged["title"], error["title"]) == ("Report", "ErrorReport")
    assert judged["properties"]["verdict"]["enum"] == ["fail", "pass"]
    assert error["properties"]["verdict"] == {"enum": ["error"], "default": "error"}
    assert {"findings", "source"} <= judged["properties"].keys()


def test_the_schema_of_reports_lists_the_rules() -> None:
    rules = schema("report")["$defs"]["ViolationReport"]["properties"]["rule"]["enum"]
    assert rules == sorted({name for line in BUILT_IN.rules for name in line.names})
    assert {"forbidden_docs", "must_include", "must_include_any", "must_rank_at_most", "must_contain"} <= set(rules)


def test_the_report_of_an_action_that_cannot_judge_is_accepted(tmp_path: Path, github: GitHub) -> None:
    runner = InProcess(tmp_path, github)
    write_jsonl(runner.workspace / "golden.jsonl", [golden("q1", weight=-1)])
    write_jsonl(runner.workspace / "current_run.jsonl", [run("q1")])
    assert runner.run({"comment": "never"}).exit_code == 2
    written = json.loads((runner.workspace / "report.json").read_bytes())
    assert written["verdict"] == "error"
    assert accepts("report", written)
    assert not accepts("report", written | {"problems": "one"})
    assert not accepts("report", written | {"verdict": "fail"})


@pytest.mark.parametrize("section", ["fail_on", "minimums"])
def test_limits_at_a_cut_off_are_as_strict_as_those_at_the_largest(section: str) -> None:
    for metric in ("mrr", "recall", "precision", "hitrate", "ndcg", "map"):
        key = f"{metric}_at_3" + ("_drop_gt" if section == "fail_on" else "")
        assert accepts("config", {section: {key: 0.5}, "tags": {"t": {section: {key: 0.5}}}})
        assert not accepts("config", {section: {key: 2}})
        assert not accepts("config", {"tags": {"t": {section: {key: 2}}}})
        assert not accepts("config", {section: {key.replace("_3", "_0"): 0.5}})
