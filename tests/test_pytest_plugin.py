"""The pytest plugin: a contract in a test suite, run by pytest as users run it, in a process of its own."""

import json
import os
import re
import sys
import tomllib
from pathlib import Path

import pytest

from scripts import docs
from tests import forking
from tests.builders import golden, run, stored_query, write_baseline, write_jsonl
from tests.forking import plain_environ
from tests.judgment_files import FALSE, TRUE, judged_workspace, write_good_calibration, write_judgments_on
from tests.process import Ended, rag_contract, shell, spawn
from tests.runner import ROOT

PAGE = (ROOT / "docs" / "guides" / "pytest.md").read_text()
CASES = "def test_case(rag_contract_case):\n    rag_contract_case.raise_if_failed()\n"
WHOLE = "def test_whole(rag_contract):\n    rag_contract.raise_if_failed()\n"


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for PYTHONPATH in which pytest finds the entry point that pyproject.toml declares."""
    folder = tmp_path_factory.mktemp("installed")
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"]
    info = folder / "rag_contract_plugin-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rag-contract-plugin\nVersion: 0\n")
    (info / "entry_points.txt").write_text("[pytest11]\n" + "".join(f"{a} = {b}\n" for a, b in points.items()))
    return folder


# Plugins of the development environment that a user need not have, and that take most of the start.
OTHERS = ("-p", "no:hypothesispytest", "-p", "no:anyio", "-p", "no:pytest_cov")


class Suite:
    """A project with a contract and tests."""

    def __init__(self, folder: Path, installed: Path) -> None:
        self.folder = folder
        self._path = [str(installed), str(ROOT)]
        (folder / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\naddopts = --strict-markers\n")

    def write(self, **files: str) -> None:
        for name, text in files.items():
            (self.folder / f"{name}.py").write_text(text)

    def run(self, *args: str, inside: str = "", fresh: bool = False) -> Ended:
        """Run pytest; a ``fresh`` process starts with nothing imported, any other one with most of what it needs."""
        environ = {"PYTEST_ADDOPTS": "", "COLUMNS": "200"}
        argv = ["-p", "no:cacheprovider", *OTHERS, "-rA", "-v", *args]
        folder = self.folder / inside
        if fresh:
            environ["PYTHONPATH"] = ":".join(self._path)
            return spawn(*argv, cwd=folder, command=(sys.executable, "-m", "pytest"), environ=environ)
        # The service has loaded anyio, which is a plugin of pytest: pytest warns if it cannot load that itself.
        code = (
            f"import runpy, sys\nsys.path[:0] = {['', *self._path]}\n"
            "loaded = [name for name in sys.modules if name.partition('.')[0] == 'anyio']\n"
            "for name in loaded:\n    del sys.modules[name]\n"
            "runpy.run_module('pytest', run_name='__main__')\n"
        )
        return Ended(*forking.run(code, argv, cwd=folder, environ=plain_environ() | environ))


@pytest.fixture
def suite(tmp_path: Path, installed: Path) -> Suite:
    """Return a project whose contract has one query of each sort, and two gates."""
    rows = [
        golden("good", "doc1"),
        golden("lost", "doc2", must_rank_at_most=1),
        golden("only a warning", "doc3", severity="warn"),
        golden("waived", "doc4"),
    ]
    write_jsonl(tmp_path / "golden.jsonl", rows)
    write_jsonl(tmp_path / "current_run.jsonl", [run("good", "doc1"), *(run(row["id"], "x") for row in rows[1:])])
    (tmp_path / "ragcontract.yml").write_text(
        "minimums:\n  mrr_at_k: 0.2\n  recall_at_k: 0.9\n"
        'waivers:\n- {query: waived, reason: the index is rebuilt, owner: ann, expires: "2999-01-01"}\n'
    )
    return Suite(tmp_path, installed)


def outcomes(ended: Ended) -> dict[str, str]:
    """Return the outcome of each test by its name in brackets, or else its name."""
    found = re.findall(r"^test_\w+\.py::(?:\w+\[(.*)\]|(\w+)) ([A-Z]+)\b.*\[ *\d+%\]$", ended.out, re.MULTILINE)
    return {case or name: outcome for case, name, outcome in found}


def test_every_gate_and_every_golden_query_is_a_test(suite: Suite) -> None:
    suite.write(test_contract=CASES)
    ended = suite.run()
    assert outcomes(ended) == {
        "gate:minimums.mrr_at_k": "PASSED",
        "gate:minimums.recall_at_k": "FAILED",
        "good": "PASSED",
        "lost": "FAILED",
        "only a warning": "XFAIL",
        "waived": "XFAIL",
    }
    assert ended.code == 1


def test_a_failure_is_the_finding_and_no_traceback(suite: Suite) -> None:
    suite.write(test_contract=CASES)
    out = suite.run().out
    finding = "expected doc2 in top 1; found: missing from top 5"
    assert f"___ test_case[lost] ___\n{finding}\nquestion: What" in re.sub("_{3,}", "___", out)
    assert "\nquestion: What about lost?\ndefined at golden.jsonl:2\n" in out
    assert "\nRecall@5 is 0.25, minimum 0.90\ndefined at ragcontract.yml:3\n" in out
    assert "waived until 2999-01-01, ann: the index is rebuilt: expected doc4 in top 5; found: missing" in out
    assert "severity warn: expected doc3" in out
    assert "Traceback" not in out
    assert "raise_if_failed" not in out


def test_the_fixture_of_the_whole_run_is_the_report_and_its_failure_has_all_reasons(suite: Suite) -> None:
    suite.write(test_contract=WHOLE)
    ended = suite.run()
    assert outcomes(ended) == {"test_whole": "FAILED"}
    assert "ContractBroken: 1 of 4 queries broken; 1 limit broken" in ended.out
    assert "lost: expected doc2 in top 1; found: missing from top 5 (golden.jsonl:2)" in ended.out
    assert ">       rag_contract.raise_if_failed()" in ended.out
    assert "raise ContractBroken" not in ended.out


def test_a_test_that_does_not_ask_its_case_fails_all_the_same(suite: Suite) -> None:
    suite.write(
        test_contract="def test_case(rag_contract_case):\n    assert rag_contract_case.kind in ('gate', 'query')\n"
    )
    assert outcomes(suite.run("-k", "lost or good")) == {"good": "PASSED", "lost": "FAILED"}


@pytest.mark.parametrize(
    "test",
    [
        "def test_whole(rag_contract): pass\n",
        "def test_whole(rag_contract): assert rag_contract.verdict\n",
        "def test_whole(request): request.getfixturevalue('rag_contract')\n",
        "@pytest.fixture\ndef mine(request): request.getfixturevalue('rag_contract')\ndef test_whole(mine): pass\n",
        "@pytest.fixture\ndef rag_contract(rag_contract): pass\ndef test_whole(rag_contract): pass\n",
        "@pytest.mark.usefixtures('rag_contract')\ndef test_whole(): pass\n",
    ],
)
def test_a_test_that_does_not_ask_the_whole_report_is_a_warning_where_the_contract_is_broken(
    test: str, suite: Suite
) -> None:
    suite.write(test_contract=f"import pytest\n{test}")
    ended = suite.run("-W", "default")
    assert (ended.code, outcomes(ended)) == (0, {"test_whole": "PASSED"})
    asked = "test_whole passed, and call rag_contract.raise_if_failed() if it is to fail for that: "
    assert f"{asked}1 of 4 queries broken; 1 limit broken" in ended.out
    assert outcomes(suite.run()) == {"test_whole": "FAILED"}  # whose warnings are errors
    (suite.folder / "ragcontract.yml").write_text("per_query: {enforce_must_include: false}\n")
    rows = [golden("good", "doc1")]
    write_jsonl(suite.folder / "golden.jsonl", rows)
    write_jsonl(suite.folder / "current_run.jsonl", [run("good", *[f"doc{n}" for n in range(1, 6)])])
    assert outcomes(suite.run()) == {"test_whole": "PASSED"}


def test_runxfail_fails_what_is_waived(suite: Suite) -> None:
    suite.write(test_contract=CASES)
    assert outcomes(suite.run("--runxfail", "-k", "waived")) == {"waived": "FAILED"}


def test_the_verdict_is_that_of_the_command(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    write_baseline(suite.folder / "baseline.json", stored_query("good", "doc1"))
    (suite.folder / "ragcontract.yml").write_text("fail_on: {mrr_drop_gt: 0.1}\n")
    suite.write(
        test_contract="import msgspec, pathlib\n\ndef test_whole(rag_contract):\n"
        "    pathlib.Path('from_pytest.json').write_bytes(msgspec.json.encode(rag_contract))\n"
    )
    assert suite.run("-W", "default").code == 0
    monkeypatch.chdir(suite.folder)
    assert rag_contract("check").code == 1
    files = (suite.folder / name for name in ("from_pytest.json", "report.json"))
    ours, theirs = (json.loads(file.read_text()) | {"created_at": ""} for file in files)
    assert ours == theirs


RUNS = {
    "a function": "def search(question):\n        return ['doc1']\n    return search",
    "a mapping": "return {name: ['doc1'] for name in ('good', 'lost', 'only a warning', 'waived')}",
    "a path": "return 'other_run.jsonl'",
}


@pytest.mark.parametrize("given", RUNS)
def test_the_run_may_be(given: str, suite: Suite) -> None:
    write_jsonl(
        suite.folder / "other_run.jsonl", [run(name, "doc1") for name in ("good", "lost", "only a warning", "waived")]
    )
    (suite.folder / "current_run.jsonl").unlink()
    fixture = f"import pytest\n\n@pytest.fixture(scope='session')\ndef rag_run():\n    {RUNS[given]}\n"
    suite.write(conftest=fixture, test_contract=CASES)
    assert outcomes(suite.run("-k", "good or lost")) == {"good": "PASSED", "lost": "FAILED"}


EMPTY = {
    "a list": "[]",
    "a tuple": "()",
    "a set": "set()",
    "an iterator": "iter([])",
    "a glob": "__import__('glob').glob('runs/*.jsonl')",
}


@pytest.mark.parametrize("given", EMPTY)
def test_no_other_run_is_judged_where_an_empty_one_is_given(given: str, suite: Suite) -> None:
    fixture = f"import pytest\n\n@pytest.fixture(scope='session')\ndef rag_run():\n    return {EMPTY[given]}\n"
    suite.write(conftest=fixture, test_contract=CASES + WHOLE)
    ended = suite.run()
    assert (ended.code, "rag_run: names no file" in ended.out) == (1, True)
    assert "passed" not in ended.out


@pytest.mark.parametrize("given", ["golden=[]", "run=[]", "baseline=[]", "config=''", "calibration=''", "run=''"])
def test_an_input_without_a_file_is_not_the_default_one(given: str, suite: Suite) -> None:
    suite.write(test_contract=f"import pytest\n\n@pytest.mark.rag_contract({given})\n" + WHOLE)
    ended = suite.run()
    name, _, value = given.partition("=")
    said = f"{name}: names no file" if value == "[]" else f"{name}: is an empty path; name a file"
    assert (ended.code, said in ended.out) == (1, True)


def test_the_function_is_asked_each_question_once_even_if_it_fails(suite: Suite) -> None:
    fixture = (
        "import pytest\n\n@pytest.fixture(scope='session')\ndef rag_run():\n"
        "    def search(question):\n        print('asked', question)\n        {}\n    return search\n"
    )
    suite.write(conftest=fixture.format("return ['doc1']"), test_contract=CASES + WHOLE)
    assert suite.run("-s").out.count("asked What about lost?") == 1
    suite.write(conftest=fixture.format("raise OSError('the index is down')"))
    ended = suite.run("-s")
    assert ended.out.count("asked What about") == 1
    assert ended.out.count("OSError: the index is down") >= 1
    assert "the index is down (the first test that failed has everything about it)" in ended.out


def test_the_marker_names_the_inputs_and_that_of_the_function_comes_first(suite: Suite) -> None:
    other = suite.folder / "contracts" / "billing"
    other.mkdir(parents=True)
    write_jsonl(other / "asked.jsonl", [golden("b1", "doc1", tags=["smoke"]), golden("b2", "doc2")])
    write_jsonl(other / "run.jsonl", [run("b1", "x", "y", "doc1")])
    suite.write(
        test_contract="import pytest\n\npytestmark = pytest.mark.rag_contract(folder='contracts/billing', "
        "golden='asked.jsonl', run='run.jsonl', k=9)\n\n"
        f"@pytest.mark.rag_contract(k=2, tags=['smoke'])\n{CASES}"
        "@pytest.mark.rag_contract(tags='smoke')\n" + WHOLE
    )
    assert outcomes(suite.run()) == {"b1": "FAILED", "test_whole": "PASSED"}


def test_a_mistake_in_the_marker_is_an_error_that_names_it(suite: Suite) -> None:
    suite.write(test_contract=f"import pytest\n\n@pytest.mark.rag_contract(gloden='x')\n{CASES}")
    ended = suite.run()
    assert ended.code == 2
    assert (
        "@pytest.mark.rag_contract: Unexpected keyword argument 'gloden'; it takes golden, run, baseline" in ended.out
    )
    suite.write(test_contract=f"import pytest\n\n@pytest.mark.rag_contract('golden.jsonl')\n{WHOLE}")
    assert "@pytest.mark.rag_contract: takes keyword arguments only" in suite.run().out


TWO = 'pytest.mark.rag_contract(tags="a"), pytest.mark.rag_contract(tags="b")'
STACKED = {
    "a module": (f"pytestmark = [{TWO}]\n{WHOLE}", "test_contract.py"),
    "a function": (f"@pytest.mark.rag_contract(tags='a')\n@pytest.mark.rag_contract(tags='b')\n{WHOLE}", "test_whole"),
    "cases": (f"@pytest.mark.rag_contract(tags='a')\n@pytest.mark.rag_contract(tags='b')\n{CASES}", "test_case"),
    "a class": (
        f"class TestAll:\n    pytestmark = [{TWO}]\n    def test_whole(self, rag_contract): pass\n",
        "TestAll",
    ),
}


@pytest.mark.parametrize(("test", "place"), STACKED.values(), ids=STACKED.keys())
def test_two_markers_of_one_place_with_the_same_argument_are_refused(suite: Suite, test: str, place: str) -> None:
    suite.write(test_contract=f"import pytest\n\n{test}")
    ended = suite.run()
    assert ended.code in {1, 2}
    assert f"two markers on {place} have the argument tags; give a list in one marker" in ended.out


def test_two_markers_of_one_place_with_different_arguments_count_both(suite: Suite) -> None:
    two = "@pytest.mark.rag_contract(golden='golden.jsonl')\n@pytest.mark.rag_contract(k='many')\n"
    suite.write(test_contract=f"import pytest\n\n{two}{WHOLE}")
    assert "many" in suite.run().out
    two = two.replace("golden='golden.jsonl'", "k=3")
    suite.write(test_contract=f"import pytest\n\n{two}{WHOLE}")
    assert "two markers on test_whole have the argument k; leave one of them out" in suite.run().out


def test_a_contract_that_is_wrong_stops_the_collection_with_every_problem(suite: Suite) -> None:
    write_jsonl(suite.folder / "golden.jsonl", [golden("q1", weight=-1), golden("q2", weight=-1)])
    suite.write(test_contract=CASES)
    ended = suite.run()
    assert ended.code == 2
    assert "the retrieval contract cannot be judged:\n" in ended.out
    assert all(f"golden.jsonl:{line}: weight" in ended.out for line in (1, 2))
    assert "Traceback" not in ended.out


@pytest.mark.parametrize("test", [CASES, WHOLE], ids=["cases", "whole"])
def test_while_nothing_is_labelled_one_line_says_so(test: str, suite: Suite) -> None:
    write_jsonl(suite.folder / "golden.jsonl", [golden("q1", "TODO"), golden("q2", "TODO")])
    (suite.folder / "current_run.jsonl").unlink()
    suite.write(test_contract=test)
    ended = suite.run()
    assert ended.code != 0
    assert "golden.jsonl: nothing is labelled yet: run rag-contract label\n" in ended.out
    assert "current_run.jsonl" not in ended.out
    assert "Traceback" not in ended.out


@pytest.mark.parametrize("test", [CASES, WHOLE], ids=["cases", "whole"])
def test_where_there_is_no_contract_one_line_says_how_to_start(test: str, suite: Suite) -> None:
    for name in ("golden.jsonl", "current_run.jsonl", "ragcontract.yml"):
        (suite.folder / name).unlink()
    suite.write(test_contract=test)
    ended = suite.run()
    assert ended.code != 0
    assert "there is no contract in this folder: start with `rag-contract init`\n" in ended.out
    assert "no such file" not in ended.out
    assert "Traceback" not in ended.out


def test_a_run_that_is_wrong_is_described_once(suite: Suite) -> None:
    write_jsonl(suite.folder / "current_run.jsonl", [run("good", "doc1"), {"query_id": "lost"}, {"query_id": 1.5}])
    suite.write(test_contract=CASES)
    ended = suite.run()
    first, second = "current_run.jsonl:2: results: is missing", "current_run.jsonl:3: query_id: expected"
    assert ended.out.count(first) >= len(outcomes(ended)) > 3
    assert 1 <= ended.out.count(second) <= 3  # pytest itself repeats an error in its summaries
    assert "(the first test that failed has everything about it)" in ended.out
    assert outcomes(ended) == dict.fromkeys(outcomes(ended), "ERROR")


def test_a_second_configuration_is_refused_and_one_with_a_similar_name_is_a_warning(suite: Suite) -> None:
    (suite.folder / "pytest.ini").write_text("[pytest]\n")
    suite.write(test_contract=WHOLE)
    (suite.folder / "rag-contract.yml").write_text("k: 3\n")
    assert "UserWarning: rag-contract.yml: looks like a configuration and is not read" in suite.run().out
    (suite.folder / "ragcontract.yaml").write_text("k: 3\n")
    assert "ragcontract.yaml: is a second configuration beside ragcontract.yml" in suite.run().out


def test_what_is_probably_a_mistake_is_a_warning(suite: Suite) -> None:
    (suite.folder / "pytest.ini").unlink()
    with (suite.folder / "current_run.jsonl").open("a") as file:
        file.write(json.dumps(run("of_nobody")) + "\n")
    suite.write(test_contract=WHOLE)
    assert (
        suite.run().out.count("UserWarning: current_run.jsonl: 1 row for no golden query, left out: 'of_nobody'") == 1
    )


def test_hostile_ids_are_text_and_each_its_own(suite: Suite) -> None:
    ids = [
        "a/b::c[d]",
        "\x1b[31mred\nline",
        r"\x1b[31mred\nline",
        "gate:minimums.mrr_at_k",
        "query:x",
        "é\u202e",
        "nul\0",
        "[",
        "]",
    ]
    write_jsonl(suite.folder / "golden.jsonl", [golden(one) for one in ids])
    write_jsonl(suite.folder / "current_run.jsonl", [run(one, "x") for one in ids])
    (suite.folder / "ragcontract.yml").write_text("minimums: {mrr_at_k: 0}\n")
    suite.write(test_contract=CASES)
    ended = suite.run()
    found = outcomes(ended)
    assert found.pop("gate:minimums.mrr_at_k") == "PASSED"
    assert list(found.values()) == ["FAILED"] * len(ids)
    assert {"query:gate:minimums.mrr_at_k", "query:query:x", "a/b::c[d]"} <= set(found)
    assert not re.search("[\x1b\0\u202e]", ended.out)


def test_nothing_in_the_output_is_a_command_for_the_runner_that_prints_it(suite: Suite) -> None:
    ids = ["##[stop-commands]x", "::error::y"]
    write_jsonl(suite.folder / "golden.jsonl", [golden(one, "##[add-mask]d", tags=[one]) for one in ids])
    write_jsonl(suite.folder / "current_run.jsonl", [run(one, "x") for one in ids])
    tags = {one: {"minimums": {"mrr_at_k": 0.5}} for one in ids}
    waivers = [{"query": ids[1], "reason": "##[debug]", "owner": "ann", "expires": "2099-01-01"}]
    (suite.folder / "ragcontract.yml").write_text(json.dumps({"tags": tags, "waivers": waivers}))
    suite.write(test_contract=CASES + WHOLE)
    ended = suite.run()
    assert set(outcomes(ended).values()) == {"FAILED", "XFAIL"}
    assert "error::y" in ended.out
    assert not re.search(r"##\[|^\s*::", ended.out, re.MULTILINE)
    write_jsonl(suite.folder / "current_run.jsonl", [run(ids[0], "x")])
    assert not re.search(r"##\[|^\s*::", suite.run().out, re.MULTILINE)


def test_several_workers_collect_the_same_tests(suite: Suite) -> None:
    suite.write(test_contract=CASES)
    out = suite.run("-n", "2").out
    assert "2 failed, 2 passed, 2 xfailed" in out


def test_the_plugin_can_be_turned_off(suite: Suite) -> None:
    suite.write(test_contract=WHOLE)
    assert "fixture 'rag_contract' not found" in suite.run("-p", "no:ragcontract").out


def test_a_project_that_does_not_use_the_plugin_imports_nothing_of_it(suite: Suite) -> None:
    suite.write(
        test_own="import sys\n\ndef test_own():\n"
        "    ours = {name for name in sys.modules if name.partition('.')[0] in ('ragcontract', 'msgspec', 'click')}\n"
        "    assert ours == {'ragcontract', 'ragcontract.pytest_plugin'}\n"
    )
    ended = suite.run(fresh=True)
    assert ended.code == 0, ended.out


def judged(suite: Suite, config: str) -> None:
    """Make the suite's contract one over a claim, with a judge that is right and calibrated."""
    judged_workspace(suite.folder, config, [TRUE], [FALSE])
    write_judgments_on(suite.folder, [TRUE], [FALSE])
    write_good_calibration(suite.folder)


