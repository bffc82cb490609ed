"""Plugins are named on the command line, and nowhere else."""

import json
from pathlib import Path
from typing import Any

import pytest

from ragcontract import InputError, check
from tests.builders import golden, run, write_jsonl
from tests.process import rag_contract, spawn

CODE = """\
class Polite:
    def evaluate(self, output, tool_calls, rule):
        return "please" in output, "no please"

class Empty: pass

class Broken:
    def __init__(self): raise OSError("no model")
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "my_checks.py").write_text(CODE)
    write_jsonl(tmp_path / "golden.jsonl", [golden("q", rules=[{"type": "custom", "plugin": "Polite"}])])
    return tmp_path


@pytest.mark.parametrize(("answer", "code"), [("please", 0), ("now", 1)])
def test_a_plugin_decides_a_check(folder: Path, answer: str, code: int) -> None:
    write_jsonl(folder / "current_run.jsonl", [run("q", response=answer)])
    assert rag_contract("check", "--plugin", "my_checks:Polite").code == code
    assert rag_contract("check").code == 2


@pytest.mark.parametrize("when", ["imported", "called"])
def test_a_plugin_that_changes_the_current_folder_moves_no_file(folder: Path, when: str) -> None:
    (folder / "elsewhere").mkdir()
    write_jsonl(folder / "current_run.jsonl", [run("q", response="now")])
    write_jsonl(folder / "elsewhere" / "current_run.jsonl", [run("q", response="please")])
    write_jsonl(folder / "elsewhere" / "golden.jsonl", [golden("q", "doc")])
    go = f"import os; os.chdir({str(folder / 'elsewhere')!r})"
    code = f"{go}\n{CODE}" if when == "imported" else CODE.replace("return", f"{go}; return", 1)
    (folder / "my_checks.py").write_text(code)
    assert spawn("check", "--plugin", "my_checks:Polite", cwd=folder).code == 1
    assert (folder / "report.json").is_file()
    assert not (folder / "elsewhere" / "report.json").exists()


@pytest.mark.parametrize("when", ["imported", "made", "called"])
def test_a_plugin_that_ends_the_program_makes_no_check_pass(folder: Path, when: str) -> None:
    write_jsonl(folder / "current_run.jsonl", [run("q", response="please")])
    ending = {
        "imported": f"{CODE}\nraise SystemExit(0)\n",
        "made": CODE.replace("class Polite:", "class Polite:\n    def __init__(self): raise SystemExit(0)"),
        "called": CODE.replace("return", "raise SystemExit(0); return", 1),
    }
    (folder / "my_checks.py").write_text(ending[when])
    ended = spawn("check", "--plugin", "my_checks:Polite", cwd=folder)
    assert (ended.code, "SystemExit: 0" in ended.err) == (2, True), ended


def test_a_hook_of_a_plugin_that_ends_the_process_makes_no_check_pass(folder: Path) -> None:
    write_jsonl(folder / "current_run.jsonl", [run("q", response="now")])
    (folder / "my_checks.py").write_text(f"import atexit, os\natexit.register(os._exit, 0)\n{CODE}")
    ended = spawn("check", "--plugin", "my_checks:Polite", cwd=folder)
    assert (ended.code, "FAIL  1 of 1 query broken" in ended.out) == (1, True), ended


@pytest.mark.parametrize("when", ["imported", "called"])
def test_a_plugin_that_ends_the_process_leaves_no_report_of_an_earlier_check(folder: Path, when: str) -> None:
    write_jsonl(folder / "current_run.jsonl", [run("q", response="please")])
    assert spawn("check", "--plugin", "my_checks:Polite", cwd=folder).code == 0
    assert json.loads((folder / "report.json").read_text())["verdict"] == "pass"
    end = "import os; os._exit(0)"
    code = f"{CODE}\n{end}\n" if when == "imported" else CODE.replace("return", f"{end}; return", 1)
    (folder / "my_checks.py").write_text(code)
    spawn("check", "--plugin", "my_checks:Polite", cwd=folder)
    report = json.loads((folder / "report.json").read_text())
    assert (report["verdict"], report["problems"]) == ("error", ["the check did not end, or a plugin ended it"])


def polite(*, accepts: bool) -> Any:
    """Return a plugin with one answer, of a class of its own."""

    class Polite:
        def evaluate(self, _output: str, _tool_calls: Any, _rule: Any) -> tuple[bool, str]:
            return accepts, "no please"

    return Polite()


def test_in_python_too_plugins_have_different_class_names(folder: Path) -> None:
    write_jsonl(folder / "current_run.jsonl", [run("q", response="now")])
    verdicts = [
        check(golden="golden.jsonl", run="current_run.jsonl", plugins=[polite(accepts=accepts)]).verdict
        for accepts in (True, False)
    ]
    assert verdicts == ["pass", "fail"]
    with pytest.raises(InputError, match="another plugin has the class name 'Polite', too; rename one"):
        check(
            golden="golden.jsonl",
            run="current_run.jsonl",
            plugins=[polite(accepts=False), polite(accepts=True)],
        )


def test_what_is_wrong_with_plugins_is_reported_at_once(folder: Path) -> None:
    write_jsonl(folder / "current_run.jsonl", [run("q", response="please")])
    plugins = ["my_checks", "none:X", "my_checks:Empty", "my_checks:Broken", *["my_checks:Polite"] * 2]
    ended = rag_contract("check", *(f"--plugin={plugin}" for plugin in plugins))
    assert (ended.code, [line.removeprefix("error: ") for line in ended.err.splitlines()]) == (
        2,
        [
            "--plugin my_checks: expected module:Class, as my_checks:PoliteTone",
            "--plugin none:X: cannot be loaded: ModuleNotFoundError: No module named 'none'",
            "--plugin my_checks:Empty: has no method evaluate(output, tool_calls, rule)",
            "--plugin my_checks:Broken: cannot be loaded: OSError: no model",
            "--plugin my_checks:Polite: another plugin has this class name, too",
        ],
    )


def test_the_config_cannot_name_one(folder: Path) -> None:
    write_jsonl(folder / "current_run.jsonl", [run("q", response="please")])
    for config in ("plugin: my_checks:Polite\n", "answers: {plugin: my_checks:Polite}\n"):
        (folder / "ragcontract.yml").write_text(config)
        ended = rag_contract("check", "--plugin", "my_checks:Polite")
        assert (ended.code, "unknown key" in ended.err) == (2, True)
