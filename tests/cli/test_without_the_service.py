"""The commands of the team service where its extra is not installed."""

import subprocess
import sys

import pytest

WITHOUT = """
import sys
sys.modules["litestar"] = sys.modules["sqlalchemy"] = None
from ragcontract.guard import entry_point
entry_point()
"""


@pytest.mark.parametrize(
    "argv", [["serve"], ["service", "check"], ["service", "token", "add", "ci", "--scope", "read"]]
)
def test_a_command_says_how_to_install_what_it_lacks(argv: list[str]) -> None:
    ended = subprocess.run([sys.executable, "-c", WITHOUT, *argv], capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: the team service is not installed here: ")
    assert ended.stderr.endswith('is missing; install it: pip install "rag-contract[service]"\n')