MARKED = "import pytest\n\npytestmark = pytest.mark.rag_contract(judgments='judgments.jsonl'{})\n\n" + CASES


def test_what_a_judge_said_is_replayed_from_the_files_that_the_marker_names(suite: Suite) -> None:
    judged(suite, "minimums: {context_recall: 0.7}\n")
    suite.write(test_contract=MARKED.format(", calibration='judge-calibration.json'"))
    ended = suite.run("-k", "gate")
    assert outcomes(ended) == {"gate:minimums.context_recall": "FAILED"}
    assert "Context recall (judged) is 0.50, minimum 0.70" in ended.out
    suite.write(test_contract=CASES)
    assert outcomes(suite.run("-k", "gate")) == {"gate:minimums.context_recall": "FAILED"}, "by their usual names"
    (suite.folder / "judge-calibration.json").unlink()
    suite.write(test_contract=MARKED.format(""))
    assert "there is no calibration for attribution" in suite.run("-k", "gate").out
    suite.write(test_contract=CASES)
    (suite.folder / "judgments.jsonl").unlink()
    out = suite.run().out
    assert "minimums.context_recall cannot be judged: it needs what a judge said, and no judgments are given" in out
    assert "Traceback" not in out


def test_a_limit_that_has_no_effect_is_skipped_with_its_reason(suite: Suite) -> None:
    judged(suite, "minimums: {context_recall: 0.7}\njudge: {uncalibrated: advisory}\n")
    (suite.folder / "judge-calibration.json").unlink()
    suite.write(test_contract=MARKED.format(""))
    ended = suite.run("-k", "gate", "-W", "ignore")
    assert outcomes(ended) == {"gate:minimums.context_recall": "SKIPPED"}
    assert "advisory, because the judge is not calibrated" in ended.out


