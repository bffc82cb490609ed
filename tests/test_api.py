"""The Python API: what is exported, and that it says what the command line says."""

import json
import pickle
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import ragcontract
from ragcontract import ContractBroken, InputError, Report, check, load_golden, load_run
from ragcontract.judge.endpoint import KEY, OPENAI_KEY, URL
from tests.builders import golden, good_workspace, run, write_baseline, write_jsonl
from tests.judge_server import JudgeServer
from tests.judgment_files import TRUE, judged_workspace, write_good_calibration, write_judgments_on
from tests.process import rag_contract, spawn

GUIDE = Path(__file__).parent.parent / "docs" / "reference" / "python-api.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL) if GUIDE.exists() else []


def test_every_exported_name_is_there_and_documented() -> None:
    for name in ragcontract.__all__:
        assert getattr(ragcontract, name).__doc__
    assert {*ragcontract.__all__, "__version__"} == set(ragcontract._HOMES)
    assert set(ragcontract.__all__) <= set(dir(ragcontract))
    with pytest.raises(AttributeError, match="no attribute 'chekc'"):
        _ = ragcontract.chekc


def test_importing_the_package_loads_nothing_else(tmp_path: Path) -> None:
    program = "import sys; before = set(sys.modules); import ragcontract; print(*sorted(set(sys.modules) - before))"
    environ = {"PYTHONPATH": str(Path(ragcontract.__file__).parent.parent)}
    ended = spawn(cwd=tmp_path, command=(sys.executable, "-S", "-c", program), environ=environ)
    assert ended.out.split() == ["ragcontract"], ended.err


def test_golden_queries_come_in_the_files_order(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "1.jsonl", [golden("b", "x", tags=["t"])])
    write_jsonl(tmp_path / "2.jsonl", [golden("a")])
    for paths in ((tmp_path / "1.jsonl", str(tmp_path / "2.jsonl")), (str(tmp_path / "*.jsonl"),)):
        queries = load_golden(*paths)
        assert list(queries) == ["b", "a"]
        assert (queries["b"].relevant_doc_ids, queries["b"].tags, queries["b"].weight) == (("x",), ("t",), 1.0)


def test_a_run_is_read_as_document_ids(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "1.jsonl", [run("q2", "x", "y"), {"query_id": 1, "results": []}])
    write_jsonl(tmp_path / "2.jsonl", [run("q3", "z", "z")])
    rows = load_run(tmp_path / "1.jsonl", tmp_path / "2.jsonl")
    assert list(rows.items()) == [("q2", ["x", "y"]), ("1", []), ("q3", ["z", "z"])]
    write_jsonl(tmp_path / "answers.jsonl", [{"query_id": "q4", "response": "30 days."}])
    assert load_run(tmp_path / "answers.jsonl") == {"q4": []}


def test_bad_input_raises_with_everything_that_is_wrong(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "g.jsonl", [golden("q1", weight=-1), golden("q2", weight=-1)])
    write_jsonl(tmp_path / "r.jsonl", [run("q1"), run("q1")])
    with pytest.raises(InputError) as refused:
        load_golden(tmp_path / "g.jsonl")
    assert [re.search(r"g.jsonl:\d", line)[0] for line in refused.value.problems] == ["g.jsonl:1", "g.jsonl:2"]  # type: ignore[index]
    with pytest.raises(InputError, match=r"r\.jsonl:2: query_id: duplicate id 'q1', first defined at .*r\.jsonl:1$"):
        load_run(tmp_path / "r.jsonl")
    with pytest.raises(InputError, match="no such file"):
        load_run(tmp_path / "none.jsonl")
    for load in (load_golden, load_run):
        with pytest.raises(InputError, match="names no file"):
            load()


def test_what_is_odd_is_warned_about_where_it_is_called(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "g.jsonl", [golden("q1", weigth=2)])
    with pytest.warns(UserWarning, match="did you mean 'weight'") as warned:
        load_golden(tmp_path / "g.jsonl")
    assert warned[0].filename == __file__
    write_jsonl(tmp_path / "r.jsonl", [run("q1", latencyms=2)])
    with pytest.warns(UserWarning, match="did you mean 'latency_ms'"):
        load_run(tmp_path / "r.jsonl")


