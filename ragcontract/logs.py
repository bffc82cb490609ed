"""Logging for maintainers: quiet unless ``--verbose`` or a runner's ``RUNNER_DEBUG`` asks for it."""

import logging
from typing import TextIO

from ragcontract.core.text import printable, visible


class _OneLine(logging.Formatter):
    """Writes a record as one line without anything that a terminal or a runner would act on."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(visible(f"{record.name}: {record.getMessage()}"))


def log_to(stream: TextIO | None) -> None:
    """Log everything to a stream, None being one that the shell closed."""
    if stream is None:
        return
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_OneLine())
    logger = logging.getLogger("ragcontract")
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