def test_the_markers_are_listed_with_their_arguments(suite: Suite) -> None:
    named = "@pytest.mark.rag_contract(golden, run, baseline, scores, judgments, calibration, config, k, tags, "
    assert named in suite.run("--markers").out


def test_the_page_on_pytest_shows_what_pytest_reports(suite: Suite) -> None:
    for name in ("golden.jsonl", "current_run.jsonl", "ragcontract.yml"):
        (suite.folder / name).unlink()
    readme = docs.README.read_text()
    assert shell(docs.block(readme, "quickstart files"), cwd=suite.folder).code == 0
    assert shell("rag-contract baseline --run good_run.jsonl", cwd=suite.folder).code == 0
    (suite.folder / "my_app.py").write_text(
        "import json\n\nasked = {row['query']: row['id'] for row in map(json.loads, open('golden.jsonl'))}\n"
        "found = {row['query_id']: row['results'] for row in map(json.loads, open('current_run.jsonl'))}\n\n"
        "def search(question):\n    return [result['doc_id'] for result in found[asked[question]]]\n"
    )
    for name in ("conftest.py", "test_retrieval.py"):
        (suite.folder / name).write_text(docs.block(PAGE, f"pytest {name}"))
    out = suite.run().out
    for line in docs.block(PAGE, "pytest output").splitlines():
        shown = line.strip("_ ")
        assert any(other.strip("_ ").startswith(shown) for other in out.splitlines()), line


