"""The one place where exceptions become exit codes. Imports nothing that could be missing."""

import gc
import platform
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

from ragcontract.core.errors import ExitCode, RagContractError
from ragcontract.core.text import printable, visible
from ragcontract.core.version import __version__
from ragcontract.files.streams import reader_may_leave

INTERRUPTED = 130  # 128 + SIGINT, as shells have it

BUG = """
rag-contract: this is a bug of ours, not a verdict on your retriever. Please report it at
https://github.com/org/rag-contract/issues with the lines above and:
  rag-contract {version}, Python {python}, {platform}
"""


def guarded(run: Callable[[], int], stderr: TextIO | None) -> int:
    """Call ``run`` and return its exit code, or the one of what it raised; nothing gets past it.

    Importing belongs inside ``run``: an import that fails must exit 3, since 1 would read as a broken contract.
    ``stderr`` is None where the shell closed it; what cannot be said there changes no exit code.
    """
    try:
        return run()
    except RagContractError as error:
        warnings = [f"warning: {visible(line)}" for line in error.warnings]
        _tell(stderr, [*warnings, *(f"error: {visible(line)}" for line in error.lines())])
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception:  # noqa: BLE001 (whatever it is, it is ours)
        with suppress(Exception):  # where not even this can be told, the exit code does
            _tell(stderr, _bug())
        return ExitCode.BUG


def _bug() -> list[str]:
    """Describe the exception that is being handled."""
    # not platform.platform(): that runs a program, which would be handed the environment and the token in it
    machine = f"{platform.system()} {platform.release()} {platform.machine()}"
    bug = BUG.format(version=__version__, python=platform.python_version(), platform=machine)
    return [*map(visible, traceback.format_exc().splitlines()), *bug.splitlines()]


def _tell(stderr: TextIO | None, lines: list[str]) -> None:
    if stderr is not None:
        with suppress(OSError), reader_may_leave(stderr):
            stderr.write("".join(printable(line) + "\n" for line in lines))
            stderr.flush()


def whole_process(run: Callable[[], int]) -> int:
    """Call ``run``, which is all that this process is for, and return its exit code as :func:`guarded` does.

    The process is short and its objects live to its end. Looking for garbage finds none and costs a fifth of a small
    check, most of it as the interpreter ends, which leaves frozen objects alone.
    """
    gc.disable()
    code = guarded(run, sys.stderr)
    gc.freeze()
    return code


def entry_point() -> None:
    """Run the command line: the console script ``rag-contract``."""

    def run() -> int:
        from ragcontract.cli.main import main  # see guarded

        return main(sys.argv[1:])

    sys.exit(whole_process(run))
