"""``rag-contract record`` as users call it: arguments, exit codes, what is printed, signals."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.builders import golden, write_jsonl
from tests.process import COMMAND, Ended, files_in, rag_contract, spawn

SEARCH = """
import os, time
from ragcontract import CallFailed, Response

def retrieve(query, context):
    return [{"doc_id": "doc1", "text": f"top {context.top}"}, "doc2"]

def fails(query, context):
    if context.query_id == "q2":
        raise CallFailed("busy", "is busy: " + os.environ.get("TOKEN", ""))
    return ["doc1"]

def fails_once(query, context):
    if (context.query_id, context.repeat) == ("q2", 2):
        raise CallFailed("timeout", "took too long")
    return ["doc1"]

def fails_in_turn(query, context):
    if f"q{context.repeat}" == context.query_id:
        raise CallFailed("timeout", "took too long")
    return ["doc1"]

def chat_fails(query, context):
    return Response(results=[{"doc_id": "doc1"}], error="HTTP 503", error_detail={"status_code": 503}, context_chars=9)

def slow(query, context):
    open("asked", "a").write(context.query_id + "\\n")
    time.sleep(0.3 if context.query_id != "hangs" else 60)
    return ["doc1"]
"""


PLAN = """\
target     search.py:fails
questions  3; 2 are in .current_run.jsonl.journal
to ask     1
calls      1 at a time, at most 5 a second, 30 s each, 1 retry
results    9
run        current_run.jsonl
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "search.py").write_text(SEARCH)
    write_jsonl(tmp_path / "golden.jsonl", [golden("q1", tags=["a"]), golden("q2"), golden("q3")])
    return tmp_path


def record(name: str, *argv: str, **environ: str) -> Ended:
    """Record a function of ``SEARCH`` as a process: what it imports must not stay in this one."""
    return spawn("record", f"search.py:{name}", *argv, cwd=Path.cwd(), environ=environ)