def test_the_marker_on_the_page_on_pytest_works(suite: Suite) -> None:
    folder = suite.folder / "contracts" / "billing"
    folder.mkdir(parents=True)
    write_jsonl(folder / "golden.jsonl", [golden("b1", tags=["smoke"]), golden("b2")])
    write_jsonl(folder / "current_run.jsonl", [run("b1"), run("b2")])
    (suite.folder / "test_billing.py").write_text(docs.block(PAGE, "pytest test_billing.py"))
    assert outcomes(suite.run()) == {"b1": "PASSED", "test_the_whole_contract": "PASSED"}


RETRIEVERS = """import os
import pytest
from ragcontract import RunWriter

FOUND = {"bm25": ["doc1"], "dense": ["x"]}

def search(question):
    return FOUND[os.environ["RETRIEVER"]]

def export(retriever):
    with RunWriter("current_run.jsonl") as run:
        run.write("q1", FOUND[retriever])

def suite_of(retriever):
    class Tests:
        @pytest.fixture
        def rag_run(self, monkeypatch):
            monkeypatch.setenv("RETRIEVER", retriever)
            return search

        def test_run(self, rag_contract):
            rag_contract.raise_if_failed()
    return Tests
"""
OF_PARAMETERS = WHOLE.replace("(", "(rag_run, ", 1)
EXPORTED = "from retrievers import *\n\n@pytest.fixture(scope='session', params=FOUND)\ndef rag_run(request):\n"
SEVERAL_RUNS = {
    "a file that is written again": {"conftest": f"{EXPORTED}    export(request.param)\n"},
    "a path that is returned again": {
        "conftest": f"{EXPORTED}    export(request.param)\n    return 'current_run.jsonl'\n"
    },
    "a file that the marker names": {
        "conftest": EXPORTED.replace("rag_run", "exported").replace("params", "autouse=True, params")
        + "    export(request.param)\n",
        "test_runs": "import pytest\n\npytestmark = pytest.mark.rag_contract(run='current_run.jsonl')\n\n" + WHOLE,
    },
    "one function with another environment": {
        "conftest": "from retrievers import *\n\n@pytest.fixture(params=FOUND)\ndef rag_run(request, monkeypatch):\n"
        "    monkeypatch.setenv('RETRIEVER', request.param)\n    return search\n"
    },
    "one function in two classes": {
        "test_runs": "from retrievers import *\n\nTestBm25 = suite_of('bm25')\nTestDense = suite_of('dense')\n"
    },
    "one function of the session beside a fixture with parameters": {
        "conftest": "from retrievers import *\n\n@pytest.fixture(scope='session')\ndef rag_run():\n"
        "    return search\n\n@pytest.fixture(autouse=True, params=FOUND)\ndef retriever(request, monkeypatch):\n"
        "    monkeypatch.setenv('RETRIEVER', request.param)\n"
    },
    "scores that are written again": {
        "conftest": EXPORTED.replace("rag_run", "exported").replace("params", "autouse=True, params")
        + "    export('bm25')\n    good = int(request.param == 'bm25')\n"
        "    with open('scores.jsonl', 'w') as file:\n"
        '        file.write(\'{"query_id": "q1", "scores": {"quality": %d}}\\n\' % good)\n',
        "test_runs": "import pytest\n\npytestmark = pytest.mark.rag_contract(scores='scores.jsonl')\n\n" + WHOLE,
        "config": "metrics: {quality: {from: scores}}\nminimums: {quality: 0.5}\n",
    },
}