@pytest.mark.parametrize("retrieved", ["doc2", "x"])
def test_a_check_says_what_the_command_says(retrieved: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    write_jsonl(tmp_path / "current_run.jsonl", [run("q1", "doc1"), run("q2", retrieved)])
    report = check(
        golden="golden.jsonl", run=["current_run.jsonl"], baseline=Path("baseline.json"), config="ragcontract.yml", k=3
    )
    ended = rag_contract("check", "--k", "3")
    assert ended.code == (0 if report.verdict == "pass" else 1)
    assert (retrieved == "doc2") == (report.verdict == "pass")
    said = json.loads(Path("report.json").read_bytes())
    assert msgspec.json.decode(msgspec.json.encode(report)) | {"created_at": ""} == said | {"created_at": ""}


def test_only_what_is_named_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    Path("ragcontract.yml").write_text("{")
    Path("baseline.json").write_text("{")
    report = check(golden="golden.jsonl", run="current_run.jsonl")
    assert (report.verdict, report.inputs.baseline, report.inputs.config) == ("pass", None, None)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [
            "golden.jsonl",
            "current_run.jsonl",
            "ragcontract.yml",
            "baseline.json",
            "report.md",
            "report.json",
            "junit.xml",
        ]
    )


def test_a_check_that_cannot_be_made_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    cases: list[tuple[dict[str, Any], str]] = [
        ({"golden": "golden.jsonl", "run": []}, "run: names no file"),
        ({"golden": "golden.jsonl", "run": "gone.jsonl"}, "gone.jsonl: no such file"),
        ({"golden": "golden.jsonl", "run": "current_run.jsonl", "baseline": ""}, "empty path"),
        ({"golden": "golden.jsonl", "run": "current_run.jsonl", "config": ""}, "empty path"),
        ({"golden": "golden.jsonl", "run": "current_run.jsonl", "config": "ragcontract.yml"}, "baseline"),
        *(({"golden": "golden.jsonl", "run": "current_run.jsonl", "k": k}, "k: expected") for k in (0, -1, True, "5")),
    ]
    for arguments, message in cases:
        with pytest.raises(InputError, match=message):
            check(**arguments)


def test_a_run_at_hand_is_judged_as_one_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_jsonl(Path("golden.jsonl"), [golden("q1", "doc1"), golden("7", "3")])
    write_baseline(Path("baseline.json"))
    retrieved: dict[str | int, Any] = {"q1": ["x", "doc1"], 7: ({"doc_id": doc_id, "score": 1} for doc_id in (4, 3))}
    report = check(golden="golden.jsonl", run=retrieved, baseline="baseline.json")
    assert report.verdict == "pass"
    assert report.metrics["mrr_at_5"].current == 0.5
    assert report.inputs.run.files[0].path == "(in memory)"
    assert check(golden="golden.jsonl", run={"q1": [], "7": []}).verdict == "fail"
    with pytest.raises(InputError, match=r"\(in memory\): has no row for golden query '7'"):
        check(golden="golden.jsonl", run={"q1": []})
    for unordered in ({"doc1", "x"}, frozenset(["doc1"]), {"results": {"doc1", "x"}}):
        with pytest.raises(InputError, match="results: is a set, which has no order of its own; give a list, the best"):
            check(golden="golden.jsonl", run={"q1": unordered, "7": ["3"]})
    ranked = {"doc1": 0.9, "x": 0.1}
    assert check(golden="golden.jsonl", run={"q1": ranked.keys(), "7": ("3",)}).verdict == "pass"


def test_a_run_at_hand_has_the_warnings_of_one_in_a_file(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "golden.jsonl", [golden(f"q{n}") for n in range(3)])
    other: dict[str, Any] = {"doc_id": "x", "score": 2}
    up, down = ([{"doc_id": "doc1", "score": score}, other] for score in (1, 3))
    retrieved = {"q0": down, "q1": up, "q2": up, "q3": down}
    with ragcontract.RunWriter(tmp_path / "run.jsonl") as writer:
        for query_id, results in retrieved.items():
            writer.write(query_id, results)
    order, unknown = check(golden=path, run=retrieved).warnings
    assert 'query "q1": the scores are not in descending order (2 such rows); ranks are' in order
    in_file = check(golden=path, run=tmp_path / "run.jsonl").warnings
    assert [one.partition("the scores")[2] for one in in_file] == [
        one.partition("the scores")[2] for one in (order, unknown)
    ]


