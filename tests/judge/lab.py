"""A judge's model in front of the stand-in server, and what is asked of it in tests."""

import json
from collections.abc import Mapping
from typing import Any

from ragcontract.judge.chat_model import ChatModel, Dialect, OllamaChat, OpenAIChat
from ragcontract.judge.endpoint import find_endpoint
from ragcontract.judge.interface import Ask, NoReply
from ragcontract.judge.model_calls import Budget, CallLimits, ModelCalls, Spending
from ragcontract.net.pacing import Timing

SCHEMA = {"type": "object", "properties": {"verdicts": {"type": "array"}}, "required": ["verdicts"]}
NOW = 1_800_000_000.0


class Clock:
    """A clock that only moves while somebody sleeps, and notes how long they do."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    @property
    def timing(self) -> Timing:
        return Timing(monotonic=lambda: sum(self.slept), now=lambda: NOW, sleep=self.slept.append)


def an_ask(text: str = "Returns take 30 days.", **fields: Any) -> Ask:
    """Return an attribution of one claim that its context supports."""
    data = {
        "x7_question": "How long?",
        "x7_claims": [{"id": 1, "text": text}],
        "x7_contexts": [{"id": 1, "text": text}],
    }
    given = {"system": "Judge.", "user": json.dumps(data), "schema": SCHEMA, "max_tokens": 2048, **fields}
    return Ask(**given)


class Judge:
    """A model behind an address, with a clock that does not wait."""

    def __init__(
        self,
        url: str,
        *,
        api: str | None = None,
        budget: Budget | None = None,
        limits: CallLimits | None = None,
        max_context: int = 32_768,
        environ: Mapping[str, str] | None = None,
        timing: Timing | None = None,
    ) -> None:
        self.clock = Clock()
        self.endpoint = find_endpoint(url, api, environ or {})
        self.spending = Spending(budget, timing or self.clock.timing)
        self.calls = ModelCalls(self.endpoint, self.spending, limits, timing=timing or self.clock.timing)
        dialect: Dialect = OllamaChat(max_context) if self.endpoint.api == "ollama" else OpenAIChat()
        self.model = ChatModel("toy", dialect, self.calls)

    def verdicts(self, ask: Ask | None = None) -> list[dict[str, Any]]:
        """Return the verdicts of a reply."""
        found: list[dict[str, Any]] = json.loads(self.model.ask(ask or an_ask()).text)["verdicts"]
        return found

    def failure(self, ask: Ask | None = None) -> NoReply:
        """Return why there is no reply."""
        try:
            reply = self.model.ask(ask or an_ask())
        except NoReply as error:
            return error
        raise AssertionError(reply)
