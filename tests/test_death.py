"""A check that is killed, stopped, or cannot write its log: no green comment stays, no temporary file is left."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import scenarios
from tests.builders import golden, run, write_jsonl
from tests.github.standin import GitHub
from tests.process import files_in, spawn
from tests.runner import ROOT, AsProcess

DIES = "import ragcontract.pipeline as pipeline\npipeline.check = lambda *_, **__: os.kill(os.getpid(), {})"
# A format that does not get ready: the file `ready` says that a part of its file is on disk.
STUCK = """
import pathlib, time, ragcontract.report.json_report as json_report
def render(*_):
    yield b"begun"
    pathlib.Path("ready").touch()
    time.sleep(60)
json_report.render = render
"""
ROWS = 200_000


@pytest.fixture
def runner(tmp_path: Path, github: GitHub) -> AsProcess:
    return AsProcess(tmp_path, github)


def says_so(runner: AsProcess, code: int, message: str) -> None:
    """Run a check that ends without a verdict after one that passed, and see that this is said everywhere."""
    result = runner.run(run=101)
    assert result.exit_code == code, result.log
    assert result.outputs["verdict"] == "error"
    reports = [(runner.workspace / name).read_text() for name in ("report.md", "report.json", "junit.xml")]
    (comment,) = runner.github.bodies()
    assert "could not be judged" in comment
    for text in (result.log, result.summary, comment, *reports):
        assert message in text.replace("&#8203;", "").replace("\\", "")


def passed_before(runner: AsProcess) -> None:
    setup, runner.setup = runner.setup, ""
    scenarios.passing(runner.workspace)
    assert runner.run().exit_code == 0
    assert "✅" in runner.github.bodies()[0]
    runner.setup = setup


def test_a_check_that_the_system_kills_leaves_no_green_comment(runner: AsProcess) -> None:
    runner.setup = DIES.format(int(signal.SIGKILL))
    passed_before(runner)
    says_so(runner, 2, "the check was killed, most likely because memory ran out: it had used")


def test_a_check_that_crashes_is_a_bug_and_leaves_no_green_comment(runner: AsProcess) -> None:
    runner.setup = "import resource\nresource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"
    runner.setup += DIES.format(int(signal.SIGSEGV))
    passed_before(runner)
    says_so(runner, 3, "A bug in rag-contract")


def test_a_check_that_is_killed_while_it_is_delivered_keeps_its_verdict(runner: AsProcess) -> None:
    runner.setup = (
        "import ragcontract.action as action\nparent, deliver = os.getpid(), action.deliver\n"
        "action.deliver = lambda *a, **k: deliver(*a, **k) if os.getpid() == parent else os.kill(os.getpid(), 9)"
    )
    passed_before(runner)
    scenarios.failing(runner.workspace)
    result = runner.run(run=101)
    assert result.exit_code == 1, result.log
    assert '"verdict": "fail"' in (runner.workspace / "report.json").read_text()
    (comment,) = runner.github.bodies()
    for text in (result.log, result.summary, comment):
        assert "The check ended with exit code 1, but was killed while its result was delivered" in text


def test_a_relay_that_is_killed_exits_2(runner: AsProcess) -> None:
    runner.setup = "import ragcontract.action as action\naction.relay = lambda *_: os.kill(os.getpid(), 9)"
    result = runner.run({"mode": "post-comment"})
    assert result.exit_code == 2
    assert "posting the comment was killed, most likely because memory ran out" in result.log


def test_where_no_child_can_be_started_the_check_runs_in_the_process_itself(runner: AsProcess) -> None:
    runner.setup = "def refuse(): raise BlockingIOError(11, 'no more processes')\nos.fork = refuse"
    scenarios.failing(runner.workspace)
    assert runner.run().exit_code == 1


def limited(more: int) -> str:
    """Return statements that leave a process ``more`` bytes of addresses over those that it has."""
    return (
        "import resource\n"
        "size = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        f"resource.setrlimit(resource.RLIMIT_AS, (size + {more}, resource.RLIM_INFINITY))"
    )


def too_large(workspace: Path) -> None:
    write_jsonl(workspace / "golden.jsonl", [golden("q", "doc1")])
    write_jsonl(workspace / "current_run.jsonl", [run("q", *map(str, range(ROWS)))])


def test_an_action_with_too_little_memory_says_how_much_it_has(runner: AsProcess) -> None:
    runner.setup = limited(20 << 20)
    passed_before(runner)
    too_large(runner.workspace)
    says_so(runner, 2, "memory ran out: ")


def test_a_command_with_too_little_memory_says_how_much_it_has(tmp_path: Path) -> None:
    too_large(tmp_path)
    program = f"{limited(20 << 20)}\nfrom ragcontract.guard import entry_point\nentry_point()"
    ended = spawn(
        "check", cwd=tmp_path, command=(sys.executable, "-c", f"import ragcontract.cli.commands.check\n{program}")
    )
    assert ended.code == 2, ended.err
    # A library in C may crash instead of raising MemoryError; its process can then not say how much it has.
    raised = r"error: memory ran out: `ulimit -v` allows [\d,.]+ MiB, and the peak was [\d,.]+ MiB; .*\n"
    crashed = (
        r"error: rag-contract check was killed, most likely because memory ran out: it had used [\d,.]+ MiB of the .*\n"
    )
    assert re.fullmatch(f"{raised}|{crashed}", ended.err), ended.err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("kind", ["command", "action"])
def test_a_check_that_is_stopped_leaves_no_temporary_file(kind: str, number: int, tmp_path: Path) -> None:
    scenarios.passing(tmp_path)
    call = "entry_point()" if kind == "command" else "from_runner"
    start = "entry_point()" if kind == "command" else f"sys.exit(whole_process({call}))"
    program = (
        # In a shell's background job, tests inherit that SIGINT is ignored.
        "import signal, sys\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from ragcontract.guard import entry_point, whole_process\n"
        f"from ragcontract.action import from_runner\n{STUCK}\n{start}"
    )
    environ = {"GITHUB_WORKSPACE": str(tmp_path), "INPUT_COMMENT": "never", "PYTHONPATH": str(ROOT)}
    before = files_in(tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-c", program, "check"], cwd=tmp_path, env=os.environ | environ, stdout=subprocess.DEVNULL
    )
    try:
        while not (tmp_path / "ready").exists():
            assert process.poll() is None
            time.sleep(0.01)
        assert any(name.endswith(".tmp") for name in files_in(tmp_path))
        process.send_signal(number)
        assert process.wait(30) == 130
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    assert files_in(tmp_path).keys() == before.keys() | {"ready"}


LOGS = {
    "full": "os.dup2(os.open('/dev/full', os.O_WRONLY), 1)",
    "a pipe that nobody reads": "r, w = os.pipe()\nos.close(r)\nos.dup2(w, 1)",
    "closed by the shell": "sys.stdout = None",
    "closed": "sys.stdout.close()",
}


@pytest.mark.parametrize("setup", LOGS.values(), ids=LOGS.keys())
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_log_that_cannot_be_written_changes_no_verdict(runner: AsProcess, setup: str, unbuffered: str) -> None:
    runner.setup = setup
    passed_before(runner)
    scenarios.failing(runner.workspace)
    result = runner.run(run=101, environ={"PYTHONUNBUFFERED": unbuffered})
    assert result.exit_code == 1, result.log
    assert "❌" in runner.github.bodies()[0]
    assert "Traceback" not in result.log
    scenarios.unusable(runner.workspace)
    assert runner.run(run=102).exit_code == 2


def test_commands_are_stopped_by_no_signal_that_was_ignored_before(tmp_path: Path) -> None:
    scenarios.passing(tmp_path)
    program = (
        "import signal, os\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nfrom ragcontract import guard\n"
        "print(guard.whole_process(lambda: os.kill(os.getpid(), signal.SIGTERM) or 7))"
    )
    assert spawn(cwd=tmp_path, command=(sys.executable, "-c", program)).out == "7\n"
