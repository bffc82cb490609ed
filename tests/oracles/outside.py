"""Asks packages that compute what we compute; they run in an environment of their own, as processes."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.runner import ROOT

PROGRAMS = Path(__file__).parent / "programs"
PYTHON = ROOT / "build" / "oracles" / "bin" / "python"


def asked(program: str, cases: object, *argv: str) -> Any:
    """Return what a program of `programs/` prints as JSON when it is given these cases as JSON.

    Where the environment is not set up the test is skipped; in CI it fails.
    """
    if not (PYTHON.parent.parent / "ready").exists():
        why = "the other packages are not installed: run `make test-oracles`"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(why)
    # ragas would report its use over the network.
    environ = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "RAGAS_DO_NOT_TRACK": "true"}
    done = subprocess.run(
        [str(PYTHON), str(PROGRAMS / f"{program}.py"), *argv],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        env=environ,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
