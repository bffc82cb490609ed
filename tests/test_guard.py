import errno
import io
import platform
import re
import subprocess
import sys

import pytest

from ragcontract import __version__
from ragcontract.core.errors import ExitCode, InputError, OutputError
from ragcontract.guard import guarded
from scripts.docs import README


def reported(error: BaseException) -> tuple[int, str]:
    """Return the exit code and what is said when a command raises an error."""

    def run() -> int:
        raise error

    stderr = io.StringIO()
    return guarded(run, stderr), stderr.getvalue()


@pytest.mark.parametrize("code", [0, 1, 2])
def test_the_exit_code_of_a_command_is_passed_on(code: int) -> None:
    stderr = io.StringIO()
    assert guarded(lambda: code, stderr) == code
    assert stderr.getvalue() == ""


def test_problems_are_reported_one_a_line_behind_the_warnings() -> None:
    error = InputError(["a.jsonl:1: is bad", "b"], more=3, warnings=["odd"])
    assert reported(error) == (2, "warning: odd\nerror: a.jsonl:1: is bad\nerror: b\nerror: … and 3 more like these\n")


@pytest.mark.parametrize("code", [0, None, 3, "bye"])
def test_code_of_a_user_that_ends_the_program_is_no_success(code: object) -> None:
    why = f"error: code that this command runs ended the program (SystemExit({'' if code is None else repr(code)}))\n"
    assert reported(SystemExit(code) if code is not None else SystemExit()) == (2, why)


def test_an_output_that_cannot_be_written_is_unusable_input_too() -> None:
    assert reported(OutputError(["x: no"])) == (2, "error: x: no\n")


def test_what_is_reported_cannot_act_on_a_terminal_or_a_runner() -> None:
    assert reported(InputError(["\x1b[2J\n::error::x ##[group]"])) == (
        2,
        "error: \\x1b[2J\\n::error::x ##\\x5bgroup]\n",
    )


def test_an_interrupt_is_not_a_verdict() -> None:
    assert reported(KeyboardInterrupt()) == (130, "")


@pytest.mark.parametrize(
    "error", [ImportError("no"), ZeroDivisionError(), OSError("no"), RecursionError(), UnicodeError()]
)
def test_everything_else_is_a_bug_of_ours(error: BaseException) -> None:
    code, text = reported(error)
    assert code == 3
    assert type(error).__name__ in text
    assert f"rag-contract {__version__}, Python {platform.python_version()}" in text


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        ImportError("x.so: failed to map segment from shared object"),
        RuntimeError("can't start new thread"),
    ],
)
def test_memory_that_ran_out_is_no_bug_of_ours_and_says_how_much_there_was(error: BaseException) -> None:
    code, text = reported(error)
    assert code == 2
    assert re.fullmatch(r"error: memory ran out: .*the peak was [\d,.]+ MiB; give it more memory, or split .*\n", text)


def test_what_was_raised_because_memory_ran_out_is_no_bug_of_ours_either() -> None:
    error = KeyError("x")
    error.__context__ = ImportError("half a module")
    error.__context__.__cause__ = MemoryError()
    assert reported(error)[0] == 2


def test_a_bug_cannot_act_on_a_runner_either() -> None:
    _, text = reported(ValueError("\n::error::x\n\x1b[31m##[error]"))
    assert "\n::" not in text
    assert "\x1b" not in text
    assert "##[" not in text


def test_exit_codes_are_those_of_the_readme() -> None:
    table = README.read_text().partition("\n## Exit codes\n")[2].partition("\n## ")[0]
    meanings = {int(code): meaning for code, meaning in re.findall(r"^\| (\d+) \| (.*) \|$", table, re.MULTILINE)}
    starts = {
        ExitCode.PASS: "pass",
        ExitCode.BROKEN: "the contract is broken",
        ExitCode.UNUSABLE_INPUT: "the input cannot be judged",
        ExitCode.BUG: "a bug in rag-contract",
        ExitCode.NO_COMMENT: "the action only",
    }
    assert meanings.keys() == starts.keys() == set(ExitCode)
    assert all(meanings[code].startswith(start) for code, start in starts.items())


def test_a_bug_that_cannot_be_reported_is_none_of_the_contract() -> None:
    class Hostile(Exception):  # noqa: N818
        def __str__(self) -> str:
            raise KeyError

    def unwritable(_text: str) -> int:
        raise UnicodeError

    stderr = io.StringIO()
    stderr.write = unwritable  # type: ignore[method-assign]

    def run() -> int:
        raise Hostile

    assert guarded(run, stderr) == 3


@pytest.mark.parametrize("code", [0, 1])
def test_a_process_looks_for_no_garbage_and_keeps_its_exit_code(code: int) -> None:
    program = (
        "import gc, sys; from ragcontract.guard import whole_process\n"
        f"code = whole_process(lambda: 10 * gc.isenabled() + {code})\n"
        "sys.exit(code if gc.get_freeze_count() > 1000 else 20)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == code


def test_a_bug_report_hands_the_environment_to_no_other_program() -> None:
    code = (
        "import sys, io; from ragcontract.guard import guarded\n"
        "started = []\n"
        "sys.addaudithook(lambda event, args: event == 'subprocess.Popen' and started.append(args))\n"
        "guarded(lambda: 1 // 0, io.StringIO()); sys.exit(len(started))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    "start",
    [
        "threading.Thread(target=time.sleep, args=(600,)).start()",
        "concurrent.futures.ThreadPoolExecutor().submit(time.sleep, 600)",
    ],
)
def test_a_thread_that_does_not_end_does_not_keep_the_process(start: str) -> None:
    code = (
        "import concurrent.futures, threading, time; from ragcontract.guard import leave\n"
        f"threading.Thread(target=lambda: {start}, daemon=True).start(); time.sleep(0.1)\n"
        "print('said'); leave(2, grace=0.1)"
    )
    ended = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (2, b"said\n")
