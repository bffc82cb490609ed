"""Code that ends or replaces the process while it is recorded: the run that was there before is not judged for it."""

import signal
import subprocess
from pathlib import Path

import pytest

from tests.builders import golden, run, write_baseline, write_jsonl
from tests.process import COMMAND, rag_contract, spawn

ENDS = {
    "os._exit while it is asked": "import os\ndef answer(question):\n    os._exit(0)\n",
    "os._exit after an answer": (
        "import os\nasked = []\ndef answer(question):\n    asked.append(question)\n"
        "    if len(asked) > 1:\n        os._exit(0)\n    return ['doc1']\n"
    ),
    "os._exit while it is imported": "import os\nos._exit(0)\ndef answer(question):\n    return ['doc1']\n",
    "os.execv": "import os\ndef answer(question):\n    os.execv('/bin/true', ['true'])\n",
    "os.execv while it is imported": "import os\nos.execv('/bin/true', ['true'])\n",
    "a signal": "import os, signal\ndef answer(question):\n    os.kill(os.getpid(), signal.SIGKILL)\n",
    "another folder": "import os\nos.chdir('/')\ndef answer(question):\n    os._exit(0)\n",
}
JOURNAL = Path(".current_run.jsonl.journal")


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_jsonl(Path("golden.jsonl"), [golden("q1", "doc1"), golden("q2", "doc1")])
    write_jsonl(Path("current_run.jsonl"), [run("q1", "doc1"), run("q2", "doc1")])


def recorded(code: str, *options: str) -> int:
    """Record in a process of its own, without a worker for the code, and return the exit code."""
    Path("app.py").write_text(code)
    return spawn("record", "app.py:answer", *options, cwd=Path()).code


@pytest.mark.parametrize("code", ENDS.values(), ids=ENDS)
def test_a_run_is_not_judged_whose_recording_did_not_end(code: str) -> None:
    before = Path("current_run.jsonl").read_bytes()
    assert rag_contract("check").code == 0
    assert recorded(code) == (-signal.SIGKILL if "SIGKILL" in code else 0)
    ended = rag_contract("check")
    assert ended.code == 2
    assert f"current_run.jsonl: may be old: a recording of it did not end, as {JOURNAL} shows" in ended.err
    assert Path("current_run.jsonl").read_bytes() == before
    assert recorded("def answer(question):\n    return ['other']\n", "--fresh") == 0
    assert rag_contract("check").code == 1


def test_a_run_is_not_judged_by_any_of_its_names_whose_recording_did_not_end() -> None:
    Path("runs").mkdir()
    Path("current_run.jsonl").rename("runs/today.jsonl")
    Path("link.jsonl").symlink_to("runs/today.jsonl")
    Path("links").symlink_to("runs")
    names = ["link.jsonl", "runs/today.jsonl", "links/today.jsonl"]
    for name in names:
        assert recorded("import os\nos._exit(0)\n", "--out", name) == 0
        for read in names:
            ended = rag_contract("check", "--run", read)
            assert (ended.code, f"{read}: may be old: a recording of it did not end" in ended.err) == (2, True)
        Path("runs/.today.jsonl.journal").unlink()
    assert recorded("def answer(question):\n    return ['other']\n", "--out", "link.jsonl") == 0
    assert (Path("link.jsonl").is_symlink(), list(Path().rglob("*.journal"))) == (True, [])
    assert rag_contract("check", "--run", "runs/today.jsonl").code == 1


@pytest.mark.parametrize(
    "argv",
    [
        ("lint",),
        ("validate",),
        ("baseline",),
        ("suggest",),
        ("check", "--run", "current*.jsonl"),
    ],
    ids=" ".join,
)
def test_no_command_reads_it(argv: tuple[str, ...]) -> None:
    JOURNAL.touch()
    ended = rag_contract(*argv)
    assert (ended.code, "current_run.jsonl: may be old" in ended.err) == (2, True)


def test_a_good_run_that_serves_as_the_baseline_is_not_read_either() -> None:
    Path("current_run.jsonl").rename("good.jsonl")
    write_jsonl(Path("current_run.jsonl"), [run("q1", "doc1"), run("q2", "doc1")])
    Path(".good.jsonl.journal").touch()
    ended = rag_contract("check", "--baseline", "good.jsonl")
    assert (ended.code, "good.jsonl: may be old" in ended.err) == (2, True)


FAILS = {
    "the import": "raise OSError('no index')\n",
    "sys.exit": "import sys\nsys.exit(0)\n",
    "another folder": "import os\nos.chdir('/')\nraise OSError('no index')\n",
    "every question": "def answer(question):\n    raise OSError('no index')\n",
    "no such function": "def other(question):\n    return ['doc1']\n",
}
AT_EXIT = "import atexit, os\natexit.register(os._exit, 0)\n"
THREADS = (
    "import threading\nfrom concurrent.futures import ThreadPoolExecutor\n"
    "ThreadPoolExecutor().submit(threading.Event().wait, 0.1)\n"
)


@pytest.mark.parametrize("hook", ["", AT_EXIT, AT_EXIT + THREADS], ids=["", "a hook at exit", "a hook and threads"])
@pytest.mark.parametrize("code", FAILS.values(), ids=FAILS)
def test_a_run_is_not_judged_whose_recording_failed_even_if_nobody_looks_at_the_exit_code(code: str, hook: str) -> None:
    assert recorded(hook + code, "--retries", "0") == 2
    ended = rag_contract("check")
    assert (ended.code, "current_run.jsonl: may be old: a recording of it did not end" in ended.err) == (2, True)
    assert recorded(f"{hook}def answer(question):\n    return ['other']\n") == 0
    assert not JOURNAL.exists()
    assert rag_contract("check").code == 1


def test_processes_of_a_failed_recording_do_not_outlive_it() -> None:
    code = "import multiprocessing, time\nmultiprocessing.Process(target=time.sleep, args=(60,), daemon=True).start()\n"
    Path("app.py").write_text(code + FAILS["every question"])
    with subprocess.Popen(
        [*COMMAND, "record", "app.py:answer", "--retries", "0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        process.communicate(timeout=30)  # until no process has the pipe any more
    assert process.returncode == 2


def test_a_plan_leaves_nothing_and_a_stored_baseline_is_read_beside_a_journal() -> None:
    assert recorded("def answer(question):\n    return ['doc1']\n", "--plan") == 0
    assert not JOURNAL.exists()
    write_baseline(Path("baseline.json"))
    assert rag_contract("check").code == 0
