"""What a project's processes get of the service's environment."""

import sys
from pathlib import Path

import pytest

from ragcontract.record.adapters.process_serve import Program
from ragcontract.service.mounted import ProjectFile
from ragcontract.service.project_environment import project_environ

OURS = {
    "PATH": "/bin",
    "HOME": "/home/ana",
    "LC_ALL": "C.UTF-8",
    "https_proxy": "http://proxy:3128",
    "CUDA_VISIBLE_DEVICES": "0",
    "PYTHONPATH": "/service",
    "PGPASSWORD": "of-the-database",
    "RAG_CONTRACT_DB": "postgresql://service:of-the-database@host/rag",
    "RAG_CONTRACT_ALERT_WEBHOOK": "https://hooks.example.com/T0/secret",
    "RAG_CONTRACT_TOKEN": "rc_1a2b3c4d_x",
    "AWS_SECRET_ACCESS_KEY": "of-the-machine",
    "SEARCH_TOKEN": "of-the-project",
    "OTHER_TOKEN": "of-another-project",
}
ALWAYS = {"PATH", "HOME", "LC_ALL", "https_proxy", "CUDA_VISIBLE_DEVICES", "PYTHONDONTWRITEBYTECODE"}


@pytest.mark.parametrize(
    ("file", "more"),
    [
        (ProjectFile(), {"PYTHONPATH"}),
        (ProjectFile(python="/venvs/docs/bin/python"), set()),
        (ProjectFile(python="/venvs/docs/bin/python", secrets=["SEARCH_TOKEN", "NOT_SET"]), {"SEARCH_TOKEN"}),
        (ProjectFile(python="/p", secrets=["PGPASSWORD", "RAG_CONTRACT_DB", "RAG_CONTRACT_ALERT_WEBHOOK"]), set()),
    ],
)
def test_a_project_gets_what_programs_need_and_its_own_secrets(file: ProjectFile, more: set[str]) -> None:
    environ = project_environ(file, OURS)
    assert set(environ) == ALWAYS | more
    assert {name: value for name, value in environ.items() if name in OURS}.items() <= OURS.items()


def test_a_program_has_only_what_it_is_to_inherit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PGPASSWORD", "of-the-database")
    shown = [sys.executable, "-c", "import os; print(sorted(set(os.environ) & {'PGPASSWORD', 'A', 'B'}))"]
    inherited = Program(arguments=shown, folder=tmp_path, environ={"A": "1"}, inherited={"B": "2"})
    assert inherited.start().communicate()[0].strip() == b"['A', 'B']"
    assert Program(arguments=shown, folder=tmp_path).start().communicate()[0].strip() == b"['PGPASSWORD']"
