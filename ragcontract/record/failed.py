"""A question that a system did not answer."""

from collections.abc import Mapping
from typing import Any

from ragcontract.record.asked import Response


class CallFailed(Exception):  # noqa: N818 (it is what happened, not a fault in how something was called)
    """One attempt that failed.

    ``kind`` is a word to count failures by, such as ``read_timeout``. ``again`` says whether another attempt may
    succeed, and ``pause`` for how many seconds the server asked to be left alone, by everyone. ``detail`` is what is
    known beside the message; it is written to files, so neither may contain a secret. ``partial`` is what the system
    did before it failed, with ``error`` set: a row for those who keep the retrieval where only the answer failed, once
    no other attempt follows.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        again: bool = False,
        pause: float | None = None,
        detail: Mapping[str, Any] | None = None,
        partial: Response | None = None,
    ) -> None:
        """Store the attributes."""
        super().__init__(message)
        self.kind = kind
        self.again = again
        self.pause = pause
        self.detail = detail
        self.partial = partial
