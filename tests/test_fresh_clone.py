"""What a fresh clone runs: `make demo`, and `.ci/run` whatever the machine lacks."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from scripts import docs
from tests.needs import require
from tests.process import Ended, spawn

README = " ".join(docs.README.read_text().split())


def tool(folder: Path, name: str, script: str) -> None:
    """Put a shell script of that name into a folder."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def demo(folder: Path, rag_contract: str) -> Ended:
    """Run the demo with this interpreter instead of an environment of its own, and with a script for the command."""
    tool(folder / "bin", "python", f'exec "{sys.executable}" "$@"')
    tool(folder / "bin", "rag-contract", rag_contract)
    there = f"{folder}/venv/ready"
    command = ("make", "-C", str(docs.ROOT), "demo", f"DEMO={folder}", f"DEMO_BIN={folder}/bin", "-o", there)
    return spawn(cwd=folder, command=command, environ={"MAKEFLAGS": "", "PATH": os.environ["PATH"]})


def test_the_demo_shows_a_good_run_and_one_that_breaks_as_many_queries_as_the_readme_says(tmp_path: Path) -> None:
    assert "an innocent change breaks six of 25 queries" in README
    shown = demo(tmp_path, f'exec "{sys.executable}" -m ragcontract "$@"')
    assert shown.code == 0, shown.err
    good, _, broken = shown.out.partition("# 2. A broken run")
    assert "\nPASS  25 queries and " in good
    assert "FAIL" not in good
    lost = "FAIL phi-allowed (new)\n  Expected hipaa_baa in top 2\n  Found: missing from top 5 (was rank 1)"
    assert f"\n{lost}\n" in broken
    assert "6 of 25 queries broken, all new" in broken
    for run, count in (("good", 0), ("broken", 6)):
        assert f"{tmp_path}/{run}/report.html" in broken
        assert {path.name for path in (tmp_path / run).glob("[jr]*")} == {
            *("junit.xml", "report.html", "report.json", "report.md")
        }
        queries = json.loads((tmp_path / run / "report.json").read_bytes())["queries"]
        assert (len(queries), sum(query["status"] == "fail" for query in queries)) == (25, count)


@pytest.mark.parametrize(
    ("good", "broken", "why"),
    [
        (0, 0, "this check exits 0, expected 1"),
        (0, 2, "this check exits 2, expected 1"),
        (1, 1, "this check exits 1, expected 0"),
    ],
)
def test_the_demo_fails_unless_the_good_run_passes_and_the_broken_one_breaks(
    good: int, broken: int, why: str, tmp_path: Path
) -> None:
    shown = demo(tmp_path, f'case "$*" in record*) ;; */good/*) exit {good} ;; *) exit {broken} ;; esac')
    assert shown.code == 2
    assert f"make demo: {why}\n" in shown.err
    assert "What happened" not in shown.out


class Machine:
    """A clone on a machine that has these programs only; each says into ``calls`` how it is called."""

    def __init__(self, folder: Path, user: int, programs: str) -> None:
        self.clone, self.tools, self._calls = folder / "clone", folder / "tools", folder / "calls"
        (self.clone / ".ci").mkdir(parents=True)
        shutil.copy(docs.ROOT / ".ci" / "run", self.clone / ".ci")
        self.add("id", f"echo {user}")
        for name in programs.split():
            self.add(name)
        for name in ("bash", "sh", "dirname", "timeout"):
            (self.tools / name).symlink_to(str(shutil.which(name)))

    def add(self, name: str, script: str = "") -> None:
        tool(self.tools, name, f'echo "{name} $*" >>{self._calls}\n{script}')

    def run(self, ci: str = "") -> tuple[Ended, list[str]]:
        ended = spawn(cwd=self.clone, command=[".ci/run"], environ={"PATH": str(self.tools), "CI": ci})
        called = [line.strip() for line in self._calls.read_text().splitlines()]
        return ended, [call for call in called if call != "id -u"]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    require("bash")
    return Machine(tmp_path, user=1000, programs="make google-chrome jq initdb docker-compose nginx java docker")


