"""The interface of adapters: what a system is given, what it returns, how it fails, and what it must implement."""

import math
import os
from collections.abc import Callable, ItemsView, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Protocol

from msgspec import UNSET, Meta, Struct, UnsetType, field

from ragcontract.net.secrets import NO_SECRETS, Secrets
from ragcontract.record.sources import Sources

Json = Mapping[str, Any]
DocIdExpression = Annotated[
    str | None, Meta(description="A JMESPath expression over `id`, `metadata` and `text` of a result.")
]


class Context(Struct, frozen=True, kw_only=True):
    """The context of one question; also a mapping, for systems that take a ``dict``."""

    query_id: str
    top: int  # how many results are wanted
    messages: tuple[Json, ...] = ()  # the earlier messages of a conversation, in OpenAI's form
    metadata: Json = {}  # of the golden row
    seconds: float = math.inf  # what is left until the attempt is given up
    traceparent: str = ""  # the W3C header to send on, by which the spans of the attempt are found
    attempt: int = 1  # counts from 1
    repeat: int = 1  # counts from 1; 0 in a warm-up

    def __getitem__(self, name: str) -> Any:
        if name not in self.__struct_fields__:
            raise KeyError(name)
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.__struct_fields__)

    def __len__(self) -> int:
        return len(self.__struct_fields__)

    def get(self, name: str, default: Any = None) -> Any:
        return getattr(self, name) if name in self.__struct_fields__ else default

    def keys(self) -> tuple[str, ...]:
        return self.__struct_fields__

    def items(self) -> ItemsView[str, Any]:
        return {name: self[name] for name in self}.items()


Mapping.register(Context)


class Response(Struct, frozen=True, kw_only=True):
    """The response of a system to one question. The fields mean the same as those of a run row."""

    results: Sequence[Json] | None = None  # with a `doc_id`, best first; None if it is not known what was retrieved
    response: str | UnsetType | None = UNSET  # None if there is no answer, unset if the system does not answer
    error: str | None = None
    error_detail: Json | None = None  # what is known of the error beside its message
    context_chars: int | None = None  # the length of the context that a model saw
    retrieved_contexts: Sequence[str] | None = None
    tool_calls: Sequence[Json] | None = None
    messages: Sequence[Json] | None = None
    mode: str | None = None
    label: str | None = None
    refusal: str | None = None
    finish_reason: str | None = None
    llm_model: str | None = None
    usage: Json | None = None  # for the details of the recording, not for the run
    metadata: Json | None = None  # for the details of the recording, not for the run
    # How long the system took, if its adapter then waited for something else. If None, the time of the whole call.
    latency_ms: float | None = None


class CallFailed(Exception):  # noqa: N818 (it is what happened, not a fault in how something was called)
    """One attempt that failed. The message and ``detail`` are written to files, so neither may contain a secret."""

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
        super().__init__(message)
        self.kind = kind  # a word to count failures by, such as `read_timeout`
        self.again = again  # whether another attempt may succeed
        self.pause = pause  # the seconds for which the server asked to be left alone, by everyone
        self.detail = detail  # what is known beside the message
        # What the system did before it failed, with `error` set. If no other attempt follows, it becomes a row for
        # those who keep the retrieval of questions whose answer failed.
        self.partial = partial


class System(Protocol):
    """A system that can be asked; each module in ``adapters/`` makes one from a target."""

    # How many questions it gets at the same time, unless the user says otherwise. Many systems are not made for
    # threads, and a latency is only honest for one question at a time.
    concurrency: int = 1

    def setup(self) -> None:
        """Prepare for questions; called once. Raises InputError if the system cannot be used."""

    def ask(self, query: str, context: Context) -> Response:
        """Return what the system does for a question; may be called from several threads.

        Raises CallFailed if this attempt failed, InputError if every other attempt would fail, too. An implementation
        must not wait longer than ``context.seconds``: a moment later the attempt is given up, and its thread, which
        cannot be stopped, is abandoned. If the system retrieved but could not answer, ``CallFailed.partial`` has the
        retrieval.
        """
        ...

    def versions(self) -> Mapping[str, str]:
        """Return the version fields of run rows that the system knows.

        Called before the first question, when they may not be known yet, and after the last.
        """
        return {}

    def facts(self) -> Mapping[str, Any]:
        """Return what else is known of the system, for the details of the recording."""
        return {}

    def teardown(self) -> None:
        """Release what ``setup`` took; called once, also after failures and Ctrl-C."""


class Wrapping(System):
    """A system around another one, which it passes everything to."""

    def __init__(self, system: System) -> None:
        self.concurrency = system.concurrency
        self.system = system

    def setup(self) -> None:
        self.system.setup()

    def ask(self, query: str, context: Context) -> Response:
        return self.system.ask(query, context)

    def versions(self) -> Mapping[str, str]:
        return self.system.versions()

    def facts(self) -> Mapping[str, Any]:
        return self.system.facts()

    def teardown(self) -> None:
        self.system.teardown()


class Surroundings(Struct, frozen=True, kw_only=True):
    """The folder, environment and settings that a system is made with beside its own options."""

    folder: Path = Path()  # that paths are relative to
    secrets: Secrets = NO_SECRETS
    doc_id: str | None = None  # a JMESPath expression over `id`, `metadata` and `text` of a result
    seconds: float = 30  # after which an attempt is given up
    connect_seconds: float = 10  # after which a connection that is not made is given up
    offline: bool = False  # whether nothing may be downloaded to prepare the system
    isolate: bool = False  # whether Python code has a process of its own
    # The environment variables, which say whether a pull request may have changed the target.
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    say: Callable[[str], None] = lambda _: None  # called with a sentence for whoever waits, as before a download
    sources: Sources | None = None  # where the modules are added that another process imports
