"""The seam between the recording and what is recorded."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct, field

from ragcontract.http.secrets import NO_SECRETS, Secrets
from ragcontract.record.asked import Context, Response


class System(Protocol):
    """A system that can be asked; the modules in ``adapters/`` make one of a target.

    ``concurrency`` is how many questions it gets at the same time unless the user says otherwise.
    """

    concurrency: int

    def setup(self) -> None:
        """Prepare for questions; called once. Raises InputError if the system cannot be used."""

    def ask(self, query: str, context: Context) -> Response:
        """Return what the system does for a question; may be called from several threads.

        Raises CallFailed if this attempt failed, InputError if every other one would fail too. What waits must not
        wait longer than ``context.seconds``: a moment later the attempt is given up, and its thread, which cannot be
        stopped, is left alone. A system that retrieved but could not answer says in ``CallFailed.partial`` what it has.
        """
        ...

    def versions(self) -> Mapping[str, str]:
        """Return the version fields of run rows that the system knows; called after the last question."""
        ...

    def facts(self) -> Mapping[str, Any]:
        """Return what else is known of the system, for the details of the recording."""
        ...

    def teardown(self) -> None:
        """Release what ``setup`` took; called once, also after failures and Ctrl-C."""


def _to_nobody(_: str) -> None:
    """Say nothing."""


class Surroundings(Struct, frozen=True, kw_only=True):
    """What a system is made with beside its own options.

    Paths are relative to ``folder``. ``doc_id`` is a JMESPath expression over ``id``, ``metadata`` and ``text`` of a
    result. An attempt is given up after ``seconds``, a connection that is not made after ``connect_seconds``. With
    ``offline``, nothing is downloaded to prepare the system. With ``isolate``, Python code has its own process.
    ``environ`` is the environment, which says whether somebody from outside may have changed the target. ``say`` is
    called with a sentence for whoever waits, as before a model is downloaded.
    """

    folder: Path = Path()
    secrets: Secrets = NO_SECRETS
    doc_id: str | None = None
    seconds: float = 30
    connect_seconds: float = 10
    offline: bool = False
    isolate: bool = False
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    say: Callable[[str], None] = _to_nobody
