"""What a test does on a machine that lacks what it needs: it skips and says why, and in CI it fails."""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from scripts import release
from tests.needs import NEEDS
from tests.process import Ended, spawn

# A test that needs it, and is about to be started without.
USERS = {
    "bash": "tests/test_release.py::test_the_trial_of_an_image_passes_one_that_works",
    "chromium": "tests/report/html/test_in_browser.py::test_broken_queries_come_first_and_the_rest_follow",
    "docker": "tests/container/test_container.py::test_the_files_it_writes_belong_to_the_owner_of_the_workspace",
    "docker-compose": "tests/container/test_service_image.py::test_compose_serves_from_either_database[sqlite]",
    "nginx": "tests/service/test_behind_a_proxy.py::test_a_browser_logs_in_over_tls",
    "java": "tests/cluster/test_same_numbers.py::test_there_are_two_executors",
    "jq": "tests/test_release.py::test_the_release_commit_is_the_tagged_one_with_the_image_in_action_yml",
    "postgres": "tests/service/test_database.py::test_what_was_written_is_read[postgres]",
    "npm": "tests/github/test_standin.py::test_a_client_that_was_refused_anything_fails_its_test",
}


def run_tests_of(needs: list[str], path: str, ci: str) -> Ended:
    """Run tests that need something as a machine would that has these programs, in CI or not."""
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *[USERS[name] for name in needs])
    environ = {"PATH": path, "CI": ci, "JAVA_HOME": "", "POSTGRES_BIN": "", "COLUMNS": "999"}
    return spawn(cwd=release.ROOT, command=command, environ=environ)


def test_all_needs_are_looked_at() -> None:
    assert list(USERS) == list(NEEDS)


@pytest.fixture(params=["bash", "all else"])
def missing(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    """Return what the programs in ``tmp_path`` are not enough for: the test that needs jq needs bash as well."""
    if request.param == "bash":
        return ["bash"]
    (tmp_path / "bash").symlink_to(str(shutil.which("bash")))
    (tmp_path / "docker").symlink_to(str(shutil.which("false")))  # an engine that does not answer
    return [name for name in NEEDS if name != "bash"]


def test_without_it_a_test_skips_and_says_why(missing: list[str], tmp_path: Path) -> None:
    ended = run_tests_of(missing, str(tmp_path), ci="")
    assert ended.code == 0, ended.out
    said = re.findall(r"^SKIPPED \[1\] \S+: (.*)$", ended.out, re.MULTILINE)
    assert sorted(said) == sorted(NEEDS[name].why for name in missing)
    assert f"{len(missing)} skipped in " in ended.out


def test_in_ci_a_test_fails_without_it(missing: list[str], tmp_path: Path) -> None:
    ended = run_tests_of(missing, str(tmp_path), ci="true")
    assert ended.code == 1, ended.out
    assert "skipped" not in ended.out
    assert "passed" not in ended.out
    for name in missing:
        assert f"{NEEDS[name].why} (CI is set: this test must run)" in ended.out


@pytest.mark.parametrize("ci", ["", "true"])
def test_with_it_a_test_runs(ci: str) -> None:
    ended = run_tests_of(["bash"], os.environ["PATH"], ci)
    assert ended.code == 0, ended.out
    assert "1 passed in " in ended.out
