"""Starts commands quickly: a process that has imported the command line forks for each of them.

Python takes a tenth of a second to start and up to three to import what a command needs, a thousand times in all
tests. A forked command has imported the same modules, and otherwise differs in nothing that a test can see.
"""

import atexit
import contextlib
import functools
import gc
import importlib
import io
import json
import os
import pkgutil
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

PRELOADED = ("requests", "yaml", "jsonschema", "pytest")  # and all of rag-contract
NOT_PRELOADED = "ragcontract.cluster."  # pyspark and pyarrow start threads, which a fork does not have
REQUEST = 1 << 20  # bytes
# What Python reads when it starts, and so what a forked command would not see.
AT_THE_START = ("PYTHON", "LC_", "LANG", "MALLOC", "COVERAGE")
KEEPS_NOTHING = "PYTHONDONTWRITEBYTECODE"
ENTRY_POINT = "from ragcontract.guard import entry_point\nentry_point()\n"


@functools.cache
def _server(_process: int) -> socket.socket:
    """Start the process that forks; it ends when this one does."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        server = subprocess.Popen(
            [sys.executable, "-m", "tests.forking", str(theirs.fileno())],
            cwd=Path(__file__).parent.parent,
            env=ENVIRON,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )

    def end() -> None:
        ours.close()
        server.wait()

    atexit.register(end)
    return ours


def can_run(environ: Mapping[str, str]) -> bool:
    """Return whether a command with these variables may be forked."""
    return hasattr(os, "fork") and _read_at_the_start(environ) == _read_at_the_start(ENVIRON)


def _read_at_the_start(environ: Mapping[str, str]) -> Mapping[str, str]:
    return {name: value for name, value in environ.items() if name.startswith(AT_THE_START) and name != KEEPS_NOTHING}


def plain_environ() -> dict[str, str]:
    """Return this process's environment without what would change how Python prints, and what it writes."""
    changing = {"NO_COLOR", "PYTHONIOENCODING", "PYTHONUNBUFFERED", "PYTHONUTF8"}
    return {name: value for name, value in os.environ.items() if name not in changing} | {KEEPS_NOTHING: "1"}


ENVIRON = plain_environ()


def run(
    program: str, argv: Sequence[str], *, cwd: Path, environ: Mapping[str, str], stdin: str | None = None
) -> tuple[int, str, str]:
    """Run Python code as a command; return its exit code, and what it wrote to its output and error streams."""
    wanted = {"code": program, "argv": [*map(os.fspath, argv)], "cwd": str(cwd.absolute()), "environ": {**environ}}
    request = json.dumps(wanted).encode()
    with contextlib.ExitStack() as stack:
        (out, to_out), (err, to_err), (code, to_code), (from_in, to_in) = (os.pipe() for _ in range(4))
        theirs = [from_in if stdin is not None else 0, to_out, to_err, to_code]
        socket.send_fds(_server(os.getpid()), [request], theirs)
        for descriptor in (from_in, to_out, to_err, to_code):
            os.close(descriptor)
        outs, errs, codes = (stack.enter_context(os.fdopen(end, "rb")) for end in (out, err, code))
        errors: list[bytes] = []
        reading = threading.Thread(target=lambda: errors.append(errs.read()))
        reading.start()
        writing = threading.Thread(target=_write, args=(to_in, (stdin or "").encode()))
        writing.start()
        output = outs.read()
        reading.join()
        writing.join()
        return int(codes.read()), _text(output), _text(errors[0])


def _write(end: int, data: bytes) -> None:
    with contextlib.suppress(BrokenPipeError), os.fdopen(end, "wb") as stream:
        stream.write(data)


def _text(data: bytes) -> str:
    """Return what a process wrote, with the line ends that ``subprocess`` gives."""
    return data.decode().replace("\r\n", "\n").replace("\r", "\n")


def serve(requests: socket.socket) -> str:
    """Fork for each request; in the process that is to run a command, return its code."""
    while True:
        request, descriptors, _, _ = socket.recv_fds(requests, REQUEST, 4)
        if not request:
            os._exit(0)
        if not os.fork():
            break
        for descriptor in descriptors:
            os.close(descriptor)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
    requests.close()
    *streams, to_code = descriptors
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    if child := os.fork():
        for number in range(3):
            os.close(number)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os.write(to_code, str(status).encode())
        os._exit(0)
    os.close(to_code)
    wanted = json.loads(request)
    os.environ.clear()
    os.environ.update(wanted["environ"])
    os.chdir(wanted["cwd"])
    sys.argv[1:] = wanted["argv"]
    for name, number in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        setattr(sys, name, _stream(getattr(sys, name), number))
        setattr(sys, f"__{name}__", getattr(sys, name))
    sys.dont_write_bytecode = bool(os.environ.get(KEEPS_NOTHING))
    return str(wanted["code"])


def execute(program: str) -> None:
    """Run a program, and end the process as Python does, but without freeing each object: that takes 50 ms."""
    try:
        exec(program, {"__name__": "__main__"})
    except SystemExit as ended:
        if not isinstance(ended.code, int):
            raise
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        with contextlib.suppress(OSError, ValueError):  # if a stream does not take it, Python says so
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(ended.code)
        raise


def _stream(old: io.TextIOWrapper, number: int) -> io.TextIOWrapper:
    """Return a new stream with the settings of one that was opened for another file."""
    raw = open(number, "rb" if number == 0 else "wb", closefd=False)  # noqa: SIM115
    return io.TextIOWrapper(raw, old.encoding, old.errors, line_buffering=old.line_buffering)


if __name__ == "__main__":
    del sys.path[0]  # as `python -m ragcontract` does
    for module in PRELOADED:
        importlib.import_module(module)
    for each in pkgutil.walk_packages(importlib.import_module("ragcontract").__path__, "ragcontract."):
        if not each.name.startswith(NOT_PRELOADED):
            importlib.import_module(each.name)
    sys.modules["__main__"] = importlib.import_module("ragcontract.__main__")
    del sys.modules["tests"]  # `record` notes all modules that are imported
    gc.freeze()
    execute(serve(socket.socket(fileno=int(sys.argv[1]))))
