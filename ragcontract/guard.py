"""Turns exceptions into exit codes. Imports no third-party package, since one could be missing."""

import atexit
import gc
import os
import platform
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn, TextIO

from ragcontract import memory
from ragcontract.core import bounds
from ragcontract.core.errors import INTERRUPTED, ExitCode, RagContractError, has_users_code, raise_on_signals
from ragcontract.core.safe_text import printable, shorten, visible
from ragcontract.core.version import __version__
from ragcontract.files.streams import reader_may_leave

GRACE = 5.0  # s

BUG = """
rag-contract: this is a bug of ours, not a verdict on your retriever. Please report it at
https://github.com/org/rag-contract/issues with the lines above and:
  rag-contract {version}, Python {python}, {platform}
"""


def guarded(run: Callable[[], int], stderr: TextIO | None) -> int:
    """Call ``run`` and return its exit code, or the exit code of the exception it raised.

    ``run`` has to do its own imports: a failed import must exit 3, because 1 means a broken contract. ``stderr`` is
    None if the shell closed it. A failure to write to it does not change the exit code.
    """
    try:
        with memory.explained():
            return run()
    except RagContractError as error:
        warnings = [f"warning: {visible(line)}" for line in error.warnings]
        _write(stderr, [*warnings, *(f"error: {visible(line)}" for line in error.lines())])
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except SystemExit as error:  # raised by code of the user: this program returns its exit code
        _write(stderr, [f"error: code that this command runs ended the program ({shorten(repr(error), bounds.VALUE)})"])
        return ExitCode.UNUSABLE_INPUT
    except Exception:  # noqa: BLE001 (any other exception is a bug in rag-contract)
        with suppress(Exception):  # the exit code counts even if the message cannot be written
            _write(stderr, _bug())
        return ExitCode.BUG


def _bug() -> list[str]:
    """Return the lines on a bug: the traceback of the current exception, and what to report."""
    # Not platform.platform(): it starts a subprocess, which would inherit the environment with the token.
    machine = f"{platform.system()} {platform.release()} {platform.machine()}"
    bug = BUG.format(version=__version__, python=platform.python_version(), platform=machine)
    return [*map(visible, traceback.format_exc().splitlines()), *bug.splitlines()]


def _write(stderr: TextIO | None, lines: list[str]) -> None:
    if stderr is not None:
        with suppress(OSError), reader_may_leave(stderr):
            stderr.write("".join(printable(line) + "\n" for line in lines))
            stderr.flush()


def whole_process(run: Callable[[], int]) -> int:
    """Call ``run`` as the only task of this process, and return its exit code as :func:`guarded` does.

    Garbage collection is off. The process is short and its objects live until it ends, so a collection finds nothing
    and takes a fifth of the time of a small check, most of it at interpreter exit. Frozen objects are skipped there.
    """
    raise_on_signals()
    gc.disable()
    code = guarded(run, sys.stderr)
    gc.freeze()
    return code


def leave(code: int, grace: float = GRACE) -> NoReturn:
    """End this process with an exit code, even if a recorded system still runs in a thread.

    Python waits forever for threads such as those of ``asyncio.to_thread``. Here they get ``grace`` seconds. A
    failure stays one if code of the user ends the process in a hook of its own, as ``atexit.register(os._exit, 0)``.
    """
    if code and has_users_code():
        atexit.register(_end, code)  # the hook that was registered last runs first
    # Not imported, because a process without threads need not load the module.
    threading = sys.modules.get("threading")
    if threading is not None and threading.active_count() > 1:

        def end() -> None:
            time.sleep(grace)
            _end(code)

        threading.Thread(target=end, daemon=True).start()
    sys.exit(code)


def _end(code: int) -> NoReturn:
    """End this process at once; hooks that are still to run at its exit do not."""
    multiprocessing = sys.modules.get("multiprocessing")  # a hook of its own ends these children
    for child in multiprocessing.active_children() if multiprocessing is not None else ():
        if child.daemon:
            child.terminate()
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(code)


def entry_point() -> None:
    """Run the command line: the console script ``rag-contract``."""

    def run() -> int:
        from ragcontract.cli.main import main

        return main(sys.argv[1:])

    def crashed(number: int, peak: int) -> int:
        if memory.explains(number):
            command = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
            raise memory.killed(peak, f"rag-contract {shorten(command, bounds.NAME)}".rstrip())
        return 128 + number  # as shells do

    def start() -> int:
        if not memory.is_limited():
            return run()
        from ragcontract.child import in_child  # not for Windows

        # Under `ulimit -v`, libraries in C crash where they get no memory. The parent process reports that.
        return in_child(run, crashed)

    leave(whole_process(start))