def rows(name: str = "current_run.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(name).read_text().splitlines()]


def test_a_run_is_recorded_that_check_reads() -> None:
    ended = record("retrieve")
    assert (ended.code, ended.out, ended.err) == (0, "recorded 3 answers in current_run.jsonl\n", "")
    assert [row["query_id"] for row in rows()] == ["q1", "q2", "q3"]
    assert rag_contract("check").code == 0


@pytest.mark.parametrize(("config", "top"), [("", 10), ("k: [5, 20]", 20), ("k: 3", 10)])
def test_as_many_results_are_asked_for_as_the_contract_needs(config: str, top: int) -> None:
    Path("ragcontract.yml").write_text(f"{config}\n")
    record("retrieve")
    assert rows()[0]["results"][0]["text"] == f"top {top}"
    record("retrieve", "--top", "7")
    assert rows()[0]["results"][0]["text"] == "top 7"


def test_questions_that_fail_leave_no_run_and_exit_2() -> None:
    ended = record("fails")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(
        "error: 1 of 3 questions failed, so no run is written; the others are in .current_run.jsonl.journal"
    )
    assert "error: busy: 1, such as query 'q2': is busy" in ended.err
    assert not Path("current_run.jsonl").exists()


def test_failures_may_be_left_out_and_retrieval_kept() -> None:
    ended = record("fails", "--on-failure", "leave-out")
    assert ended.code == 0
    assert "warning: 1 question failed and is left out (busy: 1)" in ended.err
    assert rag_contract("check").code == 2
    assert record("chat_fails", "--on-failure", "leave-out").code == 2
    assert record("chat_fails", "--on-failure", "keep-retrieval", "--fresh").code == 0
    assert rows()[0]["error_detail"] == {"status_code": 503}
    assert rag_contract("check").code == 0


def test_a_secret_is_in_nothing_that_is_written(folder: Path) -> None:
    secret = "sk-not-for-anyone"
    options = ("--secret", "TOKEN", "--stream-out", "events.jsonl", "--details", "details.json")
    ended = record("fails", *options, TOKEN=secret)
    assert ended.code == 2
    assert "is busy: ***" in ended.err
    written = files_in(folder)
    assert {"events.jsonl", "details.json", ".current_run.jsonl.journal"} <= set(written)
    assert not [name for name, data in written.items() if secret.encode() in data]


LEAKS = {
    "when_imported": "raise ValueError(os.environ['TOKEN'])",
    "when_made": "class App:\n    def __init__(self): raise ValueError(os.environ['TOKEN'])",
    "as_itself": "class Odd:\n    def __repr__(self): return os.environ['TOKEN']\nApp = Odd()",
    "as_version": "class App:\n    def run(self, query): return ['doc1']\n"
    "    def versions(self): return {'index_version': os.environ['TOKEN'], os.environ['TOKEN']: '1'}",
    "as_no_versions": "class App:\n    def run(self, query): return ['doc1']\n"
    "    def versions(self): return [os.environ['TOKEN']]",
}


@pytest.mark.parametrize("code", LEAKS.values(), ids=list(LEAKS))
def test_a_secret_that_code_tells_is_in_nothing_that_is_written(code: str, folder: Path) -> None:
    (folder / "leaks.py").write_text(f"import os\n{code}\n")
    ended = spawn("record", "leaks.py:App", "--secret", "TOKEN", cwd=folder, environ={"TOKEN": "sk-not-for-anyone"})
    assert ended.code in {0, 2}
    assert "***" in ended.err
    assert "not-for" not in ended.out + ended.err
    assert not [name for name, data in files_in(folder).items() if b"not-for" in data]


@pytest.mark.parametrize("method", ["versions", "teardown"])
def test_code_that_ends_the_program_after_all_is_answered_does_not_lose_it(method: str, folder: Path) -> None:
    (folder / "leaves.py").write_text(
        f"import sys\nclass App:\n    def run(self, query): return ['doc1']\n    def {method}(self): sys.exit(1)\n"
    )
    ended = spawn("record", "leaves.py:App", cwd=folder, environ={})
    assert (ended.code, len(rows())) == (0, 3)
    assert "SystemExit: 1" in ended.err


def test_everything_that_is_wrong_with_options_is_said_at_once() -> None:
    numbers = ("--top", "0", "--rate", "x", "--limit", "0")
    versions = ("--set", "size", "--set", "a=b", "--set", "llm_model=")
    ended = record("retrieve", *numbers, *versions, "--secret", "NOT_THERE")
    assert ended.code == 2
    assert [line.partition(": ")[2].split(":")[0] for line in ended.err.splitlines()] == [
        "--top",
        "--limit",
        "--rate",
        "--set a",
        "--set llm_model",
        "--secret NOT_THERE",
        "--set",
    ]


@pytest.mark.parametrize("option", ["--out", "--details", "--stream-out"])
@pytest.mark.parametrize(("path", "why"), [("golden.jsonl", "is an input"), ("", "is an empty path")])
def test_what_cannot_be_written_is_refused_before_anything_is_asked(option: str, path: str, why: str) -> None:
    ended = record("slow", option, path)
    assert ended.code == 2
    assert why in ended.err
    assert not Path("asked").exists()


OWN_NAMES = {
    "the target": (("--out", "search.py"), "search.py: is an input"),
    "the target, as a stream": (("--stream-out", "./search.py"), "./search.py: is an input"),
    "a file of targets": (("--details", "record.yml"), "record.yml: is an input"),
    "a program of a target": (("--out", "answer.sh"), "answer.sh: is an input"),
    "a module": (("--stream-out", "kw.py"), "kw.py: is an input"),
    "a watched file": (("--out", "prompt.txt", "--watch", "*.txt"), "prompt.txt: is an input"),
    "the configuration": (("--out", "ragcontract.yml"), "ragcontract.yml: is an input"),
    "the journal": (
        ("--details", ".current_run.jsonl.journal"),
        ".current_run.jsonl.journal: has the name of a journal",
    ),
    "another journal": (("--out", ".other.jsonl.journal"), ".other.jsonl.journal: has the name of a journal"),
    "a journal of golden queries": (("--golden", ".a.journal", "--out", "a"), ".a.journal: is an input"),
    "another output": (("--stream-out", "a.json", "--details", "./a.json"), "a.json: is another output"),
}


@pytest.mark.parametrize("further", [(), ("--plan",)], ids=["recorded", "planned"])
@pytest.mark.parametrize(("argv", "why"), OWN_NAMES.values(), ids=list(OWN_NAMES))
def test_an_output_that_is_something_else_already_is_refused(
    argv: Sequence[str], why: str, further: Sequence[str], folder: Path
) -> None:
    (folder / "search.py").write_text("import kw\n" + SEARCH)
    (folder / "kw.py").touch()
    (folder / "ragcontract.yml").touch()
    (folder / "prompt.txt").write_text("Answer briefly.")
    (folder / "answer.sh").write_text("echo '[]'\n")
    (folder / ".a.journal").write_bytes((folder / "golden.jsonl").read_bytes())
    (folder / "record.yml").write_text("command: {each: [sh, answer.sh]}")
    target = "record.yml" if {"record.yml", "answer.sh"} & {*argv} else "search.py:slow"
    before = files_in(folder)
    ended = spawn("record", target, *argv, *further, cwd=folder, environ={"PYTHONDONTWRITEBYTECODE": "1"})
    assert (ended.code, ended.out, f"error: {why}" in ended.err) == (2, "", True), ended.err
    assert files_in(folder) == before


HOSTILE = """
TEXT = "##[error]found\\n::error::found \\u202e \\u2028 \\x9b31m \\x1b[2J \\x7f \\U000e0041"
def find(query, context):
    if context.query_id == "q2":
        raise ValueError(TEXT)
    return {"results": [{"doc_id": TEXT}], "answer": TEXT, "model": TEXT, "usage": {TEXT: 1}, "x_y": {TEXT: TEXT}}
"""
ACTING = "[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\U000e0000-\U000e007f]|##\\[|^[ \t]*::"


@pytest.mark.parametrize("output", ["/dev/stdout", "/dev/stderr", "/proc/self/fd/1", "/dev/fd/2", "file.json"])
@pytest.mark.parametrize("option", ["--stream-out", "--details"])
def test_what_a_system_says_acts_on_no_terminal_or_runner(option: str, output: str, folder: Path) -> None:
    (folder / "hostile.py").write_text(HOSTILE)
    further = ("--stream-answer-chars", "1000", "--on-failure", "leave-out", "--retries", "0")
    ended = spawn("record", "hostile.py:find", option, output, *further, cwd=folder)
    assert ended.code == 0, ended.err
    printed = ended.out + ended.err + ((folder / output).read_text() if output == "file.json" else "")
    assert not re.search(ACTING, printed, re.MULTILINE)
    assert printed.count(r"##\u005berror]found\n::error::found \u202e \u2028 \u009b31m") >= 2  # results, and a failure


@pytest.mark.parametrize("out", ["/dev/stdout", "/dev/stderr", "/dev/fd/1", "/proc/self/fd/2", "/dev/null", "pipe"])
def test_a_run_which_has_raw_texts_is_written_to_a_file_of_its_own(out: str, folder: Path) -> None:
    (folder / "hostile.py").write_text(HOSTILE.replace("if context", "if not context"))
    os.mkfifo(folder / "pipe")
    why = f"error: {out}: is not a file of its own, so the run cannot be written there whole; name a file"
    for stream in ("> printed", "2> printed", "| cat", "2>&1 > printed"):
        command = f"{shlex.join(COMMAND)} record hostile.py:find --out {out} {stream}; cat printed"
        ended = subprocess.run(["bash", "-c", command], check=False, cwd=folder, capture_output=True, text=True)
        assert why in ended.stdout + ended.stderr
        assert not re.search(ACTING, ended.stdout + ended.stderr, re.MULTILINE)


def test_versions_are_set() -> None:
    assert record("retrieve", "--set", "index_version=7", "--set", "llm_model=a=b").code == 0
    assert (rows()[0]["index_version"], rows()[0]["llm_model"]) == ("7", "a=b")


def test_a_part_is_recorded() -> None:
    ended = record("retrieve", "--tag", "a", "--query", "q1", "--out", "part.jsonl")
    assert ended.code == 0
    assert "the run has only 1 of 3 golden queries" in ended.err
    assert len(rows("part.jsonl")) == 1
    assert rag_contract("check", "--run", "part.jsonl", "--tag", "a").code == 0
    assert rag_contract("check", "--run", "part.jsonl").code == 2


@pytest.mark.parametrize(
    "argv",
    [
        ("search.py:retrieve", "--golden", "golden.jsonl", "more.jsonl"),
        ("--golden", "golden.jsonl", "--golden", "more.jsonl", "search.py:retrieve"),
    ],
)
def test_the_target_may_stand_first_or_last(argv: Sequence[str], folder: Path) -> None:
    write_jsonl(folder / "more.jsonl", [golden("q4")])
    assert spawn("record", *argv, cwd=folder).code == 0
    assert len(rows()) == 4


def test_a_plan_says_what_would_be_asked_and_asks_nothing(folder: Path) -> None:
    assert record("fails", "--top", "9").code == 2
    before = files_in(folder)
    ended = record("fails", "--plan", "--top", "9", "--rate", "5/s", "--retries", "1")
    assert (ended.code, ended.out) == (
        0,
        PLAN,
    )
    other = record("fails", "--plan", "--top", "8")
    assert other.code == 2
    assert "top was '9' and is '8'" in other.err
    assert "questions  1 of 3 × 2\n" in record("fails", "--plan", "--limit", "1", "--repeats", "2", "--fresh").out
    assert files_in(folder) == before


def test_repeats_say_how_they_are_checked() -> None:
    assert record("retrieve", "--repeats", "2").out.endswith(
        "recorded 6 answers in current_run.jsonl; check it with --repeats\n"
    )
    assert rag_contract("check", "--repeats").code == 0


@contextmanager
def under_way(*argv: str) -> Iterator["subprocess.Popen[str]"]:
    """Start a recording that takes a while, and wait until it asks."""
    process = subprocess.Popen(
        [*COMMAND, "record", "search.py:slow", *argv],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    with process:
        try:
            while process.poll() is None and not Path("asked").exists():
                time.sleep(0.01)
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_lets_what_is_under_way_end_and_the_same_command_goes_on(number: signal.Signals) -> None:
    with under_way() as process:
        process.send_signal(number)
        _, err = process.communicate()
        assert process.returncode == 130
    assert err.rstrip() == (
        "interrupted: 1 of 3 answers are in .current_run.jsonl.journal; the same command asks for the others"
    )
    assert not Path("current_run.jsonl").exists()
    assert record("slow").code == 0
    assert Path("asked").read_text().split() == ["q1", "q2", "q3"]


def test_a_second_signal_ends_at_once(folder: Path) -> None:
    write_jsonl(folder / "golden.jsonl", [golden("hangs")])
    with under_way() as process:
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)  # two of one kind at a time may count as one
        assert process.wait() == 130
    assert sorted(os.listdir()) == [".current_run.jsonl.journal", "asked", "golden.jsonl", "search.py"]  # noqa: PTH208


@pytest.mark.parametrize("on_failure", ["leave-out", "keep-retrieval"])
def test_a_question_that_failed_in_one_of_its_repeats_is_left_out_with_all_of_them(on_failure: str) -> None:
    ended = record("fails_once", "--retries", "0", "--repeats", "3", "--on-failure", on_failure)
    assert ended.code == 0, ended
    assert "1 question failed and is left out, with all repeats (timeout: 1); `check` refuses" in ended.err
    assert [row["query_id"] for row in rows()] == ["q1"] * 3 + ["q3"] * 3
    ended = rag_contract("check", "--repeats")
    assert (ended.code, "has no row for golden query 'q2'" in ended.err) == (2, True), ended
    Path("ragcontract.yml").write_text("missing_queries: zero\n")
    assert rag_contract("check", "--repeats").code == 1


def test_a_run_of_which_every_question_failed_in_a_repeat_is_not_written() -> None:
    ended = record("fails_in_turn", "--retries", "0", "--repeats", "3", "--on-failure", "leave-out")
    assert (ended.code, "3 of 9 questions failed, so no run is written" in ended.err) == (2, True), ended
    assert not Path("current_run.jsonl").exists()


def test_a_second_answer_of_a_command_to_one_question_is_passed_on() -> None:
    Path("serve.py").write_text(
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    question = json.loads(line)\n"
        "    for doc_id in ('doc1', 'forbidden'):\n"
        "        print(json.dumps({'id': question['id'], 'results': [doc_id]}), flush=True)\n"
    )
    Path("record.yml").write_text(f"command: {{serve: [{json.dumps(sys.executable)}, serve.py]}}\n")
    ended = rag_contract("record", "record.yml")
    assert ended.code == 0, ended
    assert "lines that answer no question, or one again, are passed on:\n" in ended.err
    assert '"results": ["forbidden"]}' in ended.err


@pytest.mark.parametrize(("failed", "why"), [("true", "it says that it failed"), ('"no index"', "no index")])
def test_an_answer_of_a_command_that_says_that_it_failed_has_no_results(failed: str, why: str) -> None:
    answer = f'{{"failed": {failed}, "results": ["doc1"]}}'
    each = [sys.executable, "-c", f"print({answer!r})"]
    Path("record.yml").write_text(json.dumps({"command": {"each": each}}))
    ended = rag_contract("record", "record.yml", "--retries", "0")
    assert (ended.code, f"': {why}\n" in ended.err) == (2, True), ended
