"""What systems that are made with a framework have in common."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from typing import Any

from ragcontract.core.errors import InputError, RagContractError
from ragcontract.record.adapters.introspection import named
from ragcontract.record.adapters.user_exceptions import failed_attempt, redacting
from ragcontract.record.interface import CallFailed, Surroundings
from ragcontract.record.returned.document_ids import DocumentIds
from ragcontract.record.returned.retrieval_choice import Retrieved, that_counts


def chosen(found: Sequence[Sequence[Any]], retrieved: Retrieved | None, kind: str) -> Sequence[Any] | None:
    """Return what the retrieval that counts found; None if there was none and nobody said that there is.

    Raises InputError if there were several and nobody said which counts.
    """
    if not found:
        # What retrieves without the framework would look as if it had found nothing.
        return None if retrieved is None else []
    if len(found) > 1 and retrieved is None:
        message = f"retrieved {len(found)} times for one question; say which counts with `retrieved: first`, "
        raise InputError([f"{message}`last` or `concat` under `{kind}` in the target file"])
    return that_counts(found, retrieved)


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
        with redacting(self._secrets):
            try:
                yield
            except (CallFailed, RagContractError):
                raise
            except Exception as error:
                raise failed_attempt(error) from error
