"""What some tests need of the machine beside Python: without it they skip and say why; in CI they fail instead."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

DEBIAN = os.pathsep.join(map(str, Path("/usr/lib/postgresql").glob("*/bin")))  # which are not in PATH
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


class Need(NamedTuple):
    """Something that may be missing: any of the programs will do, if it answers."""

    programs: tuple[str, ...]
    why: str
    answers: tuple[str, ...] = ()  # arguments with which the program says whether it works


NEEDS: Mapping[str, Need] = {
    "bash": Need(("bash",), "the workflows' shell is tested with bash"),
    "chromium": Need(BROWSERS, "the HTML report is tested in a browser: install Chromium or Chrome"),
    "docker": Need(("docker",), "the image is tested with a Docker engine, and none answers `docker info`", ("info",)),
    "docker-compose": Need(("docker-compose",), "compose.yml is tested with it: install docker-compose", ("version",)),
    "nginx": Need(("nginx",), "the proxy of the guide is tested with nginx: install Debian's nginx-light"),
    "java": Need(("java",), "runs on a cluster are tested with Spark: install Java 17 or later"),
    "jq": Need(("jq",), "the release workflow is tested with jq: install it"),
    "postgres": Need(("initdb",), "the service is tested with Postgres: install Debian's postgresql"),
    "npm": Need(
        ("npm",), "the stand-in holds requests against GitHub's own description, which npm brings: install npm"
    ),
}


def program(name: str) -> str | None:
    """Return the path of the program that is there for a need; None where there is none, or it does not answer."""
    need = NEEDS[name]
    places = os.environ["PATH"]
    if name == "java" and (home := os.environ.get("JAVA_HOME")):
        places = f"{home}/bin"  # as Spark looks for it
    if name == "postgres":
        places += os.pathsep + os.environ.get("POSTGRES_BIN", DEBIAN)
    found = next((path for one in need.programs if (path := shutil.which(one, path=places))), None)
    if found and need.answers and subprocess.run([found, *need.answers], capture_output=True, check=False).returncode:
        return None
    return found


def here(name: str) -> bool:
    """Say whether the machine has it. In CI, where no test may be left out, a test without it fails."""
    if program(name):
        return True
    if os.environ.get("CI"):
        pytest.fail(f"{NEEDS[name].why} (CI is set: this test must run)", pytrace=False)
    return False


def require(name: str) -> None:
    """Skip the test where the machine does not have it, and say why. In CI it fails."""
    if not here(name):
        pytest.skip(NEEDS[name].why)
