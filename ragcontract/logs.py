"""Logging for maintainers: off unless ``--verbose`` or the runner's ``RUNNER_DEBUG`` turns it on."""

import logging
from typing import TextIO

from ragcontract.core.safe_text import printable, visible


class _OneLine(logging.Formatter):
    """Formats a record as one line, without control sequences or workflow commands."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(visible(f"{record.name}: {record.getMessage()}"))


def log_to(stream: TextIO | None) -> None:
    """Log everything to a stream; does nothing if it is None, which means that the shell closed it."""
    if stream is None:
        return
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_OneLine())
    logger = logging.getLogger("ragcontract")
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
