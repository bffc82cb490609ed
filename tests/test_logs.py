"""Logging for maintainers: on one line each, nothing that acts, and nothing at all unless it is asked for."""

import io
import logging
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout

import pytest

from ragcontract.cli.main import main


@pytest.fixture(autouse=True)
def untouched() -> Iterator[None]:
    """Leave the logger as it was."""
    logger = logging.getLogger("ragcontract")
    handlers, level = list(logger.handlers), logger.level
    yield
    logger.handlers[:] = handlers
    logger.setLevel(level)


def log_to(stream: io.StringIO | None) -> None:
    """Run a command that logs to a stream; None if the shell closed it."""
    with redirect_stdout(io.StringIO()), redirect_stderr(stream):
        assert main(["--verbose", "schema", "run"]) == 0


def logged(message: str) -> str:
    stream = io.StringIO()
    log_to(stream)
    logging.getLogger("ragcontract.anything").debug("found %s", message)
    return stream.getvalue()


def test_a_record_is_a_line_with_the_name_of_its_module() -> None:
    assert logged("7 rows") == "ragcontract.anything: found 7 rows\n"


@pytest.mark.parametrize("hostile", ["\n::error::x", "\x1b[31m", "##[group]", "\u202e", "\r\n"])
def test_a_record_cannot_act_on_a_terminal_or_a_runner(hostile: str) -> None:
    line = logged(hostile)
    assert line.endswith("\n")
    assert len(line.splitlines()) == 1
    assert hostile not in line
    assert "\x1b" not in line
    assert "##[" not in line


def test_a_stream_that_the_shell_closed_is_logged_to_by_nobody() -> None:
    before = list(logging.getLogger("ragcontract").handlers)
    log_to(None)
    assert logging.getLogger("ragcontract").handlers == before


def test_only_our_own_records_are_logged() -> None:
    stream = io.StringIO()
    log_to(stream)
    logging.getLogger("urllib3").warning("a token")
    assert stream.getvalue() == ""
