"""Limits on systems that are recorded: what they return, what they say of failures, how long they may take to end."""

import asyncio
import contextlib
import io
import json
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.files.git import commit_of
from ragcontract.files.paths import AnchoredPath
from ragcontract.record.adapters.framework import EventLoop
from ragcontract.record.adapters.process_serve import response_in
from ragcontract.record.adapters.python_code import of_object
from ragcontract.record.adapters.user_code import described
from ragcontract.record.events import Failure
from ragcontract.record.events import QuestionDone as Asked
from ragcontract.record.interface import CallFailed, Response, Surroundings, System
from ragcontract.record.run_rows import OddIds
from ragcontract.record.sources import Sources
from ragcontract.record.watching import Details, EventStream
from tests.bounds.lab import Case, Cases, Lab, all_of
from tests.builders import run, write_jsonl
from tests.record.systems import asked, context, doc_ids, target_of

HERE = Surroundings(environ={})


def longer_by(seconds: int) -> Callable[[Any], Any]:
    """Return a function from a limit on time to a time that is well beyond it, however busy the machine is."""
    return lambda limit: limit + seconds


def command(lab: Lab, mode: str, *arguments: str, **options: Any) -> System:
    (lab.folder / "record.yml").write_text(json.dumps({"command": {mode: arguments, **options}}))
    return target_of(lab.folder, "record.yml").system


def program(lab: Lab, mode: str, code: str) -> System:
    """Return a command that runs Python code, with ``number`` as the id of its question."""
    head = "import json, sys\nnumber = json.loads(sys.stdin.readline()).get('id')\n"
    return command(lab, mode, sys.executable, "-c", head + code)


def returned(_: Lab, size: int) -> bool:
    try:
        return len(asked(of_object(lambda _query: ["a"] * size, HERE)).results or ()) == size
    except InputError:
        return False


def shown(_: Lab, size: int) -> bool:
    class Odd:
        def __repr__(self) -> str:
            return "x" * size

    try:
        asked(of_object(lambda _query: Odd(), HERE))
    except InputError as error:
        return "x" * size in str(error)
    return False


def failures(lab: Lab, size: int) -> bool:
    text = "x" * size
    path = lab.folder / "events.jsonl"
    stream = EventStream(str(path), warn=print)
    stream(Asked(query_id="q", repeat=1, attempts=1, ms=1, response=Response(error=text)))
    stream.close()
    said = []
    for line in ({"error": text}, {"failed": {"message": text}}):
        try:
            response_in(line, partial(str))  # type: ignore[arg-type]
        except CallFailed as failed:
            said.append(str(failed))
    return all_of(*(text in one for one in (described(ValueError(text)), path.read_text(), *said)))


def cancelled(_: Lab, seconds: int) -> bool:
    async def stubborn(_query: str) -> list[str]:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            await asyncio.sleep(seconds - bounds.LOOP_CANCELLING)
        return ["a"]

    try:
        return doc_ids(asked(of_object(stubborn, HERE), seconds=0.01)) == ["a"]
    except CallFailed:
        return False


def closed(_: Lab, seconds: int) -> bool:
    done: list[bool] = []
    kept: list[Any] = []

    async def start() -> None:
        async def stubborn() -> None:
            try:
                await asyncio.sleep(3600)
            finally:
                await asyncio.sleep(seconds - bounds.LOOP_CLOSING)
                done.append(True)

        kept.append(asyncio.create_task(stubborn()))
        await asyncio.sleep(0)

    loop = EventLoop()
    loop.result(start())
    loop.close()
    return bool(done)


def answers(lab: Lab, size: int) -> bool:
    code = f"sys.stdout.write(json.dumps({{'id': number, 'results': ['a']}}).ljust({size} - 1) + '\\n')"

    def whole(mode: str) -> bool:
        with contextlib.suppress(CallFailed):
            return doc_ids(asked(program(lab, mode, code))) == ["a"]
        return False

    return all_of(whole("each"), whole("serve"))


def last_words(lab: Lab, size: int) -> bool:
    code = f"sys.stderr.write('A' + 'x' * ({size} - 1)); sys.exit(3)"

    def whole(mode: str) -> bool:
        try:
            asked(program(lab, mode, code))
        except CallFailed as failed:
            return "words were: Ax" in str(failed)
        return False

    return all_of(whole("each"), whole("serve"))


def stray(lab: Lab, size: int) -> bool:
    said = io.StringIO()
    code = f"[print('stray', n) for n in range({size})]; print(json.dumps({{'id': number, 'results': []}}), flush=True)"
    with contextlib.redirect_stderr(said):
        asked(program(lab, "serve", code))
    return f"stray {size - 1}\n" in said.getvalue()


