"""What a judging would cost, for a dry run: the first calls are made of each case, and counted instead of sent."""

import random

from msgspec import Struct

from ragcontract.judge.chat_model import estimated_tokens
from ragcontract.judge.interface import Ask, Model, NoReply, Reply, Settings
from ragcontract.judge.judge_case import judge_case
from ragcontract.judge.judging_session import Lacking


class Expected(Struct, frozen=True, kw_only=True):
    """What a judging would cost at least: calls, tokens in, by estimate, and at most so many out."""

    calls: int
    tokens_in: int
    most_out: int


def expected_cost(to_ask: Lacking, model: Model, settings: Settings) -> Expected:
    """Return what the first calls on each case would cost; nothing is asked."""
    counting = CountingModel(model.name, model.host)
    dice = random.SystemRandom()
    for case in to_ask.cases:
        judge_case(case, counting, settings, dice)
    return counting.expected


class CountingModel:
    """Notes what it is asked, and does not reply."""

    def __init__(self, name: str, host: str) -> None:
        """Have the name and the host of the model that would be asked: keys have them."""
        self.name, self.host = name, host
        self.expected = Expected(calls=0, tokens_in=0, most_out=0)

    def ask(self, ask: Ask) -> Reply:
        """Count; raises NoReply."""
        before = self.expected
        self.expected = Expected(
            calls=before.calls + 1,
            tokens_in=before.tokens_in + estimated_tokens(ask),
            most_out=before.most_out + ask.max_tokens,
        )
        raise NoReply("dry_run", "nothing is asked", final=True)