@pytest.mark.parametrize("files", SEVERAL_RUNS.values(), ids=SEVERAL_RUNS)
def test_each_run_of_a_session_is_judged(files: dict[str, str], suite: Suite) -> None:
    write_jsonl(suite.folder / "golden.jsonl", [golden("q1", "doc1")])
    (suite.folder / "ragcontract.yml").write_text(files.get("config", "k: 5\n"))
    scripts = {name: text for name, text in files.items() if name != "config"}
    suite.write(retrievers=RETRIEVERS, **{"test_runs": OF_PARAMETERS} | scripts)
    ended = suite.run()
    assert "1 failed, 1 passed in" in ended.out, ended.out


@pytest.mark.parametrize("returned", ["", "return search"], ids=["a file", "a function"])
def test_each_folder_has_a_run_of_its_own(returned: str, suite: Suite) -> None:
    write_jsonl(suite.folder / "golden.jsonl", [golden("q1", "doc1")])
    (suite.folder / "ragcontract.yml").unlink()
    suite.write(retrievers=RETRIEVERS)
    for retriever in ("bm25", "dense"):
        folder = suite.folder / retriever
        folder.mkdir()
        (folder / "conftest.py").write_text(
            "from retrievers import *\n\n@pytest.fixture(scope='session')\ndef rag_run():\n"
            f"    os.environ['RETRIEVER'] = {retriever!r}\n    export({retriever!r})\n    {returned}\n"
        )
        for name in ("first", "second"):
            (folder / f"test_{retriever}_{name}.py").write_text(WHOLE)
    ended = suite.run()
    assert "2 failed, 2 passed in" in ended.out


