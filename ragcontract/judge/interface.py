"""What the parts of a judge hand to each other: what is asked of a model, and what it replies.

A *case* is one task for one query (:mod:`ragcontract.judgments.items`). The protocol makes asks of it, a
:class:`Model` sends each and returns its :class:`Reply`, and the protocol reads judgments from the replies. A model
knows nothing of tasks, the protocol nothing of endpoints.
"""

from collections.abc import Callable, Mapping, MutableSequence
from datetime import datetime
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.judge_settings import Confirm


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


class Dice(Protocol):
    """Where nonces, and the places and words of controls, come from: ``random.SystemRandom()``, or a seeded one.

    Whoever writes a text that is judged must not be able to guess them. Of equal dice, a case makes equal asks of equal
    replies: with dice seeded by a secret of its own and the case, a session that was stopped can go on within a case.
    """

    def randrange(self, stop: int, /) -> int:
        """Return a number from 0 to below ``stop``."""

    def getrandbits(self, bits: int, /) -> int:
        """Return a number of so many random bits."""

    def shuffle(self, items: MutableSequence[Any], /) -> None:
        """Shuffle a list."""


class Settings(Struct, frozen=True, kw_only=True):
    """How a case is judged: so many votes, an odd number, and whether all items need them or only failures.

    ``max_tokens`` limits each reply.
    """

    votes: int = 3
    confirm: Confirm = "failures"
    max_tokens: int = 2048

    def __post_init__(self) -> None:
        """Raise ValueError for a number of votes that can be a draw, or is out of bounds."""
        if not 1 <= self.votes <= bounds.VOTES or not self.votes % 2:
            raise ValueError(f"votes: expected an odd number from 1 to {bounds.VOTES}, found {self.votes}")


Clock: TypeAlias = Callable[[], datetime]  # now, in UTC
