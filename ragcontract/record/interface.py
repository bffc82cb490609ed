"""What an adapter is written against: what a system gets, gives back, how it fails, and what it is."""

import math
import os
from collections.abc import Callable, ItemsView, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from msgspec import UNSET, Struct, UnsetType, field

from ragcontract.net.secrets import NO_SECRETS, Secrets
from ragcontract.record.sources import Sources

Json = Mapping[str, Any]


class Context(Struct, frozen=True, kw_only=True):
    """What belongs to one question; also a mapping, for systems that take a ``dict``.

    ``top`` is how many results are wanted. ``messages`` are the earlier ones of a conversation, in OpenAI's form, and
    ``metadata`` is that of the golden row. ``seconds`` is what is left until the attempt is given up. ``traceparent``
    is the W3C header to send on, so that the spans of the attempt can be found. ``attempt`` and ``repeat`` count from
    1; ``repeat`` is 0 in a warm-up.
    """

    query_id: str
    top: int
    messages: tuple[Json, ...] = ()
    metadata: Json = {}
    seconds: float = math.inf
    traceparent: str = ""
    attempt: int = 1
    repeat: int = 1

    def __getitem__(self, name: str) -> Any:
        """Return a field."""
        if name not in self.__struct_fields__:
            raise KeyError(name)
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the fields."""
        return iter(self.__struct_fields__)

    def __len__(self) -> int:
        """Return how many fields there are."""
        return len(self.__struct_fields__)

    def get(self, name: str, default: Any = None) -> Any:
        """Return a field, or ``default`` if there is none of that name."""
        return getattr(self, name) if name in self.__struct_fields__ else default

    def keys(self) -> tuple[str, ...]:
        """Return the names of the fields."""
        return self.__struct_fields__

    def items(self) -> ItemsView[str, Any]:
        """Return the names of the fields with their values."""
        return {name: self[name] for name in self}.items()


Mapping.register(Context)


class Response(Struct, frozen=True, kw_only=True):
    """What a system did for one question. Fields that a run row has too mean the same there.

    ``results`` are mappings with a ``doc_id``, best first; None if the system does not say what it retrieved.
    ``response`` is None if there is no answer, unset if the system does not answer. ``error_detail`` says more of
    ``error``, and ``context_chars`` how long the context was that a model saw. ``usage`` and ``metadata`` go into the
    details of the recording, not into the run. ``latency_ms`` is how long the system took, where whoever asked it then
    waited for something else; otherwise, it is how long it took to ask.
    """

    results: Sequence[Json] | None = None
    response: str | UnsetType | None = UNSET
    error: str | None = None
    error_detail: Json | None = None
    context_chars: int | None = None
    retrieved_contexts: Sequence[str] | None = None
    tool_calls: Sequence[Json] | None = None
    messages: Sequence[Json] | None = None
    mode: str | None = None
    label: str | None = None
    refusal: str | None = None
    finish_reason: str | None = None
    llm_model: str | None = None
    usage: Json | None = None
    metadata: Json | None = None
    latency_ms: float | None = None


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
    called with a sentence for whoever waits, as before a model is downloaded. ``sources`` is told what code in another
    process imports.
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
    sources: Sources | None = None
