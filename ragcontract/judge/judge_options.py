"""Options of a judging as users give them, and what is wrong with them."""

import re
from collections.abc import Mapping
from typing import get_args

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.numbers import is_within
from ragcontract.core.text import shorten
from ragcontract.judge.interface import Settings
from ragcontract.judge.judgment_cache import USUAL_DAYS
from ragcontract.judge.model_calls import CallLimits
from ragcontract.judge.ollama import USUAL_CONTEXT
from ragcontract.judge.spending import Budget
from ragcontract.runs.judged_texts import Confirm

SETTINGS, LIMITS = Settings(), CallLimits()  # what is usual
DURATION = re.compile(r"(\d+(?:\.\d+)?)(s|m|min|h)")
UNITS: Mapping[str, int] = {"s": 1, "m": 60, "min": 60, "h": 3_600}
# The least and the most of each whole number, and of the others.
WHOLE = {
    "votes": (1, bounds.VOTES),
    "max_calls": (0, bounds.JUDGE_BUDGET),
    "max_tokens": (0, bounds.JUDGE_BUDGET),
    "concurrency": (1, bounds.CONCURRENCY),
    "retries": (0, bounds.RETRIES),
    "max_context": (1, bounds.JUDGE_CONTEXT),
    "max_reply": (1, bounds.JUDGE_CONTEXT),
}
NUMBERS = {
    "max_usd": (0, bounds.JUDGE_BUDGET),
    "price_in": (0, bounds.JUDGE_BUDGET),
    "price_out": (0, bounds.JUDGE_BUDGET),
    "timeout": (0.001, bounds.CALL_SECONDS),
    "connect_timeout": (0.001, bounds.CALL_SECONDS),
    "max_age_days": (0, bounds.RANK),
}


class JudgeOptions(Struct, frozen=True, kw_only=True):
    """The options; prices are in USD for a million tokens, ``deadline`` is text such as ``20m``, None is not given."""

    model: str
    votes: int = SETTINGS.votes
    confirm: Confirm = SETTINGS.confirm
    max_calls: int = 1_000
    max_tokens: int | None = None
    max_usd: float | None = None
    price_in: float | None = None
    price_out: float | None = None
    concurrency: int = LIMITS.concurrency
    deadline: str | None = None
    timeout: float = LIMITS.seconds
    connect_timeout: float = LIMITS.connect_seconds
    retries: int = LIMITS.retries
    max_context: int = USUAL_CONTEXT
    max_reply: int = SETTINGS.max_tokens
    max_age_days: float = USUAL_DAYS
    refresh: bool = False

    def wrong(self) -> list[tuple[str, str]]:
        """Return what is wrong, by the names of the fields."""
        found = []
        for name, (least, most) in {**WHOLE, **NUMBERS}.items():
            value, whole = getattr(self, name), name in WHOLE
            if value is None and getattr(USUAL, name) is None:
                continue
            if not is_within(value, least, most, whole=whole):
                kind = "a whole number" if whole else "a number"
                found.append((name, f"expected {kind} from {least:,} to {most:,}, found {value!r}"))
        if type(self.votes) is int and not self.votes % 2:
            found.append(("votes", f"expected an odd number, so that a majority decides, found {self.votes}"))
        if self.confirm not in get_args(Confirm):
            known = " or ".join(map(repr, get_args(Confirm)))
            found.append(("confirm", f"expected {known}, found {_shown(str(self.confirm))}"))
        if not isinstance(self.model, str) or not self.model.strip() or len(self.model) > bounds.JUDGE_NAME:
            found.append(("model", f"name the model to ask, in 1 to {bounds.JUDGE_NAME} characters"))
        if self.deadline is not None and _seconds(self.deadline) is None:
            found.append(("deadline", f"expected a time such as 90s, 20m or 2h, found {_shown(str(self.deadline))}"))
        if self.max_usd is not None and (self.price_in is None or self.price_out is None):
            found.append(("max_usd", "needs the prices of the model: --price-in and --price-out, in USD per million"))
        return found

    @property
    def settings(self) -> Settings:
        """How cases are judged."""
        return Settings(votes=self.votes, confirm=self.confirm, max_tokens=self.max_reply)

    @property
    def budget(self) -> Budget:
        """What it may cost; nothing may be wrong with the options."""
        return Budget(
            max_calls=self.max_calls,
            max_tokens=self.max_tokens,
            max_usd=self.max_usd,
            price_in=self.price_in,
            price_out=self.price_out,
            deadline=None if self.deadline is None else _seconds(self.deadline),
        )

    @property
    def limits(self) -> CallLimits:
        """How calls are made."""
        return CallLimits(
            concurrency=self.concurrency,
            retries=self.retries,
            seconds=self.timeout,
            connect_seconds=self.connect_timeout,
        )


USUAL = JudgeOptions(model="")  # as it is where nothing else is given; only the model must be


def _seconds(text: str) -> float | None:
    """Return the seconds of a deadline; None if it is none, or too far away."""
    found = DURATION.fullmatch(text.strip()) if isinstance(text, str) else None
    seconds = float(found[1]) * UNITS[found[2]] if found else 0
    return seconds if 0 < seconds <= bounds.JUDGE_DEADLINE else None


def _shown(text: str) -> str:
    return repr(shorten(text, bounds.NAME))
