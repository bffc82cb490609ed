"""What the parts of a judge hand to each other: what is asked of a model, what it replies, what is made of it.

A *case* is one task for one query. The protocol makes an :class:`Ask` of it, a :class:`Model` sends that and returns
its :class:`Reply`, and the protocol reads judgments from the reply. A model knows nothing of tasks, the protocol
nothing of endpoints.
"""

from collections.abc import Mapping
from typing import Any, Literal, Protocol

from msgspec import Struct

Task = Literal["attribution", "confirmation", "criteria", "claims"]


class Item(Struct, frozen=True, kw_only=True):
    """One thing to judge: its name in the judgments file (``claim:3``), its text, and why it was flagged, if it was."""

    name: str
    text: str
    why: str = ""


class Case(Struct, frozen=True, kw_only=True):
    """One task for one query: the items to judge, and the texts to judge them by.

    ``contexts`` are the retrieved texts, best first. ``response`` and ``reference`` are None where the task has none.
    """

    task: Task
    query_id: str
    question: str
    items: tuple[Item, ...]
    contexts: tuple[str, ...] = ()
    response: str | None = None
    reference: str | None = None


class Ask(Struct, frozen=True, kw_only=True):
    """What is sent to a model: two messages, the JSON Schema of the reply, and how the reply is drawn.

    ``max_tokens`` limits the reply.
    """

    system: str
    user: str
    schema: Mapping[str, Any]
    temperature: float = 0.0
    seed: int = 0
    max_tokens: int


class Reply(Struct, frozen=True, kw_only=True):
    """What a model replied, whole or ``cut`` off at its limit; the model and the tokens are as its endpoint says.

    ``dropped`` are the parameters that the endpoint does not take, sorted, without which this was asked: with them and
    the model as answered, a fingerprint says what replied. ``retried`` is how often the call was sent again before.
    """

    text: str
    cut: bool = False
    model: str = ""
    dropped: tuple[str, ...] = ()
    tokens_in: int = 0
    tokens_out: int = 0
    retried: int = 0


class NoReply(Exception):  # noqa: N818 (it is what happened, not a fault in how something was called)
    """There is no reply: ``kind`` is one of those of HTTP failures, or ``too_long``, ``budget``, ``deadline``.

    With ``final``, no other call can have one either: there is no such host, or the key is refused.
    """

    def __init__(self, kind: str, message: str, *, final: bool = False) -> None:
        """Store the attributes; the message has no secret in it."""
        super().__init__(message)
        self.kind = kind
        self.final = final


class Model(Protocol):
    """A model behind an endpoint. Threads share it.

    Keys have the name and the host, which are known before anything is asked: a key with what an endpoint turned out
    not to take would be another one at the start of the next run, and everything would be asked again.
    """

    @property
    def name(self) -> str:
        """The model as the user names it."""

    @property
    def host(self) -> str:
        """The host of its endpoint, with the port if it is not the usual one."""

    def ask(self, ask: Ask) -> Reply:
        """Send what is asked and return the reply; raises NoReply."""
