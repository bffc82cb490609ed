"""The records and protocols between the parts of a judge: what is asked of a model, and what it replies.

A *case* is one task for one query (:mod:`ragcontract.judgments.items`). The protocol makes asks of it, a
:class:`Model` sends each and returns its :class:`Reply`, and the protocol reads judgments from the replies. A model
knows nothing of tasks, the protocol nothing of endpoints.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from random import Random
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.config_sections import Confirm


class Ask(Struct, frozen=True, kw_only=True):
    """What is sent to a model."""

    system: str  # the system message
    user: str  # the user message
    schema: Mapping[str, Any]  # the JSON Schema of the reply
    temperature: float = 0.0
    seed: int = 0
    max_tokens: int  # of the reply


class Reply(Struct, frozen=True, kw_only=True):
    """What a model replied."""

    text: str
    cut: bool = False  # whether it was cut off at its limit
    model: str = ""  # as the endpoint names it; a part of the fingerprint
    dropped: tuple[str, ...] = ()  # the parameters that the endpoint refused, sorted; a part of the fingerprint
    tokens_in: int = 0  # as the endpoint counts them
    tokens_out: int = 0  # as the endpoint counts them
    retried: int = 0  # how often the call was sent again


class NoReply(Exception):  # noqa: N818 (it is what happened, not a fault in how something was called)
    """There is no reply. ``kind`` is that of an HTTP failure, or for example ``too_long``, ``budget`` or ``deadline``.

    With ``final``, no other call can have a reply either, for example because the key is refused. The message has no
    secret in it.
    """

    def __init__(self, kind: str, message: str, *, final: bool = False) -> None:
        super().__init__(message)
        self.kind = kind
        self.final = final


class Model(Protocol):
    """A model behind an endpoint. Threads share it.

    Keys have the name and the host, which are known before anything is asked. They do not have the parameters that an
    endpoint refuses. Those are not known at the start of the next run, so everything would be asked again.
    """

    name: str  # of the model, as the user names it
    host: str  # of its endpoint, with the port if it is not the usual one

    def ask(self, ask: Ask) -> Reply:
        """Send what is asked and return the reply; raise NoReply."""


# The source of nonces, and of the places and words of controls: ``random.SystemRandom()``, or seeded dice. Nobody who
# writes a text that is judged must be able to guess them. With equal dice and equal replies, a case makes equal asks.
# So a session whose dice are seeded by its secret and the case can continue within a case.
Dice: TypeAlias = Random


class VoteSettings(Struct, frozen=True, kw_only=True):
    """How a case is judged."""

    votes: int = 3  # on an item at most; an odd number
    confirm: Confirm = "failures"  # whether only failures need several votes, or all items
    max_tokens: int = 2048  # of each reply

    def __post_init__(self) -> None:
        if not 1 <= self.votes <= bounds.VOTES or not self.votes % 2:
            raise ValueError(f"votes: expected an odd number from 1 to {bounds.VOTES}, found {self.votes}")


Clock: TypeAlias = Callable[[], datetime]  # now, in UTC