def test_a_run_of_one_test_is_not_kept_for_the_next(suite: Suite) -> None:
    write_jsonl(suite.folder / "golden.jsonl", [golden("q1", "doc1")])
    (suite.folder / "ragcontract.yml").unlink()
    suite.write(
        retrievers=RETRIEVERS,
        conftest="from retrievers import *\n\nLEFT = [*FOUND]\nRUN = {}\n\n@pytest.fixture\ndef rag_run():\n"
        "    RUN['q1'] = FOUND[LEFT.pop(0)]\n    return RUN\n",
        test_runs=WHOLE + WHOLE.replace("test_whole", "test_again"),
    )
    assert outcomes(suite.run()) == {"test_whole": "PASSED", "test_again": "FAILED"}


def test_parameters_of_a_test_ask_the_function_no_second_time(suite: Suite) -> None:
    suite.write(
        conftest="import pytest\n\n@pytest.fixture(scope='session')\ndef rag_run():\n"
        "    def search(question):\n        print('asked', question)\n        return ['doc1']\n    return search\n",
        test_metrics="import pytest\n\n@pytest.mark.parametrize('metric', ['mrr_at_5', 'recall_at_5'])\n"
        "def test_metric(rag_contract, metric):\n    assert rag_contract.metrics[metric]\n",
    )
    ended = suite.run("-s", "-W", "ignore")
    assert (ended.code, ended.out.count("asked What about lost?")) == (0, 1), ended.out