def restarts(lab: Lab, size: int) -> bool:
    system = program(lab, "serve", "")
    system.setup()
    try:
        for _ in range(size + 1):
            with contextlib.suppress(CallFailed):
                system.ask("?", context())
    except InputError:
        return False
    finally:
        system.teardown()
    return True


def ready(lab: Lab, seconds: int) -> bool:
    late = f"sleep {seconds - bounds.READY}; echo '{{\"ready\": true}}'; cat"
    system = command(lab, "serve", "sh", "-c", late, ready=True)
    try:
        system.setup()
    except InputError:
        return False
    system.teardown()
    return True


def stopping(lab: Lab, seconds: int) -> bool:
    slow = f"cat > asked; sleep {seconds - bounds.STOPPING}; touch ended"
    system = command(lab, "serve", "sh", "-c", slow)
    system.setup()
    system.teardown()
    return (lab.folder / "ended").exists()


def git(lab: Lab, seconds: int) -> bool:
    path = lab.folder / "git"
    path.write_text(f"#!{shutil.which('sh')}\nsleep {seconds - bounds.GIT}\necho 1a2b3c4\n")
    path.chmod(0o755)
    with lab.patch.context() as patch:
        patch.setenv("PATH", str(lab.folder), prepend=":")
        return commit_of() is not None


def is_watched(pattern: Path) -> bool:
    try:
        return bool(Sources(Path(), [str(pattern)]).watched)
    except InputError:
        return False


def size_of_a_source(lab: Lab, size: int) -> bool:
    (lab.folder / "prompt.txt").write_bytes(b"x" * size)
    return is_watched(lab.folder / "prompt.txt")


def watched(lab: Lab, size: int) -> bool:
    for number in range(size):
        (lab.folder / f"{number}.txt").touch()
    return is_watched(lab.folder / "*.txt")


def compared(lab: Lab, size: int) -> bool:
    """Return whether the last of some queries is compared, the only one with random ids."""
    out = AnchoredPath(lab.folder / "run.jsonl")
    plain = [run(f"q{number}", "3f2b8c9e-1d4a-5b6f-8a7c-5e9d0f1a2b3c") for number in range(1, size)]
    write_jsonl(Path(out), [*plain, run("last", "3f2b8c9e-1d4a-4b6f-8a7c-5e9d0f1a2b3c")])
    ids = OddIds(out)
    list(ids.passing([run("last", "9a8b7c6d-5e4f-4a3b-8c2d-1e0f9a8b7c6d")]))
    return bool(list(ids.warnings()))


def source(lab: Lab, size: int) -> bool:
    digests = set()
    for end in (b"a", b"b"):
        (lab.folder / "program").write_bytes(b"x" * (size - 1) + end)
        (lab.folder / "record.yml").write_text("command: {each: [sh, program]}")
        digests.add(target_of(lab.folder, "record.yml").sha256)
    return len(digests) > 1


def streamed(lab: Lab, size: int) -> bool:
    path = lab.folder / "events.jsonl"
    stream = EventStream(str(path), warn=print)
    results = [{"doc_id": str(number)} for number in range(size)]
    stream(Asked(query_id="q", repeat=1, attempts=1, ms=1, response=Response(results=results)))
    stream.close()
    return len(json.loads(path.read_text())["documents"]) == size


def detailed(_: Lab, size: int) -> bool:
    details = Details(target_of(Path(), len))
    for number in range(size):
        failure = Failure(kind="timeout", message="no")
        details(Asked(query_id=str(number), repeat=1, attempts=1, ms=1, failure=failure))
    made = json.loads(b"".join(details.document()))
    details.close()
    return all_of(len(made["failures"]) == size, made["more_failures"] == 0)


CASES: Cases = {
    "RETURNED": Case(returned, small=5),
    "RETURNED_SHOWN": Case(shown),
    "FAILURE": Case(failures),
    "LOOP_CANCELLING": Case(cancelled, past=longer_by(2)),
    "LOOP_CLOSING": Case(closed, past=longer_by(20), small=2),
    "COMMAND_ANSWER": Case(answers, small=1_000),
    "STDERR_TAIL": Case(last_words),
    "STRAY_LINES": Case(stray, small=3),
    "RESTARTS": Case(restarts),
    "READY": Case(ready, past=longer_by(4), small=2),
    "STOPPING": Case(stopping, past=longer_by(20), small=2),
    "GIT": Case(git, past=longer_by(20), small=2),
    "TARGET_SOURCE": Case(source, small=100),
    "SOURCE": Case(size_of_a_source, small=100),
    "WATCHED": Case(watched, small=3),
    "COMPARED_QUESTIONS": Case(compared),
    "STREAMED_DOCUMENTS": Case(streamed),
    "DETAILED_FAILURES": Case(detailed, small=5),
}
