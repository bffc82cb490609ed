"""Golden cases: each folder in ``cases/`` is a check, and everything that came of it when a person last read it.

A case holds the inputs under their default names, ``args`` where the command needs more, and ``expected/``: the exit
code, what was printed, and the reports. After a change that is meant, ``UPDATE_CASES=1 pytest tests/test_cases.py``
writes what comes out now; read the difference before keeping it.
"""

import os
import re
import shlex
import shutil
from pathlib import Path

import pytest

from ragcontract import __version__
from tests.golden_cases import CASES, copied
from tests.process import spawn

REPORTS = ("report.md", "report.json", "junit.xml")
# As it stands in JSON, and escaped for Markdown.
TIME = re.compile(rb"(\d{4})\\?-(\d\d)-(\d\d)T(\d\d):(?:&#8203;)?(\d\d):(?:&#8203;)?(\d\d)\+00:00")
AGE = re.compile(rb'(?<="age_days": )\d+')  # that of the baseline, which grows every day
BASELINES_OWN = (b"2026", b"01", b"02", b"03", b"04", b"05")
VERSION = __version__.encode()


def check(case: Path, folder: Path) -> dict[str, bytes]:
    """Run a case in a copy of its folder; returns what came of it, by the name of the expectation."""
    copied(case, folder)
    args = folder / "args"
    own = shlex.split(args.read_text() if args.exists() else "")
    ended = spawn("check", "--report-html", "page.html", *own, cwd=folder)
    assert (folder / "page.html").exists() == (folder / "report.md").exists()  # a page can be made of every report
    found = {
        "exit_code": f"{ended.code}\n".encode(),
        "stdout.txt": ended.out.encode(),
        "stderr.txt": ended.err.encode(),
    }
    found |= {name: (folder / name).read_bytes() for name in REPORTS if (folder / name).exists()}
    return {name: _lasting(data) for name, data in found.items()}


def _lasting(data: bytes) -> bytes:
    """Replace what differs at other times, and in other versions."""
    return AGE.sub(b"0", TIME.sub(_then, data)).replace(VERSION, b"VERSION")


def _then(time: re.Match[bytes]) -> bytes:
    return time[0] if time.groups() == BASELINES_OWN else b"TIME"


@pytest.mark.parametrize("case", sorted(CASES.iterdir()), ids=lambda case: case.name)
def test_a_case_comes_out_as_expected(case: Path, tmp_path: Path) -> None:
    found = check(case, tmp_path / "work")
    expected_folder = case / "expected"
    if os.environ.get("UPDATE_CASES") == "1":
        shutil.rmtree(expected_folder, ignore_errors=True)
        expected_folder.mkdir()
        for name, data in found.items():
            (expected_folder / name).write_bytes(data)
    assert expected_folder.is_dir(), "a case without expectations; read the docstring of this module"
    expected = {path.name: path.read_bytes() for path in expected_folder.iterdir()}
    assert sorted(found) == sorted(expected)
    for name, data in expected.items():
        assert found[name].decode() == data.decode(), name
