"""What systems that are made with a framework have in common."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from typing import Any

from ragcontract.core.errors import RagContractError
from ragcontract.record.document_ids import DocumentIds
from ragcontract.record.exceptions import blanked, failure_of
from ragcontract.record.failed import CallFailed
from ragcontract.record.recognised import named
from ragcontract.record.system import Surroundings


class FrameworkSystem:
    """An object of a framework. What it prints goes to standard error until the teardown."""

    concurrency = 1  # many are not made for threads, and a latency is only honest for one question at a time

    def __init__(self, given: Any, surroundings: Surroundings, doc_id: str | None = None) -> None:
        """Store what is asked; the command line's ``doc_id`` wins over the target file's."""
        self.given = given
        self.name = named(given)
        self.doc_ids = DocumentIds(surroundings.doc_id or doc_id)
        self._secrets = surroundings.secrets
        self._aside = ExitStack()

    def setup(self) -> None:
        """Send to standard error what is printed: standard output is the command's."""
        self._aside.enter_context(redirect_stdout(sys.stderr))

    def teardown(self) -> None:
        """Give standard output back; the object itself is the user's."""
        self._aside.close()

    @contextmanager
    def failures(self) -> Iterator[None]:
        """Turn what the framework raises into a failed attempt."""
        with blanked(self._secrets):
            try:
                yield
            except (CallFailed, RagContractError):
                raise
            except Exception as error:
                raise failure_of(error) from error
