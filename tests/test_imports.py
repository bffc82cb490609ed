"""What an ordinary check loads: every import costs the start of every pull request's check."""

import sys
from pathlib import Path

import pytest

from tests.builders import golden, good_workspace, run, write_jsonl
from tests.process import spawn

PROGRAM = """
import sys
before = set(sys.modules)
from ragcontract.guard import guarded
from ragcontract.cli import main
code = guarded(lambda: main(sys.argv[1:]), sys.stderr)
loaded = {name.partition(".")[0] for name in set(sys.modules) - before if "cython" not in name}
print(*sorted(loaded - set(sys.stdlib_module_names)), "|", *sorted(loaded & set(sys.stdlib_module_names)))
sys.exit(code)
"""
ALWAYS = {"click", "junit_xml", "msgspec", "ragcontract", "six"}
TYPING = {"typing_extensions"}
SLOW = {"asyncio", "difflib", "email", "http", "multiprocessing", "sqlite3", "ssl", "unittest"}


def loaded_by(*argv: str, cwd: Path) -> tuple[set[str], set[str]]:
    """Return the third-party and the standard modules that a successful command loads."""
    ended = spawn(*argv, cwd=cwd, command=(sys.executable, "-c", PROGRAM), environ=unmeasured())
    assert ended.code == 0, ended.err
    third_party, _, standard = ended.out.splitlines()[-1].partition("|")
    return set(third_party.split()), set(standard.split())


def unmeasured() -> dict[str, str]:
    """Keep the measuring of coverage out of what is measured here."""
    return {"COVERAGE_PROCESS_START": "", "COVERAGE_PROCESS_CONFIG": ""}


@pytest.mark.parametrize("command", ["check", "validate", "score", "baseline", "diff", "lint"])
def test_a_command_on_good_input_loads_only_what_it_needs(command: str, tmp_path: Path) -> None:
    good_workspace(tmp_path)
    (tmp_path / "ragcontract.yml").unlink()
    third_party, standard = loaded_by(command, cwd=tmp_path)
    allowed = ALWAYS if command == "check" else ALWAYS - {"junit_xml", "six"}
    assert allowed <= third_party <= allowed | TYPING
    assert not standard & SLOW


def test_yaml_is_loaded_with_a_configuration_only(tmp_path: Path) -> None:
    third_party, _ = loaded_by("check", cwd=good_workspace(tmp_path))
    assert ALWAYS | {"yaml"} <= third_party <= ALWAYS | TYPING | {"yaml", "_yaml"}


def test_junit_xml_is_loaded_with_its_report_only(tmp_path: Path) -> None:
    good_workspace(tmp_path)
    third_party, _ = loaded_by("check", "--junit", "", cwd=tmp_path)
    assert not third_party & {"junit_xml", "six"}


def test_warnings_load_no_schemas(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "golden.jsonl", [golden("q1", "doc1", weigth=2)])
    write_jsonl(tmp_path / "current_run.jsonl", [run("q1", "doc1"), run("q2")])
    third_party, _ = loaded_by("check", cwd=tmp_path)
    assert "jsonschema" not in third_party
