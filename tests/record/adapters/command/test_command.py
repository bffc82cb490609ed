"""Commands: one process a question, or one for all; what they write, how they fail, and that none is left over."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.net.secrets import Secrets
from ragcontract.record.adapters.process_serve import Program, ServedProcess
from ragcontract.record.interface import CallFailed, System
from tests.record.systems import asked, context, doc_ids, target_of

SECRET = "topsecretvalue"
PATIENCE = 20  # s


@pytest.fixture(autouse=True)
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def command(mode: str, program: str, **options: Any) -> System:
    """Return a command that runs a program of Python."""
    Path("program.py").write_text(program)
    Path("record.yml").write_text(json.dumps({"command": {mode: [sys.executable, "program.py"], **options}}))
    return target_of(Path(), "record.yml", secrets=Secrets({"TOKEN": SECRET})).system


def each(program: str, **options: Any) -> System:
    return command("each", f"import json, os, sys, time\nasked = json.loads(sys.stdin.read())\n{program}", **options)


def serve(answer: str, **options: Any) -> System:
    """Return a command that answers each line, in which ``asked`` is the question and ``say`` writes a line."""
    program = f"""
import json, os, subprocess, sys, time
def say(**fields):
    print(json.dumps(fields), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    {answer}
"""
    return command("serve", program, **options)


def failure(system: System, **fields: Any) -> CallFailed:
    with pytest.raises(CallFailed) as failed:
        asked(system, **fields)
    return failed.value


def wait_for(name: str) -> None:
    """Wait until a program has made a file."""
    until = time.monotonic() + PATIENCE
    while not Path(name).exists() and time.monotonic() < until:
        time.sleep(0.01)
    assert Path(name).exists()


def gone(pid: int) -> bool:
    """Wait until a process is gone, and say whether it is; a zombie that nobody waits for is."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.01)
    return False


@pytest.fixture(params=["each", "serve"])
def echo(request: pytest.FixtureRequest) -> Iterator[System]:
    """A command that says what it was asked, in both modes."""
    fields = "asked['query_id'], asked['query'], asked['top'], asked['messages'], asked['metadata']"
    if request.param == "each":
        yield each(f"print(json.dumps({{'results': [], 'response': json.dumps([{fields}])}}))")
    else:
        yield serve(f"say(id=asked['id'], results=[], response=json.dumps([{fields}]))")


def test_it_gets_the_question_with_its_context(echo: System) -> None:
    said = asked(echo, "Où?", messages=({"role": "user", "content": "Hi"},), metadata={"a": 1}).response
    assert json.loads(str(said)) == ["q1", "Où?", 5, [{"role": "user", "content": "Hi"}], {"a": 1}]


def test_it_may_answer_whatever_a_function_may_return() -> None:
    assert doc_ids(asked(each("print(json.dumps(['a', 'b']))"))) == ["a", "b"]


def test_it_finds_variables_and_the_trace_in_its_environment() -> None:
    system = each(
        "print(json.dumps({'answer': os.environ['KEY'] + ' ' + os.environ['TRACEPARENT'] + ' ' + os.getcwd()}))",
        environ={"KEY": "a ${secret:TOKEN} b"},
        folder="..",
    )
    Path("../program.py").write_text(Path("program.py").read_text())
    assert asked(system, traceparent="00-1-2-01").response == f"a {SECRET} b 00-1-2-01 {Path('..').resolve()}"


def test_it_is_no_shell(tmp_path: Path) -> None:
    Path("record.yml").write_text(json.dumps({"command": {"each": ["echo", '["$HOME; touch here"]']}}))
    assert doc_ids(asked(target_of(tmp_path, "record.yml").system)) == ["$HOME; touch here"]
    assert not Path("here").exists()


EACH_FAILS = {
    "sys.stderr.write('no index\\n'); sys.exit(3)": ("exit_code", False, "exit code 3; its last words were: no index"),
    "print('Hello')": ("not_json", False, "wrote something else than JSON"),
    "pass": ("not_json", False, "ended without an answer; print it as JSON to standard output"),
    "print(json.dumps({'error': 'no index'}))": ("error", False, "no index"),
    "print(json.dumps({'failed': {'message': 'busy', 'kind': 'busy', 'again': True}}))": ("busy", True, "busy"),
    "os.kill(os.getpid(), 9)": ("exit_code", False, "exit code -9"),
    f"print('{SECRET}')": ("not_json", False, "***"),
    "sys.stdout.write('x' * 20_000_000)": ("too_large", False, "wrote more than 16 MiB"),
}


@pytest.mark.parametrize(("program", "expected"), EACH_FAILS.items(), ids=lambda one: one[0] if len(one) == 3 else "")
def test_a_program_that_fails_says_why(program: str, expected: tuple[str, bool, str]) -> None:
    failed = failure(each(program))
    assert (failed.kind, failed.again) == expected[:2]
    assert expected[2] in str(failed)
    assert SECRET not in str(failed)


TWICE = r"""'{"id": %s, "response": "A", "response": "B"}'"""


@pytest.mark.parametrize(("make", "number"), [(each, "1"), (serve, "asked['id']")])
def test_two_values_for_one_key_are_no_answer(make: Any, number: str) -> None:
    failed = failure(make(f"print({TWICE} % {number}, flush=True)"))
    assert "duplicate key 'response' in one object" in str(failed)


@pytest.mark.parametrize("make", [each, serve])
def test_one_that_hangs_is_killed_with_what_it_started(make: Any) -> None:
    program = "child = subprocess.Popen(['sleep', '3600']); open('pids', 'w').write(f'{os.getpid()} {child.pid}')"
    system = make(f"import subprocess; {program}; os.rename('pids', 'known'); time.sleep(3600)")
    system.setup()
    waiting = threading.Thread(target=lambda: failures.append(failed_of(system)))
    failures: list[CallFailed] = []
    waiting.start()
    wait_for("known")
    waiting.join()
    system.teardown()
    assert [(failed.kind, failed.again) for failed in failures] == [("read_timeout", True)]
    assert all(gone(int(pid)) for pid in Path("known").read_text().split())


def failed_of(system: System, seconds: float = 2) -> CallFailed:
    with pytest.raises(CallFailed) as failed:
        system.ask("?", context(seconds=seconds))
    return failed.value


def test_what_a_program_leaves_behind_does_not_hold_its_answer_up() -> None:
    """A process in the background has the same standard output: waiting for its end would wait for that one's."""
    system = each("import subprocess; subprocess.Popen(['sleep', '30']); print('[\"a\"]')")
    assert doc_ids(asked(system, seconds=PATIENCE)) == ["a"]


def test_programs_that_run_are_killed_in_the_end() -> None:
    system = each("open('pid', 'w').write(str(os.getpid())); os.rename('pid', 'known'); time.sleep(3600)")
    system.setup()
    waiting = threading.Thread(target=lambda: failed_of(system, 3600))
    waiting.start()
    wait_for("known")
    system.teardown()
    waiting.join()
    assert gone(int(Path("known").read_text()))


@pytest.mark.parametrize("mode", ["each", "serve"])
def test_a_program_that_is_not_there_ends_the_recording(mode: str) -> None:
    Path("record.yml").write_text(json.dumps({"command": {mode: ["no-such-program"]}}))
    with pytest.raises(InputError, match=r"no-such-program: cannot be started \(No such file or directory\)"):
        asked(target_of(Path(), "record.yml").system)


def test_answers_may_come_in_any_order() -> None:
    system = serve(
        "held = globals().setdefault('held', []); held.append(asked);"
        "[say(id=one['id'], results=[one['query']]) for one in reversed(held) if len(held) == 3]"
    )
    system.setup()
    found: dict[str, list[str]] = {}
    threads = [
        threading.Thread(target=lambda name=name: found.update({name: doc_ids(system.ask(name, context()))}))
        for name in "abc"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    system.teardown()
    assert found == {"a": ["a"], "b": ["b"], "c": ["c"]}


def test_lines_that_are_no_answers_are_passed_on_and_counted(capsys: pytest.CaptureFixture[str]) -> None:
    prints = "print('::error::loud'); print('[1]'); print('{\"id\": 99}'); say(id=asked['id'], results=['a'])"
    system = serve(prints)
    assert doc_ids(asked(system)) == ["a"]
    assert system.facts()["command"]["stray_lines"] == 3
    said = capsys.readouterr().err.splitlines()
    assert said[0].endswith("lines that answer no question, or one again, are passed on:")
    assert said[1:] == ["\\x3a:error::loud", "[1]", '{"id": 99}']


def test_a_process_that_ends_is_started_again() -> None:
    system = serve("say(id=asked['id'], results=['a']) if asked['query'] == 'good' else sys.exit('no memory')")
    system.setup()
    for _ in range(bounds.RESTARTS + 2):  # an answer between them: it is not broken
        with pytest.raises(CallFailed, match=r"exit code 1; its last words were: no memory") as failed:
            system.ask("bad", context())
        assert (failed.value.kind, failed.value.again) == ("process_ended", True)
        assert doc_ids(system.ask("good", context())) == ["a"]
    system.teardown()


def test_a_process_that_ends_time_and_again_ends_the_recording() -> None:
    system = serve("sys.exit('no memory')")
    system.setup()
    for _ in range(bounds.RESTARTS + 1):
        with pytest.raises(CallFailed):
            system.ask("?", context())
    with pytest.raises(InputError, match=r"4 times in a row without an answer; its last words were: no memory"):
        system.ask("?", context())
    system.teardown()


def test_the_others_that_a_hanging_question_takes_along_are_asked_again() -> None:
    system = serve("time.sleep(3600)")
    system.setup()
    failures: list[CallFailed] = []

    def other() -> None:
        with pytest.raises(CallFailed) as failed:
            system.ask("other", context())
        failures.append(failed.value)

    thread = threading.Thread(target=other)
    thread.start()
    with pytest.raises(CallFailed):
        system.ask("first", context(seconds=0.5))
    thread.join()
    system.teardown()
    assert all((one.kind, one.again) == ("process_ended", True) for one in failures)


def test_a_process_that_does_not_read_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pipe to it is full: who writes to it waits, but not who asks."""
    monkeypatch.setattr(bounds, "STOPPING", 0.1)
    system = command("serve", "import time\ntime.sleep(3600)\n")
    assert failure(system, query="x" * 1_000_000, seconds=0.5).kind == "read_timeout"


def test_a_line_that_is_too_long_fails_its_question() -> None:
    failed = failure(serve("print('x' * 20_000_000, flush=True)"))
    assert (failed.kind, "a line of more than 16 MiB" in str(failed)) == ("process_ended", True)


def test_one_that_says_when_it_is_ready_is_waited_for() -> None:
    program = """
import json, sys
print("loading the model")
print(json.dumps({"ready": True}), flush=True)
for line in sys.stdin:
    print(json.dumps({"id": json.loads(line)["id"], "results": ["a"]}), flush=True)
"""
    assert doc_ids(asked(command("serve", program, ready=True))) == ["a"]


def test_one_that_does_not_get_ready_ends_the_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="the process ended with exit code 1; its last words were: no model"):
        command("serve", "import sys\nsys.exit('no model')", ready=True).setup()
    monkeypatch.setattr(bounds, "READY", 0.01)
    with pytest.raises(InputError, match=r"was not ready after 0.01 s"):
        command("serve", "import time\ntime.sleep(3600)", ready=True).setup()


def test_one_that_gets_ready_is_not_waited_for_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "STOPPING", 0.1)
    program = "import os, time\nopen('pid', 'w').write(str(os.getpid()))\nos.rename('pid', 'known')\ntime.sleep(3600)"
    system = command("serve", program, ready=True)
    said: list[str] = []

    def prepare() -> None:
        with pytest.raises(InputError) as failed:
            system.setup()
        said.append(str(failed.value))

    waiting = threading.Thread(target=prepare)
    waiting.start()
    wait_for("known")
    system.teardown()
    waiting.join()
    assert "the process was stopped" in said[0]
    assert gone(int(Path("known").read_text()))


class StartedSlowly(Program, frozen=True):
    """A program that is stopped by another thread before whoever starts it knows its process."""

    stops: list[Callable[[], None]]

    def start(self, stdin: IO[bytes] | int = subprocess.PIPE) -> subprocess.Popen[bytes]:
        process = super().start(stdin)
        threading.Thread(target=self.stops[0]).start()
        time.sleep(0.2)  # as long as the other thread takes to get where it waits for this one
        return process


def test_one_that_is_stopped_while_it_is_started_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "READY", 10)
    monkeypatch.setattr(bounds, "STOPPING", 0.1)
    arguments = (sys.executable, "-c", "import time\ntime.sleep(3600)")
    stops: list[Callable[[], None]] = []
    program = StartedSlowly(arguments=arguments, folder=Path(), stops=stops)
    served = ServedProcess(program, says_ready=True)
    stops.append(served.stop)
    with pytest.raises(InputError, match="the process was stopped"):
        served.start()


def test_another_one_is_started_at_once() -> None:
    """So that it may be ready when the question is asked again."""
    program = """
import json, os, sys, time
number = len([name for name in os.listdir() if name.startswith("started")])
open(f"started {number}", "w").close()
for line in sys.stdin:
    sys.exit(1)
"""
    system = command("serve", program)
    system.setup()
    assert failed_of(system).kind == "process_ended"
    wait_for("started 1")
    system.teardown()


def test_one_that_ends_before_all_its_streams_are_read_fails_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start

    def slowly(thread: threading.Thread) -> None:
        start(thread)
        time.sleep(0.2)

    program = "import sys; sys.exit('no index')"
    system = command("serve", program)
    monkeypatch.setattr(threading.Thread, "start", slowly)
    system.setup()
    failed = failed_of(system, seconds=PATIENCE)
    assert (failed.kind, str(failed)) == (
        "process_ended",
        "the process ended with exit code 1; its last words were: no index",
    )
    system.teardown()


def test_its_last_words_are_read_to_their_end() -> None:
    failed = failure(serve("sys.stderr.write('x' * 60_000 + 'the end'); sys.exit(1)"))
    assert str(failed).endswith("xthe end")


def test_one_that_is_told_to_end_may_clean_up() -> None:
    program = """
import json, sys
for line in sys.stdin:
    print(json.dumps({"id": json.loads(line)["id"], "results": ["a"]}), flush=True)
open("cleaned", "w").close()
"""
    asked(command("serve", program))
    assert Path("cleaned").exists()


def test_no_descriptor_is_left_open() -> None:
    def still_open() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    asked(each("print('[]')"))
    before = still_open()
    asked(each("print('[]')"))
    asked(serve("say(id=asked['id'], results=[])"))
    until = time.monotonic() + PATIENCE
    while still_open() > before and time.monotonic() < until:  # the threads that read its streams close them
        time.sleep(0.01)
    assert still_open() <= before


def test_a_process_that_ends_before_all_of_its_streams_are_read_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start = threading.Thread.start

    def late(thread: threading.Thread) -> None:
        if "_read_errors" in thread.name:
            time.sleep(0.5)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", late)
    monkeypatch.setattr(bounds, "READY", 5)
    with pytest.raises(InputError, match="ended with exit code 1"):
        command("serve", "raise SystemExit(1)", ready=True).setup()


def test_a_secret_in_what_is_passed_on_or_said_at_the_start_is_blanked(capfd: pytest.CaptureFixture[str]) -> None:
    program = f"import sys; print('stray {SECRET}', flush=True); sys.exit('last {SECRET}')"
    with pytest.raises(InputError, match=r"last words were: last \*\*\*") as failed:
        command("serve", program, ready=True).setup()
    assert "stray ***" in capfd.readouterr().err
    assert failed.value.__cause__ is None


def test_a_program_that_was_just_started_when_all_were_stopped_is_killed() -> None:
    system = each("time.sleep(600)")
    system.teardown()
    assert failure(system, seconds=PATIENCE).kind == "process_ended"
