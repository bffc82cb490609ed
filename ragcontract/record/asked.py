"""What a system gets with a question, and what it gives back."""

import math
from collections.abc import ItemsView, Iterator, Mapping, Sequence
from typing import Any

from msgspec import UNSET, Struct, UnsetType

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
