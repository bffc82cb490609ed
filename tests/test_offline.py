"""``check`` opens no socket, whatever it reads: not by the command line, not from Python, not under pytest."""

import sys
from pathlib import Path

import pytest

from tests.builders import good_workspace
from tests.golden_cases import CASES, copied
from tests.offline import ASKERS, CAN_BE_ENFORCED, KILLED, Tried, program, tried_by
from tests.process import spawn

COMMAND = program(
    "from ragcontract.cli.main import main\nfrom ragcontract.guard import guarded",
    "guarded(lambda: main(sys.argv[1:]), sys.stderr)",
)
IN_PYTHON = program("import ragcontract", "print(ragcontract.check({files}).verdict)")
UNDER_PYTEST = program(
    "", "pytest.main(['-p', 'no:cacheprovider', '-p', 'ragcontract.pytest_plugin'])", before="import pytest"
)
PYTEST = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
FILES = {"golden": "golden.jsonl", "run": "current_run.jsonl", "config": "ragcontract.yml"}
JUDGED = {"judgments": "judgments.jsonl", "calibration": "judge-calibration.json"}
PASSES = "claims-that-a-judge-finds-supported-pass"


def tried(code: str, folder: Path, *argv: str) -> Tried:
    return tried_by(spawn(*argv, cwd=folder, command=(sys.executable, "-c", code), environ=PYTEST))


def in_python(**files: str) -> str:
    return IN_PYTHON.replace("{files}", f"**{files!r}")


@pytest.mark.skipif(not CAN_BE_ENFORCED, reason="system calls are filtered on Linux only")
def test_the_kernel_ends_a_process_of_these_tests_that_opens_a_socket(tmp_path: Path) -> None:
    code = program("import socket", "socket.socket() and 0")
    assert spawn(cwd=tmp_path, command=(sys.executable, "-c", code)).code == KILLED


def test_what_a_process_of_these_tests_tries_is_noted(tmp_path: Path) -> None:
    code = program("import http.client, os", "os.system('true') or sys.audit('socket.connect', None)")
    found = tried(code, tmp_path)
    assert (found.tried, ASKERS & found.loaded) == (["os.system", "socket.connect"], {"http.client", "socket", "ssl"})


def test_a_check_of_documents_opens_no_socket(tmp_path: Path) -> None:
    found = tried(COMMAND, good_workspace(tmp_path), "check", "--report-html", "report.html")
    assert (found.ended.code, found.tried, ASKERS & found.loaded) == (0, [], set())


def test_the_module_that_msgspec_loads_for_a_type_is_all_that_is_loaded_of_sockets(tmp_path: Path) -> None:
    """typing_extensions, which msgspec loads, finds the type of capsules in ``_socket``; nobody asks for more of it."""
    of_sockets = {"_socket", "_ssl", "select", "selectors", "socket", "ssl"}
    found = tried(COMMAND, good_workspace(tmp_path), "check")
    alone = tried(program("import msgspec", "0"), tmp_path)
    assert of_sockets & found.loaded == of_sockets & alone.loaded <= {"_socket"}


@pytest.mark.parametrize("case", sorted(path.name for path in CASES.iterdir() if (path / "judgments.jsonl").exists()))
def test_a_check_that_replays_judgments_opens_no_socket(case: str, tmp_path: Path) -> None:
    copied(CASES / case, tmp_path / "work")
    options = (tmp_path / "work" / "args").read_text().split()
    found = tried(COMMAND, tmp_path / "work", "check", *options)
    assert found.ended.code == int((CASES / case / "expected" / "exit_code").read_text()), found.ended
    assert (found.tried, ASKERS & found.loaded) == ([], set())
    assert not [name for name in found.loaded if name.startswith(("ragcontract.judge.", "ragcontract.net"))]


def test_a_check_in_python_opens_no_socket(tmp_path: Path) -> None:
    found = tried(in_python(**FILES, baseline="baseline.json"), good_workspace(tmp_path))
    assert (found.tried, ASKERS & found.loaded) == ([], set())
    copied(CASES / PASSES, tmp_path / "judged")
    found = tried(in_python(**FILES, **JUDGED), tmp_path / "judged")
    assert ("pass\n" in found.ended.out, found.tried, ASKERS & found.loaded) == (True, [], set())


def test_a_check_under_pytest_opens_no_socket(tmp_path: Path) -> None:
    good_workspace(tmp_path)
    case = "def test_case(rag_contract_case):\n    rag_contract_case.raise_if_failed()\n"
    (tmp_path / "test_contract.py").write_text(case)
    found = tried(UNDER_PYTEST, tmp_path)
    assert "ragcontract.pytest_cases" in found.loaded
    assert (found.ended.code, found.tried, ASKERS & found.loaded) == (0, [], set()), found.ended