def test_a_run_at_hand_has_the_digest_of_the_file_it_would_be(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "golden.jsonl", [golden("q1")])
    with ragcontract.RunWriter(tmp_path / "run.jsonl") as writer:
        writer.write("q1", ["doc1"])
    in_file = check(golden=path, run=tmp_path / "run.jsonl").inputs.run.files[0]
    assert check(golden=path, run=load_run(tmp_path / "run.jsonl")).inputs.run.files[0].sha256 == in_file.sha256


def test_a_run_at_hand_is_held_to_the_format(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "golden.jsonl", [golden("7")])
    cases: list[tuple[dict[Any, Any], str]] = [
        ({}, "the run is empty"),
        ({"7": "doc1"}, "expected a list"),
        ({"7": [""]}, "doc_id: expected text"),
        ({"7": ["a"], 7: ["a"]}, "query 7: occurs twice"),
    ]
    for retrieved, message in cases:
        with pytest.raises(InputError, match=message):
            check(golden=path, run=retrieved)


def broken_report(folder: Path) -> ragcontract.Report:
    """Return the report on a run that loses one document of two, where a gate breaks too."""
    good_workspace(folder)
    write_jsonl(folder / "current_run.jsonl", [run("q1", "doc1"), run("q2", "\x1b[31m")])
    files = (folder / name for name in ("golden.jsonl", "current_run.jsonl", "baseline.json", "ragcontract.yml"))
    asked, retrieved, before, config = files
    return check(golden=asked, run=retrieved, baseline=before, config=config)


def test_a_broken_contract_raises_an_assertion_with_all_reasons(tmp_path: Path) -> None:
    report = broken_report(tmp_path)
    with pytest.raises(AssertionError) as raised:
        report.raise_if_failed()
    assert str(raised.value).replace(f"{tmp_path}/", "").splitlines() == [
        "1 of 2 queries broken, new; 1 limit broken",
        "  fail_on.mrr_drop_gt: MRR@5 fell by 0.50, allowed drop 0.10 (ragcontract.yml:3)",
        "  q2: expected doc2 in top 5; found: missing from top 5 (was rank 1) (golden.jsonl:2)",
    ]
    assert isinstance(raised.value, ContractBroken)
    assert raised.value.report is report


def test_a_contract_that_holds_raises_nothing(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "golden.jsonl", [golden("q1")])
    report = check(golden=path, run={"q1": ["doc1"]})
    report.raise_if_failed()
    assert report.summary() == "1 query holds; no limits are set"


@pytest.mark.parametrize("condition", [bool, lambda report: report or None], ids=["assert report", "report or …"])
def test_a_report_is_no_condition(condition: Callable[[Report], object], tmp_path: Path) -> None:
    """``assert report`` would pass, whatever the verdict is."""
    with pytest.raises(TypeError, match=r"neither true nor false: call raise_if_failed\(\)"):
        condition(broken_report(tmp_path))


def test_a_report_shows_its_summary_and_not_all_of_its_fields(tmp_path: Path) -> None:
    report = broken_report(tmp_path)
    assert repr(report) == f"<Report: {report.summary()}>"
    assert len(repr(report)) < 150


def test_a_broken_contract_can_be_sent_to_another_process(tmp_path: Path) -> None:
    error = ContractBroken(broken_report(tmp_path))
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.report) == (str(error), error.report)


@pytest.mark.parametrize("example", EXAMPLES, ids=[f"example {n}" for n in range(1, len(EXAMPLES) + 1)])
def test_the_examples_of_the_guide_run(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    for name in (URL, KEY, OPENAI_KEY):
        monkeypatch.delenv(name, raising=False)
    if "judgments.jsonl" in example:
        judged_workspace(tmp_path, "minimums: {context_recall: 0.5}\n", [TRUE])
        write_judgments_on(tmp_path, [TRUE])
        write_good_calibration(tmp_path)
    names: dict[str, Any] = {"search": lambda question: ["doc1" if "q1" in question else "doc2"]}
    with JudgeServer("generous") as server:
        exec(compile(example.replace("http://127.0.0.1:8089/v1", server.openai), str(GUIDE), "exec"), names)
    for name, function in list(names.items()):
        if name.startswith("test_"):
            function()
    if "judge" in names:
        assert names["result"].value == 1.0


def test_the_guide_has_examples_of_every_name() -> None:
    assert len(EXAMPLES) >= 3
    for name in ("RunWriter", "load_golden", "load_run", "check", "InputError", "raise_if_failed", "summary"):
        assert any(re.search(rf"\b{name}\b", example) for example in EXAMPLES), name