@pytest.mark.parametrize("marked", ["folder='billing'", "tags='smoke'", "config='strict.yml'"])
def test_a_marker_that_comes_after_the_tests_were_made_is_refused(marked: str, suite: Suite) -> None:
    (suite.folder / "billing").mkdir()
    for folder, name in ((suite.folder, "good"), (suite.folder / "billing", "b1")):
        write_jsonl(folder / "golden.jsonl", [golden(name, "doc1"), golden("smoke", "doc1", tags=["smoke"])])
        write_jsonl(folder / "current_run.jsonl", [run(name, "x" if name == "b1" else "doc1"), run("smoke", "doc1")])
    (suite.folder / "ragcontract.yml").unlink()
    (suite.folder / "strict.yml").write_text("minimums: {mrr_at_k: 0.9}\n")
    late = f"@pytest.mark.parametrize('n', [pytest.param(1, marks=pytest.mark.rag_contract({marked}))])\n"
    suite.write(test_contract=f"import pytest\n\n{late}" + CASES.replace("(", "(n, ", 1))
    ended = suite.run()
    assert (ended.code, " passed" in ended.out) == (1, False)
    assert "this test was made of another contract than the one that it checks: " in ended.out
    suite.write(test_contract=f"import pytest\n\n{late}" + WHOLE.replace("(", "(n, ", 1))
    assert ("1 failed in" if "b" in marked else "1 passed in") in suite.run().out, "is about all of the contract"


def test_options_that_change_no_target_may_come_after_the_tests_were_made(suite: Suite) -> None:
    (suite.folder / "current_run.jsonl").rename(suite.folder / "later.jsonl")
    late = "@pytest.mark.parametrize('n', [pytest.param(1, marks=pytest.mark.rag_contract(run='later.jsonl', k=4))])\n"
    suite.write(test_contract=f"import pytest\n\n{late}" + CASES.replace("(", "(n, ", 1))
    assert "2 failed, 2 passed, 2 xfailed in" in suite.run().out


