"""Output that goes nowhere, to a narrow terminal, or to a wide one."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.builders import as_jsonl, golden, good_workspace, run
from tests.process import COMMAND, on_a_terminal, rag_contract, shell, spawn

RED, GREEN = "\x1b[31m", "\x1b[32m"


def broken_workspace(folder: Path) -> Path:
    """Write a contract that is broken; returns the folder."""
    good_workspace(folder)
    (folder / "current_run.jsonl").write_text(as_jsonl(run("q1", "doc1"), run("q2", "other")))
    return folder


ENDS = {
    "a closed pipe": "rag-contract check | true; exit ${PIPESTATUS[0]}",
    "standard output closed by the shell": "rag-contract check >&-",
    "standard error closed by the shell": "rag-contract check 2>&- >log",
    "both closed by the shell": "rag-contract check >&- 2>&-",
    "a full standard error": "rag-contract check 2>/dev/full >log",
}


@pytest.mark.parametrize("script", ENDS.values(), ids=ENDS.keys())
def test_the_exit_code_is_the_verdict_wherever_output_goes(script: str, tmp_path: Path) -> None:
    folder = broken_workspace(tmp_path)
    with (folder / "golden.jsonl").open("a") as file:  # for a warning on standard error
        file.write(as_jsonl(golden("q3", "doc1", weigth=2)))
    with (folder / "current_run.jsonl").open("a") as file:
        file.write(as_jsonl(run("q3", "doc1")))
    broken = shell(script, cwd=folder)
    assert broken.code == 1
    assert "Traceback" not in broken.err
    assert "Exception" not in broken.err
    (folder / "golden.jsonl").write_text("")
    assert shell(script, cwd=folder).code == 2


def test_the_exit_code_of_a_bug_is_3_wherever_output_goes(tmp_path: Path) -> None:
    (tmp_path / "stub" / "msgspec").mkdir(parents=True)
    (tmp_path / "stub" / "msgspec" / "__init__.py").write_text("raise ImportError('no such thing')")
    for end in ("", "2>&-", "2>/dev/full", "2>&1 | true; exit ${PIPESTATUS[0]}"):
        ended = shell(f"PYTHONPATH=stub rag-contract check {end}", cwd=tmp_path)
        assert ended.code == 3, end


def test_a_result_that_does_not_fit_on_standard_output_is_no_pass(tmp_path: Path) -> None:
    ended = shell("rag-contract score > /dev/full", cwd=good_workspace(tmp_path))
    assert ended == (2, "", "error: standard output: cannot be written (No space left on device)\n")


def test_a_narrow_standard_output_shows_escapes(tmp_path: Path) -> None:
    broken_workspace(tmp_path)
    (tmp_path / "golden.jsonl").write_text(as_jsonl(golden("q1", "doc1"), golden("q2", "dök ✓")))
    ended = spawn("check", cwd=tmp_path, environ={"PYTHONIOENCODING": "ascii"})
    assert ended.code == 1
    assert "Expected d\\xf6k \\u2713 in top 5" in ended.out


def test_colours_are_for_terminals_only(tmp_path: Path) -> None:
    broken_workspace(tmp_path)
    shown = on_a_terminal("check", cwd=tmp_path)
    piped = spawn("check", cwd=tmp_path)
    assert shown.code == piped.code == 1
    assert RED in shown.out
    assert "\x1b" not in piped.out
    assert "FAIL q2" in piped.out


def test_no_color_is_respected(tmp_path: Path) -> None:
    shown = on_a_terminal("check", cwd=broken_workspace(tmp_path), environ={"NO_COLOR": "1"})
    assert "FAIL q2" in shown.out
    assert "\x1b" not in shown.out
    assert RED in on_a_terminal("check", cwd=tmp_path, environ={"NO_COLOR": ""}).out


def test_a_pass_is_green_on_a_terminal(tmp_path: Path) -> None:
    shown = on_a_terminal("check", cwd=good_workspace(tmp_path))
    assert GREEN in shown.out
    assert RED not in shown.out


def test_a_progress_bar_is_for_terminals_and_large_inputs_only(tmp_path: Path) -> None:
    good_workspace(tmp_path)
    assert "reading" not in on_a_terminal("validate", cwd=tmp_path).out
    padding = {"metadata": {"padding": "x" * (1 << 20)}}
    with (tmp_path / "current_run.jsonl").open("a") as file:
        file.writelines(json.dumps(run(f"more{n}") | padding) + "\n" for n in range(17))
    shown = on_a_terminal("validate", cwd=tmp_path)
    assert "reading" in shown.out
    assert "100%" in shown.out
    assert "17 rows for no golden query, left out: 'more0', 'more1', 'more2' and 14 more" in shown.out
    assert "reading" not in spawn("validate", cwd=tmp_path).err


def test_commands_to_a_runner_are_broken_up_in_both_streams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    hostile = "::error::x ##[error]y"
    Path("golden.jsonl").write_text(as_jsonl(golden("q1", hostile), golden(hostile, "doc2", queri="?")))
    Path("current_run.jsonl").write_text(as_jsonl(run("q1", "a", "b"), run(hostile, "a")))
    Path("baseline.jsonl").write_text(as_jsonl(run("q1", hostile), run(hostile, "doc2")))
    for command in ("check", "diff", "validate"):
        ended = rag_contract(command, "--baseline", "baseline.jsonl")
        lines = [line.strip() for line in (ended.out + ended.err).splitlines()]
        assert not [line for line in lines if line.startswith("::") or "##[" in line], command
    usage = rag_contract("check", "--\x1b[31m")
    assert (usage.code, "\x1b" in usage.err) == (2, False)


def test_the_working_folder_is_not_imported_from(tmp_path: Path) -> None:
    good_workspace(tmp_path)
    for name in ("json", "yaml", "click", "platform", "msgspec", "enum"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('imported from the working folder')")
    assert spawn("check", cwd=tmp_path).code == 0


def test_an_import_that_fails_is_a_bug_and_says_what_to_report(tmp_path: Path) -> None:
    (tmp_path / "stub").mkdir()
    (tmp_path / "stub" / "msgspec.py").write_text("raise ImportError('broken \\x1b[31m build')")
    ended = spawn("check", cwd=tmp_path, environ={"PYTHONPATH": "stub"})
    assert (ended.code, ended.out) == (3, "")
    assert "ImportError: broken \\x1b[31m build" in ended.err
    assert "this is a bug of ours, not a verdict on your retriever" in ended.err


def test_the_console_script_is_the_same_command(tmp_path: Path) -> None:
    script = Path(COMMAND[0]).with_name("rag-contract")
    good_workspace(tmp_path)
    assert spawn("check", cwd=tmp_path, command=(str(script),)) == spawn("check", cwd=tmp_path)


def test_an_interrupt_has_the_exit_code_of_one(tmp_path: Path) -> None:
    good_workspace(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    process = subprocess.Popen(
        [*COMMAND, "check", "--run", "pipe"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 (no threads here)
    )
    with (tmp_path / "pipe").open("wb"):  # opens once the check reads it
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, b"\n")
