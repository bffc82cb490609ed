"""A chat model behind an endpoint: what is asked is sent without what the endpoint turns out not to take.

Endpoints differ in how they hold a model to a schema, and newer models refuse parameters that older ones need. What is
refused is left out from then on, one thing at a time, and each reply says what that was.
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
TIMES_CUT = 2  # what a reply that was cut may be longer, when it is asked for once more


class Said(Struct, frozen=True, kw_only=True):
    """What an endpoint's answer says: the model's words, whether they were cut off, and who said them."""

    text: str
    cut: bool
    model: str


class Dialect(Protocol):
    """How an endpoint is spoken to; a module each."""

    path: str
    # What may be left out, in the order in which it is if a refusal does not name what is refused. Each with the words
    # that name it in a refusal.
    optional: Mapping[str, Sequence[str]]

    def in_use(self, dropped: frozenset[str]) -> list[str]:
        """Return what is sent of ``optional`` without what is dropped."""

    def body(self, model: str, ask: Ask, dropped: frozenset[str]) -> dict[str, Any]:
        """Return what is sent; raises NoReply if it is too long."""

    def said(self, content: Any, ask: Ask) -> Said:
        """Return what an answer says; raises NoReply."""

    def tokens(self, content: Any) -> tuple[int, int] | None:
        """Return the tokens in and out that an answer names; None if it names none."""


class ChatModel:
    """A model that is asked; threads share it."""

    def __init__(self, name: str, dialect: Dialect, calls: ModelCalls) -> None:
        """Prepare to ask the model of a name."""
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
        """What the endpoint turned out not to take, sorted."""
        return tuple(sorted(self._dropped))

    def ask(self, ask: Ask) -> Reply:
        """Return the reply; one that was cut off is asked for once more, with twice the length. Raises NoReply."""
        if self._is_known:
            return self._asked(ask)
        with self._first:  # what the first one finds out, the others need not
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
        with self._lock:  # only now: a call may be refused for other reasons, however it is put
            self._dropped |= dropped
        said = self._dialect.said(content, ask)
        tokens_in, tokens_out = self._dialect.tokens(content) or (0, 0)
        return Reply(
            text=writable(self._calls.endpoint.secrets.redacted_json(said.text)),
            cut=said.cut,
            model=shorten(visible(writable(said.model)), bounds.JUDGE_NAME),
            dropped=tuple(sorted(dropped)),
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            retried=retried + again,
        )

    def _blamed(self, refused: Refused, dropped: frozenset[str]) -> str | None:
        """Return what to leave out after a refusal; None if it is not about parameters, or if none is left."""
        if refused.status not in MAY_BE_PARAMETERS:
            return None
        sent = self._dialect.in_use(dropped)
        for said in refused.said:
            named = [name for name in sent if any(word in said.lower() for word in self._dialect.optional[name])]
            if named:
                return named[0]
        return next(iter(sent), None)


def _longer(ask: Ask) -> Ask:
    return replace(ask, max_tokens=TIMES_CUT * ask.max_tokens)


def estimated_tokens(ask: Ask) -> int:
    """Return about how many tokens are sent, rather too many: a third of the characters.

    Digits, signs and characters of other scripts are often tokens of their own, so they count in full: what is too
    long must be known beforehand, since some endpoints cut it without a word.
    """
    text = ask.system + ask.user
    others = len(LETTERS.sub("", text))
    return -(-(len(text) - others) // LETTERS_A_TOKEN) + others


def whole_number(value: Any) -> int | None:
    """Return a number of tokens in an answer; None if it is none."""
    is_number = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= bounds.RANK
    return value if is_number else None


def text_in(value: Any) -> str:
    """Return the text of a message: a text, or the texts of its parts; empty if there is none."""
    if isinstance(value, list):
        return "".join(text_in(part.get("text")) for part in value if isinstance(part, dict))
    return value if isinstance(value, str) else ""


def no_message(content: Mapping[str, Any], otherwise: str) -> NoReply:
    """Return why an answer has no message: the reason that it gives, as some servers do with a status of success."""
    reason = shorten(visible(writable(reason_in(content))), bounds.SERVICE_REASON)
    return NoReply("no_message", f"the answer has no message, but says: {reason}" if reason else otherwise)
