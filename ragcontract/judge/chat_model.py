"""A chat model behind an endpoint, which is asked without the parameters that the endpoint refuses.

Endpoints differ in how they hold a model to a schema, and newer models refuse parameters that older ones need. A
parameter that is refused is left out from then on, one at a time, and each reply names those that were left out.
"""

import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.safe_text import shorten, visible
from ragcontract.judge.calls import writable
from ragcontract.judge.interface import Ask, NoReply, Reply
from ragcontract.judge.model_calls import ModelCalls, Refused
from ragcontract.net.sending import reason_in

MAY_BE_PARAMETERS = {400, 422}
LETTERS, LETTERS_A_TOKEN = re.compile(r"[A-Za-z ]+"), 3  # letters a token, at least
TIMES_CUT = 2  # how many times as long a reply may be if it was cut and is asked for once more


class ModelMessage(Struct, frozen=True, kw_only=True):
    """The message in the answer of an endpoint."""

    text: str
    cut: bool  # whether it was cut off
    model: str  # the model that the answer names


class Dialect(Protocol):
    """The API of an endpoint."""

    path: str
    # The parameters that may be left out, each with the words that name it in a refusal. If a refusal names none, the
    # first one that is sent is left out.
    optional: Mapping[str, Sequence[str]]

    def in_use(self, dropped: frozenset[str]) -> list[str]:
        """Return the ``optional`` parameters that are sent."""

    def body(self, model: str, ask: Ask, dropped: frozenset[str]) -> dict[str, Any]:
        """Return the body of a call; raise NoReply if it is too long."""

    def message(self, content: Any, ask: Ask) -> ModelMessage:
        """Return the message in an answer; raise NoReply."""

    def tokens(self, content: Any) -> tuple[int, int] | None:
        """Return the tokens in and out that an answer names; None if it names none."""


class ChatModel:
    """A model that is asked; threads share it."""

    def __init__(self, name: str, dialect: Dialect, calls: ModelCalls) -> None:
        self._name = name
        self._dialect = dialect
        self._calls = calls
        self._dropped: frozenset[str] = frozenset()
        self._lock = threading.Lock()
        self._first = threading.Lock()
        self._is_known = False

    @property
    def name(self) -> str:
        """The model as the user names it."""
        return self._name

    @property
    def host(self) -> str:
        """The host of its endpoint."""
        return self._calls.endpoint.host

    @property
    def dropped(self) -> tuple[str, ...]:
        """The parameters that the endpoint refused, sorted."""
        return tuple(sorted(self._dropped))

    def ask(self, ask: Ask) -> Reply:
        """Return the reply; ask once more for twice the length if it was cut off. Raise NoReply."""
        if self._is_known:
            return self._asked(ask)
        with self._first:  # the first call finds out what is refused, so the others need not
            try:
                return self._asked(ask)
            finally:
                self._is_known = True

    def close(self) -> None:
        """Close the connections."""
        self._calls.close()

    def _asked(self, ask: Ask) -> Reply:
        reply = self._once(ask)
        if not reply.cut:
            return reply
        try:
            longer = self._once(_longer(ask))
        except NoReply as error:
            if error.final or error.kind != "too_long":
                raise
            return reply
        return Reply(
            text=longer.text,
            cut=longer.cut,
            model=longer.model,
            dropped=longer.dropped,
            tokens_in=reply.tokens_in + longer.tokens_in,
            tokens_out=reply.tokens_out + longer.tokens_out,
            retried=reply.retried + longer.retried + 1,
        )

    def _once(self, ask: Ask) -> Reply:
        dropped, retried = self._dropped, 0
        while True:
            body = self._dialect.body(self._name, ask, dropped)
            try:
                content, again = self._calls.post(
                    self._dialect.path,
                    body,
                    tokens_in=estimated_tokens(ask),
                    most_out=ask.max_tokens,
                    bill=self._dialect.tokens,
                    again=retried > 0,
                )
            except Refused as refused:
                blamed = self._blamed(refused, dropped)
                if blamed is None:
                    raise
                dropped |= {blamed}
                retried += 1
                continue
            break
        with self._lock:  # only after a success, because the call may have been refused for other reasons
            self._dropped |= dropped
        message = self._dialect.message(content, ask)
        tokens_in, tokens_out = self._dialect.tokens(content) or (0, 0)
        return Reply(
            text=writable(self._calls.endpoint.secrets.redacted_json(message.text)),
            cut=message.cut,
            model=shorten(visible(writable(message.model)), bounds.JUDGE_NAME),
            dropped=tuple(sorted(dropped)),
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            retried=retried + again,
        )

    def _blamed(self, refused: Refused, dropped: frozenset[str]) -> str | None:
        """Return the parameter to leave out after a refusal; None if it is not about parameters, or none is left."""
        if refused.status not in MAY_BE_PARAMETERS:
            return None
        sent = self._dialect.in_use(dropped)
        for text in refused.texts:
            named = [name for name in sent if any(word in text.lower() for word in self._dialect.optional[name])]
            if named:
                return named[0]
        return next(iter(sent), None)


def _longer(ask: Ask) -> Ask:
    return replace(ask, max_tokens=TIMES_CUT * ask.max_tokens)


def estimated_tokens(ask: Ask) -> int:
    """Return an estimate of how many tokens are sent, rather too high: a third of the letters.

    Digits, signs and characters of other scripts are often tokens of their own, so they count in full. Texts that are
    too long must be known beforehand, because some endpoints cut them without an error.
    """
    text = ask.system + ask.user
    others = len(LETTERS.sub("", text))
    return -(-(len(text) - others) // LETTERS_A_TOKEN) + others


def whole_number(value: Any) -> int | None:
    """Return a number of tokens in an answer; None if the value is not one."""
    is_number = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= bounds.RANK
    return value if is_number else None


def text_in(value: Any) -> str:
    """Return the text of a message: a text, or the texts of its parts; empty if there is none."""
    if isinstance(value, list):
        return "".join(text_in(part.get("text")) for part in value if isinstance(part, dict))
    return value if isinstance(value, str) else ""


def no_message(content: Mapping[str, Any], otherwise: str) -> NoReply:
    """Return why an answer has no message: the reason in the answer, which some servers send with status 200."""
    reason = shorten(visible(writable(reason_in(content))), bounds.SERVICE_REASON)
    return NoReply("no_message", f"the answer has no message, but says: {reason}" if reason else otherwise)