TESTS = [
    "make environments",
    "make demo",
    "make test",
    "make site",
    "make test-record",
    "make test-oracles",
    "make bench-quick",
    "make fuzz",
]
# Postgres is left out: Debian's initdb is not in PATH, so that a machine that has it cannot be made to lack it.
PACKAGES = ["chromium", "jq", "docker-compose", "nginx-light", "default-jre-headless"]
IN_CONTAINERS = ["make test-action", "make rehearse-release"]
NO_ENGINE = (
    ".ci/run: the container tests and the rehearsal of a release cannot run here: "
    "no Docker engine answers `docker info`\n"
)


def test_what_is_there_is_used(machine: Machine) -> None:
    ended, called = machine.run(ci="true")
    assert (ended.code, ended.err) == (0, "")
    assert called == [*TESTS, "docker info", "docker info", *IN_CONTAINERS]


@pytest.mark.parametrize(("ci", "code"), [("", 0), ("true", 1)])
def test_without_an_engine_the_container_tests_are_left_out_and_ci_fails(ci: str, code: int, machine: Machine) -> None:
    machine.add("docker", "exit 1")
    ended, called = machine.run(ci)
    assert (ended.code, ended.err) == (code, NO_ENGINE)
    assert called == [*TESTS, "docker info", "docker info"]


def test_without_docker_the_container_tests_are_left_out(machine: Machine) -> None:
    (machine.tools / "docker").unlink()
    ended, called = machine.run()
    assert (ended.code, ended.err) == (0, NO_ENGINE)
    assert called == TESTS


def test_an_engine_that_can_be_brought_up_is(machine: Machine) -> None:
    machine.add("docker", '[ "$DOCKER_HOST" = here ]')
    tool(machine.clone.parent / "shared", "docker-engine", 'if [ "$*" = up ]; then echo "export DOCKER_HOST=here"; fi')
    ended, called = machine.run(ci="true")
    assert (ended.code, ended.err) == (0, "")
    assert called[-2:] == IN_CONTAINERS


def test_an_engine_that_fails_to_come_up_fails(machine: Machine) -> None:
    machine.add("docker", "exit 1")
    tool(machine.clone.parent / "shared", "docker-engine", "exit 7")
    ended, called = machine.run()
    assert ended.code == 7
    assert not set(IN_CONTAINERS) & set(called)


@pytest.mark.parametrize(
    "target",
    ["demo", "test", "site", "test-record", "test-oracles", "bench-quick", "fuzz", "test-action", "rehearse-release"],
)
def test_what_fails_fails(target: str, machine: Machine) -> None:
    machine.add("make", f'[ "$1" != {target} ]')
    ended, called = machine.run()
    assert ended.code == 1
    assert called[-1] == f"make {target}"


def test_what_cannot_be_downloaded_is_tried_three_times(machine: Machine) -> None:
    machine.add("make", "exit 1")
    ended, called = machine.run()
    assert (ended.code, called) == (1, ["make environments"] * 3)


def test_a_download_that_fails_once_fails_nothing(machine: Machine) -> None:
    first = machine.clone / "first"
    machine.add("make", f'if [ ! -e "{first}" ]; then : >"{first}"; exit 1; fi')
    ended, called = machine.run(ci="true")
    assert (ended.code, called[:3]) == (0, ["make environments", "make environments", "make demo"])


@pytest.mark.parametrize("ci", ["", "true"])
@pytest.mark.parametrize(("user", "apt", "why"), [(1000, "", "only root can install"), (0, "exit 1", "cannot install")])
def test_a_program_that_cannot_be_installed_is_reported(user: int, apt: str, why: str, ci: str, tmp_path: Path) -> None:
    require("bash")
    machine = Machine(tmp_path, user=user, programs="make docker initdb")
    machine.add("apt-get", apt)
    ended, called = machine.run(ci)
    assert ended.code == (1 if ci else 0)
    lines = ended.err.splitlines()
    assert [line.count(why) for line in lines] == ([1] if ci else [1] * len(PACKAGES))
    assert lines[0].startswith(".ci/run: the HTML report is tested in Chromium")
    assert ("make test" in called) == (not ci)


def test_root_installs_what_is_missing(tmp_path: Path) -> None:
    require("bash")
    machine = Machine(tmp_path, user=0, programs="make docker initdb apt-get")
    ended, called = machine.run(ci="true")
    assert (ended.code, ended.err) == (0, "")
    assert [call for call in called if "install" in call] == [
        f"apt-get install -qq --no-install-recommends {package}" for package in PACKAGES
    ]