@pytest.mark.parametrize("returned", ["'run.jsonl'", "['run.jsonl']", "'run*.jsonl'", "Path('run.jsonl')"])
def test_a_path_that_leads_to_two_runs_is_refused(returned: str, suite: Suite) -> None:
    write_jsonl(suite.folder / "golden.jsonl", [golden("q1", "doc1")])
    (suite.folder / "ragcontract.yml").unlink()
    write_jsonl(suite.folder / "run.jsonl", [run("q1", "doc1")])
    tests = suite.folder / "tests"
    tests.mkdir()
    fixture = (
        "import pytest\nfrom pathlib import Path\nfrom ragcontract import RunWriter\n\n"
        "@pytest.fixture(scope='session')\ndef rag_run():\n"
        "    with RunWriter('run.jsonl') as run:\n        run.write('q1', ['x'])\n"
    )
    (tests / "conftest.py").write_text(f"{fixture}    return {returned}\n")
    (tests / "test_contract.py").write_text(WHOLE)
    ended = suite.run(inside="tests")
    assert (ended.code, "leads to two runs" in ended.out) == (1, True)
    (suite.folder / "run.jsonl").unlink()
    assert "ContractBroken" in suite.run(inside="tests").out, "the only one there is"
    (tests / "conftest.py").write_text(
        "from pathlib import Path\n" + fixture.replace("'run.jsonl'", "'../run.jsonl'") + f"    return {returned}\n"
    )
    (tests / "run.jsonl").unlink()
    assert "ContractBroken" in suite.run(inside="tests").out, "the only one there is"


def test_a_run_in_the_current_folder_that_is_newer_than_the_checked_one_is_a_warning(suite: Suite) -> None:
    tests = suite.folder / "tests"
    tests.mkdir()
    (tests / "test_contract.py").write_text(WHOLE)
    assert "is newer than" not in suite.run(inside="tests").out
    write_jsonl(tests / "current_run.jsonl", [run("good", "x")])
    assert "current_run.jsonl: is newer than ../current_run.jsonl, which is checked" in suite.run(inside="tests").out
    (suite.folder / "current_run.jsonl").touch()
    assert "is newer than" not in suite.run(inside="tests").out


def test_a_run_in_the_current_folder_that_is_newer_than_that_of_the_folder_of_a_marker_is_a_warning(
    suite: Suite,
) -> None:
    contract = suite.folder / "contracts" / "billing"
    contract.mkdir(parents=True)
    for name in ("golden.jsonl", "ragcontract.yml", "current_run.jsonl"):
        (suite.folder / name).unlink()
    write_jsonl(contract / "golden.jsonl", [golden("good", "doc1")])
    write_jsonl(contract / "current_run.jsonl", [run("good", "doc1")])
    suite.write(
        test_contract='import pytest\n\npytestmark = pytest.mark.rag_contract(folder="contracts/billing")\n' + WHOLE
    )
    assert outcomes(suite.run()) == {"test_whole": "PASSED"}
    os.utime(contract / "current_run.jsonl", (0, 0))
    write_jsonl(suite.folder / "current_run.jsonl", [run("good", "x")])
    newer = "current_run.jsonl: is newer than contracts/billing/current_run.jsonl, which is checked"
    assert newer in suite.run().out
    write_jsonl(suite.folder / "golden.jsonl", [golden("good", "x")])
    assert outcomes(suite.run()) == {"test_whole": "PASSED"}, "the current folder has a contract of its own"


def test_a_configuration_above_the_folder_of_a_marker_is_a_warning(suite: Suite) -> None:
    (suite.folder / "billing").mkdir()
    (suite.folder / "golden.jsonl").unlink()
    write_jsonl(suite.folder / "billing" / "golden.jsonl", [golden("q1")])
    write_jsonl(suite.folder / "billing" / "current_run.jsonl", [run("q1")])
    suite.write(test_billing="import pytest\n\npytestmark = pytest.mark.rag_contract(folder='billing')\n\n" + WHOLE)
    ended = suite.run()
    assert ended.code == 1
    assert "billing/../ragcontract.yml: looks like a configuration and is not read" in ended.out


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["one process", "a worker"])
def test_the_notes_of_a_check_are_in_the_summary_once(workers: tuple[str, ...], suite: Suite) -> None:
    before = stored_query("lost", "doc2") | {"query": "Asked before"}
    write_baseline(suite.folder / "baseline.json", stored_query("good", "doc1"), before)
    (suite.folder / "ragcontract.yml").write_text("fail_on: {mrr_drop_gt: 0.1}\n")
    suite.write(test_contract=CASES)
    out = suite.run(*workers, "-W", "default").out
    assert out.count("the 1 query that both sides have") == 1
