"""How votes on an item become a verdict: a strict majority of all votes that it may have, or none."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from ragcontract.judge.calls import Vote
from ragcontract.judge.interface import Settings
from ragcontract.runs.judged_texts import is_failure, settled
from ragcontract.runs.judgments import Status

NoVote: TypeAlias = Literal["unsure", "compromised", "failed"]
# What an item is if it has no majority: the first of these that a vote was withheld for.
_WORST: tuple[NoVote, ...] = ("failed", "compromised", "unsure")


class Withheld(Struct, frozen=True, kw_only=True):
    """A vote that there is not, and why."""

    status: NoVote
    reason: str


class Decision(Struct, frozen=True, kw_only=True):
    """What comes of the votes on an item: the first vote with the verdict, or why there is none."""

    status: Status
    vote: Vote | None = None
    reason: str = ""


_TIED = Decision(status="unsure", reason="The votes do not agree.")


def decided(votes: Sequence[Vote | Withheld], settings: Settings) -> Decision | None:
    """Return what the votes so far decide; None if another one is needed.

    With ``confirm: failures``, the first vote decides unless it speaks against the application. Every other verdict
    needs more than half of ``settings.votes``, of which a withheld one counts for neither side. Nothing more is asked
    once that is reached, or cannot be.
    """
    cast = [vote.verdict if isinstance(vote, Vote) else None for vote in votes]
    verdict = settled(cast, settings.votes, settings.confirm)
    if verdict is not None:
        return Decision(
            status="ok", vote=next(one for one in votes if isinstance(one, Vote) and one.verdict == verdict)
        )
    first = votes[0]
    if isinstance(first, Withheld) and (settings.votes == 1 or settings.confirm == "failures"):
        return _withheld(first)
    against = sum(1 for vote in cast if vote is not None and is_failure(vote))
    in_favour = sum(1 for vote in cast if vote is not None) - against
    if max(against, in_favour) + settings.votes - len(votes) > settings.votes // 2:
        return None
    withheld = {vote.status: vote for vote in reversed(votes) if isinstance(vote, Withheld)}
    return next((_withheld(withheld[status]) for status in _WORST if status in withheld), _TIED)


def _withheld(vote: Withheld) -> Decision:
    return Decision(status=vote.status, reason=vote.reason)
